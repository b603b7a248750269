"""The silhouette estimated from a sample against all objects, with a confidence interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_count,
    check_data,
    check_number,
    is_dask,
    to_numpy,
)
from wellsep._checks.labels import in_order_of
from wellsep._checks.values import check_generator
from wellsep._text.sentences import Views
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Pass
from wellsep.compute.statistics.cluster_moments import masses
from wellsep.compute.statistics.distance_sums import sampled_widths
from wellsep.indices.scoring import one_task_of_values


@dataclass(frozen=True)
class SilhouetteEstimate(Views):
    """A silhouette that was estimated from a sample of the objects, not computed.

    Attributes
    ----------
    value : float
        Mean width of the sampled objects, each taken against all objects: unbiased.
    low, high : float
        Confidence interval.
    level : float
        How often such intervals hold the true value.
    standard_error : float
    n_sampled, n_objects : int
        Sampled, and counted in all. Where both are equal the value is exact.
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float
    n_sampled: int
    n_objects: int

    @property
    def exact(self) -> bool:
        """Whether every object was taken."""
        return self.standard_error == 0 and self.n_sampled == self.n_objects

    def __float__(self) -> float:
        return self.value

    def sentences(self) -> Iterator[str]:
        """Say the value, and how far it may be off."""
        how = (
            f"exact: all {self.n_objects:,} objects"
            if self.exact
            else f"{self.level:.0%} interval {self.low:.4f} to {self.high:.4f}, estimated from "
            f"{self.n_sampled:,} of {self.n_objects:,} objects"
        )
        yield f"The silhouette is {self.value:.4f} ({how})."


def silhouette_estimate(
    X: Any,
    labels: Any,
    *,
    n_sampled: int = 2000,
    level: float = 0.95,
    metric: Any = "euclidean",
    singleton: float = 0,
    sample_weight: Any = None,
    noise: str = "exclude",
    random_state: Any = None,
) -> SilhouetteEstimate:
    r"""Estimate the silhouette from the widths of a sample, with a confidence interval.

    Each sampled object's width is exact: its distances to *all* objects are computed. Their mean
    is an unbiased estimate of :func:`silhouette_score`, with standard error
    :math:`\frac{s}{\sqrt m}\sqrt{1-m/n}` for m of n objects. (The silhouette *of* a subsample is
    another number, and biased.) It takes O(m n d) and one pass over the rows.

    Parameters
    ----------
    X : array-like or dask collection of shape (n, d)
        The objects.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    n_sampled : int, default 2000
        m; all objects if there are no more.
    level : float, default 0.95
        Of the confidence interval (Student's t).
    metric : str or callable
        "euclidean", "cosine", a name of scikit-learn's ``pairwise_distances``, or a function of two
        rows; none that needs all rows, such as "dc", and not "precomputed".
    singleton : float, default 0
        Width of an object that is alone in its cluster.
    sample_weight : array-like of shape (n,), optional
        Objects are then drawn with replacement, in proportion to their weight.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    random_state : int, Generator or None
        Seed or generator of the random numbers.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 6000)
    >>> X = rng.normal(size=(6000, 2)) + 4 * np.eye(3, 2)[labels]
    >>> guess = ws.silhouette_estimate(X, labels, n_sampled=500, random_state=0)
    >>> guess.low < ws.silhouette_score(X, labels) < guess.high
    True
    """
    n_sampled = check_count("n_sampled", n_sampled, 2)
    level = check_number("level", level, 0, 0.9999, open_left=True)
    check_number("singleton", singleton, -1, 1)
    entry = find(metric)
    entry.need_rows("for a silhouette from a sample")
    if not is_dask(X):
        X, labels = to_numpy(check_data(X)), in_order_of(X, labels)
    params = {"metric": metric, "singleton": singleton}
    task, _, _ = one_task_of_values("silhouette", X, labels, params, sample_weight, noise)
    size = task.fold([Pass(masses)])[0]
    n, k, weighted = int(size.counts.sum()), len(size.mass), task.weights is not None
    if k < 2:
        raise UndefinedIndex(f"silhouette needs at least 2 clusters, got {k}.")
    if n == k:
        raise UndefinedIndex(f"every one of the {n} objects is a cluster of its own.")
    rng = check_generator(random_state)
    if weighted:  # in the running sum of the weights; each object has 1 where there are none
        places: np.ndarray = rng.uniform(0, size.mass.sum(), n_sampled)
    else:
        places = 0.5 + (rng.choice(n, n_sampled, replace=False) if n_sampled < n else np.arange(n))
    widths = sampled_widths(task, np.sort(places), size, entry, singleton)
    m, value, error = len(widths), float(widths.mean()), 0.0
    if weighted or m < n:
        error = float(widths.std(ddof=1) * np.sqrt((1.0 if weighted else 1 - m / n) / m))
    reach = error * float(stats.t.ppf(0.5 + level / 2, m - 1))
    low, high = max(-1.0, value - reach), min(1.0, value + reach)
    return SilhouetteEstimate(value, low, high, level, error, m, n)
