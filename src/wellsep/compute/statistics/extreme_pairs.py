"""The nearest pair between clusters, and the nearest and farthest pairs within them.

A product of matrices finds the candidates, differences in float64 decide among them.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from wellsep._threads import ROWS, cut_rows, in_rounds, one_blas_thread, pair_rounds
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space, host
from wellsep.compute.engine.kernel_choice import device_usable
from wellsep.compute.kernels import load
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.squares import Rows, own_axis, pair_squares, rows_of
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.requests import Task, Want, by_counted
from wellsep.compute.statistics.spanning_tree import (
    Dissimilarities,
    nearest_neighbours,
    spanning_tree,
)

NAMES = ("nearest_between", "nearest_within", "farthest_within")
# One tree costs about as much as the direct search of so many partitions.
WORTH_A_TREE = 6
CANDIDATES = 4096  # pairs of a block that are compared one by one; more of them as a whole
SMALL = ROWS // 8  # clusters of fewer objects share a block


class Extreme:
    """The smallest (sign 1) or largest (sign -1) squared distance offered so far."""

    def __init__(self, sign: int) -> None:
        self.sign, self._best, self._lock = sign, np.inf, threading.Lock()

    @property
    def square(self) -> float:
        """Squared distance; inf or -inf if none was offered."""
        return self.sign * self._best

    def hopeless(self, bound: float) -> bool:
        """Whether no squared distance beyond ``bound`` can still win."""
        return self.sign * bound >= self._best

    def offer(self, table: np.ndarray, i: Rows, j: Rows, slack: float) -> None:
        """Compare the distances of one block; near-ties are decided by differences."""
        lead = float(table.min() if self.sign > 0 else -table.max())
        if not lead - slack < self._best:
            return
        near = table <= lead + slack if self.sign > 0 else table >= -lead - slack
        at = np.flatnonzero(near)
        if len(at) > CANDIDATES:
            self.keep((cdist(i.exact, j.exact, "sqeuclidean") + own_axis(i, j, np))[near])
            return
        r, c = np.divmod(at, table.shape[1])
        self.keep(pair_squares(i, r, j, c))

    def keep(self, squares: np.ndarray) -> None:
        if len(squares):
            with self._lock:
                self._best = min(self._best, float((self.sign * squares).min()))


def provide_extremes(task: Any, wants: list[Want]) -> dict[Want, list[Any]]:
    distances: dict[Want, list[Any]] = {}
    metrics = {w: find(w.get("metric", "euclidean")) for w in wants}
    for metric in dict.fromkeys(metrics.values()):
        names = {w.name for w in wants if metrics[w] == metric}
        if task.either(True, False):
            values = _all_together(task, metric, names)
        else:
            values = task.fold_pairs(extremes_of_two, metric, names).values
        distances |= {w: list(values[w.name]) for w in wants if metrics[w] == metric}
    return distances


def _all_together(task: Task, metric: Metric, names: set[str]) -> dict[str, Any]:
    """Distances of the deciding pairs; with none at all inf, or 0 for a farthest pair within."""
    X, squares = task.space.X, {}
    if metric.finish is not None and device_usable(X):
        device = load("wellsep.compute.engine.device.extremes")
        squares = device.squares_on_device(task, metric, names)
    elif metric.numpy_usable(X):
        squares = _squares_of_all(task, metric, names)
    finish: Any = metric.finish
    distances = {name: finish(np.where(s == -np.inf, 0, s), np) for name, s in squares.items()}
    return distances | reference_extremes(task, metric, names - set(distances))


class Extremes(NamedTuple):
    """The nearest and farthest pairs met so far."""

    values: dict[str, np.ndarray]  # (M,)

    @classmethod
    def merged(cls, parts: list[Extremes]) -> Extremes:
        best = {name: np.max if name == "farthest_within" else np.min for name in parts[0].values}
        return cls({n: best[n]([p.values[n] for p in parts], axis=0) for n in best})


def extremes_of_two(
    left: Task, right: Task, places: list[int], metric: Metric, names: set[str]
) -> Extremes:
    """Of two blocks together: pairs within a block are met more than once, which is harmless."""
    X, codes = left.space.X, left.partitions.codes
    if places[0] != places[1]:
        X = np.vstack([X, right.space.X])
        codes = np.hstack([codes, right.partitions.codes])
    values = {n: np.full(len(codes), 0.0 if "farthest" in n else np.inf) for n in names}
    useful = np.flatnonzero((codes >= 0).sum(axis=1) >= 2)
    if len(useful):
        space = Space(X, 1, origin=left.space.origin, unit=left.space.unit)
        some = replace(left.partitions, codes=codes).subset(useful.tolist())
        for name, distances in _all_together(Task(space, some, None), metric, names).items():
            values[name][useful] = distances
    return Extremes(values)


def _squares_of_all(task: Task, metric: Metric, names: set[str]) -> dict[str, np.ndarray]:
    """Blocks that belong to one cluster each, or one tree where many partitions share it."""
    partitions, jobs = task.partitions, task.space.n_jobs
    prepared = task.space.on_host(metric)
    squares = {name: np.full(len(partitions), np.nan) for name in names}
    for rows, group in by_counted(task):
        left = set(names)
        if len(group) >= WORTH_A_TREE and left - {"farthest_within"}:
            codes = partitions.codes[group][:, rows]
            shared = _shared(rows_of(prepared.take(rows)), codes, jobs, left)
            for name, values in shared.items():
                squares[name][group] = values
            left -= set(shared)
        for m in group if left else ():
            extremes = _one_partition(prepared, partitions.codes[m], jobs, left)
            for name, extreme in extremes.items():
                squares[name][m] = extreme.square
    return squares


def _shared(rows: Rows, codes: np.ndarray, jobs: int, names: set[str]) -> dict[str, np.ndarray]:
    """Nearest pairs of all partitions from one search for nearest neighbours and one tree."""
    squares = {}
    pairs = Dissimilarities(rows)
    near = nearest_neighbours(pairs, jobs)
    if "nearest_between" in names:  # an edge of the tree, else it would cross by a longer one
        tree = spanning_tree(pairs, jobs, near)
        across = codes[:, tree.edges[:, 0]] != codes[:, tree.edges[:, 1]]  # (M, n - 1)
        squares["nearest_between"] = np.where(across, tree.squares, np.inf).min(axis=1)
    if "nearest_within" in names:
        with one_blas_thread():
            squares["nearest_within"] = np.array(
                [_nearest_within(rows, c, near.nearest, near.square) for c in codes]
            )
    return squares


def _nearest_within(rows: Rows, codes: np.ndarray, near: np.ndarray, square: np.ndarray) -> float:
    """Nearest neighbours of the same cluster, and those whom a nearer stranger hides."""
    same = codes == codes[near]
    best = Extreme(1)
    best.keep(square[same])
    hidden = np.flatnonzero(~same & (square < best.square))
    for code in np.unique(codes[hidden]):
        searching, members = hidden[codes[hidden] == code], np.flatnonzero(codes == code)
        j = rows.take(members)
        for block in cut_rows(len(searching), ROWS):
            i = rows.take(searching[block])
            table = i.left @ j.right.T
            itself = np.searchsorted(members, searching[block])
            table[np.arange(len(itself)), itself] = np.inf
            best.offer(table, i, j, i.slack(j))
    return best.square


def _one_partition(
    prepared: Prepared, codes: np.ndarray, jobs: int, names: set[str]
) -> dict[str, Extreme]:
    """Objects sorted by cluster, so that a block of pairs is within or between as a whole.

    Only a block of several small clusters has pairs of both kinds with itself.
    """
    extremes = {name: Extreme(-1 if name == "farthest_within" else 1) for name in names}
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    sorted_codes, prepared = codes[order], prepared.take(order)
    radius = _distance_to_means(prepared, sorted_codes)
    # Outermost first within a cluster: the farthest pair is met early, and inner blocks drop out.
    outward = np.lexsort((-radius, sorted_codes))
    rows, radius = rows_of(prepared.take(outward)), radius[outward]
    blocks = cut_clusters(sorted_codes)
    cluster = [int(sorted_codes[b.start]) for b in blocks]
    mixed = [bool(sorted_codes[b.start] != sorted_codes[b.stop - 1]) for b in blocks]
    outermost = [float(radius[b].max()) for b in blocks]

    def still_wanted(i: int, j: int) -> list[str]:
        """What is asked of the pairs of two blocks, and can still change."""
        within = cluster[i] == cluster[j]
        between = not within or (i == j and mixed[i])
        reach = (outermost[i] + outermost[j]) ** 2 * (1 + 1e-9)
        return [
            name
            for name, extreme in extremes.items()
            if (between if name == "nearest_between" else within)
            and not extreme.hopeless(reach if name == "farthest_within" else 0.0)
        ]

    def visit(i: int, j: int) -> None:
        wanted = still_wanted(i, j)
        if not wanted:  # since the round was made up
            return
        a, b = rows.take(blocks[i]), rows.take(blocks[j])
        table, slack = a.left @ b.right.T, a.slack(b)
        same = None
        if i == j and mixed[i]:
            codes_of_block = sorted_codes[blocks[i]]
            same = codes_of_block[:, None] == codes_of_block
        for name in wanted:
            never = -np.inf if name == "farthest_within" else np.inf
            squares = table
            if same is not None:
                squares = np.where(same ^ (name == "nearest_between"), table, never)
            if i == j:
                np.fill_diagonal(squares, never)
            extremes[name].offer(squares, a, b, slack)

    rounds = ([pair for pair in pairs if still_wanted(*pair)] for pairs in pair_rounds(len(blocks)))
    in_rounds(jobs, visit, rounds)
    return extremes


def cut_clusters(sorted_codes: np.ndarray) -> list[slice]:
    """Blocks of at most ROWS: pieces of one cluster, or several small clusters as a whole."""
    edges = [*np.flatnonzero(np.diff(sorted_codes, prepend=-1)).tolist(), len(sorted_codes)]
    blocks: list[slice] = []
    start = edges[0]  # of the small clusters that have no block yet
    for a, b in pairwise(edges):
        small = b - a < SMALL
        if start < a and (not small or b - start > ROWS):
            blocks.append(slice(start, a))
            start = a
        if not small:
            blocks += [slice(a + p.start, a + p.stop) for p in cut_rows(b - a, ROWS)]
            start = b
    if start < edges[-1]:
        blocks.append(slice(start, edges[-1]))
    return blocks


def _distance_to_means(prepared: Prepared, sorted_codes: np.ndarray) -> np.ndarray:
    """The axis of a zero row's own leads away from every mean."""
    X, zero = prepared
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    sizes = np.diff([*starts, len(X)])
    means = np.add.reduceat(X, starts, axis=0) / sizes[:, None]
    gap = X - np.repeat(means, sizes, axis=0)
    return np.sqrt(np.einsum("ij,ij->i", gap, gap) + (0 if zero is None else zero))


