"""Path-integral agglomeration: merge the clusters whose union gains most paths of a random walk."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep.deep.linkage.merging import agglomerate

STEP = 0.01  # weight z of a step: paths of t steps count z^t
# Increments of the path integral are of order z²; terms beyond this are lost in float64 anyway.
_TOLERANCE = 1e-15


class _Edges(NamedTuple):
    """Transitions out of some objects: position of the source, target object, probability."""

    source: np.ndarray
    target: np.ndarray
    chance: np.ndarray


class PathIntegral:
    """The incremental path integral of cluster pairs, exact under merges.

    With P the row-normalised graph and P_C its restriction to a cluster,

        S_C = 1ᵀ(I − zP_C)⁻¹1 / |C|²
        A(a,b) = (S_{a|a∪b} − S_a) + (S_{b|a∪b} − S_b)

    where S_{a|a∪b} counts paths that start and end in a but may pass through b. It is positive
    only if the walk can go from a to b and back. The series Σ z^t P^t ends where z^t vanishes.
    """

    def __init__(self, weights: sp.csr_array, labels: np.ndarray, z: float = STEP) -> None:
        sums = np.asarray(weights.sum(axis=1)).ravel()
        self.walk = sp.csr_array(sp.diags_array(1.0 / sums) @ weights)
        self.labels = np.array(labels)
        count = int(labels.max()) + 1
        order = np.argsort(labels, kind="stable")
        self.members = np.split(order, np.searchsorted(labels[order], np.arange(1, count)))
        self.z = z
        self.n_terms = max(2, math.ceil(math.log(_TOLERANCE) / math.log(z)))
        self.position = np.empty(len(labels), dtype=np.int64)  # place of an object in a list
        self.rank = np.full(count, -1)  # place of a cluster in a list, −1 outside it
        self.own = [self._integral(c) for c in range(count)]  # |C|²·S_C

    def _edges(self, points: np.ndarray) -> _Edges:
        walk = self.walk
        counts = walk.indptr[points + 1] - walk.indptr[points]
        source = np.repeat(np.arange(len(points)), counts)
        offset = np.repeat(walk.indptr[points] - np.cumsum(counts) + counts, counts)
        where = np.arange(len(source)) + offset
        return _Edges(source, walk.indices[where], walk.data[where])

    def _within(self, points: np.ndarray, edges: _Edges, inside: np.ndarray) -> sp.csr_array:
        """Transitions among `points`, numbered by their places in it."""
        self.position[points] = np.arange(len(points))
        rows, columns = edges.source[inside], self.position[edges.target[inside]]
        shape = (len(points), len(points))
        return sp.csr_array((edges.chance[inside], (rows, columns)), shape=shape)

    def _integral(self, cluster: int) -> float:
        points = self.members[cluster]
        edges = self._edges(points)
        walk = self._within(points, edges, self.labels[edges.target] == cluster)
        x = np.ones(len(points))
        for _ in range(self.n_terms):
            x = 1.0 + self.z * (walk @ x)
        return float(x.sum())

    def affinities(self, cluster: int, above: int = -1) -> dict[int, float]:
        """Positive affinities of one cluster to those numbered over `above`."""
        out = self._edges(self.members[cluster])
        reached = self.labels[out.target]
        partners = np.unique(reached[(reached != cluster) & (reached > above)])
        edges = [self._edges(self.members[partner]) for partner in partners.tolist()]
        partners = partners[[bool((self.labels[e.target] == cluster).any()) for e in edges]]
        if not len(partners):
            return {}
        gained, theirs = self._gains(cluster, out, partners)
        sizes = np.array([len(self.members[p]) for p in partners])
        values = (gained - self.own[cluster]) / len(self.members[cluster]) ** 2
        values += (theirs - np.array([self.own[p] for p in partners])) / sizes**2
        return {
            p: value
            for p, value in zip(partners.tolist(), values.tolist(), strict=True)
            if value > 0
        }

    def _gains(
        self, cluster: int, out: _Edges, partners: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """1_aᵀ(I − zP_{a∪b})⁻¹1_a and the same for b, for one a and each of its q partners b."""
        mine, q = self.members[cluster], len(partners)
        theirs = np.concatenate([self.members[p] for p in partners])
        self.rank[partners] = np.arange(q)
        group = self.rank[self.labels[theirs]]
        back = self._edges(theirs)
        same = self.labels[back.target] == self.labels[theirs[back.source]]
        inwards = self.labels[back.target] == cluster
        towards = self.rank[self.labels[out.target]]
        outwards = towards >= 0
        self.rank[partners] = -1

        n_a, n_b = len(mine), len(theirs)
        b_from_b = self._within(theirs, back, same)
        rows = out.source[outwards] * q + towards[outwards]
        columns = self.position[out.target[outwards]]
        a_from_b = sp.csr_array((out.chance[outwards], (rows, columns)), shape=(n_a * q, n_b))
        a_from_a = self._within(mine, out, self.labels[out.target] == cluster)
        rows = back.source[inwards]
        columns = self.position[back.target[inwards]] * q + group[rows]
        b_from_a = sp.csr_array((back.chance[inwards], (rows, columns)), shape=(n_b, n_a * q))

        # The right-hand sides are 1_a and 1_b; a has its own unknowns for each partner.
        start_a, start_b = np.zeros((n_a * q, 2)), np.zeros((n_b, 2))
        start_a[:, 0] = start_b[:, 1] = 1.0
        on_a, on_b = start_a, start_b
        for _ in range(self.n_terms):
            inside = (a_from_a @ on_a.reshape(n_a, 2 * q)).reshape(n_a * q, 2)
            on_a, on_b = (
                start_a + self.z * (inside + a_from_b @ on_b),
                start_b + self.z * (b_from_b @ on_b + b_from_a @ on_a),
            )
        return on_a[:, 0].reshape(n_a, q).sum(axis=0), np.bincount(group, on_b[:, 1])

    def rows(self) -> list[dict[int, float]]:
        rows: list[dict[int, float]] = [{} for _ in self.members]
        for i in range(len(rows)):
            for j, value in self.affinities(i, above=i).items():
                rows[i][j] = rows[j][i] = value
        return rows

    def merge(self, first: int, second: int) -> tuple[int, dict[int, float]]:
        """Merge two clusters; the one with more members keeps its number."""
        larger = len(self.members[first]) >= len(self.members[second])
        kept, gone = (first, second) if larger else (second, first)
        self.labels[self.members[gone]] = kept
        self.members[kept] = np.concatenate([self.members[kept], self.members[gone]])
        self.members[gone] = self.members[gone][:0]
        self.own[kept] = self._integral(kept)
        return kept, self.affinities(kept)


def path_integral(
    X: Any,
    n_clusters: int,
    *,
    labels: Any = None,
    n_neighbors: int = 20,
) -> np.ndarray:
    """Cluster objects by merging on their nearest-neighbour graph, by path integrals.

    The graph is W_ij = exp(−d_ij²/σ²) over each object's neighbours, σ² the mean of those d², and
    P its rows divided by their sums. Two clusters are as close as their union adds paths that
    leave a cluster through the other and come back (see `PathIntegral`).

    Parameters
    ----------
    X, n_clusters, labels, n_neighbors
        See `degree_linkage`.

    Returns
    -------
    array of shape (n,)
        Labels numbered by first member.

    References
    ----------
    Zhang, Zhao, Wang, "Agglomerative clustering via maximum incremental path integral",
    Pattern Recognition 46 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.concatenate([np.arange(8.0), np.arange(8.0) + 100])[:, None]
    >>> path_integral(X, 2, n_neighbors=3).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    return agglomerate(X, n_clusters, PathIntegral, labels=labels, n_neighbors=n_neighbors)
