"""Files of numbers that are mapped: which version was seen, and rows that are read, not touched.

To touch a map beyond the end of a file that was cut short ends the process (SIGBUS). To read the
file there is an error that can be told.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

AT_ONCE = 64 << 20  # bytes of a file up to which work reads it whole, and in blocks beyond
BLOCK = 8 << 20  # bytes of a block where a sum or an extreme of all rows is wanted


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

    def check_same(self, descriptor: int) -> None:
        """Refuse an open file that is not this version: a record holds one version of its files."""
        now = Version.of(self.path, os.fstat(descriptor))
        if now.size < self.size:
            text = "the file is shorter than when it was loaded"
            raise OSError(errno.ESTALE, text, self.path)
        if not now.is_of(self):
            text = "the file was replaced since it was loaded"
            raise OSError(errno.ESTALE, text, self.path)


class FileRows(np.memmap):
    """A read-only map of a table in a file, whose rows are read from the file when they are taken.

    Rows, sums and comparisons of it come from reads, so that a file that is cut short or written
    anew meanwhile is an OSError. Taken rows are copies. Code that asks for the memory itself
    (``np.asarray``, compiled functions) still touches the map.
    """

    version: Version | None = None  # None: a view, or columns that do not lie row by row

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self.version = None

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if self.version is not None and isinstance(columns, slice | int | np.integer):
            rows = np.asarray(rows) if isinstance(rows, list) else rows
            if isinstance(rows, slice):
                at = range(*rows.indices(len(self)))
                if at.step == 1 and columns == slice(None):
                    return self._between(at.start, at.stop)
                if at.step == 1:
                    parts = [self._between(a, b)[:, columns] for a, b in self._cut(at)]
                    return np.concatenate(parts) if parts else self._between(0, 0)[:, columns]
                rows = np.asarray(at)
            if isinstance(rows, int | np.integer):
                row = range(len(self))[rows]
                return self._between(row, row + 1)[0, columns]
            if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "biu":
                return self._single(np.arange(len(self))[rows])[:, columns]
        return super().__getitem__(key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        by_blocks = ufunc in (np.add, np.maximum, np.minimum) and method == "reduce"
        if by_blocks and self.version is not None and _plainly(options):
            blocks = (self._between(a, b) for a, b in self._cut(range(len(self))))
            parts = [ufunc.reduce(block, **options) for block in blocks]
            return ufunc.reduce(np.stack(parts), axis=0)
        inputs = tuple(x.read() if isinstance(x, FileRows) else x for x in inputs)
        if options.get("out"):
            options["out"] = tuple(np.asarray(x) for x in options["out"])
        return getattr(ufunc, method)(*inputs, **options)

    def read(self) -> np.ndarray:
        """The table, in memory."""
        if self.version is None:
            return np.array(self, subok=False)
        return self._between(0, len(self))

    def copy(self, order: Any = "C") -> Any:
        return self.read().copy(order) if order == "F" else self.read()

    def astype(self, dtype: Any, *args: Any, copy: Any = True, **options: Any) -> Any:  # type: ignore[override]
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        whole: Any = self.read()
        return whole.astype(dtype, *args, copy=False, **options)

    def _cut(self, at: range) -> Iterator[tuple[int, int]]:
        step = max(1, min(AT_ONCE, BLOCK) // max(1, self.strides[0]))
        return ((a, min(a + step, at.stop)) for a in range(at.start, at.stop, step))

    def _between(self, start: int, stop: int) -> np.ndarray:
        found = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
        with self._opened() as stream:
            if stream is None:  # not reachable by its name any more: nobody cuts it
                found[:] = self.view(np.memmap)[start:stop]
            else:
                self._fill(stream, found, start)
        return found

    def _single(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        with self._opened() as stream:
            if stream is None:
                found[:] = self.view(np.memmap)[rows]
            else:
                for place, row in enumerate(rows.tolist()):
                    self._fill(stream, found[place : place + 1], row)
        return found

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """The open file; None where another file has its name by now."""
        version: Any = self.version
        with contextlib.ExitStack() as closing:
            try:
                stream = closing.enter_context(open(version.path, "rb", buffering=0))
            except FileNotFoundError:
                yield None
                return
            now = Version.of(version.path, os.fstat(stream.fileno()))
            if now.number != version.number and now.machine == version.machine:
                yield None
                return
            yield stream
            # Read first, asked afterwards: what was written in between would be mixed in.
            if not Version.of(version.path, os.fstat(stream.fileno())).is_of(version):
                raise _changed(version.path)

    def _fill(self, stream: IO[bytes], found: np.ndarray, row: int) -> None:
        """Rows from ``row`` on; a file that ends before is told."""
        room = memoryview(found.reshape(-1).view(np.uint8).data)
        stream.seek(self.offset + row * self.strides[0])
        while len(room):
            got = stream.readinto(room)  # type: ignore[attr-defined]
            if not got:
                raise _changed(self.version.path)  # type: ignore[union-attr]
            room = room[got:]


def _plainly(options: dict[str, Any]) -> bool:
    """Whether a reduction of blocks of rows, reduced again, is that of all rows."""
    others = {name: v for name, v in options.items() if name not in ("axis", "dtype")}
    over_rows = options.get("axis", 0) in (0, None)
    return over_rows and others in ({}, {"keepdims": False}, {"keepdims": False, "where": True})


def _changed(path: str) -> OSError:
    return OSError(errno.ESTALE, "the file was changed while it was being read", path)


def map_file(
    version: Version, dtype: Any, shape: tuple[int, ...], order: Any, offset: int
) -> np.ndarray:
    """A table that lies in a file of this version, to be read when it is used."""
    if 0 in shape or dtype.itemsize == 0:  # nothing to map
        return np.empty(shape, dtype)
    with open(version.path, "rb") as stream:
        version.check_same(stream.fileno())
        found = FileRows(stream, dtype=dtype, shape=shape, order=order, mode="r", offset=offset)
    if found.flags.c_contiguous and len(shape) == 2:
        found.version = version
    return found


def in_memory(X: Any) -> Any:
    """X, read whole where it is a file that is small; anything else as it is."""
    return X.read() if isinstance(X, FileRows) and X.nbytes <= AT_ONCE else X
