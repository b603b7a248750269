"""A large table on disk as a dask array whose chunks are read by the workers."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks import check_count
from wellsep.runs.npy import stored_npy

CHUNK_BYTES = 64 << 20


def open_chunked(path: str | os.PathLike[str], *, chunk_rows: int | None = None) -> Any:
    """Open a ``.npy`` file, a Zarr array or Parquet as a dask array, without reading it.

    Each chunk is read by the worker that needs it, so the path must mean the same file on every
    machine. (``dask.array.from_array`` of a memory map would send the data themselves along.)

    Parameters
    ----------
    path : path
        ``x.npy``, ``x.zarr``, ``x.parquet`` or a folder of Parquet files.
    chunk_rows : int, optional
        Rows of a chunk of ``.npy``; about 64 MB by default. Zarr and Parquet keep their own.

    Returns
    -------
    dask.array.Array of shape (n, d)

    Examples
    --------
    >>> import tempfile, numpy as np, wellsep as ws
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(20.0).reshape(10, 2))
    ...     X = ws.open_chunked(f"{folder}/x.npy", chunk_rows=4)
    ...     X.chunks, float(X.sum())
    (((4, 4, 2), (2,)), 190.0)
    """
    try:
        import dask.array as da
    except ImportError:
        raise ImportError(
            "open_chunked must have the package dask, got none; "
            "install it with: pip install 'wellsep[dask]'."
        ) from None
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path must be there, got no file {path}.")
    if path.suffix == ".npy":
        return _from_npy(da, path, chunk_rows)
    if path.suffix == ".zarr":
        return da.from_zarr(str(path.absolute()))
    if path.suffix == ".parquet" or path.is_dir():
        import dask.dataframe as dd

        return dd.read_parquet(str(path.absolute())).to_dask_array(lengths=True)
    raise ValueError(f"path must end in .npy, .zarr or .parquet, got {path.name!r}.")


def _from_npy(da: Any, path: Path, chunk_rows: int | None) -> Any:
    stored = stored_npy(path, str(path))
    if len(stored.shape) != 2:
        raise ValueError(f"{path.name} must hold a matrix, got shape {stored.shape}.")
    n, d = stored.shape
    if chunk_rows is None:
        chunk_rows = max(1, CHUNK_BYTES // max(1, d * stored.dtype.itemsize))
    step = check_count("chunk_rows", chunk_rows)
    starts = range(0, n, step)
    name = f"wellsep-npy-{uuid.uuid4().hex}"
    graph = {
        (name, i, 0): (_read_rows, stored.opener, start, min(start + step, n))
        for i, start in enumerate(starts)
    }
    sizes = tuple(min(start + step, n) - start for start in starts)
    return da.Array(graph, name, chunks=(sizes, (d,)), dtype=stored.dtype)


def _read_rows(opener: Callable[[], np.ndarray], start: int, stop: int) -> np.ndarray:
    return np.array(opener()[start:stop], order="C")
