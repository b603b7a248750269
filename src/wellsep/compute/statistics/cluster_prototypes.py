"""Objects around the prototypes of their clusters, known by coordinates or by distances alone.

Distances tell how far an object lies from the mean μ of a cluster C that has no coordinates:
‖x − μ‖² = (1/n) Σ_{s∈C} d(x, s)² − w with w = (1/2n²) Σ_{s,s'∈C} d(s, s')², and for two clusters
‖μ − μ'‖² = (1/nn') Σ d(s, s')² − w − w'. This is exact for Euclidean distances. For others it may
come out below 0, and then counts as 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.neighbors import NearestNeighbors

from wellsep.compute.data.rows import one_hot
from wellsep.compute.kmeans.nearest_centres import row_blocks
from wellsep.compute.metrics.table import Rows, pair_squares
from wellsep.compute.statistics import neighbour_graph
from wellsep.compute.statistics.centre_distances import (
    NearestPlanes,
    nearest_planes,
    planes_of_squares,
)
from wellsep.compute.statistics.local_connectivity import (
    Witnesses,
    cluster_witnesses,
    most_frequent,
    witnesses_of_distances,
)
from wellsep.compute.statistics.neighbour_graph import (
    NeighbourGraph,
    distances_to,
    find_duplicates,
    nearest_in_blocks,
)
from wellsep.distances.base import PairSpace

LEFT_OVER = 64  # rounding errors of a sum of squares, of which what is left of it may consist


@dataclass(frozen=True, eq=False)
class RowsAround:
    """Objects with coordinates, their clusters, and the prototypes of the clusters."""

    X: np.ndarray  # (n, d) float64
    codes: np.ndarray  # (n,) cluster of each object; −1 has none
    centers: np.ndarray  # (K, d)
    device_rows: Any = None  # X as a tensor on an accelerator, where it is then searched

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def take(self, objects: np.ndarray) -> RowsAround:
        """Some of the objects."""
        there = None if self.device_rows is None else self.device_rows[objects]
        return replace(self, X=self.X[objects], codes=self.codes[objects], device_rows=there)

    def own_radii(self, objects: np.ndarray, code: int) -> np.ndarray:
        """(b,) distances of some objects to one prototype."""
        return distances_to(self.X[objects], self.centers[code])

    def squares_to(self, objects: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """(p,) squared distances of objects to prototypes, pair by pair."""
        return pair_squares(Rows(self.X), objects, Rows(self.centers), codes)

    def witnesses(self, members: np.ndarray, code: int, t: int, workers: int) -> Witnesses:
        """LCD and number of witnesses of the members of one cluster."""
        there = None if self.device_rows is None else self.device_rows[members]
        rows, center = self.X[members], self.centers[code]
        return cluster_witnesses(rows, center, t, workers=workers, device_rows=there)

    def graph(self, k: int, objects: np.ndarray, n_jobs: int | None) -> NeighbourGraph:
        """The k nearest other objects of some objects."""
        X = self.X if self.device_rows is None else self.device_rows
        return NeighbourGraph.of(X, k, rows=objects, n_jobs=n_jobs)

    def crowded(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Objects with at least t others on their spot, and the most frequent cluster there."""
        copies = find_duplicates(self.X, t)
        return copies.rows, most_frequent(copies.spot, self.codes[copies.rows])

    def planes(self, objects: np.ndarray, codes: np.ndarray) -> NearestPlanes:
        """The nearest planes of some objects, as members of the clusters of these codes."""
        return nearest_planes(self.X[objects], codes, self.centers)

    def nearest(
        self, objects: np.ndarray, among: np.ndarray, t: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(b, t) distances, rising, and positions in ``among`` of the t nearest of these."""
        search = NearestNeighbors(n_neighbors=t, n_jobs=n_jobs).fit(self.X[among])
        distances, found = search.kneighbors(self.X[objects])
        return distances, found


@dataclass(frozen=True, eq=False)
class DistancesAround:
    """Objects without coordinates: their distances, and what follows for the prototypes."""

    X: PairSpace
    codes: np.ndarray
    squares: np.ndarray  # (n, K) squared distances to the prototypes
    gaps: np.ndarray  # (K, K) distances between the prototypes

    @property
    def n_clusters(self) -> int:
        return len(self.gaps)

    def take(self, objects: np.ndarray) -> DistancesAround:
        some = self.X.take(objects)
        return replace(self, X=some, codes=self.codes[objects], squares=self.squares[objects])

    def own_radii(self, objects: np.ndarray, code: int) -> np.ndarray:
        return np.sqrt(self.squares[objects, code])

    def squares_to(self, objects: np.ndarray, codes: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.squares[objects, codes]
        return found

    def witnesses(self, members: np.ndarray, code: int, t: int, workers: int) -> Witnesses:
        def block(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return self.X.block(members[rows], members[columns]).astype(np.float64)

        return witnesses_of_distances(block, self.own_radii(members, code), t)

    def graph(self, k: int, objects: np.ndarray, n_jobs: int | None) -> NeighbourGraph:
        return NeighbourGraph.of(self.X, k, rows=objects, n_jobs=n_jobs)

    def crowded(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        every, objects, best = np.arange(self.X.n), [], []
        members = one_hot(self.codes[None], np.array([self.n_clusters]), None)
        for rows in row_blocks(self.X.n, self.X.n, neighbour_graph.READ):
            same = self.X.block(every[rows], every) == 0
            many = np.flatnonzero(same.sum(axis=1) > t)
            counts = np.asarray(same[many].astype(np.float64) @ members)
            own = self.codes[rows][many]
            lead = counts.argmax(axis=1).astype(own.dtype)
            ahead = counts.max(axis=1, initial=0) > counts[np.arange(len(many)), own]
            objects.append(every[rows][many])
            best.append(np.where(ahead, lead, own))
        return np.concatenate(objects), np.concatenate(best)

    def planes(self, objects: np.ndarray, codes: np.ndarray) -> NearestPlanes:
        return planes_of_squares(self.squares[objects], codes, self.gaps)

    def nearest(
        self, objects: np.ndarray, among: np.ndarray, t: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        found, distances = nearest_in_blocks(
            lambda part: self.X.block(objects[part], among), len(objects), len(among), t
        )
        return distances, found


Around: TypeAlias = RowsAround | DistancesAround


def around_means(X: PairSpace, codes: np.ndarray, n_clusters: int) -> DistancesAround:
    """Objects around the means of their clusters."""
    members = one_hot(codes[None], np.array([n_clusters]), None)
    sizes = np.bincount(codes[codes >= 0], minlength=n_clusters)
    every, means = np.arange(X.n), np.empty((X.n, n_clusters))
    for rows in row_blocks(X.n, X.n, neighbour_graph.READ):
        means[rows] = (X.block(every[rows], every).astype(np.float64) ** 2) @ members / sizes
    across = members.T @ means / sizes[:, None]  # (K, K) mean squared distances of two clusters
    across = (across + across.T) / 2
    half = across.diagonal() / 2
    floor = LEFT_OVER * np.finfo(X.dtype).eps
    squares = _left(means, half, floor)
    gaps = np.sqrt(_left(across - half[:, None], half, floor, across))
    np.fill_diagonal(gaps, 0.0)
    return DistancesAround(X, codes, squares, gaps)


def _left(total: np.ndarray, less: np.ndarray, floor: float, size: Any = None) -> np.ndarray:
    """``total`` − ``less``, and 0 where rounding alone may be left of it."""
    found: np.ndarray = total - less
    return np.where(found > floor * ((total if size is None else size) + less), found, 0.0)


def around_medoids(X: PairSpace, codes: np.ndarray, medoids: np.ndarray) -> DistancesAround:
    """Objects around one object of each cluster."""
    to_medoids = X.block(np.arange(X.n), medoids).astype(np.float64)
    return DistancesAround(X, codes, to_medoids**2, to_medoids[medoids])
