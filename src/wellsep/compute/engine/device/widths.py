"""Silhouette widths on the device, for all partitions in a few calls; what leaves it is small."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from wellsep.compute.data.opening import host
from wellsep.compute.engine.device.batches import (
    Batch,
    batches,
    codes_on_device,
    row_parts,
    totals,
    weights_on_device,
)
from wellsep.compute.engine.device.clusters import sum_members
from wellsep.compute.metrics.table import ROUNDING, Metric, Sums
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.distance_sums import strips
from wellsep.compute.statistics.silhouette_widths import WidthTotals, finish_widths

# rows, and (ΣK, b) float64 distance sums of those rows
Strips = Iterator[tuple[slice, torch.Tensor]]


class TaskOnDevice:
    """A task with its codes, weights and the sizes of all clusters, beside X."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.codes, self.weights = codes_on_device(task), weights_on_device(task)
        clusters = int(task.partitions.offsets[-1])
        self.count = torch.empty(clusters, dtype=torch.float64, device=self.codes.device)
        self.mass = self.count if task.weights is None else torch.empty_like(self.count)
        for batch in batches(task.partitions, self.codes, 16.0 * task.space.n):
            at, g = columns_of(task, batch), len(batch.which)
            self.count[at] = totals(torch.ones_like(self.weights).expand(g, -1), batch)
            if task.weights is not None:
                self.mass[at] = totals(self.weights.expand(g, -1), batch)


def columns_of(task: Task, batch: Batch) -> torch.Tensor:
    """(g, K) places of a batch's clusters when all clusters stand side by side."""
    first = torch.as_tensor(task.partitions.offsets[:-1][batch.which], device=batch.codes.device)
    return first[:, None] + torch.arange(batch.k, device=batch.codes.device)


def reduce_widths(placed: TaskOnDevice, wants: list[Want], strips: Strips) -> dict[Want, list[Any]]:
    """Widths of objects, or their means by cluster; sums of distances within and between."""
    task = placed.task
    space, partitions = task.space, task.partitions
    found: dict[Want, list[Any]] = {w: [0.0] * len(partitions) for w in wants}
    by_group: dict[Want, list[Any]] = {w: [0.0] * len(partitions) for w in wants}
    groups = None if task.groups is None else _group_table(task)
    each = {w: np.full((len(partitions), space.n), np.nan) for w in wants if w.get("each")}
    for rows, sums in strips:
        for batch in batches(partitions, placed.codes[:, rows], 32.0 * (rows.stop - rows.start)):
            at = columns_of(task, batch)
            table = sums[at] if len(partitions) > len(batch.which) else sums.reshape(*at.shape, -1)
            part = _Part(batch, table, placed.weights[rows], placed.mass[at], placed.count[at])
            for w in wants:
                if w in each:
                    each[w][batch.which, rows] = host(part.widths(w.get("singleton", 0), space.xp))
                    continue
                for m, value in zip(batch.which, part.reduce(w, space.xp), strict=True):
                    found[w][m] = found[w][m] + value
                if groups is not None and w.name == "widths":
                    apart = part.by_group(w.get("singleton", 0), groups[rows], space.xp)
                    for m, value in zip(batch.which, apart, strict=True):
                        by_group[w][m] = by_group[w][m] + value
    for w in wants:
        if w in each:
            found[w] = list(each[w])
        elif w.name == "widths":
            mass = np.split(host(placed.mass), partitions.offsets[1:-1])
            found[w] = [
                WidthTotals(t, m, None if groups is None else g)
                for t, m, g in zip(found[w], mass, by_group[w], strict=True)
            ]
    return found


def reduce_sums(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    placed = TaskOnDevice(task)
    return reduce_widths(placed, wants, strips(task, metric, placed.codes))


def provide_summed_widths(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    summed: Any = metric.sums
    placed = TaskOnDevice(task)
    sums = sum_members(task, partial(summed.rows, task.space))
    return reduce_widths(placed, wants, summed_strips(placed, summed, sums))


def _group_table(task: Task) -> torch.Tensor:
    """(n, G) float64 beside X: whether an object belongs to a group."""
    groups = torch.as_tensor(task.groups, device=task.space.X.device).to(torch.int64)
    return torch.nn.functional.one_hot(groups).to(torch.float64)


def summed_strips(placed: TaskOnDevice, summed: Sums, sums: torch.Tensor) -> Strips:
    """Distance sums without pairs, with ``sums`` (ΣK, e) of the rows over every cluster."""
    space, offsets = placed.task.space, placed.task.partitions.offsets
    first = torch.as_tensor(offsets[:-1], device=sums.device)[:, None]
    for at in row_parts(space.n, 32.0 * len(sums) + 16.0 * space.d):
        rows, codes = summed.rows(space, at), placed.codes[:, at]
        lengths = summed.lengths(space, rows, sums, placed.mass)
        distances = summed.distances(space, rows, sums, lengths)
        # an object is at distance 0 from itself, also where its row is zero
        itself = placed.weights[at] * summed.itself(space, rows)
        itself = torch.where(codes >= 0, -itself, 0.0)
        distances.scatter_add_(0, first + codes.clamp(min=0), itself)
        distances[distances < ROUNDING * lengths] = 0
        yield at, distances


class _Part(NamedTuple):
    """Some rows as a batch of partitions sees them."""

    batch: Batch
    sums: torch.Tensor  # (g, K, b)
    weights: torch.Tensor  # (b,)
    mass: torch.Tensor  # (g, K)
    count: torch.Tensor  # (g, K)

    def own(self) -> torch.Tensor:
        return self.sums.gather(1, self.batch.safe()[:, None])[:, 0]

    def widths(self, singleton: float, xp: Any) -> torch.Tensor:
        """(g, b), NaN where not counted."""
        at = self.batch.safe()
        means = self.sums / self.mass[:, :, None]
        means.scatter_(1, at[:, None], torch.inf)
        width = finish_widths(
            own_sum=self.own(),
            rest=self.mass.gather(1, at) - self.weights,
            alone=self.count.gather(1, at) <= 1,
            other=means.amin(dim=1),
            singleton=singleton,
            xp=xp,
        )
        return torch.where(self.batch.codes >= 0, width, torch.nan)

    def by_group(self, singleton: float, groups: torch.Tensor, xp: Any) -> np.ndarray:
        """(g, G, K) totals of widths apart by the groups (b, G) of the objects."""
        width = (self.widths(singleton, xp).nan_to_num(0.0) * self.weights)[:, None, :]
        apart = torch.where(self.batch.members(), width, 0.0) @ groups
        return host(apart.transpose(1, 2))

    def reduce(self, w: Want, xp: Any) -> np.ndarray:
        """One entry for each partition: totals that add up over the strips."""
        if w.name == "widths":
            width = self.widths(w.get("singleton", 0), xp).nan_to_num(0.0)
            return host(totals(width * self.weights, self.batch))
        if w.name == "within_distances":
            own = torch.where(self.batch.codes >= 0, self.own(), 0.0)
            return host(0.5 * (own * self.weights).sum(dim=-1))
        weighed = self.batch.members() * self.weights
        return host(self.sums @ weighed.transpose(1, 2))
