"""Sums of the smallest and of the largest distances of all, for any number of terms at once.

Few distances are sorted. Many are counted in bins of their leading bits, once for all partitions;
a second pass splits the bins in which a wanted number of terms ends. What is then left to guess
is less than one part in 2³² of the few distances that share the last bin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import ROWS, cut_rows, in_rounds, merge, one_blas_thread, pair_rounds
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space
from wellsep.compute.engine.kernel_choice import device_usable
from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.squares import rows_of
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.requests import Pass, Steps, Task, Want
from wellsep.compute.statistics.cluster_moments import masses
from wellsep.compute.statistics.spanning_tree import Dissimilarities

SORTABLE = 1 << 22  # distances that are simply sorted
OCTAVES, BITS, FINE = 32, 16, 16  # range below the largest distance; bits of the two passes
SPAN = OCTAVES << BITS
AT_ONCE = 32  # blocks between two additions, which come in a fixed order

Table = Callable[[slice, slice], np.ndarray]
# sweep(f, *given): f(values, *given) of the distances of all pairs, some at a time, merged
Sweep = Callable[..., Any]


class SelectedSums(NamedTuple):
    """The N smallest and the N largest distances between counted objects, summed."""

    terms: int  # N, the number of pairs within clusters
    total: int  # pairs of counted objects
    smallest: float
    largest: float


def provide_selected(task: Any, wants: list[Want]) -> Steps:
    """One selection serves all partitions that count the same objects."""
    size = yield Pass(masses)
    pairs = np.split(size.counts * (size.counts - 1) // 2, task.partitions.offsets[1:-1])
    terms = np.array([int(within.sum()) for within in pairs])
    chosen, number = task.alike()
    found: dict[Want, list[Any]] = {w: [None] * len(terms) for w in wants}
    for w in wants:
        for position, m in enumerate(chosen):
            group = np.flatnonzero(np.array(number) == position)
            select_counted = task.either(_select_in_memory, _select_by_pairs)
            low, high = select_counted(task, find(w.get("metric", "euclidean")), m, terms[group])
            n = int(task.partitions.n_counted[m])
            for i, a, b in zip(group, low, high, strict=True):
                found[w][i] = SelectedSums(int(terms[i]), n * (n - 1) // 2, float(a), float(b))
    return found


def _select_in_memory(
    task: Task, metric: Metric, m: int, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    space, rows = task.space, np.flatnonzero(task.partitions.codes[m] >= 0)
    finish: Any = metric.finish
    if finish is not None and device_usable(space.X):
        select_on_device = load("wellsep.compute.engine.device.extremes").select_on_device
        some = counted_rows(space.prepared(metric, wide=True), space.asarray(rows), space.xp)
        fused = fused_usable(space.X)
        return select_on_device(some, counts, finish=finish, fused=fused, sortable=SORTABLE)
    table, reach = _distances(space, metric, rows)
    return select(table, reach, len(rows), counts, space.n_jobs)


def counted_rows(prepared: Prepared, rows: Any, xp: Any) -> Prepared:
    """Some rows about their mean: far from the origin all are alike, and bins would reach far."""
    X, zero = prepared.take(rows)
    return Prepared(X - xp.mean(X, axis=0), zero)


def _distances(space: Space, metric: Metric, rows: np.ndarray) -> tuple[Table, float | None]:
    """Distances of blocks of the counted objects, and a bound where one is known beforehand."""
    if metric.finish is None:
        pairs = Pairs(space, metric, wide=True)
        return lambda i, j: pairs.host_block(rows[i], rows[j]), None
    finish = metric.finish
    exact = Dissimilarities(rows_of(counted_rows(space.on_host(metric), rows, np)), None)
    reach = finish(4 * exact.rows.square.max(initial=0), np)
    return lambda i, j: finish(np.maximum(exact.table(i, j), 0), np), float(reach)


def select(
    table: Table, reach: float | None, n: int, counts: np.ndarray, jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest of the n(n − 1)/2 distances."""
    blocks = cut_rows(n, ROWS)
    if n * (n - 1) // 2 <= SORTABLE:
        every = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
        with one_blas_thread():
            parts = [_pairs_once(table, blocks, i, j) for i, j in every]
        values = np.sort(np.concatenate([np.empty(0), *parts]))
        rising = np.concatenate([[0.0], np.cumsum(values)])
        falling = np.concatenate([[0.0], np.cumsum(values[::-1])])
        return rising[counts], falling[counts]
    return histogram_sums(partial(_sweep, table, blocks, jobs), reach, counts)


