"""The deep clusterers."""
