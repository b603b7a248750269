"""The nearest neighbours of every object, label-free, and the outlier factor read from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from wellsep._checks.arrays import check_count, to_numpy
from wellsep._checks.values import check_jobs
from wellsep._threads import one_openmp_thread, row_blocks
from wellsep.compute.engine.kernel_choice import device_usable
from wellsep.compute.kernels import load
from wellsep.compute.metrics.squares import CLOSE
from wellsep.distances.base import PairSpace

TREE_FEATURES = 14  # beyond so many a kd-tree visits most of its points
_ENTRIES = 1 << 17  # neighbours that are measured at once
_TABLE = 1 << 22  # pairs of a search that one thread makes sooner than many
READ = 1 << 21  # distances that are read at once: 16 MiB of float64


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    """The k nearest other objects of each object; distances rise in every row."""

    indices: np.ndarray  # (n, k)
    distances: np.ndarray  # (n, k) float64

    @classmethod
    def of(
        cls, X: Any, n_neighbors: int, *, rows: np.ndarray | None = None, n_jobs: int | None = None
    ) -> NeighbourGraph:
        """Of all objects, or of ``rows``; never an n × n matrix.

        ``X`` is a float array (n, d), a tensor, or a space of distances.
        """
        check_count("n_neighbors", n_neighbors, 1, len(X) - 1)
        wanted = np.arange(len(X)) if rows is None else np.asarray(rows)
        if isinstance(X, PairSpace):
            every = np.arange(X.n)
            found = _others_in_blocks(lambda part: X.block(part, every), wanted, X.n, n_neighbors)
        elif device_usable(X):
            device = load("wellsep.compute.engine.device.neighbours")
            found = device.neighbours_on_device(X, wanted, n_neighbors)
        elif X.shape[1] <= TREE_FEATURES:
            jobs = effective_n_jobs(check_jobs(n_jobs))
            found = _by_tree(to_numpy(X), wanted, n_neighbors, jobs)
        else:
            found = _by_products(to_numpy(X), wanted, n_neighbors, n_jobs)
        return cls(*found)

    def outlier_factor(self) -> np.ndarray:
        """LOF of every object: mean density of its neighbours over its own (Breunig et al. 2000).

        density(x) is 1 / mean over its neighbours s of max(dist(x, s), dist to the t-th of s).
        """
        farthest = self.distances[:, -1]
        mean_reach = np.maximum(self.distances, farthest[self.indices]).mean(axis=1)
        # Departs from scikit-learn's absolute 1e-10, so that the unit of X does not matter. It
        # counts only where more than t objects coincide.
        typical = farthest.mean()
        if typical == 0:
            return np.ones(len(self.indices))
        density = 1.0 / (mean_reach / typical + 1e-10)
        return density[self.indices].mean(axis=1) / density


def nearest_in_blocks(
    block: Callable[[slice], np.ndarray], n: int, width: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) columns and values of the smallest of each row of a table (n, width).

    ``block(part)`` has some rows of the table.
    """
    indices, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    for part in row_blocks(n, width, READ):
        table = block(part)
        indices[part] = smallest(table, k)
        distances[part] = np.take_along_axis(table, indices[part], axis=1)
    return indices, distances


