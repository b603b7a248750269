"""What a space of distances is; what a matrix, a list or a graph of distances must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

# Shares of the largest distance by which a matrix may fail to be symmetric, to be at least 0, and
# to have zeros on its diagonal; in single and in double precision. They are what rounding leaves
# of distances that were computed from products.
ASYMMETRIC = {4: 1e-5, 8: 1e-8}
NEGATIVE = {4: 1e-6, 8: 1e-12}
DIAGONAL = {4: 1e-3, 8: 1e-8}
CHECKED_ROWS = 1024  # of a block that is checked at once
QUICK_ROWS = 320  # of a block that stays in cache while it is compared with its mirror image
PRECOMPUTED = "precomputed"  # the metric of a matrix of distances
LEAST = 3  # objects; a smaller square table says nothing of what it is


class PairSpace(ABC):
    """A space without coordinates: its objects are known by their distances, block by block."""

    metric: ClassVar[str]  # its name in the table of metrics
    n: int
    names: tuple[str, ...] | None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.n, self.n)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of a block."""

    @property
    def complete(self) -> bool:
        """Whether every pair has a known distance."""
        return True

    def __len__(self) -> int:
        return self.n

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The square matrix, for a caller that needs all of it."""
        every = slice(0, self.n)
        return self.block(every, every).astype(dtype or self.dtype, copy=False)

    @abstractmethod
    def block(self, i: Any, j: Any) -> np.ndarray:
        """Distances of some objects to some others, a new array of shape (len(i), len(j))."""

    @abstractmethod
    def take(self, rows: Any) -> PairSpace:
        """The space of some objects."""

    @abstractmethod
    def scaled(self, factor: float) -> PairSpace:
        """The same space in another unit."""

    def matrix(self) -> np.ndarray:
        """All distances as one square array, for clusterers that take no blocks."""
        return np.asarray(self)

    @abstractmethod
    def contents(self) -> list[Any]:
        """What tells this space from others: arrays and texts, for a digest."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """A distance that none exceeds."""


class Facts(NamedTuple):
    """What one reading of the distances tells."""

    exact: bool  # symmetric, at least 0 and with zeros on the diagonal to the bit
    largest: float


def looks_like_distances(X: np.ndarray) -> bool:
    """Whether a table is square, symmetric, at least 0, and has zeros on its diagonal."""
    n = X.shape[0]
    if X.ndim != 2 or n != X.shape[1] or n < LEAST or X.dtype.kind != "f":
        return False
    # np.diagonal is a view: coordinates almost always end here.
    if X.diagonal().any() or not (X[0, 1:] > 0).any():
        return False
    slack = ASYMMETRIC[precision(X.dtype)]
    for i, j in block_pairs(n):
        part, across = X[i, j], X[j, i].T
        if part.min() < 0 or np.abs(part - across).max() > slack * max(float(part.max()), 0.0):
            return False
    return True


def check_matrix(M: Any, what: str) -> Facts:
    """Refuse a square array of any library that holds no distances.

    Each pair is compared once, in blocks that stay in cache; NaN and infinity are in the gaps.
    """
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(
            f"{what} must be a square matrix of distances with metric='precomputed', got shape "
            f"{tuple(M.shape)}."
        )
    size = 4 if "32" in str(M.dtype) or "16" in str(M.dtype) else 8
    low = top = apart = 0.0
    finite = True
    with np.errstate(invalid="ignore"):
        for i, j in block_pairs(len(M), QUICK_ROWS if isinstance(M, np.ndarray) else CHECKED_ROWS):
            part = _signed(M[i, j])
            gap = part - _signed(M[j, i].T)
            low, top = min(low, float(part.min())), max(top, float(part.max()))
            largest = float(gap.max())
            finite = finite and largest == largest
            apart = max(apart, largest, -float(gap.min()))
    own = float(abs(M.diagonal()).max()) if len(M) else 0.0
    right = finite and top < np.inf and own <= DIAGONAL[size] * top
    if right and -low <= NEGATIVE[size] * top and apart <= ASYMMETRIC[size] * top:
        return Facts(own == low == apart == 0, max(top, -low))
    return _facts_with_places(M, what, size)


def _facts_with_places(M: Any, what: str, size: int) -> Facts:
    """The facts of a matrix that may be wrong; the error for one that is names the place."""
    top = 0.0
    apart, low = (0.0, (0, 0)), (0.0, (0, 0))
    for i, j in block_pairs(len(M)):
        part, across = _signed(_host(M[i, j])), _signed(_host(M[j, i]).T)
        for table, turned in ((part, False), (across, True)):
            if not np.isfinite(table).all():
                raise _not_finite(table, turned, i, j, what)
            top = max(top, float(np.abs(table).max()))
            low = min(low, _least(table, i, j), key=itemgetter(0))
        apart = min(apart, _least(-np.abs(part - across), i, j), key=itemgetter(0))
    own = np.abs(_host(M.diagonal()))
    if own.max() > DIAGONAL[size] * top:
        raise _wrong_diagonal(M, what, own, top)
    if low[0] < -NEGATIVE[size] * top:
        raise ValueError(
            f"{what} must not have negative distances, got {low[0]} at {low[1]}; turn "
            "similarities into distances."
        )
    if -apart[0] > ASYMMETRIC[size] * top:
        r, c = apart[1]
        raise ValueError(
            f"{what} must be symmetric, got {float(M[r, c])} at ({r}, {c}) and {float(M[c, r])} "
            f"at ({c}, {r}); take (D + D.T) / 2, the larger or the smaller of both, as your "
            "distances mean it."
        )
    return Facts(False, top)


def clean_matrix(M: Any, xp: Any) -> Any:
    """A matrix that passed its check, as it is read: symmetric, at least 0, zero diagonal."""
    table = (M + M.T) / 2
    table = xp.where(table > 0, table, xp.zeros_like(table))
    return table * (1 - xp.eye(M.shape[0], dtype=M.dtype, device=M.device))


def check_condensed(array: np.ndarray, what: str) -> Facts:
    """Refuse a list that is not that of all pairs i < j."""
    n = count_of(len(array))
    if n < 2 or n * (n - 1) // 2 != len(array):
        raise ValueError(
            f"{what} must have n(n−1)/2 entries where it is one-dimensional, as pdist makes them, "
            f"got {len(array)}; {n * (n - 1) // 2} would be of {n} objects."
        )
    low, top = 0.0, 0.0
    for start in range(0, len(array), CHECKED_ROWS**2):
        part = array[start : start + CHECKED_ROWS**2]
        bad = ~np.isfinite(part)
        if bad.any():
            at = int(bad.argmax())
            pair = _pair_of(start + at, n)
            raise ValueError(f"{what} must be finite, got {part[at]} for the objects {pair}.")
        low, top = min(low, float(part.min())), max(top, abs(float(part.max())))
    if low < -NEGATIVE[precision(array.dtype)] * top:
        raise ValueError(f"{what} must not have negative distances, got {low}.")
    return Facts(low == 0, top)


def check_graph(values: Any, what: str) -> sp.csr_array:
    """Both directions of every stored pair. A stored zero is a duplicate, and stays."""
    graph = values.tocoo()
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1] or graph.shape[0] < 2:
        raise ValueError(f"{what} must be a square graph of neighbours, got shape {graph.shape}.")
    if graph.dtype.kind not in "fiub":
        raise TypeError(f"{what} must be real numbers, got {graph.dtype}.")
    n, size = graph.shape[0], precision(graph.dtype)
    data = graph.data.astype(np.float32 if size == 4 else np.float64)
    row, column = graph.coords if hasattr(graph, "coords") else (graph.row, graph.col)
    row, column = row.astype(np.int64), column.astype(np.int64)
    bad = ~np.isfinite(data)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"{what} must be finite, got {data[at]} at {(int(row[at]), int(column[at]))}."
        )
    top = float(np.abs(data).max(initial=0))
    if data.min(initial=0) < -NEGATIVE[size] * top:
        raise ValueError(f"{what} must not have negative distances, got {data.min()}.")
    itself = row == column
    if np.abs(data[itself]).max(initial=0) > DIAGONAL[size] * top:
        at = int(np.flatnonzero(itself)[np.abs(data[itself]).argmax()])
        raise ValueError(f"{what} must have zeros on its diagonal, got {data[at]} at {row[at]}.")
    row, column, data = row[~itself], column[~itself], np.maximum(data[~itself], 0)
    # Each pair by its smaller and larger object; where both directions are stored they agree.
    key = np.minimum(row, column) * n + np.maximum(row, column)
    order = np.argsort(key, kind="stable")
    key, data = key[order], data[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    if len(first):
        low, high = np.minimum.reduceat(data, first), np.maximum.reduceat(data, first)
        if (high - low).max() > ASYMMETRIC[size] * top:
            at = int((high - low).argmax())
            pair = divmod(int(key[first[at]]), n)
            raise ValueError(f"{what} must be symmetric, got {low[at]} and {high[at]} for {pair}.")
        data = (low + high) / 2
    a, b = np.divmod(key[first], n)
    both = (np.concatenate([data, data]), (np.concatenate([a, b]), np.concatenate([b, a])))
    return sp.csr_array(sp.coo_array(both, shape=(n, n)))


def block_pairs(n: int, rows: int = CHECKED_ROWS) -> Iterator[tuple[slice, slice]]:
    """Every pair of blocks once, the first no later than the second."""
    blocks = [slice(s, min(s + rows, n)) for s in range(0, n, rows)]
    return ((a, b) for at, a in enumerate(blocks) for b in blocks[at:])


def count_of(entries: int) -> int:
    """Objects whose condensed list has so many entries, or the next smaller number."""
    return (1 + int(np.sqrt(1 + 8 * entries))) // 2


def _pair_of(place: int, n: int) -> tuple[int, int]:
    i = 0
    while place >= n - 1 - i:
        place -= n - 1 - i
        i += 1
    return i, i + 1 + place


def precision(dtype: Any) -> int:
    """4 or 8 bytes: what a type is read in."""
    return 4 if np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize <= 4 else 8


def _signed(part: Any) -> Any:
    """Numbers of which differences can be taken: unsigned integers and booleans become floats."""
    if isinstance(part, np.ndarray) and part.dtype.kind in "ub":
        return part.astype(np.float64)
    return part


def _host(part: Any) -> np.ndarray:
    return np.asarray(part.cpu() if hasattr(part, "cpu") else part)


def _least(table: np.ndarray, i: slice, j: slice) -> tuple[float, tuple[int, int]]:
    r, c = divmod(int(table.argmin()), table.shape[1])
    return float(table[r, c]), (i.start + r, j.start + c)


def _not_finite(table: np.ndarray, turned: bool, i: slice, j: slice, what: str) -> ValueError:
    r, c = (int(k) for k in np.argwhere(~np.isfinite(table))[0])
    place = (i.start + r, j.start + c)
    place = place[::-1] if turned else place
    return ValueError(
        f"{what} must be finite, got {table[r, c]} for the objects {place}; leave one of them out. "
        "Under cosine an object without any feature has no direction: SciPy makes it NaN."
    )


def _wrong_diagonal(M: Any, what: str, own: np.ndarray, top: float) -> ValueError:
    at = int(own.argmax())
    if all((M[i] <= M[i, i]).all() for i in range(len(M))) and M.min() < M.max():
        remedy = "it looks like similarities: pass 1 − s, or another distance made from them"
    else:
        remedy = "compute the distances in float64, or of centred data"
    return ValueError(
        f"{what} must have zeros on its diagonal, got {float(own[at])} at {at}, so it "
        f"contains non-zero entries, where the largest distance is {top:g}; {remedy}."
    )