@one_blas_thread()
def reference_extremes(task: Task, metric: Metric, names: set[str]) -> dict[str, np.ndarray]:
    """For any metric and device: every block is masked for every partition."""
    if not names:
        return {}
    space = task.space
    space.refuse_sparse()
    xp = space.xp
    if metric.finish is not None and space.X.dtype != xp.float64:
        space = space.with_rows(xp.astype(space.X, xp.float64))
    pairs = Pairs(space, metric)
    blocks = pairs.blocks
    codes = [space.asarray(task.partitions.codes[:, rows]) for rows in blocks]
    # Beside X, for a card would wait for every number on the host; negated if farthest.
    best = {name: space.zeros((len(task.partitions),)) + xp.inf for name in names}
    for a, b in itertools.product(range(len(blocks)), repeat=2):
        if a > b and metric.symmetric:
            continue
        table = pairs.block(blocks[a], blocks[b])
        for m, (left, right) in enumerate(zip(codes[a], codes[b], strict=True)):
            counted = (left >= 0)[:, None] & (right >= 0)[None, :]
            same = counted & (left[:, None] == right[None, :])
            across = counted & ~same
            if a == b:
                same = same & ~xp.astype(xp.eye(len(left), device=table.device), xp.bool)
            for name, values in best.items():
                mask = across if name == "nearest_between" else same
                signed = -table if name == "farthest_within" else table
                lowest = xp.min(xp.where(mask, signed, xp.full_like(table, xp.inf)))
                values[m] = xp.minimum(values[m], lowest)
    distances = {name: host(values) for name, values in best.items()}
    if "farthest_within" in distances:
        farthest = distances["farthest_within"]
        distances["farthest_within"] = np.where(np.isinf(farthest), 0.0, -farthest)
    return distances
