"""cf-means on prepared points: k-means, the paper's steps if they are named, the search."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wellsep.cluster.cf_means.centre_search import IDLE_ROUNDS, Budget, History, columns_of, search
from wellsep.cluster.cf_means.centre_search_gpu import device_search
from wellsep.cluster.cf_means.gradient_steps import step, weights_of
from wellsep.cluster.estimator import UNWATCHED, FitInput, NoProgress, Starts
from wellsep.compute.kmeans.lloyd import Ended, lower, run, start_centers
from wellsep.compute.kmeans.prepared_points import Points

SEARCH = "search"
STEPS = "weight", "objective", "inertia"  # of gradient steps; the weight is λ
SEARCHED, PER_CLUSTER = 20_000, 1000  # points of chunks that are searched, at least


class CFMeansResult(NamedTuple):
    """Where cf-means ended; centres in the frame of the points."""

    centers: np.ndarray
    labels: Any  # as the points have them
    inertia: float
    n_iter: int  # passes over the data, or as many distances as they take
    n_moves: int  # moves that were kept
    safeguarded: bool  # whether plain k-means from the same start was lower, and taken
    steps: dict[str, np.ndarray]
    history: dict[str, np.ndarray]


class CFOptions(NamedTuple):
    """The parameters that `CFMeans` has beside those of k-means."""

    schedule: str = SEARCH
    weight: float = 1.0
    n_steps: int = 0
    max_moves: int | None = None
    max_seconds: float | None = None  # of one start
    safeguard: bool = True


def cfmeans(points: Points, given: FitInput, progress: NoProgress = UNWATCHED) -> CFMeansResult:
    """The lowest inertia of cf-means from several starts."""
    starts, options = given.starts, given.options
    best = _from_one_start(points, starts, options, progress)
    for _ in range(starts.n_init - 1):
        if progress.stopped:
            break
        result = _from_one_start(points, starts, options, progress)
        best = result if lower(result.inertia, best.inertia) else best
    return best


def _from_one_start(
    points: Points, starts: Starts, options: CFOptions, progress: NoProgress
) -> CFMeansResult:
    """k-means, the paper's steps if they are named, the search."""
    schedule, weight, k = options.schedule, options.weight, starts.n_clusters
    moves, seconds, history = options.max_moves, options.max_seconds, History()
    if moves is None and seconds is None:
        budget = Budget(max(100, 5 * k), idle_rounds=IDLE_ROUNDS)
    else:
        budget = Budget(np.inf if moves is None else moves, np.inf if seconds is None else seconds)
    start = start_centers(points, k, starts.init, starts.random_state)
    alone = weight == 0.0 or k == 1 or (schedule == SEARCH and options.max_moves == 0)
    plain = None
    if options.safeguard or alone:
        plain = _refine(points, start, starts, progress)
        if alone:
            return CFMeansResult(*plain, 0, False, columns_of(STEPS, []), history.columns())
    taken: list[tuple[float, float, float]] = []
    centers, n_iter = start, 0
    if schedule != SEARCH:
        for current in weights_of(schedule, weight, options.n_steps):
            progress.begin("step")
            centers, force = step(points, centers, float(current))
            taken.append((float(current), force.objective, force.inertia))
            progress.end(points, centers)
            if progress.stopped:
                break
        n_iter = len(taken)
    elif plain is not None:
        centers, n_iter = plain.centers, plain.n_iter
    refined, passes, n_moves = _moved(points, centers, starts, budget, progress, history)
    columns, steps = history.columns(), columns_of(STEPS, taken)
    if points.frame.directions:
        columns["inertia"] = 0.5 * columns["inertia"]  # 1 − cos of squared distances
    if plain is not None and lower(plain.inertia, refined.inertia):
        return CFMeansResult(*plain, 0, True, steps, columns)
    return CFMeansResult(*refined[:3], n_iter + passes, n_moves, False, steps, columns)


def _moved(
    points: Points,
    centers: np.ndarray,
    starts: Starts,
    budget: Budget,
    progress: NoProgress,
    history: History,
) -> tuple[Ended, int, int]:
    """Where the search from these centres ends, the passes it takes, the moves it keeps."""
    if budget.max_moves == 0 or progress.stopped:
        refined = _refine(points, centers, starts, progress)
        return refined, refined.n_iter, 0
    random_state = starts.random_state
    on_device = not points.in_chunks and points.space.on_device
    if on_device:
        reached = device_search(points, centers, budget, random_state, progress, history)
    else:
        searched = points
        if points.in_chunks:
            size = max(SEARCHED, PER_CLUSTER * len(centers))
            searched = points.sample(size, random_state)
        again = starts.init if isinstance(starts.init, str) else "k-means++"
        restart = partial(start_centers, searched, len(centers), again, random_state)
        reached = search(searched, centers, restart, budget, random_state, progress, history)
    passes = int(np.ceil(reached.work / (points.n * len(centers))))
    if not (points.in_chunks or on_device):
        labels = points.assign(reached.centers).first
        cost = points.inertia(labels, reached.centers)
        return Ended(reached.centers, labels, cost, passes), passes, reached.n_moves
    refined = _refine(points, reached.centers, starts, progress)
    return refined, passes + refined.n_iter, reached.n_moves


def _refine(points: Points, centers: np.ndarray, starts: Starts, progress: NoProgress) -> Ended:
    progress.begin("refine")
    result = run(points, centers, max_iter=starts.max_iter, tol=starts.tol)
    progress.end(points, result.centers)
    return result
