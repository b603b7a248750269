"""Text tables: separator, header and cells of CSV, TSV and blank-separated files."""

from __future__ import annotations

import csv
import errno
import gzip
import re
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from wellsep.tables.writing import is_number, unguarded

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}  # None: any blanks
# What pandas, polars and R call the names of rows; a column of such a name holds ids.
_INDEX_NAMES = {"id", "ids", "index", "unnamed: 0", "__index_level_0__"}
MISSING = {"na", "n/a", "nan", "null", "none", "?", "-"}  # neither a name nor a number
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_SNIFFED = 20  # lines read to find the separator

Columns = tuple[list[str], list[np.ndarray], bool]


def read_text(
    path: Path, usual: str | None, what: str, *, header: bool | None, gaps: bool
) -> Columns:
    """Names, columns, and whether the first row holds names; ``header`` decides unless None."""
    stem = path.name.split(".")[0]
    floats = _read_floats(path, usual, header)
    if floats is not None:
        first, matrix, headed = floats
        return _names_of(first, stem, what, headed), list(matrix.T), headed
    return _columns_of(_read_rows(path, usual, what, header), stem, what, header, gaps)


def is_index_name(name: str, first: bool) -> bool:
    """Tell whether a column holds ids by its name alone: id, index, or none in the first place."""
    return name.strip().casefold() in _INDEX_NAMES or (first and not name.strip())


def _read_floats(
    path: Path, usual: str | None, header: bool | None
) -> tuple[list[str], np.ndarray, bool] | None:
    """First row, numbers, whether that row is a header; None for any other table."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = list(islice(stream, _SNIFFED))
        if not lines or any('"' in line or not line.strip() for line in lines):
            return None
        separator = _separator_of(lines, usual)
        rows = _split(lines, separator)
        if len({len(row) for row in rows}) > 1:
            return None
        header = _has_header(rows, header)
        columns = zip(*rows[header:], strict=True)
        if not all(any("." in cell for cell in column) for column in columns):
            return None
        matrix = np.loadtxt(
            path, comments=None, delimiter=separator, skiprows=int(header),
            encoding="utf-8-sig", ndmin=2,
        )  # fmt: skip
    except (ValueError, csv.Error):
        return None
    return (rows[0], matrix, header) if matrix.shape[1] == len(rows[0]) else None


def _read_rows(path: Path, usual: str | None, what: str, header: bool | None) -> list[list[str]]:
    """All rows of a text file."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in stream if line.strip("\r\n")]
    except UnicodeDecodeError:
        raise ValueError(
            f"{what} must be UTF-8 text, got other bytes in {path.name}; convert a file that Excel "
            "or R wrote as Latin-1 with: iconv -f latin1 -t utf-8 OLD.csv > NEW.csv"
        ) from None
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
    if separator == ";":
        # Excel writes numbers with a decimal comma between semicolons.
        comma = _DECIMAL_COMMA.fullmatch
        rows = [[c.replace(",", ".") if comma(c.strip()) else c for c in row] for row in rows]
    if header is not False and _is_short(rows):
        rows[0].insert(0, "")  # R names the columns only, not the one of row names
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(
                f"{what} must have {width} cell{'s' * (width > 1)} in every row, got {len(row)} "
                f"in row {number} of {path.name}."
            )
    return rows


def _split(lines: Iterable[str], separator: str | None) -> list[list[str]]:
    if separator is None:
        rows = [line.split() for line in lines if line.strip()]
        return [[cell.strip('"') for cell in row] for row in rows]
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    rows[:1] = [[unguarded(cell.strip()) for cell in row] for row in rows[:1]]  # perhaps names
    return rows


def _separator_of(lines: list[str], usual: str | None) -> str | None:
    """The usual separator, unless another one alone cuts all lines into equally many cells."""
    if all(";" in line for line in lines):
        commas = [c.strip() for row in _split(lines, ";") for c in row if "," in c]
        if commas and all(map(_DECIMAL_COMMA.fullmatch, commas)):
            return ";"
    others = [separator for separator in ("\t", ";", ",") if separator != usual]
    for separator in [usual, *others] if usual else others:
        widths = {len(row) for row in _split(lines, separator)}
        # R's header has a cell less.
        if max(widths) > 1 and len(widths - {max(widths) - 1}) == 1:
            return separator
    return usual


def _columns_of(
    rows: list[list[str]], stem: str, what: str, header: bool | None, gaps: bool
) -> Columns:
    if header is not False and len(rows) == 1 and not any(map(is_number, rows[0])):
        raise ValueError(f"{what} must have rows below its header, got {', '.join(rows[0])} alone.")
    header = _has_header(rows, header)
    names = _names_of(rows[0], stem, what, header)
    columns = [
        _parse(name, cells, what, gaps)
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


def _has_header(rows: list[list[str]], decided: bool | None) -> bool:
    if decided is not None:
        return decided
    return len(rows) > 1 and _is_header(rows[0], rows[1:])


def _is_short(rows: list[list[str]]) -> bool:
    """Whether the first row has a cell less than the next, as R's header has."""
    if len(rows) < 2 or len(rows[0]) != len(rows[1]) - 1:
        return False
    return not all(map(is_number, rows[0]))


def _is_header(first: list[str], below: list[list[str]]) -> bool:
    numbers = [cell for cell in first if is_number(cell)]
    counted = numbers == [str(i) for i in range(len(numbers))]
    if len(numbers) == len(first):
        return counted and len(first) > 1
    named = [(j, cell) for j, cell in enumerate(first) if not is_number(cell)]
    named = [(j, cell) for j, cell in named if cell.casefold() not in MISSING]
    if any(is_number(below[0][j]) for j, _ in named):  # a word over numbers
        return True
    if numbers:
        return any(is_index_name(cell, j == 0) for j, cell in named) or (
            counted and len(numbers) > 1
        )
    return bool(named) and all(cell not in {row[j].strip() for row in below} for j, cell in named)


def _parse(name: str, cells: tuple[str, ...], what: str, gaps: bool) -> np.ndarray:
    for kind, number in ((np.int64, int), (np.float64, float)):
        try:
            column = np.array(list(map(number, cells)), dtype=kind)
        except (ValueError, OverflowError):
            continue
        if "_" in "".join(cells):  # 1_2 is a number to Python alone
            break
        return column
    words = [cell.strip() for cell in cells]
    if "" in words and not gaps:
        raise ValueError(
            f"{what} must have no empty cells, got one in column {name!r}, row "
            f"{words.index('') + 1}; fill it in or leave the object out (-1 labels noise)."
        )
    return np.array([unguarded(word) for word in words], dtype=np.str_)
