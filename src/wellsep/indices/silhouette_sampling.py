"""The silhouette estimated from a sample against all objects, with a confidence interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_choice,
    check_count,
    check_data,
    check_number,
    check_weights,
    is_dask,
    to_numpy,
)
from wellsep._checks.labels import in_order_of
from wellsep._checks.values import check_generator
from wellsep._text.sentences import Views
from wellsep.compute.data.safe_units import in_safe_units
from wellsep.compute.engine.blocks import Block
from wellsep.compute.metrics.table import need_coordinates
from wellsep.compute.statistics.sampled_sums import (
    Sample,
    class_masses,
    clear_itself,
    locate,
    masses,
    sample_sums,
)
from wellsep.compute.statistics.silhouette_widths import widths_from_sums
from wellsep.indices.scoring import drop_weightless, open_task
from wellsep.partitions import VALUE_POLICIES, Partitions


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
    another number, and biased.) It takes O(m n d) and one pass over the rows, which may be a dask
    collection.

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
        Objects labelled -1, -2 or -3 are left out ("exclude"), one cluster ("cluster"), a cluster
        each ("singletons"), or refused ("error").
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
    check_choice("noise", noise, VALUE_POLICIES)
    entry = need_coordinates(metric, "for a silhouette from a sample")
    open_rows = _on_dask if is_dask(X) else _in_memory
    rows = open_rows(X, labels, sample_weight, noise)
    mass, count = rows.class_masses()
    if len(mass) < 2:
        raise UndefinedIndex(f"silhouette needs at least 2 clusters, got {len(mass)}.")
    n = int(count.sum())
    if n == len(mass):
        raise UndefinedIndex(f"every one of the {n} objects is a cluster of its own.")
    rng = check_generator(random_state)
    targets, exact = _draw(n, mass.sum(), n_sampled, rows.weighted, rng)
    sample = rows.take(targets)
    sums = clear_itself(rows.sums(sample.X, entry), sample, entry)
    block = Block.of_codes(sample.codes[None], np.array([len(mass)]), sample.weights)
    found = widths_from_sums(block, sums, mass, count, singleton)[0]
    return _summary(found, n, level, exact, rows.weighted)


def _draw(
    n: int, total: float, m: int, weighted: bool, rng: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """Places in the running sum of weights, rising; whether they are all there is."""
    if weighted:
        return np.sort(rng.uniform(0, total, m)), False
    if m >= n:
        return np.arange(n) + 0.5, True
    return np.sort(rng.choice(n, m, replace=False)) + 0.5, False


def _summary(
    widths: np.ndarray, n: int, level: float, exact: bool, weighted: bool
) -> SilhouetteEstimate:
    m, value = len(widths), float(widths.mean())
    error = 0.0
    if not exact:
        left = 1.0 if weighted else 1 - m / n
        error = float(widths.std(ddof=1) * np.sqrt(left / m))
    reach = error * float(stats.t.ppf(0.5 + level / 2, m - 1))
    low, high = max(-1.0, value - reach), min(1.0, value + reach)
    return SilhouetteEstimate(value, low, high, level, error, m, n)


class _Memory:
    """Rows in memory."""

    def __init__(self, X: np.ndarray, codes: np.ndarray, weights: Any, k: int):
        self.X, self.codes, self.weights, self.k = X, codes, weights, k
        self.weighted = weights is not None

    def class_masses(self) -> np.ndarray:
        found: np.ndarray = class_masses(self.codes, self.weights, self.k)  # (2, K)
        return found

    def take(self, targets: np.ndarray) -> Sample:
        mass = masses(self.codes, self.weights)
        at = locate(mass, targets)
        return Sample(self.X[at], self.codes[at], mass[at])

    def sums(self, sample: np.ndarray, metric: Any) -> np.ndarray:
        X, unit = in_safe_units(self.X) if metric.finish is not None else (self.X, 1.0)
        origin, sample = X.mean(axis=0, dtype=np.float64), sample / unit
        return sample_sums(X, self.codes, self.weights, sample, self.k, metric, origin)


def _in_memory(X: Any, labels: Any, sample_weight: Any, noise: str) -> _Memory:
    data = to_numpy(check_data(X))
    weights = check_weights(sample_weight, len(data))
    labels = in_order_of(X, labels)
    partitions = Partitions.from_labels(labels, n_objects=len(data), noise=noise)
    _refuse_many(len(partitions))
    kept, weights = drop_weightless(partitions, weights)
    return _Memory(data, kept.codes[0], weights, len(kept.classes[0]))


def _on_dask(X: Any, labels: Any, sample_weight: Any, noise: str) -> Any:
    from wellsep.compute.engine.dask.sampled import ChunkedRows

    task: Any = open_task(X, labels, [], sample_weight, noise)
    _refuse_many(len(task.partitions))
    return ChunkedRows(task)


def _refuse_many(got: int) -> None:
    if got != 1:
        raise ValueError(f"labels must be one partition here, got {got}.")