def _pairs_once(table: Table, blocks: list[slice], i: int, j: int) -> np.ndarray:
    values = table(blocks[i], blocks[j])
    return values[np.triu_indices(len(values), 1)] if i == j else values.reshape(-1)


def _sweep(table: Table, blocks: list[slice], jobs: int, f: Callable[..., Any], *given: Any) -> Any:
    """Visit all pairs of blocks; results are merged in the order of the visits."""
    results: dict[tuple[int, int], Any] = {}
    total: list[Any] = []

    def visit(i: int, j: int) -> None:
        results[i, j] = f(_pairs_once(table, blocks, i, j), *given)

    def rounds() -> Iterator[list[tuple[int, int]]]:
        for pairs in pair_rounds(len(blocks)):
            for start in range(0, len(pairs), AT_ONCE):
                some = pairs[start : start + AT_ONCE]
                yield some
                total[:] = [merge([*total, *(results.pop(pair) for pair in some)])]

    in_rounds(jobs, visit, rounds())
    return total[0]


def _select_by_pairs(
    task: Any, metric: Metric, m: int, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same where two blocks of rows come together at a time."""
    known = metric.finish is not None
    reach = task.fold([Pass(_reach, (metric, m))])[0].value if known else None
    return histogram_sums(partial(task.fold_pairs, _of_two, metric, m), reach, counts)


def _reach(block: Any, metric: Metric, m: int) -> Largest:
    """Twice the greatest distance of a counted row from a common point."""
    space = block.space
    middle = Space(space.shift[None], 1, origin=space.shift).prepared(metric, wide=True).X
    X, zero = space.prepared(metric, wide=True)
    squares = ((X[block.rows] - middle) ** 2).sum(axis=1)
    squares += 0 if zero is None else zero[block.rows]
    far = squares[block.codes[m] >= 0].max(initial=0)
    return Largest(float(metric.finish(4 * far, np)))  # type: ignore[misc]


def _of_two(
    left: Task, right: Task, places: list[int], metric: Metric, m: int, f: Callable[..., Any],
    *given: Any,
) -> Any:  # fmt: skip
    """``f`` of the distances of the counted objects of two blocks, each pair once, merged."""
    mine, theirs = (np.flatnonzero(task.partitions.codes[m] >= 0) for task in (left, right))
    total = f(np.empty(0), *given)
    own = places[0] == places[1]
    if not len(mine) or not len(theirs):
        return total
    X = left.space.X[mine] if own else np.vstack([left.space.X[mine], right.space.X[theirs]])
    space = Space(X, 1, origin=left.space.origin)
    table, _ = _distances(space, metric, np.arange(len(X)))
    blocks = cut_rows(len(mine), ROWS)
    first, shifted = len(blocks), [] if own else cut_rows(len(theirs), ROWS)
    blocks += [slice(len(mine) + b.start, len(mine) + b.stop) for b in shifted]
    for i in range(first):
        for j in range(i if own else first, len(blocks)):
            total = merge([total, f(_pairs_once(table, blocks, i, j), *given)])
    return total


class Largest(NamedTuple):
    """The largest number seen."""

    value: float

    @classmethod
    def merged(cls, parts: list[Largest]) -> Largest:
        return cls(max(p.value for p in parts))


class Bins(NamedTuple):
    """Counts and sums of numbers by bin, from bin ``low`` on."""

    low: int
    number: np.ndarray
    total: np.ndarray

    @classmethod
    def merged(cls, parts: list[Bins]) -> Bins:
        low = min(p.low for p in parts)
        size = max(p.low + len(p.number) for p in parts) - low
        number, total = np.zeros(size, dtype=np.int64), np.zeros(size)
        for p in parts:
            bins = slice(p.low - low, p.low - low + len(p.number))
            number[bins] += p.number
            total[bins] += p.total
        return cls(low, number, total)


class Cells(NamedTuple):
    """Counts and sums of numbers by key; only keys that occur."""

    keys: np.ndarray  # rising
    number: np.ndarray
    total: np.ndarray

    @classmethod
    def merged(cls, parts: list[Cells]) -> Cells:
        keys, number, total = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls.of(keys, number, total)

    @classmethod
    def of(cls, keys: np.ndarray, number: np.ndarray | None, total: np.ndarray) -> Cells:
        distinct, place = np.unique(keys, return_inverse=True)
        counts = np.bincount(place, number, len(distinct)).astype(np.int64)
        return cls(distinct, counts, np.bincount(place, total, len(distinct)))


def _largest(values: np.ndarray) -> Largest:
    return Largest(float(values.max(initial=0)))


def _bins_of(values: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """The bits of numbers, and their bins: leading bits sort as the numbers do."""
    bits = values.view(np.int64)
    at = (bits >> (52 - BITS)) - base
    return bits, np.maximum(at, 0, out=at)


def _coarse(values: np.ndarray, base: int) -> Bins:
    _, at = _bins_of(values, base)
    low = int(at.min(initial=SPAN - 1))
    at -= low
    return Bins(low, np.bincount(at), np.bincount(at, weights=values))


def _fine(values: np.ndarray, base: int, slot: np.ndarray) -> Cells:
    """Numbers of the bins that have a slot, by further bits."""
    bits, at = _bins_of(values, base)
    slots = slot[at]
    here = np.flatnonzero(slots >= 0)
    fine = (bits[here] >> (52 - BITS - FINE)) & ((1 << FINE) - 1)
    return Cells.of((slots[here].astype(np.int64) << FINE) + fine, None, values[here])


def histogram_sums(
    sweep: Sweep, reach: float | None, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest distances, none of which exceeds ``reach``."""
    reach = sweep(_largest).value if reach is None else reach
    if reach == 0:
        return np.zeros(len(counts)), np.zeros(len(counts))
    base = (int(np.array([reach * (1 + 1e-9)]).view(np.int64)[0]) >> (52 - BITS)) - SPAN + 1
    low, number, total = sweep(_coarse, base)
    rising = np.concatenate([[0], np.cumsum(number)])
    ranks = np.concatenate([counts, rising[-1] - counts])
    # the bin in which the rank ends: all below it are counted in full
    ends = np.maximum(np.minimum(np.searchsorted(rising, ranks, side="left"), len(number)) - 1, 0)
    slot = np.full(SPAN, -1, dtype=np.int32)
    slot[low + np.unique(ends)] = np.arange(len(np.unique(ends)))
    cells = sweep(_fine, base, slot)
    below = np.concatenate([[0.0], np.cumsum(total)])
    prefix = np.array(
        [
            below[end] + _within_bin(cells, int(slot[low + end]), int(rank - rising[end]))
            for end, rank in zip(ends, ranks, strict=True)
        ]
    )
    smallest, rest = np.split(prefix, 2)
    return smallest, below[-1] - rest


def _within_bin(cells: Cells, slot: int, terms: int) -> float:
    """The sum of the smallest ``terms`` of one bin; the last of them share a fine bin."""
    a, b = np.searchsorted(cells.keys, [slot << FINE, (slot + 1) << FINE])
    number, total = cells.number[a:b], cells.total[a:b]
    rising = np.cumsum(number)
    last = int(np.searchsorted(rising, terms, side="left"))
    if terms == 0 or last == len(number):
        return float(total.sum()) if terms else 0.0
    rest = terms - (rising[last] - number[last])
    return float(total[:last].sum() + rest * total[last] / number[last])
