"""The search of ``CFMeans`` on tensors: many proposals at once, and the state stays on the device.

One product gives the distances from all far points drawn to all points; what each of them would
gain in the place of each centre is added up there, and only that table, proposals × centres,
comes to the host. The best proposals that touch different clusters are made together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.cluster.cf_means.centre_search import WORTH, Budget, Found, History
from wellsep.cluster.estimator import NoProgress
from wellsep.compute.kmeans.prepared_points import Points

PROPOSALS = 64  # far points looked at together
STEPS = 3  # Lloyd steps after which moves must have paid
PATIENCE = 4  # batches in a row that may fail


class _State(NamedTuple):
    centers: np.ndarray
    nearest: Any  # the two nearest centres of each point, on the device
    cost: float


def device_search(
    points: Points,
    start: np.ndarray,
    budget: Budget,
    random_state: np.random.RandomState,
    progress: NoProgress,
    history: History,
) -> Found:
    """Look for lower costs from given centres; every trial is a batch of proposals."""
    state, work, n_moves, failures = _look(points, start), 1.0, 0, 0
    a_pass = float(points.n * len(start))
    history.add(a_pass, budget.seconds, state.cost)
    while failures < PATIENCE and not budget.spent and not progress.stopped and state.cost > 0.0:
        progress.begin("move")
        budget.moves += 1
        table, far = proposal_values(points, state.nearest, len(start), random_state)
        moved = state.centers.copy()
        pairs = _disjoint(table, far.owners) if failures < PATIENCE - 1 else _best(table)
        for row, code in pairs:
            moved[code] = far.places[row]
        trial, passes = _settled(points, _look(points, moved)) if pairs else (state, 0)
        work += len(table) / len(start) + passes
        if trial.cost < state.cost * (1.0 - WORTH):
            state, failures, n_moves = trial, 0, n_moves + len(pairs)
        else:
            failures += 1
        history.add(a_pass * work, budget.seconds, state.cost)
        progress.end(points, state.centers)
    labels = to_numpy(state.nearest.first)
    return Found(state.centers, labels, state.cost, n_moves, a_pass * work)


class _Far(NamedTuple):
    places: np.ndarray  # (b, d)
    owners: np.ndarray  # (b,) the centre that each was nearest to


def proposal_values(
    points: Points, nearest: Any, k: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, _Far]:
    """(b, k) what the cost falls by exactly if centre r jumps to far point z, others fixed."""
    import torch

    weights = points.device_pull
    mass = nearest.near if weights is None else nearest.near * weights
    rows, _ = points.rows_at_shares(mass, random_state.uniform(size=PROPOSALS))
    rows = np.unique(rows)
    far = _Far(points.take(rows), to_numpy(nearest.first[torch.as_tensor(rows)]).astype(np.int64))
    X, norms = points.X, points.norms
    places = torch.as_tensor(far.places, dtype=X.dtype, device=X.device)
    lengths = (places * places).sum(dim=1)
    double = {"dtype": torch.float64, "device": X.device}
    gain, loss = torch.zeros(len(rows), **double), torch.zeros(k, **double)
    relief = torch.zeros((len(rows), k), **double)
    for cut in points.device_blocks(max(len(rows), points.X.shape[1])):
        first = nearest.first[cut].long()
        near, beyond = nearest.near[cut].double(), nearest.far[cut].double()
        unit = torch.ones_like(near) if weights is None else weights[cut].double()
        squares = (norms[cut, None] + lengths - 2.0 * (X[cut] @ places.T)).clamp_(min=0).double().T
        gain += ((near - squares).clamp_(min=0) * unit).sum(dim=1)
        loss.index_add_(0, first, (beyond - near) * unit)
        saved = (beyond - torch.maximum(squares, near)).clamp_(min=0) * unit
        relief.index_add_(1, first, saved)
    return to_numpy(gain[:, None] - loss + relief), far


def _best(table: np.ndarray) -> list[tuple[int, int]]:
    row, code = divmod(int(table.argmax()), table.shape[1])
    return [(row, code)]


def _disjoint(table: np.ndarray, owners: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of far point and leaving centre with gains, greatest first, no cluster twice."""
    taken: set[int] = set()
    pairs: list[tuple[int, int]] = []
    best = table.max(axis=1)
    for row in np.argsort(-best, kind="stable"):
        free = table[row].copy()
        free[list(taken)] = -np.inf
        code = int(free.argmax())
        if free[code] <= 0.0 or int(owners[row]) in taken or code == owners[row]:
            continue
        taken |= {code, int(owners[row])}
        pairs.append((int(row), code))
    return pairs or _best(table)


def _look(points: Points, centers: np.ndarray) -> _State:
    nearest = points.nearest_two(centers)
    near: Any = nearest.near if points.device_pull is None else nearest.near * points.device_pull
    return _State(centers, nearest, float(near.double().sum()))


def _settled(points: Points, state: _State) -> tuple[_State, int]:
    for _ in range(STEPS):
        sums, mass = points.label_sums(state.nearest.first, len(state.centers))
        state = _look(points, points.frame.means(sums, mass, state.centers))
    return state, STEPS + 1
