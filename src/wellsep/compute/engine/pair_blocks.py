"""Sums of distances over the clusters of two blocks of rows.

The distances themselves never leave these functions, so that a fused kernel or a task on another
machine can take their place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
