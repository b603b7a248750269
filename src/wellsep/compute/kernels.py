"""Faster twins of the reference block functions, each beside its ``usable``; one ``choose``.

``WELLSEP_KERNELS=0`` turns all of them off.
"""

from __future__ import annotations

import importlib.util
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from wellsep._checks import is_torch, kernels_wanted
from wellsep.compute import blocks
from wellsep.compute.blocks import CLOSE, PairPart, Side, Widths

PAYS_FROM = 1e10  # additions, about a second; numba takes half of that to load
_additions_so_far = 0.0
FAR, TOO_FAR = 1e3, 1e6  # reach up to which gaps in half precision, and products of halves, do


def numpy_usable(metric: Any, xp: Any) -> bool:
    return xp is np and metric in ("euclidean", "sqeuclidean", "cosine")


def numpy_squared_euclidean(i: Side, j: Side) -> np.ndarray:
    """[−2x, ‖x‖², 1]·[y, 1, ‖y‖²]: one product instead of a product and two sweeps."""
    ones = np.ones((max(len(i.X), len(j.X)), 1), dtype=i.X.dtype)
    left = np.hstack([-2 * i.X, i.square[:, None], ones[: len(i.X)]])
    right = np.hstack([j.X, ones[: len(j.X)], j.square[:, None]])
    table = left @ right.T
    if i.rows == j.rows:
        np.fill_diagonal(table, np.inf)  # out of the way of the search for close pairs
    limit = CLOSE[table.dtype != np.float64] * (float(i.square.max()) + float(j.square.max()))
    if table.min() < limit:
        _recompute_close(table, i, j, limit)
    if i.rows == j.rows:
        np.fill_diagonal(table, 0)
    return table


def _recompute_close(table: np.ndarray, i: Side, j: Side, limit: float) -> None:
    rows, cols = np.nonzero(table < limit)
    if len(rows) > table.size // 16:
        keep = np.isinf(table.diagonal()).all() if i.rows == j.rows else False
        table[:] = cdist(i.X, j.X, "sqeuclidean")
        if keep:
            np.fill_diagonal(table, np.inf)
        return
    for part in range(0, len(rows), 8192):
        r, c = rows[part : part + 8192], cols[part : part + 8192]
        gap = i.X[r].astype(np.float64) - j.X[c]
        table[r, c] = np.einsum("ij,ij->i", gap, gap)


def numpy_distances(i: Side, j: Side, metric: Any) -> np.ndarray:
    table = numpy_squared_euclidean(i, j)
    if metric == "euclidean":
        np.sqrt(table, out=table)
    elif metric == "cosine":
        table *= 0.5
    return table


def numpy_pair_block(i: Side, j: Side, metric: Any, xp: Any, both: bool = True) -> PairPart:
    """Memberships are sparse here: M additions per distance instead of ΣK multiplications."""
    return _sparse_pair_block(i, j, metric, both, operator.matmul)


def numba_usable(n: int, d: int, m: int) -> bool:
    """Whether the compiled sums beat NumPy's by half and, counting earlier work, pay for loading.

    They equal NumPy's bit for bit, so it does not matter when a program changes over.
    """
    if m < 10 + d / 5:  # products and roots are then most of the work
        return False
    return numba_pays(float(n) ** 2 * m)


def numba_pays(additions: float) -> bool:
    """Whether numba is there and, with these additions and all before them, worth loading."""
    global _additions_so_far
    _additions_so_far += additions
    pays = "numba" in sys.modules or _additions_so_far >= PAYS_FROM
    return pays and importlib.util.find_spec("numba") is not None


def numba_pair_block(i: Side, j: Side, metric: Any, xp: Any, both: bool = True) -> PairPart:
    """The additions compiled: they are most of the work for many partitions."""
    from wellsep.compute._members_numba import member_sums

    def add(members: Any, table: np.ndarray) -> np.ndarray:
        return member_sums(members.indptr, members.indices, members.data, table)

    return _sparse_pair_block(i, j, metric, both, add)


def _sparse_pair_block(i: Side, j: Side, metric: Any, both: bool, add: Any) -> PairPart:
    table = numpy_distances(i, j, metric)
    sums_i = add(j.members, np.ascontiguousarray(table.T))
    if i.rows == j.rows or not both:
        return PairPart(sums_i, None)
    return PairPart(sums_i, add(i.members, table))


