"""The pass over all pairs of objects: distances once per metric, every statistic rides along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.compute import kernels, sorted_pairs
from wellsep.compute.blocks import Side
from wellsep.compute.clusters import cluster_masses, one_hot
from wellsep.compute.engines import (
    ROWS,
    TENSOR_ROWS,
    Space,
    budget_bytes,
    cut,
    host,
    share_out,
    tournament,
)
from wellsep.compute.statistics import Task, Want, provides

SYMMETRIC = ("euclidean", "sqeuclidean", "cosine")


class Sides:
    """The blocks of one space under one metric, made ready once."""

    def __init__(self, task: Task, metric: Any, groups: np.ndarray | None = None) -> None:
        space = task.space
        self.task, self.metric, self.space = task, metric, space
        self.order = None if groups is None else np.argsort(groups, kind="stable")
        sorted_groups = None if groups is None else groups[self.order]
        rows = TENSOR_ROWS if space.kind == "tensor" else ROWS
        self.blocks = cut(space.n, rows, sorted_groups)
        self.group_of = [0 if groups is None else int(sorted_groups[b.start]) for b in self.blocks]  # type: ignore[index]
        self.n_groups = 1 if groups is None else int(groups.max()) + 1
        self.view = self._view()
        self.codes = (
            task.partitions.codes if self.order is None else (task.partitions.codes[:, self.order])
        )
        weights = task.weights
        self.weights = weights if weights is None or self.order is None else weights[self.order]
        self.square = self._squares() if metric in SYMMETRIC else None
        self._members = [self._memberships(rows) for rows in self.blocks]

    def _view(self) -> Any:
        space = self.space
        if self.metric == "cosine":
            view = unit_directions(space)
        elif self.metric in SYMMETRIC:
            view = space.centred
        else:
            view = space.X
        if self.order is None:
            return view
        view = view[space.asarray(self.order), :]
        return view[:, space.asarray(self.order)] if self.metric == "precomputed" else view

    def _squares(self) -> Any:
        xp = self.space.xp
        if self.space.kind == "numpy":
            return np.einsum("ij,ij->i", self.view, self.view)
        return xp.sum(self.view * self.view, axis=1)

    def _memberships(self, rows: slice) -> Any:
        weights = None if self.weights is None else self.weights[rows]
        table = one_hot(self.codes[:, rows], self.task.partitions.n_clusters, weights)
        if kernels.sparse_members(self.metric, self.space.xp):
            return sp.csr_array(table.T).astype(self.space.X.dtype)
        return self.space.asarray(table.toarray().T, dtype=self.space.X.dtype)

    def side(self, b: int) -> Side:
        rows = self.blocks[b]
        return Side(
            X=self.view[rows, :],
            square=None if self.square is None else self.square[rows],
            members=self._members[b],
            rows=rows,
        )


def unit_directions(space: Space) -> Any:
    """Unit rows; a zero row gets a direction of its own, at cosine distance 1 from all others."""
    xp, unit = space.xp, space.unit
    zero = xp.sum(unit * unit, axis=1) == 0
    if not bool(xp.any(zero)):
        return unit
    return xp.concat([unit, xp.astype(zero, unit.dtype)[:, None]], axis=1)


def wide_directions(space: Space) -> Any:
    """A tensor's rows of length one in float64, beside it."""
    X = space.xp.astype(space.X, space.xp.float64)
    return unit_directions(Space(X, space.xp, space.kind, space.n_jobs))


def _visit_pairs(sides: Sides, add: Callable[[int, int, Any], None]) -> None:
    """``add(of, over, part)`` the (ΣK, b) sums of one block over another, for all pairs of blocks.

    Each pair is visited once and used both ways.
    """
    task, metric, space = sides.task, sides.metric, sides.space
    block = kernels.choose(metric, space.xp, (space.n, space.d, len(task.partitions)))
    both_ways = metric in SYMMETRIC

    def visit(i: int, j: int) -> None:
        a, b = sides.side(i), sides.side(j)
        part = block(a, b, metric, space.xp, both_ways)
        add(i, j, part.sums_i)
        if both_ways and i != j:
            add(j, i, part.sums_j)
        elif i != j:  # a metric of the user's own need not be symmetric
            add(j, i, block(b, a, metric, space.xp, False).sums_i)

    share_out(space.n_jobs, visit, tournament(len(sides.blocks)))


def _zeros(space: Space, shape: tuple[int, ...]) -> Any:
    if space.kind == "tensor":
        return space.xp.zeros(shape, dtype=space.xp.float64, device=space.device)
    return np.zeros(shape)


def _add_to(sums: Any, part: Any) -> None:
    if isinstance(sums, np.ndarray):
        sums += part
        return
    from array_api_compat import array_namespace

    xp = array_namespace(part)
    sums += xp.astype(part, xp.float64)


def fits_budget(task: Task) -> bool:
    return 8.0 * task.space.n * int(task.partitions.offsets[-1]) <= budget_bytes()


