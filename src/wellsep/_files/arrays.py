"""Digests of arrays and files, plain JSON, .npy and .npz without pickle."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import numbers
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format

from wellsep._files.limits import (
    check_depth,
    check_member,
    check_packed,
    check_regular,
    short_header,
)
from wellsep._files.maps import Version, held_maps, map_file, map_stream

_VALUES = 1 << 22  # values of an array processed at a time

_BAD_ARCHIVE = (
    zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error, struct.error,
)  # fmt: skip
NanRule = Literal["null", "text", "keep"]


def digest(*parts: np.ndarray | str) -> str:
    """SHA-256, as 64 digits, of arrays (type, shape, values in row order) and texts.

    Arrays are read in pieces and, where they lie in one block, not copied.

    Examples
    --------
    >>> digest(np.arange(3)) == digest(np.arange(6)[::2] // 2) != digest(np.arange(3.0))
    True
    """
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            data = part.encode("utf-8", "surrogatepass")
            state.update(b"text%d:" % len(data) + data)
            continue
        state.update(f"{part.dtype.str}{part.shape}".encode())
        if part.nbytes:
            for rows in pieces(part.reshape(1) if part.ndim == 0 else part):
                state.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return state.hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of an array, a few million values at a time."""
    step = max(1, _VALUES // max(1, math.prod(array.shape[1:])))
    return (array[start : start + step] for start in range(0, len(array), step))


def to_json(
    value: Any,
    *,
    nan: NanRule,
    other: Callable[[Any], Any] | None = None,
    digits: int | None = None,
    longest: int | None = None,
    name: str = "value",
) -> Any:
    """A deep copy of a value in JSON's own types; arrays become lists.

    JSON has no NaN and no infinity: they become null, or texts that ``float`` reads back, or stay,
    which other programs than Python cannot read. ``other`` is applied to values that are no
    numbers, text, paths, lists or mappings; by default they are refused. Floats are rounded to
    ``digits``; an array with more values than ``longest`` becomes its shape and digest.

    >>> to_json({"k": np.int64(2), "loss": [float("nan"), 0.5]}, nan="null")
    {'k': 2, 'loss': [None, 0.5]}
    """

    def plain(value: Any, place: str) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            # A lone surrogate is no character, and could not be written as UTF-8.
            return value.encode("utf-8", "replace").decode("utf-8")
        if longest is not None and isinstance(value, np.ndarray) and value.size > longest:
            return f"{'×'.join(map(str, value.shape))} array {digest(value)[:16]}"
        if isinstance(value, Mapping):
            return {str(k): plain(v, f"{place}/{k}") for k, v in value.items()}
        if isinstance(value, np.ndarray | np.generic) or (other and hasattr(value, "tolist")):
            listed = value.tolist()
            return refused(value, place) if listed is value else plain(listed, place)
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            number = float(value)
            if math.isfinite(number):
                return number if digits is None else float(f"{number:.{digits}g}")
            return {"null": None, "text": str(number), "keep": number}[nan]
        if isinstance(value, PurePath):
            return str(value)
        # A set has no order, so it is not plain data unless anything goes.
        lists = (list, tuple) if other is None else (Sequence, set, frozenset)
        if isinstance(value, lists) and not isinstance(value, bytes):
            return [plain(v, f"{place}/{i}") for i, v in enumerate(value)]
        return refused(value, place)

    def refused(value: Any, place: str) -> Any:
        if other is not None:
            return other(value)
        raise TypeError(
            f"{name} must be numbers, text, lists and mappings, got {type(value).__name__} "
            f"at {place.lstrip('/')!r}; store its repr or leave it out."
        )

    return plain(value, "")


def read_json(text: bytes | str, what: str) -> Any:
    """Parse JSON; ``what`` opens the sentence of the error."""
    try:
        value = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError(f"{what} must not be nested so deeply, got JSON without an end.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8 text, got other bytes; save it again.") from None
    except ValueError as error:  # or a number of thousands of digits
        raise ValueError(f"{what} must be valid JSON, got {error}.") from None
    check_depth(value, what)
    return value


@dataclass(eq=False)
class Stored:
    """An array whose shape and dtype are known and whose data are opened when asked for.

    ``opener`` is a picklable function without arguments, so that a record may travel to a worker.
    """

    shape: tuple[int, ...]
    dtype: Any
    opener: Callable[[], np.ndarray]
    version: Version | None = None

    def __post_init__(self) -> None:
        self.shape = tuple(int(s) for s in self.shape)
        self.dtype = np.dtype(self.dtype)
        self.ndim = len(self.shape)

    def open(self) -> np.ndarray:
        return self.opener()

    def check_whole(self) -> None:
        """Refuse a file that was changed in place: reading a map beyond its end kills a process."""
        if self.version is not None:
            self.version.check_whole()


def stored_npy(path: str | os.PathLike[str], what: str) -> Stored:
    """A .npy file, checked to be complete and free of pickles; data are memory-mapped later."""
    path = Path(path)
    check_regular(path, what)
    try:
        with open(path, "rb") as stream:
            shape, order, dtype = _header(stream, what)
            offset = stream.tell()
            version = Version.of(path, os.fstat(stream.fileno()))
            _check_complete(version.size - offset, shape, dtype, what)
            if held_maps.get() is not None and 0 not in shape:
                map_stream(stream, version, dtype, shape, order, offset)
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must exist, got no file {path}.") from None
    except OSError as error:
        raise OSError(error.errno, f"{what} could not be read: {error.strerror}.") from None
    return Stored(shape, dtype, partial(map_file, version, dtype, shape, order, offset), version)


def members(path: str | os.PathLike[str], what: str) -> list[str]:
    """The names of what lies in a .npz archive."""
    with _opened(path, what) as archive:
        check_packed(archive, path, what)
        return archive.namelist()


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str], what: str) -> Iterator[zipfile.ZipFile]:
    check_regular(path, what)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must exist, got no file {path}.") from None
    except (*_BAD_ARCHIVE, OSError) as error:  # a damaged table of contents seeks anywhere
        raise _damaged(what, error) from None


