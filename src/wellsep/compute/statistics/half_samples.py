"""Silhouette widths, means and scatter on many half-samples, from sums kept apart by group.

The objects are split into G groups and a half-sample is a choice of G/2 of them, so its distance
sums are sums over its groups. They are kept for the objects in ``Halves.seen``: all of them, or
about ``SEEN``. In larger data a half-sample's total is that of the widths in the full sample, over
all objects of the half, plus the change that the half brings to the widths of the objects seen,
scaled to the sizes of the clusters (a difference estimator).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space, host, one_hot
from wellsep.compute.engine.kernel_choice import TWINS, Twin, choose, compiled_pays
from wellsep.compute.engine.threads import budget_bytes, cut_rows, in_threads
from wellsep.compute.metrics.table import CLOSE, ROUNDING, Metric, Rows, find, root
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.distance_sums import pair_block
from wellsep.compute.statistics.silhouette_widths import WidthTotals
from wellsep.partitions import Partitions

# Objects whose widths are followed through the half-samples; each half-sample holds half of them.
# So many for up to FEW clusters, in proportion for more, at most four times as many.
SEEN, FEW = 480, 20
STRIP = 256  # of them at once: their sums stay in the processor's cache
ENOUGH = 3
AT_ONCE = 1 << 20  # numbers NumPy works on at once: 8 MB stay near the core


class Halves(NamedTuple):
    """Half-samples as choices of groups of objects."""

    group: np.ndarray  # (n,) group of each object
    chosen: np.ndarray  # (B, G) bool
    most_clusters: int = 0  # of all partitions that are followed

    def objects(self, draw: int) -> np.ndarray:
        """Positions of the objects of one half-sample."""
        return np.flatnonzero(self.chosen[draw][self.group])

    @property
    def seen(self) -> np.ndarray:
        """(s,) objects whose widths are computed, group by group, spread evenly over each."""
        order = np.argsort(self.group, kind="stable")
        enough = int(SEEN * min(4.0, max(1.0, self.most_clusters / FEW)))
        if len(order) <= enough:
            return order
        n_groups = self.chosen.shape[1]
        per_group = max(1, enough // n_groups)
        members = np.split(order, np.cumsum(np.bincount(self.group, minlength=n_groups))[:-1])
        return np.concatenate(
            [own[np.linspace(0, len(own) - 1, per_group).round().astype(int)] for own in members]
        )


class Draws(NamedTuple):
    """Choices of groups, and the size of every cluster in each."""

    chosen: np.ndarray  # (D, G) bool
    counts: np.ndarray  # (D, ΣK)


def sums_known(wanted: Want) -> bool:
    """Whether these widths follow from sums that are kept apart by group."""
    if wanted.name != "widths":
        return False
    metric = find(wanted.get("metric", "euclidean"))
    return metric.sums is not None or metric.finish is not None or not metric.coordinates


def half_widths(
    task: Task, wanted: Want, halves: Halves, full: Sequence[WidthTotals] | None
) -> WidthTotals:
    """Widths of every cluster in every half-sample: (B, ΣK) totals and sizes.

    ``full`` has the widths in the full sample, one entry per partition; it is not needed where
    all objects are seen.
    """
    parts = [
        _portion(
            task.subset(which),
            wanted,
            halves,
            None if full is None else [full[m] for m in which],
        )
        for which in _portions(task, halves)
    ]
    return WidthTotals(*(np.hstack(column) for column in zip(*parts, strict=True)))


def _portions(task: Task, halves: Halves) -> list[list[int]]:
    """Partitions in portions whose sums and memberships fit the memory budget."""
    partitions = task.partitions
    entries = len(halves.seen) * halves.chosen.shape[1] + task.space.n  # for each cluster
    most = max(1, int(budget_bytes() / (8 * entries)))
    portions: list[list[int]] = [[]]
    width = 0
    for m, k in enumerate(partitions.n_clusters.tolist()):
        if portions[-1] and width + k > most:
            portions.append([])
            width = 0
        portions[-1].append(m)
        width += k
    return portions


def _portion(
    task: Task, wanted: Want, halves: Halves, full: Sequence[WidthTotals] | None
) -> tuple[np.ndarray, np.ndarray]:
    seen, partitions = halves.seen, task.partitions
    n_groups = halves.chosen.shape[1]
    chosen = halves.chosen.astype(float)
    size = sums_by_group(partitions, halves.group, n_groups)  # (G, ΣK)
    counts = chosen @ size
    every = np.ones((1, n_groups), dtype=bool)  # the full sample, as one more draw
    draws = Draws(
        np.vstack([halves.chosen, every]), np.vstack([counts, size.sum(axis=0, keepdims=True)])
    )
    found = _seen_totals(task, wanted, halves.group, seen, draws)
    totals = np.zeros_like(counts)
    for which, part in found:
        totals[which[:-1]] += part[:-1]
    if len(seen) < task.space.n:
        if full is None:
            raise ValueError("full must hold the widths in the full sample, got None.")
        before = np.hstack([one.by_group for one in full])  # type: ignore[misc]  # (G, ΣK)
        change = totals - chosen @ np.stack([part[-1] for _, part in found])
        looked = chosen @ sums_by_group(partitions, halves.group, n_groups, objects=seen)
        totals = chosen @ before + change * _scale(counts, looked, partitions.offsets)
    return totals, counts


def _seen_totals(
    task: Task, wanted: Want, group: np.ndarray, seen: np.ndarray, draws: Draws
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each group: the draws that contain it, and (draws, ΣK) widths of its objects, summed.

    Some groups of the objects seen at a time, so that their sums are still near when draws add
    them up.
    """
    space, n_groups = task.space, draws.chosen.shape[1]
    metric = find(wanted.get("metric", "euclidean"))
    # What a subset tells is an estimate, far less exact than single precision.
    single = not space.one_caller and len(seen) < space.n and metric.finish is not None
    sums_of: PairSums | RowSums
    if metric.sums is not None:
        sums_of = RowSums(task, metric, group, n_groups)
    else:
        sums_of = PairSums(task, metric, group, n_groups, single)
    edges = np.searchsorted(group[seen], np.arange(n_groups + 1))
    within = [np.flatnonzero(column) for column in draws.chosen.T]
    offsets, singleton = task.partitions.offsets, wanted.get("singleton", 0)
    if space.one_caller:  # few large steps: each costs a launch
        codes = task.partitions.codes[:, seen]
        tables = add_all_widths(space, sums_of(seen), edges, draws, codes, offsets, singleton)
        return [(draws_in, table[draws_in]) for draws_in, table in zip(within, tables, strict=True)]
    at_once = max(1, STRIP // max(1, int(np.diff(edges).max())))
    additions = draws.chosen.sum() * draws.counts.shape[1] * len(seen) / 2
    add = choose(add_widths, space.X, additions)
    found: list[Any] = [None] * n_groups

    def work(start: int) -> None:
        groups = range(start, min(start + at_once, n_groups))
        objects = seen[edges[start] : edges[groups[-1] + 1]]
        codes = np.ascontiguousarray(task.partitions.codes[:, objects])
        sums = sums_of(objects)
        for g in groups:
            rows = slice(int(edges[g] - edges[start]), int(edges[g + 1] - edges[start]))
            mine = Draws(draws.chosen[within[g]], draws.counts[within[g]])
            found[g] = within[g], add(space, sums, rows, mine, codes, offsets, singleton)

    in_threads(space.n_jobs, work, iter([[(g,) for g in range(0, n_groups, at_once)]]))
    return found


def _scale(counts: np.ndarray, looked: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(B, ΣK) objects of a half-sample that each object seen stands for.

    In a cluster of which at least ``ENOUGH`` are seen, for those of the cluster; all other
    clusters of a partition are taken together.
    """
    few = looked < ENOUGH
    first, k = offsets[:-1], np.diff(offsets)
    total = np.add.reduceat(counts * few, first, axis=1)
    together = total / np.maximum(np.add.reduceat(looked * few, first, axis=1), 1)
    return np.where(few, np.repeat(together, k, axis=1), counts / np.maximum(looked, 1))


def sums_by_group(
    partitions: Partitions,
    group: np.ndarray,
    n_groups: int,
    objects: np.ndarray | None = None,
) -> np.ndarray:
    """(G, ΣK) members of every cluster in every group."""
    tables = []
    at = slice(None) if objects is None else objects
    for m, k in enumerate(partitions.n_clusters.tolist()):
        codes = partitions.codes[m, at]
        counted = codes >= 0
        place = (group[at] * k + codes)[counted]
        tables.append(np.bincount(place, minlength=n_groups * k).reshape(n_groups, k))
    return np.hstack(tables).astype(float, copy=False)


class PairSums:
    """Distances of some objects to the members of all clusters, summed apart by their group."""

    def __init__(
        self, task: Task, metric: Metric, group: np.ndarray, n_groups: int, single: bool = False
    ) -> None:
        space, self.task, self.metric, self.single = task.space, task, metric, single
        self.group, order = group, np.argsort(group, kind="stable")
        self.pairs = Pairs(space, metric)
        if single:
            scaled = metric.finish is root or metric.linear  # widths are then free of the scale
            self.pairs.in_single_precision(scaled)
        X = self.pairs.prepared.X
        self.block = choose(pair_block, X, metric, space.n, space.d, len(task.partitions))
        sparse = self.block is not pair_block
        blocks = cut_rows(space.n, space.block_rows, group[order])
        self.group_of = [int(group[order[rows.start]]) for rows in blocks]
        self.sides = [
            self._side(at, members_of(task, at, X.dtype, sparse))
            for at in (order[rows] for rows in blocks)
        ]
        self.shape = (n_groups, int(task.partitions.offsets[-1]))

    def _side(self, objects: np.ndarray, members: Any = None) -> Rows:
        """Rows without positions: the distance of an object to itself is computed as any other."""
        rows = self.pairs.rows(self.task.space.asarray(objects), members)
        return replace(rows, at=None) if self.metric.finish is not None else rows

    def __call__(self, objects: np.ndarray) -> Any:
        """(G, ΣK, b), beside X."""
        space, shape = self.task.space, (*self.shape, len(objects))
        sums = np.zeros(shape, np.float32) if self.single else space.zeros(shape)
        left = self._side(objects)
        for right, g in zip(self.sides, self.group_of, strict=True):
            space.add(sums[g], self.block(left, right, self.metric, space.xp, False).sums_i)
        if left.zero is not None:  # products put a zero row at squared distance 2 from itself
            xp = space.xp
            far = self.metric.finish(xp.full_like(left.square, 2.0), xp)  # type: ignore[misc]
            itself = xp.where(left.zero, far, xp.zeros_like(far))
            _take_out_itself(sums, itself, self.task, self.group, objects)
        return sums


class RowSums:
    """The same without pairs, where a metric has its distances from sums of rows."""

    def __init__(self, task: Task, metric: Metric, group: np.ndarray, n_groups: int) -> None:
        if metric.sums is None:
            raise ValueError(f"metric must have sums without pairs, got {metric!r}.")
        self.task, self.group, self.summed = task, group, metric.sums
        space = task.space
        self.rows = self.summed.rows(space, slice(None))
        self.sizes, self.totals = [], []
        for g in range(n_groups):
            inside = np.flatnonzero(group == g)
            sparse = not space.one_caller
            members = members_of(task, inside, space.xp.float64, sparse)
            self.sizes.append(members.sum(axis=1))
            self.totals.append(members @ self.rows[space.asarray(inside), :])

    def __call__(self, objects: np.ndarray) -> Any:
        """(G, ΣK, b) float64, beside X."""
        space, partitions = self.task.space, self.task.partitions
        mine = self.rows[space.asarray(objects), :]
        sums = space.zeros((len(self.sizes), int(partitions.offsets[-1]), len(objects)))
        for g, (size, total) in enumerate(zip(self.sizes, self.totals, strict=True)):
            lengths = self.summed.lengths(space, mine, total, size)
            sums[g] = self.summed.distances(space, mine, total, lengths)
            sums[g][sums[g] <= ROUNDING * lengths] = 0.0
        _take_out_itself(sums, self.summed.itself(space, mine), self.task, self.group, objects)
        sums[sums < 0] = 0.0
        return sums


def _take_out_itself(
    sums: Any, itself: Any, task: Task, group: np.ndarray, objects: np.ndarray
) -> None:
    """Take what was counted from each object to itself (b,) out of the sums of its own clusters."""
    space, partitions = task.space, task.partitions
    for codes, start in zip(partitions.codes[:, objects], partitions.offsets, strict=False):
        counted = np.flatnonzero(codes >= 0)
        at = (group[objects[counted]], start + codes[counted], counted)
        sums[tuple(map(space.asarray, at))] -= itself[space.asarray(counted)]


def members_of(task: Task, objects: np.ndarray, dtype: Any, sparse: bool) -> Any:
    """(ΣK, b) which clusters some objects belong to, beside X."""
    codes, n_clusters = task.partitions.codes[:, objects], task.partitions.n_clusters
    return task.space.memberships(codes, n_clusters, None, dtype, sparse)


def compiled_widths(
    space: Space, sums: np.ndarray, rows: slice, draws: Draws, codes: np.ndarray,
    offsets: np.ndarray, singleton: float,
) -> np.ndarray:  # fmt: skip
    from wellsep.compute.kernels.numba_sums import add_widths

    return add_widths(
        sums, rows.start, rows.stop, draws.chosen, codes, draws.counts, offsets, float(singleton)
    )


def add_widths(
    space: Space, sums: Any, rows: slice, draws: Draws, codes: np.ndarray, offsets: np.ndarray,
    singleton: float,
) -> np.ndarray:  # fmt: skip
    """(D, ΣK) widths of some objects in every draw, summed over the members of each cluster."""
    totals = np.zeros(draws.counts.shape)
    step = max(8, AT_ONCE // max(1, draws.counts.size))
    for start in range(rows.start, rows.stop, step):
        part = slice(start, min(start + step, rows.stop))
        for which, at in _alike(offsets):
            table = _tables(space, sums[:, :, part], at, int(offsets[-1]))
            own = Draws(draws.chosen, draws.counts[:, at])
            width = _some_widths(space, table, own, codes[which, part], singleton)
            members = codes[which, part][:, :, None] == np.arange(at.shape[1])  # (g, b, K)
            added = host(space.xp.permute_dims(width, (1, 0, 2)) @ space.asarray(members * 1.0))
            totals[:, at] += added.transpose(1, 0, 2)
    return totals


def add_all_widths(
    space: Space, sums: Any, edges: np.ndarray, draws: Draws, codes: np.ndarray,
    offsets: np.ndarray, singleton: float,
) -> np.ndarray:  # fmt: skip
    """(G, D, ΣK) widths of the objects of each group in every draw, summed over each cluster.

    Objects lie group by group, cut at ``edges``; draws without the group are counted too.
    """
    xp, found = space.xp, np.zeros((len(edges) - 1, *draws.counts.shape))
    for which, at in _alike(offsets):
        table = _tables(space, sums, at, int(offsets[-1]))
        members = space.asarray(1.0 * (codes[which][:, :, None] == np.arange(at.shape[1])))
        step = max(1, int(budget_bytes() / (32.0 * at.size * codes.shape[1])))
        for start in range(0, len(draws.chosen), step):
            part = slice(start, start + step)
            own = Draws(draws.chosen[part], draws.counts[part][:, at])
            width = _some_widths(space, table, own, codes[which], singleton)
            width = xp.permute_dims(width, (1, 0, 2))  # (g, D, b)
            added = xp.stack([width[:, :, a:b] @ members[:, a:b, :] for a, b in pairwise(edges)])
            found[:, part, at] = host(added).transpose(0, 2, 1, 3)
    return found


def _alike(offsets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Partitions with equally many clusters: which (g,), and where their clusters lie (g, K)."""
    counts = np.diff(offsets)
    for k in np.unique(counts):
        which = np.flatnonzero(counts == k)
        yield which, offsets[which][:, None] + np.arange(k)


def _tables(space: Space, sums: Any, at: np.ndarray, width: int) -> Any:
    """(G, g, K, b) the sums of some partitions."""
    some = sums if at.size == width else sums[:, space.asarray(at.reshape(-1)), :]
    return some.reshape(len(sums), *at.shape, -1)


def _some_widths(
    space: Space, table: Any, draws: Draws, codes: np.ndarray, singleton: float
) -> Any:
    """(D, g, b) widths from ``table`` (G, g, K, b) of distance sums; counts are (D, g, K)."""
    xp = space.xp
    safe = np.maximum(codes, 0)  # (g, b)
    first, at = np.indices(safe.shape)
    own = tuple(space.asarray(place) for place in (first, safe, at))
    pick = space.asarray(draws.chosen.astype(float))
    counts = space.asarray(draws.counts)
    mean = (pick @ table.reshape(len(table), -1)).reshape(len(pick), *table.shape[1:])
    of_own = counts[(slice(None), *own[:2])]  # (D, g, b)
    rest = xp.where(of_own > 1, of_own - 1, xp.ones_like(of_own))
    a = mean[(slice(None), *own)] / rest
    mean /= xp.where(counts > 0, counts, xp.ones_like(counts))[:, :, :, None]
    mean[(slice(None), *own)] = xp.inf
    if (draws.counts == 0).any():
        mean[counts == 0] = xp.inf
    b = xp.min(mean, axis=2)
    top = xp.where(a > b, a, b)
    flat = (top <= 0) | xp.isinf(top)  # all objects of both coincide, or there is no other cluster
    width = xp.where(flat, xp.zeros_like(top), (b - a) / xp.where(flat, xp.ones_like(top), top))
    return xp.where(of_own <= 1, xp.full_like(width, singleton), width)


def _compiled_usable(rows: Any, additions: float) -> bool:
    return isinstance(rows, np.ndarray) and compiled_pays(additions)


TWINS[add_widths] = (Twin(compiled_widths, _compiled_usable),)


class HalfMoments(NamedTuple):
    """Every cluster of every partition in every half-sample; centres about ``Space.shift``."""

    counts: np.ndarray  # (B, ΣK)
    sums: np.ndarray  # (B, ΣK, d)
    within: np.ndarray  # (B, ΣK) squared distances to the mean, summed
    radii: np.ndarray | None  # (B, ΣK) mean of ‖x − v‖^q


def half_moments(task: Task, halves: Halves, power: float | None) -> HalfMoments:
    """Moments of the half-samples; radii with this power, if one is given."""
    space, partitions = task.space, task.partitions
    chosen = halves.chosen.astype(float)
    order = np.argsort(halves.group, kind="stable")
    X = host(space.about_mean(slice(None)))[order]
    square = np.einsum("ij,ij->i", X, X)
    codes = partitions.codes[:, order]
    edges = np.searchsorted(halves.group[order], np.arange(chosen.shape[1] + 1))
    pieces = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    members = [one_hot(codes[:, rows], partitions.n_clusters, None) for rows in pieces]
    sums = np.stack([t.T @ X[r] for t, r in zip(members, pieces, strict=True)])  # (G, ΣK, d)
    sizes = sums_by_group(partitions, halves.group, chosen.shape[1])
    own = partitions.offsets[:-1, None] + np.maximum(codes, 0)  # (M, n)
    # Scatter about the centres of all objects: about the mean of all, squares of a cluster far
    # away would cancel.
    centers = sums.sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)[:, None]  # (ΣK, d)
    squares = np.zeros(sizes.shape)
    for row, at in zip(codes, own, strict=True):
        kept = np.flatnonzero(row >= 0)
        gap = X[kept] - centers[at[kept]]
        place = (halves.group[order[kept]], at[kept])
        np.add.at(squares, place, np.einsum("ij,ij->i", gap, gap))
    counts = chosen @ sizes
    total = np.tensordot(chosen, sums, axes=1)  # (B, ΣK, d)
    safe = np.maximum(counts, 1)
    moved = [
        ((t - n[:, None] * centers) ** 2).sum(axis=1) for t, n in zip(total, counts, strict=True)
    ]
    within = np.maximum(chosen @ squares - np.stack(moved) / safe, 0)
    if power is None:
        return HalfMoments(counts, total, within, None)

    lengths = np.einsum("bkd,bkd->bk", total, total) / safe**2
    found: list[Any] = [None] * len(pieces)

    def work(g: int) -> None:
        """‖x − v‖^q summed over the members of a group: x·v is a sum over groups, as v is."""
        draws = np.flatnonzero(halves.chosen[:, g])
        found[g] = (draws, np.zeros((len(draws), counts.shape[1])))
        step = max(8, AT_ONCE // max(1, len(draws) * len(partitions)))
        for start in range(pieces[g].start, pieces[g].stop, step):
            rows = slice(start, min(start + step, pieces[g].stop))
            mine, at = own[:, rows], np.arange(rows.stop - rows.start)
            products = np.stack([(table @ X[rows].T)[mine, at] for table in sums])  # (G, M, b)
            dot = np.tensordot(chosen[draws], products, axes=1)  # (draws, M, b)
            gap = square[rows] - 2 * dot / safe[draws][:, mine] + lengths[draws][:, mine]
            counted = codes[:, rows] >= 0
            close = counted & (gap < CLOSE[0] * (square[rows] + lengths[draws][:, mine]))
            for i in np.array_split(np.argwhere(close), 1 + close.sum() * X.shape[1] // AT_ONCE):
                draw, k, row = draws[i[:, 0]], mine[i[:, 1], i[:, 2]], rows.start + i[:, 2]
                difference = X[row] - total[draw, k] / counts[draw, k][:, None]
                gap[tuple(i.T)] = np.einsum("ij,ij->i", difference, difference)
            away = np.where(counted, np.maximum(gap, 0) ** (power / 2), 0.0)
            table = one_hot(codes[:, rows], partitions.n_clusters, None).toarray()
            for m, (a, b) in enumerate(pairwise(partitions.offsets)):
                found[g][1][:, a:b] += away[:, m] @ table[:, a:b]

    in_threads(space.n_jobs, work, iter([[(g,) for g in range(len(pieces))]]))
    radii = np.zeros(counts.shape)
    for draws, part in found:
        radii[draws] += part
    # one object lies on its own mean
    return HalfMoments(counts, total, within, np.where(counts > 1, radii / safe, 0.0))
