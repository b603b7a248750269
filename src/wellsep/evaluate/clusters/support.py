"""Support: how far the better runs find a cluster again, and with it each of its objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from wellsep.compute.engine.threads import effective_jobs, in_threads

CELLS = 1 << 21  # of the tables that are counted in one go
MOST_RUNS = 200  # better runs that one run is compared with; of more, evenly spread ones


class Curve(NamedTuple):
    """What clusters with some support were, on labelled sets; made by ``experiments/support``."""

    sets: int
    clusters: int
    support: np.ndarray
    share: np.ndarray

    def class_share(self, support: np.ndarray) -> np.ndarray:
        """The share of clusters with such support that were a class; NaN without support.

        >>> load_curve(one_embedding=False).class_share(np.array([0.2, 0.95])).round(2).tolist()
        [0.03, 0.88]
        """
        share = np.interp(support, self.support, self.share)
        return np.where(np.isnan(support), np.nan, share)


@cache
def load_curve(*, one_embedding: bool) -> Curve:
    """The curve of runs of several embeddings, or of one: these agree for that reason alone."""
    file = resources.files(__package__).joinpath("support_table.json")
    table = file.read_text(encoding="utf-8")
    curve = json.loads(table)["curves"]["one embedding" if one_embedding else "several embeddings"]
    return Curve(
        curve["sets"], curve["clusters"], np.array(curve["support"]), np.array(curve["share"])
    )


class Voters(NamedTuple):
    """The better half of the runs other than one, and what each of them weighs."""

    runs: np.ndarray  # (B,) positions among the distinct partitions
    weights: np.ndarray  # (B,) that add up to 1


def better_half(rank: np.ndarray, weights: np.ndarray, run: int) -> Voters:
    """The runs other than ``run`` that are ranked in the better half of them.

    Runs that tie with the last of them belong to it too, so that no name decides. ``rank`` and
    ``weights`` are those of the distinct partitions; near copies share a weight, see
    :func:`wellsep.evaluate.vote.answer.vote_weights`.

    >>> better_half(np.array([1, 2, 3, 4, 4]), np.array([1, 1, 0.5, 0.5, 1]), 0).runs.tolist()
    [1, 2]
    """
    others = np.delete(np.arange(len(rank)), run)
    others = others[weights[others] > 0]
    if not len(others):
        return Voters(others, np.empty(0))
    middle = np.sort(rank[others])[(len(others) - 1) // 2]
    better = others[rank[others] <= middle]
    if len(better) > MOST_RUNS:
        better = better[np.argsort(rank[better], kind="stable")]
        better = np.sort(better[np.linspace(0, len(better) - 1, MOST_RUNS).round().astype(int)])
    return Voters(better, weights[better] / weights[better].sum())


def cluster_support(
    codes: np.ndarray, rank: np.ndarray, weights: np.ndarray, *, n_jobs: int | None = None
) -> tuple[np.ndarray, ...]:
    """(K,) for each distinct partition the support of its clusters; NaN without another run.

    The support of a cluster is the mean over the better half of the other distinct partitions of
    its best Jaccard similarity with one of their clusters. Noise is no cluster.

    Parameters
    ----------
    codes : ndarray of shape (D, n)
        Distinct partitions, whole numbers from 0 without gaps; below 0: noise.
    rank : ndarray of shape (D,)
        In the final order, 1 = best.
    weights : ndarray of shape (D,)
        What each partition counts; near copies share one.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> codes = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]])
    >>> [s.round(3).tolist() for s in cluster_support(codes, np.array([1, 2, 3]), np.ones(3))]
    [[1.0, 0.667], [1.0, 0.667, 0.333], [0.667, 0.25, 0.667]]
    """
    support: list[np.ndarray] = [np.empty(0)] * len(codes)

    def support_of(run: int) -> None:
        voters = better_half(rank, weights, run)
        similarity, _ = best_matches(codes[run], codes[voters.runs])
        empty = np.full(len(similarity), np.nan)
        support[run] = similarity @ voters.weights if len(voters.runs) else empty

    jobs = min(effective_jobs(n_jobs), len(codes))
    in_threads(jobs, support_of, iter([[(run,) for run in range(len(codes))]]))
    return tuple(support)


def object_support(
    codes: np.ndarray, rank: np.ndarray, weights: np.ndarray, run: int
) -> np.ndarray:
    """(n,) the share of the better runs in which each object stays with its cluster's match.

    The match of a cluster is the cluster of the other run with the best Jaccard similarity. NaN
    for noise, and without another run. Parameters as in :func:`cluster_support`.

    >>> codes = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]])
    >>> object_support(codes, np.array([1, 2, 2]), np.ones(3), 0).tolist()
    [1.0, 1.0, 0.5, 1.0, 1.0, 0.5]
    """
    voters = better_half(rank, weights, run)
    own = codes[run]
    if not len(voters.runs):
        return np.full(len(own), np.nan)
    _, match = best_matches(own, codes[voters.runs])
    stays = np.zeros(len(own))
    for b, (other, weight) in enumerate(zip(*voters, strict=True)):
        matched = match[own, b]
        stays += weight * ((codes[other] == matched) & (matched >= 0))
    return np.where(own >= 0, stays, np.nan)


def best_matches(
    first: np.ndarray, others: np.ndarray | Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(K, B) for each cluster of one partition its best Jaccard similarity with B others.

    ``first`` (n,) and ``others`` (B, n) are codes without gaps; those below 0 are in no cluster,
    but their objects count in the clusters of the other side. The second array has the code of the
    cluster that matches best, the first of several, and -1 where none has an object in common.

    >>> similarity, match = best_matches(np.array([0, 0, 1, 1, 1]), np.array([[0, 0, 0, 1, -1]]))
    >>> similarity.round(3).tolist(), match.tolist()
    ([[0.667], [0.333]], [[0], [1]])
    """
    first, others = first.astype(np.int64), np.asarray(others)
    n_first, n = int(first.max(initial=-1)) + 1, len(first)
    # The first column of each table is noise.
    widths = others.max(axis=1, initial=-1).astype(np.int64) + 2
    similarity = np.zeros((n_first, len(others)))
    match = np.full((n_first, len(others)), -1, dtype=np.intp)
    cost = np.cumsum(np.maximum(n, (n_first + 1) * widths))
    for some in np.split(np.arange(len(others)), np.flatnonzero(np.diff(cost // CELLS)) + 1):
        starts = np.concatenate([[0], np.cumsum(widths[some])])
        keys = (first + 1) * starts[-1] + 1
        keys = keys + others[some] + starts[:-1, None]
        tables = np.bincount(keys.ravel(), minlength=(n_first + 1) * starts[-1])
        tables = tables.reshape(n_first + 1, starts[-1])
        sizes, common = tables.sum(axis=0), tables[1:].astype(np.float64)
        common[:, starts[:-1]] = 0
        own = np.bincount(first[first >= 0], minlength=n_first)
        shares = common / np.maximum(own[:, None] + sizes - common, 1)  # clusters may be empty
        for b, low, high in zip(some.tolist(), starts[:-1], starts[1:], strict=True):
            best = shares[:, low:high].argmax(axis=1)
            match[:, b] = best - 1
            similarity[:, b] = shares[np.arange(n_first), low + best]
    return similarity, match
