"""Squared distances of two blocks of rows, and the rows that they want."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device
from scipy.spatial.distance import cdist

from wellsep.compute.metrics.row_preparation import Prepared, sparse_usable, square_lengths

# Two scales in one set: a few far rows make ‖x‖² + ‖y‖² − 2xy lose the small distances of all
# others, also far from the mean. So pairs closer than this share of the squared lengths in their
# block, in double and in single precision, are computed again in float64 from the differences of
# the rows as given; other squares are off by at most eps/share, 2e-9 and 6e-4 of themselves. That
# costs one look for the smallest of a block, and where float32 has many close pairs, a product of
# the block in float64.
CLOSE = (1e-7, 1e-4)
AT_ONCE = 1 << 16  # numbers of pairs that are computed again together
ROUNDING = 1e-14  # share of their lengths that sums of products may leave between equal rows
FEW = 16  # where more than one pair of so many is close, the whole block is computed again


@dataclass(frozen=True, eq=False)
class Rows:
    """One block of prepared rows.

    A zero row counts as a row of length one along an axis of its own, which ``X`` does not show:
    ``square`` has it, so that products put such a row at squared distance 2 from all others.
    """

    X: Any  # (b, d); of distances the table of all objects, of which ``at`` names some
    square: Any = None  # (b,) squared lengths; None where the metric needs none
    zero: Any = None  # (b,) bool, or None
    at: Any = None  # place among all rows; equal places mean the same objects
    members: Any = None  # (ΣK, b) weights in every cluster of every partition, side by side
    given: Any = None  # (b, d) what X was made of by a shift that rounds; None: X itself

    @property
    def exact(self) -> Any:
        """(b, d) rows whose differences are those of the objects."""
        return self.X if self.given is None else self.given

    @cached_property
    def left(self) -> np.ndarray:
        """(b, d + 2): −2x, ‖x‖², 1; ``left[i] · right[j]`` is ‖x_i‖² + ‖x_j‖² − 2 x_i·x_j."""
        square = self.square[:, None]
        return np.hstack([-2 * self.X, square, np.ones_like(square)])

    @cached_property
    def right(self) -> np.ndarray:
        """(b, d + 2): x, 1, ‖x‖²."""
        square = self.square[:, None]
        return np.hstack([self.X, np.ones_like(square), square])

    def part(self, rows: np.ndarray | slice) -> Rows:
        """Some of the rows, placed by ``rows``."""
        zero = None if self.zero is None else self.zero[rows]
        given = None if self.given is None else self.given[rows]
        return Rows(self.X[rows], self.square[rows], zero, rows, given=given)

    def take(self, rows: np.ndarray | slice) -> Rows:
        """Some of the rows, with what is known of them."""
        some = self.part(rows)
        some.__dict__.update(left=self.left[rows], right=self.right[rows])
        return some

    def bare(self, rows: np.ndarray | slice) -> Rows:
        """Some of the rows, for differences only."""
        return Rows(self.exact[rows], zero=None if self.zero is None else self.zero[rows])

    def slack(self, other: Rows) -> float:
        """How far a squared distance from the product may lie off."""
        reach = float(self.square.max(initial=0)) + float(other.square.max(initial=0))
        return 2 * (self.X.shape[1] + 4) * np.finfo(np.float64).eps * reach


def same_objects(i: Rows, j: Rows) -> bool:
    return i is j or (isinstance(i.at, slice) and i.at == j.at)


def rows_of(prepared: Any, at: Any = None, xp: Any = np) -> Rows:
    """Prepared rows as one block."""
    X, zero = prepared if isinstance(prepared, Prepared) else (prepared, None)
    return Rows(X, square_lengths(X, zero, xp), zero, at)


def own_axis(i: Rows, j: Rows, xp: Any) -> Any:
    """(b_i, b_j) what zero rows add to squared differences; 0 where there are none."""
    found: Any = 0.0
    if i.zero is not None:
        found = found + xp.astype(i.zero, xp.float64)[:, None]
    if j.zero is not None:
        found = found + xp.astype(j.zero, xp.float64)[None, :]
    return found


def pair_squares(i: Rows, r: np.ndarray | slice, j: Rows, c: np.ndarray) -> np.ndarray:
    """(p,) squared distances of pairs of different objects on the host, from differences."""
    gap = np.asarray(i.exact[r].astype(np.float64, copy=False) - j.exact[c])
    found = np.einsum("ij,ij->i", gap, gap)
    for zero, at in ((i.zero, r), (j.zero, c)):
        if zero is not None:
            found += zero[at]
    return found


def squares(i: Rows, j: Rows, xp: Any) -> Any:
    """‖x‖² + ‖y‖² − 2xy, and exactly 0 from an object to itself or to its equal."""
    if sparse_usable(i.X):
        return sparse_squares(i, j)
    lengths = i.square[:, None] + j.square[None, :]
    table = lengths - 2 * (i.X @ j.X.T)  # rounding may make it negative
    single = table.dtype != xp.float64
    close = table < CLOSE[single] * lengths
    count = int(xp.sum(xp.astype(close, xp.int64)))
    if single and count > close.shape[0] * close.shape[1] // FEW:
        return xp.astype(squares(*_wide(i, j, xp), xp), table.dtype)
    if count:
        table[close] = _from_differences(i.exact, j.exact, close, table.dtype, xp)
    table = xp.where(table > 0, table, xp.zeros_like(table))
    return _clear_diagonal(table, xp) if same_objects(i, j) else table


def sparse_squares(i: Rows, j: Rows) -> np.ndarray:
    """The same of sparse rows with sparse or dense ones: the block alone is dense."""
    lengths = i.square[:, None] + j.square[None, :]
    products, both = i.X @ j.X.T, sparse_usable(j.X)
    table: np.ndarray = lengths - 2 * (products.toarray() if both else products)
    r, c = np.nonzero(table < CLOSE[0] * lengths)
    step = AT_ONCE if both else max(64, AT_ONCE // i.X.shape[1])
    for start in range(0, len(r), step):
        part = slice(start, start + step)
        gap = i.X[r[part]] - j.X[c[part]]
        table[r[part], c[part]] = square_lengths(gap if both else np.asarray(gap), None, np)
    return _clear_diagonal(table, np) if same_objects(i, j) else table


def _from_differences(left: Any, right: Any, pairs: Any, dtype: Any, xp: Any) -> Any:
    """(p,) squared distances of the marked pairs; a zero row is never close to another."""
    r, c = xp.nonzero(pairs)
    found = []
    for start in range(0, r.shape[0], AT_ONCE):
        part = slice(start, min(start + AT_ONCE, r.shape[0]))
        one, other = xp.take(left, r[part], axis=0), xp.take(right, c[part], axis=0)
        gap = xp.astype(one, xp.float64) - xp.astype(other, xp.float64)
        found.append(xp.sum(gap * gap, axis=1))
    return xp.astype(xp.concat(found), dtype)


def _wide(i: Rows, j: Rows, xp: Any) -> tuple[Rows, Rows]:
    """Both blocks in float64 about an origin of their own."""
    origin = xp.mean(xp.astype(i.exact, xp.float64), axis=0)

    def about(rows: Rows) -> Rows:
        X = xp.astype(rows.exact, xp.float64) - origin
        return rows_of(Prepared(X, rows.zero), rows.at, xp)

    left = about(i)
    return left, left if i is j else about(j)


def _clear_diagonal(table: Any, xp: Any) -> Any:
    return table * (1 - xp.eye(table.shape[0], dtype=table.dtype, device=device(table)))


def numpy_squares(i: Rows, j: Rows) -> np.ndarray:
    """[−2x, ‖x‖², 1]·[y, 1, ‖y‖²]: one product instead of a product and two sweeps."""
    if sparse_usable(i.X):
        return sparse_squares(i, j)
    table = i.left @ j.right.T
    itself = same_objects(i, j)
    if itself:
        np.fill_diagonal(table, np.inf)  # out of the way of the search for close pairs
    reach = float(i.square.max(initial=0)) + float(j.square.max(initial=0))  # blocks may be empty
    limit = CLOSE[table.dtype != np.float64] * reach
    if table.min(initial=np.inf) < limit:
        recompute_close(table, i, j, limit)
    if itself:
        np.fill_diagonal(table, 0)
    return table


def recompute_close(table: np.ndarray, i: Rows, j: Rows, limit: float) -> None:
    """Squared distances below ``limit`` again from differences; infinite ones stay."""
    close = table < limit
    if np.count_nonzero(close) > table.size // FEW:
        if table.dtype == np.float64:
            again = cdist(i.exact, j.exact, "sqeuclidean") + own_axis(i, j, np)
        else:
            again = numpy_squares(*_wide(i, j, np))
        np.copyto(table, again, where=np.isfinite(table), casting="same_kind")
        return
    r, c = np.nonzero(close)
    for part in range(0, len(r), 8192):
        some, others = r[part : part + 8192], c[part : part + 8192]
        table[some, others] = pair_squares(i, some, j, others)
