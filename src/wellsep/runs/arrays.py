"""Arrays of a run, in memory or on disk: what labels, embeddings and ids may be."""

from __future__ import annotations

import contextlib
import copy
import errno
import hashlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks import to_numpy

_ROWS = 1 << 22  # values looked at together when a space is checked


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


class Part:
    """Labels, embedding or ids of one run: checked by shape and type now, by content when opened.

    What is opened is shared for as long as somebody holds it, and let go afterwards: an open
    memory map costs a file handle, and a folder may hold thousands of runs.
    """

    def __init__(self, kind: str, value: Any, run: str):
        self.kind, self.what = kind, f"{kind} of run {run!r}"
        self._stored: Any = value if isinstance(value, Stored) else None
        self._array: Any = None
        if self._stored is None:
            array = _COERCE[kind](value, self.what)
            self._array = _read_only(array if kind == "embedding" else array.copy())
        seen = self._array if self._stored is None else self._stored
        _SHAPE[kind](seen, self.what)
        self.shape, self.dtype = seen.shape, seen.dtype
        self._shared: Callable[[], np.ndarray | None] = lambda: None
        self._checked = False

    def renamed(self, run: str) -> Part:
        other = copy.copy(self)
        other.what = f"{self.kind} of run {run!r}"
        return other

    def open(self) -> np.ndarray:
        """The array, checked the first time."""
        array = self.raw()
        if self.kind == "embedding" and not self._checked:
            _check_finite(array, self.what)
            self._checked = True
        return array

    def raw(self) -> np.ndarray:
        """The array, its values unchecked."""
        if self._array is not None:
            return self._array
        array = self._shared()
        if array is None:
            array = self._read()
            self._shared = weakref.ref(array)
        return array

    def _read(self) -> np.ndarray:
        try:
            array = self._stored.open()
        except OSError as error:
            why = error.strerror or str(error)
            raise OSError(
                error.errno or errno.EIO, f"{self.what} must be readable, got: {why}."
            ) from error
        if array.shape != self.shape:
            raise ValueError(
                f"{self.what} must keep its shape {self.shape}, got {array.shape}; "
                "the file has changed since the runs were loaded."
            )
        if self.kind != "embedding":
            array = _COERCE[self.kind](array, self.what)
        return _read_only(array)

    def digest(self) -> str:
        return array_digest(self.open())

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_shared"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._shared = lambda: None


def array_digest(array: np.ndarray) -> str:
    """SHA-256 of an array's dtype, shape and values in row order, read in pieces."""
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    for rows in _pieces(array):
        digest.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return digest.hexdigest()


def _pieces(array: np.ndarray):
    step = max(1, _ROWS // max(1, int(np.prod(array.shape[1:]))))
    return (array[start : start + step] for start in range(0, len(array), step))


def _read_only(array: np.ndarray) -> np.ndarray:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _check_finite(array: np.ndarray, what: str) -> None:
    if array.dtype.kind != "f":
        return
    start = 0
    for rows in _pieces(array):
        bad = ~np.isfinite(rows)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{what} must be finite, got {rows[row, column]} at row {start + row}, "
                f"column {column}; leave this run out or repair it."
            )
        start += len(rows)


def _as_embedding(value: Any, what: str) -> np.ndarray:
    if sp.issparse(value):
        raise TypeError(f"{what} must be dense, got a sparse matrix; pass its .toarray().")
    try:
        array = to_numpy(value)
    except ValueError as error:
        raise ValueError(f"{what} must be a table of numbers, got {error}.") from None
    if array.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):  # the check of the dtype says it
            array = array.astype(np.float64)
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _as_labels(value: Any, what: str) -> np.ndarray:
    """Integers or text; whole floats become integers, categories their values."""
    array = _as_vector(value, what)
    kind = array.dtype.kind
    if kind == "f":
        _refuse_missing(~np.isfinite(array), what)
        if not (array == np.trunc(array)).all():
            where = int(np.flatnonzero(array != np.trunc(array))[0])
            raise TypeError(f"{what} must be whole numbers or text, got {array[where]} at {where}.")
        return array.astype(np.int64)
    return array.astype(np.int8) if kind == "b" else array


def _as_vector(value: Any, what: str) -> np.ndarray:
    array = value if isinstance(value, np.ndarray) else np.asarray(to_numpy(value))
    if array.dtype.kind in "OT":
        return _from_objects(array.astype(object), what)
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{what} must be UTF-8 text, got other bytes.") from None
    return array


def _from_objects(array: np.ndarray, what: str) -> np.ndarray:
    flat = array.ravel()
    _refuse_missing(np.fromiter((_is_missing(v) for v in flat), bool, flat.size), what)
    if all(isinstance(v, str) for v in flat):
        return array.astype(np.str_)
    if all(isinstance(v, int | np.integer | np.bool_) for v in flat):
        return array.astype(np.int64)
    if all(isinstance(v, int | float | np.number) for v in flat):
        return array.astype(np.float64)
    kinds = ", ".join(sorted({type(v).__name__ for v in flat}))
    raise TypeError(f"{what} must be all text or all integers, got {kinds}; convert to one kind.")


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def _refuse_missing(missing: np.ndarray, what: str) -> None:
    if missing.any():
        where = int(np.flatnonzero(missing)[0])
        remedy = "; label noise with -1" if what.startswith("labels") else ""
        raise ValueError(
            f"{what} must have a value for every object, got none for {int(missing.sum())} "
            f"object(s), first at {where}{remedy}."
        )


def _check_embedding(array: Any, what: str) -> None:
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(
            f"{what} must be float32, float64 or another real number type, got {array.dtype}."
        )
    if array.ndim != 2 or 0 in array.shape:
        remedy = "; a single feature is embedding.reshape(-1, 1)" if array.ndim == 1 else ""
        raise ValueError(
            f"{what} must be a table of objects × features, got shape {array.shape}{remedy}."
        )


def _check_vector(array: Any, what: str) -> None:
    if array.dtype.kind not in "iubfUS":
        raise TypeError(f"{what} must be integers or text, got {array.dtype}.")
    if array.ndim != 1 or 0 in array.shape:
        raise ValueError(f"{what} must be one value per object, got shape {array.shape}.")


_COERCE = {"embedding": _as_embedding, "labels": _as_labels, "ids": _as_labels}
_SHAPE = {"embedding": _check_embedding, "labels": _check_vector, "ids": _check_vector}
