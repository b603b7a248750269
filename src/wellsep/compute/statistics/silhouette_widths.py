"""Silhouette widths from sums of distances, and their totals by cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.rows import host
from wellsep.compute.requests import Block, Want


def widths_from_sums(
    block: Block, sums: Any, mass: np.ndarray, count: np.ndarray, singleton: float
) -> Any:
    """(M, b) silhouette widths beside X, NaN where not counted.

    ``sums`` (ΣK, b) float64 are distances of the rows to the objects of every cluster by weight,
    ``mass`` and ``count`` (ΣK,) the sizes of the clusters among all rows.
    """
    space, xp, n = block.space, block.space.xp, block.codes.shape[1]
    weight = 1.0 if block.weights is None else space.asarray(block.weights)
    row = space.index(np.arange(n))[None, :]
    mass, count = space.asarray(mass), space.asarray(count)
    widths = space.zeros(block.codes.shape)
    for which, clusters in space.partition_batches(block.n_clusters):
        shape = (len(which), int(block.n_clusters[which[0]]))
        first = space.index(np.arange(len(which)))[:, None]
        own = xp.where(block.code_index[which] < 0, 0, block.code_index[which])  # (g, b)
        table, size = sums[clusters].reshape(*shape, n), mass[clusters].reshape(shape)
        means = table / size[:, :, None]
        means[first, own, row] = xp.inf
        widths[space.index(which)] = finish_widths(
            own_sum=table[first, own, row],
            rest=size[first, own] - weight,
            alone=count[clusters].reshape(shape)[first, own] <= 1,
            other=xp.min(means, axis=1),
            singleton=singleton,
            xp=xp,
        )
    if block.codes.min(initial=0) < 0:
        widths[block.code_index < 0] = xp.nan
    return widths


def finish_widths(
    own_sum: Any, rest: Any, alone: Any, other: Any, singleton: float, xp: Any
) -> Any:
    """(b − a)/max(a, b) with ``rest`` the weight of the other members; 0/0 is 0."""
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

    def cut(self, samples: np.ndarray, clusters: slice) -> WidthTotals:
        """Of many samples some, with some of the clusters."""
        return WidthTotals(self.totals[samples, clusters], self.mass[samples, clusters])


def width_totals(
    block: Block, sums: Any, size: Any, w: Want
) -> tuple[np.ndarray, np.ndarray | None]:
    """(ΣK,) widths summed by cluster and weight; (G, ΣK) the same apart by group."""
    space = block.space
    widths = widths_from_sums(block, sums, size.mass, size.counts, w.get("singleton", 0))
    weighed, by_group = (widths, block.code_index, block.n_clusters, block.weights), None
    if block.groups is not None:
        by_group = host(space.partition_sums(*weighed, block.groups, block.n_groups))
    return host(space.partition_sums(*weighed)), by_group
