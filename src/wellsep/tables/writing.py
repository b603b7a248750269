"""The one writer of tables: CSV and TSV without formulas, Parquet, and arrays as .npy."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._files.arrays import write_npy
from wellsep._files.replace import replace_file

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets compute
# Steer a terminal, or turn the direction of text; tabs and ends of lines are quoted as they are.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]]) -> None:
    """Write named columns as .csv, .tsv or .parquet; the file appears whole or not at all."""
    path = Path(path)
    if path.suffix == ".parquet":
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                f"Writing {path.name} needs the package pyarrow, which is not installed. "
                "Install it with: pip install pyarrow. Or write a .csv file."
            ) from None
        with replace_file(path) as temporary:
            pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), temporary)
        return
    separator = _SEPARATORS.get(path.suffix)
    if separator is None:
        raise ValueError(f"path must end in .csv, .tsv or .parquet, got {path.name!r}.")
    with (
        replace_file(path) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
        writer.writerow([guarded(name) for name in columns])
        writer.writerows(map(guarded, row) for row in zip(*columns.values(), strict=True))


def guarded(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe before it."""
    if not isinstance(cell, str):
        return cell
    text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), cell)
    return f"'{text}" if text.startswith(FORMULAS) and not is_number(text) else text


def unguarded(cell: str) -> str:
    """A cell as it was before `guarded`."""
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(FORMULAS) else cell


def write_array(path: str | os.PathLike[str], array: Any) -> None:
    """Write one array as .npy; the file appears whole or not at all."""
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"path must end in .npy, got {path.name!r}.")
    with replace_file(path) as temporary, open(temporary, "wb") as stream:
        write_npy(stream, np.asarray(array))


def is_number(cell: str) -> bool:
    """Tell whether a cell reads as a number, in Python's spelling without underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
