"""Gower's distances to clusters, summed without pairs: sorted columns and their running sums.

Σ |x_i − x_j| over the m values of a cluster is x_i(2q − m) − 2P_q + P_m, where q of them lie below
x_i and P are running sums of the sorted values. Which columns count for a pair depends on what is
missing in either row, so clusters are split by their pattern of missing and absent values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks import kernels_wanted
from wellsep.compute.gower import MISSING, MixedTable
from wellsep.compute.metrics import ROUNDING, Metric, find
from wellsep.compute.sums import plain_strips
from wellsep.compute.wants import Task

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
    known = np.hstack([c.known, c.codes != MISSING])
    absent = np.hstack([np.zeros_like(c.known), (c.codes == 0) & c.asymmetric])
    found, of_row = np.unique(np.hstack([known, absent]), axis=0, return_inverse=True)
    known, absent = found[:, : known.shape[1]], found[:, known.shape[1] :]
    weights = np.concatenate([c.number_weights, c.code_weights])
    total = (known * weights) @ known.T - (absent * weights) @ absent.T
    return Patterns(of_row.reshape(-1), known, absent, total)


def columns_usable(task: Task, metric: Metric) -> bool:
    """Few patterns, and fewer searches than pairs."""
    table = task.space.X
    if not isinstance(table, MixedTable) or metric != find(table.metric) or not kernels_wanted():
        return False
    c = table._columns
    known = np.packbits(np.hstack([c.known, c.codes != MISSING, c.asymmetric & (c.codes == 0)]), 1)
    patterns = len(np.unique(known, axis=0))
    clusters = int(task.partitions.offsets[-1])
    return patterns <= MOST_PATTERNS and patterns * clusters * LOOKUPS < task.space.n


def column_strips(task: Task, metric: Metric) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, distance sums of those rows to all clusters); rows come in the given order."""
    table: Any = task.space.X
    patterns = patterns_of(table)
    if (patterns.weight <= 0).any():  # reading such a block says which rows have nothing in common
        yield from plain_strips(task, metric)
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
    offsets = task.partitions.offsets
    weights = task.weights
    for m, codes in enumerate(task.partitions.codes):
        key = np.where(codes < 0, -1, codes.astype(np.int64) * len(patterns.known))
        key = np.where(codes < 0, -1, key + patterns.of_row)
        order = np.argsort(key, kind="stable")
        order = order[int((key < 0).sum()) :]
        if not len(order):
            continue
        for members in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
            cluster, pattern = divmod(int(key[members[0]]), len(patterns.known))
            mass = np.ones(len(members)) if weights is None else weights[members]
            yield int(offsets[m]) + cluster, _ClusterPart(table, patterns, pattern, members, mass)


class _ClusterPart:
    """The members of one cluster that miss the same values, each column sorted."""

    def __init__(
        self,
        table: MixedTable,
        patterns: Patterns,
        pattern: int,
        members: np.ndarray,
        mass: np.ndarray,
    ) -> None:
        self.c, self.patterns, self.pattern = table._columns, patterns, pattern
        self.mass = float(mass.sum())
        c, known = self.c, patterns.known[pattern]
        self.sorted = {}
        for at in np.flatnonzero(known[: len(c.number_weights)]).tolist():
            values = c.numbers[members, at]
            order = np.argsort(values, kind="stable")
            values, weight = values[order], mass[order]
            running = np.concatenate([[0.0], np.cumsum(values * weight)])
            below = np.concatenate([[0.0], np.cumsum(weight)])
            self.sorted[at] = values, running, below
        first = len(c.number_weights)
        self.counts = {
            at: np.bincount(c.codes[members, at], mass, int(c.levels[at]))
            for at in np.flatnonzero(known[first:]).tolist()
        }

    def sums(self, rows: slice) -> np.ndarray:
        """(b,) Σ of the members' weighted distances from each row."""
        c, found = self.c, np.zeros(rows.stop - rows.start)
        for at, (values, running, below) in self.sorted.items():
            x = c.numbers[rows, at]
            q = np.searchsorted(values, x)
            part = x * (2 * below[q] - self.mass) - 2 * running[q] + running[-1]
            part[part < ROUNDING * self.mass * 8] = 0.0
            found += c.number_weights[at] * part * c.known[rows, at]
        for at, counts in self.counts.items():
            code = c.codes[rows, at]
            other = self.mass - counts[np.maximum(code, 0)]
            found += c.code_weights[at] * np.where(code == MISSING, 0.0, other)
        return found / self.patterns.weight[self.patterns.of_row[rows], self.pattern]
