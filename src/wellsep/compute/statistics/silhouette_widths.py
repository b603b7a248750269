"""Reference block functions in array-API code.

A pair block is (rows i, rows j, metric) → partial statistics that merge by addition,
minimum or maximum. The distances themselves never leave the function, so that a fused kernel or
a task on another machine can take its place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.metrics.table import Metric, Rows, same_objects


class PairPart(NamedTuple):
    """What one pair of blocks adds."""

    sums_i: Any  # (ΣK, b_i) distances from each i to each cluster, summed over j
    sums_j: Any  # (ΣK, b_j) the same seen from j; None if not asked for


def pair_block(i: Rows, j: Rows, metric: Metric, xp: Any, both: bool = True) -> PairPart:
    """Distance sums of one pair of blocks; seen from j too with ``both``."""
    table = metric.distances(i, j, xp)
    sums_i = xp.astype(j.members, table.dtype) @ table.T
    if same_objects(i, j) or not both:
        return PairPart(sums_i, None)
    return PairPart(sums_i, xp.astype(i.members, table.dtype) @ table)


def _device(array: Any) -> Any:
    from array_api_compat import device

    return device(array)


def widths_from_sums(
    sums: Any, codes: Any, weight: Any, mass: Any, count: Any, singleton: float, xp: Any
) -> Any:
    """(b,) silhouette widths from the distance sums of b objects to K clusters.

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
) -> Any:
    """(b,) (b − a)/max(a, b) with ``rest`` the weight of the other members; 0/0 is 0."""
    own = own_sum / xp.where(rest > 0, rest, xp.ones_like(rest))
    top = xp.where(own > other, own, other)
    flat = (top <= 0) | xp.isinf(top)  # all points of both coincide, or there is no other cluster
    width = (other - own) / xp.where(flat, xp.ones_like(top), top)
    width = xp.where(flat, xp.zeros_like(width), width)
    return xp.where(alone, xp.full_like(width, singleton), width)


class WidthTotals(NamedTuple):
    """Widths of objects summed by cluster and weight; those of parts of the objects add up.

    Totals and masses of many samples stand above each other, (..., K).
    """

    totals: np.ndarray  # (K,)
    mass: np.ndarray  # (K,)
    by_group: np.ndarray | None = None  # (G, K) totals, where the task names groups

    @classmethod
    def of(
        cls,
        width: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        k: int,
        groups: np.ndarray | None = None,
        n_groups: int = 0,
    ) -> WidthTotals:
        """Of some objects, all (b,); those with a negative code are not counted."""
        counted = codes >= 0
        kept, weight = codes[counted], weights[counted]
        share = weight * width[counted]
        by_group = None
        if groups is not None:
            place = groups[counted] * k + kept
            by_group = np.bincount(place, share, n_groups * k).reshape(n_groups, k)
        return cls(np.bincount(kept, share, k), np.bincount(kept, weight, k), by_group)
