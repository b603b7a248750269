"""Sums of distances to clusters, over all pairs of objects once per metric.

``paired_strips`` visits pairs of blocks. Its twin ``sorted_strips`` takes the rows of one partition
in the order of their clusters: no block then holds objects of two clusters, and what a block adds
to the sums of both its sides are its row and column sums, two products with a vector in place of
two with a matrix of memberships and a transposed copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.compute.data.opening import Space, host
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.engine.kernel_choice import TWINS, Twin, choose, numpy_distances, numpy_usable
from wellsep.compute.engine.threads import (
    ROWS,
    budget_bytes,
    cut_rows,
    in_threads,
    merge,
    pair_rounds,
)
from wellsep.compute.kernels.triton_use import (
    about_median,
    cluster_reach,
    fused_strips,
    fused_usable,
    fused_way,
)
from wellsep.compute.metrics.table import Metric, Rows, find
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import (
    cluster_masses,
    join_widths,
    one_hot,
    provide_summed_widths,
)
from wellsep.compute.statistics.cluster_moments import provide_within_squares
from wellsep.compute.statistics.silhouette_widths import pair_block, widths_from_sums

SMALL = ROWS // 2  # clusters of fewer objects make blocks that cost more calls than they save


class Sides:
    """The blocks of one space under one metric, with what their objects weigh in all clusters."""

    def __init__(self, task: Task, metric: Any) -> None:
        self.task, self.pairs = task, Pairs(task.space, metric)
        self.blocks, self.view = self.pairs.blocks, self.pairs.prepared.X
        sparse = choose(pair_block, self.view, self.pairs.metric) is not pair_block
        self.members = [members_of(task, rows, task.space.X.dtype, sparse) for rows in self.blocks]

    def side(self, b: int) -> Rows:
        return self.pairs.rows(self.blocks[b], self.members[b])


def members_of(task: Task, objects: Any, dtype: Any, sparse: bool, *, weighted: bool = True) -> Any:
    """(ΣK, b) what some objects weigh in all clusters, beside X."""
    space, partitions = task.space, task.partitions
    weights = task.weights[objects] if weighted and task.weights is not None else None
    return space.own_pass(memberships)(
        space, partitions.codes[:, objects], partitions.n_clusters, weights, dtype, sparse
    )


def memberships(
    space: Space,
    codes: np.ndarray,
    n_clusters: np.ndarray,
    weights: np.ndarray | None,
    dtype: Any,
    sparse: bool,
) -> Any:
    """(ΣK, b) what objects weigh in all clusters, beside X; sparse where that pays."""
    if sparse and weights is None:
        return _unit_members(codes, n_clusters, dtype)
    table = one_hot(codes, n_clusters, weights)
    if sparse:
        return sp.csr_array(table.T).astype(dtype)
    return space.asarray(table.toarray().T, dtype=dtype)


def _unit_members(codes: np.ndarray, n_clusters: np.ndarray, dtype: Any) -> sp.csr_array:
    """(ΣK, b) ones, without the detour over objects × clusters; members in ascending order."""
    b, offsets = codes.shape[1], np.concatenate([[0], np.cumsum(n_clusters)])
    small = codes.astype(np.int16) if offsets.max() < 1 << 15 else codes  # sorts by digits
    order = np.argsort(small, axis=1, kind="stable").astype(np.int32)
    places = codes + offsets[:-1, None]
    if codes.min(initial=0) < 0:  # those that are not counted come first
        order = order[np.arange(b) >= (codes < 0).sum(axis=1)[:, None]]
        places = places[codes >= 0]
    sizes = np.bincount(places.ravel(), minlength=int(offsets[-1]))
    pointer = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    entries = (np.ones(order.size, dtype), order.ravel(), pointer)
    return sp.csr_array(entries, shape=(int(offsets[-1]), b))


def _visit_pairs(sides: Sides, add: Callable[[int, int, Any], None]) -> None:
    """``add(of, over, part)`` the (ΣK, b) sums of one block over another, for all pairs of blocks.

    Each pair is visited once and used both ways.
    """
    task, metric, space = sides.task, sides.pairs.metric, sides.task.space
    block = choose(pair_block, sides.view, metric, space.n, space.d, len(task.partitions))
    both_ways = metric.symmetric

    def visit(i: int, j: int) -> None:
        a, b = sides.side(i), sides.side(j)
        part = block(a, b, metric, space.xp, both_ways)
        add(i, j, part.sums_i)
        if both_ways and i != j:
            add(j, i, part.sums_j)
        elif i != j:  # a metric of the user's own need not be symmetric
            add(j, i, block(b, a, metric, space.xp, False).sums_i)

    in_threads(space.n_jobs, visit, pair_rounds(len(sides.blocks)))


def fits_budget(task: Task) -> bool:
    return 8.0 * task.space.n * int(task.partitions.offsets[-1]) <= budget_bytes()


def provide_pairs(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Without pairs where the metric knows a way, else from one pass over them."""
    found: dict[Want, list[Any]] = {}
    for metric in dict.fromkeys(find(w.get("metric", "euclidean")) for w in wants):
        mine = [w for w in wants if find(w.get("metric", "euclidean")) == metric]
        paired = [w for w in mine if not without_pairs(w)]
        widths = [w for w in mine if w not in paired and w.name == "widths"]
        within = [w for w in mine if w not in paired and w.name == "within_distances"]
        if widths:
            found.update(task.space.own_pass(provide_summed_widths)(task, metric, widths))
        if within:
            found.update(provide_within_squares(task, metric, within))
        if paired:
            found.update(task.space.own_pass(reduce_sums)(task, metric, paired))
    return found


