"""What X is: rows, sparse rows, rows on a device, distances, a mixed table."""
