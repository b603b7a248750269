"""The pages of a ranking, of a chosen K and of a stability."""
