"""The smallest farthest-pair distance and the smallest Hausdorff distance of two clusters.

A product of matrices gives the distances of all pairs of clusters of two blocks at once, so that
the work does not grow with the number of clusters; differences in float64 decide near-ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import ROWS, cut_rows, in_rounds, pair_rounds
from wellsep.compute.data.rows import Space
from wellsep.compute.metrics.squares import rows_of
from wellsep.compute.metrics.table import Metric, find, root
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.density_trees import MetricPairs
from wellsep.compute.statistics.extreme_pairs import CANDIDATES, Extreme, cut_clusters
from wellsep.compute.statistics.spanning_tree import Dissimilarities


class _Part(NamedTuple):
    """One large cluster, or several small ones."""

    blocks: list[slice]
    starts: np.ndarray  # where clusters begin, from the first row of the part
    stop: int

    @property
    def first(self) -> int:
        return self.blocks[0].start

    def cluster(self, at: int) -> slice:
        ends = [*self.starts[1:].tolist(), self.stop - self.first]
        return slice(self.first + int(self.starts[at]), self.first + int(ends[at]))


def provide_linkage(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """The smallest distance of two clusters. Option ``of``: their farthest pair ("complete"), or
    the farthest that a member of either lies from all of the other ("hausdorff").

    Option ``metric``: Euclidean by matrix products, any other by blocks of its distances.
    """
    metrics = {w: find(w.get("metric")) for w in wants}
    linked = {
        metric: [_link(task.space, metric, codes) for codes in task.partitions.codes]
        for metric in metrics.values()
    }
    return {w: [found[w.get("of")] for found in linked[metrics[w]]] for w in wants}


def _link(space: Space, metric: Metric, codes: np.ndarray) -> dict[str, float]:
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    pairs: Dissimilarities
    if metric.finish is root:
        pairs = Dissimilarities(rows_of(space.on_host(metric).X[order]))
        slack = pairs.rows.slack(pairs.rows)
    else:
        pairs, slack = MetricPairs(space, metric, order), 0.0
    parts = _parts(codes[order])
    best = {"complete": Extreme(1), "hausdorff": Extreme(1)}

    def visit(i: int, j: int) -> None:
        p, q = parts[i], parts[j]
        if len(p.starts) == len(q.starts) == 1:
            if i != j:
                squares = _apart(pairs, p.cluster(0), q.cluster(0))
                for extreme, square in zip(best.values(), squares, strict=True):
                    extreme.keep(np.array([square]))
            return
        tables = zip(best.values(), _tables(pairs, p, q), strict=True)
        for place, (extreme, table) in enumerate(tables):
            if i == j:
                np.fill_diagonal(table, np.inf)
            lead = float(table.min())
            if extreme.square == 0 or extreme.hopeless(lead - slack):
                continue
            for a, b in np.argwhere(table <= lead + slack)[:CANDIDATES]:
                extreme.keep(np.array([_apart(pairs, p.cluster(a), q.cluster(b))[place]]))

    in_rounds(space.host_jobs, visit, pair_rounds(len(parts)))
    return {name: float(np.sqrt(extreme.square)) for name, extreme in best.items()}


def _parts(sorted_codes: np.ndarray) -> list[_Part]:
    parts: list[_Part] = []
    owner = -1
    for block in cut_clusters(sorted_codes):
        if sorted_codes[block.start] == owner:  # a further piece of a large cluster
            parts[-1] = parts[-1]._replace(blocks=[*parts[-1].blocks, block], stop=block.stop)
            continue
        starts = np.flatnonzero(np.diff(sorted_codes[block], prepend=-1))
        parts.append(_Part([block], starts, block.stop))
        owner = int(sorted_codes[block.start])
    return parts


def _tables(pairs: Dissimilarities, p: _Part, q: _Part) -> tuple[np.ndarray, np.ndarray]:
    """(K_p, K_q) squares: the farthest pair, and the farthest member from the other's nearest."""
    farthest = np.full((len(p.starts), len(q.starts)), -np.inf)
    near_p = np.full((p.stop - p.first, len(q.starts)), np.inf)
    near_q = np.full((q.stop - q.first, len(p.starts)), np.inf)
    for a in p.blocks:
        for b in q.blocks:
            table = pairs.plain(a, b)
            far = np.maximum.reduceat(table, q.starts, axis=1)
            np.maximum(farthest, np.maximum.reduceat(far, p.starts, axis=0), out=farthest)
            for near, near_table, starts in (
                (near_p[a.start - p.first : a.stop - p.first], table, q.starts),
                (near_q[b.start - q.first : b.stop - q.first], table.T, p.starts),
            ):
                np.minimum(near, np.minimum.reduceat(near_table, starts, axis=1), out=near)
    lonely = np.maximum.reduceat(near_p, p.starts, axis=0)
    return farthest, np.maximum(lonely, np.maximum.reduceat(near_q, q.starts, axis=0).T)


def _apart(pairs: Dissimilarities, one: slice, other: slice) -> tuple[float, float]:
    """Squares for two clusters, complete and Hausdorff, each from the differences of its pair."""
    farthest, near = 0.0, [np.full(s.stop - s.start, np.inf) for s in (one, other)]
    for a in cut_rows(len(near[0]), ROWS):
        for b in cut_rows(len(near[1]), ROWS):
            i = slice(one.start + a.start, one.start + a.stop)
            j = slice(other.start + b.start, other.start + b.stop)
            far, mine, theirs = pairs.extremes(i, j)
            farthest = max(farthest, far)
            near[0][a], near[1][b] = np.minimum(near[0][a], mine), np.minimum(near[1][b], theirs)
    return farthest, float(max(near[0].max(), near[1].max()))
