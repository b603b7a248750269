"""Prediction strength: how well the clusters of one half of the objects are found in the other.

``choose_k`` lets it vote and ``stability`` reports it; the definition is here alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, to_numpy
from wellsep._threads import budget_bytes, row_blocks
from wellsep.compute.kmeans.prepared_points import Points, prepare
from wellsep.distances.base import PRECOMPUTED, PairSpace
from wellsep.partitions import encode, shared_sizes

FOUND_AGAIN = 0.8  # a partition with a greater strength is found again (Tibshirani & Walther)


class SplitStrengths(NamedTuple):
    """The strength of every cluster of both halves, in the order of their labels."""

    first: np.ndarray
    second: np.ndarray

    @property
    def weakest(self) -> float:
        """The mean of the weakest cluster of each half."""
        return 0.5 * float(self.first.min() + self.second.min())


def draw_halves(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of n objects, drawn at random; the first has ⌊n/2⌋ objects."""
    order = rng.permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def split_strengths(
    X: Any,
    halves: Sequence[np.ndarray],
    labels: Sequence[Any],
    metric: str = "euclidean",
    sample_weight: np.ndarray | None = None,
) -> SplitStrengths:
    """Compare the clusters of two halves of the objects, found apart (Tibshirani & Walther 2005).

    The objects of each half are also given to the nearest mean of the other half's clusters. For
    a cluster with m objects, of which t_q go to the other half's cluster q, the strength is the
    share of its pairs that stay together:

        Σ_q t_q (t_q − 1) / (m (m − 1)),        1 if m < 2

    ``halves`` are the rows of X in each half, ``labels`` their clusters; noise (-1) is in none and
    is not counted. With ``metric="precomputed"`` X holds distances, and the nearest mean is the
    cluster with the least mean distance; of all others but "cosine" means are Euclidean. Weights
    enter the means; pairs are counted without them.

    In the form of R's fpc.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1], [2], [10], [11], [12], [0], [1], [7], [10], [11], [12]])
    >>> halves = np.arange(6), np.arange(6, 12)
    >>> found = split_strengths(X, halves, ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]))
    >>> found.first.tolist(), found.second.round(3).tolist(), round(found.weakest, 3)
    ([1.0, 1.0], [0.333, 1.0], 0.667)
    """
    every = [encode(vector, name="labels").codes[0] for vector in labels]
    counted = [np.asarray(rows)[codes >= 0] for rows, codes in zip(halves, every, strict=True)]
    codes = [vector[vector >= 0] for vector in every]
    if not all(map(len, codes)):
        raise UndefinedIndex("all objects of one half are noise")
    given = [
        nearest_clusters(X, counted[i], counted[1 - i], codes[1 - i], metric, sample_weight)
        for i in range(2)
    ]
    return SplitStrengths(*(_kept_together(codes[i], given[i]) for i in range(2)))


def _kept_together(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each cluster the share of its ordered pairs that another labelling keeps together."""
    table = shared_sizes(codes, others)[1:, 1:]
    sizes = table.sum(axis=1)
    pairs = np.maximum(sizes * (sizes - 1), 1)
    return np.where(sizes < 2, 1.0, (table * (table - 1)).sum(axis=1) / pairs)


def distance_blocks(X: Any, rows: np.ndarray, others: np.ndarray) -> Iterator[np.ndarray]:
    """Distances of some objects to others, in blocks of rows: three fit the memory budget."""
    for block in row_blocks(len(rows), 3 * len(others), int(budget_bytes() / 8)):
        if isinstance(X, PairSpace):
            yield X.block(rows[block], others)
        else:
            yield np.asarray(X[np.ix_(rows[block], others)])


def nearest_clusters(
    X: Any,
    rows: np.ndarray,
    others: np.ndarray,
    codes: np.ndarray,
    metric: str,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """For each row the nearest of the clusters that other rows form; none that has no weight."""
    weights = None if sample_weight is None else sample_weight[others]
    filled = np.unique(codes if weights is None else codes[weights > 0])
    if not len(filled):
        raise UndefinedIndex("no object on one side of the split has weight")
    if metric == PRECOMPUTED:
        members = (codes[:, None] == filled).astype(np.float64)
        members = members if weights is None else members * weights[:, None]
        mass, blocks = members.sum(axis=0), distance_blocks(X, rows, others)
        means = [block.astype(np.float64, copy=False) @ members / mass for block in blocks]
        return filled[np.concatenate(means).argmin(axis=1)]
    metric = metric if metric in Points.METRICS else "euclidean"
    made = prepare(X[others], weights, metric)
    sums, mass = made.label_sums(codes, int(codes.max()) + 1)
    centers = made.frame.means(sums, mass, np.zeros_like(sums))[filled]
    points = prepare(X[rows], None, metric)
    nearest = points.assign(points.frame.enter(made.frame.leave(centers))).first
    return filled[to_numpy(nearest)]
