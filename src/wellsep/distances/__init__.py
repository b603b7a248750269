"""A space given by distances, checked once."""