def _others_in_blocks(
    distances: Callable[[np.ndarray], np.ndarray], wanted: np.ndarray, n: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and distances, where ``distances(rows)`` are those of some objects to all."""

    def block(part: slice) -> np.ndarray:
        table = distances(wanted[part]).astype(np.float64, copy=False)
        table[np.arange(len(table)), wanted[part]] = np.inf
        return table

    return nearest_in_blocks(block, len(wanted), n, k)


def _by_tree(
    X: np.ndarray, wanted: np.ndarray, k: int, workers: int
) -> tuple[np.ndarray, np.ndarray]:
    # A tree cannot part objects that coincide: of each spot k + 1 will do, and who has that many
    # others on its own spot needs no search.
    copies = find_duplicates(X, k + 1)
    kept = np.ones(len(X), dtype=bool)
    kept[copies.rows[copies.place > k]] = False
    members = np.flatnonzero(kept)
    tree = cKDTree(X if kept.all() else X[members])
    indices, distances = np.empty((len(wanted), k), dtype=np.intp), np.zeros((len(wanted), k))
    copy_of = np.full(len(X), -1, dtype=np.intp)
    copy_of[copies.rows] = np.arange(len(copies.rows))
    on_spot = copy_of[wanted] >= 0
    copy = copy_of[wanted[on_spot]]
    place, size = copies.place[copy][:, None], copies.size[copy][:, None]
    # The k that follow on each object's own spot, round and round.
    others = copy[:, None] - place + (place + np.arange(1, k + 1)) % size
    indices[on_spot] = copies.rows[others]
    # In the tree's own order neighbouring queries walk the same leaves.
    rank = np.empty(len(X), dtype=np.intp)
    rank[members[tree.indices]] = np.arange(len(members))
    left = np.flatnonzero(~on_spot)
    left = left[np.argsort(rank[wanted[left]])]
    columns = range(1, k + 2)

    def search(rows: np.ndarray) -> np.ndarray:
        return members[tree.query(X[rows], k=columns, workers=workers)[1]]

    indices[left], distances[left] = _measured(X, wanted[left], k, search)
    return indices, distances


def _by_products(
    X: np.ndarray, wanted: np.ndarray, k: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    # Centred, for the search expands the square of the difference.
    centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    brute = NearestNeighbors(algorithm="brute", n_jobs=n_jobs).fit(centred)

    def search(rows: np.ndarray) -> np.ndarray:
        return brute.kneighbors(centred[rows], k + 1, return_distance=False)

    def search_again(rows: np.ndarray) -> np.ndarray:
        return _others_in_blocks(lambda part: cdist(X[part], X), rows, len(X), k)[0]

    # To start the threads of many cores takes longer than a small search.
    small = len(wanted) * len(X) <= _TABLE
    with one_openmp_thread() if small else nullcontext():
        indices, distances = _measured(X, wanted, k, search)
    # Where neighbours are so near, beside the farthest objects, products may miss some.
    gap, last = X - X.mean(axis=0, dtype=np.float64), distances[:, -1] ** 2
    reach = float(np.einsum("ij,ij->i", gap, gap).max())
    near = np.flatnonzero((last > 0) & (last < 2 * CLOSE[X.dtype != np.float64] * reach))
    indices[near], distances[near] = _measured(X, wanted[near], k, search_again)
    return indices, distances


def _without_self(indices, rows):
    """Drop each row's own object, or, behind more than k duplicates, one of those."""
    self_at = indices == rows[:, None]
    column = np.where(self_at.any(axis=1), self_at.argmax(axis=1), 0)
    keep = np.ones(indices.shape, dtype=bool)
    keep[np.arange(len(indices)), column] = False
    return indices[keep].reshape(len(indices), -1)


def _measured(
    X: np.ndarray, wanted: np.ndarray, k: int, search: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """What a search finds, each row's own object left out, sorted by true distances."""
    indices, distances = np.empty((len(wanted), k), dtype=np.intp), np.empty((len(wanted), k))
    for part in row_blocks(len(wanted), k, _ENTRIES):
        rows = wanted[part]
        others = search(rows)
        others = _without_self(others, rows) if others.shape[1] > k else others
        squares = gap_squares(X, rows, others)
        order = np.argsort(squares, axis=1, kind="stable")
        indices[part] = np.take_along_axis(others, order, axis=1)
        distances[part] = np.sqrt(np.take_along_axis(squares, order, axis=1))
    return indices, distances


def smallest(table: np.ndarray, k: int) -> np.ndarray:
    """(b, k) columns of the k smallest values of each row, the smallest first.

    >>> smallest(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 0.0]]), 2).tolist()
    [[1, 2], [0, 2]]
    """
    if k == table.shape[1]:
        return table.argsort(axis=1, kind="stable")
    columns = np.argpartition(table, k - 1, axis=1)[:, :k]
    columns.sort(axis=1)  # of equals the first in order
    order = np.take_along_axis(table, columns, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def gap_squares(X: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(b, k) float64 squared distances of b rows to k others each, feature by feature."""
    squares = np.zeros(others.shape)
    for column in X.T:
        difference = column[others].astype(np.float64, copy=False) - column[rows, None]
        squares += difference * difference
    return squares


class Duplicates(NamedTuple):
    """Objects on spots with more than so many objects, sorted by spot."""

    rows: np.ndarray  # (c,) objects, in their own order within a spot
    spot: np.ndarray  # (c,) 0, 1, … rising
    place: np.ndarray  # (c,) position within the spot, from 0
    size: np.ndarray  # (c,) objects on the spot


def distances_to(points: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Euclidean distance of each row to one point, equal for equal rows wherever they stand."""
    squares = np.zeros(len(points))
    # Feature by feature: a row-wise reduction may sum in another order at another address.
    for feature, value in enumerate(center):
        difference = points[:, feature] - value
        squares += difference * difference
    return np.sqrt(squares)


def find_duplicates(X: np.ndarray, least: int) -> Duplicates:
    """The objects of every spot that holds more than `least` of them."""
    empty = Duplicates(*np.zeros((4, 0), dtype=np.intp))
    if len(X) <= least:
        return empty
    # Equal rows have equal distances to any point: only rows that share one need a closer look.
    _, key, size = np.unique(distances_to(X, X[0]), return_inverse=True, return_counts=True)
    rows = np.flatnonzero(size[key] > least)
    if not len(rows):
        return empty
    _, spot, size = np.unique(X[rows], axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(spot.reshape(-1), kind="stable")
    rows, size = rows[order[np.repeat(size > least, size)]], size[size > least]
    spot = np.repeat(np.arange(len(size)), size)
    return Duplicates(rows, spot, np.arange(len(rows)) - (np.cumsum(size) - size)[spot], size[spot])
