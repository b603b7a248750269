"""Stability of a clustering: draws of the objects, and what they find again."""