def numpy_widths(
    sums: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    mass: np.ndarray,
    count: np.ndarray,
    singleton: float,
    xp: Any,
) -> Widths:
    """Picks the own cluster by index instead of masking all K."""
    at = np.arange(len(codes))
    means = sums / mass[:, None]
    means[codes, at] = np.inf
    return blocks.finish_widths(
        own_sum=sums[codes, at],
        rest=mass[codes] - weight,
        alone=count[codes] <= 1,
        other=means.min(axis=0),
        singleton=singleton,
        xp=np,
    )


def fused_usable(X: Any, metric: Any = "euclidean") -> bool:
    """float32 on a CUDA device, with Triton there to compile for it."""
    if not (kernels_wanted() and is_torch(X) and X.is_cuda and metric == "euclidean"):
        return False
    import torch

    return X.dtype == torch.float32 and importlib.util.find_spec("triton") is not None


class AboutMedian(NamedTuple):
    """Rows for the fused kernels, and how far out the farthest lies."""

    rows: Any  # (n, d) about the median: one far object would drag the mean away
    reach: float  # its distance from there, in those of a typical object


def about_median(X: Any) -> AboutMedian:
    """Rows of a tensor about the medians of a sample of them."""
    import torch

    some = slice(None, None, max(1, len(X) // 4096))
    middle = X[some].median(dim=0).values.to(torch.float64)
    rows = (X.to(torch.float64) - middle).to(X.dtype)
    lengths = rows.norm(dim=1)
    farthest = float(lengths.max())
    apart = lengths[some][lengths[some] > 0]  # objects that coincide are typical of nothing
    if len(apart) == 0:
        return AboutMedian(rows, np.inf if farthest > 0 else 1.0)
    return AboutMedian(rows, farthest / float(apart.median()))


def fused_way(X: Any, reach: float, n_clusters: np.ndarray, weighted: bool) -> str | None:
    """All partitions "together", or "apart" one after another; None where neither suits.

    An object may lie so far out that rounding would swallow the others' distances. Apart, a table
    of all clusters, each padded to whole tiles, must fit a quarter of the card.
    """
    if reach > TOO_FAR:
        return None
    if len(n_clusters) > 1 and not weighted and reach <= FAR:
        return "together"
    import torch

    clusters = n_clusters.astype(float)
    padded = (clusters.max() + 1) * (len(X) + 128 * clusters.max())
    needed = 8 * (padded + 2 * clusters.sum() * len(X))
    free = torch.cuda.mem_get_info(X.device)[0] if X.is_cuda else float("inf")
    return "apart" if needed <= free / 4 else None


def fused_strips(
    X: Any, codes: Any, n_clusters: np.ndarray, weights: Any, rows_at_once: int, way: str
) -> Iterator[tuple[slice, Any]]:
    """(rows, (ΣK, b) float64 sums) of centred rows, all partitions together or apart.

    ``codes`` (M, n) lie beside X.
    """
    import torch

    from wellsep.compute import triton_members, triton_pairs

    on_device = codes.to(torch.int64)
    if way == "together":
        yield from triton_members.member_sums(X, on_device, n_clusters, rows_at_once)
        return
    mass = None if weights is None else torch.as_tensor(weights, device=X.device)
    sums = torch.cat(
        [
            triton_pairs.sorted_sums(X, c, mass, int(k))
            for c, k in zip(on_device, n_clusters, strict=True)
        ]
    )
    for start in range(0, len(X), rows_at_once):
        rows = slice(start, min(start + rows_at_once, len(X)))
        yield rows, sums[:, rows]


def sparse_members(metric: Any, xp: Any) -> bool:
    """Whether the chosen pair block takes its memberships as CSR matrices."""
    return kernels_wanted() and numpy_usable(metric, xp)


def choose(metric: Any, xp: Any, size: tuple[int, int, int] = (0, 0, 0)) -> Callable[..., PairPart]:
    """The fastest pair block for n objects with d features in m partitions."""
    if not sparse_members(metric, xp):
        return blocks.pair_block
    return numba_pair_block if numba_usable(*size) else numpy_pair_block


def choose_widths(xp: Any) -> Callable[..., Widths]:
    return numpy_widths if kernels_wanted() and xp is np else blocks.widths_from_sums
