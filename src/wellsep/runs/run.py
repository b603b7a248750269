"""Run: a partition, the space it was made in, or both, and what its arrays may be."""

from __future__ import annotations

import contextlib
import copy
import errno
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import to_numpy, warn_of_distances
from wellsep._checks.labels import NOISE, as_labels, as_vector, merge_noise
from wellsep._files.arrays import Stored, pieces, to_json
from wellsep._text.sentences import count
from wellsep.distances.base import PairSpace
from wellsep.runs.folder_names import check_name
from wellsep.runs.space_files import StoredDistances, digest_space

KINDS = ("labels", "embedding", "ids")
FACTS = ("params", "metadata", "space")  # of a run besides, in files by these names


class Part:
    """Labels, embedding or ids of one run: labels and ids checked now, a space when opened.

    Labels are read once and kept. Another opened array is shared while something refers to it, and
    released afterwards: an open memory map costs a file handle, and a folder may hold thousands of
    runs.
    """

    def __init__(self, kind: str, value: Any, run: str):
        self.kind, self.what = kind, f"{kind} of run {run!r}"
        self._stored: Any = value if isinstance(value, Stored) else None
        self._array: Any = None
        if self._stored is None:
            if kind == "embedding":
                self._array = _read_only(_as_embedding(value, self.what))
            else:
                self._array = _read_only(_as_vector(kind, value, self.what).copy())
        seen: Any = self._array if self._stored is None else self._stored
        _SHAPE[kind](seen, self.what)
        self.shape: tuple[int, ...] = seen.shape
        self.dtype: np.dtype = seen.dtype
        self._shared: Callable[[], Any] | None = None  # a weak reference
        self._checked = False
        if kind != "embedding":
            self.raw()  # a file with bad values is refused while the other runs can be loaded

    def renamed(self, run: str) -> Part:
        other = copy.copy(self)
        other.what = f"{self.kind} of run {run!r}"
        return other

    def open(self) -> Any:
        """The array or space, checked the first time."""
        array = self.raw()
        if self.kind == "embedding" and not self._checked:
            _check_finite(array, self.what)
            self._checked = True
        return array

    def raw(self) -> Any:
        """The array or space, its values unchecked; distances are checked when they are read."""
        if self._array is not None:
            return self._array
        array = None if self._shared is None else self._shared()
        if array is None:
            array = self._read()
            self._shared = weakref.ref(array)
            # The check of distances reads all of them, and labels are asked for again and again.
            if isinstance(array, PairSpace) or self.kind == "labels":
                self._array = array
        else:
            with self._told():
                self._stored.check_whole()
        return array

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise OSError(
                error.errno or errno.EIO,
                f"{self.what} could not be read: {why}. Restore the file and load the runs again.",
            ) from error

    def _read(self) -> Any:
        with self._told():
            array = self._stored.open()
        if tuple(array.shape) != self.shape:
            raise ValueError(
                f"{self.what} had shape {self.shape} when the runs were loaded and has "
                f"{array.shape} now: the file was replaced. Load the runs again."
            )
        if self.kind != "embedding":
            array = _as_vector(self.kind, array, self.what)
        if self.kind == "labels":
            array = np.array(array)  # in memory, where they need no file handle
        return _read_only(array)

    def digest(self) -> str:
        return digest_space(self.open())

    @property
    def coordinates(self) -> bool:
        """Whether an embedding has features, rather than distances."""
        return not isinstance(self._stored or self._array, PairSpace | StoredDistances)

    def look(self, rows: np.ndarray) -> bytes:
        """Some rows of the values: most spaces that differ, differ here."""
        space = self.raw()
        if isinstance(space, PairSpace):
            return space.block(rows, rows).tobytes() if space.complete else b""
        part = space[rows]
        found = part.toarray() if sp.issparse(part) else part
        return np.ascontiguousarray(found).tobytes()

    def __getstate__(self) -> dict[str, Any]:
        # A stored array is opened anew where it travels to.
        array = self._array if self._stored is None else None
        return {**self.__dict__, "_shared": None, "_array": array}


