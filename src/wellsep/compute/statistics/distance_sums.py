"""Sums of distances to clusters, over all pairs of objects once per metric.

``paired_strips`` visits pairs of blocks. ``sorted_sums`` takes the rows of one partition
in the order of their clusters: no block then holds objects of two clusters, and what a block adds
to the sums of both its sides are its row and column sums, two products with a vector in place of
two with a matrix of memberships and a transposed copy. The distances themselves never leave a block
function, so that a fused kernel or a task on another machine can take its place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import kernels_wanted
from wellsep._threads import (
    ROWS,
    budget_bytes,
    cut_rows,
    in_rounds,
    in_threads,
    one_blas_thread,
    pair_rounds,
)
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space, host, one_hot
from wellsep.compute.engine.kernel_choice import compiled_pays
from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import about_median, cluster_reach, fused_usable, fused_way
from wellsep.compute.metrics.gower_sums import column_strips, columns_usable
from wellsep.compute.metrics.squares import ROUNDING, Rows, same_objects
from wellsep.compute.metrics.table import Metric, find, root
from wellsep.compute.requests import Block, Pass, Steps, Task, Want, run, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.cluster_moments import (
    Masses,
    masses,
    noise_of,
    provide_within_squares,
)
from wellsep.compute.statistics.silhouette_widths import WidthTotals, width_totals, widths_from_sums
from wellsep.partitions import Partitions

NAMES = ("widths", "within_distances", "between_distances")
NOWHERE = np.zeros(0)  # the place of a centre that has no coordinates
SMALL = ROWS // 2  # clusters of fewer objects make blocks that cost more calls than they save


# (block, its distance sums, metric, sizes of clusters, what is wanted) → what the block adds
Finish = Callable[[Block, Any, Metric, Masses, Any], Any]


class PairPart(NamedTuple):
    """What one pair of blocks adds."""

    sums_i: Any  # (ΣK, b_i) distances from each i to each cluster, summed over j
    sums_j: Any  # (ΣK, b_j) the same seen from j; None if not asked for


def pair_block(i: Rows, j: Rows, metric: Metric, xp: Any, both: bool = True) -> PairPart:
    """Distance sums of one pair of blocks; seen from j too with ``both``."""
    table = metric.distances(i, j, xp)
    sums_i = xp.astype(j.members, table.dtype) @ table.T
    if same_objects(i, j) or not both:
        return PairPart(sums_i, None)
    return PairPart(sums_i, xp.astype(i.members, table.dtype) @ table)


def numpy_pair_block(
    i: Rows, j: Rows, metric: Metric, xp: Any, both: bool = True, add: Any = operator.matmul
) -> PairPart:
    """Memberships are sparse here: M additions per distance instead of ΣK multiplications."""
    table = metric.numpy_distances(i, j)
    sums_i = add(j.members, np.ascontiguousarray(table.T))
    if same_objects(i, j) or not both:
        return PairPart(sums_i, None)
    return PairPart(sums_i, add(i.members, table))


def numba_pays(n: int, d: int, m: int) -> bool:
    """Whether the compiled sums beat NumPy's by half and, counting earlier work, pay for loading.

    They equal NumPy's bit for bit, so it does not matter when a program changes over.
    """
    if m < 10 + d / 5:  # products and roots are then most of the work
        return False
    return compiled_pays(float(n) ** 2 * m)


def numba_pair_block(i: Rows, j: Rows, metric: Metric, xp: Any, both: bool = True) -> PairPart:
    """The additions compiled: they are most of the work for many partitions."""
    member_sums = load("wellsep.compute.kernels.numba_sums").member_sums

    def add(members: Any, table: np.ndarray) -> np.ndarray:
        return member_sums(members.indptr, members.indices, members.data, table)

    return numpy_pair_block(i, j, metric, xp, both, add)


def way_to_sum(X: Any, metric: Metric, m: int) -> Callable[..., PairPart]:
    """What sums pairs of blocks of such rows fastest, with m partitions."""
    if not metric.numpy_usable(X):
        return pair_block
    n, d = X.shape
    return numba_pair_block if numba_pays(n, d, m) else numpy_pair_block


class Sides:
    """Objects under one metric, cut into blocks, with what they weigh in all clusters.

    ``objects`` are all rows of their space. With ``group`` (n,) no block holds objects of two
    groups, and ``owners`` names the group of each block.
    """

    def __init__(
        self, objects: Block, metric: Any, group: np.ndarray | None = None, single: bool = False
    ) -> None:
        space, all_codes, weights = objects.space, objects.codes, objects.weights
        self.space, self.pairs = space, Pairs(space, metric)
        self.metric = self.pairs.metric
        blocks: list[Any]
        if group is None:
            blocks = cut_rows(space.n, space.block_rows)
        else:
            order = np.argsort(group, kind="stable")
            blocks = [order[rows] for rows in cut_rows(space.n, space.block_rows, group[order])]
            self.owners = [int(group[some[0]]) for some in blocks]
        if single:  # widths are free of the scale where distances are
            self.pairs.in_single_precision(self.metric.finish is root or self.metric.linear)
        self.blocks, self.view = blocks, self.pairs.prepared.X
        self.block = way_to_sum(self.view, self.metric, len(all_codes))
        sparse = self.block is not pair_block
        n_clusters, dtype, self.members = objects.n_clusters, self.view.dtype, []
        for rows in blocks:
            mine = None if weights is None else weights[rows]
            table = space.memberships(all_codes[:, rows], n_clusters, mine, dtype, sparse)
            self.members.append(table)

    def side(self, b: int, start: int = 0) -> Rows:
        """One block; ``start`` is the number of the first row of the space among all rows."""
        rows = self.blocks[b]
        if not isinstance(rows, slice):
            return self.apart(rows, self.members[b])
        some = self.pairs.rows(rows, self.members[b])
        return replace(some, at=slice(start + rows.start, start + rows.stop)) if start else some

    def apart(self, objects: np.ndarray, members: Any = None) -> Rows:
        """Rows without positions: the distance of an object to itself is computed as any other."""
        rows = self.pairs.rows(self.space.asarray(objects), members)
        return replace(rows, at=None) if self.metric.finish is not None else rows

    def add_sums(self, rows: Rows, totals: Sequence[Any]) -> None:
        """Add the distance sums (ΣK, b) of some rows over each block to the total of the block."""
        for b, total in enumerate(totals):
            part = self.block(rows, self.side(b), self.metric, self.space.xp, False)
            total += part.sums_i


def provide_pairs(task: Any, wants: list[Want]) -> Steps:
    """Without pairs where the metric knows a way, else from one pass over them."""
    found: dict[Want, list[Any]] = {}
    metrics = {w: find(w.get("metric", "euclidean")) for w in wants}
    for w in [w for w in wants if w.get("each")]:
        values = own_sums if w.name == "within_distances" else width_values
        found[w] = [values(task.subset([m]), w) for m in range(len(task.partitions))]
    for metric in dict.fromkeys(metrics.values()):
        rest = [w for w in wants if metrics[w] == metric and w not in found]
        within = [w for w in rest if w.name == "within_distances" and metric.linear]
        widths = [w for w in rest if w.name == "widths" and metric.sums is not None]
        if within:
            found.update((yield from provide_within_squares(task, metric, within)))
        if widths:
            size, sums = yield Pass(sums_of_rows, (metric,))
            given = metric, size, sums, from_sums, widths
            added = yield Pass(from_row_sums, given, len(sums))
            found.update(_finished(task, widths, added, size))
        paired = [w for w in rest if w not in found]
        if paired:
            found.update((yield from reduce_sums(task, metric, paired)))
    return found


def width_values(task: Any, wanted: Want) -> Any:
    """(n,) silhouette widths of the only partition; lazy where X is on Dask."""
    metric, singleton = find(wanted.get("metric", "euclidean")), wanted.get("singleton", 0)
    if metric.sums is not None:
        size, sums = task.fold([Pass(sums_of_rows, (metric,))])[0]
        given = metric, size, sums, widths_of_block, singleton
        return task.values(Pass(from_row_sums, given, len(sums)))
    size = task.fold([Pass(masses)])[0]
    return task.fold_strips(strips, pair_sums, widths_of_block, metric, size, singleton, each=True)


def reduce_sums(task: Any, metric: Metric, wants: list[Want]) -> Steps:
    """Widths and sums within and between clusters, from the pairs of all objects."""
    size = yield Pass(masses)
    added = task.fold_strips(strips, pair_sums, from_sums, metric, size, wants)
    return _finished(task, wants, added, size)


def _finished(
    task: Any, wants: list[Want], added: list[Any], size: Masses
) -> dict[Want, list[Any]]:
    """Statistics of each partition from what all blocks added."""
    found: dict[Want, list[Any]] = {}
    for w, total in zip(wants, added, strict=True):
        found[w] = list(total)
        if w.name == "widths":
            totals, groups = total
            found[w] = [
                WidthTotals(totals[a:b], size.mass[a:b], None if groups is None else groups[:, a:b])
                for a, b in pairwise(task.partitions.offsets)
            ]
    return found


def from_sums(
    block: Block, sums: Any, metric: Metric, size: Masses, wants: list[Want]
) -> list[Any]:
    """What the (ΣK, b) distance sums of a block add to each statistic."""
    return [FROM_SUMS[w.name](block, sums, size, w) for w in wants]


def _within(block: Block, sums: Any, size: Masses, w: Want) -> np.ndarray:
    """(M,) distances of the pairs within clusters, summed; each pair is met twice."""
    weights = np.where(block.codes >= 0, block.weights_or_ones, 0.0)
    return 0.5 * (weights * host(sums[block.own_clusters])).sum(axis=1)


def _between(block: Block, sums: Any, size: Masses, w: Want) -> list[np.ndarray]:
    """(K, K) distances to each cluster from the members of each, summed."""
    return [
        host(block.space.cluster_sums(sums[a:b].T, codes[None], np.array([b - a]), block.weights)).T
        for codes, (a, b) in zip(block.code_index, pairwise(block.offsets), strict=True)
    ]


FROM_SUMS = {"widths": width_totals, "within_distances": _within, "between_distances": _between}


def widths_of_block(
    block: Block, sums: Any, metric: Metric, size: Masses, singleton: float
) -> np.ndarray:
    """(b,) widths of the only partition."""
    return host(widths_from_sums(block, sums, size.mass, size.counts, singleton))[0]


def sums_of_rows(block: Block, metric: Metric) -> tuple[Masses, np.ndarray]:
    """Sizes of the clusters, and (ΣK, e) sums of the rows that give a metric's distances."""
    rows = metric.sums.rows(block.space, block.rows)  # type: ignore[union-attr]
    return masses(block), block.cluster_sums(rows)


