"""Sums of the smallest and the largest distances where the rows are on Dask: two passes over all
pairs of blocks, which count distances by their leading bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.engine.dask.engine import OnDask
from wellsep.compute.engine.threads import ROWS, cut_rows
from wellsep.compute.metrics.table import Metric
from wellsep.compute.requests import Pass, Task
from wellsep.compute.statistics.cluster_moments import masses
from wellsep.compute.statistics.ranked_sums import (
    BITS,
    FINE,
    SPAN,
    SelectedSums,
    _distances,
    _Histogram,
)


def select_chunks(task: OnDask, metric: Metric) -> list[SelectedSums]:
    """One entry per partition; partitions that count every row share the passes."""
    partitions = task.partitions
    count = task.fold([Pass(masses)])[0].counts
    pairs = np.split(count * (count - 1) / 2, partitions.offsets[1:-1])
    terms = np.array([int(p.sum()) for p in pairs])
    chosen, number = task.alike()
    found: list[Any] = [None] * len(partitions)
    for position, m in enumerate(chosen):
        group = [i for i, g in enumerate(number) if g == position]
        reach = float(task.fold_pairs(_reach, metric, m).value)
        low, high = np.zeros((2, len(group)))
        if reach > 0:
            low, high = _ChunkHistogram(task, metric, m, reach).sums(terms[group])
        n = int(partitions.n_counted[m])
        for i, a, b in zip(group, low, high, strict=True):
            found[i] = SelectedSums(int(terms[i]), n * (n - 1) // 2, float(a), float(b))
    return found


class _ChunkHistogram(_Histogram):
    """The same counts, each pair of blocks counted where it is."""

    def __init__(self, task: OnDask, metric: Metric, m: int, reach: float) -> None:
        super().__init__(lambda i, j: np.empty((0, 0)), [], reach, 1)
        self.where, self.metric, self.m = task, metric, m

    def _sweep(self, look: Callable[..., Any], add: Callable[..., None]) -> None:
        shared = (self.metric, self.m, self.base)
        if look == self._coarse:
            add(*self.where.fold_pairs(_coarse, *shared))
            return
        fine = self.where.fold_pairs(_fine, *shared, self.slot, len(self.fine_count))
        self.fine_count += fine[0]
        self.fine_total += fine[1]


class Largest(NamedTuple):
    """The largest distance seen."""

    value: float

    @classmethod
    def merged(cls, parts: list[Largest]) -> Largest:
        return cls(max(p.value for p in parts))


class Counts(NamedTuple):
    """Counts and sums of distances by bin, from bin ``low`` on."""

    low: int
    number: np.ndarray
    total: np.ndarray

    @classmethod
    def merged(cls, parts: list[Counts]) -> Counts:
        low = min(p.low for p in parts)
        size = max(p.low + len(p.number) for p in parts) - low
        count, total = np.zeros(size, dtype=np.int64), np.zeros(size)
        for p in parts:
            bins = slice(p.low - low, p.low - low + len(p.number))
            count[bins] += p.number
            total[bins] += p.total
        return cls(low, count, total)


def _values(
    left: Task, right: Task, starts: list[int], metric: Metric, m: int
) -> Iterator[np.ndarray]:
    """Distances of the counted objects of two blocks, each pair once."""
    mine = np.flatnonzero(left.partitions.codes[m] >= 0)
    if starts[0] == starts[1]:
        table, _ = _table(left.space.X, left.space.origin, mine, metric)
        parts = cut_rows(len(mine), ROWS) if len(mine) else []
        for i, a in enumerate(parts):
            for b in parts[i:]:
                values = table(a, b)
                yield values[np.triu_indices(len(values), 1)] if a == b else values.reshape(-1)
        return
    theirs = np.flatnonzero(right.partitions.codes[m] >= 0)
    if not len(mine) or not len(theirs):
        return
    X = np.vstack([left.space.X[mine], right.space.X[theirs]])
    table, _ = _table(X, left.space.origin, np.arange(len(X)), metric)
    for a in cut_rows(len(mine), ROWS):
        for b in cut_rows(len(theirs), ROWS):
            yield table(a, slice(len(mine) + b.start, len(mine) + b.stop)).reshape(-1)


def _table(X: np.ndarray, origin: Any, rows: np.ndarray, metric: Metric) -> Any:
    if not len(rows):
        return None, None
    return _distances(Space(X, 1, origin=origin), metric, rows)


def _reach(left: Task, right: Task, starts: list[int], metric: Metric, m: int) -> Largest:
    if metric.finish is None:
        values = _values(left, right, starts, metric, m)
        return Largest(max((float(v.max(initial=0)) for v in values), default=0.0))
    if starts[0] != starts[1]:
        return Largest(0.0)  # twice the greatest distance from a common point will do
    shift = left.space.shift
    counted = left.space.X[left.partitions.codes[m] >= 0]
    if not len(counted):
        return Largest(0.0)
    X, zero = Space(counted, 1, origin=shift).prepared(metric, wide=True)
    middle = Space(shift[None], 1, origin=shift).prepared(metric, wide=True).X
    squares = ((X - middle) ** 2).sum(axis=1) + (0 if zero is None else zero)
    return Largest(float(metric.finish(4 * squares.max(), np)))


def _coarse(
    left: Task, right: Task, starts: list[int], metric: Metric, m: int, base: int
) -> Counts:
    parts = [Counts(SPAN - 1, np.zeros(1, dtype=np.int64), np.zeros(1))]
    for values in _values(left, right, starts, metric, m):
        if len(values):
            part = Counts(*_Histogram._coarse(values, *_bits(values, base)))
            parts = [Counts.merged([*parts, part])]
    return parts[0]


def _fine(
    left: Task,
    right: Task,
    starts: list[int],
    metric: Metric,
    m: int,
    base: int,
    slot: np.ndarray,
    n_slots: int,
) -> tuple[np.ndarray, np.ndarray]:
    count = np.zeros((n_slots, 1 << FINE), dtype=np.int64)
    total = np.zeros((n_slots, 1 << FINE))
    for values in _values(left, right, starts, metric, m):
        bits, at = _bits(values, base)
        here = np.flatnonzero(slot[at] >= 0)
        fine = (bits[here] >> (52 - BITS - FINE)) & ((1 << FINE) - 1)
        np.add.at(count, (slot[at][here], fine), 1)
        np.add.at(total, (slot[at][here], fine), values[here])
    return count, total


def _bits(values: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    bits = values.view(np.int64)
    return bits, np.maximum((bits >> (52 - BITS)) - base, 0)
