"""Counterfactual steps and relocations where the points are on Dask."""

# mypy: disable-error-code="misc"
# ChunkedPoints stand where Points are expected without being any.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks import UndefinedIndex
from wellsep.cluster.cfmeans import separation
from wellsep.cluster.counterfactual import Pull, pull, step
from wellsep.cluster.dask_points import ChunkedPoints, _label_sums, update_chunks
from wellsep.cluster.loop import publish
from wellsep.cluster.moves import (
    N_CANDIDATES,
    State,
    choose,
    handed_over,
    look,
    offer,
    propose,
    removal_costs,
    settle,
)
from wellsep.cluster.points import Points, assign, take_rows
from wellsep.cluster.seeding import center_distances
from wellsep.compute.dask_chunks import Chunks


@step.register(ChunkedPoints)
def _step(points: ChunkedPoints, centers: np.ndarray, weight: float) -> tuple[np.ndarray, Pull]:
    force = points.fold(_pull, centers, weight)
    empty = force.own == 0.0
    if weight != 0.0:
        moved = centers + force.direction / np.where(force.mass > 0.0, force.mass, 1.0)[:, None]
    if weight == 0.0 or empty.any():
        lloyd = update_chunks(points, centers, *points.fold(_label_sums, centers))
        if weight == 0.0:
            return lloyd, force
        moved[empty] = lloyd[empty]
    return np.where(np.isfinite(moved), moved, centers), force


def _pull(points: Points, centers: np.ndarray, weight: float, start: int) -> Pull:
    """All of it adds up over points, for centres that stand still."""
    return pull(points, centers, weight)._replace(found=None)  # type: ignore[arg-type]


class Seen(NamedTuple):
    """What one look at a portion adds, besides sums and masses."""

    inertia: float
    sums: np.ndarray
    mass: np.ndarray
    costs: np.ndarray  # (k,) of taking each centre away


@look.register(ChunkedPoints)
def _look(points: ChunkedPoints, centers: np.ndarray) -> State:
    parts = points.each(_seen, centers, added=True)
    totals = np.array([part.inertia for part in parts])  # by portion
    sums = [np.sum([part[i] for part in parts], axis=0) for i in (1, 2, 3)]
    found: Any = (totals, sums[2])
    return State(centers, found, float(totals.sum()), sums[0], sums[1])


def _seen(points: Points, centers: np.ndarray, start: int) -> Seen:
    state = look(points, centers)
    costs = removal_costs(points, state.found, len(centers))
    return Seen(state.inertia, state.sums, state.mass, costs)


@propose.register(ChunkedPoints)
def _propose(
    points: ChunkedPoints, state: State, random_state: np.random.RandomState
) -> np.ndarray:
    """Two passes and a few portions: draw far points, weigh their offers, hand points over."""
    totals, base = state.found  # type: ignore[misc]
    candidates = _draw_far(points, state.centers, totals, random_state)
    offers = points.fold(_offers, state.centers, candidates)
    best, spared = choose(offers, base)  # type: ignore[arg-type]
    changes = points.fold(_handed_over, state.centers, candidates[best], spared)
    return settle(points, state, *changes)  # type: ignore[arg-type]


def _draw_far(
    points: ChunkedPoints,
    centers: np.ndarray,
    totals: np.ndarray,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Points drawn as in memory: from the same random numbers, in the same order of rows."""
    draws = random_state.uniform(size=N_CANDIDATES)
    course = np.cumsum(totals)
    if not course[-1] > 0.0:
        return points.take(random_state.choice(points.chunks.n, N_CANDIDATES))
    targets = draws * course[-1]
    owner = np.searchsorted(course, targets, side="right")
    owner = np.minimum(owner, int(np.flatnonzero(totals)[-1]))
    found = np.empty((N_CANDIDATES, points.chunks.d))
    for portion in np.unique(owner):
        mine = owner == portion
        inside = targets[mine] - (course[portion] - totals[portion])
        found[mine] = points.each(_far_rows, centers, inside, which=[int(portion)])[0]
    return found


def _far_rows(points: Points, centers: np.ndarray, targets: np.ndarray, start: int) -> np.ndarray:
    near = look(points, centers).found.near
    course = np.cumsum(near if points.weights is None else near * points.weights)
    rows = np.searchsorted(course, targets, side="right")
    return take_rows(points, np.minimum(rows, len(course) - 1))


def _offers(points: Points, centers: np.ndarray, candidates: np.ndarray, start: int) -> list[Any]:
    found = look(points, centers).found
    table = center_distances(points, candidates)
    return [offer(points, found, distances, len(centers)) for distances in table]


def _handed_over(
    points: Points, centers: np.ndarray, place: np.ndarray, spared: int, start: int
) -> tuple[np.ndarray, np.ndarray]:
    found = look(points, centers).found
    distances = center_distances(points, place[None])[0]
    return handed_over(points, found, distances, spared, len(centers))


@separation.register(Chunks)
def _separation(X: Chunks, points: ChunkedPoints, best: Any, weights: Any) -> tuple[Any, float]:
    """Lazy margins, and CFQ."""
    from wellsep.indices import cfq_score, margins

    count, mass = points.fold(_members, best.centers)
    if (count > 0).sum() < 2:
        return points.lazy(_undefined, dtype=np.float64), np.nan
    labels = best.labels

    def those(present: np.ndarray) -> Any:
        return publish(points, best.centers[present])  # type: ignore[arg-type]

    try:
        quality = cfq_score(X.array, labels, centers=those(mass > 0), sample_weight=weights)
    except UndefinedIndex:
        quality = np.nan
    return margins(X.array, labels, centers=those(count > 0)), float(quality)


def _members(points: Points, centers: np.ndarray, start: int) -> np.ndarray:
    """(2, k) number and mass of the points of each centre."""
    first, k = assign(points, centers).first, len(centers)
    return np.stack([np.bincount(first, w, k) for w in (None, points.weights)]).astype(float)


def _undefined(points: Points, start: int) -> np.ndarray:
    return np.full(len(points.values), np.nan)
