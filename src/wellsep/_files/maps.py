"""Files of numbers that are mapped: which version was seen, how long a map stays open."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
from collections.abc import Iterator
from contextvars import ContextVar
from typing import IO, Any, NamedTuple

import numpy as np

AT_ONCE = 64 << 20  # bytes of a map up to which work reads it whole, and in blocks beyond
_MOST_OPEN = 256  # files that are held open; a process may have 1,024
held_maps: ContextVar[dict[Any, np.ndarray] | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def maps_held() -> Iterator[dict[Any, np.ndarray]]:
    """Hold tables that are mapped in this block until its end, or while what it gives is held."""
    outer = held_maps.get()
    held = {} if outer is None else outer
    token = held_maps.set(held)
    try:
        yield held
    finally:
        held_maps.reset(token)


class Version(NamedTuple):
    """Which version of a file was seen; another machine may number the same file otherwise."""

    path: str
    size: int
    time: int
    number: int
    machine: str

    @classmethod
    def of(cls, path: str | os.PathLike[str], seen: os.stat_result | None = None) -> Version:
        seen = os.stat(path) if seen is None else seen
        number, machine = seen.st_ino, platform.node()
        return cls(os.path.abspath(path), seen.st_size, seen.st_mtime_ns, number, machine)

    def is_of(self, other: Version) -> bool:
        same_content = (self.size, self.time) == (other.size, other.time)
        return same_content and (self.number == other.number or self.machine != other.machine)

    def check_whole(self) -> None:
        """Refuse a file that was written anew in place; one put in its place does no harm."""
        with contextlib.suppress(FileNotFoundError):
            now = Version.of(self.path)
            if now.number == self.number and not now.is_of(self):
                text = "the file was changed since it was loaded"
                raise OSError(errno.ESTALE, text, self.path)

    def check_same(self, file: int | str) -> None:
        """Refuse a file that is not this version: a record holds one version of its files."""
        now = Version.of(self.path, os.stat(file))
        if now.size < self.size:
            text = "the file is shorter than when it was loaded"
            raise OSError(errno.ESTALE, text, self.path)
        if not now.is_of(self):
            text = "the file was replaced since it was loaded"
            raise OSError(errno.ESTALE, text, self.path)


def map_file(
    version: Version, dtype: Any, shape: tuple[int, ...], order: Any, offset: int
) -> np.ndarray:
    """A table that lies in a file of this version, to be read when it is used."""
    if 0 in shape or dtype.itemsize == 0:  # nothing to map
        return np.empty(shape, dtype)
    table = (held_maps.get() or {}).get((version, offset))
    if table is not None:
        version.check_same(version.path)
        return table
    with open(version.path, "rb") as stream:
        version.check_same(stream.fileno())
        return map_stream(stream, version, dtype, shape, order, offset)


def map_stream(
    stream: IO[bytes], version: Version, dtype: Any, shape: tuple[int, ...], order: Any, offset: int
) -> np.ndarray:
    """Map an open file; hold the map where maps are held."""
    table = np.memmap(stream, dtype=dtype, shape=shape, order=order, mode="r", offset=offset)
    held = held_maps.get()
    if held is not None and len(held) < _MOST_OPEN:
        held[version, offset] = table
    return table


def in_memory(X: Any) -> Any:
    """Read a memory map that is small whole; return anything else as it is."""
    return np.array(X, subok=False) if isinstance(X, np.memmap) and X.nbytes <= AT_ONCE else X
