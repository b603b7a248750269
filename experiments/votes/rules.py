"""The rules that were compared, in plain NumPy: agreements, K and an index in, scores out.

A case is one experiment over its distinct partitions: A (D, D) adjusted Rand indices, K (D,)
numbers of clusters, mean (D,) the index averaged over embeddings, ace (D,) the scores of ACE.
Larger scores are better. `declared` is the rule of DECLARATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

VOTES = 30  # the band of a run grows until it holds so many votes
COPIES = 4  # votes that near copies have together
NEAR = 0.9  # ARI of near copies
LOWEST = 0.25  # share of the votes, the least agreeing ones, that is left out
SAY = 2.0  # of the index: agreement counts times 1 + SAY * index


class Case(NamedTuple):
    """One experiment over its distinct partitions."""

    A: np.ndarray
    K: np.ndarray
    mean: np.ndarray
    ace: np.ndarray


def ranked(values: np.ndarray) -> np.ndarray:
    """Ranks as shares, 1 for the best; ties share."""
    return rankdata(np.round(values, 9)) / len(values)


def distances_in_k(K: np.ndarray) -> np.ndarray:
    logs = np.log(np.maximum(K, 1))
    apart = np.abs(logs[:, None] - logs)
    np.fill_diagonal(apart, np.inf)
    return apart


def agreement_at_like_k(
    A: np.ndarray,
    K: np.ndarray,
    votes: float = VOTES,
    lowest: float = LOWEST,
    copies: float = COPIES,
) -> np.ndarray:
    """Mean agreement with the runs nearest in K, without the least agreeing share of the votes."""
    weight = np.minimum(1.0, copies / (A >= NEAR).sum(axis=1))
    apart = distances_in_k(K)
    order = np.argsort(apart, axis=1, kind="stable")
    held = np.cumsum(weight[order], axis=1)
    last = np.minimum((held < votes - 1e-9).sum(axis=1), len(A) - 2)
    edge = np.take_along_axis(apart, np.take_along_axis(order, last[:, None], 1), 1)
    shares = np.where(apart <= edge + 1e-12, weight, 0.0)
    order = np.argsort(A, axis=1, kind="stable")
    sorted_shares = np.take_along_axis(shares, order, 1)
    total = sorted_shares.sum(axis=1, keepdims=True)
    above = np.cumsum(sorted_shares, axis=1) - lowest * total
    counted = np.clip(above, 0.0, sorted_shares)
    return (counted * np.take_along_axis(A, order, 1)).sum(axis=1) / counted.sum(axis=1)


def lifted(index: np.ndarray) -> np.ndarray:
    """The index; below its median it counts as the median."""
    return np.maximum(index, np.median(index))


def declared(case: Case) -> np.ndarray:
    """Agreement with runs of like K, times one plus twice the index."""
    return agreement_at_like_k(case.A, case.K) * (1 + SAY * lifted(case.mean))


def vote(A: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted mean agreement with the others; near copies share a vote."""
    weight = weight / (A >= NEAR).sum(axis=1)
    shares = np.tile(weight, (len(weight), 1))
    np.fill_diagonal(shares, 0.0)
    return (shares * A).sum(axis=1) / shares.sum(axis=1)


def varies(K: np.ndarray) -> bool:
    """The switch of the rule before: whether K varies."""
    K = K[K >= 2]
    if len(np.unique(K)) < 3:
        return False
    low, high = np.quantile(K, [0.1, 0.9])
    return bool(high >= 1.5 * low)


def before(case: Case) -> np.ndarray:
    """The default before: a vote weighed by squared ranks under ACE; ACE where K is fixed."""
    return vote(case.A, ranked(case.ace) ** 2) if varies(case.K) else case.ace


def upper_half(A: np.ndarray) -> np.ndarray:
    others = A[~np.eye(len(A), dtype=bool)].reshape(len(A), -1)
    return np.sort(others, axis=1)[:, others.shape[1] // 2 :].mean(axis=1)


def growing_band(A: np.ndarray, K: np.ndarray, runs: int) -> np.ndarray:
    """Mean agreement, weighted by exp(-(ln K - ln K')² / 2h²); h reaches the `runs` nearest."""
    apart = distances_in_k(np.maximum(K, 2))
    runs = min(len(A) - 1, runs)
    width = np.maximum(np.sort(apart, axis=1)[:, [runs - 1]], 0.1)
    weight = np.exp(-((apart / width) ** 2) / 2)
    return (weight * A).sum(axis=1) / weight.sum(axis=1)


def with_rank(agreement: np.ndarray, index: np.ndarray, weight: float = 0.5) -> np.ndarray:
    return ranked(agreement) + weight * ranked(index)


def variant(**changes: float) -> Callable[[Case], np.ndarray]:
    """The declared rule with another band, trim or number of votes of copies."""

    def rule(case: Case) -> np.ndarray:
        return agreement_at_like_k(case.A, case.K, **changes) * (1 + SAY * lifted(case.mean))

    return rule


RULES: dict[str, Callable[[Case], np.ndarray]] = {
    "before (rank² of ACE; ACE where K is fixed)": before,
    "ACE": lambda c: c.ace,
    "mean score over embeddings": lambda c: c.mean,
    "plain": lambda c: vote(c.A, np.ones(len(c.A))),
    "rank¹ of ACE": lambda c: vote(c.A, ranked(c.ace)),
    "upper half": lambda c: upper_half(c.A),
    "upper half + ½ rank of ACE": lambda c: with_rank(upper_half(c.A), c.ace),
    "15 nearest in K + ½ rank of ACE": lambda c: with_rank(growing_band(c.A, c.K, 15), c.ace),
    "15 nearest in K + ½ rank of the mean": lambda c: with_rank(growing_band(c.A, c.K, 15), c.mean),
    "half of the runs nearest in K + ½ rank of ACE": lambda c: with_rank(
        growing_band(c.A, c.K, len(c.A) // 2), c.ace
    ),
    "**declared**": declared,
    "the same, ACE for the mean score": lambda c: (
        agreement_at_like_k(c.A, c.K) * (1 + SAY * lifted(c.ace))
    ),
    "the same, half the rank for the mean score": lambda c: (
        agreement_at_like_k(c.A, c.K) * (1 + SAY * lifted(ranked(c.mean) / 2))
    ),
    "the same, index not lifted to its median": lambda c: (
        agreement_at_like_k(c.A, c.K) * (1 + SAY * c.mean)
    ),
    "the same, index added (¾ of it)": lambda c: (
        agreement_at_like_k(c.A, c.K) + 0.75 * lifted(c.mean)
    ),
    "the same, no index": lambda c: agreement_at_like_k(c.A, c.K),
    "the same, 1 + index": lambda c: agreement_at_like_k(c.A, c.K) * (1 + lifted(c.mean)),
    "the same, 1 + 3 index": lambda c: agreement_at_like_k(c.A, c.K) * (1 + 3 * lifted(c.mean)),
    "the same, 20 votes": variant(votes=20),
    "the same, 40 votes": variant(votes=40),
    "the same, all votes (no band)": variant(votes=np.inf),
    "the same, nothing left out": variant(lowest=0.0),
    "the same, copies share one vote": variant(copies=1),
    "the same, copies unbounded": variant(copies=np.inf),
}
