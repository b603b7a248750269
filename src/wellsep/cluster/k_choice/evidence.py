"""What is computed for a number of clusters besides validity indices: gap, strength, BIC, inertia.

All but the inertia are computed on a sample of at most 2,000 objects, as the clusterer sees them:
after the steps of a pipeline that come before it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.cluster import KMeans as ReferenceKMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from wellsep._checks.arrays import UndefinedIndex, in_safe_units, to_numpy
from wellsep.cluster.fitting import (
    Fitted,
    all_equal,
    cut_rows,
    fit_each,
    is_tree,
    last_step,
    metric_of,
    prefix_of,
    seen_inside,
)
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN, draw_halves, split_strengths
from wellsep.cluster.k_choice.result import Curve
from wellsep.cluster.kmeans import KMeans, kmeans_labels
from wellsep.indices.gap import ReferenceBox, gaps, within_sums

OBJECTS = 2000  # of the sample at most
REFERENCES = 20  # of the gap statistic
SPLITS = 5  # in halves, for the prediction strength
AT_ONCE = 4  # groups of K that are split in halves at the same time
AXES = 50  # of a sparse sample with more columns than that
FORMS = ("full", "tied", "diag", "spherical")  # of covariances; the BIC chooses among them
FULL = 20  # columns up to which the first two are tried: they have a parameter for each pair
RIDGE = 1e-6  # of the mean variance, added to the variances of the mixture
NO_SPREAD = 1e-12  # of W(1): what is not above it is rounding
# Without warnings of fits that end early: those of the partitions themselves are shown.
_quiet = partial(warnings.catch_warnings, action="ignore", category=ConvergenceWarning)
InWorkers = Callable[..., list[Any]]  # function, tasks and what they are → results


@dataclass(frozen=True, eq=False)
class Sample:
    """Objects as the clusterer sees them, and the clusterer."""

    X: Any  # (n, d), or (n, n) where the clusterer takes distances or similarities
    model: Any
    rough: Any  # the clusterer for the references of the gap statistic; it may have fewer starts
    parameter: str
    weights: np.ndarray | None
    metric: str  # of the clusterer
    pairwise: bool

    @cached_property
    def table(self) -> np.ndarray | str:
        """The objects as a dense table in safe units, or why there is none.

        Of a sparse X with more than 50 columns it holds the first 50 principal axes: they come from
        products with X, which stays sparse.
        """
        if self.pairwise:
            return "X holds distances, not coordinates"
        if sp.issparse(self.X):
            return _principal_axes(in_safe_units(self.X.astype(np.float64))[0])
        table = np.asarray(to_numpy(self.X), dtype=np.float64)
        return np.asarray(in_safe_units(table)[0])

    @cached_property
    def untestable(self) -> str:
        """Why the gap statistic cannot be asked of this clusterer and these data; or nothing."""
        if isinstance(self.table, str):
            return self.table
        if all_equal(self.table):
            return "all objects of the sample are equal"
        if self.weights is not None:
            return "objects have weights"
        if self.metric != "euclidean":
            return f"the clusterer uses the metric {self.metric!r}, not Euclidean distances"
        return ""

    @cached_property
    def skewness(self) -> float:
        """The largest skewness of a column of the table, without its sign."""
        if isinstance(self.table, str):
            return 0.0
        deviations = self.table - self.table.mean(axis=0)
        spread = np.sqrt((deviations**2).mean(axis=0))
        scaled = deviations[:, spread > 0] / spread[spread > 0]
        return float(np.abs((scaled**3).mean(axis=0)).max(initial=0.0))


def _principal_axes(X: Any) -> np.ndarray:
    """(n, 50) coordinates of sparse rows on their first principal axes; few columns as they are.

    Beyond the first axes texts have noise only, in which the gap statistic loses its power and the
    BIC of a mixture always picks the most components that were tried.
    """
    most = min(AXES, X.shape[0] - 1)
    if X.shape[1] <= most:
        return np.asarray(X.toarray())
    if all_equal(X):  # no axis: the search for one would end with an error
        return np.zeros((X.shape[0], 1))
    axes = PCA(most, svd_solver="arpack", random_state=0).fit_transform(sp.csr_matrix(X))
    return np.asarray(axes)


def draw_sample(
    X: Any,
    model: Any,
    parameter: str,
    weights: Any,
    pairwise: bool,
    rng: np.random.RandomState,
    *,
    rough: Any = None,
) -> Sample:
    """At most 2,000 objects, passed through the steps before the clusterer."""
    inside, clusterer, n = seen_inside(model, X), last_step(model), X.shape[0]
    rows = None if n <= OBJECTS else np.sort(rng.choice(n, OBJECTS, replace=False))
    return Sample(
        X=cut_rows(inside, rows, pairwise),
        model=clusterer,
        rough=clusterer if rough is None else rough,
        parameter=parameter.removeprefix(prefix_of(model)),
        weights=cut_rows(weights, rows),
        metric=metric_of(clusterer),
        pairwise=pairwise,
    )


# --------------------------------------------------------------------------- gap statistic


NO_GAP = Curve(np.empty(0, dtype=int), np.empty(0), np.empty(0))


def gap_curve(sample: Sample, ks: Sequence[int], seed: int, in_workers: InWorkers) -> Curve:
    """The gap statistic of the clusterer; NaN for a K that a reference could not be fitted with."""
    X = sample.table
    assert not isinstance(X, str)
    ks = [1, *(k for k in ks if 1 < k < len(X))]
    data_sets = [X, *[ReferenceBox(X, "pca")] * REFERENCES]
    tasks = [(sample.rough, sample.parameter, ks, d, seed + i) for i, d in enumerate(data_sets)]
    log_within, *references = in_workers(_log_within, tasks, what="gap statistic")
    gap, error = gaps(log_within, np.array(references))
    return Curve(np.array(ks), gap, error)


def _log_within(
    model: Any, parameter: str, ks: list[int], X: np.ndarray | ReferenceBox, seed: int
) -> np.ndarray:
    """ln W for every K, of X or of one reference: −inf without spread, NaN where the fit failed."""
    if isinstance(X, ReferenceBox):
        X = X(np.random.default_rng(seed))
    with _quiet():
        fits = _fits(model, parameter, ks[1:], X, None, seed % 2**31)
    labels = [np.zeros(len(X), dtype=int), *fits]
    fitted = [i for i, vector in enumerate(labels) if not isinstance(vector, Exception)]
    sums = np.full(len(ks), np.nan)
    sums[fitted] = within_sums(X, [labels[i] for i in fitted])
    sums[sums <= NO_SPREAD * sums[0]] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(sums)


# --------------------------------------------------------------------------- the other criteria


def strengths(
    sample: Sample, ks: Sequence[int], seed: int, in_workers: InWorkers
) -> tuple[np.ndarray, dict[int, str]]:
    """The prediction strength of every K, a mean over splits; and why some have none."""
    n_groups = 1 if is_tree(sample.model) else min(AT_ONCE, len(ks))
    groups = [list(ks[start::n_groups]) for start in range(n_groups)]
    tasks = [(sample, group, seed) for group in groups]
    values, reasons = np.empty(len(ks)), dict[int, str]()
    of_groups = in_workers(_strengths, tasks, what="prediction strength")
    for start, (of_group, why) in enumerate(of_groups):
        values[start::n_groups] = of_group
        reasons |= why
    return values, reasons


def _strengths(sample: Sample, ks: list[int], seed: int) -> tuple[np.ndarray, dict[int, str]]:
    """The mean strength of each K over splits; NaN, with a reason, where a half has no clusters.

    A K is split no further once its mean could not exceed `FOUND_AGAIN` with strengths of 1 in
    all splits that are left: its mean is then over those that were made, and lies below.
    """
    totals, n_splits = np.zeros(len(ks)), np.zeros(len(ks))
    reasons: dict[int, str] = {}
    for split in range(SPLITS):
        asked = np.flatnonzero(totals + SPLITS - split > FOUND_AGAIN * SPLITS)
        if not len(asked):
            break
        n_splits[asked] += 1
        drawn = (seed + split) % 2**31
        halves = draw_halves(sample.X.shape[0], np.random.RandomState(drawn))
        fits = []
        for rows in halves:
            X = cut_rows(sample.X, rows, sample.pairwise)
            weights = cut_rows(sample.weights, rows)
            some = [ks[i] for i in asked]
            with _quiet():
                fits.append(_fits(sample.model, sample.parameter, some, X, weights, drawn))
        for i, *labels in zip(asked, *fits, strict=True):
            failed = next((fit for fit in labels if isinstance(fit, Exception)), None)
            try:
                if failed is not None:
                    raise UndefinedIndex(f"a half of the objects could not be clustered: {failed}")
                strength = split_strengths(sample.X, halves, labels, sample.metric, sample.weights)
                totals[i] += strength.weakest
            except UndefinedIndex as error:
                totals[i], reasons[ks[i]] = np.nan, str(error)
    return totals / n_splits, reasons


def mixture_bics(
    sample: Sample, ks: Sequence[int], seed: int, in_workers: InWorkers
) -> tuple[np.ndarray, dict[int, str]]:
    """The least BIC of Gaussian mixtures with each number of components; and why some have none.

    Full covariances need about d² / 2 parameters for each component, so that few objects in many
    columns would speak for too few components; simpler forms compete (Fraley & Raftery 2002).
    """
    if isinstance(sample.table, str) or sample.weights is not None:
        why = sample.table if isinstance(sample.table, str) else "objects have weights"
        return np.full(len(ks), np.nan), dict.fromkeys(ks[1:], why)  # the first is one cluster
    tasks = [(sample.table, k, seed % 2**31) for k in ks]
    bics = in_workers(_bic, tasks, what="Gaussian mixtures")
    reasons = {k: bic for k, bic in zip(ks, bics, strict=True) if isinstance(bic, str)}
    return np.array([np.nan if isinstance(bic, str) else bic for bic in bics]), reasons


class _Mixture(GaussianMixture):
    """A Gaussian mixture that begins with given clusters; it overrides private methods."""

    clusters: np.ndarray  # (n, k) 1 where an object is in a cluster, else 0

    def _initialize_parameters(self, X: np.ndarray, random_state: Any, **library: Any) -> None:
        self._initialize(X, self.clusters, **library)

    def _e_step(self, X: np.ndarray, **library: Any) -> Any:
        self.log_likelihood, responsibilities = super()._e_step(X, **library)
        return self.log_likelihood, responsibilities


def _bic(X: np.ndarray, k: int, seed: int) -> float | str:
    if k > len(X):
        return f"a mixture of {k} components needs as many objects, got {len(X)}"
    centred = X - X.mean(axis=0)
    variance = float((centred**2).mean())
    if not variance > 0:
        return "all objects are equal"
    # In units of the spread, so that the ridge and the tolerance mean the same for any data.
    scaled = centred / np.sqrt(variance)
    bics, reason = [], ""
    with _quiet(), config_context(assume_finite=True, skip_parameter_validation=True):
        # Each mixture would begin with these very clusters; they are found once for all forms.
        start = ReferenceKMeans(k, n_init=1, random_state=seed).fit(scaled)
        for form in FORMS if X.shape[1] <= FULL else FORMS[2:]:
            model = _Mixture(k, covariance_type=form, reg_covar=RIDGE, random_state=seed)
            model.clusters = np.eye(k)[start.labels_]
            try:
                model.fit(scaled)
            except ValueError as error:
                reason = str(error)
            else:  # as model.bic, without one more step: the last of fit has the likelihood
                penalty = model._n_parameters() * math.log(len(X))
                bics.append(-2 * float(model.log_likelihood) * len(X) + penalty)
    return min(bics) + X.size * float(np.log(variance)) if bics else reason


def _fits(
    model: Any, parameter: str, ks: list[int], X: Any, weights: Any, seed: int
) -> list[np.ndarray | Exception]:
    """The labels for every K, or the error of the fit."""
    fits_all = max(ks, default=0) <= X.shape[0] and (weights is None or weights.any())
    if fits_all and type(model) is KMeans and isinstance(model.init, str):
        return list(kmeans_labels(model, ks, X, weights, seed))
    fits = fit_each(model, parameter, ks, X, weights, seed)
    return [fit.labels if isinstance(fit, Fitted) else fit for fit in fits]
