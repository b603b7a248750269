"""The one Lloyd loop, in which every estimator moves its centres, and where these start.

Starts are k-means++, k-means‖, random points, given centres, or the caller's function. Points in
chunks start by k-means‖ where points in memory start by greedy k-means++, which would take a pass
over all chunks for each centre.
"""

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
    check_numbers,
    check_weights,
    is_host,
    kernels_wanted,
    to_numpy,
)
from wellsep._threads import one_openmp_thread, own_threads
from wellsep.compute.kmeans.nearest_centres import THREADED
from wellsep.compute.kmeans.prepared_points import Leading, Points, draw_key, mean_variance, prepare

_ROUNDING = 1e-9  # relative
STARTS = ("k-means++", "random")
ROUNDS = 4  # passes of k-means‖ that draw candidates, k in each


class LloydResult(NamedTuple):
    """Where a Lloyd loop ended; labels are the nearest centres' codes."""

    centers: Any  # (k, d) in X's library and float type
    labels: Any  # (n,) integer
    inertia: float
    n_iter: int


def lower(inertia: float, other: float) -> bool:
    """Whether an inertia lies below another by more than rounding.

    Restarts often end in the same partition with its clusters named otherwise; the last digit,
    which changes with the order of a sum, must not choose among them.
    """
    return inertia < other - _ROUNDING * abs(other)


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
    inertia = points.frame.squared(ended.inertia)
    return LloydResult(points.publish_centers(ended.centers), labels, inertia, ended.n_iter)


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
        nearest = points.assign(centers)
        sums, mass = points.label_sums(nearest.first, len(centers))
        moved = points.reseeded_means(nearest, sums, mass, centers)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if before is not None and np.array_equal(sums, before):
            return nearest.first, centers, n_iter
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


# --------------------------------------------------------------------------- starts


def start_centers(
    points: Points, n_clusters: int, init: Any, random_state: np.random.RandomState
) -> np.ndarray:
    """Starting centres in the frame of the prepared points, float64 on the host.

    ``init`` is "k-means++", "random", an array (k, d) of centres of X, or a function
    ``init(X, n_clusters, random_state=...)`` that returns such an array.
    """
    if isinstance(init, str):
        if init == "random":
            return points.take(points.random_rows(n_clusters, random_state))
        if points.in_chunks:
            return parallel_start(points, n_clusters, random_state)
        return points.take(plus_plus(points, n_clusters, random_state))
    centers = init(points.source, n_clusters, random_state=random_state) if callable(init) else init
    return points.frame.enter(check_centers(centers, n_clusters, points.like.shape[1]))


def check_centers(centers: Any, n_clusters: int, n_features: int) -> np.ndarray:
    """Given centres as float64 on the host, refused where they do not fit."""
    centers = check_numbers("init", centers)
    if centers.shape != (n_clusters, n_features):
        wrong = "clusters" if centers.shape[:1] != (n_clusters,) else "features of the data"
        raise ValueError(
            f"init must have shape (n_clusters, n_features) = ({n_clusters}, {n_features}), "
            f"got {tuple(centers.shape)}. The shape of the initial centers {tuple(centers.shape)} "
            f"does not match the number of {wrong}."  # scikit-learn's sentence
        )
    if not np.isfinite(centers).all():
        raise ValueError("init must be finite, got NaN or infinity.")
    return centers


def plus_plus(points: Points, n_clusters: int, random_state: np.random.RandomState) -> np.ndarray:
    """Rows chosen by greedy k-means++ (Arthur and Vassilvitskii, 2007).

    Every new centre is the best of 2 + ⌊ln k⌋ rows drawn with a chance in proportion to w·D², D
    the distance to the nearest centre so far: the one that leaves the least Σ w·D².
    """
    n_trials = 2 + int(np.log(n_clusters))
    chosen = np.empty(n_clusters, dtype=np.intp)
    share = None if points.pull is None else points.shares(points.pull)
    chosen[0] = random_state.choice(points.n, p=share)
    space, weights = points.space, points.device_weights
    closest = space.center_squares(points.take(chosen[:1]), points.norms)[0, ...]
    for position in range(1, n_clusters):
        candidates = draw_far(points, closest, n_trials, random_state)
        squares = space.center_squares(points.take(candidates), points.norms)
        trials = space.xp.minimum(squares, closest[None, :])
        totals = space.xp.sum(trials, axis=1) if weights is None else trials @ weights
        best = int(np.argmin(to_numpy(totals)))
        closest, chosen[position] = trials[best, ...], candidates[best]
    return chosen


def draw_far(
    points: Points, closest: Any, size: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Rows drawn (with replacement) with a chance in proportion to w times ``closest``."""
    mass = closest if points.pull is None else closest * points.device_pull
    rows, total = points.rows_at_shares(mass, random_state.uniform(size=size))
    if total > 0.0:
        return rows
    # Every point lies on a centre: more centres than distinct points.
    chance = points.shares(points.pull) if points.any_zero else None  # type: ignore[arg-type]
    return random_state.choice(points.n, size, p=chance)


def parallel_start(
    points: Points, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """k-means‖ (Bahmani et al., 2012): candidates in a few passes, then k-means++ among them.

    Each pass draws k rows with a chance in proportion to w·D², D the distance to the nearest
    candidate so far (Departs from the paper: exactly k of them, without replacement). Candidates
    weigh what is nearest to them; greedy k-means++ and Lloyd's loop on the candidates give the
    start. A row's random number depends on its place among all rows, not on its chunk.
    """
    first = points.random_rows(1, random_state)
    candidates = points.take(first)
    for _ in range(ROUNDS):
        drawn = points.fold(_draw_candidates, candidates, draw_key(random_state), n_clusters)
        (rows,) = drawn.columns
        if not len(rows):
            break  # every point lies on a candidate
        candidates = np.vstack([candidates, rows])
    if len(candidates) < n_clusters:
        spare = points.take(points.random_rows(n_clusters, random_state))
        candidates = np.vstack([candidates, spare])[: max(n_clusters, len(candidates))]
    _, mass = points.label_sums(points.assign(candidates).first, len(candidates))
    few = prepare(candidates, np.maximum(mass, 1e-12 * mass.sum()), points.frame.metric)
    chosen = few.take(plus_plus(few, n_clusters, random_state))
    refined = run(few, chosen, max_iter=30).centers
    return few.frame.leave(refined)


def _draw_candidates(points: Points, candidates: np.ndarray, key: int, wanted: int) -> Leading:
    near = points.assign(candidates).near.astype(np.float64)
    # What rounding leaves of a point that is itself a candidate must not be drawn again.
    near[near <= 1e-12 * points.frame.spread] = 0.0
    return points.leading_draw(near * points.pull_or_ones, key, wanted, rows=True)
