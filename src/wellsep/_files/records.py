"""Frozen records on disk: a JSON manifest and the parts it names, each array once, never pickle.

A part has a name of its own and the manifest, replaced last and in one step, ties it by its digest:
a killed writer leaves the record that was there before, or none.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from wellsep._checks.values import check_path
from wellsep._files.arrays import (
    digest,
    digest_file,
    read_json,
    read_npz,
    write_npz,
)
from wellsep._files.limits import read_bytes
from wellsep._files.replace import locked, replace_file, write_text
from wellsep._text.sentences import Shown, Views, shown

MANIFEST = "record.json"
FORMAT = 4
_OLDER = ("chosen-k.json",)  # manifests of earlier versions
_PART = re.compile(r"[a-z]+-[0-9a-f]{16}\.[a-z]+")
_PATIENCE = 10.0  # seconds to go on reading a record that is replaced all the time
_KINDS: dict[str, type] = {}
R = TypeVar("R", bound="Record")
Writer = Callable[[Path], None]


class Record(Shown):
    """Base of the frozen dataclasses that pass between the steps of a ranking."""

    __kinds__: ClassVar[dict[str, type]] = _KINDS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KINDS[cls.__name__] = cls

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the record into a folder, and return the folder.

        A record that is there stays until the new one is complete, and is then replaced in one
        step. Other files in the folder are left alone.
        """
        folder = check_path("folder", folder)
        arrays: dict[str, np.ndarray] = {}
        tree = _encode(self, arrays, "record")

        content = {"record": tree}
        write = {"arrays.npz": lambda path: write_npz(path, iter(arrays.items()), compress=True)}
        save_parts(folder, MANIFEST, "record", FORMAT, content, write)
        return folder

    @classmethod
    def load(cls: type[R], folder: str | os.PathLike[str]) -> R:
        """Read a record that `save` wrote."""
        folder = check_path("folder", folder)
        content, arrays = load_parts(folder, MANIFEST, "record", FORMAT, _read_arrays)
        try:
            record = _decode(content["record"], arrays["arrays.npz"])
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{folder / MANIFEST} must be whole, got a damaged part "
                f"({type(error).__name__}: {shown(str(error))}); save the record again."
            ) from None
        if not isinstance(record, cls):
            raise ValueError(f"{folder} must hold a {cls.__name__}, got a {type(record).__name__}.")
        return record._opened(folder)

    def _opened(self: R, folder: Path) -> R:
        """Return the record with what else its class keeps in the folder; by default nothing."""
        return self


class Result(Views, Record):
    """A record that is shown."""


def save_parts(
    folder: Path,
    manifest: str,
    kind: str,
    version: int,
    content: Mapping[str, Any],
    parts: Mapping[str, Writer],
) -> None:
    """Write files and the manifest that names them; both are replaced in one step.

    Parameters
    ----------
    folder : Path
        Made when absent. Nothing in it is touched but an earlier manifest of this ``kind`` and
        the parts that it names.
    manifest : str
        Name of the manifest's file.
    kind, version : str, int
        What the manifest says it is, in which version of its format.
    content : mapping
        Plain JSON data that the manifest holds besides.
    parts : mapping of str to callable
        By a name such as ``"arrays.npz"`` a function that writes the file at the path it is given.
    """
    _refuse_foreign(folder / manifest, kind)
    # A name that nobody else uses: two writers into one folder cannot remove each other's parts.
    token = secrets.token_hex(8)
    names = {part: f"{Path(part).stem}-{token}{Path(part).suffix}" for part in parts}
    try:
        written = {}
        for part, write in parts.items():
            with replace_file(folder / names[part]) as temporary:
                write(temporary)
                sha256 = digest_file(temporary)
            written[part] = {"file": names[part], "sha256": sha256}
        head = {"wellsep": kind, "format": version, "parts": written}
        text = json.dumps({**head, **content}, indent=1)
        # Else two writers could both take the same record for the one they replace.
        with locked(folder):
            replaced = _parts_of(folder / manifest)
            write_text(folder / manifest, text + "\n")
            _remove(folder, replaced)
    except BaseException:
        if _parts_of(folder / manifest).isdisjoint(names.values()):
            _remove(folder, names.values())
        raise