def stored_member(path: str | os.PathLike[str], member: str, what: str) -> Stored:
    """An array in a .npz archive: memory-mapped where it is not compressed, else read."""
    with _opened(path, what) as archive:
        assert archive.fp is not None
        version = Version.of(path, os.fstat(archive.fp.fileno()))
        info = archive.getinfo(member)
        check_member(info, what)
        with archive.open(info) as stream:
            shape, order, dtype = _header(stream, what)
            head = stream.tell()
    _check_complete(info.file_size - head, shape, dtype, what)
    start = _data_offset(path, info) if info.compress_type == zipfile.ZIP_STORED else None
    if start is None:
        return Stored(shape, dtype, partial(_read_member, version, member, what))
    opener = partial(map_file, version, dtype, shape, order, start + head)
    return Stored(shape, dtype, opener, version)


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, np.ndarray]:
    """All arrays of a .npz archive, each checked by its header before memory is taken for it."""
    return {
        member.removesuffix(".npy"): np.array(stored_member(path, member, what).open())
        for member in members(path, what)
    }


def write_npy(stream: IO[bytes], array: np.ndarray) -> None:
    """Write one array in NumPy's format, never as a pickle."""
    # Not array.tofile, which does not say why a write failed: a full disk must be named.
    only_write: Any = SimpleNamespace(write=stream.write)
    npy_format.write_array(only_write, np.asarray(array), allow_pickle=False)


def write_npz(
    path: str | os.PathLike[str],
    arrays: Iterator[tuple[str, np.ndarray]],
    *,
    compress: bool = False,
) -> None:
    """Write named arrays, one after the other, into a .npz archive; uncompressed can be mapped."""
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind, allowZip64=True) as archive:
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                write_npy(stream, array)


def _damaged(what: str, error: Exception) -> ValueError:
    return ValueError(
        f"{what} must be in a complete .npz archive, got a truncated or damaged one ({error}); "
        "save it again."
    )


def _header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], str, np.dtype]:
    try:
        version = npy_format.read_magic(stream)
        if version in ((1, 0), (2, 0)):
            stream = short_header(stream, version, what)
        read = {
            (1, 0): npy_format.read_array_header_1_0,
            (2, 0): npy_format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, TypeError, RecursionError, tokenize.TokenError):
        raise ValueError(
            f"{what} must be a plain .npy array, got something else (a pickle, an empty or a "
            "truncated file); write it with numpy.save(..., allow_pickle=False)."
        ) from None
    if dtype.hasobject:
        raise ValueError(
            f"{what} must be a plain .npy array, got pickled Python objects, which are never "
            "loaded; save it as an array of numbers or text."
        )
    return shape, "F" if fortran else "C", dtype


def _check_complete(got: int, shape: tuple[int, ...], dtype: np.dtype, what: str) -> None:
    if any(type(size) is not int or not 0 <= size <= sys.maxsize for size in shape):
        raise ValueError(f"{what} must have a shape of sizes, got {shape}; the file is damaged.")
    if dtype.itemsize == 0:  # any number of items would fit any file
        raise ValueError(f"{what} must hold numbers or text, got items of no bytes ({dtype.str}).")
    wanted = dtype.itemsize * math.prod(shape)
    if got < wanted:
        raise ValueError(
            f"{what} must be complete, got {got:,} of {wanted:,} bytes: the file is truncated; "
            "save it again."
        )


def _data_offset(path: str | os.PathLike[str], info: zipfile.ZipInfo) -> int | None:
    """Where a member's bytes begin: the local header has its own name and extra lengths."""
    with open(path, "rb") as stream:
        stream.seek(info.header_offset)
        head = stream.read(30)
    if len(head) != 30 or head[:4] != b"PK\x03\x04" or info.flag_bits & 1:
        return None
    name, extra = map(int, struct.unpack("<HH", head[26:30]))
    return info.header_offset + 30 + name + extra


def _read_member(version: Version, member: str, what: str) -> np.ndarray:
    try:
        with open(version.path, "rb") as whole:
            version.check_same(whole.fileno())
            with zipfile.ZipFile(whole) as archive, archive.open(member) as stream:
                return npy_format.read_array(stream, allow_pickle=False)
    except MemoryError as error:
        raise OSError(errno.ENOMEM, f"{what} does not fit the memory: {error}.") from None
    except (*_BAD_ARCHIVE, ValueError) as error:
        raise _damaged(what, error) from None