class _Opened:
    """A field given as an array or as something stored, read as an array opened on demand."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    def __get__(self, run: Any, owner: type | None = None) -> Any:
        part = None if run is None else run.__dict__[self.slot]
        return part.open() if isinstance(part, Part) else part

    def __set__(self, run: Any, value: Any) -> None:
        run.__dict__[self.slot] = value


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A partition, the space it was made in, or both, with a name.

    Parameters
    ----------
    name : str
        Any text; unique among runs that are ranked together.
    embedding : array-like, sparse matrix or Distances of shape (n_objects, n_features), optional
        The space. It is not copied. NaN and infinity are refused when it is first opened.
    labels : array-like of shape (n_objects,), optional
        Integers, text or categories; -1, -2 and -3 mark noise. Kept as a read-only NumPy array.
    params, metadata : mapping, optional
        Settings that made the run, and anything else worth keeping: JSON data.
    ids : array-like of shape (n_objects,), optional
        Names of the objects, to check that runs have them in the same order.
    space : str, optional
        Name of the run whose embedding the labels were made in, when this run has none itself.

    Examples
    --------
    >>> from wellsep.runs import Run
    >>> run = Run("k2", [[0.0], [0.1], [5.0]], [0, 0, 1], params={"k": 2})
    >>> run
    Run('k2', 3 objects, space of 1 feature (float64), 2 clusters)
    >>> run.embedding.shape, run.params
    ((3, 1), {'k': 2})
    """

    name: str
    embedding: Any = _Opened()
    labels: Any = _Opened()
    params: Any = None
    metadata: Any = None
    ids: Any = _Opened()
    space: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        known = self.__dict__
        for kind in ("embedding", "labels", "ids"):
            value = known[f"_{kind}"]
            if isinstance(value, Part):
                # A part taken over from another run is named after this run in errors.
                value = value.renamed(self.name)
            elif value is not None:
                value = Part(kind, value, self.name)
            known[f"_{kind}"] = value
        if not (self.has_labels or self.has_embedding):
            raise ValueError(f"run {self.name!r} must have labels or an embedding, got neither.")
        for kind in ("params", "metadata"):
            known[kind] = plain_mapping(known[kind], f"{kind} of run {self.name!r}")
        if self.space is not None:
            check_name(self.space, f"space of run {self.name!r}")
            if self.has_embedding and self.space != self.name:
                raise ValueError(
                    f"space of run {self.name!r} must be left out when the run has an embedding, "
                    f"got {self.space!r}."
                )
        self._check_lengths()

    def _check_lengths(self) -> None:
        sizes = {p.kind: p.shape[0] for p in (self._part(k) for k in KINDS) if p is not None}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{count} in {kind}" for kind, count in sizes.items())
            header = sizes.get("labels", 0) == sizes.get("embedding", 0) + 1
            remedy = "; if a header 0 was read as a label, write the labels under a name"
            raise ValueError(
                f"run {self.name!r} must have the same number of objects throughout, got {listed}"
                f"{remedy if header else ''}."
            )

    def _part(self, kind: str) -> Part | None:
        return self.__dict__[f"_{kind}"]

    @property
    def has_labels(self) -> bool:
        """Whether the run has a partition."""
        return self._part("labels") is not None

    @property
    def has_embedding(self) -> bool:
        """Whether the run has an embedding."""
        return self._part("embedding") is not None

    @property
    def n_objects(self) -> int:
        """Number of objects, known without opening a file."""
        return next(p.shape[0] for p in (self._part(k) for k in KINDS) if p is not None)

    @property
    def n_features(self) -> int | None:
        """Number of columns of the embedding, without opening it; None if it has none."""
        part = self._part("embedding")
        return None if part is None or not part.coordinates else part.shape[1]

    def digest(self) -> str:
        """SHA-256 of the embedding's type, shape and values: equal spaces have equal digests."""
        part = self._part("embedding")
        if part is None:
            raise ValueError(f"run {self.name!r} must have an embedding to be digested, got none.")
        return part.digest()

    def _with(self, **changes: Any) -> Run:
        """A copy that shares what is open; a field of arrays can only be dropped."""
        given = {k: self._part(k) for k in KINDS}
        others = {k: getattr(self, k) for k in ("name", "params", "metadata", "space")}
        return Run(**{**given, **others, **changes})

    def __repr__(self) -> str:
        return (
            f"Run({self.name!r}, {', '.join([count(self.n_objects, 'object'), *pieces_of(self)])})"
        )


