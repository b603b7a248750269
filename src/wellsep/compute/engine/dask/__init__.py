"""Rows that lie on Dask: the same block functions, run as tasks."""
