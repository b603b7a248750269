"""Plain .npy arrays in files and in .npz archives: header read now, data mapped when opened."""

from __future__ import annotations

import errno
import os
import struct
import tokenize
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from wellsep.runs.arrays import Stored


def stored_npy(path: str | os.PathLike[str], what: str) -> Stored:
    """A .npy file, checked to be complete and free of pickles; data are memory-mapped later."""
    path = Path(path)
    try:
        with open(path, "rb") as stream:
            shape, order, dtype = _header(stream, what)
            offset = stream.tell()
            size = os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        raise FileNotFoundError(f"{what} must be there, got no file {path}.") from None
    except IsADirectoryError:
        raise ValueError(f"{what} must be a file, got a folder at {path}.") from None
    except OSError as error:
        raise OSError(error.errno, f"{what} must be readable, got: {error.strerror}.") from None
    _check_complete(size - offset, shape, dtype, what)
    return Stored(shape, dtype, partial(_map, os.path.abspath(path), dtype, shape, order, offset))


def stored_member(path: str | os.PathLike[str], member: str, what: str) -> Stored:
    """An array in a .npz archive: memory-mapped where it is not compressed, else read."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
            with archive.open(info) as stream:
                shape, order, dtype = _header(stream, what)
                head = stream.tell()
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise damaged(what, error) from None
    _check_complete(info.file_size - head, shape, dtype, what)
    start = _data_offset(path, info) if info.compress_type == zipfile.ZIP_STORED else None
    place = os.path.abspath(path)
    if start is None:
        return Stored(shape, dtype, partial(_read_member, place, member, what))
    return Stored(shape, dtype, partial(_map, place, dtype, shape, order, start + head))


def damaged(what: str, error: Exception) -> ValueError:
    return ValueError(
        f"{what} must be in a complete .npz archive, got a truncated or damaged one ({error}); "
        "save it again."
    )


def _header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], str, np.dtype]:
    try:
        version = npy_format.read_magic(stream)
        read = {
            (1, 0): npy_format.read_array_header_1_0,
            (2, 0): npy_format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, TypeError, tokenize.TokenError):
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
    wanted = dtype.itemsize
    for length in shape:
        wanted *= length
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
    name, extra = struct.unpack("<HH", head[26:30])
    return info.header_offset + 30 + name + extra


def _read_member(path: str, member: str, what: str) -> np.ndarray:
    import zlib

    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            return npy_format.read_array(stream, allow_pickle=False)
    except (zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
        raise damaged(what, error) from None
