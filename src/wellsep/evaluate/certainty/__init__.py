"""How certain a ranking is: the same on half-samples."""
