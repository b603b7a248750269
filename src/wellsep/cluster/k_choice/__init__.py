"""How many clusters: fits and scores of each K, criteria, the result."""
