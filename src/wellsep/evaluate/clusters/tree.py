"""The resolution tree: partitions from few clusters to many, linked by the objects they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from wellsep._checks.values import check_names
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing, printable, rows_of
from wellsep.adapters.anndata import clusterings_of
from wellsep.adapters.stores import matching
from wellsep.evaluate.vote.answer import labels_of
from wellsep.partitions import Partitions, is_noise, offsets_of, shared_cells

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
        return np.bincount(self.level[~self.is_noise], minlength=len(self.levels))

    @property
    def share_of_source(self) -> np.ndarray:
        """(E,) share of the cluster's objects that go along a link."""
        return self.counts / self.sizes[self.links[:, 0]]

    @property
    def share_of_target(self) -> np.ndarray:
        """(E,) share of the next level's cluster that comes along a link."""
        return self.counts / self.sizes[self.links[:, 1]]

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

    def branches(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield (cluster, its level, objects, share from its parent), each below its parent."""
        parents, shares = self.parents, self.parent_shares

        def below(node: int, before: str) -> Iterator[tuple[str, str, int, str]]:
            children = np.flatnonzero(parents == node)
            for child in children[np.argsort(-self.sizes[children], kind="stable")].tolist():
                share = "" if node < 0 else f"{shares[child]:.0%}"
                level = printable(self.levels[self.level[child]], 30)
                yield f"{before}{self._name(child)}", level, int(self.sizes[child]), share
                yield from below(child, before.replace("└ ", "  ") + "└ ")

        yield from below(-1, "")

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
        split = []  # clusters whose objects do not nearly all go to one
        for node in np.flatnonzero(self.level == step).tolist():
            into, largest = self._parts(node, 0)
            if into and largest < KEPT:
                what = "" if self.is_noise[node] else "cluster "
                split.append(f"{what}{self._name(node)} splits into {into}")
        later = np.flatnonzero((self.level == step + 1) & ~self.is_noise)
        mixed = [
            f"the new cluster {self._name(node)} takes objects from {self._parts(node, 1)[0]}"
            for node in later[self.parent_shares[later] < KEPT].tolist()
        ]
        parts = []
        for told, rest in ((split, "split"), (mixed, "come from several")):
            parts += told[:_MOST]
            if len(told) > _MOST:
                parts.append(f"{count(len(told) - _MOST, 'more cluster')} {rest}")
        what = "; ".join(parts) or "every cluster keeps its objects"
        return f"{self._called(step)} → {self._called(step + 1)}: {what}."

    def _parts(self, node: int, side: int) -> tuple[str, float]:
        """What a node is linked with as source (0) or target (1), and the largest share of it."""
        links = np.flatnonzero(self.links[:, side] == node)
        links = links[np.argsort(-self.counts[links], kind="stable")]
        shares = self.counts[links] / self.sizes[node]
        others = zip(self.links[links, 1 - side].tolist(), shares, strict=True)
        parts = (f"{self._name(other)} ({share:.0%})" for other, share in others if share >= _TOLD)
        return listing(parts, 4), float(shares.max(initial=0.0))

    def _called(self, step: int) -> str:
        name = printable(self.levels[step], 40)
        k = int(self.n_clusters[step])
        return name if name in (f"K = {k}", f"k{k}") else f"{name} ({count(k, 'cluster')})"

    def _name(self, node: int) -> str:
        return printable(self.clusters[node], 30)


def resolution_tree(runs: Any, labels: str | Iterable[str] | None = None) -> ResolutionTree:
    """Find which clusters split into which as the number of clusters grows.

    Partitions are put in the order of their number of clusters; equal numbers stay in the order
    they come in. Each cluster is linked with the clusters of the next partition that it has
    objects in common with. Noise (-1, -2, -3) is a node of its own.

    Parameters
    ----------
    runs : ChosenK, Runs, AnnData, mapping of names to label vectors, data frame or array (M, n)
        The partitions, of the same objects. Each column of a frame and each row of an array is
        one. Of a ``ChosenK`` the partitions of every K.
    labels : str or iterable of str, optional
        Which partitions to take, by patterns such as ``"leiden_*"``; a text is split at commas.
        AnnData needs it.

    Returns
    -------
    ResolutionTree
        ``explain()``, ``to_frame()``, ``parents``, ``parent_shares``, ``save()``; drawn by
        ``wellsep.plot.ResolutionTreeDisplay``.

    References
    ----------
    Zappia and Oshlack (2018), Clustering trees: a visualization for evaluating clusterings at
    multiple resolutions, GigaScience 7.

    Examples
    --------
    >>> import wellsep as ws
    >>> tree = ws.resolution_tree({"k2": [0, 0, 0, 1, 1, 1], "k3": [0, 0, 2, 1, 1, 1]})
    >>> print(tree.explain().splitlines()[0])
    k2 → k3: cluster 0 splits into 0 (67%) and 2 (33%).
    >>> tree.parents.tolist()
    [-1, -1, 0, 1, 0]
    """
    partitions = _opened(runs, labels).noise_as_cluster()
    if len(partitions) < 2:
        raise ValueError(
            f"runs must hold at least 2 clusterings, got {len(partitions)}; a tree links "
            "clusterings."
        )
    noisy = [is_noise(classes) for classes in partitions.classes]
    order = np.argsort([int((~no).sum()) for no in noisy], kind="stable")
    widths = partitions.n_clusters[order]
    starts = offsets_of(widths)[:-1]
    links, counts = [], []
    for ends, (m, after) in zip(pairwise(starts), pairwise(order), strict=True):
        shape = partitions.n_clusters[[m, after]].tolist()
        cells, common = shared_cells(partitions.codes[m], partitions.codes[after], *shape)
        links.append(np.stack(np.divmod(cells, shape[1]), axis=1) + ends)
        counts.append(common)
    return ResolutionTree(
        levels=tuple(partitions.names[m] for m in order),
        clusters=tuple(
            "noise" if alone else str(label)
            for m in order
            for label, alone in zip(partitions.classes[m].tolist(), noisy[m], strict=True)
        ),
        level=np.repeat(np.arange(len(order)), widths),
        sizes=np.concatenate([partitions.sizes[m] for m in order]),
        is_noise=np.concatenate([noisy[m] for m in order]),
        links=np.concatenate(links),
        counts=np.concatenate(counts),
    )


def _opened(runs: Any, labels: str | Iterable[str] | None) -> Partitions:
    """The partitions that were chosen, of whatever holds them."""
    if labels is not None and not isinstance(labels, str):
        labels = check_names("labels", labels)
    if type(runs).__module__.partition(".")[0] == "anndata":
        return Partitions.from_labels(dict(clusterings_of(runs, labels).partitions))
    if hasattr(runs, "labels_for") and hasattr(runs, "k"):  # ChosenK, which is not imported here
        runs = dict(zip((f"K = {k}" for k in runs.k), runs.labels, strict=True))
    found = Partitions.from_labels(labels_of(runs))
    if labels is None:
        return found
    chosen = matching(labels, found.names, "labels")
    return found.subset([found.names.index(name) for name in chosen])
