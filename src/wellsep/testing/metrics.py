"""The promises of a metric: distances, blocks, sums without pairs, indices on top of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.compute.data.opening import open_space
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.metrics.table import Metric, find
from wellsep.indices.scoring import score_partitions
from wellsep.testing.compare import make_ugly_rows, need, need_close


def distance_table(X: Any, metric: Any, *, fast: bool = False) -> np.ndarray:
    """(n, n) all distances in three blocks of rows; ``fast`` by the way that NumPy has."""
    space, entry = open_space(X), find(metric)
    n = space.n
    cuts = [slice(0, 4 * n // 9), slice(4 * n // 9, 6 * n // 7), slice(6 * n // 7, n)]
    pairs = Pairs(space, entry)
    rows = [pairs.rows(at) for at in cuts]
    if fast:
        return np.block([[entry.numpy_distances(i, j) for j in rows] for i in rows])
    return np.block([[np.asarray(entry.distances(i, j, space.xp)) for j in rows] for i in rows])


def check_distances(
    found: np.ndarray, expected: np.ndarray, name: Any, tolerance: float = 1e-12
) -> None:
    """Distances are the expected ones, and exactly 0 from an object to itself."""
    need_close(found, expected, f"{name}: distances", rel=tolerance, abs=tolerance)
    need(bool((found.diagonal() == 0).all()), f"{name}: an object must be at 0 from itself.")


def check_sums(metric: Metric, X: Any, distances: np.ndarray) -> None:
    """``sums`` gives what summing over pairs would give."""
    if metric.sums is None:
        return
    space = open_space(X)
    members = np.random.default_rng(3).integers(0, 2, (4, X.shape[0])).astype(float)
    rows = metric.sums.rows(space, slice(0, X.shape[0]))
    totals = members @ rows
    lengths = metric.sums.lengths(space, rows, totals, members.sum(axis=1))
    found = metric.sums.distances(space, rows, totals, lengths)
    itself = members * metric.sums.itself(space, rows)
    sentence = f"{metric.name}: sums without pairs must be sums of distances"
    need_close(found - itself, members @ distances, sentence, rel=1e-9, abs=1e-9)


def check_indices(metric: Any, X: np.ndarray, distances: np.ndarray) -> None:
    """Indices give what they give on the matrix of its distances: one or many, weights, noise."""
    rng = np.random.default_rng(5)
    n = len(X)
    noisy = np.where(rng.random(n) < 0.1, -1, np.arange(n) % 3)
    many = {"four": np.arange(n) % 4, "random": rng.integers(0, 3, n), "noisy": noisy}
    weights = rng.integers(0, 5, n) / 4.0
    cases: tuple[dict[str, Any], ...] = ({}, {"sample_weight": weights})
    for given in cases:
        found = _scores(X, many, metric, given)
        expected = _scores(distances, many, "precomputed", given)
        sentence = f"{metric}: indices must be those of the matrix of distances"
        need_close(found, expected, sentence, rel=1e-8, abs=1e-10)
        alone = [_scores(X, {name: one}, metric, given)[0] for name, one in many.items()]
        need_close(found, alone, f"{metric}: together and alone must be equal", rel=1e-10)


def _scores(X: Any, labels: Any, metric: Any, given: dict[str, Any]) -> np.ndarray:
    names = ("silhouette",) if "sample_weight" in given else ("silhouette", "dunn", "c_index")
    asked = [(index, {"metric": metric}) for index in names]
    return score_partitions(X, labels, asked, **given).values


def check_metric(metric: Any, X: Any = None, distances: Any = None) -> None:
    """Check that a metric keeps its promises.

    Checked are: 0 from an object to itself; no negative distance; symmetry where it is declared;
    blocks; ``finish`` rises; ``sums``; and that silhouette, Dunn and C index, of one partition and
    of many, with noise and with weights, are those of the matrix of distances.

    Parameters
    ----------
    metric : str, Metric or callable
        What an index takes as ``metric=``.
    X : array of shape (n, d), optional
        Rows that the metric takes, at least 30. By default rows with zeros, duplicates and an
        offset.
    distances : array of shape (n, n), optional
        The distances of these rows by other means. By default the metric's own.

    Raises
    ------
    AssertionError
        With the promise that was broken.

    Examples
    --------
    >>> from wellsep.testing import check_metric
    >>> check_metric("cosine")
    """
    entry = find(metric)
    X = make_ugly_rows() if X is None else np.asarray(X)
    if len(X) < 30:
        raise ValueError(f"X must have at least 30 rows, got {len(X)}.")
    found = distance_table(X, metric)
    expected = found if distances is None else np.asarray(distances)
    scale = float(np.abs(expected).max())
    check_distances(found / scale, expected / scale, entry.name)
    need(float(found.min()) >= 0, f"{entry.name}: distances must not be negative.")
    if entry.symmetric:
        need_close(found, found.T, f"{entry.name}: distances must be symmetric", rel=1e-9)
    if entry.finish is not None:
        grown = np.asarray(entry.finish(np.linspace(0, 10, 50), np))
        need(bool((np.diff(grown) > 0).all()), f"{entry.name}: finish must rise.")
        twin = distance_table(X, metric, fast=True)
        check_distances(twin / scale, expected / scale, entry.name)
    check_sums(entry, X, found)
    if entry.sums is not None:
        check_sums(entry, sp.csr_array(X), found)
    if entry.coordinates:
        check_indices(metric, X, expected)
