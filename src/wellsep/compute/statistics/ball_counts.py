"""Variances of clusters by column, and how many objects lie near their centres and between them."""

from __future__ import annotations

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.metrics.squares import numpy_squares, rows_of
from wellsep.compute.requests import Want
from wellsep.compute.statistics.centre_distances import View
from wellsep.compute.statistics.cluster_moments import Moments


class Spread(NamedTuple):
    """Means and variances by column; divisor: the mass."""

    centers: np.ndarray  # (K, d) relative to ``Space.shift``
    variances: np.ndarray  # (K, d)
    total: np.ndarray  # (d,) variance of all counted objects

    @classmethod
    def of(cls, clusters: Moments, mean: np.ndarray) -> Spread:
        """From the moments of the clusters of one partition by column, and the mean of all."""
        mass, means, square = clusters
        between = (mass[:, None] * (means - mean) ** 2).sum(axis=0)
        total = (square.sum(axis=0) + between) / mass.sum()  # type: ignore[union-attr]
        return cls(means, square / mass[:, None], total)


class Balls(NamedTuple):
    """Mass of a pair of clusters within the radius of three points."""

    midpoint: np.ndarray  # (K, K) around the midpoint of the two centres
    denser: np.ndarray  # (K, K) around that one of the two centres that has more
    spread: Spread


def radius(spread: Spread) -> float:
    """(1/K)·√Σ‖σ_k‖ with σ_k the variances of cluster k (equation 25 of the ACE paper)."""
    return float(np.sqrt(np.linalg.norm(spread.variances, axis=1).sum()) / len(spread.variances))


def ball_counts(view: View, spreads: list[Spread], w: Want) -> Any:
    """(g, 2, K, K) mass of each cluster near each centre, and near each midpoint; both add up.

    ``view`` is about the centres of the spreads.
    """
    space, xp = view.space, view.space.xp
    limit = space.asarray(np.array([radius(spread) ** 2 for spread in spreads]))[:, None, None]
    inside = operator.lt if w.get("strict") else operator.le
    centers = [rows_of(spread.centers) for spread in spreads]
    apart = space.asarray(np.stack([numpy_squares(points, points) for points in centers]))
    own = view.own_square
    squares = view.changed(view.squares, own)
    near = view.sums(1.0 * inside(squares, limit))
    # ‖x − ½(v + v')‖² = ½‖x − v‖² + ½‖x − v'‖² − ¼‖v − v'‖²
    squares += own[..., None] - view.of_own(apart) / 2
    return xp.stack([near, view.sums(1.0 * inside(squares, 2 * limit))], axis=1)


def balls_from(near: np.ndarray, between: np.ndarray, spread: Spread, w: Want) -> Balls:
    around = np.diagonal(near)[:, None] + (near.T if w.get("density") == "union" else 0.0)
    return Balls(between + between.T, np.maximum(around, around.T) + np.zeros(near.shape), spread)


def warn_of_empty(found: dict[Want, list[Any]]) -> None:
    """Warn of clusters without an object near their centres, once for each kind of balls."""
    for balls in (entries for w, entries in found.items() if w.name == "balls"):
        counts = [b.denser[np.triu_indices(len(b.denser), 1)] for b in balls]
        empty, pairs = [int((c == 0).sum()) for c in counts], sum(map(len, counts))
        if not any(empty):
            continue
        some = f" in {sum(e > 0 for e in empty)} of {len(balls)} partitions"
        warnings.warn(
            f"{sum(empty)} of {pairs} pairs of clusters{some if len(balls) > 1 else ''} have no "
            "object within the counting radius of either centre; their density counts as 0 (S_Dbw "
            "is then little more than the scatter, which is the rule in more than a few "
            "dimensions).",
            UserWarning,
            stacklevel=2,
        )
