"""Every partition in every space, here or on Dask."""
