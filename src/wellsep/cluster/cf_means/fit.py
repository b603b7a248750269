"""cf-means from one start: k-means, the paper's steps if they are named, the search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.cluster.cf_means.centre_search import Budget, History, open_budget
from wellsep.cluster.cf_means.centre_search_gpu import device_search
from wellsep.cluster.cf_means.gradient_steps import step, weights_of
from wellsep.cluster.cf_means.search_on_few_directions import search_from
from wellsep.cluster.estimator import NoProgress
from wellsep.compute.kmeans.lloyd import Ended, lower, run
from wellsep.compute.kmeans.prepared_points import (
    Points,
    PointSet,
    RowValues,
    assign,
    inertia,
    labels_of,
)
from wellsep.compute.kmeans.starts import sample_points, start_centers

SEARCH = "search"
SEARCHED, PER_CLUSTER = 20_000, 1000  # points of chunks that are searched, at least


class CFMeansResult(NamedTuple):
    """Where cf-means ended; centres in the frame of the points."""

    centers: np.ndarray
    labels: RowValues
    inertia: float
    n_iter: int  # passes over the data, or as many distances as they take
    n_moves: int  # moves that were kept
    safeguarded: bool  # whether plain k-means from the same start was lower, and taken
    steps: dict[str, np.ndarray]
    history: dict[str, np.ndarray]


def cfmeans(
    points: PointSet,
    n_clusters: int,
    init: Any,
    *,
    schedule: str,
    weight: float,
    n_steps: int,
    max_moves: int | None,
    max_seconds: float | None,
    safeguard: bool,
    max_iter: int,
    tol: float,
    random_state: np.random.RandomState,
    progress: NoProgress | None = None,
) -> CFMeansResult:
    """cf-means from one start: k-means, the paper's steps if they are named, the search."""
    progress = NoProgress() if progress is None else progress
    budget, history = open_budget(n_clusters, max_moves, max_seconds), History()
    start = start_centers(points, n_clusters, init, random_state)
    alone = weight == 0.0 or n_clusters == 1 or (schedule == SEARCH and max_moves == 0)
    plain = None
    if safeguard or alone:
        plain = _refine(points, start, max_iter, tol, progress)
        if alone:
            return CFMeansResult(*plain, 0, False, course([]), history.columns())
    taken: list[tuple[float, float, float]] = []
    centers = start if plain is None else plain.centers
    if schedule != SEARCH:
        centers, taken = _gradient_steps(
            points, start, weights_of(schedule, weight, n_steps), progress
        )
    n_iter = len(taken)
    if plain is not None and schedule == SEARCH:
        n_iter += plain.n_iter
    refined, passes, kept = _moved(
        points, centers, init, budget, max_iter, tol, random_state, progress, history
    )
    columns = history.columns()
    if points.frame.directions:
        columns["inertia"] = 0.5 * columns["inertia"]  # 1 − cos of squared distances
    if plain is not None and lower(plain.inertia, refined.inertia):
        return CFMeansResult(*plain, 0, True, course(taken), columns)
    return CFMeansResult(
        refined.centers,
        refined.labels,
        refined.inertia,
        n_iter + passes,
        kept,
        False,
        course(taken),
        columns,
    )


def _gradient_steps(
    points: PointSet, centers: np.ndarray, weights: np.ndarray, progress: NoProgress
) -> tuple[np.ndarray, list[tuple[float, float, float]]]:
    """The paper's part: steps on SSE + λΣq."""
    taken: list[tuple[float, float, float]] = []
    for current in weights:
        progress.begin("step")
        moved, force = step(points, centers, float(current))
        taken.append((float(current), force.objective, force.inertia))
        centers = moved
        progress.end(points, centers)
        if progress.stopped:
            break
    return centers, taken


def _moved(
    points: PointSet,
    centers: np.ndarray,
    init: Any,
    budget: Budget,
    max_iter: int,
    tol: float,
    random_state: np.random.RandomState,
    progress: NoProgress,
    history: History,
) -> tuple[Ended, int, int]:
    """Where the search from these centres ends, its passes, and how many moves it kept."""
    if budget.max_moves == 0 or progress.stopped:
        refined = _refine(points, centers, max_iter, tol, progress)
        return refined, refined.n_iter, 0
    options: Any = {
        "budget": budget,
        "random_state": random_state,
        "progress": progress,
        "history": history,
    }
    if isinstance(points, Points) and points.space.on_device:
        found = device_search(points, centers, **options)
    else:
        searched = points
        if not isinstance(searched, Points):
            size = max(SEARCHED, PER_CLUSTER * len(centers))
            searched = sample_points(points, size, random_state)
        again = init if isinstance(init, str) else "k-means++"

        def restart() -> np.ndarray:
            return start_centers(searched, len(centers), again, random_state)

        found = search_from(searched, centers, restart=restart, **options)
    passes = int(np.ceil(found.work / (points.n * len(centers))))
    if isinstance(points, Points) and not points.space.on_device:
        return _ended(points, found.centers, passes), passes, found.n_moves
    refined = _refine(points, found.centers, max_iter, tol, progress)
    return refined, passes + refined.n_iter, found.n_moves


def _ended(points: PointSet, centers: np.ndarray, n_iter: int) -> Ended:
    """Labels and inertia of centres that need no refinement."""
    labels = points.values(labels_of, beside=[points.values(assign, centers)])
    return Ended(centers, labels, float(points.fold(inertia, centers, beside=[labels])), n_iter)


def _refine(
    points: PointSet, centers: np.ndarray, max_iter: int, tol: float, progress: NoProgress
) -> Ended:
    progress.begin("refine")
    result = run(points, centers, max_iter=max_iter, tol=tol)
    progress.end(points, result.centers)
    return result


def course(rows: list[tuple[float, float, float]]) -> dict[str, np.ndarray]:
    """λ, objective and inertia of the gradient steps."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    return {"weight": table[:, 0], "objective": table[:, 1], "inertia": table[:, 2]}
