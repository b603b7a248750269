"""FasterPAM: k medoids whose summed distance no single exchange lowers.

Schubert & Rousseeuw (2021), "Fast and eager k-medoids clustering", Information Systems 101. An
exchange is made as soon as it is found, and one pass over the objects tells what a candidate would
bring in the place of every medoid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.engine.threads import budget_bytes, cut_rows
from wellsep.compute.metrics.table import Rows, find, square_lengths

AT_ONCE = 64  # candidates that are looked at together
GAIN = 1e-12  # share of the cost that an exchange must bring
RowsOf = Callable[[np.ndarray], np.ndarray]  # objects → (b, n) distances to all


class Medoids(NamedTuple):
    """A choice of medoids that no exchange improves, or the last one that was reached."""

    medoids: np.ndarray  # (k,)
    labels: np.ndarray  # (n,)
    cost: float
    n_rounds: int
    ended: bool  # False where the rounds were used up


class _State:
    """Nearest and second nearest medoid of every object."""

    def __init__(self, rows_of: RowsOf, medoids: np.ndarray) -> None:
        self.medoids, self.table = medoids.copy(), rows_of(medoids)
        self.settle()

    def settle(self) -> None:
        table, at = self.table, np.arange(self.table.shape[1])
        self.first = table.argmin(axis=0)
        self.near = table[self.first, at]
        if len(table) > 1:
            held = table[self.first, at].copy()
            table[self.first, at] = np.inf
            self.second = table.min(axis=0)
            table[self.first, at] = held
        self.cost = float(self.near.sum())

    def swap(self, medoid: int, candidate: int, row: np.ndarray) -> None:
        self.medoids[medoid], self.table[medoid] = candidate, row
        self.settle()

    def changes(self, rows: np.ndarray) -> np.ndarray:
        """(b, k) how the cost changes where a candidate takes the place of a medoid."""
        if len(self.medoids) == 1:
            change: np.ndarray = rows.sum(axis=1, keepdims=True) - self.cost
            return change
        k = len(self.medoids)
        removal = np.bincount(self.first, self.second - self.near, k)
        shared = np.minimum(rows - self.near, 0.0).sum(axis=1)
        correction = np.where(
            rows < self.near, self.near - self.second, np.minimum(rows - self.second, 0.0)
        )
        members = np.zeros((rows.shape[1], k))
        members[np.arange(rows.shape[1]), self.first] = 1.0
        found: np.ndarray = removal + correction @ members + shared[:, None]
        return found


def faster_pam(rows_of: RowsOf, n: int, start: np.ndarray, max_rounds: int) -> Medoids:
    """Exchange medoids from a start until n candidates in a row bring nothing."""
    state = _State(rows_of, start)
    idle, visited, place = 0, 0, 0
    while idle < n and visited < max_rounds * n:
        block = (place + np.arange(min(AT_ONCE, n - idle))) % n
        rows = rows_of(block)
        done = 0
        while done < len(block):
            changes = state.changes(rows[done:])
            changes[np.isin(block[done:], state.medoids)] = np.inf
            better = np.flatnonzero(changes.min(axis=1) < -GAIN * max(state.cost, 0.0))
            if not len(better):
                idle += len(block) - done
                visited += len(block) - done
                break
            at = done + int(better[0])
            idle, visited = 0, visited + int(better[0]) + 1
            state.swap(int(changes[better[0]].argmin()), int(block[at]), rows[at])
            done = at + 1
        place = int(block[-1]) + 1
    labels = state.first.astype(np.int32)
    labels[state.medoids] = np.arange(len(state.medoids))  # also where another one coincides
    return Medoids(state.medoids, labels, state.cost, -(-visited // n), idle >= n)


def build(rows_of: RowsOf, n: int, k: int) -> np.ndarray:
    """Start of PAM: one after the other the object that lowers the cost most."""
    chosen: list[int] = []
    near = np.full(n, np.inf)
    for _ in range(k):
        best, low = -1, np.inf
        for part in cut_rows(n, AT_ONCE):
            objects = np.arange(part.start, part.stop)
            cost = np.minimum(rows_of(objects), near).sum(axis=1)
            cost[np.isin(objects, chosen)] = np.inf
            at = int(cost.argmin())
            if cost[at] < low:
                best, low = int(objects[at]), float(cost[at])
        chosen.append(best)
        near = np.minimum(near, rows_of(np.array([best]))[0])
    return np.array(chosen)


def distance_rows(space: Space, metric: object, *, keep: bool = True) -> RowsOf:
    """Distances of some objects to all; ``keep``: the matrix, where it fits the memory budget."""
    entry = find(metric)
    X, zero = space.single_rows(entry) if space.own_metric is None else space.prepared(entry)
    square = None if entry.finish is None else square_lengths(X, zero, np)

    def side(at: np.ndarray) -> Rows:
        own = None if zero is None else zero[at]
        return Rows(X[at, :], None if square is None else square[at], own, at)

    blocks = [np.arange(part.start, part.stop) for part in cut_rows(space.n, space.block_rows)]

    def rows_of(objects: np.ndarray) -> np.ndarray:
        left = side(objects)
        parts = [np.asarray(entry.distances(left, side(at), np), np.float64) for at in blocks]
        table = np.concatenate(parts, axis=1)
        table[np.arange(len(objects)), objects] = 0.0
        return table

    if keep and 8.0 * space.n**2 <= budget_bytes():
        whole = np.concatenate([rows_of(at) for at in blocks])
        return lambda objects: whole[objects]
    return rows_of
