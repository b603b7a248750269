"""Embeddings in Parquet files and Zarr arrays: shape and type now, values when they are opened."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from wellsep.runs.arrays import Stored
from wellsep.runs.tables import place_of_ids, read_table


def stored_parquet(path: Path, what: str) -> tuple[Stored | np.ndarray, np.ndarray | None]:
    """The numeric columns of a Parquet table as a stored embedding, and its ids if it has any.

    Tables whose metadata do not tell the shape (a column of vectors, words) are read at once.
    """
    try:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            schema, n = file.schema_arrow, file.metadata.num_rows
    except Exception:  # no pyarrow, or not a table: reading it says what is wrong
        return read_table(path, "embedding", what)
    place = place_of_ids(schema.names)
    columns = [name for i, name in enumerate(schema.names) if i != place]
    try:
        types = [schema.field(name).type.to_pandas_dtype() for name in columns]
        dtype = np.result_type(*types)
    except (NotImplementedError, TypeError, ValueError):
        return read_table(path, "embedding", what)
    if dtype.kind not in "fiu":
        return read_table(path, "embedding", what)
    ids = None
    if place is not None:
        ids = pq.read_table(path, columns=[schema.names[place]]).column(0).to_numpy()
    opener = partial(_read_columns, os.path.abspath(path), columns)
    return Stored((n, len(columns)), dtype, opener), ids


def stored_zarr(path: Path, what: str) -> Stored:
    """A Zarr array; whoever opens it reads it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            f"{what} must be read with the package zarr, got none installed; "
            "install it: pip install zarr."
        ) from None
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
