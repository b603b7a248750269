"""Contingency tables of all pairs of partitions, counted in bulk and kept as two numbers each.

A table says how many objects cluster a of one partition and cluster b of another have in common.
Its Σ n² and Σ n ln n, with the sizes of the clusters, are all that agreement measures need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from wellsep import partitions
from wellsep._threads import effective_jobs, in_threads
from wellsep.partitions import shared_cells

ROUND = 64  # partitions that are compared with all others before progress is told
DRAWS, PAIRS = 4, 1 << 13  # half-samples and pairs of partitions that are summed at once
REACH, MORE = 9.0, 12.0  # chance is summed over 9 standard deviations of an overlap and 12 objects


Progress = Callable[[int, int, str], None]


class PairCounts(NamedTuple):
    """The contingency tables of all pairs of M partitions of n objects, summed up."""

    n: int
    squares: np.ndarray  # (M, M) int64, Σ n_ab²; on the diagonal Σ a²
    logs: np.ndarray  # (M, M) Σ n_ab ln n_ab; on the diagonal Σ a ln a
    sizes: tuple[np.ndarray, ...]  # (K,) sizes of the clusters of each partition

    @classmethod
    def of_codes(
        cls,
        codes: np.ndarray,
        *,
        n_jobs: int | None = None,
        first: int | None = None,
        progress: Progress | None = None,
    ) -> PairCounts:
        """Count every pair of the rows of ``codes`` (M, n), whole numbers from 0 without gaps.

        With ``first`` only the pairs of the first so many rows with all others.
        """
        # n · M² / 2 additions: on a CPU this is quicker than products of one-hot columns.
        codes = np.ascontiguousarray(codes, dtype=np.intp)
        n_partitions, n = codes.shape
        sizes = tuple(np.bincount(one) for one in codes)
        squares = np.diag([int(np.dot(s, s)) for s in sizes]).astype(np.int64)
        logs = np.diag([float(xlogy(s, s).sum()) for s in sizes])
        known = xlogy(np.arange(n + 1), np.arange(n + 1))  # looked up, not computed anew

        def count_row(i: int) -> None:
            for j in range(i if first is None else min(i, first)):
                _, counts = shared_cells(codes[i], codes[j], len(sizes[i]), len(sizes[j]))
                squares[i, j] = squares[j, i] = np.dot(counts, counts)
                logs[i, j] = logs[j, i] = known[counts].sum()

        _count_rows(count_row, range(n_partitions - 1, 0, -1), n_jobs, progress)
        return cls(n, squares, logs, sizes)

    def subset(self, which: np.ndarray) -> PairCounts:
        """The tables among some of the partitions."""
        both = np.ix_(which, which)
        sizes = tuple(self.sizes[m] for m in which.tolist())
        return PairCounts(self.n, self.squares[both], self.logs[both], sizes)

    @property
    def first_equal(self) -> np.ndarray:
        """(M,) the first partition that each one equals, whatever its clusters are called."""
        # Σ n_ab² ≤ Σ a² with equality only if no cluster is split, so integers decide.
        own = np.diag(self.squares)
        equal = (self.squares == own) & (self.squares == own[:, None])
        return np.argmax(equal, axis=1)

    def entropies(self) -> np.ndarray:
        """(M,) entropy of each partition, in nats; exactly 0 for one cluster: integers decide."""
        entropy = np.maximum(0.0, np.log(self.n) - np.diag(self.logs) / self.n)
        entropy[np.diag(self.squares) == self.n**2] = 0.0
        return entropy

    def information(self) -> np.ndarray:
        """(M, M) mutual information of each pair, in nats; at least 0, and 0 with one cluster."""
        entropy = self.entropies()
        joint = np.log(self.n) - self.logs / self.n
        shared = np.maximum(0.0, entropy[:, None] + entropy - joint)
        return np.where(np.minimum.outer(entropy, entropy) > 0, shared, 0.0)

    def chance_information(self) -> np.ndarray:
        """(M, M) mutual information to be expected if the objects were dealt out at random.

        The expectation is a sum over pairs of clusters of a function F of their two sizes. With
        C[m, s] the number of clusters of size s in partition m, all pairs are C F Cᵀ.
        """
        distinct = np.unique(np.concatenate(self.sizes))
        how_many = np.stack(
            [
                np.bincount(np.searchsorted(distinct, sizes), minlength=len(distinct))
                for sizes in self.sizes
            ]
        ).astype(np.float64)
        expected: np.ndarray = how_many @ _chance_terms(distinct, self.n) @ how_many.T
        return (expected + expected.T) / 2


def _count_rows(
    count_row: Callable[[int], None], rows: range, n_jobs: int | None, progress: Progress | None
) -> None:
    for start in range(0, len(rows), ROUND):
        in_threads(effective_jobs(n_jobs), count_row, rows[start : start + ROUND])
        if progress is not None and len(rows) > ROUND:
            progress(min(start + ROUND, len(rows)), len(rows), "pairs")


def _chance_terms(sizes: np.ndarray, n: int) -> np.ndarray:
    """F(a, b) = Σ_t (t/n) ln(n t / (a b)) P(t), t hypergeometric: a of n objects, b of them marked.

    t runs over the mean ± (9 sd + 12); what lies beyond is smaller than rounding.
    """
    terms = np.zeros((len(sizes), len(sizes)))
    log = gammaln(np.arange(n + 2) + 1.0)  # of factorials
    logs = np.log(np.maximum(np.arange(n + 1), 1))
    for i, a in enumerate(sizes.astype(np.int64)):
        b = sizes[i:].astype(np.int64)
        mean = a * b / n
        spread = np.sqrt(mean * (1 - a / n) * (1 - b / n) * n / max(n - 1, 1))
        reach = REACH * spread + MORE
        low = np.maximum(np.maximum(1, a + b - n), np.floor(mean - reach)).astype(np.int64)
        high = np.minimum(np.minimum(a, b), np.ceil(mean + reach)).astype(np.int64)
        length = np.maximum(high - low + 1, 0)
        which = np.repeat(np.arange(len(b)), length)
        t = np.arange(length.sum()) - (np.cumsum(length) - length)[which] + low[which]
        rest = b[which] - t
        chance = (log[a] + log[n - a] - log[n] + log[b] + log[n - b])[which]
        chance -= log[t]
        chance -= log[a - t]
        chance -= log[rest]
        chance -= log[n - a - rest]
        shares = np.exp(chance, out=chance)
        shares *= t
        shares *= logs[t] + (logs[n] - logs[a] - logs[b])[which]
        terms[i, i:] = terms[i:, i] = np.bincount(which, shares, len(b)) / n
    return terms


class GroupCounts(NamedTuple):
    """The contingency tables of all pairs of M partitions, as quadratic forms over G groups.

    With n_g the tables of the groups, Σ_ab (Σ_g c_g n_g,ab)² = Σ_gh c_g c_h Σ_ab n_g,ab n_h,ab: a
    quadratic form of the choice c of groups that makes a half-sample.
    """

    sizes: np.ndarray  # (G,) objects of each group
    own: np.ndarray  # (M, G(G+1)/2) of each partition with itself
    pairs: np.ndarray  # (M(M-1)/2, G(G+1)/2) of i > j, row by row; the smallest integers that do

    @classmethod
    def of_codes(
        cls,
        codes: np.ndarray,
        group: np.ndarray,
        n_groups: int,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> GroupCounts:
        """Count every pair of the rows of ``codes`` (M, n), apart by the group of the objects."""
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
            if n_cells * n_groups > partitions.DENSE * max(n, 1024):
                cells = np.unique(cells, return_inverse=True)[1].reshape(-1)
                n_cells = int(cells.max(initial=-1)) + 1
            keys = group * n_cells + cells
            table = np.bincount(keys, minlength=n_groups * n_cells).astype(np.float64)
            table = table.reshape(n_groups, n_cells)
            return (table @ table.T)[upper]

        def count_row(i: int) -> None:
            own[i] = form(codes[i], int(ks[i]))
            begin = i * (i - 1) // 2
            for j in range(i):
                cells = codes[i] * ks[j] + codes[j]
                pairs[begin + j] = form(cells, int(ks[i] * ks[j]))

        _count_rows(count_row, range(n_partitions - 1, -1, -1), n_jobs, progress)
        return cls(sizes, own, pairs)

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
