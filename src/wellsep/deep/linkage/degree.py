"""JULE's agglomeration: cluster affinities as products of in- and outdegrees on a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.deep.linkage.merging import agglomerate

N_LOCAL = 5  # partners in the local term, K_c in the paper


class DegreeLinkage:
    """The affinity A(i,j) = G(j,i)/|C_j|² + G(i,j)/|C_i|², exact under merges.

    G(c,i) = Σ_{m∈C_i} in_c(m)·out_c(m), with in_c(m) = Σ_{p∈C_c} W_pm what cluster c sends to
    object m and out_c(m) = Σ_{p∈C_c} W_mp what m sends to c. A merge of c and b adds the cross
    terms in_c·out_b + in_b·out_c, so each cluster keeps both sums for the objects around it;
    the smaller table is poured into the larger, O(edges · log n) in all.
    """

    def __init__(self, weights: sp.csr_array, labels: np.ndarray) -> None:
        self.owner = labels.tolist()
        count = int(labels.max()) + 1
        self.parents = list(range(count))
        self.members: list[list[int]] = [[] for _ in range(count)]
        for point, cluster in enumerate(self.owner):
            self.members[cluster].append(point)
        self.sizes = [len(m) for m in self.members]
        self.sent = self._tables(weights)  # in_c: cluster → {outside object: weight}
        self.received = self._tables(weights.T.tocsr())  # out_c
        self.products: list[dict[int, float]] = []  # G(c, ·)
        for sent, received in zip(self.sent, self.received, strict=True):
            row: dict[int, float] = {}
            for point in sent.keys() & received.keys():
                other = self.owner[point]
                row[other] = row.get(other, 0.0) + sent[point] * received[point]
            self.products.append(row)

    def _tables(self, weights: sp.csr_array) -> list[dict[int, float]]:
        """For every cluster the summed weights from its members to each object outside it."""
        owner = np.asarray(self.owner)
        n = len(owner)
        member = sp.csr_array((np.ones(n), (owner, np.arange(n))), shape=(len(self.parents), n))
        summed = (member @ weights).tocsr()
        tables = []
        for cluster in range(len(self.parents)):
            part = slice(summed.indptr[cluster], summed.indptr[cluster + 1])
            outside = owner[summed.indices[part]] != cluster
            points = summed.indices[part][outside].tolist()
            tables.append(dict(zip(points, summed.data[part][outside].tolist(), strict=True)))
        return tables

    def _find(self, cluster: int) -> int:
        parents = self.parents
        root = cluster
        while parents[root] != root:
            root = parents[root]
        while parents[cluster] != root:
            parents[cluster], cluster = root, parents[cluster]
        return root

    def _value(self, i: int, j: int) -> float:
        return (
            self.products[j].get(i, 0.0) / self.sizes[j] ** 2
            + self.products[i].get(j, 0.0) / self.sizes[i] ** 2
        )

    def rows(self) -> list[dict[int, float]]:
        """The starting clusters' affinities."""
        partners: list[set[int]] = [set(row) for row in self.products]
        for i, row in enumerate(self.products):
            for j in row:
                partners[j].add(i)
        self.partners = partners
        return [{j: self._value(i, j) for j in around} for i, around in enumerate(partners)]

    def merge(self, first: int, second: int) -> tuple[int, dict[int, float]]:
        """Merge two clusters; the one with the larger tables keeps its number."""

        def extent(c: int) -> int:
            return len(self.sent[c]) + len(self.received[c]) + len(self.members[c])

        kept, gone = (first, second) if extent(first) >= extent(second) else (second, first)
        self.parents[gone] = kept
        around = self.partners[kept] | self.partners[gone]
        around -= {kept, gone}
        self._merge_products(kept, gone, around)
        for other in around:
            self.partners[other].discard(gone)
            self.partners[other].add(kept)
        self.partners[kept], self.partners[gone] = around, set()
        self.sizes[kept] += self.sizes[gone]
        return kept, {other: self._value(kept, other) for other in around}

    def _merge_products(self, kept: int, gone: int, around: set[int]) -> None:
        products, owner = self.products, self.owner
        row = products[kept]
        row.pop(gone, None)
        for other, value in products[gone].items():
            if other != kept:
                row[other] = row.get(other, 0.0) + value
        products[gone] = {}
        # Objects of `gone` are inside now; the tables hold objects outside only.
        for table in (self.sent[kept], self.received[kept]):
            for point in self.members[gone]:
                table.pop(point, None)
        # Cross terms first, from the tables as they were; then the smaller table is added.
        for yours, theirs in (
            (self.received[kept], self.sent[gone]),
            (self.sent[kept], self.received[gone]),
        ):
            for point in theirs.keys() & yours.keys():
                other = self._find(owner[point])
                row[other] = row.get(other, 0.0) + theirs[point] * yours[point]
                around.add(other)
        for mine, theirs in (
            (self.sent[kept], self.sent[gone]),
            (self.received[kept], self.received[gone]),
        ):
            for point, weight in theirs.items():
                if self._find(owner[point]) != kept:
                    mine[point] = mine.get(point, 0.0) + weight
        self.sent[gone], self.received[gone] = {}, {}
        self.members[kept].extend(self.members[gone])
        self.members[gone] = []
        for other in around:
            theirs = products[other]
            if gone in theirs:
                theirs[kept] = theirs.get(kept, 0.0) + theirs.pop(gone)


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
