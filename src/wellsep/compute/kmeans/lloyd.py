"""The one Lloyd loop: every estimator of this package moves its centres here."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_data,
    check_number,
    check_weights,
    is_host,
    kernels_wanted,
    to_numpy,
)
from wellsep._threads import one_openmp_thread, own_threads
from wellsep.compute.kmeans.nearest_centres import THREADED
from wellsep.compute.kmeans.prepared_points import Points, mean_variance, prepare

_ROUNDING = 1e-9  # relative


class LloydResult(NamedTuple):
    """Where a Lloyd loop ended; labels are the nearest centres' codes."""

    centers: Any  # (k, d) in X's library and float type
    labels: Any  # (n,) integer
    inertia: float
    n_iter: int


def lower(one: float, other: float) -> bool:
    """Whether an inertia lies below another by more than rounding.

    Restarts often end in the same partition with its clusters named otherwise; the last digit,
    which changes with the order of a sum, must not choose among them.
    """
    return one < other - _ROUNDING * abs(other)


@own_threads()
def lloyd(
    X: Any,
    centers: Any,
    *,
    sample_weight: Any = None,
    max_iter: int = 300,
    tol: float = 1e-4,
    metric: str = "euclidean",
) -> LloydResult:
    """Move centres to the means of their points until the labels stand still.

    Each iteration assigns every point to its nearest centre and puts each centre on the weighted
    mean of its points, which never increases the inertia

        Σ_i w_i ‖x_i − μ_{c_i}‖²        (metric="cosine": Σ_i w_i (1 − cos(x_i, μ_{c_i})))

    A cluster left empty is re-seeded with the point farthest from its centre. Dense Euclidean data
    are centred first; sparse data never are. ``metric="cosine"`` is spherical k-means: rows and
    centres have unit length. A row of zeros is at distance 1 from every centre, moves none and gets
    the first label.

    Parameters
    ----------
    X : array of shape (n, d)
        NumPy, CSR, a dataframe, or a tensor of torch or another array-API library.
    centers : array of shape (k, d)
        Where the centres start.
    sample_weight : array of shape (n,), optional
        Weight of each point.
    max_iter : int
        Greatest number of iterations.
    tol : float
        Stop once the summed squared shift of all centres is at most ``tol`` times the mean
        variance of the features.
    metric : {"euclidean", "cosine"}
        Distance.

    Returns
    -------
    LloydResult
        ``centers``, ``labels``, ``inertia`` and ``n_iter``.

    References
    ----------
    Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28, 129-137.

    Examples
    --------
    >>> from wellsep.cluster import lloyd
    >>> result = lloyd([[0.0], [2.0], [10.0]], [[0.0], [2.0]])
    >>> result.centers.ravel().tolist(), result.labels.tolist(), result.inertia
    ([1.0, 10.0], [0, 0, 1], 2.0)
    """
    check_choice("metric", metric, Points.METRICS)
    max_iter = check_count("max_iter", max_iter)
    tol = check_number("tol", tol, 0.0)
    X = check_data(X, sparse=True)
    start = to_numpy(centers).astype(np.float64)
    if start.ndim != 2 or start.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have shape (k, {X.shape[1]}), got {tuple(start.shape)}.")
    points = prepare(X, check_weights(sample_weight, X.shape[0]), metric)
    ended = run(points, points.frame.enter(start), max_iter=max_iter, tol=tol)
    labels = points.publish(ended.labels, np.int32)
    found = points.frame.squared(ended.inertia)
    return LloydResult(points.publish_centers(ended.centers), labels, found, ended.n_iter)


class Ended(NamedTuple):
    """Where the loop on prepared points ended; centres in the frame of the points."""

    centers: np.ndarray  # (k, d) float64
    labels: Any  # as the points have them
    inertia: float
    n_iter: int


def run(points: Points, centers: np.ndarray, *, max_iter: int = 300, tol: float = 1e-4) -> Ended:
    """The loop on prepared points; centres (float64) in and out lie in the points' own frame."""
    loop = _compiled_loop if _compiled_usable(points, centers) else _loop
    labels, centers, n_iter = loop(points, centers, max_iter, tol)
    return Ended(centers, labels, points.inertia(labels, centers), n_iter)


def _loop(
    points: Points, centers: np.ndarray, max_iter: int, tol: float
) -> tuple[Any, np.ndarray, int]:
    """Labels stand still where the sums do: these are added in the same order every time."""
    before = None
    n_iter = 0
    for n_iter in range(1, max_iter + 1):
        found = points.assign(centers)
        sums, mass = points.label_sums(found.first, len(centers))
        moved = points.reseeded_means(found, sums, mass, centers)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if before is not None and np.array_equal(sums, before):
            return found.first, centers, n_iter
        before = sums
        if shift <= tol * points.frame.spread:
            break
    return points.assign(centers).first, centers, n_iter


def _compiled_usable(points: Points, centers: np.ndarray) -> bool:
    # scikit-learn's loop: faster where there is too little work for several threads. With more
    # work its sums would depend on their number. Zero weights stay with ours, because theirs may
    # re-seed an empty cluster with a point that does not count.
    return (
        kernels_wanted()
        and not points.in_chunks
        and not points.frame.directions
        and is_host(points.X)
        and len(centers) <= points.n
        and points.X.size * len(centers) < THREADED  # of sparse rows what they store
        and (points.weights is None or bool((points.weights > 0.0).all()))
    )


def _compiled_loop(
    points: Points, centers: np.ndarray, max_iter: int, tol: float
) -> tuple[Any, np.ndarray, int]:
    values = points.X
    unit = points.frame.spread if points.weights is None else mean_variance(values)
    model = KMeans(
        len(centers),
        init=centers.astype(values.dtype),
        n_init=1,
        max_iter=max_iter,
        # Their tol counts in the unweighted variance, ours in the weighted one.
        tol=tol * points.frame.spread / unit if unit > 0.0 else 0.0,
    )
    # The points were checked when they were made. Checking them again takes longer than the loop
    # where they are few: 2.3 ms against 1.0 for 700 points in the plane and 8 centres.
    unchecked = sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
    # Fewer distinct clusters than asked for: the estimators say it in their own words.
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with quiet, one_openmp_thread(), unchecked:
        model.fit(values, sample_weight=points.weights)
    return model.labels_, model.cluster_centers_.astype(np.float64), int(model.n_iter_)
