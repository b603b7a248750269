"""Relocations, the moves of ``CFMeans`` where each costs a pass over all points.

Points in chunks, and arrays of libraries without a search of their own, are moved this way;
``local_search`` is the faster way for points in memory.

Without centre r each of its points falls to the second nearest, at a cost of ‖x−μ_a‖² − ‖x−μ_r‖²
= 2‖v‖·(counterfactual distance): a centre whose points sit on fences costs little. A far point,
drawn like in k-means++, shows where a centre is missing. Gain less cost picks the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks import to_numpy
from wellsep.cluster.base import NoProgress
from wellsep.cluster.local_search import Budget, History
from wellsep.compute.engine import merge
from wellsep.compute.loop import means
from wellsep.compute.nearest import NearestTwo
from wellsep.compute.points import Points, PointSet, RowValues, label_sums
from wellsep.compute.seeding import center_distances, draw_far_points

# Found on sets that the study of the defaults does not use; see experiments/counterfactual.
N_CANDIDATES = 2  # far points looked at for one move; more of them propose the same move for ever
PACE = 2.0  # a move goes on while so many iterations like the last one would make it pay
N_TRIALS = 12  # Lloyd iterations a move may take at most
PATIENCE = 8  # moves in a row that may fail before the search ends
_WORTH = 1e-6  # relative gain that counts
_TIE = 1e-10  # relative difference that does not


class Search(NamedTuple):
    """Where the search for better places ended; centres in the frame of the points."""

    centers: np.ndarray
    inertia: float
    n_moves: int  # moves that were kept
    n_iter: int  # passes over the data


class Found(NamedTuple):
    """The two nearest centres of each point, where the points are and on the host."""

    there: NearestTwo
    host: NearestTwo

    @property
    def near(self) -> Any:
        return self.there.near


class Seen(NamedTuple):
    """What one look at some points adds up to."""

    inertia: float
    sums: np.ndarray  # (k, d) weighted sum of each centre's points
    mass: np.ndarray  # (k,)


class State(NamedTuple):
    """Centres and what one look at all points tells of them."""

    centers: np.ndarray
    found: RowValues  # Found of each point
    totals: np.ndarray  # the inertia of each portion of the points
    inertia: float
    sums: np.ndarray
    mass: np.ndarray


def relocate(
    points: PointSet,
    centers: np.ndarray,
    *,
    n_moves: int,
    random_state: np.random.RandomState,
    progress: NoProgress,
    budget: Budget | None = None,
    history: History | None = None,
) -> Search:
    """Try up to ``n_moves`` relocations, each kept only if the inertia falls."""
    budget, history = budget or Budget(), history or History()
    state = look(points, centers)
    kept, n_iter, failures = 0, 1, 0
    a_pass = float(points.n * len(centers))
    history.add(a_pass, budget.seconds, state.inertia)
    for _ in range(n_moves):
        progress.begin("move")
        trial, passes = _try(points, state, random_state)
        n_iter += passes
        if trial.inertia < state.inertia * (1.0 - _WORTH):
            state, kept, failures = trial, kept + 1, 0
        else:
            failures += 1
        history.add(a_pass * n_iter, budget.seconds, state.inertia)
        progress.end(points, state.centers)
        if progress.stopped or failures == PATIENCE or budget.late:
            break
    return Search(state.centers, state.inertia, kept, n_iter)


def removal_costs(points: Points, found: NearestTwo, n_clusters: int) -> np.ndarray:
    """What the inertia would rise by if each centre were taken away, all others standing still."""
    slack = found.far - found.near
    return np.bincount(
        found.first,
        weights=slack if points.weights is None else slack * points.weights,
        minlength=n_clusters,
    )


def look(points: PointSet, centers: np.ndarray) -> State:
    found = points.values(_find, centers)
    parts = points.each(_see, len(centers), beside=[found], added=True)
    totals = np.array([part.inertia for part in parts])
    every = merge(parts)
    return State(centers, found, totals, float(totals.sum()), every.sums, every.mass)


def _find(points: Points, centers: np.ndarray) -> Found:
    there = points.space.nearest_two(centers, points.norms)
    return Found(there, NearestTwo(*(to_numpy(part) for part in there)))


def _see(points: Points, found: Found, n_clusters: int) -> Seen:
    near = found.host.near.astype(np.float64, copy=False)
    inertia = float(near.sum() if points.weights is None else near @ points.weights)
    return Seen(inertia, *label_sums(points, found.there, n_clusters))


def _try(points: PointSet, state: State, random_state: np.random.RandomState) -> tuple[State, int]:
    """A relocation, followed by Lloyd iterations until it pays or is not going to."""
    target = state.inertia * (1.0 - _WORTH)
    trial, fall, passes = look(points, propose(points, state, random_state)), np.inf, 1
    while trial.inertia >= target and fall * PACE >= trial.inertia - target and passes < N_TRIALS:
        after = look(points, means(points, trial.sums, trial.mass, trial.centers))
        trial, fall, passes = after, trial.inertia - after.inertia, passes + 1
    return trial, passes


def propose(points: PointSet, state: State, random_state: np.random.RandomState) -> np.ndarray:
    """Centres after the most promising relocation, each on the mean of the points it then has."""
    k = len(state.centers)
    far = draw_far_points(points, state.found, state.totals, N_CANDIDATES, random_state)
    beside = [state.found, points.values(_to_newcomers, far)]
    base, offers = points.fold(_offers, k, beside=beside)
    best, spared = choose(offers, base)
    sums, mass = points.fold(_handed_over, best, spared, k, beside=beside)
    return settle(points, state, sums, mass)


def _to_newcomers(points: Points, far: np.ndarray) -> np.ndarray:
    """(m, n) squared distances on the host."""
    return to_numpy(center_distances(points, far))


def _offers(
    points: Points, found: Found, table: np.ndarray, k: int
) -> tuple[np.ndarray, list[tuple[float, np.ndarray]]]:
    """(k,) the cost of sparing each centre, and what each newcomer offers."""
    offers = [offer(points, found.host, distances, k) for distances in table]
    return removal_costs(points, found.host, k), offers


def _handed_over(
    points: Points, found: Found, table: np.ndarray, best: int, spared: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    return handed_over(points, found.host, table[best], spared, k)


def offer(
    points: Points, found: NearestTwo, distances: np.ndarray, k: int
) -> tuple[float, np.ndarray]:
    """Gain of a newcomer, and (k,) what it takes off the cost of sparing each centre."""
    reach = np.flatnonzero(distances < found.far)  # only these points notice the newcomer
    near, far, there = found.near[reach], found.far[reach], distances[reach]
    gain = np.maximum(near - there, 0.0)
    relief = far - np.maximum(near, there)  # its points have the newcomer to fall back on
    if points.weights is not None:
        gain, relief = gain * points.weights[reach], relief * points.weights[reach]
    return float(gain.sum()), np.bincount(found.first[reach], weights=relief, minlength=k)


def choose(offers: list[tuple[float, np.ndarray]], base: np.ndarray) -> tuple[int, int]:
    """The newcomer whose gain exceeds most the least cost of sparing a centre, and that centre."""
    costs = [base - relief for _, relief in offers]
    # Two centres that share a cluster equally cost the same but for rounding: take the first.
    slack = _TIE * float(base.max())
    spared = [_first_least(cost, slack) for cost in costs]
    values = [gain - cost[r] for (gain, _), cost, r in zip(offers, costs, spared, strict=True)]
    best = _first_least(-np.array(values), slack)
    return best, spared[best]


def _first_least(values: np.ndarray, slack: float) -> int:
    return int(np.flatnonzero(values <= values.min() + slack)[0])


def handed_over(
    points: Points, found: NearestTwo, distances: np.ndarray, spared: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Changes of all sums (k, d) and masses (k,) if a centre moves where ``distances`` begin."""
    reach = np.flatnonzero(distances < found.near)
    own = np.flatnonzero(found.first == spared)
    leaving = own[distances[own] >= found.far[own]]
    coming = reach[found.first[reach] != spared]
    changed = np.concatenate([leaving, coming])
    after = np.concatenate([found.second[leaving], np.full(len(coming), spared)])
    before = found.first[changed]
    space = points.space
    codes = np.stack([after, before], axis=1).astype(np.int64)
    weights = np.ones(len(changed)) if points.weights is None else points.weights[changed]
    signs = weights[:, None] * np.array([1.0, -1.0])
    rows = space.with_rows(space.take(changed))
    mass = np.bincount(after, weights=weights, minlength=k)
    return (
        rows.code_sums(space.asarray(codes), space.beside(signs), k),
        mass - np.bincount(before, weights=weights, minlength=k),
    )


def settle(points: PointSet, state: State, sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Each centre on the mean of the points it has after these changes."""
    mass = state.mass + mass
    # Differences of sums leave crumbs of weight where nothing is left.
    mass[mass < 1e-9 * state.mass.max()] = 0.0
    return means(points, state.sums + sums, mass, state.centers)
