"""Large tables on disk: Parquet and Zarr opened late, dask arrays whose chunks workers read."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count, may_name_ids
from wellsep._checks.values import check_path
from wellsep._files.arrays import Stored, stored_npy
from wellsep._text.sentences import need, quoted
from wellsep.distances.matrix import Distances
from wellsep.runs.space_files import stored_space
from wellsep.tables.reading import pandas_index, read_table
from wellsep.tables.text import is_index_name

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
    da = need("dask.array", "open_chunked", "'dask[array,dataframe]' distributed")
    path = check_path("path", path)
    if chunk_rows is not None:
        check_count("chunk_rows", chunk_rows)
    if not path.exists():
        raise FileNotFoundError(f"path must exist, got no file {path}.")
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
    d = stored.shape[1]
    step = chunk_rows or max(1, CHUNK_BYTES // max(1, d * stored.dtype.itemsize))
    chunks = da.core.normalize_chunks((step, d), stored.shape)
    none = np.empty((0, 0), stored.dtype)
    return da.map_blocks(_read_rows, stored.opener, chunks=chunks, meta=none)


def _read_rows(opener: Callable[[], np.ndarray], block_info: Any = None) -> np.ndarray:
    rows = slice(*block_info[None]["array-location"][0])
    return np.array(opener()[rows], order="C")


def stored_parquet(path: Path, what: str) -> tuple[Stored | np.ndarray, np.ndarray | None]:
    """The numeric columns of a Parquet table as a stored embedding, and its ids if it has any."""
    try:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            schema, n = file.schema_arrow, file.metadata.num_rows
    except (ImportError, OSError, NotImplementedError, ValueError):
        # No pyarrow, or not a table: reading it says what is wrong.
        return _read_now(path, what)
    names = schema.names
    index = pandas_index(schema)
    places = [
        i
        for i, name in enumerate(names)
        if name in index or is_index_name(name, i == 0 and len(names) > 1)
    ]
    columns = [name for i, name in enumerate(names) if i not in places]
    if any(map(may_name_ids, columns)):  # decided by the values
        return _read_now(path, what)
    # A table whose metadata do not tell the shape (a column of vectors, words) is read at once.
    try:
        types = [schema.field(name).type.to_pandas_dtype() for name in columns]
        dtype = np.result_type(*types)
    except (NotImplementedError, TypeError, ValueError):
        return _read_now(path, what)
    if dtype.kind not in "fiu":
        return _read_now(path, what)
    ids = None
    if places:
        ids = pq.read_table(path, columns=[names[places[0]]]).column(0).to_numpy()
    opener = partial(_read_columns, os.path.abspath(path), columns)
    return Stored((n, len(columns)), dtype, opener), ids


def _read_now(path: Path, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    table = read_table(path, what)
    return table.matrix(what), table.ids


def stored_zarr(path: Path, what: str) -> Stored:
    """A Zarr array; whoever opens it reads it."""
    zarr = need("zarr", what)
    try:
        array = zarr.open_array(os.path.abspath(path), mode="r")
    except Exception as error:  # the package's own kinds
        raise ValueError(f"{what} must be a Zarr array, got in {path.name}: {error}.") from None
    return Stored(array.shape, array.dtype, partial(_read_zarr, os.path.abspath(path)))


def _read_columns(path: str, columns: list[str]) -> np.ndarray:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=columns)
    return np.column_stack([table[name].to_numpy() for name in columns])


def _read_zarr(path: str) -> np.ndarray:
    import zarr

    return np.asarray(zarr.open_array(path, mode="r")[...])


def read_part(path: Path, kind: str, what: str) -> tuple[Any, np.ndarray | None]:
    """One part of a run from a file, and the ids beside it."""
    if path.suffix == ".npy":
        return stored_space(path, what), None
    distances = path.stem.endswith(".distances")
    if path.suffix == ".zarr" and not distances:
        return stored_zarr(path, what), None
    if kind == "embedding" and path.suffix == ".parquet" and not distances:
        return stored_parquet(path, what)
    table = read_table(path, what)
    if distances:
        return Distances.of_matrix(table.matrix(what), what), table.ids
    if kind == "embedding":
        return table.matrix(what).astype(np.float64), table.ids
    if kind == "ids" and not table.columns:
        return table.ids, None
    if len(table.columns) != 1:
        raise ValueError(
            f"{what} must have one column besides the ids, got {quoted(table.names)}; "
            "write one file for each clustering."
        )
    return table.columns[0], table.ids
