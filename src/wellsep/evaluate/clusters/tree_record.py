"""ResolutionTree: which cluster of one level goes where at the next, and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._files.records import Result
from wellsep._text.sentences import count, listing, printable, rows_of

KEPT = 0.9  # share of the objects from which on a cluster stays, or comes from one cluster
_TOLD = 0.1  # smaller parts are not told of
_MOST = 3  # clusters of a step that get words


@dataclass(frozen=True, eq=False)
class ResolutionTree(Result):
    """What `resolution_tree` found: clusters as N nodes, E links between neighbouring levels.

    Attributes
    ----------
    levels : tuple of str
        Names of the partitions, fewest clusters first.
    clusters : tuple of str
        Name of each node's cluster.
    level : ndarray of shape (N,)
        Level of each node; the nodes of a level stand together, noise last.
    sizes : ndarray of shape (N,)
        Objects of each node.
    is_noise : ndarray of shape (N,)
        Whether a node is the noise of its level.
    links : ndarray of shape (E, 2)
        Node at a level and node at the next level that have objects in common.
    counts : ndarray of shape (E,)
        How many objects they have in common.
    """

    levels: tuple[str, ...]
    clusters: tuple[str, ...]
    level: np.ndarray
    sizes: np.ndarray
    is_noise: np.ndarray
    links: np.ndarray
    counts: np.ndarray

    @property
    def n_clusters(self) -> np.ndarray:
        """Clusters of each level, noise left out."""
        found: np.ndarray = np.bincount(self.level[~self.is_noise], minlength=len(self.levels))
        return found

    @property
    def share_of_source(self) -> np.ndarray:
        """(E,) share of the cluster's objects that go along a link."""
        found: np.ndarray = self.counts / self.sizes[self.links[:, 0]]
        return found

    @property
    def share_of_target(self) -> np.ndarray:
        """(E,) share of the next level's cluster that comes along a link."""
        found: np.ndarray = self.counts / self.sizes[self.links[:, 1]]
        return found

    @property
    def parents(self) -> np.ndarray:
        """(N,) the node that most objects of a node come from; -1 at the first level."""
        found = np.full(len(self.sizes), -1, dtype=np.intp)
        order = np.argsort(self.counts, kind="stable")  # the last one written has most
        found[self.links[order, 1]] = self.links[order, 0]
        return found

    @property
    def parent_shares(self) -> np.ndarray:
        """(N,) share of a node's objects that come from its parent; NaN at the first level.

        A cluster that takes its objects from several clusters has a small one: more clusters were
        asked for than there are, or the method is not stable.
        """
        found = np.full(len(self.sizes), np.nan)
        order = np.argsort(self.counts, kind="stable")
        found[self.links[order, 1]] = self.share_of_target[order]
        return found

    def columns(self) -> dict[str, list[Any]]:
        """Return the links as named columns, those with most objects first within a level."""
        source, target = self.links.T
        order = np.lexsort((-self.counts, self.level[source]))
        source, target = source[order], target[order]
        return {
            "level": [self.levels[i] for i in self.level[source]],
            "cluster": [self.clusters[i] for i in source],
            "next_level": [self.levels[i] for i in self.level[target]],
            "next_cluster": [self.clusters[i] for i in target],
            "objects": self.counts[order].tolist(),
            "share_of_cluster": self.share_of_source[order].tolist(),
            "share_of_next": self.share_of_target[order].tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return levels, links and sentences, as ``--json`` prints them."""
        levels = {"partition": self.levels, "n_clusters": self.n_clusters.tolist()}
        return {
            "levels": rows_of(levels),
            "links": self.to_rows(),
            "explanation": list(self.sentences()),
        }

    def sentences(self) -> Iterator[str]:
        """Say what happens from level to level."""
        yield from (self._step(step) for step in range(len(self.levels) - 1))
        later = ~np.isnan(self.parent_shares) & ~self.is_noise
        pure = int((self.parent_shares[later] >= KEPT).sum())
        yield (
            f"{pure} of {count(int(later.sum()), 'cluster')} after the first level take at least "
            f"{KEPT:.0%} of their objects from one cluster of the level before."
        )
        if pure < later.sum():
            yield (
                "Clusters that take theirs from several are a sign of too many clusters, or of a "
                "method that is not stable."
            )

    def _step(self, step: int) -> str:
        nodes = np.flatnonzero(self.level == step)
        split = [told for node in nodes if (told := self._split(int(node)))]
        later = np.flatnonzero((self.level == step + 1) & ~self.is_noise)
        mixed = [int(node) for node in later if self.parent_shares[node] < KEPT]
        parts = split[:_MOST]
        if len(split) > _MOST:
            parts.append(f"{count(len(split) - _MOST, 'more cluster')} split")
        parts += [self._mixture(node) for node in mixed[:_MOST]]
        if len(mixed) > _MOST:
            more = count(len(mixed) - _MOST, "more cluster")
            parts.append(f"{more} come from several")
        if not parts:
            parts = ["every cluster keeps its objects"]
        return f"{self._called(step)} → {self._called(step + 1)}: {'; '.join(parts)}."

    def _split(self, node: int) -> str:
        """Where the objects of a cluster go, if not nearly all to one."""
        out = np.flatnonzero(self.links[:, 0] == node)
        out = out[np.argsort(-self.counts[out], kind="stable")]
        shares = self.share_of_source[out]
        if not len(out) or shares[0] >= KEPT:
            return ""
        goes = [
            f"{self._name(int(self.links[link, 1]))} ({share:.0%})"
            for link, share in zip(out, shares, strict=True)
            if share >= _TOLD
        ]
        what = "" if self.is_noise[node] else "cluster "
        return f"{what}{self._name(node)} splits into {listing(goes, 4)}"

    def _mixture(self, node: int) -> str:
        into = np.flatnonzero(self.links[:, 1] == node)
        into = into[np.argsort(-self.counts[into], kind="stable")]
        comes = [
            f"{self._name(int(self.links[link, 0]))} ({self.share_of_target[link]:.0%})"
            for link in into
            if self.share_of_target[link] >= _TOLD
        ]
        return f"the new cluster {self._name(node)} takes objects from {listing(comes, 4)}"

    def _called(self, step: int) -> str:
        name = printable(self.levels[step], 40)
        k = int(self.n_clusters[step])
        return name if name in (f"K = {k}", f"k{k}") else f"{name} ({count(k, 'cluster')})"

    def _name(self, node: int) -> str:
        return printable(self.clusters[node], 30)
