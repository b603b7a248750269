"""Stability of a clustering: random samples of the objects, and which clusters are found again."""
