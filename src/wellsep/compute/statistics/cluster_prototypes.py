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

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_data,
    check_positions,
    device_of,
    in_safe_units,
    to_numpy,
)
from wellsep._threads import row_blocks
from wellsep.compute.data.opening import open_space
from wellsep.compute.data.rows import one_hot
from wellsep.compute.metrics.squares import Rows, pair_squares
from wellsep.compute.statistics import neighbour_graph
from wellsep.compute.statistics.centre_distances import (
    NearestPlanes,
    nearest_planes,
    planes_of_squares,
)
from wellsep.compute.statistics.local_connectivity import (
    TIE,
    Witnesses,
    cluster_witnesses,
    disagreement,
    witnesses_of_distances,
)
from wellsep.compute.statistics.neighbour_graph import (
    NeighbourGraph,
    distances_to,
    find_duplicates,
    nearest_in_blocks,
)
from wellsep.distances.base import PairSpace
from wellsep.partitions import cluster_sizes

_VOTERS = 1 << 15  # rows whose neighbours vote at once
_SPARE = 1  # neighbours looked at beyond t, to see whether the t-th ties
# Where more objects than this tie at the t-th place, these many are heard; fewer where so many
# rows tie that their neighbours would fill more than half a gigabyte.
_MOST, _TABLE = 1 << 10, 1 << 25
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
        device_rows = None if self.device_rows is None else self.device_rows[objects]
        return replace(self, X=self.X[objects], codes=self.codes[objects], device_rows=device_rows)

    def own_radii(self, objects: np.ndarray, code: int) -> np.ndarray:
        """(b,) distances of some objects to one prototype."""
        return distances_to(self.X[objects], self.centers[code])

    def squares_to(self, objects: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """(p,) squared distances of objects to prototypes, pair by pair."""
        return pair_squares(Rows(self.X), objects, Rows(self.centers), codes)

    def witnesses(self, members: np.ndarray, code: int, t: int, workers: int) -> Witnesses:
        """LCD and number of witnesses of the members of one cluster."""
        device_rows = None if self.device_rows is None else self.device_rows[members]
        rows, center = self.X[members], self.centers[code]
        return cluster_witnesses(rows, center, t, workers=workers, device_rows=device_rows)

    def graph(self, k: int, objects: np.ndarray, n_jobs: int | None) -> NeighbourGraph:
        """The k nearest other objects of some objects."""
        X = self.X if self.device_rows is None else self.device_rows
        return NeighbourGraph.of(X, k, rows=objects, n_jobs=n_jobs)

    def crowded(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Objects with at least t others on their spot, and the most frequent cluster there."""
        copies = find_duplicates(self.X, t)
        return copies.rows, _most_frequent(copies.spot, self.codes[copies.rows])

    def planes(self, objects: np.ndarray, codes: np.ndarray) -> NearestPlanes:
        """The nearest planes of some objects, as members of the clusters of these codes."""
        return nearest_planes(self.X[objects], codes, self.centers)

    def nearest(
        self, objects: np.ndarray, among: np.ndarray, t: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(b, t) distances, rising, and positions in ``among`` of the t nearest of these."""
        search = NearestNeighbors(n_neighbors=t, n_jobs=n_jobs).fit(self.X[among])
        distances, positions = search.kneighbors(self.X[objects])
        return distances, positions


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
        return self.squares[objects, codes]

    def witnesses(self, members: np.ndarray, code: int, t: int, workers: int) -> Witnesses:
        def block(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return self.X.block(members[rows], members[columns]).astype(np.float64)

        return witnesses_of_distances(block, self.own_radii(members, code), t)

    def graph(self, k: int, objects: np.ndarray, n_jobs: int | None) -> NeighbourGraph:
        return NeighbourGraph.of(self.X, k, rows=objects, n_jobs=n_jobs)

    def crowded(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        # Each object has a spot of its own: where values are missing, b and c may both be at
        # distance 0 from a, and apart from each other.
        every, best = np.arange(self.X.n), np.full(self.X.n, -1)
        members = one_hot(self.codes[None], np.array([self.n_clusters]), None)
        for rows in row_blocks(self.X.n, self.X.n, neighbour_graph.READ):
            same = self.X.block(every[rows], every) == 0
            crowded = every[rows][same.sum(axis=1) > t]
            counts = np.asarray(same[crowded - rows.start].astype(np.float64) @ members)
            codes = self.codes[crowded]
            ahead = counts.max(axis=1, initial=0) > counts[np.arange(len(codes)), codes]
            best[crowded] = np.where(ahead, counts.argmax(axis=1), codes)
        objects = np.flatnonzero(best >= 0)
        return objects, best[objects]

    def planes(self, objects: np.ndarray, codes: np.ndarray) -> NearestPlanes:
        return planes_of_squares(self.squares[objects], codes, self.gaps)

    def nearest(
        self, objects: np.ndarray, among: np.ndarray, t: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        positions, distances = nearest_in_blocks(
            lambda rows: self.X.block(objects[rows], among), len(objects), len(among), t
        )
        return distances, positions


Around: TypeAlias = RowsAround | DistancesAround


def open_around(
    X: Any, classes: np.ndarray, codes: np.ndarray, centers: Any
) -> tuple[Around, float]:
    """Objects around the given prototypes or the means of their clusters; and the unit of both."""
    if not len(classes):
        raise UndefinedIndex("labels must hold at least one cluster, got noise (-1) only.")
    if isinstance(X, PairSpace):
        space = open_space(X)
        if centers is None:
            return _around_means(space.X, codes, len(classes)), space.unit
        medoids = _by_class(_medoids(centers, X.n), classes)
        to_medoids = space.X.block(np.arange(X.n), medoids).astype(np.float64)
        return DistancesAround(space.X, codes, to_medoids**2, to_medoids[medoids]), space.unit
    data, unit = in_safe_units(X)
    rows = to_numpy(data).astype(np.float64, copy=False)
    device_rows = None if device_of(data) is None else data
    if centers is None:
        return RowsAround(rows, codes, _means(rows, codes, len(classes)), device_rows), unit
    table = to_numpy(check_data(centers, name="centers")).astype(np.float64) / unit
    if table.shape[1] != rows.shape[1]:
        raise ValueError(f"centers must have {rows.shape[1]} columns like X, got {table.shape[1]}.")
    return RowsAround(rows, codes, _by_class(table, classes), device_rows), unit


def _medoids(centers: Any, n: int) -> np.ndarray:
    """Positions of the objects that are prototypes."""
    medoids = to_numpy(centers, "centers")
    if medoids.ndim != 1 or medoids.dtype.kind not in "iu":
        raise ValueError(
            "centers must be positions of objects where X holds distances, such as KMedoids' "
            f"medoid_indices_, got an array of type {medoids.dtype} and shape {medoids.shape}."
        )
    return check_positions("centers", medoids, n)


def _by_class(centers: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """One prototype per cluster, from as many or from a list that the labels index."""
    if len(centers) == len(classes):
        return centers
    named = classes.dtype.kind in "iu" and classes[0] >= 0 and classes[-1] < len(centers)
    if not named:
        raise ValueError(
            f"centers must have one row per cluster ({len(classes)}), got {len(centers)}."
        )
    return centers[classes]


def _means(X: np.ndarray, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    X, codes = X[codes >= 0], codes[codes >= 0]
    origin = X.mean(axis=0)  # sums about it keep the digits of data far from zero
    sums = np.array([np.bincount(codes, column, n_clusters) for column in (X - origin).T])
    return origin + (sums / np.bincount(codes, minlength=n_clusters)).T


def _around_means(X: PairSpace, codes: np.ndarray, n_clusters: int) -> DistancesAround:
    """Objects around the means of their clusters."""
    members = one_hot(codes[None], np.array([n_clusters]), None)
    sizes = cluster_sizes(codes, n_clusters)
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
    rest: np.ndarray = total - less
    return np.where(rest > floor * ((total if size is None else size) + less), rest, 0.0)


def best_supported(
    around: Around, radii: np.ndarray, n_neighbors: int, *, n_jobs: int | None = None
) -> np.ndarray:
    """The cluster that backs each object best; its own where none is better.

    Each of the t nearest objects s stands up for its own cluster, with prototype c, by
    1/2 - LCD(x, c, s), which is 1/2 where s does not lie between x and c (equation 2): x is then
    nearer to c than s is. Objects that tie at the t-th place share what places are left, so the
    row order plays no part. No more neighbours are asked than x's own cluster could provide.
    Where more than t objects coincide the most frequent cluster among them is best.

    A vote of the nearest, not LCD(x, c) against every other cluster: that falls towards 0 for a
    cluster far away, since all its members then lie almost on the line to its prototype.
    """
    codes, n = around.codes, len(around.codes)
    best = codes.copy()
    asked = np.minimum(n_neighbors, np.bincount(codes)[codes] - 1)
    crowded, best[crowded] = around.crowded(n_neighbors)
    rows, k = np.setdiff1d(np.arange(n), crowded), n_neighbors + _SPARE
    while len(rows):
        k = min(k, n - 1)
        most = min(_MOST, n - 1, _TABLE // len(rows))
        graph = around.graph(k, rows, n_jobs)
        place = graph.distances[np.arange(len(rows)), np.maximum(asked[rows], 1) - 1]
        cut = (graph.distances[:, -1] <= place * (1 + TIE)) & (k < most)
        seen = np.flatnonzero(~cut)
        for part in np.array_split(seen, len(seen) * k // (_VOTERS * 16) + 1):
            best[rows[part]] = _vote(
                around, radii, rows[part],
                graph.indices[part], graph.distances[part], asked[rows[part]],
            )  # fmt: skip
        rows, k = rows[cut], min(4 * k, most)
    return best


def _vote(around, radii, rows, neighbour, distance, asked):
    theirs, own = around.codes[neighbour], around.codes[rows]
    to_center = np.broadcast_to(radii[rows][:, None], theirs.shape).copy()
    row, column = np.nonzero(theirs != own[:, None])
    to_center[row, column] = np.sqrt(around.squares_to(rows[row], theirs[row, column]))
    between = (radii[neighbour] <= to_center * (1 + TIE)) & (distance < to_center * (1 - TIE))
    safe = np.where(between, to_center, 1.0)
    terms = disagreement(
        np.where(between, distance, 0.0), np.where(between, radii[neighbour], 1.0), safe
    )
    voice = (0.5 - np.where(between, terms, 0.0)) * _places(distance, asked)
    total = _voice_of_cluster(theirs, voice)
    at_home = np.where(theirs == own[:, None], total, 0.0).max(axis=1)
    # Of clusters that tie the first in code order, so that the row order plays no part.
    top = total.max(axis=1)
    rival = np.where(total >= top[:, None] * (1 - TIE), theirs, around.n_clusters).min(axis=1)
    return np.where(top > at_home * (1 + TIE), rival, own)


def _most_frequent(spot, codes):
    """Of objects with at least t others on their spot: the cluster most of them belong to."""
    if not len(codes):
        return codes
    pairs, pair, counts = np.unique(
        np.stack([spot, codes]), axis=1, return_inverse=True, return_counts=True
    )
    order = np.lexsort((-counts, pairs[0]))
    first = order[np.unique(pairs[0][order], return_index=True)[1]]
    lead, most = pairs[1][first][spot], counts[first][spot]
    return np.where(most > counts[pair.reshape(-1)], lead, codes).astype(codes.dtype)


def _voice_of_cluster(theirs, voice):
    """Total voice of each neighbour's cluster, at that neighbour's column."""
    keys = np.arange(len(theirs))[:, None] * (int(theirs.max(initial=0)) + 1) + theirs
    _, place = np.unique(keys, return_inverse=True)
    place = place.reshape(voice.shape)
    return np.bincount(place.reshape(-1), voice.reshape(-1))[place]


def _places(distance, asked):
    """Weight of each column: 1 inside the t-th distance, a share of the rest at it, 0 beyond."""
    last = distance[np.arange(len(distance)), np.maximum(asked, 1) - 1][:, None]
    inside = distance < last * (1 - TIE)
    edge = ~inside & (distance <= last * (1 + TIE))
    share = (asked - inside.sum(axis=1)) / np.maximum(edge.sum(axis=1), 1)
    return inside * (asked > 0)[:, None] + edge * np.maximum(share, 0.0)[:, None]
