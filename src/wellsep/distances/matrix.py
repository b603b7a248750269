"""Distances: a space given by the distances between its objects, checked once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import check_number, check_positions, is_dask, is_frame, to_numpy
from wellsep._text.sentences import shown
from wellsep.distances.base import (
    PRECOMPUTED,
    Facts,
    PairSpace,
    check_condensed,
    check_graph,
    check_matrix,
    count_of,
    precision,
)


class Distances(PairSpace):
    """A space given by distances: objects without coordinates.

    Every function that takes a space takes it in place of X: `score_partitions`, `judge`, `Run`,
    `choose_k`, `KMedoids` … Subsets cut rows and columns together.

    Parameters
    ----------
    values : array-like of shape (n, n) or (n(n−1)/2,), sparse matrix of shape (n, n), or frame
        A square matrix; the condensed list of SciPy's ``pdist`` and R's ``dist``, which is (0, 1),
        (0, 2), …, (1, 2), …; or a sparse graph of neighbours, which is never made dense. An array
        is neither copied nor changed: a memory map stays on disk, float32 stays float32.
    names : sequence of str, optional
        Names of the objects; by default the columns of a frame.
    absent : float, optional
        For a graph: the distance of all pairs that it does not store. Without it, such pairs are
        unknown. An exact graph of neighbours says only that they are no nearer than the farthest
        stored neighbour of either object, which decides no index: all are refused then.

    Raises
    ------
    ValueError
        The matrix is not square, not symmetric, not finite, negative, or not zero on its diagonal.
        Each may fail by a small share of the largest distance, as rounding leaves it: 1e-5, 1e-6
        and 1e-3 of float32, 1e-8, 1e-12 and 1e-8 of float64. Distances are then read as the mean
        of both halves, at least 0, and 0 on the diagonal.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> D = ws.Distances([1.0, 3, 7, 2, 6, 4])  # of the numbers 0, 1, 3, 7
    >>> D
    Distances(4 objects, condensed, float64)
    >>> D.block([0, 1], [2, 3]).tolist()
    [[3.0, 7.0], [2.0, 6.0]]
    >>> round(ws.silhouette_score(D, [0, 0, 0, 1]), 3)
    0.46
    """

    metric = PRECOMPUTED

    def __init__(self, values: Any, *, names: Any = None, absent: float | None = None) -> None:
        self._set(*_opened(values, "values", names, absent))

    @classmethod
    def of_matrix(cls, values: Any, what: str = "X") -> Distances:
        """A matrix that a function was given in place of X, which errors call ``what``."""
        made = cls.__new__(cls)
        made._set(*_opened(values, what, None, None))
        return made

    def _set(self, values: Any, kind: str, names: Any, absent: float | None, facts: Facts) -> None:
        self.values, self.kind, self.absent = values, kind, absent
        self.n = count_of(len(values)) if kind == "condensed" else int(values.shape[0])
        self.names = _check_names(names, self.n)
        self._facts = facts
        self._rows: np.ndarray | None = None  # those of `values` that this space consists of
        self._unit = 1.0

    @property
    def dtype(self) -> np.dtype:
        """float32 where the values are in single precision, else float64."""
        return np.dtype(np.float32 if precision(self.values.dtype) == 4 else np.float64)

    def __repr__(self) -> str:
        kind = {"dense": "square", "condensed": "condensed", "graph": "graph"}[self.kind]
        if self.kind == "graph":
            rest = "unknown" if self.absent is None else f"at {self.absent:g}"
            kind += f" of {self.values.nnz} pairs, absent pairs {rest}"
        return f"Distances({self.n} objects, {kind}, {self.dtype})"

    def block(self, i: Any, j: Any) -> np.ndarray:
        """Distances of some objects to some others: a new array of shape (len(i), len(j)).

        Parameters
        ----------
        i, j : slice or array of int
            Positions of the objects.
        """
        rows, columns = self._places(i), self._places(j)
        table = self._read(rows, columns)
        if self._facts.exact:
            table = np.array(table, dtype=self.dtype)
        else:
            table = np.add(table, self._read(columns, rows).T, dtype=self.dtype)
            table *= table.dtype.type(0.5)
            np.maximum(table, 0, out=table)
            _clear_itself(table, rows, columns)
        if self._unit != 1:
            table *= table.dtype.type(self._unit)
        return table

    def _places(self, at: Any) -> slice | np.ndarray:
        """Positions among the rows of ``values``."""
        if isinstance(at, slice):
            start, stop, step = at.indices(self.n)
            if step == 1 and self._rows is None:
                return slice(start, max(start, stop))
            at = np.arange(start, stop, step)
        else:
            at = np.asarray(at)
            at = np.flatnonzero(at) if at.dtype.kind == "b" else at.astype(np.intp, copy=False)
        return at if self._rows is None else self._rows[at]

    def _read(self, rows: slice | np.ndarray, columns: slice | np.ndarray) -> np.ndarray:
        """A block of the values as they are; it may be a view of them."""
        if self.kind == "condensed":
            return self._read_condensed(_numbers(rows), _numbers(columns))
        if self.kind == "graph":
            return self._read_graph(rows, columns)
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self.values[rows, columns]
        return self.values[rows[:, None], columns]

    def _read_condensed(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        low = np.minimum(rows[:, None], columns).astype(np.int64)
        high = np.maximum(rows[:, None], columns).astype(np.int64)
        total = count_of(len(self.values))
        itself = low == high
        place = np.where(itself, 0, total * low - low * (low + 1) // 2 + high - low - 1)
        table = np.asarray(self.values[place], dtype=self.dtype)
        table[itself] = 0
        return table

    def _read_graph(self, rows: Any, columns: Any) -> np.ndarray:
        if self.absent is None:
            raise ValueError(self.refusal("X"))
        part = self.values[rows, :][:, columns].tocoo()
        table = np.full(part.shape, self.absent, dtype=self.dtype)
        table[part.row, part.col] = part.data
        _clear_itself(table, rows, columns)
        return table

    @property
    def complete(self) -> bool:
        """Whether every pair has a known distance."""
        return self.kind != "graph" or self.absent is not None

    def refusal(self, what: str) -> str:
        """Why nothing can be computed from a graph whose absent pairs are unknown."""
        return (
            f"{what} must have every distance, got a graph of neighbours whose absent pairs are "
            "unknown; give them one distance with Distances(graph, absent=...), or pass the "
            "coordinates that the graph was made from."
        )

    @property
    def is_whole(self) -> bool:
        """Whether this is all of ``values``, in the unit that they have."""
        return self._rows is None and self._unit == 1

    def take(self, rows: Any) -> Distances:
        """The space of some objects: their rows and columns, read from the same values.

        Parameters
        ----------
        rows : array-like of int or bool
            Positions, or a mask.

        Examples
        --------
        >>> import wellsep as ws
        >>> D = ws.Distances([1.0, 3, 7, 2, 6, 4])
        >>> D.take([1, 3]).block([0], [1]).tolist()
        [[6.0]]
        """
        at = check_positions("rows", rows, self.n)
        if not self.complete:
            raise ValueError(self.refusal("a part of the objects"))
        part = self._like()
        part._rows = at if self._rows is None else self._rows[at]
        part.n = len(at)
        part.names = None if self.names is None else tuple(self.names[i] for i in at)
        return part

    def scaled(self, factor: float) -> Distances:
        """The same space in another unit."""
        part = self._like()
        part._unit = self._unit * factor
        return part

    def matrix(self) -> np.ndarray:
        """All distances as one square array, the given one where it can be; refused for a graph."""
        if self.kind == "graph":
            raise ValueError(
                "X must be a matrix of distances for a clusterer that takes no blocks, got a graph "
                "of neighbours, which is never made dense; pass coordinates, or KMedoids."
            )
        whole = self.kind == "dense" and self._facts.exact and self.is_whole
        return self.values if whole and self.values.dtype.kind == "f" else np.asarray(self)

    @property
    def largest(self) -> float:
        """A distance that none exceeds: the largest of all that were given."""
        return self._facts.largest * self._unit

    def _like(self) -> Distances:
        part = Distances.__new__(Distances)
        part.__dict__.update(self.__dict__)
        return part

    def contents(self) -> list[Any]:
        """What tells this space from others: arrays and texts, for a digest."""
        about = f"{self.kind} {self.n} {self.absent} {self._unit}"
        rows = [] if self._rows is None else [self._rows]
        if self.kind == "graph":
            return [about, self.values.data, self.values.indices, self.values.indptr, *rows]
        return [about, self.values, *rows]


def _opened(
    values: Any, what: str, names: Any, absent: float | None
) -> tuple[Any, str, Any, float | None, Facts]:
    if isinstance(values, Distances):
        raise TypeError(f"{what} must be an array, got Distances, which is ready for use.")
    if is_dask(values):
        raise TypeError(
            f"{what} must be in memory or a memory map, got a dask {type(values).__name__}; save "
            "it as .npy and pass numpy.load(file, mmap_mode='r')."
        )
    if sp.issparse(values):
        known = None if absent is None else check_number("absent", absent, 0.0)
        graph = check_graph(values, what)
        top = max(float(graph.data.max(initial=0)), known or 0.0)
        return graph, "graph", names, known, Facts(True, top)
    if absent is not None:
        raise ValueError(
            f"absent must be None for a matrix that has every distance, got {shown(absent)}."
        )
    if is_frame(values):
        values, found = _from_frame(values, what)
        names = found if names is None else names
    array = to_numpy(values, what)
    if array.dtype.kind == "O":
        # the check of the dtype reports it
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{what} must be real numbers, got an array of type {array.dtype}.")
    if array.ndim == 1:
        return array, "condensed", names, None, check_condensed(array, what)
    facts = check_matrix(array, what)
    if array.shape[0] < 2:
        raise ValueError(f"{what} must have at least 2 objects, got {array.shape[0]}.")
    return array, "dense", names, None, facts


def _from_frame(frame: Any, what: str) -> tuple[np.ndarray, list[str]]:
    """The numbers of a square frame and its names; index and columns must agree in order."""
    columns = [str(c) for c in frame.columns]
    index = getattr(frame, "index", None)
    if index is not None and hasattr(index, "tolist"):
        rows = [str(name) for name in index.tolist()]
        if rows != columns and rows != [str(i) for i in range(len(rows))]:
            at = next((k for k, (a, b) in enumerate(zip(rows, columns, strict=False)) if a != b), 0)
            raise ValueError(
                f"{what} must have its columns in the order of its rows, got {shown(rows[at])} and "
                f"{shown(columns[at])} at position {at}; pass frame.loc[names, names]."
            )
    return to_numpy(frame, what), columns


def _check_names(names: Any, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    single = isinstance(names, str) or (isinstance(names, np.ndarray) and names.ndim == 0)
    if single or not isinstance(names, Sequence | np.ndarray):
        raise TypeError(f"names must be a sequence of texts, got {shown(names)}.")
    found = tuple(str(name) for name in names)
    if len(found) != n:
        raise ValueError(f"names must have one name per object ({n}), got {len(found)}.")
    return found


def _numbers(at: slice | np.ndarray) -> np.ndarray:
    return np.arange(at.start, at.stop) if isinstance(at, slice) else at


def _clear_itself(table: np.ndarray, rows: Any, columns: Any) -> None:
    if isinstance(rows, slice) and isinstance(columns, slice):
        start, stop = max(rows.start, columns.start), min(rows.stop, columns.stop)
        at = np.arange(start, max(start, stop))
        table[at - rows.start, at - columns.start] = 0
    else:
        table[_numbers(rows)[:, None] == _numbers(columns)] = 0
