"""The smallest farthest-pair distance and the smallest Hausdorff distance of two clusters.

A product of matrices gives the distances of all pairs of clusters of two blocks at once, so that
the work does not grow with the number of clusters; differences in float64 decide near-ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space
from wellsep.compute.engine.threads import ROWS, cut_rows, in_threads, pair_rounds
from wellsep.compute.metrics.table import (
    Metric,
    Rows,
    find,
    numpy_squares,
    pair_squares,
    root,
    rows_of,
)
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.extreme_pairs import CANDIDATES, Extreme, cut_clusters


class Linkage(NamedTuple):
    """The smallest distances between two clusters."""

    complete: float  # of the farthest pair
    hausdorff: float  # the farthest that a member of either lies from all of the other


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
    """Option ``metric``: Euclidean by matrix products, any other by blocks of its distances."""
    found: dict[Want, list[Any]] = {}
    for w in wants:
        metric, jobs = find(w.get("metric", "euclidean")), task.space.host_jobs
        if metric.finish is root:
            X = task.space.on_host(metric).X
            found[w] = [_link(X, codes, jobs) for codes in task.partitions.codes]
        else:
            found[w] = [_link_any(task.space, metric, row, jobs) for row in task.partitions.codes]
    return found


def _link_any(space: Space, metric: Metric, codes: np.ndarray, jobs: int) -> Linkage:
    """From blocks of distances, each between parts of two clusters."""
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    groups, pairs = codes[order], Pairs(space, metric, wide=True)
    blocks = cut_rows(len(order), ROWS, groups)
    owner = [int(groups[b.start]) for b in blocks]
    k = int(groups[-1]) + 1
    farthest = np.zeros((len(blocks), len(blocks)))
    nearest = np.full((len(order), k), np.inf)  # of each object to each cluster

    def visit(i: int, j: int) -> None:
        if owner[i] == owner[j]:
            return
        a, b = blocks[i], blocks[j]
        table = pairs.block(order[a], order[b])
        farthest[i, j] = farthest[j, i] = table.max()
        nearest[a, owner[j]] = np.minimum(nearest[a, owner[j]], table.min(axis=1))
        nearest[b, owner[i]] = np.minimum(nearest[b, owner[i]], table.min(axis=0))

    in_threads(jobs, visit, pair_rounds(len(blocks)))
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    complete = np.maximum.reduceat(np.maximum.reduceat(farthest, starts, axis=0), starts, axis=1)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    directed = np.maximum.reduceat(np.where(np.isinf(nearest), 0, nearest), first, axis=0)
    apart = ~np.eye(k, dtype=bool)
    mutual = np.maximum(directed, directed.T)
    return Linkage(float(complete[apart].min()), float(mutual[apart].min()))


def _link(X: np.ndarray, codes: np.ndarray, jobs: int) -> Linkage:
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    rows = rows_of(X[order])
    parts = _parts(codes[order])
    best = (Extreme(1), Extreme(1))  # complete, Hausdorff

    def visit(i: int, j: int) -> None:
        p, q = parts[i], parts[j]
        if len(p.starts) == len(q.starts) == 1:
            if i != j:
                squares = _apart(rows, p.cluster(0), q.cluster(0))
                for extreme, square in zip(best, squares, strict=True):
                    extreme.keep(np.array([square]))
            return
        slack = rows.take(slice(p.first, p.stop)).slack(rows.take(slice(q.first, q.stop)))
        farthest, there = _directed(rows, p, q)
        mutual = np.maximum(there, _directed(rows, q, p)[1].T)
        for place, (extreme, table) in enumerate(zip(best, (farthest, mutual), strict=True)):
            if i == j:
                np.fill_diagonal(table, np.inf)
            lead = float(table.min())
            if extreme.square == 0 or extreme.hopeless(lead - slack):
                continue
            for a, b in np.argwhere(table <= lead + slack)[:CANDIDATES]:
                extreme.keep(np.array([_apart(rows, p.cluster(a), q.cluster(b))[place]]))

    in_threads(jobs, visit, pair_rounds(len(parts)))
    return Linkage(*(float(np.sqrt(extreme.square)) for extreme in best))


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


def _directed(rows: Rows, p: _Part, q: _Part) -> tuple[np.ndarray, np.ndarray]:
    """(K_p, K_q) squares: the farthest pair, and the farthest of p's from its nearest of q's."""
    farthest = np.full((len(p.starts), len(q.starts)), -np.inf)
    lonely = farthest.copy()
    for a in p.blocks:
        far = np.full((a.stop - a.start, len(q.starts)), -np.inf)
        near = -far
        for b in q.blocks:
            table = numpy_squares(rows.take(a), rows.take(b))
            starts = q.starts if len(q.blocks) == 1 else [0]
            np.maximum(far, np.maximum.reduceat(table, starts, axis=1), out=far)
            np.minimum(near, np.minimum.reduceat(table, starts, axis=1), out=near)
        starts = p.starts if len(p.blocks) == 1 else [0]
        np.maximum(farthest, np.maximum.reduceat(far, starts, axis=0), out=farthest)
        np.maximum(lonely, np.maximum.reduceat(near, starts, axis=0), out=lonely)
    return farthest, lonely


def _apart(rows: Rows, one: slice, other: slice) -> tuple[float, float]:
    """Squares for two clusters, complete and Hausdorff, each from the differences of its pair."""
    farthest = lonely = 0.0
    for mine, theirs in ((one, other), (other, one)):
        for piece in cut_rows(mine.stop - mine.start, ROWS):
            i = rows.take(slice(mine.start + piece.start, mine.start + piece.stop))
            square = np.full(len(i.X), np.inf)
            for part in cut_rows(theirs.stop - theirs.start, ROWS):
                j = rows.take(slice(theirs.start + part.start, theirs.start + part.stop))
                table = numpy_squares(i, j)
                everyone = np.arange(len(i.X))
                square = np.minimum(square, pair_squares(i, everyone, j, table.argmin(axis=1)))
                far = pair_squares(i, everyone, j, table.argmax(axis=1))
                farthest = max(farthest, float(far.max()))
            lonely = max(lonely, float(square.max()))
    return farthest, lonely
