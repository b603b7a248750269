"""Support: how far the better runs find a cluster again, and with it each of its objects."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from wellsep._threads import effective_jobs, in_threads
from wellsep.partitions import best_matches

MOST_RUNS = 200  # better runs that one run is compared with; of more, evenly spread ones


class Curve(NamedTuple):
    """What clusters with some support were, on labelled sets; made by ``experiments/support``."""

    sets: int
    support: list[float]
    share: list[float]

    def class_share(self, support: np.ndarray) -> np.ndarray:
        """The share of clusters with such support that were a class; NaN without support."""
        share = np.interp(support, self.support, self.share)
        return np.where(np.isnan(support), np.nan, share)


@cache
def load_curve(*, one_embedding: bool) -> Curve:
    """The curve of runs of several embeddings, or of one: these agree for that reason alone."""
    file = resources.files(__package__).joinpath("support_table.json")
    table = file.read_text(encoding="utf-8")
    curve = json.loads(table)["curves"]["one embedding" if one_embedding else "several embeddings"]
    return Curve(curve["sets"], curve["support"], curve["share"])


class Voters(NamedTuple):
    """The better half of the runs other than one, and what each of them weighs."""

    runs: np.ndarray  # (B,) positions among the distinct partitions
    weights: np.ndarray  # (B,) that add up to 1


def better_half(rank: np.ndarray, weights: np.ndarray, run: int) -> Voters:
    """The runs other than ``run`` that are ranked in the better half of them.

    Runs that tie with the last of them belong to it too, so that no name decides.
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

    The support of a cluster is the mean over the better half of the other partitions of its best
    Jaccard similarity with one of their clusters. ``codes`` (D, n) have noise below 0; ``weights``
    (D,) are what each partition counts: near copies share one.
    """
    support: list[np.ndarray] = [np.empty(0)] * len(codes)

    def support_of(run: int) -> None:
        voters = better_half(rank, weights, run)
        similarity, _ = best_matches(codes[run], codes[voters.runs])
        empty = np.full(len(similarity), np.nan)
        support[run] = similarity @ voters.weights if len(voters.runs) else empty

    in_threads(effective_jobs(n_jobs), support_of, range(len(codes)))
    return tuple(support)


def object_support(
    codes: np.ndarray, rank: np.ndarray, weights: np.ndarray, run: int
) -> np.ndarray:
    """(n,) the share of the better runs in which each object stays with its cluster's match.

    The match is the cluster with the best Jaccard similarity. NaN for noise, or without others.
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
