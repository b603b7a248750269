"""Reference block functions in array-API code.

A pair block is (X_i, X_j, memberships, weights) → partial statistics that merge by addition,
minimum or maximum. The distances themselves never leave the function, so that a fused kernel or
a task on another machine can take its place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engines import host


class Side(NamedTuple):
    """One block of objects, as a pair block sees it."""

    X: Any  # (b, d); for metric="precomputed" the rows of the matrix
    square: Any  # (b,) squared lengths, or None where the metric needs none
    members: Any  # (ΣK, b) weights in every cluster of every partition, side by side
    rows: slice


class PairPart(NamedTuple):
    """What one pair of blocks adds."""

    sums_i: Any  # (ΣK, b_i) distances from each i to each cluster, summed over j
    sums_j: Any  # (ΣK, b_j) the same seen from j; None if not asked for


# Pairs closer than this share of their squared lengths are computed again from differences, in
# double and in single precision: ‖x‖² + ‖y‖² − 2xy leaves them an error of eps/share.
CLOSE = (1e-7, 1e-4)
AT_ONCE = 1 << 16  # numbers of pairs that are computed again together


def squared_euclidean(i: Side, j: Side, xp: Any) -> Any:
    """‖x‖² + ‖y‖² − 2xy of centred rows, and exactly 0 from an object to itself or to its equal."""
    lengths = i.square[:, None] + j.square[None, :]
    table = lengths - 2 * (i.X @ j.X.T)
    close = table < CLOSE[table.dtype != xp.float64] * lengths
    if bool(xp.any(close)):
        table[close] = _from_differences(i.X, j.X, close, table.dtype, xp)
    table = xp.where(table > 0, table, xp.zeros_like(table))
    return _clear_diagonal(table, xp) if i.rows == j.rows else table


def _from_differences(left: Any, right: Any, pairs: Any, dtype: Any, xp: Any) -> Any:
    """(p,) squared distances of the marked pairs, row by row."""
    r, c = xp.nonzero(pairs)
    found = []
    for start in range(0, r.shape[0], AT_ONCE):
        part = slice(start, min(start + AT_ONCE, r.shape[0]))
        gap = xp.take(left, r[part], axis=0) - xp.take(right, c[part], axis=0)
        found.append(xp.sum(xp.astype(gap, xp.float64) ** 2, axis=1))
    return xp.astype(xp.concat(found), dtype)


def distances(i: Side, j: Side, metric: Any, xp: Any) -> Any:
    if metric == "euclidean":
        return xp.sqrt(squared_euclidean(i, j, xp))
    if metric == "sqeuclidean":
        return squared_euclidean(i, j, xp)
    if metric == "cosine":  # rows have length one: ½‖z−z'‖² keeps what 1 − zz' would cancel
        return squared_euclidean(i, j, xp) / 2
    return general_distances(i, j, metric, xp)


def general_distances(i: Side, j: Side, metric: Any, xp: Any) -> Any:
    if metric == "precomputed":
        return i.X[:, j.rows]
    from sklearn.metrics import pairwise_distances

    table = pairwise_distances(host(i.X), host(j.X), metric=metric)
    if i.rows == j.rows:
        np.fill_diagonal(table, 0)
    return table if xp is np else xp.asarray(table, device=_device(i.X))


def pair_block(i: Side, j: Side, metric: Any, xp: Any, both: bool = True) -> PairPart:
    """Distance sums of one pair of blocks; seen from j too with ``both``."""
    table = distances(i, j, metric, xp)
    sums_i = xp.astype(j.members, table.dtype) @ table.T
    if i.rows == j.rows or not both:
        return PairPart(sums_i, None)
    return PairPart(sums_i, xp.astype(i.members, table.dtype) @ table)


def _clear_diagonal(table: Any, xp: Any) -> Any:
    return table * (1 - xp.eye(table.shape[0], dtype=table.dtype, device=_device(table)))


def _device(array: Any) -> Any:
    from array_api_compat import device

    return device(array)


class Widths(NamedTuple):
    """Silhouette widths of the objects of one block."""

    width: Any  # (b,) silhouette width
    own: Any  # (b,) mean distance to the other members of the own cluster


def widths_from_sums(
    sums: Any, codes: Any, weight: Any, mass: Any, count: Any, singleton: float, xp: Any
) -> Widths:
    """Silhouette widths from the distance sums of b objects to K clusters.

    ``sums`` (K, b) float64; ``codes`` (b,), ``weight`` (b,), ``mass`` (K,), ``count`` (K,).
    """
    clusters = xp.arange(sums.shape[0], dtype=codes.dtype, device=_device(sums))
    member = codes[None, :] == clusters[:, None]  # (K, b)
    inside = xp.astype(member, sums.dtype)
    far = xp.full_like(sums, xp.inf)
    return finish_widths(
        own_sum=xp.sum(inside * sums, axis=0),
        rest=mass @ inside - weight,
        alone=(count @ inside) <= 1,
        other=xp.min(xp.where(member, far, sums / mass[:, None]), axis=0),
        singleton=singleton,
        xp=xp,
    )


def finish_widths(
    own_sum: Any, rest: Any, alone: Any, other: Any, singleton: float, xp: Any
) -> Widths:
    """(b − a)/max(a, b) with ``rest`` the weight of the other members; 0/0 is 0."""
    own = own_sum / xp.where(rest > 0, rest, xp.ones_like(rest))
    top = xp.where(own > other, own, other)
    flat = (top <= 0) | xp.isinf(top)  # all points of both coincide, or there is no other cluster
    width = (other - own) / xp.where(flat, xp.ones_like(top), top)
    width = xp.where(flat, xp.zeros_like(width), width)
    return Widths(xp.where(alone, xp.full_like(width, singleton), width), own)
