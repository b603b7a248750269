"""Files: replaced whole or not at all, digests, plain JSON, .npy and .npz without pickle."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import math
import numbers
import os
import platform
import re
import shutil
import struct
import time
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format

from wellsep._reading import check_depth, check_member, check_packed, check_regular, short_header

OLD = ".old"
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.([0-9a-f]{8})-(\d+)\.tmp")
LEFT_BEHIND = 3600.0  # seconds without a change: then a writer on another machine is gone too
_ATTEMPTS = 50  # at replacing a folder that other writers replace at the same time
_VALUES = 1 << 22  # values of an array processed at a time

_BAD_ARCHIVE = (
    zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error, struct.error,
)  # fmt: skip
NanRule = Literal["null", "text", "keep"]


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new empty file next to ``path``; it replaces ``path`` if the block raises nothing.

    The new file is flushed to disk first, and its mode follows the user's umask. The folder is
    made when absent. What a killed writer left in it is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    temporary = path.with_name(_temporary_name())
    # os.open applies the umask, which cannot be read without changing it for every thread.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8 so that the file is there entirely or not at all."""
    with replace_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Give a new folder in ``parent`` that is removed unless `move_folder` has put it elsewhere."""
    sweep(parent)
    temporary = parent / _temporary_name()
    try:
        temporary.mkdir()
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def move_folder(temporary: Path, target: Path, may_go: Callable[[Path], bool]) -> None:
    """Rename a finished folder to ``target``; replace an existing one only if ``may_go`` agrees.

    No system replaces a folder in one step, so the old one is called ``.<name>.old`` for a moment.
    A reader that comes then, or after a crash there, looks for it under that name.
    """
    old = target.with_name(f".{target.name}{OLD}")
    sync_folder(temporary)
    for _ in range(_ATTEMPTS):
        try:
            _rename(temporary, target)
        except FileExistsError:
            if target.exists() and not may_go(target):
                raise
            _remove_if(old, may_go)
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # another was first
                _rename(target, old)
        except BaseException:
            if old.exists() and not target.exists():
                os.rename(old, target)
            raise
        else:
            sync_folder(target.parent)
            _remove_if(old, may_go)
            return
    raise FileExistsError(errno.EEXIST, "exists", str(target))


def _remove_if(folder: Path, may_go: Callable[[Path], bool]) -> None:
    if may_go(folder):
        shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders of writers that are gone."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [entry.name for entry in entries if _TEMPORARY.fullmatch(entry.name)]
        for path in (folder / name for name in left):
            if not _is_gone(path):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise
    finally:
        os.close(handle)


def _temporary_name() -> str:
    return f".{uuid.uuid4().hex}.{_machine()}-{os.getpid()}.tmp"


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: this machine, and within it this container."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return digest(platform.node(), space)[:8]


def _is_gone(path: Path) -> bool:
    match = _TEMPORARY.fullmatch(path.name)
    assert match is not None
    if match[1] == _machine() and os.name == "posix":
        try:
            os.kill(int(match[2]), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            return False
        return False
    inside = path.iterdir() if path.is_dir() else ()
    newest: float = max(p.stat().st_mtime for p in (path, *inside))
    return time.time() - newest > LEFT_BEHIND


def _rename(temporary: Path, target: Path) -> None:
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise FileExistsError(errno.EEXIST, "exists", str(target)) from None
        raise


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
    """A deep copy of a value in JSON's own types.

    Parameters
    ----------
    value : object
        Numbers, text, paths, lists and mappings; arrays become lists.
    nan : {"null", "text", "keep"}
        JSON has no NaN and no infinity. They become null, or the texts "nan", "inf" and "-inf",
        which ``float`` reads back, or stay, which other programs than Python cannot read.
    other : callable, optional
        Applied to values of any other type; by default they are refused.
    digits : int, optional
        Significant digits of floats.
    longest : int, optional
        An array with more values becomes a text that tells its shape and digest.
    name : str
        What the value is called in an error.

    Examples
    --------
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
        check_depth(value, what)
        return value
    except RecursionError:
        raise ValueError(f"{what} must not be nested so deeply, got JSON without an end.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8 text, got other bytes; save it again.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} must be valid JSON, got {error}.") from None
    except ValueError as error:  # a number of thousands of digits
        if str(error).startswith(what):
            raise
        raise ValueError(f"{what} must be valid JSON, got {error}.") from None