_MOST_OBJECTS = 200_000  # clusters are counted up to here: a repr must not take seconds


def plain_mapping(value: Any, what: str) -> dict[str, Any]:
    """A deep copy of a mapping in JSON's own types; ``None`` is empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a mapping, got {type(value).__name__}.")
    return to_json(value, nan="text", name=what)


def _read_only(array: Any) -> Any:
    if isinstance(array, np.ndarray) and array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _check_finite(array: Any, what: str) -> None:
    if isinstance(array, PairSpace) or array.dtype.kind != "f":
        return
    if sp.issparse(array):
        if not np.isfinite(array.data).all():
            raise ValueError(f"{what} must be finite, got NaN or infinity among its entries.")
        return
    start = 0
    for rows in pieces(array):
        bad = ~np.isfinite(rows)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{what} must be finite, got {rows[row, column]} at row {start + row}, "
                f"column {column}; leave this run out or repair it."
            )
        start += len(rows)
    warn_of_distances(array, what)


def _as_embedding(value: Any, what: str) -> Any:
    if isinstance(value, PairSpace):
        return value
    if sp.issparse(value):
        return sp.csr_array(value)
    try:
        array = to_numpy(value, what)
    except ValueError as error:
        raise ValueError(f"{what} must be a table of numbers, got {error}.") from None
    if array.dtype.kind == "O":
        # The check of the dtype reports it.
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array = array.astype(np.float64)
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _as_vector(kind: str, value: Any, what: str) -> np.ndarray:
    array = (as_labels if kind == "labels" else as_vector)(value, what)
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def _check_embedding(array: Any, what: str) -> None:
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(
            f"{what} must be float32, float64 or another real number type, got {array.dtype}."
        )
    if array.ndim != 2 or 0 in array.shape:
        remedy = (
            "; the order is (name, embedding, labels), and a single feature is "
            "embedding.reshape(-1, 1)"
        )
        raise ValueError(
            f"{what} must be a table of objects × features, got shape {array.shape}"
            f"{remedy if array.ndim == 1 else ''}."
        )


def _check_vector(array: Any, what: str) -> None:
    if array.dtype.kind not in "iubfUS":
        raise TypeError(f"{what} must be integers or text, got {array.dtype}.")
    if array.ndim != 1 or 0 in array.shape:
        raise ValueError(f"{what} must be one value per object, got shape {array.shape}.")


_SHAPE = {"embedding": _check_embedding, "labels": _check_vector, "ids": _check_vector}


def pieces_of(run: Run) -> list[str]:
    made = f"made in {run.space!r}" if run.space and not run.has_embedding else ""
    return [piece for piece in (space_in_words(run), clusters_in_words(run), made) if piece]


def space_in_words(run: Run) -> str:
    part = run._part("embedding")
    if part is None:
        return ""
    what = count(part.shape[1], "feature") if part.coordinates else "distances"
    return f"space of {what} ({part.dtype})"


def clusters_in_words(run: Run) -> str:
    if not run.has_labels:
        return ""
    if run.n_objects > _MOST_OBJECTS:
        return "labels"
    try:
        labels = run.labels
    except (OSError, TypeError, ValueError):  # a repr must not raise
        return "labels"
    labels = merge_noise(labels)
    noise = int((labels == NOISE).sum()) if labels.dtype.kind == "i" else 0
    clusters = count(len(np.unique(labels)) - (noise > 0), "cluster")
    return f"{clusters}, {noise:,} noise" if noise else clusters
