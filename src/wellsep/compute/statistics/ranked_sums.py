"""Sums of the smallest and of the largest distances of all, for any number of terms at once.

Few distances are sorted. Many are counted in bins of their leading bits, once for all partitions;
a second pass splits the bins in which a wanted number of terms ends. What is then left to guess
is less than one part in 2³² of the few distances that share the last bin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.engine.threads import ROWS, cut_rows, in_threads, one_blas_thread, pair_rounds
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.table import Metric, Prepared, find, rows_of
from wellsep.compute.requests import Task, Want, by_counted
from wellsep.compute.statistics.spanning_tree import Dissimilarities

SORTABLE = 1 << 22  # distances that are simply sorted
OCTAVES, BITS, FINE = 32, 16, 16  # range below the largest distance; bits of the two passes
SPAN = OCTAVES << BITS
AT_ONCE = 32  # blocks between two additions, which come in a fixed order

Table = Callable[[slice, slice], np.ndarray]


class SelectedSums(NamedTuple):
    """The N smallest and the N largest distances between counted objects, summed."""

    terms: int  # N, the number of pairs within clusters
    total: int  # pairs of counted objects
    smallest: float
    largest: float


def provide_selected(task: Any, wants: list[Want]) -> dict[Want, list[Any]]:
    found: dict[Want, list[Any]] = {}
    if not isinstance(task, Task):
        from wellsep.compute.engine.dask.selection import select_chunks

        return {w: select_chunks(task, find(w.get("metric", "euclidean"))) for w in wants}
    for w in wants:
        entries: list[Any] = [None] * len(task.partitions)
        for rows, group in by_counted(task):
            counts = [_pairs_within(task.partitions.codes[m][rows]) for m in group]
            metric = find(w.get("metric", "euclidean"))
            low, high = select_rows(task.space, metric, rows, np.array(counts))
            total = len(rows) * (len(rows) - 1) // 2
            for m, n_within, a, b in zip(group, counts, low, high, strict=True):
                entries[m] = SelectedSums(n_within, total, float(a), float(b))
        found[w] = entries
    return found


def select_rows(
    space: Space, metric: Metric, rows: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest distances between some rows."""
    if space.on_device and metric.finish is not None:
        from wellsep.compute.engine.device.selection import select_on_device

        some = counted_rows(space.prepared(metric, wide=True), space.asarray(rows), space.xp)
        return select_on_device(
            some, counts, finish=metric.finish, fused=fused_usable(space.X), sortable=SORTABLE
        )
    table, reach = _distances(space, metric, rows)
    return select(table, reach, len(rows), counts, space.n_jobs)


