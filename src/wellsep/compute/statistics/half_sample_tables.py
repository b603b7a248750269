"""Contingency tables on many half-samples of the objects, from counts kept apart by group.

The objects are split into G groups and a half-sample is a choice of them. With n_g the tables of
the groups, Σ_ab (Σ_g c_g n_g,ab)² = Σ_gh c_g c_h Σ_ab n_g,ab n_h,ab: a quadratic form of the choice
c, so that each pair of partitions is counted once, whatever the number of half-samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wellsep.compute.engine.threads import effective_jobs, in_threads
from wellsep.compute.statistics import contingency
from wellsep.compute.statistics.contingency import ROUND, PairCounts

DRAWS, PAIRS = 4, 1 << 13  # half-samples and pairs of partitions that are summed at once


class GroupCounts(NamedTuple):
    """The contingency tables of all pairs of M partitions, as quadratic forms over G groups."""

    sizes: np.ndarray  # (G,) objects of each group
    own: np.ndarray  # (M, G(G+1)/2) of each partition with itself
    pairs: np.ndarray  # (M(M-1)/2, G(G+1)/2) of i > j, row by row; the smallest integers that do

    def counts(self, choices: np.ndarray) -> Iterator[PairCounts]:
        """For each choice of groups (D, G) the tables on their objects; Σ n² alone."""
        upper = np.triu_indices(len(self.sizes))
        both = choices[:, upper[0]] & choices[:, upper[1]]
        times = both * np.where(upper[0] == upper[1], 1.0, 2.0)  # (D, G(G+1)/2)
        low = np.empty((min(DRAWS, len(times)), len(self.pairs)))
        for first in range(0, len(times), DRAWS):
            some = times[first : first + DRAWS]
            for start in range(0, len(self.pairs), PAIRS):
                rows = slice(start, start + PAIRS)
                low[: len(some), rows] = some @ self.pairs[rows].T.astype(np.float64)
            own_squares = some @ self.own.T
            for chosen, own, below in zip(choices[first:], own_squares, low, strict=False):
                squares = np.diag(own)
                for i in range(1, len(own)):
                    row = below[i * (i - 1) // 2 : i * (i + 1) // 2]
                    squares[i, :i] = squares[:i, i] = row
                n = int(self.sizes[chosen].sum())
                yield PairCounts(n, np.rint(squares).astype(np.int64), np.empty((0, 0)), ())


def count_by_group(
    codes: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    *,
    n_jobs: int | None = None,
    progress: contingency.Progress | None = None,
) -> GroupCounts:
    """Count every pair of the rows of ``codes`` (M, n), apart by the group of the objects.

    Takes n · M² / 2 additions and G² multiplications per cell of a table, and G(G+1)/2 integers
    per pair of memory. The result does not depend on the number of threads.
    """
    codes = np.ascontiguousarray(codes, dtype=np.intp)
    n_partitions, n = codes.shape
    upper = np.triu_indices(n_groups)
    ks = codes.max(axis=1, initial=-1) + 1
    sizes = np.bincount(group, minlength=n_groups)
    kind = np.min_scalar_type(int(sizes.max()) ** 2)  # no product of two counts is larger
    pairs = np.empty((n_partitions * (n_partitions - 1) // 2, len(upper[0])), kind)
    own = np.empty((n_partitions, len(upper[0])))

    def form(cells: np.ndarray, n_cells: int) -> np.ndarray:
        # Counters would outnumber the objects.
        if n_cells * n_groups > contingency.DENSE * max(n, 1024):
            cells = np.unique(cells, return_inverse=True)[1].reshape(-1)
            n_cells = int(cells.max(initial=-1)) + 1
        keys = group * n_cells + cells
        table = np.bincount(keys, minlength=n_groups * n_cells).astype(np.float64)
        table = table.reshape(n_groups, n_cells)
        found: np.ndarray = (table @ table.T)[upper]
        return found

    def count_row(i: int) -> None:
        own[i] = form(codes[i], int(ks[i]))
        begin = i * (i - 1) // 2
        for j in range(i):
            cells = codes[i] * ks[j] + codes[j]
            pairs[begin + j] = form(cells, int(ks[i] * ks[j]))

    jobs = min(effective_jobs(n_jobs), n_partitions)
    rows = range(n_partitions - 1, -1, -1)
    for start in range(0, len(rows), ROUND):
        in_threads(jobs, count_row, iter([[(i,) for i in rows[start : start + ROUND]]]))
        if progress is not None and len(rows) > ROUND:
            progress(min(start + ROUND, len(rows)), len(rows), "pairs")
    return GroupCounts(sizes, own, pairs)
