"""Relocations: margins tell which centre is spared most easily and where it would serve better.

Without centre r each of its points falls to the second nearest, at a cost of ‖x−μ_a‖² − ‖x−μ_r‖²
= 2‖v‖·(counterfactual distance): a centre whose points sit on fences costs little. A far point,
drawn like in k-means++, shows where a centre is missing. Gain less cost picks the pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from wellsep._checks import to_numpy
from wellsep.cluster.lloyd import means
from wellsep.cluster.points import Points, label_sums
from wellsep.cluster.seeding import draw_far, row_distances
from wellsep.cluster.tasks import NoTasks
from wellsep.compute.nearest import NearestTwo, code_sums, is_host, nearest_two, to_like

# Found on sets that the study of the defaults does not use; see experiments/counterfactual.
N_CANDIDATES = 2  # far points looked at for one move; more of them propose the same move for ever
PACE = 2.0  # a move goes on while so many iterations like the last one would make it pay
N_TRIALS = 12  # Lloyd iterations a move may take at most
PATIENCE = 8  # moves in a row that may fail before the search ends
_WORTH = 1e-6  # relative gain that counts


class Search(NamedTuple):
    """Where the search for better places ended; centres in the frame of the points."""

    centers: np.ndarray
    inertia: float
    n_moves: int  # moves that were kept
    n_iter: int  # passes over the data


class _State(NamedTuple):
    centers: np.ndarray
    found: NearestTwo  # on the host
    inertia: float
    sums: np.ndarray  # (k, d) weighted sum of each centre's points
    mass: np.ndarray  # (k,)


def relocate(
    points: Points,
    centers: np.ndarray,
    *,
    n_moves: int,
    random_state: np.random.RandomState,
    tasks: NoTasks,
) -> Search:
    """Try up to ``n_moves`` relocations, each kept only if the inertia falls."""
    state = _look(points, centers)
    kept, n_iter, failures = 0, 1, 0
    for _ in range(n_moves):
        tasks.begin("move")
        trial, passes = _try(points, state, random_state)
        n_iter += passes
        if trial.inertia < state.inertia * (1.0 - _WORTH):
            state, kept, failures = trial, kept + 1, 0
        else:
            failures += 1
        tasks.end(points, state.centers)
        if tasks.stopped or failures == PATIENCE:
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


def _look(points: Points, centers: np.ndarray) -> _State:
    found = nearest_two(points.values, centers, points.norms)
    sums, mass = label_sums(points, found.first, len(centers))
    host = NearestTwo(*(to_numpy(part) for part in found))
    near = host.near.astype(np.float64, copy=False)
    inertia = float(near.sum() if points.weights is None else near @ points.weights)
    return _State(centers, host, inertia, sums, mass)


def _try(points: Points, state: _State, random_state: np.random.RandomState) -> tuple[_State, int]:
    """A relocation, followed by Lloyd iterations until it pays or is not going to."""
    target = state.inertia * (1.0 - _WORTH)
    trial, fall, passes = _look(points, _propose(points, state, random_state)), np.inf, 1
    while trial.inertia >= target and fall * PACE >= trial.inertia - target and passes < N_TRIALS:
        after = _look(points, means(points, trial.sums, trial.mass, trial.centers))
        trial, fall, passes = after, trial.inertia - after.inertia, passes + 1
    return trial, passes


def _propose(points: Points, state: _State, random_state: np.random.RandomState) -> np.ndarray:
    """Centres after the most promising relocation, each on the mean of the points it then has."""
    near, far = state.found.near, state.found.far
    closest = near if is_host(points.values) else to_like(near, points.values)
    rows = draw_far(points, closest, N_CANDIDATES, random_state)
    base = removal_costs(points, state.found, len(state.centers))
    offers = []
    for distances in to_numpy(row_distances(points, rows)):
        reach = np.flatnonzero(distances < far)  # only these points notice the newcomer
        offers.append((*_judge(points, state.found, base, distances[reach], reach), distances))
    _, spared, distances = max(offers, key=lambda offer: offer[0])

    reach = np.flatnonzero(distances < near)
    own = np.flatnonzero(state.found.first == spared)
    leaving = own[distances[own] >= far[own]]
    coming = reach[state.found.first[reach] != spared]
    changed = np.concatenate([leaving, coming])
    after = np.concatenate([state.found.second[leaving], np.full(len(coming), spared)])
    return _means_after(points, state, changed, after)


def _judge(
    points: Points, found: NearestTwo, base: np.ndarray, distances: np.ndarray, reach: np.ndarray
) -> tuple[float, int]:
    """Gain of a newcomer less the least cost of sparing a centre, and that centre."""
    first, near, far = found.first[reach], found.near[reach], found.far[reach]
    gain = np.maximum(near - distances, 0.0)
    relief = far - np.maximum(near, distances)  # its points have the newcomer to fall back on
    if points.weights is not None:
        gain, relief = gain * points.weights[reach], relief * points.weights[reach]
    costs = base - np.bincount(first, weights=relief, minlength=len(base))
    spared = int(np.argmin(costs))
    return float(gain.sum() - costs[spared]), spared


def _means_after(
    points: Points, state: _State, changed: np.ndarray, after: np.ndarray
) -> np.ndarray:
    values = points.values
    codes = np.stack([after, state.found.first[changed]], axis=1).astype(np.int32)
    weights = np.ones(len(changed)) if points.weights is None else points.weights[changed]
    signs = weights[:, None] * np.array([1.0, -1.0])
    if is_host(values):
        rows = values[changed]
    else:
        index = to_like(changed, values, integer=True)
        rows = array_namespace(values).take(values, index, axis=0)
        codes, signs = to_like(codes, values, integer=True), to_like(signs, values)
    k = len(state.centers)
    sums = state.sums + code_sums(rows, codes, signs, k)
    mass = state.mass + np.bincount(after, weights=weights, minlength=k)
    mass -= np.bincount(state.found.first[changed], weights=weights, minlength=k)
    # Differences of sums leave crumbs of weight where nothing is left.
    mass[mass < 1e-9 * state.mass.max()] = 0.0
    return means(points, sums, mass, state.centers)