def _pairs_within(codes: np.ndarray) -> int:
    size = np.bincount(codes)
    return int((size * (size - 1) // 2).sum())


def counted_rows(prepared: Prepared, rows: Any, xp: Any) -> Prepared:
    """Some rows about their mean: bins must reach no farther than the rows do.

    Far from the origin all directions are alike.
    """
    X = prepared.X[rows, :]
    zero = None if prepared.zero is None else prepared.zero[rows]
    return Prepared(X - xp.mean(X, axis=0), zero)


def _distances(space: Space, metric: Metric, rows: np.ndarray) -> tuple[Table, float | None]:
    """Distances of blocks of the counted objects, and a bound where one is known beforehand."""
    if metric.finish is None:
        pairs = Pairs(space, metric, wide=True)
        return lambda i, j: pairs.host_block(rows[i], rows[j]), None
    finish = metric.finish
    exact = Dissimilarities(rows_of(counted_rows(space.on_host(metric), rows, np)), None)
    reach = finish(4 * exact.rows.square.max(), np)
    return lambda i, j: finish(np.maximum(exact.table(i, j), 0), np), float(reach)


def select(
    table: Table, reach: float | None, n: int, counts: np.ndarray, jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest of the n(n − 1)/2 distances."""
    if n * (n - 1) // 2 <= SORTABLE:
        with one_blas_thread():
            values = np.concatenate([np.empty(0), *_upper(table, cut_rows(n, ROWS))])
        values.sort()
        rising = np.concatenate([[0.0], np.cumsum(values)])
        falling = np.concatenate([[0.0], np.cumsum(values[::-1])])
        return rising[counts], falling[counts]
    blocks = cut_rows(n, ROWS)
    if reach is None:
        reach = max(float(part.max(initial=0)) for part in _upper(table, blocks))
    if reach == 0:
        return np.zeros(len(counts)), np.zeros(len(counts))
    return _Histogram(table, blocks, reach, jobs).sums(counts)


def _upper(table: Table, blocks: list[slice]) -> Iterator[np.ndarray]:
    for i in range(len(blocks)):
        for j in range(i, len(blocks)):
            yield _pairs_once(table, blocks, i, j)


def _pairs_once(table: Table, blocks: list[slice], i: int, j: int) -> np.ndarray:
    values = table(blocks[i], blocks[j])
    return values[np.triu_indices(len(values), 1)] if i == j else values.reshape(-1)


class _Histogram:
    """Counts and sums of the distances by their leading bits, which sort as the numbers do."""

    def __init__(self, table: Table, blocks: list[slice], reach: float, jobs: int) -> None:
        self.table, self.blocks, self.jobs = table, blocks, jobs
        top = int(np.array([reach * (1 + 1e-9)]).view(np.int64)[0]) >> (52 - BITS)
        self.base = top - SPAN + 1

    def sums(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.count, self.total = np.zeros(SPAN, dtype=np.int64), np.zeros(SPAN)
        self._sweep(self._coarse, self._add_coarse)
        rising = np.concatenate([[0], np.cumsum(self.count)])
        ranks = np.concatenate([counts, rising[-1] - counts])
        # the bin in which the rank ends: all below it are counted in full
        ends = np.minimum(np.searchsorted(rising, ranks, side="left"), SPAN) - 1
        ends = np.maximum(ends, 0)
        bins = np.unique(ends)
        self.slot = np.full(SPAN, -1, dtype=np.int32)
        self.slot[bins] = np.arange(len(bins))
        self.fine_count = np.zeros((len(bins), 1 << FINE), dtype=np.int64)
        self.fine_total = np.zeros((len(bins), 1 << FINE))
        self._sweep(self._fine, self._add_fine)
        below = np.concatenate([[0.0], np.cumsum(self.total)])
        prefix = np.array(
            [
                below[end] + self._within_bin(int(self.slot[end]), int(rank - rising[end]))
                for end, rank in zip(ends, ranks, strict=True)
            ]
        )
        smallest, rest = np.split(prefix, 2)
        return smallest, below[-1] - rest

    def _within_bin(self, slot: int, terms: int) -> float:
        """The sum of the smallest ``terms`` of one bin; the last of them share a fine bin."""
        count, total = self.fine_count[slot], self.fine_total[slot]
        rising = np.cumsum(count)
        last = int(np.searchsorted(rising, terms, side="left"))
        if terms == 0 or last == len(count):
            return float(total.sum()) if terms else 0.0
        rest = terms - (rising[last] - count[last])
        return float(total[:last].sum() + rest * total[last] / count[last])

    def _sweep(self, look: Callable[..., Any], add: Callable[..., None]) -> None:
        """Visit all pairs of blocks; what each yields is added in the order of the visits."""
        found: dict[tuple[int, int], Any] = {}

        def visit(i: int, j: int) -> None:
            values = _pairs_once(self.table, self.blocks, i, j)
            bits = values.view(np.int64)
            at = (bits >> (52 - BITS)) - self.base
            np.maximum(at, 0, out=at)
            found[i, j] = look(values, bits, at)

        def rounds() -> Iterator[list[tuple[int, int]]]:
            for pairs in pair_rounds(len(self.blocks)):
                for start in range(0, len(pairs), AT_ONCE):
                    yield pairs[start : start + AT_ONCE]
                    for pair in pairs[start : start + AT_ONCE]:
                        add(*found.pop(pair))

        in_threads(self.jobs, visit, rounds())

    @staticmethod
    def _coarse(values: np.ndarray, bits: np.ndarray, at: np.ndarray) -> tuple[Any, ...]:
        low = int(at.min(initial=SPAN - 1))
        at -= low
        return low, np.bincount(at), np.bincount(at, weights=values)

    def _add_coarse(self, low: int, count: np.ndarray, total: np.ndarray) -> None:
        self.count[low : low + len(count)] += count
        self.total[low : low + len(count)] += total

    def _fine(self, values: np.ndarray, bits: np.ndarray, at: np.ndarray) -> tuple[Any, ...]:
        slot = self.slot[at]
        here = np.flatnonzero(slot >= 0)
        fine = (bits[here] >> (52 - BITS - FINE)) & ((1 << FINE) - 1)
        return slot[here], fine, values[here]

    def _add_fine(self, slot: np.ndarray, fine: np.ndarray, values: np.ndarray) -> None:
        np.add.at(self.fine_count, (slot, fine), 1)
        np.add.at(self.fine_total, (slot, fine), values)