def row_distance_sums(
    block: Block, metric: Metric, rows: Any, mass: np.ndarray, totals: np.ndarray
) -> Any:
    """(ΣK, b) distance sums without pairs of ``rows`` (b, e), from sums of rows over clusters."""
    summed: Any = metric.sums
    space, sums = block.space, block.space.asarray(totals)
    lengths = summed.lengths(space, rows, sums, space.asarray(mass))
    table = summed.distances(space, rows, sums, lengths)
    # an object is at distance 0 from itself, also where its row is zero
    itself = space.asarray(block.weights_or_ones) * summed.itself(space, rows)
    table[block.own_clusters] -= space.xp.where(block.code_index < 0, 0.0, itself)
    table[table < ROUNDING * lengths] = 0
    return table


def from_row_sums(
    block: Block, metric: Metric, size: Masses, totals: np.ndarray, finish: Finish, given: Any
) -> Any:
    """What a block adds where its distance sums follow from sums of rows."""
    rows = metric.sums.rows(block.space, block.rows)  # type: ignore[union-attr]
    sums = row_distance_sums(block, metric, rows, size.mass, totals)
    return finish(block, sums, metric, size, given)


def pair_sums(left: Task, right: Task, places: tuple[int, int], metric: Metric) -> tuple[Any, Any]:
    """(ΣK, b) distance sums of the left rows over the right ones, and the other way round.

    ``places`` are the numbers of their first rows among all; None where both are the same.
    """
    own = places[0] == places[1]
    a = Sides(left.block(), metric)
    b = a if own else Sides(right.block(), metric)
    block, both = a.block, metric.symmetric
    width = int(left.partitions.offsets[-1])
    sums_a = np.zeros((width, left.space.n))
    sums_b = sums_a if own else np.zeros((width, right.space.n))
    for i in range(len(a.blocks)):
        for j in range(i if own else 0, len(b.blocks)):
            one, two = a.side(i, places[0]), b.side(j, places[1])
            part = block(one, two, metric, np, both)
            sums_a[:, a.blocks[i]] += part.sums_i
            if own and i == j:
                continue
            back = part.sums_j if both else block(two, one, metric, np, False).sums_i
            sums_b[:, b.blocks[j]] += back
    return sums_a, None if own else sums_b


