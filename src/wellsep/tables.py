"""The one reader and writer of tables: CSV, TSV, Parquet, and NumPy files that hold one."""

from __future__ import annotations

import csv
import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._files import (
    members,
    read_npz,
    stored_member,
    stored_npy,
)
from wellsep._reading import check_regular
from wellsep.table_writer import is_number, unguarded

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}  # None: any blanks
_MATRIX_KEYS = ("X", "data", "embedding")
_LABEL_KEYS = ("labels", "y")
READABLE = ".csv, .tsv, .txt (also .gz), .parquet, .npy, .npz"
# What pandas, polars and R call the names of rows; a column of such a name holds ids.
_INDEX_NAMES = {"id", "ids", "index", "unnamed: 0", "__index_level_0__"}
# Names that ids often have: they hold ids if no value comes twice.
_ID_LIKE = re.compile(r"(?i:(.*[_ .-])?(ids?|barcodes?|uuid)|row[_ .]?names?)|.*[a-z](ID|Id)s?")
_MISSING = {"na", "n/a", "null", "none", "?", "-"}  # neither a name nor a number
_SNIFFED = 20  # lines read to find the separator


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of a file, and the ids of its rows.

    Attributes
    ----------
    names : tuple of str
        The columns of values. Without a header they are called after the file.
    columns : tuple of ndarray
        One of n values, or (n, d) where Parquet holds vectors, for each name.
    ids : ndarray of shape (n,) or None
        Names of the objects, if a column holds them.
    id_name : str or None
        The name of that column; empty where it has none.
    header : bool
        Whether the first row holds names.
    separator : str or None
        Between cells; None for blanks, and in Parquet.
    """

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    ids: np.ndarray | None = None
    id_name: str | None = None
    header: bool = True
    separator: str | None = None

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
                    "leave names and classes out of the data file."
                )
        return np.column_stack(self.columns)


def read_table(path: str | os.PathLike[str], what: str | None = None) -> Table:
    """Read a text or Parquet file; ``what`` opens the sentences of errors, else the file's name.

    * The first row is a header if it holds a name: a word over numbers, or words that do not come
      again below them. A row of numbers is a header only if it reads 0, 1, 2, …
    * Ids are the column without a name that pandas and R write first, one called id or index,
      one with another name for ids (barcode, sample_id) or of words, if no value comes twice.
    * A separator other than the file's usual one (comma, semicolon, tab) is recognised.
    """
    path, kind = _existing(path)
    what = path.name if what is None else what
    if kind == ".parquet":
        names, columns = _read_parquet(path, what)
        header, separator = True, None
    else:
        stem = path.name.split(".")[0]
        floats = _read_floats(path, _SEPARATORS[kind])
        if floats is not None:
            first, matrix, header, separator = floats
            names, columns = _names_of(first, stem, what, header), list(matrix.T)
        else:
            rows, separator = _read_rows(path, _SEPARATORS[kind], what)
            names, columns, header = _columns_of(rows, stem, what)
    place = _place_of_ids(names, columns)
    if place is None:
        return Table(tuple(names), tuple(columns), None, None, header, separator)
    id_name, ids = names.pop(place), columns.pop(place)
    return Table(tuple(names), tuple(columns), ids, id_name if header else None, header, separator)


def read_matrix(path: str | os.PathLike[str], *, key: str | None = None) -> np.ndarray:
    """Read a numeric matrix, one object per row; a column of ids is left out.

    A text file may have a header. An ``.npz`` file must hold one array, or one named ``X``,
    ``data`` or ``embedding``, or the one that ``key`` names. Nothing is unpickled.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = path.write_text("width,height\\n1,2\\n3,4\\n")
    >>> read_matrix(path)
    array([[1., 2.],
           [3., 4.]])
    """
    path, kind = _existing(path)
    if kind in (".npy", ".npz"):
        matrix = read_array(path, key=key)
    else:
        matrix = read_table(path).matrix(path.name).astype(np.float64)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{path.name} must hold numbers, got dtype {matrix.dtype}.")
    if matrix.ndim < 2:
        raise ValueError(
            f"{path.name} must hold a matrix with one object per row, got shape {matrix.shape}."
        )
    return matrix.reshape(len(matrix), -1)


def read_array(path: str | os.PathLike[str], *, key: str | None = None) -> np.ndarray:
    """Read the array of an ``.npy`` file, or the one of an ``.npz`` file that holds the objects."""
    path = Path(path)
    try:
        if path.suffix == ".npy":
            return np.array(stored_npy(path, path.name).open())
        there = [member.removesuffix(".npy") for member in members(path, path.name)]
        names = [key] if key is not None else [name for name in _MATRIX_KEYS if name in there]
        if not names and len(there) == 1:
            names = there
        if names and names[0] in there:
            return np.array(stored_member(path, f"{names[0]}.npy", path.name).open())
    except ValueError as error:
        raise _not_numpy(path, error) from error
    wanted = "one array or one named X" if key is None else f"an array named {key}"
    raise ValueError(f"{path.name} must hold {wanted}, got {', '.join(there) or 'nothing'}.")


def read_labels(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read one or more partitions, by name.

    Each column of a text or Parquet file but that of ids is a partition named by its header; an
    ``.npy`` file holds one vector or an (M, n) array; an ``.npz`` file one array per partition.
    Labels may be integers or words.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,k2,k3\\n101,0,a\\n102,0,b\\n103,1,b\\n")
    >>> read_labels(path)
    {'k2': array([0, 0, 1]), 'k3': array(['a', 'b', 'b'], dtype='<U1')}
    """
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
            found = _rows(both[0], arrays[both[0]])
    else:
        table = read_table(path)
        found = dict(zip(table.names, table.columns, strict=True))
    if not found:
        raise ValueError(f"{path.name} must hold at least one label vector, got none.")
    return found


