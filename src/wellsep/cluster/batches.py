"""k-means on rows that come in batches: each seen once, or read again in passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import check_choice, check_count, unit_of
from wellsep._threads import own_threads
from wellsep.cluster.cf_means.centre_search import Budget, History
from wellsep.cluster.estimator import CentroidClusterer, FitInput, Starts, check_clusters
from wellsep.compute.kmeans.lloyd import Ended
from wellsep.compute.kmeans.prepared_points import Frame, Points, draw_keys, prepare

LEAST_SAMPLE = 2000  # rows that are searched on, or 40 for each cluster
PER_CLUSTER = 40


def sample_size(n_clusters: int) -> int:
    return max(PER_CLUSTER * n_clusters, LEAST_SAMPLE)


def _batches(X: Any, weights: np.ndarray | None, batch_size: int, frame: Frame) -> Iterator[Points]:
    for start in range(0, X.shape[0], batch_size):
        rows = slice(start, start + batch_size)
        some = None if weights is None else weights[rows]
        yield prepare(X[rows], some, frame.metric, frame, start)


class Stream:
    """What ``partial_fit`` keeps between batches, and a sample of all rows seen so far."""

    def __init__(self, n_clusters: int, random_state: np.random.RandomState):
        self.random_state = random_state
        self.mass = np.zeros(n_clusters)  # weight that each centre has caught
        self.seen = 0.0
        self.searched_at = 0.0
        self.size = sample_size(n_clusters)
        self.keys = np.empty(0)
        self.rows: Any = None

    def add(self, X: Any, weights: np.ndarray | None) -> None:
        """Take rows into the sample, uniform or in proportion to weight."""
        uniform = self.random_state.uniform(size=X.shape[0])
        weights = np.ones(X.shape[0]) if weights is None else weights
        keys, counted = draw_keys(uniform, weights)
        keys = np.concatenate([self.keys, keys])
        smallest = np.sort(np.argsort(keys, kind="stable")[: self.size])
        rows = X[counted]
        if self.rows is not None:
            stack = sp.vstack if sp.issparse(rows) else np.concatenate
            rows = stack([self.rows, rows])
        self.keys = keys[smallest]
        self.rows = (rows.tocsr() if sp.issparse(rows) else rows)[smallest]
        self.seen += float(weights.sum())


class StreamedClusterer(CentroidClusterer):
    """A clusterer with ``batch_size`` and ``partial_fit``."""

    def _solve(self, points: Points, starts: Starts, max_seconds: float | None) -> np.ndarray:
        """Centres of a sample, found in so many seconds where there is a search."""
        return self._find(points, FitInput(None, None, starts)).centers

    def _fit_batches(self, given: FitInput) -> int:
        """Find centres on a sample; then, pass by pass, move each to the mean of its rows.

        Only the sample and one batch are copied, so X may be a memory map.
        """
        X, weights, starts = given.X, given.weights, given.starts
        batch_size = check_count("batch_size", self.batch_size)
        if not (isinstance(X, np.ndarray) or sp.issparse(X)):
            raise TypeError(
                "batch_size must be None unless X is an array, a memory map or a sparse matrix on "
                "the host; a dask collection is read chunk by chunk without it."
            )
        seconds = getattr(self, "max_seconds", None)
        budget = Budget(max_seconds=np.inf if seconds is None else seconds)
        n, n_clusters = X.shape[0], starts.n_clusters
        size, chance = min(sample_size(n_clusters), n), None
        if weights is not None:
            chance = weights / weights.sum()
            size = min(size, int(np.count_nonzero(weights)))
        rows = starts.random_state.choice(n, max(size, 1), replace=False, p=chance)
        sample = prepare(X[np.sort(rows)], None, self.metric)
        centers = self._solve(sample, starts, None if seconds is None else 0.5 * seconds)
        if not sample.frame.directions:  # rows outside the sample may need a larger unit
            unit = unit_of(X)
            shrunk = sample.frame.unit / unit
            frame = sample.frame._replace(unit=unit, spread=sample.frame.spread * shrunk**2)
            sample, centers = replace(sample, frame=frame), centers * shrunk
        frame, history, work = sample.frame, History(), 0.0
        n_iter, still = 0, False
        while n_iter < starts.max_iter and not still:
            n_iter, begun = n_iter + 1, budget.seconds
            sums, mass, cost = np.zeros_like(centers), np.zeros(n_clusters), 0.0
            for points in _batches(X, weights, batch_size, frame):
                nearest = points.assign(centers)
                batch_sums, batch_mass = points.label_sums(nearest.first, n_clusters)
                sums, mass = sums + batch_sums, mass + batch_mass
                weight = np.ones(points.n) if points.weights is None else points.weights
                cost += float(nearest.near @ weight)
            work += float(n) * n_clusters
            history.add(work, budget.seconds, cost)
            moved = frame.means(sums, mass, centers)
            shift = float(((moved - centers) ** 2).sum())
            # The labels take a pass too: no other pass is begun that would make them late.
            late = budget.seconds + 2.0 * (budget.seconds - begun) > budget.max_seconds
            centers, still = moved, late or shift <= starts.tol * frame.spread
        labels, total = np.empty(n, np.int32), 0.0
        for points in _batches(X, weights, batch_size, frame):
            codes = points.assign(centers).first
            labels[points.start : points.start + points.n] = codes
            total += points.inertia(codes, centers)
        history.add(work + float(n) * n_clusters, budget.seconds, total)
        self._publish_batches(sample, Ended(centers, labels, total, n_iter), history, given)
        return len(np.unique(labels))

    def _publish_batches(
        self, sample: Points, ended: Ended, history: History, given: FitInput
    ) -> None:
        CentroidClusterer._publish(self, sample, ended, given)

    @own_threads()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Go on with one batch of rows, each of which is seen once.

        A sample of max(40k, 2000) rows of all seen so far is kept. Whenever twice as many rows
        have been seen as at the last time, centres are found anew on it; in between each centre
        moves to the running mean of what it catches. Where rows can be read again, ``fit`` with
        ``batch_size`` finds lower costs.

        Parameters
        ----------
        X : array of shape (n, d)
            The next rows: NumPy, CSR or a dataframe. The first batch has at least k rows.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each row.

        Returns
        -------
        self
            With ``cluster_centers_``, and ``labels_`` and ``inertia_`` of this batch.
        """
        first = not hasattr(self, "_stream")
        X = self._validated(X, reset=first)
        if not (isinstance(X, np.ndarray) or sp.issparse(X)):
            raise TypeError("X must be an array on the host for partial_fit; call fit instead.")
        weights = self._weights(sample_weight, X)
        starts = self._starts()
        k, metric = starts.n_clusters, check_choice("metric", self.metric, Points.METRICS)
        if first:
            check_clusters(k, X.shape[0])
            self._stream, self.n_samples_seen_ = Stream(k, starts.random_state), 0
        stream = self._stream
        stream.add(X, weights)
        if stream.seen >= 2.0 * stream.searched_at:
            sample = prepare(stream.rows, None, metric)
            starts = starts._replace(random_state=stream.random_state)
            centers = self._solve(sample, starts, getattr(self, "max_seconds", None))
            caught = np.bincount(sample.assign(centers).first, minlength=k)
            stream.mass = caught * stream.seen / max(sample.n, 1)
            stream.searched_at = stream.seen
            moved = sample.frame.leave(centers)
        else:
            # Each centre moves by its share of what it has caught (rate 1/m_j).
            points, centers = self._framed(X, sample_weight)
            sums, mass = points.label_sums(points.assign(centers).first, k)
            sums += stream.mass[:, None] * centers
            stream.mass = stream.mass + mass
            moved = points.frame.leave(points.frame.means(sums, stream.mass, centers))
        self.cluster_centers_ = moved.astype(X.dtype)
        points, centers = self._framed(X, sample_weight)
        self.labels_ = points.assign(centers).first
        self.inertia_ = points.frame.squared(points.inertia(self.labels_, centers))
        self.n_samples_seen_ += X.shape[0]
        return self