def strips(task: Task, metric: Metric) -> Any:
    """(rows, sums of those rows); rows come in the given order."""
    space = task.space
    if space.own_metric is not None and columns_usable(task, metric):
        return column_strips(task, metric)
    if space.one_caller and fused_usable(space.X, metric):
        n_clusters, weights = task.partitions.n_clusters, task.weights
        X, reach = about_median(space.X)
        codes = space.asarray(task.partitions.codes)
        distant = cluster_reach(replace(space, X=X, _views={}), codes, n_clusters)
        way = fused_way(X, reach, distant, n_clusters, weights is not None)
        if way is not None:
            fused_strips = load("wellsep.compute.kernels.triton_sums").fused_strips
            rows_at_once = max(1024, int(budget_bytes() / (32 * int(n_clusters.sum()))))
            return fused_strips(X, codes, n_clusters, weights, rows_at_once, way)
    if not task.sums_fit:
        return _strip_by_strip(task, metric)
    if metric.cluster_sums is not None and kernels_wanted():
        clusters = one_hot(task.partitions.codes, task.partitions.n_clusters, task.weights)
        return cut_sums(space, metric.cluster_sums(space, sp.csr_array(clusters.T)))
    if sorted_usable(task, metric):
        return cut_sums(space, sorted_sums(task, metric))
    return paired_strips(task, metric)


