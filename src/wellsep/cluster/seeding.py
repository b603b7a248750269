"""Where centres start: greedy k-means++, random points, given centres, or the caller's function."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from wellsep._checks import check_choice, to_numpy
from wellsep.cluster.points import Points, take_rows
from wellsep.compute.nearest import is_host, to_like

STARTS = ("k-means++", "random")


def check_init(init: Any) -> Any:
    """A known name, a function or an array; the array's shape is judged when X is known."""
    if callable(init) or not isinstance(init, str):
        return init
    return check_choice("init", init, STARTS)


def is_given(init: Any) -> bool:
    """Whether ``init`` is an array of centres."""
    return not isinstance(init, str) and not callable(init)


@singledispatch
def start_centers(
    X: Any, points: Points, n_clusters: int, init: Any, random_state: np.random.RandomState
) -> np.ndarray:
    """Starting centres in the frame of the prepared points, float64 on the host.

    ``init`` is "k-means++", "random", an array (k, d) of centres of X, or a function
    ``init(X, n_clusters, random_state=...)`` that returns such an array.
    """
    if isinstance(init, str):
        choose = plus_plus if init == "k-means++" else random_rows
        return take_rows(points, choose(points, n_clusters, random_state))
    centers = init(X, n_clusters, random_state=random_state) if callable(init) else init
    return points.frame(check_centers(centers, n_clusters, X.shape[1]))


def check_centers(centers: Any, n_clusters: int, n_features: int) -> np.ndarray:
    """Given centres as float64 on the host, refused where they do not fit."""
    centers = to_numpy(centers).astype(np.float64)
    if centers.shape != (n_clusters, n_features):
        raise ValueError(
            f"init must have shape (n_clusters, n_features) = ({n_clusters}, {n_features}), "
            f"got {tuple(centers.shape)}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("init must be finite, got NaN or infinity.")
    return centers


def random_rows(points: Points, n_clusters: int, random_state: np.random.RandomState) -> np.ndarray:
    """Distinct rows, drawn in proportion to their weight."""
    if points.pull is None:
        return random_state.choice(points.values.shape[0], n_clusters, replace=False)
    return draw_weighted(points.pull, n_clusters, points.zero is not None, random_state)


def draw_weighted(
    pull: np.ndarray, n_clusters: int, zeros: bool, random_state: np.random.RandomState
) -> np.ndarray:
    """Distinct rows in proportion to ``pull``; no zero row, which has no direction to start in."""
    share, counted = shares(pull, zeros), np.flatnonzero(pull)
    if len(counted) < n_clusters:
        if zeros:
            return np.resize(counted, n_clusters)  # fewer directions than clusters: some twice
        rest = np.flatnonzero(pull == 0.0)[: n_clusters - len(counted)]
        return np.concatenate([counted, rest])
    return random_state.choice(len(pull), n_clusters, replace=False, p=share)


def shares(pull: np.ndarray, zeros: bool) -> np.ndarray:
    """The chance of each row to be drawn."""
    if zeros and not pull.any():
        raise ValueError(
            "X must have a row that is not zero for metric='cosine', got rows of zeros only."
        )
    return pull / pull.sum()


def plus_plus(
    points: Points,
    n_clusters: int,
    random_state: np.random.RandomState,
    n_trials: int | None = None,
) -> np.ndarray:
    """Rows chosen by greedy k-means++ (Arthur and Vassilvitskii, 2007).

    Every new centre is the best of ``n_trials`` (2 + ⌊ln k⌋ by default) rows drawn with a chance
    in proportion to w·D², D the distance to the nearest centre so far: the one that leaves the
    least Σ w·D².
    """
    n = points.values.shape[0]
    n_trials = 2 + int(np.log(n_clusters)) if n_trials is None else n_trials
    chosen = np.empty(n_clusters, dtype=np.intp)
    share = None if points.pull is None else shares(points.pull, points.zero is not None)
    chosen[0] = random_state.choice(n, p=share)
    closest = row_distances(points, chosen[:1])[0, ...]
    for position in range(1, n_clusters):
        candidates = draw_far(points, closest, n_trials, random_state)
        closest, best = _best_trial(points, closest, candidates)
        chosen[position] = candidates[best]
    return chosen


def draw_far(
    points: Points, closest: Any, size: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Rows drawn (with replacement) with a chance in proportion to w times ``closest``."""
    mass = closest if points.pull is None else closest * points.device_pull
    draws = random_state.uniform(size=size)
    if is_host(points.values):
        course = np.cumsum(mass)
        rows = np.searchsorted(course, draws * course[-1], side="right")
        total = course[-1]
    else:
        xp = array_namespace(mass)
        course = xp.cumulative_sum(mass)
        total = float(course[-1])
        targets = to_like(draws * total, course)
        rows = to_numpy(xp.searchsorted(course, targets, side="right"))
    if not total > 0.0:
        # Every point lies on a centre: more centres than distinct points.
        chance = None if points.zero is None else shares(points.pull, True)  # type: ignore[arg-type]
        return random_state.choice(points.values.shape[0], size, p=chance)
    return np.minimum(rows, points.values.shape[0] - 1)


def row_distances(points: Points, rows: np.ndarray) -> Any:
    """Squared distances (m, n) from some rows to all points."""
    return center_distances(points, take_rows(points, rows))


def center_distances(points: Points, centers: np.ndarray) -> Any:
    """Squared distances (m, n) from a few centres to all points."""
    values, norms = points.values, points.norms
    own = np.einsum("ij,ij->i", centers, centers)
    if is_host(values):
        small = centers.astype(values.dtype)
        products = np.asarray((values @ small.T).T if sp.issparse(values) else small @ values.T)
        return np.maximum(norms - 2.0 * products + own[:, None], 0.0)
    xp = array_namespace(values)
    products = to_like(centers, values) @ values.T
    squared = norms[None, :] - 2.0 * products + to_like(own[:, None], values)
    return xp.where(squared > 0.0, squared, xp.zeros_like(squared))


def _best_trial(points: Points, closest: Any, candidates: np.ndarray) -> tuple[Any, int]:
    trials = row_distances(points, candidates)
    if is_host(points.values):
        np.minimum(trials, closest, out=trials)
        totals = trials.sum(axis=1) if points.weights is None else trials @ points.weights
    else:
        xp = array_namespace(trials)
        trials = xp.where(trials < closest[None, :], trials, closest[None, :])
        weights = points.device_weights
        totals = xp.sum(trials, axis=1) if weights is None else trials @ weights
        totals = to_numpy(totals)
    best = int(np.argmin(totals))
    return trials[best, ...], best
