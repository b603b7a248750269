"""Partitions vote for each other; one partition is made from many."""