def paired_strips(task: Task, metric: Metric) -> Any:
    """Every pair of blocks once, with sums of both sides."""
    space, sides, both_ways = task.space, Sides(task.block(), metric), metric.symmetric
    block, width = sides.block, int(task.partitions.offsets[-1])
    # An array of its own for each block: to add to part of each row of one large array takes
    # twice to four times as long.
    parts = [space.zeros((width, rows.stop - rows.start)) for rows in sides.blocks]

    def visit(i: int, j: int) -> None:
        a, b = sides.side(i), sides.side(j)
        part = block(a, b, metric, space.xp, both_ways)
        parts[i] += part.sums_i
        if both_ways and i != j:
            parts[j] += part.sums_j
        elif i != j:  # a metric of the user's own need not be symmetric
            parts[j] += block(b, a, metric, space.xp, False).sums_i

    in_rounds(space.n_jobs, visit, pair_rounds(len(sides.blocks)))
    yield from zip(sides.blocks, parts, strict=True)


def _strip_by_strip(task: Task, metric: Metric) -> Any:
    """Where n × ΣK sums exceed the budget: each strip against everything, twice the work."""
    sides = Sides(task.block(), metric)
    space, width = task.space, int(task.partitions.offsets[-1])
    per_strip = max(1, int(budget_bytes() / (8 * width * (sides.blocks[0].stop))))
    for start in range(0, len(sides.blocks), per_strip):
        strip = range(start, min(start + per_strip, len(sides.blocks)))
        first, last = sides.blocks[strip[0]].start, sides.blocks[strip[-1]].stop
        sums = space.zeros((width, last - first))

        def visit(i: int, sums: Any = sums, first: int = first) -> None:
            a = sides.side(i)
            rows = slice(a.at.start - first, a.at.stop - first)
            sides.add_sums(a, [sums[:, rows]] * len(sides.blocks))

        in_threads(space.n_jobs, visit, strip)
        yield slice(first, last), sums


