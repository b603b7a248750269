"""What is done with one sample of objects: cluster it or label the others by it, and compare."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from wellsep._checks.arrays import UndefinedIndex
from wellsep._text.sentences import count, shown
from wellsep.cluster.fitting import cut_rows, fit_labels, seeded, seen_inside, weight_params
from wellsep.cluster.k_choice.prediction_strength import (
    distance_blocks,
    nearest_clusters,
    split_strengths,
)
from wellsep.cluster.membership import most_voted
from wellsep.cluster.worker_processes import in_workers
from wellsep.compute.statistics.neighbour_graph import smallest
from wellsep.distances.base import PRECOMPUTED
from wellsep.partitions import best_matches, encode


class Judged(NamedTuple):
    """One sample: a value per cluster, the clusters found, the share of noise found again."""

    values: np.ndarray | None
    n_found: int = 0
    noise_again: float = np.nan
    error: str = ""


class Refit(NamedTuple):
    """A clusterer, and the objects that it clusters anew in parts."""

    model: Any
    X: Any
    pairwise: bool
    weights: np.ndarray | None

    def codes(self, rows: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
        """Codes of the clusters that a fresh copy finds in some objects, and their number."""
        fresh = seeded(clone(self.model, safe=False), seed, where_free=True)
        X = cut_rows(self.X, rows, self.pairwise)
        labels = fit_labels(fresh, X, weight_params(fresh, cut_rows(self.weights, rows))).labels
        partition = encode(labels, n_objects=len(rows), name="labels of the clusterer")
        return partition.codes[0], len(partition.classes[0])


def judge_draw(refit: Refit, codes: np.ndarray, rows: np.ndarray, seed: int) -> Judged:
    """Cluster the drawn objects and compare; a failure is reported, not raised."""
    try:
        found_codes, n_found = refit.codes(rows, seed)
    except Exception as error:  # a clusterer may raise anything
        return Judged(None, error=f"{type(error).__name__}: {shown(str(error))}")
    drawn = codes[rows]
    weights = cut_rows(refit.weights, rows)
    values = best_matches(drawn, [found_codes], int(codes.max()) + 1, weights)[0][:, 0]
    noise = drawn < 0
    again = float((found_codes[noise] < 0).mean()) if noise.any() else np.nan
    return Judged(values, n_found, again)


def judge_stand_in(
    X: Any,
    codes: np.ndarray,
    rows: np.ndarray,
    n_neighbors: int,
    metric: str,
    weights: np.ndarray | None,
) -> Judged:
    """Label the objects that were not drawn by those that were, and compare on the former alone."""
    drawn = np.zeros(len(codes), dtype=bool)
    drawn[rows] = True
    drawn, others = np.flatnonzero(drawn & (codes >= 0)), np.flatnonzero(~drawn & (codes >= 0))
    if not len(drawn) or not len(others):
        return Judged(None, error="no object with a label is left on one side of the split")
    present, labels = np.unique(codes[drawn], return_inverse=True)
    k = min(n_neighbors, len(drawn))
    if not n_neighbors:
        try:
            given = nearest_clusters(X, others, drawn, labels, metric, weights)
        except UndefinedIndex as error:
            return Judged(None, error=str(error))
    else:
        if metric == PRECOMPUTED:
            blocks = distance_blocks(X, others, drawn)
            neighbours = np.concatenate([smallest(block, k) for block in blocks])
        else:
            search = NearestNeighbors(n_neighbors=k, metric=metric).fit(X[drawn])
            neighbours = search.kneighbors(X[others], return_distance=False)
        given = most_voted(labels[neighbours])[0]
    # A label keeps its name here; a cluster whose objects were all drawn has none to judge it by.
    values = own_jaccards(
        codes[others], present[given], int(codes.max()) + 1, cut_rows(weights, others)
    )
    return Judged(values, len(np.unique(given)))


def strengths_of(
    refit: Refit,
    metric: str,
    halves: list[tuple[np.ndarray, np.ndarray]],
    seeds: np.ndarray,
    n_jobs: int | None,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Prediction strength of every split, and a note on those that have none."""
    if refit.pairwise and (metric != PRECOMPUTED or sp.issparse(refit.X)):
        what = "similarities" if metric != PRECOMPUTED else "some of the distances"
        return np.empty(0), (
            f"Prediction strength was not computed: X holds {what}, and it needs coordinates or "
            "all distances.",
        )
    space = seen_inside(refit.model, refit.X)  # where means are taken
    splits = zip(halves, seeds.reshape(-1, 2), strict=True)
    tasks = [(refit, space, metric, rows, pair) for rows, pair in splits]
    of_splits = in_workers(_strength_of, tasks, n_jobs)
    failed = [error for error in of_splits if isinstance(error, str)]
    notes = [
        f"{len(failed)} of {count(len(of_splits), 'split')} for the prediction strength failed and "
        f"are left out; the first: {first}"
        for first in failed[:1]
    ]
    return np.array([s for s in of_splits if not isinstance(s, str)], dtype=float), tuple(notes)


def _strength_of(
    refit: Refit, space: Any, metric: str, halves: Any, seeds: np.ndarray
) -> float | str:
    try:
        labels = [refit.codes(rows, int(seed))[0] for rows, seed in zip(halves, seeds, strict=True)]
    except Exception as error:  # a clusterer may raise anything
        return f"{type(error).__name__}: {shown(str(error))}"
    try:
        return split_strengths(space, halves, labels, metric, refit.weights).weakest
    except UndefinedIndex as error:
        return str(error)


def draw_rows(n: int, size: int | None, rng: np.random.RandomState) -> np.ndarray:
    """Rows of one sample: a bootstrap with its repeats dropped, or so many without replacement."""
    if size is None:
        return np.unique(rng.randint(n, size=n))
    return np.sort(rng.choice(n, size, replace=False))


def own_jaccards(
    first: np.ndarray, second: np.ndarray, n_clusters: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """(n_clusters,) Jaccard similarity of the objects that have each code in both vectors.

    NaN where the first has no object of that code.

    >>> own_jaccards(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 3).round(3).tolist()
    [0.5, 0.667, nan]
    """
    sizes = np.bincount(first, weights, n_clusters)
    others = np.bincount(second, weights, n_clusters)
    same = first == second
    common = np.bincount(first[same], None if weights is None else weights[same], n_clusters)
    union = sizes + others - common
    return np.divide(common, union, out=np.full(n_clusters, np.nan), where=sizes > 0)