@provides("widths", "within_distances", "between_distances")
def provide_pairs(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    found: dict[Want, list[Any]] = {}
    for metric in dict.fromkeys(w.get("metric", "euclidean") for w in wants):
        mine = [w for w in wants if w.get("metric", "euclidean") == metric]
        found.update(_reduce_sums(task, metric, mine))
    return found


def _reduce_sums(task: Task, metric: Any, wants: list[Want]) -> dict[Want, list[Any]]:
    """Widths and within-cluster sums, strip by strip where the sums exceed the budget."""
    partitions, space = task.partitions, task.space
    if space.on_card:
        from wellsep.compute.tensor_widths import Placed, reduce_widths

        placed = Placed(task)
        return reduce_widths(placed, wants, _strips(task, metric, placed.codes))
    mass, count = cluster_masses(task)
    weights = task.weights_or_ones()
    found: dict[Want, list[Any]] = {
        w: [_nothing_yet(w, space.n, k) for k in partitions.n_clusters] for w in wants
    }
    widths_of = kernels.choose_widths(space.xp)
    edges = partitions.offsets.tolist()
    mass_there, count_there = space.asarray(mass), space.asarray(count)
    for rows, sums in _strips(task, metric):
        codes_there = space.asarray(partitions.codes[:, rows])
        weights_there = space.asarray(weights[rows])
        for m in range(len(partitions)):
            part = slice(edges[m], edges[m + 1])
            codes = partitions.codes[m, rows]
            counted = codes >= 0
            width_args = (
                sums[part, :],
                codes_there[m, :],
                weights_there,
                mass_there[part],
                count_there[part],
            )
            for w in wants:
                if w.name == "widths":
                    got = widths_of(*width_args, w.get("singleton", 0), space.xp)
                    found[w][m][rows] = np.where(counted, host(got.width), np.nan)
                else:
                    found[w][m] += sum_pairs(w, host(width_args[0]), codes, weights[rows])
    return found


def sum_pairs(w: Want, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
    """What b objects add, given their (K, b) distance sums: within clusters, or (K, K) between."""
    if w.name == "within_distances":
        counted = codes >= 0
        own = sums[codes, np.arange(len(codes))]
        return 0.5 * float((weights * own)[counted].sum())
    return sums @ one_hot(codes[None], np.array([len(sums)]), weights)


def _nothing_yet(w: Want, n: int, k: int) -> Any:
    """``between_distances`` is the (K, K) table of distances summed over pairs of members."""
    if w.name == "widths":
        return np.full(n, np.nan)
    return 0.0 if w.name == "within_distances" else np.zeros((k, k))


def _strips(task: Task, metric: Any, codes_there: Any = None) -> Any:
    """(rows, sums of those rows); rows come in the given order."""
    space = task.space
    if kernels.fused_usable(space.X, metric):
        found, weights = task.partitions, task.weights
        X, reach = kernels.about_median(space.X)
        way = kernels.fused_way(X, reach, found.n_clusters, weights is not None)
        if way is not None:
            rows_at_once = max(1024, int(budget_bytes() / (32 * int(found.offsets[-1]))))
            yield from kernels.fused_strips(
                X, codes_there, found.n_clusters, weights, rows_at_once, way
            )
            return
    if not fits_budget(task):
        yield from _strip_by_strip(task, metric, space.n)
        return
    if sorted_pairs.usable(task, metric):
        view = unit_directions(space) if metric == "cosine" else space.centred
        sums = sorted_pairs.sorted_sums(task, metric, view)
        for rows in space.row_blocks(sums.shape[0]):
            yield rows, sums[:, rows]
        return
    sides = Sides(task, metric)
    width = int(task.partitions.offsets[-1])
    # An array of its own for each block: to add to part of each row of one large array takes
    # twice to four times as long.
    parts = [_zeros(space, (width, rows.stop - rows.start)) for rows in sides.blocks]
    _visit_pairs(sides, lambda of, over, part: _add_to(parts[of], part))
    yield from zip(sides.blocks, parts, strict=True)


def _strip_by_strip(task: Task, metric: Any, n: int) -> Any:
    """Where n × ΣK sums exceed the budget: each strip against everything, twice the work."""
    sides = Sides(task, metric)
    space, width = task.space, int(task.partitions.offsets[-1])
    block = kernels.choose(metric, space.xp, (space.n, space.d, len(task.partitions)))
    per_strip = max(1, int(budget_bytes() / (8 * width * (sides.blocks[0].stop))))
    for start in range(0, len(sides.blocks), per_strip):
        strip = range(start, min(start + per_strip, len(sides.blocks)))
        first, last = sides.blocks[strip[0]].start, sides.blocks[strip[-1]].stop
        sums = space.asarray(np.zeros((1, width, last - first)))

        def visit(i: int, sums: Any = sums, first: int = first) -> None:
            a = sides.side(i)
            rows = slice(a.rows.start - first, a.rows.stop - first)
            for j in range(len(sides.blocks)):
                part = block(a, sides.side(j), metric, space.xp, False).sums_i
                _add_to(sums[0, :, rows], part)

        share_out(space.n_jobs, visit, iter([[(i,) for i in strip]]))
        yield slice(first, last), sums[0, :, :]