def sorted_usable(task: Task, metric: Metric) -> bool:
    """One partition of NumPy data into clusters that fill their blocks."""
    partitions, space = task.partitions, task.space
    return (
        len(partitions) == 1
        and not space.in_file
        and metric.numpy_usable(space.X)
        and space.n >= SMALL * int(partitions.n_clusters[0])
    )


def sorted_sums(task: Task, metric: Metric) -> np.ndarray:
    """(K, n) float64, 0 for objects that are not counted."""
    codes = task.partitions.codes[0]
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    codes = codes[order]
    rows = Pairs(task.space, metric).rows(order)  # made ready once, in the order of the clusters
    weights = np.ones(len(order)) if task.weights is None else task.weights[order]
    weights = weights.astype(rows.X.dtype)
    blocks = cut_rows(len(order), ROWS, codes)
    sums = np.zeros((int(task.partitions.n_clusters[0]), len(order)))

    def visit(i: int, j: int) -> None:
        a, b = blocks[i], blocks[j]
        table = metric.numpy_distances(rows.part(a), rows.part(b))
        sums[codes[b.start], a] += table @ weights[b]
        if i != j:
            sums[codes[a.start], b] += weights[a] @ table

    in_rounds(task.space.n_jobs, visit, pair_rounds(len(blocks)))
    in_given_order = np.zeros((len(sums), task.space.n))
    in_given_order[:, order] = sums
    return in_given_order


def own_sums(task: Task, wanted: Want) -> np.ndarray:
    """(n,) distances from each object to those of its cluster, summed; NaN where not counted.

    The smallest of a cluster is its medoid's.
    """
    codes = task.partitions.codes[0]
    own = np.full(task.space.n, np.nan)
    for rows, sums in strips(task, find(wanted.get("metric", "euclidean"))):
        counted = np.flatnonzero(codes[rows] >= 0)
        own[rows.start + counted] = host(sums)[codes[rows][counted], counted]
    return own


def cut_sums(space: Space, sums: np.ndarray) -> Iterator[tuple[slice, Any]]:
    """(rows, sums of those rows); rows come in the given order."""
    for rows in space.row_blocks(len(sums)):
        yield rows, space.asarray(sums[:, rows])


class Sample(NamedTuple):
    """Some objects."""

    X: np.ndarray  # (s, d)
    codes: np.ndarray  # (s,)
    weights: np.ndarray  # (s,)


def sampled_widths(
    task: Any, targets: np.ndarray, size: Masses, metric: Metric, singleton: float
) -> np.ndarray:
    """(s,) widths of the objects in which the running sum of weights passes the targets."""
    sample = task.either(_take, _take_from_chunks)(task, targets)
    sums = task.fold([Pass(sample_sums, (sample.X, metric))])[0]
    _clear_itself(sums, sample, metric)
    block = Block.of_codes(sample.codes[None], np.array([len(sums)]), sample.weights)
    return widths_from_sums(block, sums, size.mass, size.counts, singleton)[0]


def _take(task: Task, targets: np.ndarray) -> Sample:
    return _of_chunk(task.space.X, task.partitions.codes[0], task.weights, {0: targets}, 0)


