"""The rule of the vote: runs with about as many clusters support a partition, and the index.

Its constants were chosen on open runs and declared before others were looked at; see the guide.
"""

from __future__ import annotations

import numpy as np

from wellsep.evaluate.ranks import average_ranks

NEAR, COPIES = 0.9, 4.0  # near copies agree by at least so much, and have so many votes together
BAND = 30.0  # votes that the band of a partition holds
LOWEST = 0.25  # share of the votes in a band, those that agree least, that is left out
SAY = 2.0  # of the index: agreement counts 1 + SAY * index times
FEWEST = 5  # different clusterings without which no vote is held
_EDGE = 1e-12  # distances in ln K that differ by less are equal


def shared_votes(agreement: np.ndarray) -> np.ndarray:
    """(D,) the share of each partition in the one vote that its near copies have together."""
    return 1 / (agreement >= NEAR).sum(axis=1)


def vote_weights(agreement: np.ndarray) -> np.ndarray:
    """(D,) what each vote weighs: 1, and less where more than four near copies would vote."""
    return np.minimum(1.0, COPIES * shared_votes(agreement))


def vote_shares(n_clusters: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(D, D) what vote j weighs for partition i: nothing outside the band of i, or for itself.

    The band holds the partitions nearest in ln K until they have 30 votes, and all that are as near
    as the last of them.
    """
    logs = np.log(np.maximum(n_clusters, 1))
    apart = np.abs(logs[:, None] - logs)
    np.fill_diagonal(apart, np.inf)
    order = np.argsort(apart, axis=1, kind="stable")
    short = np.cumsum(weights[order], axis=1) < BAND - 1e-9
    last = np.minimum(short.sum(axis=1), len(weights) - 2)[:, None]
    edge = np.take_along_axis(apart, np.take_along_axis(order, last, axis=1), axis=1)
    return np.where(apart <= edge + _EDGE, weights, 0.0)


def mean_agreement(agreement: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(D,) mean agreement by vote, without the quarter of the votes that agrees least."""
    order = np.argsort(agreement, axis=1, kind="stable")
    weight = np.take_along_axis(shares, order, axis=1)
    total = weight.sum(axis=1, keepdims=True)
    # A vote at the edge of the quarter counts in part.
    weight = np.clip(np.cumsum(weight, axis=1) - LOWEST * total, 0.0, weight)
    sums = (weight * np.take_along_axis(agreement, order, axis=1)).sum(axis=1)
    total = weight.sum(axis=1)
    return sums / np.where(total > 0, total, 1.0)


def on_one_scale(index: np.ndarray, *, bounded: bool, tolerance: float) -> np.ndarray:
    """(D,) an index from -1 to 1 as it is; of any other half the rank, as a share of D."""
    if bounded:
        return index
    return average_ranks(index, tolerance=tolerance) / (2 * len(index))


def with_index(agreed: np.ndarray, index: np.ndarray | None) -> np.ndarray:
    """(D,) agreement times 1 + twice the index, which counts as its median where it is below."""
    if index is None:
        return agreed
    return agreed * (1 + SAY * np.maximum(index, np.median(index)))
