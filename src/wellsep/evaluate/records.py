"""Frozen records on disk: one npz with the arrays, one JSON manifest, never pickle.

The manifest names its npz and is replaced last, in one step: a killed writer leaves the record that
was there before, or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

MANIFEST = "record.json"
FORMAT = 1
_KINDS: dict[str, type] = {}
R = TypeVar("R", bound="Record")


class Record:
    """Base of the frozen dataclasses that pass between the steps of the main job."""

    __kinds__: ClassVar[dict[str, type]] = _KINDS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KINDS[cls.__name__] = cls

    def save(self, folder: str | os.PathLike) -> Path:
        """Write the record into `folder`; what was there stays until all is written."""
        folder = Path(folder)
        arrays: dict[str, np.ndarray] = {}
        tree = _encode(self, arrays, "record")
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        packed = buffer.getvalue()
        data = f"arrays-{hashlib.sha256(packed).hexdigest()[:16]}.npz"
        manifest = {"wellsep": "record", "format": FORMAT, "arrays": data, "record": tree}
        text = json.dumps(manifest, allow_nan=False, indent=1)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / data, packed)
        write_whole(folder / MANIFEST, text.encode("ascii"))
        for old in folder.glob("arrays-*.npz"):
            if old.name != data:
                old.unlink()
        return folder

    @classmethod
    def load(cls: type[R], folder: str | os.PathLike) -> R:
        """Read a record that `save` wrote."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        record = _decode(manifest["record"], _read_arrays(folder / str(manifest.get("arrays"))))
        if not isinstance(record, cls):
            raise ValueError(f"{folder} must hold a {cls.__name__}, got a {type(record).__name__}.")
        return record


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there entirely or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("ascii"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder} must hold a saved record, got no file {MANIFEST} in it."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} must be a whole JSON manifest, got: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("wellsep") != "record":
        raise ValueError(f"{path} must be a manifest written by wellsep, got another JSON file.")
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{path} must have format {FORMAT}, got {manifest.get('format')}; "
            "read it with the version of wellsep that wrote it."
        )
    return manifest


def _read_arrays(path: Path) -> Callable[[str], np.ndarray]:
    if path.name != os.path.basename(path.name) or not path.is_file():
        raise FileNotFoundError(f"{path} must exist beside its manifest; save the record again.")
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must be a whole npz without pickled objects, got: {error}."
        ) from None
    return arrays.__getitem__


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
        key = f"a{len(arrays)}"
        arrays[key] = value
        return {"$": "array", "key": key}
    if isinstance(value, Record) and is_dataclass(value):
        content = {
            f.name: _encode(getattr(value, f.name), arrays, f"{path}.{f.name}")
            for f in fields(value)
        }
        return {"$": "record", "kind": type(value).__name__, "fields": content}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [_encode(v, arrays, f"{path}[]") for v in value]}
    if isinstance(value, list):
        return [_encode(v, arrays, f"{path}[]") for v in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"{path} must have text as keys, got {list(value)[:3]!r}.")
        items = [[key, _encode(v, arrays, f"{path}[{key!r}]")] for key, v in value.items()]
        return {"$": "map", "items": items}
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
            return {key: _decode(value, array) for key, value in tree["items"]}
        case "record" if tree["kind"] in _KINDS:
            kind = _KINDS[tree["kind"]]
            known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
            content = {k: _decode(v, array) for k, v in tree["fields"].items() if k in known}
            return kind(**content)
    raise ValueError(f"a record must consist of known parts, got {tree.get('$')!r}.")
