"""Silhouette widths, means and scatter on many half-samples, from sums kept apart by group.

The objects are split into G groups and a half-sample is a choice of G/2 of them, so its distance
sums are sums over its groups. They are kept for the objects in ``Halves.seen``: all of them, or
about ``SEEN``. In larger data a half-sample's total is that of the widths in the full sample, over
all objects of the half, plus the change that the half brings to the widths of the objects seen,
scaled to the sizes of the clusters (a difference estimator).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import kernels_wanted
from wellsep._threads import budget_bytes, in_rounds, in_threads
from wellsep.compute.data.rows import Space, host, one_hot
from wellsep.compute.engine.kernel_choice import compiled_pays
from wellsep.compute.kernels import load
from wellsep.compute.metrics.squares import CLOSE
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.requests import Block, Task, Want
from wellsep.compute.statistics.cluster_moments import Noise
from wellsep.compute.statistics.distance_sums import Sides, row_distance_sums
from wellsep.compute.statistics.silhouette_widths import WidthTotals, finish_widths

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

    @staticmethod
    def sums_known(wanted: Want) -> bool:
        """Whether these widths follow from sums that are kept apart by group."""
        if wanted.name != "widths":
            return False
        metric = find(wanted.get("metric", "euclidean"))
        return metric.sums is not None or metric.finish is not None or not metric.coordinates

    def widths(self, task: Task, wanted: Want, full: Sequence[Any]) -> WidthTotals:
        """Widths of every cluster in every half-sample: (B, ΣK) totals and sizes.

        ``full`` has for each partition the widths in the full sample, where not all are seen.
        """
        parts = [
            _portion(task.subset(which), wanted, self, [full[m] for m in which])
            for which in _portions(task, self)
        ]
        return WidthTotals(*(np.hstack(column) for column in zip(*parts, strict=True)))

    def moments(self, task: Task, power: float | None = None) -> HalfMoments:
        """Moments of the half-samples; radii with this power, if one is given."""
        space, partitions = task.space, task.partitions
        chosen = self.chosen.astype(float)
        order = np.argsort(self.group, kind="stable")
        X = host(space.about_mean(slice(None)))[order]
        square = np.einsum("ij,ij->i", X, X)
        codes, group = partitions.codes[:, order], self.group[order]
        edges = np.searchsorted(group, np.arange(chosen.shape[1] + 1))
        pieces = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        n_clusters = partitions.n_clusters
        members = [one_hot(codes[:, rows], n_clusters, None) for rows in pieces]
        sums = np.stack([t.T @ X[r] for t, r in zip(members, pieces, strict=True)])  # (G, ΣK, d)
        sizes = sums_by_group(codes, n_clusters, group, len(pieces))
        own = partitions.offsets[:-1, None] + np.maximum(codes, 0)  # (M, n)
        # Scatter about the centres of all objects: about the mean of all, squares of a cluster far
        # away would cancel.
        centers = sums.sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)[:, None]  # (ΣK, d)

        def square_of(m: int, members: np.ndarray) -> np.ndarray:
            gap = X[members] - centers[own[m, members]]
            return np.einsum("ij,ij->i", gap, gap)

        squares = sums_by_group(codes, n_clusters, group, len(pieces), square_of)
        counts = chosen @ sizes
        total = np.tensordot(chosen, sums, axes=1)  # (B, ΣK, d)
        safe = np.maximum(counts, 1)
        moved = [
            ((t - n[:, None] * centers) ** 2).sum(axis=1)
            for t, n in zip(total, counts, strict=True)
        ]
        within = np.maximum(chosen @ squares - np.stack(moved) / safe, 0)
        if power is None:
            return HalfMoments(counts, total, within, None)

        lengths = np.einsum("bkd,bkd->bk", total, total) / safe**2
        powers: list[Any] = [None] * len(pieces)

        def work(g: int) -> None:
            """‖x − v‖^q summed over the members of a group: x·v is a sum over groups, as v is."""
            draws = np.flatnonzero(self.chosen[:, g])
            powers[g] = (draws, np.zeros((len(draws), counts.shape[1])))
            step = max(8, AT_ONCE // max(1, len(draws) * len(partitions)))
            for start in range(pieces[g].start, pieces[g].stop, step):
                rows = slice(start, min(start + step, pieces[g].stop))
                mine, at = own[:, rows], np.arange(rows.stop - rows.start)
                products = np.stack([(table @ X[rows].T)[mine, at] for table in sums])  # (G, M, b)
                dot = np.tensordot(chosen[draws], products, axes=1)  # (draws, M, b)
                gap = square[rows] - 2 * dot / safe[draws][:, mine] + lengths[draws][:, mine]
                counted = codes[:, rows] >= 0
                close = counted & (gap < CLOSE[0] * (square[rows] + lengths[draws][:, mine]))
                for i in np.array_split(
                    np.argwhere(close), 1 + close.sum() * X.shape[1] // AT_ONCE
                ):
                    draw, k, row = draws[i[:, 0]], mine[i[:, 1], i[:, 2]], rows.start + i[:, 2]
                    difference = X[row] - total[draw, k] / counts[draw, k][:, None]
                    gap[tuple(i.T)] = np.einsum("ij,ij->i", difference, difference)
                away = np.where(counted, np.maximum(gap, 0) ** (power / 2), 0.0)
                table = one_hot(codes[:, rows], n_clusters, None).toarray()
                for m, (a, b) in enumerate(pairwise(partitions.offsets)):
                    powers[g][1][:, a:b] += away[:, m] @ table[:, a:b]

        in_threads(space.n_jobs, work, range(len(pieces)))
        radii = np.zeros(counts.shape)
        for draws, added in powers:
            radii[draws] += added
        # one object lies on its own mean
        return HalfMoments(counts, total, within, np.where(counts > 1, radii / safe, 0.0))


class HalfMoments(NamedTuple):
    """Every cluster of every partition in every half-sample; centres about ``Space.shift``."""

    counts: np.ndarray  # (B, ΣK)
    sums: np.ndarray  # (B, ΣK, d)
    within: np.ndarray  # (B, ΣK) squared distances to the mean, summed
    radii: np.ndarray | None  # (B, ΣK) mean of ‖x − v‖^q

    def noise(self, draw: int, m: int, mean: np.ndarray, counted: float) -> Noise:
        """Noise of partition m, its only cluster here, about the mean of the counted objects."""
        count, total = float(self.counts[draw, m]), self.sums[draw, m]
        gap = total / max(count, 1.0) - mean
        return Noise(count, counted, float(self.within[draw, m] + count * (gap @ gap)))


class Draws(NamedTuple):
    """Choices of groups, and the size of every cluster in each."""

    chosen: np.ndarray  # (D, G) bool
    counts: np.ndarray  # (D, ΣK)


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
    task: Task, wanted: Want, halves: Halves, full: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    seen, partitions = halves.seen, task.partitions
    n_groups = halves.chosen.shape[1]
    chosen = halves.chosen.astype(float)
    size = sums_by_group(partitions.codes, partitions.n_clusters, halves.group, n_groups)  # (G, ΣK)
    counts = chosen @ size
    # The full sample is one more draw.
    every = np.ones(n_groups, dtype=bool)
    draws = Draws(np.vstack([halves.chosen, every]), np.vstack([counts, size.sum(axis=0)]))
    by_group = _seen_totals(task, wanted, halves.group, seen, draws)
    totals = np.zeros_like(counts)
    for which, widths in by_group:
        totals[which[:-1]] += widths[:-1]
    if len(seen) < task.space.n:
        before = np.hstack([widths.by_group for widths in full])  # (G, ΣK)
        change = totals - chosen @ np.stack([widths[-1] for _, widths in by_group])
        codes, group = partitions.codes[:, seen], halves.group[seen]
        looked = chosen @ sums_by_group(codes, partitions.n_clusters, group, n_groups)
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
    if metric.sums is not None:
        sums_of = row_sums_by_group(task, metric, group, n_groups)
    else:
        sums_of = pair_sums_by_group(task, metric, group, n_groups, single)
    edges = np.searchsorted(group[seen], np.arange(n_groups + 1))
    within = [np.flatnonzero(column) for column in draws.chosen.T]
    given = task.partitions.offsets, wanted.get("singleton", 0)
    if space.one_caller:  # few large steps: each costs a launch
        codes = task.partitions.codes[:, seen]
        tables = add_widths(space, sums_of(seen), edges, draws, codes, *given)
        return [(draws_in, table[draws_in]) for draws_in, table in zip(within, tables, strict=True)]
    at_once = max(1, STRIP // max(1, int(np.diff(edges).max())))
    additions = draws.chosen.sum() * draws.counts.shape[1] * len(seen) / 2
    add = compiled_widths if compiled_usable(space.X, additions) else add_widths
    totals: list[Any] = [None] * n_groups

    def work(start: int) -> None:
        groups = range(start, min(start + at_once, n_groups))
        objects = seen[edges[start] : edges[groups[-1] + 1]]
        codes = np.ascontiguousarray(task.partitions.codes[:, objects])
        sums = sums_of(objects)
        for g in groups:
            mine = Draws(draws.chosen[within[g]], draws.counts[within[g]])
            rows = edges[g : g + 2] - edges[start]
            totals[g] = within[g], add(space, sums, rows, mine, codes, *given)[0]

    in_rounds(space.n_jobs, work, [[(start,) for start in range(0, n_groups, at_once)]])
    return totals


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
    codes: np.ndarray,
    n_clusters: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    values: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """(G, ΣK) members of every cluster in every group, or sums of ``values(m, members)``."""
    tables = []
    for m, k in enumerate(n_clusters.tolist()):
        members = np.flatnonzero(codes[m] >= 0)
        place = group[members] * k + codes[m, members]
        weights = None if values is None else values(m, members)
        tables.append(np.bincount(place, weights, n_groups * k).reshape(n_groups, k))
    return np.hstack(tables).astype(float, copy=False)


def pair_sums_by_group(
    task: Task, metric: Metric, group: np.ndarray, n_groups: int, single: bool = False
) -> Callable[[np.ndarray], Any]:
    """Return a function of some objects: their distance sums (G, ΣK, b) beside X, from pairs."""
    space, xp, sides = task.space, task.space.xp, Sides(task.block(), metric, group, single)

    def sums_of(objects: np.ndarray) -> Any:
        shape = (n_groups, int(task.partitions.offsets[-1]), len(objects))
        sums = np.zeros(shape, np.float32) if single else space.zeros(shape)
        left = sides.apart(objects)
        sides.add_sums(left, [sums[g] for g in sides.owners])
        if left.zero is not None:  # products put a zero row at squared distance 2 from itself
            far = metric.finish(xp.full_like(left.square, 2.0), xp)  # type: ignore[misc]
            own = task.partitions.codes[:, objects]
            block = Block(space, slice(0, len(objects)), own, task.partitions.n_clusters)
            cluster, column = block.own_clusters
            itself = xp.where(left.zero & (block.code_index >= 0), far, xp.zeros_like(far))
            sums[space.index(group[objects])[None], cluster, column] -= itself
        return sums

    return sums_of


def row_sums_by_group(
    task: Task, metric: Metric, group: np.ndarray, n_groups: int
) -> Callable[[np.ndarray], Any]:
    """The same without pairs, where a metric has its distances from sums of rows."""
    space, codes, n_clusters = task.space, task.partitions.codes, task.partitions.n_clusters
    rows = metric.sums.rows(space, slice(None))  # type: ignore[union-attr]
    mass = sums_by_group(codes, n_clusters, group, n_groups)
    totals = []
    for g in range(n_groups):
        inside = np.flatnonzero(group == g)
        some = rows[space.asarray(inside), :]
        totals.append(space.cluster_sums(some, codes[:, inside], n_clusters))

    def sums_of(objects: np.ndarray) -> Any:
        mine, owner = rows[space.asarray(objects), :], group[objects]
        sums = space.zeros((n_groups, int(task.partitions.offsets[-1]), len(objects)))
        for g in range(n_groups):
            own = np.where(owner == g, codes[:, objects], -1)
            block = Block(space, slice(0, len(objects)), own, n_clusters)
            sums[g] = row_distance_sums(block, metric, mine, mass[g], totals[g])
        return sums

    return sums_of


def compiled_widths(
    space: Space, sums: np.ndarray, edges: np.ndarray, draws: Draws, codes: np.ndarray,
    offsets: np.ndarray, singleton: float,
) -> np.ndarray:  # fmt: skip
    add = load("wellsep.compute.kernels.numba_sums").add_widths
    given = draws.chosen, codes, draws.counts, offsets, float(singleton)
    return np.stack([add(sums, int(a), int(b), *given) for a, b in pairwise(edges)])


def add_widths(
    space: Space, sums: Any, edges: np.ndarray, draws: Draws, codes: np.ndarray,
    offsets: np.ndarray, singleton: float,
) -> np.ndarray:  # fmt: skip
    """(G, D, ΣK) widths of the objects of some groups in every draw, summed over each cluster.

    The objects of a group lie between two ``edges``; draws without the group are counted too.
    """
    objects, edges = slice(int(edges[0]), int(edges[-1])), edges - edges[0]
    sums, codes = sums[:, :, objects], codes[:, objects]
    xp, totals = space.xp, np.zeros((len(edges) - 1, *draws.counts.shape))
    most = budget_bytes() / 32 if space.one_caller else AT_ONCE
    n_clusters = np.diff(offsets)
    for k in np.unique(n_clusters):  # partitions with equally many clusters are worked on together
        which = np.flatnonzero(n_clusters == k)
        at = offsets[which][:, None] + np.arange(k)  # (g, K)
        some = sums if at.size == offsets[-1] else sums[:, space.asarray(at.reshape(-1)), :]
        table = some.reshape(len(sums), *at.shape, -1)  # (G, g, K, b)
        members = space.asarray(1.0 * (codes[which][:, :, None] == np.arange(k)))
        step = max(1, int(most / (at.size * codes.shape[1])))
        for start in range(0, len(draws.chosen), step):
            part = slice(start, start + step)
            own = Draws(draws.chosen[part], draws.counts[part][:, at])
            width = _some_widths(space, table, own, codes[which], singleton)
            width = xp.permute_dims(width, (1, 0, 2))  # (g, D, b)
            added = xp.stack([width[:, :, a:b] @ members[:, a:b, :] for a, b in pairwise(edges)])
            totals[:, part, at] += host(added).transpose(0, 2, 1, 3)
    return totals


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
    of_own, own_sum = counts[(slice(None), *own[:2])], mean[(slice(None), *own)]  # (D, g, b)
    mean /= xp.where(counts > 0, counts, xp.ones_like(counts))[:, :, :, None]
    mean[(slice(None), *own)] = xp.inf
    if (draws.counts == 0).any():
        mean[counts == 0] = xp.inf
    other = xp.min(mean, axis=2)
    return finish_widths(own_sum, of_own - 1, of_own <= 1, other, singleton, xp)


def compiled_usable(rows: Any, additions: float) -> bool:
    """Whether ``compiled_widths`` gives what ``add_widths`` gives, and pays."""
    return isinstance(rows, np.ndarray) and kernels_wanted() and compiled_pays(additions)
