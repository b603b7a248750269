"""Agglomerative clustering inside JULE and DEPICT."""
