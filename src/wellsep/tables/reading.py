"""The one reader and writer of tables: CSV, TSV, Parquet, and NumPy files that hold one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import may_name_ids
from wellsep._files.arrays import (
    members,
    read_npz,
    stored_member,
    stored_npy,
)
from wellsep._files.limits import check_regular
from wellsep._text.sentences import meant, quoted
from wellsep.tables.text import SEPARATORS, is_index_name, read_text
from wellsep.tables.writing import is_number

_MATRIX_KEYS = ("X", "data", "embedding")
_LABEL_KEYS = ("labels", "y")
READABLE = ".csv, .tsv, .txt (also .gz), .parquet, .npy, .npz"
NO_IDS = "none"


@dataclass(frozen=True)
class TableChoice:
    """What the user says of a table; by default the reader decides by its looks."""

    ids: str | None = None  # the column that names the objects; "none": no column does
    header: bool | None = None  # whether the first row holds names
    columns: tuple[str, ...] | None = None  # to take: patterns such as f*, or numbers from 1


AS_IT_LOOKS = TableChoice()


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of a file, and the ids of its rows."""

    names: tuple[str, ...]  # of the columns of values; without a header called after the file
    columns: tuple[np.ndarray, ...]  # one of n values for each name; (n, d) vectors in Parquet
    ids: np.ndarray | None = None  # (n,) names of the objects, if a column holds them
    id_name: str | None = None  # of that column; empty where it has none
    header: bool = True  # whether the first row holds names
    id_place: int | None = None  # the number of the column of ids in the file, from 0
    left_out: tuple[str, ...] = ()  # other columns that hold ids, and are no values

    def matrix(self, what: str) -> np.ndarray:
        """All columns side by side, objects × features; words are refused."""
        if not self.columns:
            raise ValueError(
                f"{what} must have a column of numbers, got ids only ({self.id_name!r})."
            )
        for name, column in zip(self.names, self.columns, strict=True):
            if column.dtype.kind not in "fiub":
                words = next((str(v) for v in column if not is_number(str(v))), column[0])
                raise ValueError(
                    f"{what} must be a table of numbers, got {str(words)!r} in column {name!r}; "
                    "leave names and classes out of the data file, or name the columns to take."
                )
        return np.column_stack(self.columns)


def read_table(
    path: str | os.PathLike[str],
    what: str | None = None,
    choice: TableChoice = AS_IT_LOOKS,
    *,
    gaps: bool = False,
) -> Table:
    """Read a text or Parquet file; ``what`` opens the sentences of errors, else the file's name.

    * The first row is a header if it holds a name: a word over numbers, or words that do not come
      again below them. A row of numbers is a header only if it reads 0, 1, 2, …
    * Ids are the column without a name that pandas and R write first, one called id or index,
      one with another name for ids (barcode, sample_id) or a first column of words, if no value
      comes twice. The first such column gives the ids; the others are left out.
    * A separator other than the file's usual one (comma, semicolon, tab) is recognised.

    ``choice`` decides otherwise. With ``gaps`` cells may be empty: NaN, or an empty text.
    """
    path, kind = _existing(path)
    what = path.name if what is None else what
    if kind == ".parquet":
        names, columns, index = _read_parquet(path, what, gaps)
        header = True
    else:
        names, columns, header = read_text(
            path, SEPARATORS[kind], what, header=choice.header, gaps=gaps
        )
        index = []
    places = _places_of_ids(names, columns, index, choice, what)
    chosen = _chosen(names, places, choice, what)
    return Table(
        names=tuple(names[place] for place in chosen),
        columns=tuple(columns[place] for place in chosen),
        ids=columns[places[0]] if places else None,
        id_name=names[places[0]] if places and header else None,
        header=header,
        id_place=places[0] if places else None,
        left_out=tuple(names[place] for place in places[1:] if place not in chosen),
    )


