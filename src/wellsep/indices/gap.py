"""The gap statistic: does a partition gain more than it would on data without clusters?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_choice,
    check_count,
    check_data,
    in_safe_units,
    to_numpy,
)
from wellsep._checks.values import check_estimator, check_generator, check_items
from wellsep._text.sentences import Views, shown
from wellsep.compute.data.opening import open_space
from wellsep.compute.plan import gather
from wellsep.compute.requests import Task, want
from wellsep.partitions import Partitions


@dataclass(frozen=True, eq=False)
class GapStatistic(Views, row_names="k"):
    """Gap(k) for a range of k.

    Attributes
    ----------
    k_range : ndarray of shape (K,), int
    gap : ndarray of shape (K,)
        Mean of the references' ln W(k), minus that of the data.
    error : ndarray of shape (K,)
        s(k), the references' standard deviation times √(1 + 1/B).
    log_within : ndarray of shape (K,)
        ln W(k) of the data; W is the sum of squares within clusters.
    log_within_reference : ndarray of shape (B, K)
        ln W(k) of each reference.
    best : int
        The smallest k whose gap is not beaten by the next one by more than that one's error
        (the one-standard-error rule), or the k of the largest gap if there is none.
    decided : bool
        Whether the rule was met. If not, a larger k may be worth a try.
    reference : str
    """

    k_range: np.ndarray
    gap: np.ndarray
    error: np.ndarray
    log_within: np.ndarray
    log_within_reference: np.ndarray
    best: int
    decided: bool
    reference: str

    def columns(self) -> dict[str, list[Any]]:
        """Return gap, error and ln W(k) for each k."""
        names = ("gap", "error", "log_within")
        return {"k": self.k_range.tolist()} | {name: getattr(self, name).tolist() for name in names}

    def sentences(self) -> Iterator[str]:
        """Say which k is best, and whether the rule decided."""
        low, high = self.k_range[[0, -1]]
        how = "is best" if self.decided else "has the largest gap, but the rule is undecided"
        yield f"Of k = {low} to {high}, k = {self.best} {how}."


def gap_statistic(
    X: Any,
    k_range: Iterable[int] = range(1, 11),
    *,
    n_references: int = 20,
    reference: str = "pca",
    estimator: Any = None,
    random_state: Any = None,
) -> GapStatistic:
    r"""Compute the gap statistic: how far ln W(k) falls below that of data without clusters.

    .. math:: \mathrm{Gap}(k)=\frac1B\sum_b\ln W_b(k)-\ln W(k),\qquad
              W(k)=\sum_j\sum_{x\in C_j}\lVert x-v_j\rVert^2

    The choice is the smallest k with Gap(k) ≥ Gap(k') − s(k'). Here k' is the next in the range,
    and s(k') the standard error of its references. k = 1 may win: there are no clusters then.
    Undefined where some k leaves no variance within clusters.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Clustered on the host.
    k_range : iterable of int, default 1 … 10
        Numbers of clusters to try; 1 may be one of them.
    n_references : int, default 20
        B, the data sets without clusters.
    reference : {"pca", "uniform"}
        Uniform over a box along the principal axes, which fits elongated data, or the columns.
    estimator : clusterer with a parameter ``n_clusters``, optional
        Cloned for every k and data set; scikit-learn's ``KMeans(n_init=5)`` by default.
    random_state : int, Generator or None
        Seed or generator of the random numbers.

    Returns
    -------
    GapStatistic

    Notes
    -----
    On nested or very unequal clusters the rule stops early, as the references are one blob.
    (B + 1) × len(k_range) clusterings are made.

    References
    ----------
    Tibshirani, Walther & Hastie (2001), Journal of the Royal Statistical Society B 63, 411–423.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(150, centers=3, cluster_std=0.5, random_state=2)
    >>> print(ws.gap_statistic(X, range(1, 6), n_references=5, random_state=0))
    Of k = 1 to 5, k = 3 is best.
    """
    data = to_numpy(check_data(X, minimum=2)).astype(np.float64)
    ks = np.unique([check_count("k_range", k) for k in check_items("k_range", k_range, "integers")])
    if len(ks) < 2:
        raise ValueError(f"k_range must hold at least 2 numbers to compare, got {ks.tolist()}.")
    if ks[-1] >= len(data):
        raise ValueError(
            f"k_range must stay below the number of objects ({len(data)}), got {ks[-1]}."
        )
    n_references = check_count("n_references", n_references)
    check_choice("reference", reference, ("pca", "uniform"))
    model = KMeans(n_init=5) if estimator is None else estimator
    if "n_clusters" not in check_estimator(model).get_params():
        raise TypeError(
            f"estimator must be a clusterer with a parameter n_clusters, got {shown(estimator)}."
        )
    rng = check_generator(random_state)

    data, unit = in_safe_units(data)
    log_within = _log_within(data, ks, model, rng)
    draw = ReferenceBox(data, reference)
    references = np.array([_log_within(draw(rng), ks, model, rng) for _ in range(n_references)])
    gap, error = gaps(log_within, references)
    best, decided = one_error_rule(ks, gap, error)
    log_within, references = (logs + 2 * np.log(unit) for logs in (log_within, references))
    return GapStatistic(ks, gap, error, log_within, references, best, decided, reference)


def gaps(log_within: np.ndarray, references: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gap(k) and s(k) from ln W(k) of the data (K,) and of the references (B, K)."""
    gap: np.ndarray = references.mean(axis=0) - log_within
    return gap, references.std(axis=0) * np.sqrt(1 + 1 / len(references))


def one_error_rule(ks: np.ndarray, gap: np.ndarray, error: np.ndarray) -> tuple[int, bool]:
    """The smallest k that the next does not beat by its error; else that of the largest gap."""
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return int(ks[enough[0]] if len(enough) else ks[gap.argmax()]), bool(len(enough))


def gain_over_one(gap: np.ndarray, error: np.ndarray) -> np.ndarray:
    """(Gap(k) − Gap(1)) / s(k) for every k but the first, which must be 1."""
    gain = gap[1:] - gap[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(gain, error[1:], out=np.zeros_like(gain), where=gain != 0.0)


def within_sums(X: Any, labels: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """W of one or several partitions: the sum of squares within their clusters."""
    wanted = want("within")
    task = Task(open_space(X), Partitions.from_labels(labels), weights)
    return np.array([float(squares.sum()) for squares in gather(task, [wanted])[wanted]])


def _log_within(X: np.ndarray, ks: np.ndarray, model: Any, rng: np.random.Generator) -> np.ndarray:
    within = np.empty(len(ks))
    for i, k in enumerate(ks.tolist()):
        labels = np.zeros(len(X), dtype=int)
        if k > 1:
            fresh = clone(model).set_params(n_clusters=k)
            if "random_state" in fresh.get_params():
                fresh.set_params(random_state=int(rng.integers(2**31)))
            labels = fresh.fit_predict(X)
        within[i] = within_sums(X, labels)[0]
        if not within[i] > 0:
            reason = f"{k} clusters leave no variance within, so that ln W is infinite."
            raise UndefinedIndex(reason)
    return np.log(within)


class ReferenceBox:
    """Draws data sets of the same size, uniform over a box as wide as the data."""

    def __init__(self, X: np.ndarray, reference: str) -> None:
        self.mean, self.axes = X.mean(axis=0), np.eye(X.shape[1])
        if reference == "pca":
            self.axes = np.linalg.svd(X - self.mean, full_matrices=False)[2]
        scores = (X - self.mean) @ self.axes.T
        self.low, self.high, self.shape = scores.min(axis=0), scores.max(axis=0), scores.shape

    def __call__(self, rng: np.random.Generator) -> np.ndarray:
        """One data set (n, d)."""
        return rng.uniform(self.low, self.high, self.shape) @ self.axes + self.mean
