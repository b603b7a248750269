"""Co-association: how often partitions put two objects together, and trees grown from it.

Objects that no partition tells apart have one profile, their row of codes. They are together always
and merge first, so trees over weighted profiles are trees over all objects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from wellsep.compute.engine.threads import budget_bytes, cut_rows

_REFINED = 3  # rounds that tell profiles apart before their labels do
_TILE = 360  # a side of a tile of votes that stays in a core's cache
_CELLS = 1 << 22  # of a block in which objects are assigned


class Profiles(NamedTuple):
    """The distinct rows of codes of some objects."""

    codes: np.ndarray  # (D, P) code of each profile in each partition
    sizes: np.ndarray  # (P,) objects of each profile
    of: np.ndarray  # (n,) profile of each object

    def some(self, objects: np.ndarray) -> Profiles:
        """The profiles of some of the objects."""
        present, of = np.unique(self.of[objects], return_inverse=True)
        return Profiles(self.codes[:, present], np.bincount(of), of)


class Tree(NamedTuple):
    """Merges of profiles, the most often together first."""

    pairs: np.ndarray  # (P - 1, 2) a profile of either side of each merge
    shares: np.ndarray  # (P - 1,) share of the votes at which both sides merge


def most_profiles() -> int:
    """Profiles whose table of pairs in float64 fits the memory budget."""
    return max(2, int((budget_bytes() / 8) ** 0.5))


def find_profiles(codes: np.ndarray, weights: np.ndarray) -> Profiles:
    """The profiles of objects by their codes (D, n), whole numbers from 0.

    Their order settles ties. It comes from how many objects each is together with, then from how
    many those are together with, and so on, so that the order of objects does not matter.
    """
    of = np.zeros(codes.shape[1], dtype=np.int64)
    for row in codes:
        of = np.unique(of * (int(row.max()) + 1) + row, return_inverse=True)[1].reshape(-1)
    first = np.unique(of, return_index=True)[1]
    found, sizes = codes[:, first], np.bincount(of)
    keys = [sizes.astype(np.float64)]
    for _ in range(_REFINED):
        met = np.zeros(len(sizes))
        for row, weight in zip(found, weights, strict=True):
            met += weight * np.bincount(row, keys[-1] * sizes)[row]
        keys.append(met / met.max())
    order = np.lexsort([-key for key in reversed(keys)])
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Profiles(found[:, order], sizes[order], place[of])


def draw_profiles(profiles: Profiles, most: int, rng: np.random.Generator) -> np.ndarray:
    """Objects drawn at random until they have ``most`` profiles."""
    drawn = rng.permutation(len(profiles.of))
    starts = np.sort(np.unique(profiles.of[drawn], return_index=True)[1])
    return drawn if len(starts) <= most else np.sort(drawn[: starts[most]])


def votes_together(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(a, b) votes that put two profiles together, by their codes (D, a) and (D, b).

    Sums of equal weights are exact, so that equal shares are ties and nothing else.
    """
    found = np.zeros((first.shape[1], second.shape[1]))
    for a, b, weight in zip(first, second, weights, strict=True):
        if weight == 1:
            found += a[:, None] == b
        else:
            found += weight * (a[:, None] == b)
    return found


def grow_tree(profiles: Profiles, weights: np.ndarray) -> Tree:
    """The tree of profiles by average linkage of their shares of the votes."""
    codes, n = profiles.codes, profiles.codes.shape[1]
    # In as few bytes as they need: they are compared pair by pair.
    codes = np.ascontiguousarray(codes, dtype=np.min_scalar_type(int(codes.max(initial=0))))
    sizes = profiles.sizes.astype(np.float64)
    votes = np.empty((n, n))
    tiles = cut_rows(n, _TILE)
    for place, i in enumerate(tiles):
        for j in tiles[place:]:
            tile = votes_together(codes[:, i], codes[:, j], weights)
            tile *= sizes[i, None] * sizes[j]
            votes[i, j], votes[j, i] = tile, tile.T
    pairs, heights = _average_tree(votes, sizes)
    order = np.argsort(-heights, kind="stable")
    return Tree(pairs[order], heights[order] / weights.sum())


def _average_tree(sums: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average linkage by chains of nearest neighbours; ``sums`` of votes over pairs are consumed.

    Sums, not means, are added up: they stay whole where weights are 1, and a mean is one division,
    so that equal means are equal numbers (Murtagh 1983; Müllner 2011 has the chain).
    """
    n = len(sizes)
    np.fill_diagonal(sums, -1.0)  # below every vote, also for what has been merged
    sizes = sizes.copy()
    pairs, heights = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    alive = np.ones(n, dtype=bool)
    chain: list[int] = []
    for merge in range(n - 1):
        if not chain:
            chain.append(int(np.argmax(alive)))
        while True:
            here = chain[-1]
            means = sums[here] / sizes
            there = int(np.argmax(means))
            if len(chain) > 1 and means[chain[-2]] >= means[there]:
                there = chain[-2]
                break
            chain.append(there)
        del chain[-2:]
        heights[merge] = means[there] / sizes[here]
        pairs[merge] = here, there
        kept, gone = min(here, there), max(here, there)
        joined = sums[kept] + sums[gone]
        joined[~alive] = joined[kept] = joined[gone] = -1.0
        sums[kept] = sums[:, kept] = joined
        sums[:, gone] = -1.0
        sizes[kept] += sizes[gone]
        alive[gone] = False
    return pairs, heights


def cut_tree(tree: Tree, n_clusters: int) -> np.ndarray:
    """(P,) the cluster of each profile when ``n_clusters`` are left."""
    n = len(tree.pairs) + 1
    i, j = tree.pairs[: n - n_clusters].T
    links = coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    found: np.ndarray = connected_components(links, directed=False)[1]
    return found


def assign_nearest(
    profiles: Profiles, known: Profiles, cluster: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """(P,) for each profile the cluster of ``known`` ones whose objects it is most often with."""
    n_clusters, n = int(cluster.max()) + 1, profiles.codes.shape[1]
    found = np.empty(n, dtype=np.intp)
    size = np.bincount(cluster, known.sizes, n_clusters)
    tables = []
    for row, code, weight in zip(profiles.codes, known.codes, weights, strict=True):
        cells = code.astype(np.int64) * n_clusters + cluster
        counts = np.bincount(cells, known.sizes, (int(row.max()) + 1) * n_clusters)
        tables.append(weight * counts.reshape(-1, n_clusters) / size)
    for rows in cut_rows(n, max(1, _CELLS // n_clusters)):
        shares = np.zeros((rows.stop - rows.start, n_clusters))
        for row, table in zip(profiles.codes, tables, strict=True):
            shares += table[row[rows]]
        found[rows] = np.argmax(shares, axis=1)
    return found
