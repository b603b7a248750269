"""One .npz file with one run or many."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._files.arrays import members, read_json, stored_member, write_npz
from wellsep._files.maps import Version
from wellsep._files.replace import read_one_version, replace_file
from wellsep._text.sentences import quoted
from wellsep.distances.matrix import Distances
from wellsep.runs.run import FACTS, KINDS, Run
from wellsep.runs.space_files import as_stored_distances, contiguous, file_of

_ARRAYS = ("labels", "embedding", "distances", "ids")


def read_archive(path: Path) -> list[Run]:
    """All runs of an archive; in one of several, ``ids`` without a name are those of all."""
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
        if field in (*_ARRAYS, "name", *FACTS):
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
    called = {field: f"{field} of run {name!r}" for field in found}
    arrays: dict[str, Any] = {
        kind: stored_member(path, found[kind], called[kind]) for kind in _ARRAYS if kind in found
    }
    if "distances" in arrays:
        if "embedding" in arrays:
            raise ValueError(f"run {name!r} must have coordinates or distances, got both.")
        arrays["embedding"] = as_stored_distances(arrays.pop("distances"), called["distances"])
    facts: dict[str, Any] = {
        fact: _text(path, found[fact], called[fact]) for fact in FACTS if fact in found
    }
    for fact in ("params", "metadata"):
        if fact in facts:
            facts[fact] = read_json(facts[fact], called[fact])
    return Run(name, **arrays, **facts)


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


def _fields(run: Run) -> Iterator[tuple[str, np.ndarray]]:
    yield "name", np.asarray(run.name)
    for kind in ("params", "metadata"):
        if getattr(run, kind):
            yield kind, np.asarray(json.dumps(getattr(run, kind), allow_nan=False))
    if run.space is not None:
        yield "space", np.asarray(run.space)
    for kind in KINDS:
        part = run._part(kind)
        if part is None:
            continue
        value = part.raw()
        if file_of(value).endswith(".npz"):
            raise ValueError(
                f"run {run.name!r} must have a dense space to be written to one .npz, got a sparse "
                "one; save the runs to a folder."
            )
        yield "distances" if isinstance(value, Distances) else kind, contiguous(value)