def _take_from_chunks(task: Any, targets: np.ndarray) -> Sample:
    """The same; only the chunks of the rows are read."""
    codes, chunks = task.partitions.codes[0], task.space
    column = replace(chunks, array=codes)
    totals = np.array(column.each(_total, beside=[task.weights], whole=True))
    course = np.cumsum(totals)
    owner = np.searchsorted(course, targets, side="right")
    owner = np.minimum(owner, int(np.flatnonzero(totals)[-1]))
    which, before = np.unique(owner), course - totals
    wanted = {int(chunks.starts[c]): targets[owner == c] - before[c] for c in which}
    beside = [codes, task.weights]
    parts = chunks.each(_of_chunk, wanted, beside=beside, which=which.tolist(), whole=True)
    return Sample(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _total(codes: np.ndarray, weights: np.ndarray | None, start: int) -> float:
    return float(_masses(codes, weights).sum())


def _of_chunk(
    X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, wanted: dict[int, np.ndarray],
    start: int,
) -> Sample:  # fmt: skip
    """The objects in which the running sum of weights passes the wanted targets."""
    mass = _masses(codes, weights)
    last = int(np.flatnonzero(mass)[-1])
    at = np.minimum(np.searchsorted(np.cumsum(mass), wanted[start], side="right"), last)
    return Sample(X[at], codes[at], mass[at])


def _masses(codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(b,) what each object weighs in a draw; 0 if it is not counted."""
    return np.where(codes >= 0, 1.0 if weights is None else weights, 0.0)


def sample_sums(block: Block, sample: np.ndarray, metric: Metric) -> np.ndarray:
    """(K, s) distances from the sampled rows to the objects of a block, summed by cluster."""
    whole = block.space
    space = replace(whole, X=whole.X[block.rows, :], origin=whole.shift, _views={})
    sampled = Pairs(replace(space, X=sample, _views={}), metric).rows(slice(None))
    sampled = replace(sampled, at=slice(-len(sample), 0))  # a place that no block has
    sides = Sides(replace(block, space=space), metric)
    total = np.zeros((int(block.n_clusters[0]), len(sample)))
    with one_blas_thread():
        sides.add_sums(sampled, [total] * len(sides.blocks))
    return total


def _clear_itself(sums: np.ndarray, sample: Sample, metric: Metric) -> None:
    """Take away what the sums count from a sampled object to itself.

    A sample does not know its place among the rows: its zero rows are at a distance from all.
    """
    zero = Space(sample.X, 1).prepared(metric).zero
    if zero is not None:
        at = np.flatnonzero(zero)
        sums[sample.codes[at], at] -= sample.weights[at] * metric.finish(2.0, np)  # type: ignore[misc]


def rows_of_distances(task: Task, wants: list[Want]) -> Steps:
    """Sizes of clusters without centres, squared distances to their means summed, and noise.

    The scatter about a mean follows from squared distances alone: over n objects the squared
    distances to their mean add up to those of all pairs i < j over n. A space of distances has no
    mean to name, but its clusters have this scatter; for Euclidean distances it is the usual one.
    """
    found: dict[Want, list[Any]] = {}
    size = yield Pass(masses)
    edges = list(pairwise(task.partitions.offsets))
    for w in wants:
        if w.name == "clusters":
            found[w] = [
                Clusters(size.counts[a:b], size.mass[a:b], np.zeros((0, 0)), NOWHERE, NOWHERE)
                for a, b in edges
            ]
        elif w.name == "within":
            sums = zip(square_sums(task), edges, strict=True)
            found[w] = [np.diagonal(table) / (2 * size.mass[a:b]) for table, (a, b) in sums]
        elif w.name == "noise":
            scatter = _noise_scatter(task) if w.get("scatter") else None
            found[w] = noise_of(size, task.partitions.offsets, scatter)
        else:
            raise ValueError(f"X must have coordinates for {w.name!r}, got distances.")
    return found


def square_sums(task: Task) -> list[np.ndarray]:
    """(K, K) squared distances of the objects of two clusters, by weight; each pair both ways."""
    entry = find(task.space.own_metric).squared()
    wanted = want("between_distances", metric=entry)
    return run(task, reduce_sums(task, entry, [wanted]))[wanted]


def _noise_scatter(task: Task) -> list[float]:
    """Squared distances of noise to the mean of the counted objects, summed."""
    codes = np.where(task.partitions.codes < 0, 1, 0).astype(np.int32)
    both = np.array([0, 1])  # two clusters: the counted objects and the others
    apart = Partitions(codes, (both,) * len(codes), task.partitions.names, np.ones(len(codes)))
    task = task._replace(partitions=apart)
    sizes = task.fold([Pass(masses)])[0].mass.reshape(-1, 2)
    return [
        float(table[0, 1] / counted - noise * table[0, 0] / (2 * counted**2))
        for table, (counted, noise) in zip(square_sums(task), sizes, strict=True)
    ]