def is_index_name(name: str, first: bool) -> bool:
    """Tell whether a column holds ids by its name alone: id, index, or none in the first place."""
    return name.strip().casefold() in _INDEX_NAMES or (first and not name.strip())


def may_name_ids(name: str) -> bool:
    """Tell whether a column holds ids by its name if no value comes twice: barcode, sample_id."""
    return _ID_LIKE.fullmatch(name.strip()) is not None


def _place_of_ids(names: list[str], columns: list[np.ndarray]) -> int | None:
    for place, name in enumerate(names):
        if is_index_name(name, first=place == 0 and len(names) > 1):
            return place
    if len(columns) < 2:  # what is left over is data
        return None
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if column.ndim == 1 and _are_ids(column, named=may_name_ids(name)):
            return place
    return None


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
    if kind not in {*_SEPARATORS, ".parquet", ".npy", ".npz"}:
        raise ValueError(f"path must end in one of {READABLE}, got {path.name!r}.")
    check_regular(path, path.name)
    if not path.is_file():
        raise FileNotFoundError(f"path must be an existing file, got {str(path)!r}.")
    return path, kind


def _not_numpy(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path.name} must be a NumPy file without Python objects: {error}")


def _rows(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.ndim == 2:
        return {f"{name}[{i}]": row for i, row in enumerate(array)}
    raise ValueError(f"{name} must be a vector or an (M, n) array, got shape {array.shape}.")


def _read_floats(
    path: Path, usual: str | None
) -> tuple[list[str], np.ndarray, bool, str | None] | None:
    """First row, numbers, whether that row is a header, separator; None for any other table.

    NumPy's own reader is several times as fast, and refuses what is not a number. It is asked
    where the first lines show that no column holds integers.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = list(islice(stream, _SNIFFED))
        if not lines or any('"' in line or not line.strip() for line in lines):
            return None
        separator = _separator_of(lines, usual)
        rows = _split(lines, separator)
        header = len(rows) > 1 and _is_header(rows[0], rows[1:])
        cells = rows[header:]
        if len({len(row) for row in rows}) > 1 or not all(
            map(_has_fraction, zip(*cells, strict=True))
        ):
            return None
        matrix = np.loadtxt(
            path, comments=None, delimiter=separator, skiprows=int(header),
            encoding="utf-8-sig", ndmin=2,
        )  # fmt: skip
    except (ValueError, csv.Error):
        return None
    return (rows[0], matrix, header, separator) if matrix.shape[1] == len(rows[0]) else None


def _has_fraction(cells: tuple[str, ...]) -> bool:
    return any("." in cell for cell in cells)


def _read_rows(path: Path, usual: str | None, what: str) -> tuple[list[list[str]], str | None]:
    """All rows of a text file, and the separator of their cells."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in stream if line.strip("\r\n")]
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8 text, got other bytes in {path.name}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{what} must be whole, got a damaged {path.name}: {error}.") from None
    except MemoryError:
        raise OSError(errno.ENOMEM, f"{what} does not fit the memory ({path.name}).") from None
    if not lines:
        raise ValueError(f"{what} must not be empty, got nothing in {path.name}.")
    try:
        separator = _separator_of(lines[:_SNIFFED], usual)
        rows = _split(lines, separator)
    except csv.Error as error:
        raise ValueError(f"{what} must be a table, got in {path.name}: {error}.") from None
    if len(rows) > 1 and len(rows[0]) == len(rows[1]) - 1 and not all(map(is_number, rows[0])):
        rows[0].insert(0, "")  # R names the columns only, not the one of row names
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(
                f"{what} must have {width} cell{'s' * (width > 1)} in every row, got {len(row)} "
                f"in row {number} of {path.name}."
            )
    return rows, separator


def _split(lines: Iterable[str], separator: str | None) -> list[list[str]]:
    if separator is None:
        rows = [line.split() for line in lines if line.strip()]
        return [[cell.strip('"') for cell in row] for row in rows]
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    rows[:1] = [[unguarded(cell.strip()) for cell in row] for row in rows[:1]]  # perhaps names
    return rows


def _separator_of(lines: list[str], usual: str | None) -> str | None:
    """The usual separator, unless another one alone cuts all lines into equally many cells."""
    others = [separator for separator in ("\t", ";", ",") if separator != usual]
    for separator in [usual, *others] if usual else others:
        widths = {len(row) for row in _split(lines, separator)}
        # R's header has a cell less.
        if max(widths) > 1 and len(widths - {max(widths) - 1}) == 1:
            return separator
    return usual


def _columns_of(
    rows: list[list[str]], stem: str, what: str
) -> tuple[list[str], list[np.ndarray], bool]:
    header = len(rows) > 1 and _is_header(rows[0], rows[1:])
    names = _names_of(rows[0], stem, what, header)
    columns = [
        _parse(name, cells, what)
        for name, cells in zip(names, zip(*rows[header:], strict=True), strict=True)
    ]
    return names, columns, header


def _names_of(first: list[str], stem: str, what: str, header: bool) -> list[str]:
    if not header:
        return [stem] if len(first) == 1 else [f"{stem}[{j}]" for j in range(len(first))]
    seen: set[str] = set()
    for name in first:
        if name in seen:
            raise ValueError(f"{what} must name each column once, got {name!r} twice.")
        seen.add(name)
    return list(first)


def _is_header(first: list[str], below: list[list[str]]) -> bool:
    numbers = [cell for cell in first if is_number(cell)]
    counted = numbers == [str(i) for i in range(len(numbers))]
    if len(numbers) == len(first):
        return counted and len(first) > 1
    named = [(j, cell) for j, cell in enumerate(first) if not is_number(cell)]
    named = [(j, cell) for j, cell in named if cell.casefold() not in _MISSING]
    if any(is_number(below[0][j]) for j, _ in named):  # a word over numbers
        return True
    if numbers:
        return any(is_index_name(cell, j == 0) for j, cell in named) or (
            counted and len(numbers) > 1
        )
    return bool(named) and all(cell not in {row[j].strip() for row in below} for j, cell in named)


def _parse(name: str, cells: tuple[str, ...], what: str) -> np.ndarray:
    for kind, number in ((np.int64, int), (np.float64, float)):
        try:
            column = np.array(list(map(number, cells)), dtype=kind)
        except (ValueError, OverflowError):
            continue
        if "_" in "".join(cells):  # 1_2 is a number to Python alone
            break
        return column
    words = [cell.strip() for cell in cells]
    if "" in words:
        raise ValueError(
            f"{what} must have no empty cells, got one in column {name!r}, row "
            f"{words.index('') + 1}; fill it in or leave the object out (-1 labels noise)."
        )
    return np.array([unguarded(word) for word in words], dtype=np.str_)


def _read_parquet(path: Path, what: str) -> tuple[list[str], list[np.ndarray]]:
    """Names and columns; a column of equally long lists (vectors) becomes a matrix."""
    try:
        found = _parquet_columns(path)
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
        if missing:
            raise ValueError(f"{what} must have no empty cells, got some in column {name!r}.")
    return list(found), [_as_column(values) for values, _ in found.values()]


def _parquet_columns(path: Path) -> dict[str, tuple[np.ndarray, int]]:
    """By name the values of a column, and how many are missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        import polars as pl

        series = pl.read_parquet(path).get_columns()
        return {s.name: (s.to_numpy(), s.null_count()) for s in series}
    with pq.ParquetFile(path) as file:
        table = file.read()
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns[name] = (column.to_numpy(), column.null_count)
    return columns


def _as_column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        return values
    vectors = len(values) and isinstance(values[0], np.ndarray)
    return np.stack(list(values)) if vectors else values.astype(np.str_)
