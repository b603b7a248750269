"""The arithmetic of votes: what each weighs, and the mean agreement that they add up to."""

from __future__ import annotations

import numpy as np

from wellsep.evaluate.ranks import average_ranks

NEAR = 0.9  # partitions that agree by at least this share one vote
DIFFERENT_K, K_RATIO = 3, 1.5  # from when on the number of clusters varies


def vote_weights(
    liked: np.ndarray | None, agreement: np.ndarray, tie_tolerance: float
) -> np.ndarray:
    """(D,) what each vote weighs: its squared rank by the first judge's scores, or 1.

    Near copies share one vote.
    """
    n = len(agreement)
    weights = np.ones(n)
    if liked is not None:
        weights = (average_ranks(liked, tolerance=tie_tolerance) / n) ** 2
    shared: np.ndarray = weights / (agreement >= NEAR).sum(axis=1)
    return shared


def mean_agreement(agreement: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(D,) weighted mean agreement with the others; 0 where no other has a vote.

    Examples
    --------
    >>> import numpy as np
    >>> mean_agreement(np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 0.0], [0.6, 0.0, 1.0]]), np.ones(3))
    array([0.4, 0.1, 0.3])
    """
    shares = np.tile(weights, (len(weights), 1))
    np.fill_diagonal(shares, 0.0)  # nobody votes for itself
    total = shares.sum(axis=1)
    found: np.ndarray = (shares * agreement).sum(axis=1) / np.where(total > 0, total, 1.0)
    return found


def k_varies(n_clusters: np.ndarray) -> bool:
    """Whether the numbers of clusters of the distinct partitions vary enough for a vote to decide.

    Of those with two clusters or more there are at least three different K, and their 90 % quantile
    is at least 1.5 times their 10 % quantile.

    Examples
    --------
    >>> import numpy as np
    >>> k_varies(np.array([5, 10, 20])), k_varies(np.array([9, 10, 10, 10, 11]))
    (True, False)
    """
    ks = n_clusters[n_clusters >= 2]
    if len(np.unique(ks)) < DIFFERENT_K:
        return False
    low, high = np.quantile(ks, [0.1, 0.9])
    return bool(high >= K_RATIO * low)
