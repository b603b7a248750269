"""One .npz file with one run or many."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._files.arrays import Stored, members, read_json, stored_member, write_npz
from wellsep._files.maps import Version
from wellsep._files.replace import read_one_version, replace_file
from wellsep._text.sentences import quoted
from wellsep.distances.matrix import Distances
from wellsep.runs.run import Run
from wellsep.runs.space_files import as_stored_distances, file_of

_ARRAYS = ("labels", "embedding", "distances", "ids")
_TEXTS = ("name", "params", "metadata", "space")


def read_archive(path: Path) -> list[Run]:
    """All runs of an archive.

    One run: entries ``embedding``, ``labels``, ``ids``, ``name``, ``params``, ``metadata``. Many:
    the same after the name and a slash, ``a/embedding``; ``ids`` alone then holds for all.
    """
    return read_one_version(partial(Version.of, path), partial(_read_all, path), str(path))


def _read_all(path: Path) -> list[Run]:
    grouped = _grouped(path)
    shared = {}
    if len(grouped) > 1 and set(grouped.get("", ())) == {"ids"}:
        shared = grouped.pop("")
    return [_read_one(path, prefix, {**shared, **found}) for prefix, found in grouped.items()]


def _grouped(path: Path) -> dict[str, dict[str, str]]:
    """Prefix → field → member of the archive."""
    what = f"run {path.stem!r}"
    found = members(path, what)
    grouped: dict[str, dict[str, str]] = {}
    for member in found:
        prefix, _, field = member.removesuffix(".npy").rpartition("/")
        if field in _ARRAYS or field in _TEXTS:
            grouped.setdefault(prefix, {})[field] = member
    if not grouped:
        raise ValueError(
            f"{what} must have an entry 'embedding', 'labels' or '<name>/labels' in {path}, got "
            f"{quoted(found)}."
        )
    return grouped


def _read_one(path: Path, prefix: str, found: dict[str, str]) -> Run:
    name = prefix or path.stem
    if "name" in found:
        name = _text(path, found["name"], f"name of run {name!r}")
    arrays: dict[str, Stored] = {
        kind: stored_member(path, found[kind], f"{kind} of run {name!r}")
        for kind in _ARRAYS
        if kind in found
    }
    if "distances" in arrays:
        if "embedding" in arrays:
            raise ValueError(f"run {name!r} must have coordinates or distances, got both.")
        what = f"distances of run {name!r}"
        arrays["embedding"] = as_stored_distances(arrays.pop("distances"), what)
    params, metadata = (
        read_json(_text(path, found[k], f"{k} of run {name!r}"), f"{k} of run {name!r}")
        if k in found
        else {}
        for k in ("params", "metadata")
    )
    space = _text(path, found["space"], f"space of run {name!r}") if "space" in found else None
    return Run(name, **arrays, params=params, metadata=metadata, space=space)


def _text(path: Path, member: str, what: str) -> str:
    array = stored_member(path, member, what).open()
    if array.dtype.kind != "U" or array.size != 1:
        raise TypeError(f"{what} must be one text, got {array.dtype} of shape {array.shape}.")
    return str(array.reshape(-1)[0])


def write_archive(path: Path, runs: Iterable[Run], *, overwrite: bool = False) -> None:
    """Write runs to one .npz, uncompressed so that spaces can be memory-mapped."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            errno.EEXIST, f"path must be new, got the file {path}; pass overwrite=True."
        )
    arrays = (
        (f"{place}/{field}", array)
        for place, run in enumerate(runs)
        for field, array in _fields(run)
    )
    with replace_file(path) as temporary:
        write_npz(temporary, arrays)


def _field(name: str, kind: str, value: Any) -> tuple[str, np.ndarray]:
    if file_of(value).endswith(".npz"):
        raise ValueError(
            f"run {name!r} must have a dense space to be written to one .npz, got a sparse one; "
            "save the runs to a folder."
        )
    if isinstance(value, Distances):
        return "distances", np.ascontiguousarray(value.values if value.is_whole else value)
    return kind, np.ascontiguousarray(value)


def _fields(run: Run) -> list[tuple[str, np.ndarray]]:
    fields: list[tuple[str, Any]] = [("name", run.name)]
    for kind in ("params", "metadata"):
        if getattr(run, kind):
            fields.append((kind, json.dumps(getattr(run, kind), allow_nan=False)))
    if run.space is not None:
        fields.append(("space", run.space))
    for kind in _ARRAYS:
        part = None if kind == "distances" else run._part(kind)
        if part is not None:
            fields.append(_field(run.name, kind, part.raw()))
    return [(field, np.asarray(value)) for field, value in fields]
