"""What may be read: regular files, paths inside their folder, sizes known before memory is taken.

Files come from others. A name in one of them must not lead out of its folder, and a few bytes must
not ask for gigabytes.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

from wellsep._text.sentences import shown

DEEPEST = 100  # levels of lists and mappings in JSON
LONGEST_HEADER = 1 << 16  # bytes of the header of a .npy file; NumPy writes 64 to a few hundred
MOST_FOLD = 1100  # deflate packs 1,032 bytes into one at best
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_anndata(path: str | os.PathLike[str]) -> bool:
    """Whether a file or folder is AnnData by its name."""
    return Path(path).suffix.lower() in (".h5ad", ".zarr")


def check_regular(path: str | os.PathLike[str], what: str) -> None:
    """Refuse pipes, sockets and devices, which may never end; an absent file is not judged."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = next((word for is_kind, word in _KINDS if is_kind(mode)), "something else")
        raise ValueError(f"{what} must be a file, got {kind} at {path}.")


def read_bytes(path: Path, what: str) -> bytes:
    """All bytes of a regular file."""
    check_regular(path, what)
    return path.read_bytes()


def inside(folder: str | os.PathLike[str], name: str, what: str) -> Path:
    """The path of a file that another file names, refused where it leads out of the folder."""
    root = os.path.realpath(folder)
    outside = "\0" in name or os.path.isabs(name)
    if not outside:
        place = os.path.realpath(os.path.join(root, name))  # links lead out as well
        outside = os.path.commonpath([root, place]) != root
    if outside:
        raise ValueError(f"{what} must be a file inside {folder}, got {shown(name)}.")
    return Path(folder) / name


def check_depth(value: Any, what: str) -> None:
    """Refuse JSON data nested deeper than functions may call themselves."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, list | dict)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return
    raise ValueError(f"{what} must be nested at most {DEEPEST} levels deep, got more.")


def short_header(stream: IO[bytes], version: tuple[int, int], what: str) -> IO[bytes]:
    """The header of a .npy file behind its magic number, refused where it is too long to be one."""
    size = 2 if version == (1, 0) else 4
    head = stream.read(size)
    if len(head) == size:
        (length,) = struct.unpack("<H" if size == 2 else "<I", head)
        if length > LONGEST_HEADER:
            raise ValueError(
                f"{what} must have a header of at most {LONGEST_HEADER:,} bytes, got {length:,}; "
                "the file is damaged."
            )
        head += stream.read(length)
    return io.BytesIO(head)


def check_packed(archive: zipfile.ZipFile, path: str | os.PathLike[str], what: str) -> None:
    """Refuse members that share bytes, or that promise more than their bytes can hold."""
    infos = archive.infolist()
    if sum(info.compress_size for info in infos) > os.path.getsize(path):
        raise ValueError(f"{what} must be in a sound .npz archive, got members that overlap.")
    for info in infos:
        check_member(info, what)


def check_member(info: zipfile.ZipInfo, what: str) -> None:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(
            f"{what} must be stored or deflated in its .npz archive, as NumPy writes it, got "
            f"another compression of {shown(info.filename)}."
        )
    if info.file_size > MOST_FOLD * (info.compress_size + 1):
        raise ValueError(
            f"{what} must not unpack to more than its bytes can hold, got "
            f"{info.file_size:,} bytes promised by {info.compress_size:,}."
        )