def load_parts(
    folder: Path,
    manifest: str,
    kind: str,
    version: int,
    read: Callable[[Path], Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save_parts` wrote: the manifest, and by name what ``read`` makes of each part."""
    end = time.monotonic() + _PATIENCE
    while True:
        found = _read_manifest(folder / manifest, kind, version)
        try:
            parts = {
                part: _read_part(folder, promise, read, folder / manifest)
                for part, promise in _promises(found, folder / manifest).items()
            }
        except FileNotFoundError:
            # Another process may have replaced the record between the two readings.
            now = _read_manifest(folder / manifest, kind, version)
            if now["parts"] == found["parts"] or time.monotonic() > end:
                raise
        else:
            return found, parts


def _read_manifest(path: Path, kind: str, version: int) -> dict[str, Any]:
    try:
        text = read_bytes(path, str(path))
    except FileNotFoundError:
        for older in _OLDER:
            if kind == "record" and (path.parent / older).is_file():
                raise _too_old(path.parent / older) from None
        raise FileNotFoundError(
            f"folder must hold a saved record, got no file {path.name} in {str(path.parent)!r}; "
            "save one there first, with save or in the shell with --save."
        ) from None
    manifest = read_json(text, str(path))
    if not isinstance(manifest, dict) or manifest.get("wellsep") != kind:
        if kind != "record" and isinstance(manifest, dict) and "wellsep" in manifest:
            raise _too_old(path)
        raise ValueError(f"{path} must be a manifest written by wellsep, got another JSON file.")
    found = manifest.get("format")
    if isinstance(found, int) and found < version:
        raise _too_old(path)
    if found != version:
        raise ValueError(
            f"{path} must have format {version}, got {found!r}; "
            "read it with the version of wellsep that wrote it."
        )
    return manifest


def _too_old(path: Path) -> ValueError:
    return ValueError(
        f"{path} was saved by an older version of wellsep; make it again with this version."
    )


def _promises(manifest: dict[str, Any], path: Path) -> dict[str, Any]:
    promises = manifest.get("parts")
    if not isinstance(promises, dict) or not all(isinstance(p, dict) for p in promises.values()):
        raise ValueError(f"{path} must name its parts, got {shown(promises)}; it is damaged.")
    return promises


def _read_part(
    folder: Path, promise: dict[str, Any], read: Callable[[Path], Any], manifest: Path
) -> Any:
    name, sha256 = promise.get("file"), promise.get("sha256")
    if not isinstance(name, str) or not _PART.fullmatch(name):
        raise ValueError(
            f"{manifest} must name files in its own folder, got {shown(name)}; it is damaged."
        )
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing, but its manifest names it. Save the record again."
        )
    if digest_file(path) != sha256:
        raise ValueError(
            f"{path} is not the file that its manifest was saved with: it was replaced or damaged. "
            "Save the record again."
        )
    return read(path)


def _refuse_foreign(path: Path, kind: str) -> None:
    """Refuse to replace a file of the manifest's name that another program wrote."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise FileExistsError(f"folder must be a folder, got the file {path.parent}.") from None
    # A manifest cut short by a failing disk is still ours; an empty file holds nothing to lose.
    if text.strip() and not re.match(rb'\s*\{\s*"wellsep":\s*"', text):
        raise FileExistsError(
            f"folder must be new or hold a saved {kind}, got a file {path} that wellsep did not "
            "write; choose another folder."
        )


def _parts_of(path: Path) -> set[str]:
    """The files that a manifest names; also one of an earlier format, which named one only."""
    try:
        manifest = json.loads(path.read_bytes())
        named = [part["file"] for part in manifest.get("parts", {}).values()]
        named.append(manifest.get("arrays"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return set()
    return {name for name in named if isinstance(name, str) and _PART.fullmatch(name)}


def _remove(folder: Path, names: Any) -> None:
    for name in names:
        with contextlib.suppress(OSError):  # a file that cannot be removed does no harm
            (folder / name).unlink(missing_ok=True)


def _read_arrays(path: Path) -> Callable[[str], np.ndarray]:
    return read_npz(path, str(path)).__getitem__


def freeze(array: Any, dtype: Any = None) -> np.ndarray:
    """A read-only copy of an array."""
    copy = np.array(array, dtype=dtype)
    copy.setflags(write=False)
    return copy


def _encode(value: Any, arrays: dict[str, np.ndarray], path: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{path} must be an array of numbers or text, got Python objects.")
        key = digest(value)  # equal arrays are one
        arrays.setdefault(key, value)
        return {"$": "array", "key": key}
    if isinstance(value, Record) and is_dataclass(value):
        content = {
            f.name: _encode(getattr(value, f.name), arrays, f"{path}.{f.name}")
            for f in fields(value)
            if f.metadata.get("saved", True)
        }
        return {"$": "record", "kind": type(value).__name__, "fields": content}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [_encode(v, arrays, f"{path}[]") for v in value]}
    if isinstance(value, list):
        return [_encode(v, arrays, f"{path}[]") for v in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str | int | tuple) for key in value):
            raise TypeError(f"{path} must have text or numbers as keys, got {list(value)[:3]!r}.")
        return {
            "$": "map",
            "items": [
                [_encode(key, arrays, path), _encode(v, arrays, f"{path}[{key!r}]")]
                for key, v in value.items()
            ],
        }
    raise TypeError(
        f"{path} must hold numbers, text, lists and mappings, got {type(value).__name__}."
    )


def _decode(tree: Any, array: Callable[[str], np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, array) for item in tree]
    if not isinstance(tree, dict):
        return tree
    match tree.get("$"):
        case "float":
            return float(tree["value"])
        case "array":
            return freeze(array(tree["key"]))
        case "tuple":
            return tuple(_decode(item, array) for item in tree["items"])
        case "map":
            return {_decode(key, array): _decode(value, array) for key, value in tree["items"]}
        case "record" if tree["kind"] in _KINDS:
            kind = _KINDS[tree["kind"]]
            known = {f.name for f in fields(kind)}
            content = {k: _decode(v, array) for k, v in tree["fields"].items() if k in known}
            hints = _types_of(kind)
            for name, value in content.items():
                if not _fits(value, hints.get(name, Any)):
                    raise TypeError(f"{kind.__name__}.{name} is {type(value).__name__}")
            return kind(**content)
    raise ValueError(f"a record must consist of known parts, got {tree.get('$')!r}.")


@functools.cache
def _types_of(kind: type) -> dict[str, Any]:
    """The types of a record's fields, where its annotations can be read."""
    try:
        return get_type_hints(kind)
    except NameError:  # a type that only type checkers import
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; what is inside is looked at where it is plain."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple and isinstance(value, tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(one, arguments[0]) for one in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping) or len(arguments) != 2:
            return isinstance(value, Mapping)
        key, one = arguments
        return all(_fits(k, key) and _fits(v, one) for k, v in value.items())
    kind = origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)
