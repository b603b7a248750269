"""Is there anything to cluster: the input against clouds without clusters.

Two clouds follow the input. The Gaussian one has its covariance. In the skewed one each column has
the unimodal distribution nearest to its own, and the columns have the input's rank correlations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from wellsep._checks.arrays import check_data, in_safe_units, is_dask, to_numpy
from wellsep._files.records import Result, freeze
from wellsep._threads import effective_jobs, in_rounds
from wellsep.compute.kmeans.lloyd import run, start_centers
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.distances.base import PairSpace
from wellsep.indices import score_partitions
from wellsep.partitions import Partitions, cluster_sizes
from wellsep.spaces.dip import nearest_unimodal
from wellsep.spaces.projections import coordinates, has_columns

# The rule and these constants were declared in experiments/nothing before it was tried.
NOTHING = 0.05  # silhouette above that of the clouds without which there is nothing to cluster
OBJECTS = 500  # of the input at most, and as many of each cloud
WIDE = 4000  # columns from which on the axes of the objects take their place
DRAWS = 2  # of each cloud
KS = 5  # numbers of clusters that are tried; between them the silhouette is interpolated
SMALL = 0.05  # share of the objects; a partition counts if two of its clusters hold as much
STARTS, ITERATIONS = 2, 30  # of k-means


@dataclass(frozen=True, eq=False)
class Structure(Result):
    """How much clearer clusterings of the input are than k-means in clouds without clusters.

    Attributes
    ----------
    gain : float
        The largest silhouette in the input, minus that of k-means with as many clusters in the
        clouds. NaN where no clustering of the input has two clusters of some size.
    best : str
        The clustering that has it: a partition, or "k-means, K = 3" in the input.
    n_clusters : ndarray of shape (T,)
        Numbers of clusters that k-means was asked for.
    of_input, gaussian, skewed : ndarray of shape (T,)
        Silhouettes of k-means in the input, NaN where it cuts off a few objects only, and the
        larger one of two draws of each cloud.
    n_objects : int
        Objects that were looked at.
    """

    gain: float
    best: str
    n_clusters: np.ndarray
    of_input: np.ndarray
    gaussian: np.ndarray
    skewed: np.ndarray
    n_objects: int

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to cluster."""
        return self.gain < NOTHING

    def columns(self) -> dict[str, list[Any]]:
        """Return the silhouettes of k-means in the input and in the clouds, by K."""
        return {
            "clusters": self.n_clusters.tolist(),
            "input": self.of_input.tolist(),
            "gaussian_cloud": self.gaussian.tolist(),
            "skewed_cloud": self.skewed.tolist(),
        }

    def sentences(self) -> Iterator[str]:
        """Say how much clearer the clusterings are, and what that does not show."""
        if np.isnan(self.gain):
            yield "No clustering of the input has two clusters with 5 % of the objects or more."
            return
        yield (
            f"The clearest clustering of the input, {self.best!r}, has a silhouette "
            f"{self.gain:z.2f} above that of k-means in clouds without clusters."
        )
        if not self.is_nothing:
            yield (
                "That is no evidence for clusters: curved data without any can pass this test, "
                "see the guide on the verdict."
            )


def structure_of(X: Any, partitions: Partitions, n_jobs: int | None = None) -> Structure:
    """Compare partitions of the input, and k-means in it, with k-means in two clouds.

    X is rows or distances of the n objects, of any kind, or a function that gives some rows.
    """
    n = partitions.n_objects
    objects = np.sort(np.random.default_rng(0).permutation(n)[:OBJECTS])
    sample = _sample(X, objects)
    given = partitions.take(objects)
    ks = _ks_tried(given.n_clusters, len(objects))
    clouds = [*_gaussian_clouds(sample), *_skewed_clouds(sample)]
    made = _kmeans([sample, *clouds], ks, n_jobs)
    silhouettes = np.stack(
        [_silhouettes(rows, own, n_jobs) for rows, own in zip([sample, *clouds], made, strict=True)]
    )
    gaussian, skewed = np.nan_to_num(silhouettes[1:]).reshape(2, DRAWS, len(ks)).max(axis=1)
    of_input = np.where(_has_two_clusters(made[0]), silhouettes[0], np.nan)
    of_given = np.where(_has_two_clusters(given), _silhouettes(sample, given, n_jobs), np.nan)
    above = np.interp(np.append(ks, given.n_clusters), ks, np.maximum(gaussian, skewed))
    gains = np.append(of_input, of_given) - above
    best = int(np.argmax(np.nan_to_num(gains, nan=-np.inf)))
    names = [*(f"k-means, K = {k}" for k in ks), *given.names]
    return Structure(
        gain=float(gains[best]),
        best="" if np.isnan(gains[best]) else names[best],
        n_clusters=freeze(ks),
        of_input=freeze(of_input),
        gaussian=freeze(gaussian),
        skewed=freeze(skewed),
        n_objects=len(objects),
    )


