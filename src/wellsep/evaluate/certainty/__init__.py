"""How sure a ranking is: the same on half-samples."""