class Stored:
    """An array whose shape and dtype are known and whose data are opened when asked for.

    ``opener`` is a picklable function without arguments, so that a record may travel to a worker.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, opener: Callable[[], np.ndarray]):
        self.shape = tuple(int(s) for s in shape)
        self.dtype = np.dtype(dtype)
        self.opener = opener

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def open(self) -> np.ndarray:
        return self.opener()


def stored_npy(path: str | os.PathLike[str], what: str) -> Stored:
    """A .npy file, checked to be complete and free of pickles; data are memory-mapped later."""
    path = Path(path)
    check_regular(path, what)
    try:
        with open(path, "rb") as stream:
            shape, order, dtype = _header(stream, what)
            offset = stream.tell()
            size = os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must exist, got no file {path}.") from None
    except IsADirectoryError:
        raise ValueError(f"{what} must be a file, got a folder at {path}.") from None
    except OSError as error:
        raise OSError(error.errno, f"{what} could not be read: {error.strerror}.") from None
    _check_complete(size - offset, shape, dtype, what)
    return Stored(shape, dtype, partial(_map, os.path.abspath(path), dtype, shape, order, offset))


def members(path: str | os.PathLike[str], what: str) -> list[str]:
    """The names of what lies in a .npz archive."""
    check_regular(path, what)
    try:
        with zipfile.ZipFile(path) as archive:
            check_packed(archive, path, what)
            return archive.namelist()
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must exist, got no file {path}.") from None
    except (*_BAD_ARCHIVE, OSError) as error:  # a damaged table of contents seeks anywhere
        raise _damaged(what, error) from None


def stored_member(path: str | os.PathLike[str], member: str, what: str) -> Stored:
    """An array in a .npz archive: memory-mapped where it is not compressed, else read."""
    check_regular(path, what)
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
            check_member(info, what)
            with archive.open(info) as stream:
                shape, order, dtype = _header(stream, what)
                head = stream.tell()
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must exist, got no file {path}.") from None
    except (*_BAD_ARCHIVE, OSError) as error:
        raise _damaged(what, error) from None
    _check_complete(info.file_size - head, shape, dtype, what)
    start = _data_offset(path, info) if info.compress_type == zipfile.ZIP_STORED else None
    place = os.path.abspath(path)
    if start is None:
        return Stored(shape, dtype, partial(_read_member, place, member, what))
    return Stored(shape, dtype, partial(_map, place, dtype, shape, order, start + head))


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, np.ndarray]:
    """All arrays of a .npz archive, each checked by its header before memory is taken for it."""
    return {
        member.removesuffix(".npy"): np.array(stored_member(path, member, what).open())
        for member in members(path, what)
    }


def write_npy(stream: IO[bytes], array: np.ndarray) -> None:
    """Write one array in NumPy's format, never as a pickle."""
    npy_format.write_array(stream, np.asarray(array), allow_pickle=False)


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
    if any(size < 0 for size in shape):
        raise ValueError(f"{what} must have a shape of sizes, got {shape}; the file is damaged.")
    wanted = dtype.itemsize * math.prod(shape)
    if got < wanted:
        raise ValueError(
            f"{what} must be complete, got {got:,} of {wanted:,} bytes: the file is truncated; "
            "save it again."
        )


def _map(path: str, dtype: Any, shape: tuple[int, ...], order: Any, offset: int) -> np.ndarray:
    if 0 in shape or dtype.itemsize == 0:  # nothing to map
        return np.empty(shape, dtype)
    try:
        return np.memmap(path, dtype=dtype, shape=shape, order=order, mode="r", offset=offset)
    except ValueError:
        raise OSError(errno.EIO, "the file is shorter than when it was loaded") from None


def _data_offset(path: str | os.PathLike[str], info: zipfile.ZipInfo) -> int | None:
    """Where a member's bytes begin: the local header has its own name and extra lengths."""
    with open(path, "rb") as stream:
        stream.seek(info.header_offset)
        head = stream.read(30)
    if len(head) != 30 or head[:4] != b"PK\x03\x04" or info.flag_bits & 1:
        return None
    name, extra = map(int, struct.unpack("<HH", head[26:30]))
    return info.header_offset + 30 + name + extra


def _read_member(path: str, member: str, what: str) -> np.ndarray:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            return npy_format.read_array(stream, allow_pickle=False)
    except MemoryError as error:
        raise OSError(errno.ENOMEM, f"{what} does not fit the memory: {error}.") from None
    except (*_BAD_ARCHIVE, ValueError) as error:
        raise _damaged(what, error) from None