def read_matrix(path: str | os.PathLike[str]) -> np.ndarray:
    """Read a numeric matrix, one object per row; a column of ids is left out."""
    path, kind = _existing(path)
    if kind in (".npy", ".npz"):
        matrix = read_array(path)
    else:
        matrix = read_table(path).matrix(path.name).astype(np.float64)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{path.name} must hold numbers, got dtype {matrix.dtype}.")
    if matrix.ndim < 2 or 0 in matrix.shape:
        raise ValueError(
            f"{path.name} must hold a matrix with one object per row, got shape {matrix.shape}."
        )
    return matrix.reshape(len(matrix), -1)


def read_array(path: str | os.PathLike[str]) -> np.ndarray:
    """Read the array of an ``.npy`` file, or the one of an ``.npz`` file that holds the objects."""
    path = Path(path)
    try:
        if path.suffix == ".npy":
            return np.array(stored_npy(path, path.name).open())
        there = [member.removesuffix(".npy") for member in members(path, path.name)]
        names = [name for name in _MATRIX_KEYS if name in there] or there
        if names and (names[0] in _MATRIX_KEYS or len(there) == 1):
            return np.array(stored_member(path, f"{names[0]}.npy", path.name).open())
    except ValueError as error:
        raise _not_numpy(path, error) from error
    got = ", ".join(there) or "nothing"
    raise ValueError(f"{path.name} must hold one array or one named X, got {got}.")