def _sample(X: Any, objects: np.ndarray) -> np.ndarray:
    """Some objects as centred rows; their axes where there are no columns, or very many."""
    if is_dask(X):
        X = X if hasattr(X, "chunks") else X.to_dask_array(lengths=True)
        X, objects = np.asarray(X[objects]), np.arange(len(objects))
    elif callable(X):
        X, objects = X(objects), np.arange(len(objects))
    if not isinstance(X, PairSpace):
        X = check_data(X, sparse=True)
    if has_columns(X) and X.shape[1] < WIDE:
        rows = to_numpy(X[objects]).astype(np.float64)
    else:
        rows = coordinates(X, objects)
    rows = in_safe_units(rows)[0]
    rows -= rows.mean(axis=0)
    varies = np.ptp(rows, axis=0) > 0
    varies[0] |= not varies.any()
    return rows[:, varies]


def _ks_tried(ks: np.ndarray, n: int) -> np.ndarray:
    """At most five numbers of clusters; clusters hold at least four objects on average."""
    tried = np.unique(np.clip(ks, 2, max(2, n // 4)))
    if len(tried) > KS:
        tried = np.unique(np.geomspace(tried[0], tried[-1], KS).round().astype(np.intp))
    return tried


def _gaussian_clouds(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Clouds with the covariance of centred rows, as large as they are."""
    for draw in range(DRAWS):
        yield _mixed(rows, [draw, 0])


def _skewed_clouds(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Clouds with columns that are unimodal, and the rank correlations of the rows."""
    normal = ndtri((rankdata(rows, axis=0) - 0.5) / len(rows))
    normal /= np.maximum(normal.std(axis=0), np.finfo(float).tiny)
    knots = [nearest_unimodal(column) for column in rows.T]
    for draw in range(DRAWS):
        heights = ndtr(_mixed(normal, [draw, 1]))
        columns = [np.interp(h, *own) for h, own in zip(heights.T, knots, strict=True)]
        yield np.column_stack(columns)


def _mixed(rows: np.ndarray, seed: list[int]) -> np.ndarray:
    """Random mixtures of centred rows: they are Gaussian and have the covariance of the rows."""
    n = len(rows)
    return np.random.default_rng(seed).normal(size=(n, n)) @ rows / np.sqrt(n)


def _kmeans(tables: list[np.ndarray], ks: np.ndarray, n_jobs: int | None) -> list[Partitions]:
    """Partitions of each table by k-means, with each K the better one of two starts."""
    labels = np.zeros((len(tables), len(ks), len(tables[0])), dtype=np.int32)
    points = [prepare(rows) for rows in tables]

    def fit(t: int, i: int) -> None:
        rng = np.random.RandomState(t)
        starts = (start_centers(points[t], ks[i], "k-means++", rng) for _ in range(STARTS))
        ends = [run(points[t], start, max_iter=ITERATIONS) for start in starts]
        best = min(ends, key=lambda end: end.inertia)
        labels[t, i] = points[t].publish(best.labels, np.int32)

    fits = [(t, i) for t in range(len(tables)) for i in range(len(ks))]
    in_rounds(effective_jobs(n_jobs), fit, [fits])
    classes, names = tuple(np.arange(k) for k in ks), tuple(map(str, ks))
    everyone, whole = np.arange(len(tables[0])), np.ones(len(ks))
    return [Partitions(own, classes, names, whole).take(everyone) for own in labels]


def _silhouettes(rows: np.ndarray, partitions: Partitions, n_jobs: int | None) -> np.ndarray:
    values: np.ndarray = score_partitions(rows, partitions, "silhouette", n_jobs=n_jobs).values
    return values[:, 0]


def _has_two_clusters(partitions: Partitions) -> np.ndarray:
    """(M,) whether two clusters hold 5 % of the objects: an outlier is no structure."""
    least = SMALL * partitions.n_objects
    sizes = (cluster_sizes(codes, 2) for codes in partitions.codes)
    return np.array([np.partition(own, -2)[-2] >= least for own in sizes])
