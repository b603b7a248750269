"""Statistics that need no pairs of objects: all of them in two passes over the rows.

The first pass merges sizes, means and scatter of clusters; the second looks at the rows with the
centres of all known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.rows import host
from wellsep.compute.requests import Block, Pass, Steps, Want, run
from wellsep.compute.statistics import centre_pairs
from wellsep.compute.statistics.ball_counts import Spread, ball_counts, balls_from, warn_of_empty
from wellsep.compute.statistics.centre_distances import TABLES, TOTALS, Clusters, View
from wellsep.compute.statistics.centre_pairs import centre_distances, lowest_rival, rival_sums
from wellsep.compute.statistics.cluster_moments import (
    Masses,
    Moments,
    cluster_moments,
    masses,
    noise_of,
)
from wellsep.compute.statistics.distance_sums import rows_of_distances
from wellsep.compute.statistics.silhouette_widths import WidthTotals

NAMES = ("clusters", "balls", "noise", *TOTALS, "margins")


class Values(NamedTuple):
    """One value per object of consecutive blocks, put together once all are known."""

    blocks: tuple[np.ndarray, ...]

    @classmethod
    def merged(cls, parts: list[Values]) -> Values:
        """The blocks of all parts in order."""
        return cls(tuple(block for part in parts for block in part.blocks))


class Described(NamedTuple):
    """What the first pass tells of all rows; one entry for each partition."""

    clusters: list[Clusters]
    spreads: list[Spread]
    apart: list[Any]  # (K, K) distances of centres; None: too many for a table

    def of(self, m: int) -> Described:
        """The same of one partition."""
        part = slice(m, m + 1)
        return Described(self.clusters[part], self.spreads[part], self.apart[part])


def provide_rows(task: Any, wants: list[Want]) -> Steps:
    """Statistics of clusters, of distances to centres, and of noise."""
    if task.space.own_metric is not None:
        return (yield from rows_of_distances(task, wants))
    if all(w.name == "noise" and not w.get("scatter") for w in wants):
        size = yield Pass(masses)
        return dict.fromkeys(wants, noise_of(size, task.partitions.offsets))
    described, size, scatter = yield from first_pass(task, {w.name for w in wants})
    found: dict[Want, list[Any]] = {}
    clusters = int(task.partitions.offsets[-1])
    most = task.partitions.n_clusters.max(initial=0)
    # A table of centres × centres would be too large, and the rows can be sorted.
    many = most > centre_pairs.MANY and task.either(True, False) and not task.space.one_caller
    for w in wants:
        if w.name == "clusters":
            found[w] = described.clusters
        elif w.name == "within" and scatter is not None and task.centers is None:
            square = scatter.square
            totals = square if square.ndim == 1 else square.sum(axis=1)
            found[w] = np.split(totals, task.partitions.offsets[1:-1])
        elif w.name == "noise" and not w.get("scatter"):
            found[w] = noise_of(size, task.partitions.offsets)
        elif w.name == "separation" and many:
            space, zero = task.space, w.get("wrong_side") == "zero"
            found[w] = [
                rival_sums(space, codes, task.weights, cluster.centers, zero)
                for codes, cluster in zip(task.partitions.codes, described.clusters, strict=True)
            ]
        elif w.get("each") and task.either(False, True):  # lazy arrays, not to be merged here
            found[w] = []
            for m in range(len(described.clusters)):
                values = Pass(values_of_block, (described.of(m), w), clusters)
                found[w].append(task.subset([m]).values(values))
    late = [w for w in wants if w not in found]
    if late:
        tables = any(w.name in (*TABLES, "balls") for w in late)
        sums = yield Pass(second_pass, (described, late), clusters if tables else 0)
        for w, added in zip(late, sums, strict=True):
            found[w] = _finished(w, added, described, size)
        if described.spreads:
            warn_of_empty(found)
    return found


def describe_clusters(task: Any) -> list[Clusters]:
    """Sizes, masses and centres of the clusters of each partition."""
    described, _, _ = run(task, first_pass(task, set()))
    return described.clusters


def first_pass(task: Any, names: set[str]) -> Steps:
    """Moments of the clusters, with the scatter that the named statistics need."""
    squares = None
    if "balls" in names:
        squares = "by column"
    elif names <= {"clusters", "within", "noise"} and "within" in names and task.centers is None:
        squares = "columns"  # else the second pass tells distances to centres
    size, sums, scatter = yield Pass(cluster_moments, (squares,))
    clusters, spreads, apart = [], [], []
    shift = task.space.shift
    for m, (a, b) in enumerate(pairwise(task.partitions.offsets)):
        mass = size.mass[a:b]
        means, mean = sums[a:b] / mass[:, None], sums[a:b].sum(axis=0) / mass.sum()
        centers = means if task.centers is None else task.centers[m] - shift
        clusters.append(Clusters(size.counts[a:b], mass, centers, mean, shift))
        if squares == "by column":
            spreads.append(Spread.of(Moments(mass, means, scatter.square[a:b]), mean))
        few = names & {"separation", "margins"} and len(centers) <= centre_pairs.MANY
        apart.append(centre_distances(centers) if few else None)
    return Described(clusters, spreads, apart), size, scatter


def second_pass(block: Block, described: Described, wants: list[Want]) -> list[list[Any]]:
    """What a block adds to each statistic of each partition, with the centres of all rows known."""
    added: list[list[Any]] = [[None] * len(described.clusters) for _ in wants]
    for which, view in _views(block, described, wants):
        stacks = [_stacked(view, described, which, w) for w in wants]
        # The host waits for a card only now that all of them are under way.
        for stack, by_partition, w in zip(stacks, added, wants, strict=True):
            for m, values in zip(which.tolist(), host(stack), strict=True):
                by_partition[m] = Values((values,)) if w.get("each") else values
    return added


def _stacked(view: View, described: Described, which: np.ndarray, w: Want) -> Any:
    """What the rows of a view add, stacked by partition."""
    if w.name == "balls":
        return ball_counts(view, [described.spreads[m] for m in which], w)
    if w.name == "noise":  # as one cluster about the mean
        noise = view.space.xp.where(view.codes < 0, 0, -1)
        means = np.stack([described.clusters[m].mean[None] for m in which])
        view = View(view.block, noise, means)
        return view.sums(view.own_square)[:, 0]
    return view.objects(w) if w.get("each") else TOTALS[w.name](view, w)


def values_of_block(block: Block, described: Described, w: Want) -> np.ndarray:
    """(b,) one value per object, of the only partition."""
    _, view = next(_views(block, described, [w]))
    return view.objects(w)[0]


def _views(
    block: Block, described: Described, wants: list[Want]
) -> Iterator[tuple[np.ndarray, View]]:
    """Partitions by number, and the block about their centres; distances to all are made once."""
    table, space = None, block.space
    if space.own_from_products or any(w.name in (*TABLES, "balls") for w in wants):
        stacked = np.vstack([c.centers for c in described.clusters])
        table = space.squares_to(block.X, stacked)  # (b, ΣK)
    for which, clusters in space.partition_batches(block.n_clusters):
        centers = np.stack([described.clusters[m].centers for m in which])
        tables = [described.apart[m] for m in which]
        apart = None if tables[0] is None else space.asarray(np.stack(tables))
        squares = None if table is None else table[:, clusters]
        yield which, View(block, block.code_index[which], centers, squares, apart)


def _finished(w: Want, added: list[Any], described: Described, size: Masses) -> list[Any]:
    """The statistic from what all blocks added."""
    if w.get("each"):
        return [np.concatenate(values.blocks) for values in added]
    if w.name == "balls":
        return [
            balls_from(near, between, spread, w)
            for (near, between), spread in zip(added, described.spreads, strict=True)
        ]
    if w.name == "separation":  # (K,) to the nearest rival; NaN: there is none
        return list(map(lowest_rival, added))
    if w.name == "radii":
        return [total / c.mass for total, c in zip(added, described.clusters, strict=True)]
    if w.name == "simplified":
        return [WidthTotals(t, c.mass) for t, c in zip(added, described.clusters, strict=True)]
    if w.name == "noise":
        scatter = [float(each) for each in added]
        return noise_of(size, np.cumsum([0, *(len(c.mass) for c in described.clusters)]), scatter)
    return added