def read_labels(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read partitions by name: columns of a table, a vector or rows of .npy, arrays of .npz."""
    path, kind = _existing(path)
    if kind in (".npy", ".npz"):
        try:
            arrays = (
                read_npz(path, path.name)
                if kind == ".npz"
                else {path.stem: np.array(stored_npy(path, path.name).open())}
            )
        except ValueError as error:
            raise _not_numpy(path, error) from error
        found = {name: array for name, array in arrays.items() if array.ndim == 1}
        tables = _LABEL_KEYS if kind == ".npz" else (path.stem,)
        if not found and (both := [name for name in tables if name in arrays]):
            found = _rows(both[0], arrays[both[0]], path.name)
    else:
        table = read_table(path)
        found = dict(zip(table.names, table.columns, strict=True))
    if not found:
        raise ValueError(f"{path.name} must hold at least one label vector, got none.")
    return found


def is_table(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is a table with columns, not a NumPy file."""
    return _existing(path)[1] not in (".npy", ".npz")


def _places_of_ids(
    names: list[str],
    columns: list[np.ndarray],
    index: list[str],
    choice: TableChoice,
    what: str,
) -> list[int]:
    """The columns that hold ids, the one that gives them first; ``index`` are pandas' own."""
    if choice.ids is not None:
        if choice.ids == NO_IDS and NO_IDS not in names:
            return []
        found = _matching(choice.ids, names)
        if len(found) != 1:
            raise ValueError(
                f"ids must name one column of {what}, got {choice.ids!r}; it has "
                f"{quoted(filter(None, names))}, and {NO_IDS!r} says that no column holds ids."
            )
        return found
    places = [
        place
        for place, name in enumerate(names)
        if name in index or is_index_name(name, first=place == 0 and len(names) > 1)
    ]
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if len(places) == len(names) - 1:  # what is left over is data
            break
        if place not in places and column.ndim == 1:
            named = may_name_ids(name)
            places += [place] * ((named or place == 0) and _are_ids(column, named=named))
    return places


def _chosen(names: list[str], ids: list[int], choice: TableChoice, what: str) -> list[int]:
    """The columns of values: all but ids, or those that were named."""
    if choice.columns is None:
        return [place for place in range(len(names)) if place not in ids]
    chosen: list[int] = []
    for pattern in choice.columns:
        found = [place for place in _matching(pattern, names) if place not in chosen]
        if not _matching(pattern, names):
            raise ValueError(
                f"columns must name columns of {what}, got {pattern!r}; it has "
                f"{quoted(filter(None, names))}{meant(pattern, names)}"
            )
        # A pattern such as * means values; a name means what it says.
        chosen += found if pattern in names else [place for place in found if place not in ids]
    return chosen


def matching_columns(
    path: str | os.PathLike[str], patterns: Sequence[str], header: bool | None
) -> list[str]:
    """Those of some names or patterns that a file has a column for."""
    if not is_table(path):
        return []
    names = list(read_table(path, None, TableChoice(NO_IDS, header), gaps=True).names)
    return [pattern for pattern in patterns if _matching(pattern, names)]


def _matching(pattern: str, names: list[str]) -> list[int]:
    if pattern in names:
        return [names.index(pattern)]
    if pattern.isdecimal() and 1 <= int(pattern) <= len(names):
        return [int(pattern) - 1]
    return [place for place, name in enumerate(names) if fnmatchcase(name, pattern)]


def _are_ids(column: np.ndarray, *, named: bool) -> bool:
    """Whether values call objects by name: each comes once, and all are words unless so named."""
    if column.dtype.kind not in ("iuU" if named else "U") or len(column) < 2:
        return False
    # A column of numbers with a typo in it holds a word too, but not only words.
    words = named or not any(is_number(cell) for cell in column.tolist())
    return words and len(np.unique(column)) == len(column)


def _existing(path: str | os.PathLike[str]) -> tuple[Path, str]:
    path = Path(path)
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind not in {*SEPARATORS, ".parquet", ".npy", ".npz"}:
        raise ValueError(f"path must end in one of {READABLE}, got {path.name!r}.")
    check_regular(path, path.name)
    if not path.is_file():
        raise FileNotFoundError(f"path must be an existing file, got {str(path)!r}.")
    return path, kind


def _not_numpy(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path.name} must be a NumPy file without Python objects: {error}")


def _rows(name: str, array: np.ndarray, what: str) -> dict[str, np.ndarray]:
    if array.ndim == 2 and 0 not in array.shape:
        return {f"{name}[{i}]": row for i, row in enumerate(array)}
    raise ValueError(f"{what} must hold a vector or an (M, n) array, got shape {array.shape}.")


def _read_parquet(
    path: Path, what: str, gaps: bool
) -> tuple[list[str], list[np.ndarray], list[str]]:
    """Names, columns (vectors become a matrix), and which of them pandas wrote as its index."""
    try:
        found, index = _parquet_columns(path)
    except ImportError:
        raise ImportError(
            f"{what} needs the package pyarrow or polars, and neither is installed. "
            "Install one with: pip install pyarrow."
        ) from None
    except OSError:
        raise
    except Exception as error:  # either library's own kinds
        raise ValueError(
            f"{what} must be a readable Parquet table, got in {path.name}: {error}."
        ) from None
    for name, (_, missing) in found.items():
        if missing and not gaps:
            raise ValueError(f"{what} must have no empty cells, got some in column {name!r}.")
    return list(found), [_as_column(values) for values, _ in found.values()], index


def pandas_index(schema: Any) -> list[str]:
    """The columns of a Parquet file that pandas wrote as its index."""
    told = schema.pandas_metadata or {}
    return [name for name in told.get("index_columns", ()) if isinstance(name, str)]


def _parquet_columns(path: Path) -> tuple[dict[str, tuple[np.ndarray, int]], list[str]]:
    """By name the values of a column and how many are missing; and the columns of the index."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        import polars as pl

        series = pl.read_parquet(path).get_columns()
        return {s.name: (s.to_numpy(), s.null_count()) for s in series}, []
    with pq.ParquetFile(path) as file:
        table = file.read()
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns[name] = (column.to_numpy(), column.null_count)
    return columns, pandas_index(table.schema)


def _as_column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        return values
    vectors = len(values) and isinstance(values[0], np.ndarray)
    if vectors:
        return np.stack(list(values))
    return np.array(["" if value is None else str(value) for value in values], dtype=np.str_)