def without_pairs(w: Want) -> bool:
    """Whether a statistic of distances follows from sums of rows."""
    entry = find(w.get("metric", "euclidean"))
    if w.name == "widths":
        return entry.sums is not None
    return w.name == "within_distances" and entry.linear


def reduce_sums(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    """Widths and within-cluster sums, strip by strip where the sums exceed the budget."""
    partitions, space = task.partitions, task.space
    mass, count = cluster_masses(task)
    weights = task.weights_or_ones()
    found: dict[Want, list[Any]] = {w: [[] for _ in partitions.n_clusters] for w in wants}
    edges = partitions.offsets.tolist()
    mass_on_device, count_on_device = space.asarray(mass), space.asarray(count)
    for rows, sums in strips(task, metric):
        codes_on_device = space.asarray(partitions.codes[:, rows])
        weights_on_device = space.asarray(weights[rows])
        widths_of = choose(widths_from_sums, sums)
        for m in range(len(partitions)):
            part = slice(edges[m], edges[m + 1])
            codes = partitions.codes[m, rows]
            width_args = (
                sums[part, :],
                codes_on_device[m, :],
                weights_on_device,
                mass_on_device[part],
                count_on_device[part],
            )
            for w in wants:
                if w.name == "widths":
                    got = widths_of(*width_args, w.get("singleton", 0), space.xp)
                    found[w][m].append(np.where(codes >= 0, host(got), np.nan))
                else:
                    found[w][m].append(sum_pairs(w, host(width_args[0]), codes, weights[rows]))
    return {
        w: join_widths(task, w, found[w]) if w.name == "widths" else list(map(merge, found[w]))
        for w in wants
    }


def sum_pairs(w: Want, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
    """What b objects add, given their (K, b) distance sums: within clusters, or (K, K) between."""
    if w.name == "within_distances":
        counted = codes >= 0
        own = sums[codes, np.arange(len(codes))]
        return 0.5 * float((weights * own)[counted].sum())
    return sums @ one_hot(codes[None], np.array([len(sums)]), weights)


def strips(task: Task, metric: Metric, codes_on_device: Any = None) -> Any:
    """(rows, sums of those rows); rows come in the given order."""
    space = task.space
    if fused_usable(space.X, metric):
        found, weights = task.partitions, task.weights
        X, reach = about_median(space.X)
        codes = space.asarray(found.codes) if codes_on_device is None else codes_on_device
        distant = cluster_reach(X, codes, found.n_clusters)
        way = fused_way(X, reach, distant, found.n_clusters, weights is not None)
        if way is not None:
            rows_at_once = max(1024, int(budget_bytes() / (32 * int(found.offsets[-1]))))
            return fused_strips(X, codes, found.n_clusters, weights, rows_at_once, way)
    return space.own_pass(plain_strips)(task, metric)


def plain_strips(task: Task, metric: Metric) -> Any:
    """The same from pairs of blocks, strip by strip where the sums exceed the budget."""
    if not fits_budget(task):
        return _strip_by_strip(task, metric, task.space.n)
    return choose(paired_strips, task, metric)(task, metric)


def paired_strips(task: Task, metric: Metric) -> Any:
    """Every pair of blocks once, with sums of both sides."""
    space, sides = task.space, Sides(task, metric)
    width = int(task.partitions.offsets[-1])
    # An array of its own for each block: to add to part of each row of one large array takes
    # twice to four times as long.
    parts = [space.zeros((width, rows.stop - rows.start)) for rows in sides.blocks]
    _visit_pairs(sides, lambda of, over, part: space.add(parts[of], part))
    yield from zip(sides.blocks, parts, strict=True)


def _strip_by_strip(task: Task, metric: Metric, n: int) -> Any:
    """Where n × ΣK sums exceed the budget: each strip against everything, twice the work."""
    sides = Sides(task, metric)
    space, width = task.space, int(task.partitions.offsets[-1])
    block = choose(pair_block, sides.view, metric, space.n, space.d, len(task.partitions))
    per_strip = max(1, int(budget_bytes() / (8 * width * (sides.blocks[0].stop))))
    for start in range(0, len(sides.blocks), per_strip):
        strip = range(start, min(start + per_strip, len(sides.blocks)))
        first, last = sides.blocks[strip[0]].start, sides.blocks[strip[-1]].stop
        sums = space.asarray(np.zeros((1, width, last - first)))

        def visit(i: int, sums: Any = sums, first: int = first) -> None:
            a = sides.side(i)
            rows = slice(a.at.start - first, a.at.stop - first)
            for j in range(len(sides.blocks)):
                part = block(a, sides.side(j), metric, space.xp, False).sums_i
                space.add(sums[0, :, rows], part)

        in_threads(space.n_jobs, visit, iter([[(i,) for i in strip]]))
        yield slice(first, last), sums[0, :, :]


def sorted_usable(task: Task, metric: Metric) -> bool:
    """One partition of NumPy data into clusters that fill their blocks."""
    partitions, space = task.partitions, task.space
    return (
        len(partitions) == 1
        and not space.in_file
        and numpy_usable(space.X, metric)
        and space.n >= SMALL * int(partitions.n_clusters[0])
    )


def sorted_strips(task: Task, metric: Metric) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, sums of those rows); rows come in the given order."""
    sums = sorted_sums(task, metric)
    for rows in task.space.row_blocks(sums.shape[0]):
        yield rows, sums[:, rows]


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
        table = numpy_distances(rows.part(a), rows.part(b), metric)
        sums[codes[b.start], a] += table @ weights[b]
        if i != j:
            sums[codes[a.start], b] += weights[a] @ table

    in_threads(task.space.n_jobs, visit, pair_rounds(len(blocks)))
    found = np.zeros((len(sums), task.space.n))
    found[:, order] = sums
    return found


def own_sums(task: Task, metric: Any = "euclidean") -> np.ndarray:
    """(n,) distances from each object to those of its cluster, summed; NaN where not counted.

    The smallest of a cluster is its medoid's.
    """
    codes = task.partitions.codes[0]
    found = np.full(task.space.n, np.nan)
    for rows, sums in strips(task, find(metric)):
        at = np.flatnonzero(codes[rows] >= 0)
        found[rows.start + at] = host(sums)[codes[rows][at], at]
    return found


def whole_usable(task: Task, metric: Metric) -> bool:
    return metric.cluster_sums is not None


def whole_strips(task: Task, metric: Metric) -> Iterator[tuple[slice, Any]]:
    """(rows, sums of those rows) without pairs, where the metric sums over all objects at once."""
    partitions, space = task.partitions, task.space
    members = sp.csr_array(one_hot(partitions.codes, partitions.n_clusters, task.weights).T)
    sums = metric.cluster_sums(space, members)  # type: ignore[misc]
    for rows in space.row_blocks(len(sums)):
        yield rows, space.asarray(sums[:, rows])


TWINS[paired_strips] = (Twin(whole_strips, whole_usable), Twin(sorted_strips, sorted_usable))
