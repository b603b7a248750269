"""Statistics of partitions, one per module."""
