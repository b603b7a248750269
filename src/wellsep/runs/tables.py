"""Labels and embeddings in CSV and Parquet files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

_ID_COLUMNS = {"", "id", "ids", "index", "unnamed: 0", "__index_level_0__"}


def read_table(path: Path, kind: str, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The labels or the embedding in a table, and the ids where it has a column of them."""
    try:
        if path.suffix == ".parquet":
            return _from_columns(_parquet_columns(path, what), kind, what)
        return _csv_embedding(path, what) if kind == "embedding" else _csv_labels(path, what)
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8 text, got other bytes in {path.name}.") from None


def _csv_embedding(path: Path, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    first, header = _first_line(path, "embedding", what)
    id_column = place_of_ids(first) if header else None
    columns = [i for i in range(len(first)) if i != id_column]
    if not columns:
        raise ValueError(f"{what} must have a column of numbers, got columns {first}.")
    with open(path, encoding="utf-8-sig", newline="") as stream:
        try:
            array = np.loadtxt(
                stream,
                delimiter=",",
                comments=None,
                quotechar='"',
                skiprows=int(header),
                usecols=columns,
                ndmin=2,
            )
        except ValueError as error:
            raise ValueError(
                f"{what} must be a table of numbers, got in {path.name}: {error}"
            ) from None
    if id_column is None:
        return array, None
    ids = [row[id_column] for row in _rows(path, what)[1:]]
    return array, _numbers_or_text(ids)


def _csv_labels(path: Path, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    first, header = _first_line(path, "labels", what)
    rows = _rows(path, what)[int(header) :]
    names = first if header else [str(i) for i in range(len(first))]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    if not header and len(first) == 1:
        return _numbers_or_text(columns["0"]), None
    return _from_columns({k: _numbers_or_text(v) for k, v in columns.items()}, "labels", what)


def _first_line(path: Path, kind: str, what: str) -> tuple[list[str], bool]:
    """The first line, and whether it is a header.

    It is one unless all its cells are numbers. pandas writes 0,1,2,… over columns without names:
    over several columns of an embedding that is a header too.
    """
    with open(path, encoding="utf-8-sig", newline="") as stream:
        first = next(csv.reader(stream), [])
    if not first:
        raise ValueError(f"{what} must not be empty, got nothing in {path.name}.")
    counted = [str(i) for i in range(len(first))]
    unnamed = kind == "embedding" and len(first) > 1 and first == counted
    return first, unnamed or not all(_is_number(cell) for cell in first)


def _rows(path: Path, what: str) -> list[list[str]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    for place, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{what} must have {len(rows[0])} cell(s) in every line, got {len(row)} in line "
                f"{place + 1} of {path.name}."
            )
    return rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def place_of_ids(names: list[str]) -> int | None:
    """Place of the column that names the objects."""
    return next((i for i, name in enumerate(names) if name.casefold() in _ID_COLUMNS), None)


def _numbers_or_text(cells: list[str]) -> np.ndarray:
    if not all(cells):
        return np.array([cell or None for cell in cells], dtype=object)
    for kind in (np.int64, np.float64):
        try:
            return np.array(cells, dtype=np.str_).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(cells, dtype=np.str_)


def _from_columns(
    columns: dict[str, np.ndarray], kind: str, what: str
) -> tuple[np.ndarray, np.ndarray | None]:
    names = list(columns)
    place = place_of_ids(names)
    ids = None if place is None else columns.pop(names[place])
    if kind == "labels":
        if len(columns) != 1:
            raise ValueError(
                f"{what} must have one column besides the ids, got {list(columns)}; "
                "write one file for each partition."
            )
        return next(iter(columns.values())), ids
    if not columns:
        raise ValueError(f"{what} must have a column of numbers, got columns {names}.")
    for name, column in columns.items():
        if column.dtype.kind not in "fiub":
            raise TypeError(f"{what} must be numeric, got column {name!r} of type {column.dtype}.")
    return np.column_stack(list(columns.values())), ids


def _parquet_columns(path: Path, what: str) -> dict[str, np.ndarray]:
    """Name → column; a column of equally long lists (vectors) becomes a matrix."""
    try:
        return {k: _as_matrix(v) for k, v in _read_parquet(path).items()}
    except ImportError:
        raise ImportError(
            f"{what} must be read with pyarrow or polars, got neither installed; "
            "install one: pip install pyarrow."
        ) from None
    except (UnicodeDecodeError, OSError):
        raise
    except Exception as error:  # either library's own kinds
        raise ValueError(
            f"{what} must be a readable Parquet table, got in {path.name}: {error}."
        ) from None


def _read_parquet(path: Path) -> dict[str, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        import polars as pl

        return {s.name: s.to_numpy() for s in pl.read_parquet(path).get_columns()}
    table = pq.read_table(path)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns[name] = column.to_numpy()
    return columns


def _as_matrix(column: np.ndarray) -> np.ndarray:
    vectors = column.dtype.kind == "O" and len(column) and isinstance(column[0], np.ndarray)
    return np.stack(list(column)) if vectors else column
