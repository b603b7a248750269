"""What both agglomerations share: the nearest-neighbour graph and the greedy merge loop."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from wellsep._checks.arrays import check_count, check_data, to_numpy
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph
from wellsep.partitions import encode


def gaussian_weights(indices: np.ndarray, distances: np.ndarray) -> sp.csr_array:
    """Directed graph W_ij = exp(−d_ij²/σ²) over each row's neighbours, σ² the mean of those d²."""
    n, k = indices.shape
    squared = distances**2
    sigma = float(squared.mean())
    # All neighbours are duplicates: every weight is exp(0).
    weights = np.exp(-squared / (sigma if sigma > 0 else 1.0))
    pointers = np.arange(0, n * k + 1, k)
    return sp.csr_array((weights.ravel(), indices.ravel(), pointers), shape=(n, n))


def nearest_chains(X: Any) -> np.ndarray:
    """Clusters that join every object to its nearest neighbour, numbered by first member."""
    return chains(NeighbourGraph.of(X, 1).indices)


def chains(neighbours: np.ndarray) -> np.ndarray:
    n = len(neighbours)
    edges = sp.csr_array((np.ones(n), (np.arange(n), neighbours[:, 0])), shape=(n, n))
    return renumbered(connected_components(edges, directed=False)[1])


def renumbered(labels: np.ndarray) -> np.ndarray:
    """Labels as 0, 1, 2 … in order of first appearance."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[codes]


class _Best:
    """Each cluster's best partners and the score they give it."""

    def __init__(self, rows: list[dict[int, float]], n_local: int) -> None:
        self.rows = rows
        self.n_local = n_local
        self.names = list(range(len(rows)))  # the lowest starting number inside, for ties
        self.top: list[list[tuple[float, int, int]]] = [[] for _ in rows]
        self.version = [0] * len(rows)
        self.heap: list[tuple[float, int, int, int]] = []
        for i in range(len(rows)):
            self.refresh(i)

    def refresh(self, i: int) -> None:
        """Look for the best partners of cluster i anew."""
        names = self.names
        partners = ((value, -names[j], j) for j, value in self.rows[i].items())
        top = self.top[i] = heapq.nlargest(self.n_local, partners)
        self.version[i] += 1
        if top:
            score = top[0][0]
            if self.n_local > 1:
                # A₁ + Σ_{k=2..c} (A₁ − A_k)/(c − 1); a missing partner has affinity 0
                score += top[0][0] - sum(value for value, _, _ in top[1:]) / (self.n_local - 1)
            heapq.heappush(self.heap, (-score, names[i], i, self.version[i]))

    def update(self, i: int, gone: int, kept: int, value: float | None) -> None:
        """Replace cluster i's partners `gone` and `kept`, now one; None where the affinity is 0."""
        row, top = self.rows[i], self.top[i]
        row.pop(gone, None)
        row.pop(kept, None)
        if value is not None:
            row[kept] = value
        if (
            value is None
            or len(top) < self.n_local
            or value >= top[-1][0]
            or any(partner in (gone, kept) for _, _, partner in top)
        ):
            self.refresh(i)

    def pop(self) -> tuple[int, int] | None:
        """Return the cluster with the greatest score and its best partner; None if none is left."""
        while self.heap:
            _, _, i, version = heapq.heappop(self.heap)
            if version == self.version[i]:
                return i, self.top[i][0][2]
        return None


def merge_clusters(
    affinity: Any,
    labels: np.ndarray,
    n_clusters: int,
    *,
    points: np.ndarray,
    n_local: int = 1,
    reach: int = 20,
) -> np.ndarray:
    """Merge clusters 0 … c−1 until `n_clusters` remain; labels are numbered by first member.

    The cluster that maximises A₁ + Σ_{k=2..c}(A₁ − A_k)/(c − 1) joins its best partner, where
    A₁ ≥ A₂ ≥ … are its affinities and c = `n_local` (1: the affinity alone). A cluster without
    any affinity joins the nearest centroid of `points`: at once while it has at most `reach`
    members (the neighbours in the graph: so few cannot be closed among themselves, they are only
    overlooked by others), and otherwise when nothing else is left.

    `affinity.rows()` has the positive affinities of each starting cluster to others, and
    `affinity.merge(i, j)` says which of two numbers lives on, and its new affinities.
    """
    best = _Best(affinity.rows(), n_local)
    start = len(best.rows)
    parents = np.arange(start)
    sizes = np.bincount(labels, minlength=start).astype(float)
    sums = np.zeros((start, points.shape[1]))
    np.add.at(sums, labels, points)
    alive = np.ones(start, dtype=bool)
    overlooked = [i for i in range(start) if not best.rows[i] and sizes[i] <= reach]

    def nearest(i: int) -> int:
        others = np.flatnonzero(alive)
        others = others[others != i]
        means = sums[others] / sizes[others, None]
        return int(others[((means - sums[i] / sizes[i]) ** 2).sum(axis=1).argmin()])

    def join(i: int, j: int) -> None:
        kept, row = affinity.merge(i, j)
        gone = j if kept == i else i
        alive[gone] = False
        parents[gone] = kept
        sizes[kept] += sizes[gone]
        sums[kept] += sums[gone]
        best.names[kept] = min(best.names[i], best.names[j])
        # An affinity may round to nothing when clusters merge: such partners forget both.
        partners = (best.rows[i].keys() | best.rows[j].keys() | row.keys()) - {i, j}
        best.rows[kept], best.rows[gone] = row, {}
        best.version[gone] += 1
        for partner in partners:
            best.update(partner, gone, kept, row.get(partner))
        best.refresh(kept)
        if not row and sizes[kept] <= reach:
            overlooked.append(kept)

    remaining = start
    while remaining > n_clusters:
        if overlooked:
            i = overlooked.pop()
            if not alive[i] or best.rows[i]:
                continue
            join(i, nearest(i))
        elif (pair := best.pop()) is not None:
            join(*pair)
        else:
            candidates = np.flatnonzero(alive)
            i = int(candidates[sizes[candidates].argmin()])
            join(i, nearest(i))
        remaining -= 1
    while (parents[parents] != parents).any():
        parents = parents[parents]
    return renumbered(parents[labels])


def agglomerate(
    X: Any,
    n_clusters: int,
    affinity: Callable[[sp.csr_array, np.ndarray], Any],
    *,
    labels: Any,
    n_neighbors: int,
    n_local: int = 1,
) -> np.ndarray:
    """Merge clusters on the Gaussian nearest-neighbour graph of X by affinity(graph, labels)."""
    X = check_data(X)
    n = X.shape[0]
    check_count("n_clusters", n_clusters, 1, n)
    start = None
    if labels is not None:  # noise has no cluster to start from
        start = renumbered(encode(labels, n_objects=n, noise="error").codes[0])
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    near = NeighbourGraph.of(X, min(check_count("n_neighbors", n_neighbors), n - 1))
    start = chains(near.indices) if start is None else start
    return merge_clusters(
        affinity(gaussian_weights(near.indices, near.distances), start),
        start,
        n_clusters,
        points=to_numpy(X).astype(float),
        n_local=n_local,
        reach=near.indices.shape[1],
    )
