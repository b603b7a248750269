"""Cosine distances within clusters, summed without pairs and without loss far from the origin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wellsep.compute.clusters import centre_pass, describe_clusters
from wellsep.compute.engines import Space
from wellsep.compute.moments import Asked, Moments, describe_rows
from wellsep.compute.pairs import wide_directions
from wellsep.compute.statistics import Task, Want, provides, want
from wellsep.compute.views import wide


@provides("within_angles")
def provide_within_angles(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """½‖z − z'‖² of the pairs of a cluster add up to ½ m Σ‖z − mean‖², here in float64.

    Directions of data far from the origin differ by less than single precision resolves.
    """
    task = task._replace(space=_directions(task.space), centers=None)
    clusters, within = describe_clusters(task), want("within")
    spread = centre_pass(task, clusters, [within])[within]
    sums = [float(c.mass @ s) / 2 for c, s in zip(clusters, spread, strict=True)]
    return {w: sums for w in wants}


def _directions(space: Space) -> Space:
    """Rows of length one in float64, where X is."""
    if space.kind != "tensor":
        return Space(wide(space, "cosine"), space.xp, space.kind, space.n_jobs)
    return Space(wide_directions(space), space.xp, space.kind, space.n_jobs)


def angle_moments(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    start: int = 0,
) -> Moments:
    """Moments of the directions in every cluster, from one block of rows; they merge."""
    unit = wide(Space(X, np, "numpy", 1), "cosine")
    # Only some blocks have rows of zeros, and with them a column more.
    unit = np.hstack([unit, np.zeros((len(X), X.shape[1] + 1 - unit.shape[1]))])
    asked = Asked(squares=True)
    facts = describe_rows(unit, codes, weights, n_clusters, np.zeros(unit.shape[1]), asked)
    return facts.clusters  # type: ignore[return-value]


def within_angles(moments: Moments, offsets: np.ndarray) -> list[float]:
    """One sum per partition; ``offsets`` are those of their clusters side by side."""
    each = moments.mass * moments.square.sum(axis=1) / 2  # type: ignore[union-attr]
    return [float(each[a:b].sum()) for a, b in pairwise(offsets)]
