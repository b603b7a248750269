"""Gower's distances to clusters, summed without pairs: sorted columns and their running sums.

Σ |x_i − x_j| over the m values of a cluster is x_i(2q − m) − 2P_q + P_m, where q of them lie below
x_i and P are running sums of the sorted values. Which columns count for a pair depends on what is
missing in either row, so clusters are split by their pattern of missing and absent values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import kernels_wanted
from wellsep.compute.data.mixed_columns import MISSING, Columns
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.metrics.squares import ROUNDING
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.requests import Task

MOST_PATTERNS = 64
AT_ONCE = 1 << 16  # objects whose sums are worked out together
LOOKUPS = 12  # pairs of one column that cost what one search among sorted values does


class Patterns(NamedTuple):
    """Which rows miss the same values, and which columns count between two such sets of rows."""

    of_row: np.ndarray  # (n,)
    known: np.ndarray  # (P, p + q) bool
    absent: np.ndarray  # (P, p + q) bool, asymmetric binaries that are 0
    weight: np.ndarray  # (P, P) Σ wδ of a row of one pattern and a row of another


def patterns_of(table: MixedTable) -> Patterns:
    c = table._columns
    _, first, of_row = np.unique(_keys(table), return_index=True, return_inverse=True)
    known = np.hstack([c.known, c.codes != MISSING])[first]
    absent = np.hstack([np.zeros_like(c.known), (c.codes == 0) & c.asymmetric])[first]
    weights = np.concatenate([c.number_weights, c.code_weights])
    total = (known * weights) @ known.T - (absent * weights) @ absent.T
    return Patterns(of_row.reshape(-1), known, absent, total)


def _keys(table: MixedTable) -> np.ndarray:
    """(n,) what is missing or absent in each row, as one value."""
    c = table._columns
    bits = np.packbits(np.hstack([c.known, c.codes != MISSING, c.asymmetric & (c.codes == 0)]), 1)
    wide = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    wide[:, : bits.shape[1]] = bits
    keys = wide.view(np.uint64)
    return keys[:, 0] if keys.shape[1] == 1 else keys.view(f"V{wide.shape[1]}")[:, 0]


def columns_usable(task: Task, metric: Metric) -> bool:
    """Few patterns, fewer searches than pairs, and something that all rows have in common."""
    table = task.space.X
    if not isinstance(table, MixedTable) or metric != find(table.metric) or not kernels_wanted():
        return False
    patterns = len(np.unique(_keys(table)))
    clusters = int(task.partitions.offsets[-1])
    few = patterns <= MOST_PATTERNS and patterns * clusters * LOOKUPS < task.space.n
    # Reading a block says which rows have nothing in common.
    return few and bool((patterns_of(table).weight > 0).all())


def column_strips(task: Task, metric: Metric) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, distance sums of those rows to all clusters); rows come in the given order."""
    table: Any = task.space.X
    patterns = patterns_of(table)
    if task.sums_fit:
        sums = np.zeros((int(task.partitions.offsets[-1]), task.space.n))
        order = [np.argsort(x, kind="stable") for x in table._columns.numbers.T]
        ranked = [x[rising] for x, rising in zip(table._columns.numbers.T, order, strict=True)]
        for place, part in _clusters(task, table, patterns):
            sums[place] += part.all_sums(order, ranked)
        yield slice(0, task.space.n), sums * table._unit
        return
    parts = list(_clusters(task, table, patterns))
    for start in range(0, task.space.n, AT_ONCE):
        rows = slice(start, min(start + AT_ONCE, task.space.n))
        sums = np.zeros((int(task.partitions.offsets[-1]), rows.stop - rows.start))
        for place, part in parts:
            sums[place] += part.sums(rows)
        yield rows, sums * table._unit


def _clusters(
    task: Task, table: MixedTable, patterns: Patterns
) -> Iterator[tuple[int, _ClusterPart]]:
    weights = task.weights_or_ones()
    for offset, codes in zip(task.partitions.offsets.tolist(), task.partitions.codes, strict=False):
        key = codes.astype(np.int64) * len(patterns.known) + patterns.of_row
        order = np.argsort(np.where(codes < 0, -1, key), kind="stable")[int((codes < 0).sum()) :]
        if not len(order):
            continue
        for members in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
            cluster, pattern = divmod(int(key[members[0]]), len(patterns.known))
            part = _ClusterPart(table._columns, patterns, pattern, members, weights[members])
            yield offset + cluster, part


@dataclass(eq=False)
class _ClusterPart:
    """The members of one cluster that miss the same values, each column sorted."""

    columns: Columns
    patterns: Patterns
    pattern: int
    members: np.ndarray
    masses: np.ndarray  # of the members

    def __post_init__(self) -> None:
        self.mass = float(self.masses.sum())
        c, present = self.columns, self.patterns.known[self.pattern]
        first = len(c.number_weights)
        self.numbers = np.flatnonzero(present[:first]).tolist()
        self.counts = {  # masses of the levels of each column of categories
            column: np.bincount(c.codes[self.members, column], self.masses, int(c.levels[column]))
            for column in np.flatnonzero(present[first:]).tolist()
        }

    def all_sums(self, order: list[np.ndarray], ranked: list[np.ndarray]) -> np.ndarray:
        """(n,) Σ of the members' weighted distances from each object, columns sorted once."""
        c, every = self.columns, slice(0, len(self.columns.codes))
        sums, masses = np.zeros(every.stop), np.zeros(every.stop)
        masses[self.members] = self.masses
        for column in self.numbers:
            x, weight = ranked[column], masses[order[column]]
            running = np.cumsum(weight * x)
            gaps = np.empty(every.stop)
            gaps[order[column]] = self._gaps(x, np.cumsum(weight), running, float(running[-1]))
            sums += c.number_weights[column] * gaps * c.known[:, column]
        return self._with_categories(sums, every)

    def _gaps(
        self, x: np.ndarray, below: np.ndarray, running: np.ndarray, total: float
    ) -> np.ndarray:
        """x(2q − m) − 2P_q + P_m; what rounding leaves of equal values is 0."""
        gaps: np.ndarray = x * (2 * below - self.mass) - 2 * running + total
        gaps[gaps < ROUNDING * self.mass * 8] = 0.0
        return gaps

    def sums(self, rows: slice) -> np.ndarray:
        """(b,) the same from some rows, by searches among the sorted members."""
        c, sums = self.columns, np.zeros(rows.stop - rows.start)
        for column in self.numbers:
            values, running, below = self.sorted[column]
            x = c.numbers[rows, column]
            q = np.searchsorted(values, x)
            gaps = self._gaps(x, below[q], running[q], running[-1])
            sums += c.number_weights[column] * gaps * c.known[rows, column]
        return self._with_categories(sums, rows)

    @cached_property
    def sorted(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values, their running sums and running weights, of each column of numbers."""
        columns = {}
        for column in self.numbers:
            values = self.columns.numbers[self.members, column]
            order = np.argsort(values, kind="stable")
            values, weight = values[order], self.masses[order]
            running = np.concatenate([[0.0], np.cumsum(values * weight)])
            columns[column] = values, running, np.concatenate([[0.0], np.cumsum(weight)])
        return columns

    def _with_categories(self, sums: np.ndarray, rows: slice) -> np.ndarray:
        c = self.columns
        for column, counts in self.counts.items():
            code = c.codes[rows, column]
            other = self.mass - counts[np.maximum(code, 0)]
            sums += c.code_weights[column] * np.where(code == MISSING, 0.0, other)
        return sums / self.patterns.weight[self.patterns.of_row[rows], self.pattern]
