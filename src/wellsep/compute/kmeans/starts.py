"""Where centres start: k-means++, k-means‖, random points, given centres, the caller's function.

Points in chunks start by k-means‖ where points in memory start by greedy k-means++, which would
take a pass over all chunks for each centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_numbers, to_numpy
from wellsep.compute.data.rows import Space
from wellsep.compute.engine.threads import budget_bytes
from wellsep.compute.kmeans.lloyd import Leading, run
from wellsep.compute.kmeans.prepared_points import (
    Frame,
    Points,
    PointSet,
    assign,
    prepare,
)

STARTS = ("k-means++", "random")
ROUNDS = 4  # passes of k-means‖ that draw candidates, k in each
LISTED = 1 << 24  # rows in chunks up to which a permutation of all is drawn, as in memory


def check_init(init: Any) -> tuple[Any, bool]:
    """A known name, a function or an array, and whether it is an array of centres.

    The array's shape is judged when X is known.
    """
    if isinstance(init, str):
        return check_choice("init", init, STARTS), False
    return init, not callable(init)


def start_centers(
    points: PointSet, n_clusters: int, init: Any, random_state: np.random.RandomState
) -> np.ndarray:
    """Starting centres in the frame of the prepared points, float64 on the host.

    ``init`` is "k-means++", "random", an array (k, d) of centres of X, or a function
    ``init(X, n_clusters, random_state=...)`` that returns such an array.
    """
    if isinstance(init, str):
        if init == "random":
            return points.take(random_rows(points, n_clusters, random_state))
        if isinstance(points, Points):
            return points.take(plus_plus(points, n_clusters, random_state))
        return parallel_start(points, n_clusters, random_state)
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


def random_rows(
    points: PointSet, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Distinct rows, drawn in proportion to their weight."""
    if points.in_chunks and points.n > LISTED:
        return points.fold(_draw_weights, _key(random_state), n_clusters).numbers
    pull = points.pulls()
    if pull is None:
        return random_state.choice(points.n, n_clusters, replace=False)
    return draw_weighted(pull, n_clusters, points.any_zero, random_state)


def sample_points(points: PointSet, size: int, random_state: np.random.RandomState) -> Points:
    """Some points of chunks in memory, in their frame; all of them where they are few.

    No more than a few copies of which fit the budget.
    """
    size = min(size, points.n, max(1, int(budget_bytes() / (32 * points.like.shape[1]))))
    if size == points.n:
        rows, weights = np.arange(points.n), points.pulls()
    else:
        rows, weights = np.sort(random_rows(points, size, random_state)), None
    frame = Frame(points.frame.metric, None, points.frame.spread)
    return prepare(points.take(rows), weights, frame.metric, frame)


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
    n_trials = 2 + int(np.log(n_clusters)) if n_trials is None else n_trials
    chosen = np.empty(n_clusters, dtype=np.intp)
    share = None if points.pull is None else shares(points.pull, points.zero is not None)
    chosen[0] = random_state.choice(points.n, p=share)
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
    rows, total = rows_at_shares(points.space, mass, random_state.uniform(size=size))
    if total > 0.0:
        return rows
    # Every point lies on a centre: more centres than distinct points.
    chance = shares(points.pull, True) if points.zero is not None else None  # type: ignore[arg-type]
    return random_state.choice(points.n, size, p=chance)


def rows_at_shares(space: Space, mass: Any, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows at which the running sum of ``mass`` passes these shares of the total, and the total."""
    course = space.running_sum(mass)
    total = float(course[-1])
    targets = space.beside(shares * total)
    rows = to_numpy(space.xp.searchsorted(course, targets, side="right"))
    return np.minimum(rows, len(course) - 1), total


def row_distances(points: Points, rows: np.ndarray) -> Any:
    """Squared distances (m, n) from some rows to all points."""
    return points.space.center_squares(points.take(rows), points.norms)


def _best_trial(points: Points, closest: Any, candidates: np.ndarray) -> tuple[Any, int]:
    trials = row_distances(points, candidates)
    xp, weights = points.space.xp, points.device_weights
    trials = xp.minimum(trials, closest[None, :])
    totals = xp.sum(trials, axis=1) if weights is None else trials @ weights
    best = int(np.argmin(to_numpy(totals)))
    return trials[best, ...], best


def parallel_start(
    points: PointSet, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """k-means‖ (Bahmani et al., 2012): candidates in a few passes, then k-means++ among them.

    Each pass draws k rows with a chance in proportion to w·D², D the distance to the nearest
    candidate so far (Departs from the paper: exactly k of them, without replacement). Candidates
    weigh what is nearest to them; greedy k-means++ and Lloyd's loop on the candidates give the
    start. A row's random number depends on its place among all rows, not on its chunk.
    """
    first = random_rows(points, 1, random_state)
    candidates = points.take(first)
    for _ in range(ROUNDS):
        drawn = points.fold(_draw_candidates, candidates, _key(random_state), n_clusters)
        (rows,) = drawn.columns
        if not len(rows):
            break  # every point lies on a candidate
        candidates = np.vstack([candidates, rows])
    if len(candidates) < n_clusters:
        spare = points.take(random_rows(points, n_clusters, random_state))
        candidates = np.vstack([candidates, spare])[: max(n_clusters, len(candidates))]
    mass = points.fold(_candidate_mass, candidates)
    few = prepare(candidates, np.maximum(mass, 1e-12 * mass.sum()), points.frame.metric)
    chosen = few.take(plus_plus(few, n_clusters, random_state))
    refined = run(few, chosen, max_iter=30).centers
    return few.frame.leave(refined)


def _key(random_state: np.random.RandomState) -> int:
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


def row_uniforms(key: int, start: int, n: int) -> np.ndarray:
    """Random numbers of rows ``start`` to ``start + n``, the same however the rows are cut."""
    bits = np.random.Philox(key=key)
    bits.advance(start // 4)  # each step of the counter makes four numbers
    skipped = start % 4
    return np.random.Generator(bits).random(n + skipped)[skipped:]


def draw_keys(uniform: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−ln(u)/mass of the rows that have some, and which these are.

    The rows with the smallest keys are a draw without replacement, in proportion to mass
    (Efraimidis and Spirakis, 2006, Weighted random sampling with a reservoir).
    """
    heavy = np.flatnonzero(mass > 0)
    return -np.log1p(-uniform[heavy]) / mass[heavy], heavy


def _smallest(mass: np.ndarray, key: int, wanted: int, start: int) -> tuple[Any, Any]:
    """The smallest keys in order, and which rows have them."""
    keys, heavy = draw_keys(row_uniforms(key, start, len(mass)), mass)
    order = np.argsort(keys, kind="stable")[:wanted]
    return keys[order], heavy[order]


def _draw_candidates(points: Points, candidates: np.ndarray, key: int, wanted: int) -> Leading:
    near = assign(points, candidates).near.astype(np.float64)
    # What rounding leaves of a point that is itself a candidate must not be drawn again.
    near[near <= 1e-12 * points.frame.spread] = 0.0
    keys, at = _smallest(near * points.pull_or_ones, key, wanted, points.start)
    return Leading(keys, points.start + at, (points.take(at),), wanted)


def _draw_weights(points: Points, key: int, wanted: int) -> Leading:
    keys, at = _smallest(points.pull_or_ones, key, wanted, points.start)
    return Leading(keys, points.start + at, (), wanted)


def _candidate_mass(points: Points, candidates: np.ndarray) -> np.ndarray:
    first = assign(points, candidates).first
    return np.bincount(first, weights=points.pull, minlength=len(candidates)).astype(np.float64)
