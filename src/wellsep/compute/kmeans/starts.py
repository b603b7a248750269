"""Where centres start: k-means++, k-means‖, random points, given centres, the caller's function.

Points in chunks start by k-means‖ where points in memory start by greedy k-means++, which would
take a pass over all chunks for each centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_numbers, to_numpy
from wellsep.compute.kmeans.lloyd import run
from wellsep.compute.kmeans.prepared_points import Leading, Points, draw_key, prepare

STARTS = ("k-means++", "random")
ROUNDS = 4  # passes of k-means‖ that draw candidates, k in each


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
    n_trials = 2 + int(np.log(n_clusters)) if n_trials is None else n_trials
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
    keys, at = points.leading_draw(near * points.pull_or_ones, key, wanted)
    return Leading(keys, points.start + at, (points.take(at),), wanted)
