"""Centres against each other: distances, the worst partner of each, the nearest rival of each.

Up to ``MANY`` centres a table of all pairs is made; beyond, only blocks of it are.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from wellsep._threads import ROWS, cut_rows, effective_jobs, in_rounds, in_threads, pair_rounds
from wellsep.compute.data.rows import Space
from wellsep.compute.metrics.squares import Rows, numpy_squares, pair_squares, rows_of

MANY = 1024  # centres up to which (K, K) tables are made: 8 MB each
COINCIDE = 1e-12  # share of the largest length below which two centres are in one place
BLOCK = 1 << 19  # entries of a block of a larger table
COLUMNS = 500  # centres of one block of distances to planes
HELD = 64  # blocks of members that are kept while all centres are gone through
FEW_COLUMNS = 10  # up to which squared distances are added up column by column


def centre_distances(centers: np.ndarray, some: np.ndarray | None = None) -> np.ndarray:
    """(K, K), or only ``some`` rows, from differences; centres in one place are at distance 0."""
    if some is not None:
        apart = np.sqrt(_square_gaps(centers, some))
    else:
        apart = np.stack([np.sqrt(((centers - c) ** 2).sum(axis=1)) for c in centers])
    apart[apart <= same_place(centers)] = 0
    return apart


def _square_gaps(centers: np.ndarray, some: np.ndarray, others: slice = slice(None)) -> np.ndarray:
    """(s, o), column by column where these are few."""
    if centers.shape[1] > FEW_COLUMNS:
        origin = centers[0]
        return numpy_squares(rows_of(centers[some] - origin), rows_of(centers[others] - origin))
    total = np.zeros((len(some), len(centers[others])))
    for column in centers.T:
        gap = column[some][:, None] - column[others]
        gap *= gap
        total += gap
    return total


def same_place(centers: np.ndarray) -> float:
    """Distance up to which centres count as coinciding."""
    return float(COINCIDE * np.sqrt((centers**2).sum(axis=1).max(initial=0)))


def own_distances(centers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """(b, K) distances of the centres named by ``codes`` to all."""
    if len(centers) <= MANY:
        return centre_distances(centers)[codes]
    named, at = np.unique(codes, return_inverse=True)
    return centre_distances(centers, named)[at]


def worst_partners(sizes: np.ndarray, centers: np.ndarray) -> np.ndarray | None:
    """(K,) max over l of (S_k + S_l)/‖μ_k − μ_l‖; None if all centres coincide.

    Pairs in one place are left out; 0 where no other pair is left.
    """
    if len(centers) <= MANY:
        apart = centre_distances(centers)
        if not apart.any():
            return None
        ratio = np.divide(sizes[:, None] + sizes, apart, out=np.zeros_like(apart), where=apart > 0)
        return ratio.max(axis=1)
    least = same_place(centers)
    if (np.ptp(centers, axis=0) <= least).all():
        return None
    # Products find the partner, differences give its distance. Every pair is visited once.
    rows = rows_of(centers - centers.mean(axis=0))
    blocks = cut_rows(len(centers), ROWS)
    best = np.zeros(len(centers))  # squared ratio
    partner = np.full(len(centers), -1)

    def keep(block: slice, ratio: np.ndarray, axis: int, other: slice) -> None:
        lead = ratio.max(axis=axis)
        better = np.flatnonzero(lead > best[block])
        if len(better):
            worst = ratio.take(better, axis=1 - axis).argmax(axis=axis)
            best[block][better], partner[block][better] = lead[better], worst + other.start

    def visit(i: int, j: int) -> None:
        a, b = blocks[i], blocks[j]
        ratio = numpy_squares(rows.take(a), rows.take(b))
        if ratio.min() <= least**2:
            ratio[ratio <= least**2] = np.inf
        np.divide((sizes[a][:, None] + sizes[b]) ** 2, ratio, out=ratio)
        keep(a, ratio, 1, b)
        if i != j:
            keep(b, ratio, 0, a)

    in_rounds(effective_jobs(None), visit, pair_rounds(len(blocks)))
    ratios, paired = np.zeros(len(centers)), np.flatnonzero(partner >= 0)
    other = partner[paired]
    gap = centers[other] - centers[paired]
    apart = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    ratios[paired] = np.where(apart > least, (sizes[paired] + sizes[other]) / apart, 0.0)
    return ratios


def lowest_rival(separation: np.ndarray) -> np.ndarray:
    """(K,) the least entry of each row of a (K, K) table but its own; NaN where there is none."""
    rivals = separation.copy()
    np.fill_diagonal(rivals, np.nan)
    return np.fmin.reduce(rivals, axis=1)


def rival_sums(
    space: Space, codes: np.ndarray, weights: np.ndarray | None, centers: np.ndarray, zero: bool
) -> np.ndarray:
    """(K,) squared distances of the members of j to the plane towards l, summed, least over l.

    With ``zero`` a member beyond the plane counts 0. NaN: no rival. What a thread holds at a time
    are the members of some clusters and one block of distances, never a (K, K) table.
    """
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    codes = codes[order]
    k, least = len(centers), same_place(centers)
    sums = np.full(k, np.nan)
    edges = np.searchsorted(codes, np.arange(k + 1))
    near, runs = rows_of(centers), _runs(edges)

    def members_of(part: slice) -> tuple[Rows, np.ndarray, sp.csr_array]:
        """Some objects, their squares to their own centres, what they weigh in their clusters."""
        objects, cluster = order[part], codes[part]
        left, n = rows_of(space.rows_about_mean(objects)), len(objects)
        few = cut_rows(n, max(64, BLOCK // centers.shape[1]))
        squares = np.concatenate([pair_squares(left, some, near, cluster[some]) for some in few])
        weight = np.ones(n) if weights is None else weights[objects]
        entries = (weight, (cluster - cluster[0], np.arange(n)))
        members = sp.csr_array(entries, shape=(int(cluster[-1] - cluster[0]) + 1, n))
        return left, squares[:, None], members

    def visit(run: int) -> None:
        clusters = np.arange(runs[run].start, runs[run].stop)
        start, stop = int(edges[clusters[0]]), int(edges[clusters[-1] + 1])
        parts = [slice(start + p.start, start + p.stop) for p in cut_rows(stop - start, ROWS)]
        held = [members_of(part) for part in parts[:HELD]]
        lowest = np.full(len(clusters), np.nan)
        for columns in cut_rows(k, COLUMNS):
            total = np.zeros((len(clusters), columns.stop - columns.start))
            for number, part in enumerate(parts):
                left, own_squares, members = held[number] if number < HELD else members_of(part)
                signed = numpy_squares(left, near.take(columns))
                signed -= own_squares
                if zero:
                    np.maximum(signed, 0, out=signed)
                signed *= signed
                first = int(codes[part.start] - clusters[0])
                total[first : first + members.shape[0]] += members @ signed
            apart = _square_gaps(centers, clusters, columns)
            apart[apart <= least**2] = np.nan
            total /= 4 * apart
            np.fmin(lowest, np.fmin.reduce(total, axis=1), out=lowest)
        sums[clusters] = lowest

    in_threads(space.host_jobs, visit, range(len(runs)))
    return sums


def _runs(edges: np.ndarray) -> list[slice]:
    """Consecutive clusters that have about ``ROWS`` members together, at most ``ROWS`` of them."""
    runs, first = [], 0
    for k in range(1, len(edges)):
        full = edges[min(k + 1, len(edges) - 1)] - edges[first] > ROWS or k - first >= ROWS
        if full or k == len(edges) - 1:
            runs.append(slice(first, k))
            first = k
    return runs
