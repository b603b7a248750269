"""Distances within clusters, summed without pairs where they are multiples of squared ones.

No digit is lost far from the origin: what is summed are squared distances to the cluster's mean.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wellsep.compute.clusters import centre_pass, describe_clusters
from wellsep.compute.engines import Space, host
from wellsep.compute.metrics import Metric
from wellsep.compute.moments import Asked, Moments, describe_rows
from wellsep.compute.statistics import Task, Want, want


def provide_within_squares(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    """‖x − y‖² of the pairs of a cluster of mass W add up to W Σ‖x − mean‖², here in float64.

    A zero row, whose axis of its own is in none of the columns, adds 1 for each pair it is in.
    """
    space, partitions = task.space, task.partitions
    X, zero = space.prepared(metric, wide=True)
    rows = task._replace(space=Space(X, space.xp, space.kind, space.n_jobs), centers=None)
    clusters, within = describe_clusters(rows), want("within")
    spread = centre_pass(rows, clusters, [within])[within]
    sums = []
    for codes, c, s in zip(partitions.codes, clusters, spread, strict=True):
        total = float(c.mass @ s)
        if zero is not None:
            at = np.flatnonzero(host(zero) & (codes >= 0))
            weight = task.weights_or_ones()[at]
            total += float(weight @ c.mass[codes[at]] - weight @ weight)
        sums.append(float(metric.finish(total, np)))  # type: ignore[misc]
    return {w: sums for w in wants}


def square_moments(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    metric: Metric,
    origin: np.ndarray,
    start: int = 0,
) -> Moments:
    """Moments of the prepared rows in every cluster, from one block of rows; they merge.

    Two columns more mark zero rows, by 1 and by their weight.
    """
    rows, zero = Space(X, np, "numpy", 1, origin=origin).prepared(metric, wide=True)
    mark = np.zeros(len(X)) if zero is None else zero.astype(np.float64)
    marks = np.column_stack([mark, mark if weights is None else mark * weights])
    table = np.hstack([rows, marks])
    asked = Asked(squares=True)
    facts = describe_rows(table, codes, weights, n_clusters, np.zeros(table.shape[1]), asked)
    return facts.clusters  # type: ignore[return-value]


def within_squares(moments: Moments, offsets: np.ndarray, metric: Metric) -> list[float]:
    """One sum per partition; ``offsets`` are those of their clusters side by side."""
    mass, square = moments.mass, moments.square[:, :-2]  # type: ignore[index]
    zero, twice = (mass[:, None] * moments.mean[:, -2:]).T  # Σ w and Σ w² of zero rows
    each = mass * square.sum(axis=1) + mass * zero - twice
    return [float(metric.finish(each[a:b].sum(), np)) for a, b in pairwise(offsets)]  # type: ignore[misc]
