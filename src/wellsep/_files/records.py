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
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from wellsep._checks.values import check_path
from wellsep._files.arrays import digest, digest_file, read_json, read_npz, write_npz
from wellsep._files.limits import read_bytes
from wellsep._files.replace import locked, replace_file, write_text
from wellsep._text.sentences import Shown, Views, shown

MANIFEST = "record.json"
_OLDER = ("chosen-k.json",)  # manifests of earlier versions
_PART = re.compile(r"[a-z]+-[0-9a-f]{16}\.[a-z]+")
_PATIENCE = 10.0  # seconds to go on reading a record that is replaced all the time
_KINDS: dict[str, type] = {}
R = TypeVar("R", bound="Record")


class Form(NamedTuple):
    """How something is saved: a manifest, what it says it is, and the file of arrays it names."""

    manifest: str
    kind: str
    version: int
    part: str


RECORD = Form(MANIFEST, "record", 4, "arrays.npz")


class Record(Shown):
    """Base of the frozen dataclasses that pass between the steps of a ranking."""

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
        content = {"record": _encode(self, arrays, "record")}

        def write(path: Path) -> None:
            write_npz(path, iter(arrays.items()), compress=True)

        save_form(folder, RECORD, content, write)
        return folder

    @classmethod
    def load(cls: type[R], folder: str | os.PathLike[str]) -> R:
        """Read a record that `save` wrote."""
        folder = check_path("folder", folder)
        content, arrays = load_form(folder, RECORD, lambda path: read_npz(path, str(path)))
        try:
            record = _decode(content["record"], arrays)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{folder / MANIFEST} must be whole, got a damaged part "
                f"({type(error).__name__}: {shown(str(error))}); save the record again."
            ) from None
        if not isinstance(record, cls):
            found = type(record).__name__
            raise ValueError(f"{folder} must hold a saved {cls.__name__}, got a saved {found}.")
        return record._opened(folder)

    def _opened(self: R, folder: Path) -> R:
        """Return the record with what else its class keeps in the folder; by default nothing."""
        return self


class Result(Views, Record):
    """A record that is shown."""


def save_form(
    folder: Path, form: Form, content: Mapping[str, Any], write: Callable[[Path], None]
) -> None:
    """Write a part and the manifest that names it beside ``content``; replace both in one step."""
    manifest = folder / form.manifest
    _refuse_foreign(manifest, form.kind)
    # A name that nobody else uses: two writers into one folder cannot remove each other's parts.
    stem, suffix = os.path.splitext(form.part)
    name = f"{stem}-{secrets.token_hex(8)}{suffix}"
    try:
        with replace_file(folder / name) as temporary:
            write(temporary)
            parts = {form.part: {"file": name, "sha256": digest_file(temporary)}}
        head = {"wellsep": form.kind, "format": form.version, "parts": parts}
        text = json.dumps({**head, **content}, indent=1)
        # Else two writers could both take the same record for the one they replace.
        with locked(folder):
            replaced = _parts_of(manifest)
            write_text(manifest, text + "\n")
            _remove(folder, replaced)
    except BaseException:
        _remove(folder, {name} - _parts_of(manifest))
        raise


def load_form(folder: Path, form: Form, read: Callable[[Path], Any]) -> tuple[dict[str, Any], Any]:
    """Read what `save_form` wrote: the manifest, and what ``read`` makes of the part."""
    end = time.monotonic() + _PATIENCE
    while True:
        manifest = _read_manifest(folder / form.manifest, form)
        try:
            return manifest, read(_checked_part(folder / form.manifest, manifest, form))
        except FileNotFoundError:
            # Another process may have replaced the record between the two readings.
            now = _read_manifest(folder / form.manifest, form)
            if now["parts"] == manifest["parts"] or time.monotonic() > end:
                raise


def _read_manifest(path: Path, form: Form) -> dict[str, Any]:
    try:
        text = read_bytes(path, str(path))
    except FileNotFoundError:
        for older in _OLDER:
            if form is RECORD and (path.parent / older).is_file():
                raise _too_old(path.parent / older) from None
        raise FileNotFoundError(
            f"folder must hold a saved record, got no file {path.name} in {str(path.parent)!r}; "
            "save one there first, with save or in the shell with --save."
        ) from None
    manifest = read_json(text, str(path))
    if not isinstance(manifest, dict) or manifest.get("wellsep") != form.kind:
        if form is not RECORD and isinstance(manifest, dict) and "wellsep" in manifest:
            raise _too_old(path)
        raise ValueError(f"{path} must be a manifest written by wellsep, got another JSON file.")
    found = manifest.get("format")
    if isinstance(found, int) and found < form.version:
        raise _too_old(path)
    if found != form.version:
        raise ValueError(
            f"{path} must have format {form.version}, got {found!r}; "
            "read it with the version of wellsep that wrote it."
        )
    return manifest


def _too_old(path: Path) -> ValueError:
    return ValueError(
        f"{path} was saved by an older version of wellsep; make it again with this version."
    )


def _checked_part(path: Path, manifest: dict[str, Any], form: Form) -> Path:
    """The path of the part that a manifest names, which holds what was saved."""
    parts = manifest.get("parts")
    promise = parts.get(form.part) if isinstance(parts, dict) else None
    if not isinstance(promise, dict):
        raise ValueError(f"{path} must name its parts, got {shown(parts)}; it is damaged.")
    name, sha256 = promise.get("file"), promise.get("sha256")
    if not isinstance(name, str) or not _PART.fullmatch(name):
        raise ValueError(
            f"{path} must name files in its own folder, got {shown(name)}; it is damaged."
        )
    part = path.with_name(name)
    if not part.is_file():
        raise FileNotFoundError(
            f"{part} is missing, but its manifest names it. Save the record again."
        )
    if digest_file(part) != sha256:
        raise ValueError(
            f"{part} is not the file that its manifest was saved with: it was replaced or damaged. "
            "Save the record again."
        )
    return part


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


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):  # a file that cannot be removed does no harm
            (folder / name).unlink(missing_ok=True)


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


def _decode(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    match tree.get("$"):
        case "float":
            return float(tree["value"])
        case "array":
            return freeze(arrays[tree["key"]])
        case "tuple":
            return tuple(_decode(item, arrays) for item in tree["items"])
        case "map":
            return {_decode(key, arrays): _decode(value, arrays) for key, value in tree["items"]}
        case "record" if tree["kind"] in _KINDS:
            kind = _KINDS[tree["kind"]]
            known = {f.name for f in fields(kind)}
            content = {k: _decode(v, arrays) for k, v in tree["fields"].items() if k in known}
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
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
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
