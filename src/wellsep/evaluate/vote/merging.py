"""One partition from many runs, by how often they put two objects together (co-association).

Objects that no partition tells apart have one profile, their row of codes. They are together always
and merge first, so trees over weighted profiles are trees over all objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn import get_config
from sklearn.utils import gen_batches

from wellsep._checks.arrays import check_choice, check_count
from wellsep._checks.labels import NOISE
from wellsep._checks.values import check_generator, check_kind
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import count
from wellsep.compute.statistics.contingency import PairCounts
from wellsep.evaluate.scores import NothingToRank
from wellsep.evaluate.vote.answer import Consensus, labels_of, numbers_of_runs, refuse_too_few
from wellsep.indices.external import adjusted_rand
from wellsep.partitions import Classes, Partitions, cluster_sizes
from wellsep.runs import Run, Runs
from wellsep.runs.folder_names import best_first

_NAME = "consensus"  # of the run that it becomes
_REFINED = 3  # rounds that tell profiles apart before their labels do
_TILE = 360  # a side of a tile of votes that stays in a core's cache
_CELLS = 1 << 22  # of a block in which objects are assigned


@dataclass(frozen=True, eq=False)
class ConsensusPartition(Result):
    """One partition made from many runs by how often they put two objects together.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Clusters 0, 1 … from the largest to the smallest; -1: most votes call the object noise.
    classes : Classes
        The M runs it was made from (``partitions``), and which of the D distinct ones each is.
    agreement : ndarray of shape (M,)
        Adjusted Rand index with each run; noise counts as one cluster.
    weights : ndarray of shape (D,)
        What the vote of each distinct partition weighs; they add up to 1.
    run_clusters : ndarray of shape (M,)
        Number of clusters of each run, without noise.
    tried : dict of int to float
        Numbers of clusters that were compared, and the mean agreement with the runs at each.
    noise : {"cluster", "singletons"}
        What the label -1 of a run counts as.
    n_profiles : int
        Groups of objects that no run tells apart, without objects that are noise.
    n_compared : int
        Those that were compared with each other; fewer than `n_profiles` if a sample was drawn.
    """

    labels: np.ndarray
    classes: Classes
    agreement: np.ndarray
    weights: np.ndarray
    run_clusters: np.ndarray
    tried: Mapping[int, float]
    noise: str
    n_profiles: int
    n_compared: int

    @property
    def partitions(self) -> tuple[str, ...]:
        """The runs it was made from."""
        return self.classes.names

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, noise left out."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> np.ndarray:
        """(K,) objects of each cluster."""
        return cluster_sizes(self.labels)

    @property
    def is_sampled(self) -> bool:
        """Whether a sample was clustered and the other objects joined the nearest cluster."""
        return self.n_compared < self.n_profiles

    @property
    def mean_agreement(self) -> float:
        """Mean agreement with the distinct runs, weighted by their votes."""
        return float(np.dot(self.weights, self.agreement[self.classes.first]))

    def added_to(self, runs: Runs) -> Runs:
        """The runs, and this partition as one more that is called "consensus".

        Examples
        --------
        >>> import wellsep as ws
        >>> runs = ws.Runs.from_parts(partitions={"a": [0, 0, 1, 1], "b": [0, 0, 0, 1]})
        >>> ws.consensus_partition(runs).added_to(runs).names
        ('a', 'b', 'consensus')
        """
        check_kind("runs", runs, Runs, "load a folder with load_runs")
        if _NAME in runs.names:
            raise ValueError(
                f"runs must not hold a run called {_NAME!r} where one is made, got one; rename it."
            )
        how = {"made_by": "wellsep.consensus_partition", "n_clusters": self.n_clusters}
        return replace(runs, runs=(*runs, Run(_NAME, labels=self.labels, params=how)))

    @property
    def order(self) -> np.ndarray:
        """Positions of the runs, the one that agrees best first; ties by name."""
        return best_first(-self.agreement, self.partitions)

    def columns(self) -> dict[str, list[Any]]:
        """Return agreement, weight and number of clusters of each run, the closest first."""
        order = self.order
        return {
            "partition": [self.partitions[m] for m in order],
            "agreement": self.agreement[order].tolist(),
            "weight": self.weights[self.classes.of][order].tolist(),
            "clusters": self.run_clusters[order].tolist(),
        }

    def sentences(self) -> Iterator[str]:
        """Say how the partition was made and what it cannot show."""
        yield " ".join(self._how_made())
        yield " ".join(self._what_agrees())
        yield (
            "It is made to agree with the runs, so agreement with them is no proof of quality: a "
            "mistake that most runs share is in it too."
        )

    def _how_made(self) -> Iterator[str]:
        alike = "the same" if np.ptp(self.weights) < 1e-12 else "differently"
        different = count(len(self.weights), "different clustering")
        yield (
            f"{count(self.n_clusters, 'cluster')} of {count(self.n_objects, 'object')} were made "
            f"from {count(len(self.partitions), 'run')} ({different}, weighted {alike}) by how "
            "often they put two objects together (average linkage)."
        )
        n_noise = int((self.labels == NOISE).sum())
        if n_noise:
            yield f"{count(n_noise, 'object')} are noise (-1): most votes call them so."
        groups = f"{self.n_profiles:,} groups of objects that no run tells apart"
        if self.is_sampled:
            yield (
                f"There are {groups}. A sample with {self.n_compared:,} of them was clustered; "
                "every other object joined the cluster that it is together with most."
            )
        else:
            yield f"All {groups} were compared."

    def _what_agrees(self) -> Iterator[str]:
        if len(self.tried) > 1:
            listed = ", ".join(f"{k}: {value:.3f}" for k, value in self.tried.items())
            yield f"Mean agreement (ARI) with the runs by number of clusters: {listed}."
        else:
            yield f"Mean agreement (ARI) with the runs: {self.mean_agreement:.3f}."
        best, worst = self.order[[0, -1]]
        yield (
            f"The closest run is {self.partitions[best]!r} ({self.agreement[best]:.3f}), the "
            f"farthest {self.partitions[worst]!r} ({self.agreement[worst]:.3f})."
        )


def consensus_partition(
    runs: Any,
    n_clusters: int | None = None,
    *,
    votes: Any = None,
    noise: str = "cluster",
    random_state: Any = 0,
) -> ConsensusPartition:
    """Make one partition from many: objects that most runs put together are together.

    The similarity of two objects is the share of the votes that put them together
    (co-association). Equal partitions have one vote. Hierarchical clustering of the similarities
    gives the partition. Objects that no run tells apart form a group (a profile), and groups are
    merged with their sizes as weights, which gives exactly the tree of all objects.

    The result shares every mistake that most runs make. It is an answer next to the runs, not
    above them: ``made.added_to(runs)`` is the runs with it as one more.

    Parameters
    ----------
    runs : Runs, mapping of names to label vectors, data frame, or array of shape (M, n)
        Each column of a frame and each row of an array is a partition. They are held in memory.
    n_clusters : int, optional
        By default, of the numbers of clusters that the runs have, the one whose partition has the
        largest mean agreement (adjusted Rand index) with the runs; the smaller one of equals.
    votes : Consensus, or weights by name or in the order of the runs, optional
        What each run's vote weighs. Of runs that are equal the largest weight counts. By default
        all distinct partitions weigh the same.
    noise : {"cluster", "singletons"}
        What the label -1 of a run means: one more cluster, or each such object a cluster of its
        own. An object that more than half of the votes call noise is noise in the result (-1) and
        takes no part.
    random_state : int or Generator
        Draws a sample where there are more groups of equal objects (profiles) than scikit-learn's
        ``working_memory`` allows to compare (11,585 in 1 GiB): objects are drawn until they have so
        many, and every other object joins the cluster that it is together with most.

    Returns
    -------
    ConsensusPartition

    Raises
    ------
    NothingToRank
        With fewer than two distinct partitions, or if most votes call every object noise.

    References
    ----------
    Fred, Jain (2005), "Combining multiple clusterings using evidence accumulation", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 27. Strehl, Ghosh (2002), "Cluster
    ensembles", Journal of Machine Learning Research 3.

    Examples
    --------
    >>> import wellsep as ws
    >>> found = ws.consensus_partition({"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 1, 1],
    ...                                 "c": [0, 0, 0, 0, 1, 1]})
    >>> found.labels.tolist(), found.agreement.round(3).tolist()
    ([0, 0, 0, 1, 1, 1], [1.0, 0.324, 0.324])
    """
    check_choice("noise", noise, ("cluster", "singletons"))
    rng = check_generator(random_state)
    partitions = _encoded(labels_of(runs), noise)
    classes = partitions.distinct
    refuse_too_few(classes)
    weights = _weights(votes, classes)
    codes = partitions.codes[classes.first]
    kept = _not_noise(partitions, weights)
    whole = find_profiles(codes[:, kept], weights)
    objects = draw_profiles(whole, most_profiles(), rng)
    used = whole if len(objects) == len(whole.of) else whole.some(objects)

    clusters = partitions.clusters_only().n_clusters
    wanted = _wanted(n_clusters, clusters, used)
    tree = grow_tree(used, weights)
    cuts = np.full((len(wanted), partitions.n_objects), NOISE, dtype=np.intp)
    for cut, k in zip(cuts, wanted, strict=True):
        cluster = cut_tree(tree, k)
        if used is not whole:
            cluster = assign_nearest(whole, used, cluster, weights)
        cut[kept] = _largest_first(cluster[whole.of])
    numbered = np.where(cuts == NOISE, cuts.max(axis=1, keepdims=True) + 1, cuts)
    counts = PairCounts.of_codes(np.concatenate([numbered, codes]), n_jobs=1, first=len(cuts))
    agreement = adjusted_rand(counts)[: len(cuts), len(cuts) :]  # of each cut with each partition
    means = agreement @ (weights / weights.sum())
    best = int(np.flatnonzero(means >= means.max() - 1e-12)[0])
    return ConsensusPartition(
        labels=freeze(cuts[best]),
        classes=classes,
        agreement=freeze(agreement[best][classes.of]),
        weights=freeze(weights / weights.sum()),
        run_clusters=freeze(clusters),
        tried=dict(zip(wanted, means.tolist(), strict=True)),
        noise=noise,
        n_profiles=len(whole.sizes),
        n_compared=len(used.sizes),
    )


def _encoded(labels: Any, noise: str) -> Partitions:
    try:
        return Partitions.from_labels(labels, noise=noise)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"runs must hold labels of the same objects: {error}") from None


def _weights(votes: Any, classes: Classes) -> np.ndarray:
    """(D,) weights of the distinct partitions, 1 where nothing else is known."""
    if isinstance(votes, Consensus):
        votes = dict(zip(votes.partitions, votes.weights[votes.classes.of].tolist(), strict=True))
    if votes is None:
        return np.ones(len(classes))
    weights = numbers_of_runs("votes", votes, classes.names, "weight")
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            "votes must be finite, not negative and not all 0, got "
            f"{weights.min():g} to {weights.max():g}."
        )
    largest = np.zeros(len(classes))
    np.maximum.at(largest, classes.of, weights)
    return largest / largest.max()


def _not_noise(partitions: Partitions, weights: np.ndarray) -> np.ndarray:
    """Objects that at most half of the votes call noise; equal partitions call so together."""
    by_class = np.ones((len(weights), partitions.n_objects), dtype=bool)
    for c, codes in zip(partitions.distinct.of, partitions.clusters_only().codes, strict=True):
        by_class[c] &= codes < 0
    kept = np.flatnonzero(weights @ by_class <= weights.sum() / 2)
    if not len(kept):
        raise NothingToRank(
            "Most votes call every object noise (-1), so there is nothing to put together. "
            "Leave out the runs that find noise only."
        )
    return kept


def _wanted(n_clusters: int | None, clusters: np.ndarray, used: Profiles) -> list[int]:
    """The numbers of clusters to try."""
    n = len(used.sizes)
    if n_clusters is None:
        return sorted({min(k, n) for k in clusters.tolist() if k > 0})
    check_count("n_clusters", n_clusters)
    if n_clusters > n:
        raise ValueError(
            f"n_clusters must be at most {n:,}, the groups of objects that some run tells apart, "
            f"got {n_clusters}."
        )
    return [int(n_clusters)]


def _largest_first(codes: np.ndarray) -> np.ndarray:
    """Clusters numbered from the largest to the smallest; of equals the first to appear first."""
    _, first, found, sizes = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    number = np.empty(len(sizes), dtype=np.intp)
    number[np.lexsort([first, -sizes])] = np.arange(len(sizes))
    return number[found.reshape(-1)]


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
    return max(2, int((get_config()["working_memory"] * 2**20 / 8) ** 0.5))


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
    tiles = list(gen_batches(n, _TILE))
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
    return connected_components(links, directed=False)[1]


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
    for rows in gen_batches(n, max(1, _CELLS // n_clusters)):
        shares = np.zeros((rows.stop - rows.start, n_clusters))
        for row, table in zip(profiles.codes, tables, strict=True):
            shares += table[row[rows]]
        found[rows] = np.argmax(shares, axis=1)
    return found
