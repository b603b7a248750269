"""Reads and writes the files of the command line: matrices, label columns, tables."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": None}
_MATRIX_KEYS = ("X", "data", "embedding")
_LABEL_KEYS = ("labels", "y")
READABLE = ".csv, .tsv, .txt (also .gz), .parquet, .npy, .npz"


def read_matrix(path: str | os.PathLike[str], *, key: str | None = None) -> np.ndarray:
    """Read a numeric matrix, one object per row.

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
    if kind == ".npy":
        matrix = _load_numpy(path)
    elif kind == ".npz":
        matrix = _pick(path, _load_numpy(path), key, _MATRIX_KEYS)
    else:
        columns = _read_columns(path, kind)
        words = [name for name, column in columns.items() if column.dtype.kind not in "fiub"]
        if words:
            raise ValueError(
                f"{path.name} must hold numbers only, got words in column {words[0]!r};"
                " leave names and classes out of the data file."
            )
        matrix = np.column_stack([column.astype(np.float64) for column in columns.values()])
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{path.name} must hold numbers, got dtype {matrix.dtype}.")
    if matrix.ndim < 2:
        raise ValueError(
            f"{path.name} must hold a matrix with one object per row, got shape {matrix.shape}."
        )
    return matrix.reshape(len(matrix), -1)


def read_labels(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read one or more partitions, by name.

    Each column of a text or parquet file is a partition named by its header; an ``.npy`` file
    holds one vector or an (M, n) array; an ``.npz`` file one array per partition. Labels may be
    integers or words.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("k2,k3\\n0,a\\n0,b\\n1,c\\n")
    >>> read_labels(path)["k2"]
    array([0, 0, 1])
    """
    path, kind = _existing(path)
    if kind == ".npy":
        found = _rows(path.stem, _load_numpy(path))
    elif kind == ".npz":
        arrays = _load_numpy(path)
        kept = {name: array for name, array in arrays.items() if array.ndim == 1}
        if not kept and (both := [name for name in _LABEL_KEYS if name in arrays]):
            kept = _rows(both[0], arrays[both[0]])
        found = kept
    else:
        found = _read_columns(path, kind)
    if not found:
        raise ValueError(f"{path.name} must hold at least one label vector, got none.")
    return found


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]]) -> None:
    """Write named columns as .csv, .tsv or .parquet; the file appears whole or not at all."""
    path = Path(path)
    if path.suffix == ".parquet":
        parquet = _optional("pyarrow.parquet", path)
        arrow = _optional("pyarrow", path)
        with atomic_path(path) as temporary:
            parquet.write_table(arrow.table({k: list(v) for k, v in columns.items()}), temporary)
        return
    delimiter = _DELIMITERS.get(path.suffix)
    if delimiter is None:
        raise ValueError(f"path must end in .csv, .tsv or .parquet, got {path.name!r}.")
    with (
        atomic_path(path) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_array(path: str | os.PathLike[str], array: Any) -> None:
    """Write one array as .npy; the file appears whole or not at all."""
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"path must end in .npy, got {path.name!r}.")
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.save(stream, np.asarray(array), allow_pickle=False)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8; the file appears whole or not at all."""
    with atomic_path(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary path beside ``path`` that takes its place when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
    )
    os.close(handle)
    try:
        yield temporary
        # mkstemp makes the file private; a result is as readable as any other new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _existing(path: str | os.PathLike[str]) -> tuple[Path, str]:
    path = Path(path)
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind not in {*_DELIMITERS, ".parquet", ".npy", ".npz"}:
        raise ValueError(f"path must end in one of {READABLE}, got {path.name!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"path must be an existing file, got {str(path)!r}.")
    return path, kind


def _load_numpy(path: Path) -> Any:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.lib.npyio.NpzFile):
            with loaded:
                return {name: loaded[name] for name in loaded.files}
        return loaded
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path.name} must be a NumPy file without Python objects: {error}"
        ) from error


def _pick(path: Path, arrays: dict[str, np.ndarray], key: str | None, usual: tuple) -> np.ndarray:
    names = [key] if key is not None else [name for name in usual if name in arrays]
    if not names and len(arrays) == 1:
        names = list(arrays)
    if not names or names[0] not in arrays:
        listed = ", ".join(arrays) or "nothing"
        wanted = key if key is not None else " or ".join(usual)
        raise ValueError(f"{path.name} must hold an array named {wanted}, got {listed}.")
    return arrays[names[0]]


def _rows(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.ndim == 1:
        return {name: array}
    if array.ndim == 2:
        return {f"{name}[{i}]": row for i, row in enumerate(array)}
    raise ValueError(f"{name} must be a vector or an (M, n) array, got shape {array.shape}.")


def _read_columns(path: Path, kind: str) -> dict[str, np.ndarray]:
    return _read_parquet(path) if kind == ".parquet" else _read_text(path, _DELIMITERS[kind])


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    table = _optional("pyarrow.parquet", path).read_table(path)
    columns = {}
    for name in table.column_names:
        if table[name].null_count:
            raise ValueError(f"{path.name} must have no empty cells, got some in column {name!r}.")
        columns[name] = _as_labels(table[name].to_numpy())
    return columns


def _read_text(path: Path, delimiter: str | None) -> dict[str, np.ndarray]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
        if delimiter is None:
            rows = [line.split() for line in stream if line.strip()]
        else:
            rows = [row for row in csv.reader(stream, delimiter=delimiter) if row]
    if not rows:
        raise ValueError(f"{path.name} must not be empty.")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(
                f"{path.name} must have {width} cells in every row, got {len(row)} in row {number}."
            )
    header = _header(rows)
    stem = path.name.split(".")[0]
    if header is None:
        names = [stem] if width == 1 else [f"{stem}[{j}]" for j in range(width)]
    else:
        names, rows = header, rows[1:]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"{path.name} must name each column once, got {min(twice)!r} twice.")
    if not rows:
        raise ValueError(f"{path.name} must have rows below its header, got none.")
    return {
        name: _parse(path, name, [row[j].strip() for row in rows]) for j, name in enumerate(names)
    }


def _header(rows: list[list[str]]) -> list[str] | None:
    """The first row, if it reads as names: words over numbers, or words that never come again."""
    if len(rows) < 2:
        return None
    first = [cell.strip() for cell in rows[0]]
    if any(_is_number(cell) for cell in first):
        return None
    below = [{row[j].strip() for row in rows[1:]} for j in range(len(first))]
    return (
        first if all(name not in cells for name, cells in zip(first, below, strict=True)) else None
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse(path: Path, name: str, cells: list[str]) -> np.ndarray:
    if "" in cells:
        row = cells.index("") + 1
        raise ValueError(
            f"{path.name} must have no empty cells, got one in column {name!r}, row {row}."
        )
    for kind in (np.int64, np.float64):
        try:
            return np.array(cells, dtype=np.str_).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(cells, dtype=np.str_)


def _as_labels(column: np.ndarray) -> np.ndarray:
    return column.astype(np.str_) if column.dtype == object else column


def _optional(module: str, path: Path) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path.name} needs pyarrow to be read or written; pip install pyarrow, or use .csv."
        ) from error
