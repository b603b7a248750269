"""JULE's agglomeration: cluster affinities as products of in- and outdegrees on a graph."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.deep.linkage.merging import agglomerate

N_LOCAL = 5  # partners in the local term, K_c in the paper


class DegreeLinkage:
    """Affinities A(i,j) = G(j,i)/|C_j|² + G(i,j)/|C_i|² of cluster pairs, exact under merges.

    G(c,i) = Σ_{m∈C_i} in_c(m)·out_c(m), in_c(m) = Σ_{p∈C_c} W_pm and out_c(m) = Σ_{p∈C_c} W_mp.
    A merge of c and b adds the cross terms in_c·out_b + in_b·out_c; the smaller table is poured
    into the larger, O(edges · log n) in all.
    """

    def __init__(self, weights: sp.csr_array, labels: np.ndarray) -> None:
        self.owner = labels.tolist()
        self.members: list[list[int]] = [[] for _ in range(int(labels.max()) + 1)]
        for point, cluster in enumerate(self.owner):
            self.members[cluster].append(point)
        self.sent = self._tables(weights)  # in_c: cluster → {outside object: weight}
        self.received = self._tables(weights.T.tocsr())  # out_c
        self.products: list[dict[int, float]] = []  # G(c, ·)
        for sent, received in zip(self.sent, self.received, strict=True):
            row: dict[int, float] = defaultdict(float)
            for point in sent.keys() & received.keys():
                row[self.owner[point]] += sent[point] * received[point]
            self.products.append(row)

    def _tables(self, weights: sp.csr_array) -> list[dict[int, float]]:
        """Sum the weights from each cluster's members to each object outside it."""
        owner = np.asarray(self.owner)
        n = len(owner)
        member = sp.csr_array((np.ones(n), (owner, np.arange(n))), shape=(len(self.members), n))
        summed = (member @ weights).tocoo()
        tables: list[dict[int, float]] = [defaultdict(float) for _ in self.members]
        outside = owner[summed.col] != summed.row
        entries = (part[outside].tolist() for part in (summed.row, summed.col, summed.data))
        for cluster, point, weight in zip(*entries, strict=True):
            tables[cluster][point] = weight
        return tables

    def _value(self, i: int, j: int) -> float:
        return (
            self.products[j].get(i, 0.0) / len(self.members[j]) ** 2
            + self.products[i].get(j, 0.0) / len(self.members[i]) ** 2
        )

    def rows(self) -> list[dict[int, float]]:
        self.partners: list[set[int]] = [set(row) for row in self.products]
        for i, row in enumerate(self.products):
            for j in row:
                self.partners[j].add(i)
        return [{j: self._value(i, j) for j in around} for i, around in enumerate(self.partners)]

    def merge(self, first: int, second: int) -> tuple[int, dict[int, float]]:
        """Merge two clusters; the one with the larger tables keeps its number."""

        def extent(c: int) -> int:
            return len(self.sent[c]) + len(self.received[c]) + len(self.members[c])

        kept, gone = sorted((first, second), key=extent, reverse=True)
        around = self.partners[kept] | self.partners[gone]
        around -= {kept, gone}
        self._merge_tables(kept, gone, around)
        for other in around:
            row = self.products[other]
            if gone in row:
                row[kept] += row.pop(gone)
            self.partners[other].discard(gone)
            self.partners[other].add(kept)
        self.partners[kept], self.partners[gone] = around, set()
        return kept, {other: self._value(kept, other) for other in around}

    def _merge_tables(self, kept: int, gone: int, around: set[int]) -> None:
        row, owner = self.products[kept], self.owner
        row.pop(gone, None)
        for other, value in self.products[gone].items():
            if other != kept:
                row[other] += value
        # Objects of `gone` are inside now; the tables hold objects outside only.
        for point in self.members[gone]:
            owner[point] = kept
            self.sent[kept].pop(point, None)
            self.received[kept].pop(point, None)
        # Cross terms first, from the tables as they were; then the smaller table is added.
        for yours, theirs in (
            (self.received[kept], self.sent[gone]),
            (self.sent[kept], self.received[gone]),
        ):
            for point in theirs.keys() & yours.keys():
                row[owner[point]] += theirs[point] * yours[point]
                around.add(owner[point])
        for tables in (self.sent, self.received):
            for point, weight in tables[gone].items():
                if owner[point] != kept:
                    tables[kept][point] += weight
        self.members[kept] += self.members[gone]
        for parts in (self.products, self.sent, self.received, self.members):
            parts[gone].clear()


def degree_linkage(
    X: Any,
    n_clusters: int,
    *,
    labels: Any = None,
    n_neighbors: int = 20,
) -> np.ndarray:
    """Cluster objects by merging on their nearest-neighbour graph, by JULE's affinity.

    The graph is W_ij = exp(−d_ij²/σ²) over each object's neighbours, σ² the mean of those d².
    The affinity of two clusters is ::

        A(i,j) = Σ_{m∈i} (Σ_{p∈j} W_pm)(Σ_{p∈j} W_mp)/|C_j|² + the same with i and j exchanged

    and the pair to merge maximises A plus a local term (see `merge_clusters`). Affinities are
    kept sparse and exact: a merge touches the partners of the two clusters alone.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
        Features.
    n_clusters : int
        Number of clusters to reach.
    labels : array of shape (n,), optional
        Clusters to start from; 1-nearest-neighbour chains when left out.
    n_neighbors : int
        Neighbours in the graph (K_s in the paper), fewer when there are not as many objects.

    Returns
    -------
    array of shape (n,)
        Labels numbered by first member.

    References
    ----------
    Yang, Parikh, Batra, "Joint unsupervised learning of deep representations and image
    clusters", CVPR 2016; Zhang, Wang, Zhao, Tang, "Graph degree linkage", ECCV 2012.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.concatenate([np.arange(8.0), np.arange(8.0) + 100])[:, None]
    >>> degree_linkage(X, 2, n_neighbors=3).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    return agglomerate(
        X, n_clusters, DegreeLinkage, labels=labels, n_neighbors=n_neighbors, n_local=N_LOCAL
    )
