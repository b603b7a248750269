"""The fused kernels of the GPU: when they may be used, and the rows they want."""

from __future__ import annotations

import functools
import importlib.util
import re
from typing import Any

import numpy as np

from wellsep._checks.arrays import is_torch, kernels_wanted
from wellsep.compute.metrics.table import METRICS, find

OLDEST_TRITON = (3, 6)  # the oldest that the kernels were tested with
FAR, TOO_FAR = 1e3, 1e6  # reach up to which gaps in half precision, and products of halves, do
ROUNDED = 1e-12  # share of squared lengths below which their difference may be rounding
DISTANT = 32.0  # radii of a cluster between it and the origin, up to which products of halves do


def fused_usable(X: Any, metric: Any = "euclidean") -> bool:
    """float32 on a CUDA device, with a Triton of tested version there to compile for it."""
    plain = find(metric) == METRICS["euclidean"]
    if not (kernels_wanted() and is_torch(X) and X.is_cuda and plain):
        return False
    import torch

    return X.dtype == torch.float32 and triton_version() >= OLDEST_TRITON


@functools.cache
def triton_version() -> tuple[int, ...]:
    """Major and minor version of the installed Triton; () without one."""
    if importlib.util.find_spec("triton") is None:
        return ()
    import triton

    return tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])


def about_median(X: Any) -> tuple[Any, float]:
    """(n, d) rows of a tensor about the medians of a sample of them, for the fused kernels.

    One far object would drag the mean away. Beside them the distance of the farthest from there,
    in those of a typical object.
    """
    import torch

    some = slice(None, None, max(1, len(X) // 4096))
    middle = X[some].median(dim=0).values.to(torch.float64)
    rows = (X.to(torch.float64) - middle).to(X.dtype)
    lengths = rows.norm(dim=1)
    farthest = float(lengths.max())
    apart = lengths[some][lengths[some] > 0]  # objects that coincide are typical of nothing
    if len(apart) == 0:
        return rows, np.inf if farthest > 0 else 1.0
    return rows, farthest / float(apart.median())


def cluster_reach(space: Any, codes: Any, n_clusters: np.ndarray) -> float:
    """How far the centre of a cluster lies from the origin at most, in its own radius.

    ``codes`` (M, n) lie beside X. Clusters of one object are left out; a cluster of several that
    coincide is infinitely far from an origin elsewhere.
    """
    xp, X, totals = space.xp, space.X, 0.0
    for rows in space.row_blocks(space.d + int(n_clusters.sum())):
        wide = X[rows].to(xp.float64)
        beside = xp.stack([(wide * wide).sum(dim=1), xp.ones_like(wide[:, 0])], dim=1)
        values = xp.concat([wide, beside], axis=1)
        totals = totals + space.cluster_sums(values, codes[:, rows], n_clusters)
    mass = totals[:, -1].clamp(min=1)
    square, centre = totals[:, -2] / mass, (totals[:, :-2] / mass[:, None]).square().sum(dim=1)
    extent = square - centre
    lost = extent <= ROUNDED * square  # little remains of the difference, or nothing
    alone = (mass <= 1) | (square == 0)
    return float(xp.where(lost, xp.where(alone, 0.0, np.inf), centre / extent).max().sqrt())


def fused_way(
    X: Any, reach: float, distant: float, n_clusters: np.ndarray, weighted: bool
) -> str | None:
    """All partitions "together", or "apart" one after another; None where neither suits.

    An object may lie so far out that rounding would swallow the others' distances, or a cluster so
    far that it would swallow those within (``distant``, from ``cluster_reach``). Apart, a table of
    all clusters, each padded to whole tiles, must fit a quarter of the card.
    """
    if reach > TOO_FAR or distant > DISTANT:
        return None
    if len(n_clusters) > 1 and not weighted and reach <= FAR:
        return "together"
    import torch

    clusters = n_clusters.astype(float)
    padded = (clusters.max() + 1) * (len(X) + 128 * clusters.max())
    needed = 8 * (padded + 2 * clusters.sum() * len(X))
    free = torch.cuda.mem_get_info(X.device)[0] if X.is_cuda else float("inf")
    return "apart" if needed <= free / 4 else None
