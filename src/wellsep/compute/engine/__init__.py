"""How work is cut into blocks, run and merged: in memory, on a device, on Dask."""
