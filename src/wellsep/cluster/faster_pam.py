"""FasterPAM: k medoids whose summed distance no single exchange lowers.

Schubert & Rousseeuw (2021), "Fast and eager k-medoids clustering", Information Systems 101. An
exchange is made as soon as it is found, and one pass over the objects tells what a candidate would
bring in the place of every medoid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import budget_bytes, cut_rows
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space

FEWEST, AT_ONCE = 4, 64  # candidates that are looked at together, after an exchange and at most
GAIN = 1e-12  # share of the cost that an exchange must bring
FEW_MEDOIDS = 12  # up to which a product with all memberships is the faster way to add up
RowsOf = Callable[[Any], np.ndarray]  # objects, by number or slice → (b, n) distances to all


class Medoids(NamedTuple):
    """A choice of medoids that no exchange improves, or the last one that was reached."""

    medoids: np.ndarray  # (k,)
    labels: np.ndarray  # (n,)
    cost: float
    n_rounds: int
    ended: bool  # False where the rounds were used up


class _State:
    """Nearest medoid of every object, and the distance to the second nearest."""

    def __init__(self, rows_of: RowsOf, medoids: np.ndarray) -> None:
        self.medoids, self.table = medoids.copy(), rows_of(medoids)  # (k,), (k, n)
        n = self.table.shape[1]
        self.is_medoid = np.zeros(n, dtype=bool)
        self.is_medoid[medoids] = True
        self.first = np.zeros(n, dtype=np.intp)
        self.near, self.second = np.empty(n), np.empty(n)
        self.members = np.zeros((n, len(medoids)))
        self.settle(np.arange(n))

    def settle(self, objects: np.ndarray) -> None:
        """Look up the two nearest medoids of these objects, and add up the cost anew."""
        table, columns = self.table[:, objects], np.arange(len(objects))
        first = table.argmin(axis=0)
        self.members[objects, self.first[objects]] = 0.0
        self.members[objects, first] = 1.0
        self.first[objects], self.near[objects] = first, table[first, columns]
        table[first, columns] = np.inf
        self.second[objects] = table.min(axis=0)
        self.cost = float(self.near.sum())
        self.near_sums = np.bincount(self.first, self.near, len(self.medoids))
        self.second_sums = np.bincount(self.first, self.second, len(self.medoids))

    def swap(self, medoid: int, candidate: int, row: np.ndarray) -> None:
        self.is_medoid[[self.medoids[medoid], candidate]] = False, True
        concerned = (self.table[medoid] <= self.second) | (row <= self.second)
        self.medoids[medoid], self.table[medoid] = candidate, row
        self.settle(np.flatnonzero(concerned))

    def changes(self, rows: np.ndarray) -> np.ndarray:
        """(b, k) how the cost changes where a candidate takes the place of a medoid.

        An object of that medoid goes to the candidate or to its second nearest, whichever is
        nearer. Any other object goes to the candidate if it is nearer than its medoid. With d the
        distance to the candidate the former is at min(d, second), which is clip(d, near, second)
        less what the latter gains, near − min(d, near).
        """
        (b, n), k = rows.shape, len(self.medoids)
        if k == 1:
            return rows.sum(axis=1, keepdims=True) - self.cost
        if k <= FEW_MEDOIDS:
            gain = np.minimum(rows, self.near).sum(axis=1) - self.cost
            changes = np.clip(rows, self.near, self.second) @ self.members - self.near_sums
        else:  # few objects are nearer to a candidate than to their second nearest medoid
            entries = np.flatnonzero(rows < self.second)
            candidate, objects = np.divmod(entries, n)
            distance, near = rows.reshape(-1)[entries], self.near[objects]
            gain = np.bincount(candidate, np.minimum(distance - near, 0.0), b)
            saved = np.maximum(distance, near) - self.second[objects]
            cells = np.bincount(candidate * k + self.first[objects], saved, b * k)
            changes = cells.reshape(b, k) + (self.second_sums - self.near_sums)
        changes += gain[:, None]
        return changes


def faster_pam(rows_of: RowsOf, n: int, start: np.ndarray, max_rounds: int) -> Medoids:
    """Exchange medoids from a start until n candidates in a row bring nothing."""
    state = _State(rows_of, start)
    idle, visited, place, width = 0, 0, 0, FEWEST
    while idle < n and visited < max_rounds * n:
        block = slice(place, min(place + width, place + n - idle, n))
        rows = rows_of(block)
        changes = state.changes(rows)
        changes[state.is_medoid[block]] = np.inf
        better = np.flatnonzero(changes.min(axis=1) < -GAIN * max(state.cost, 0.0))
        if len(better):
            chosen = int(better[0])
            state.swap(int(changes[chosen].argmin()), place + chosen, rows[chosen])
            idle, seen = 0, chosen + 1
            width = FEWEST  # the others of the block are looked at anew
        else:
            idle, seen = idle + len(rows), len(rows)
            width = min(2 * width, AT_ONCE)
        visited, place = visited + seen, (place + seen) % n
    labels = state.first.astype(np.int32)
    labels[state.medoids] = np.arange(len(state.medoids))  # also where another one coincides
    return Medoids(state.medoids, labels, state.cost, -(-visited // n), idle >= n)


def build(rows_of: RowsOf, n: int, k: int) -> np.ndarray:
    """Start of PAM: one after the other the object that lowers the cost most."""
    chosen: list[int] = []
    near = np.full(n, np.inf)
    for _ in range(k):
        best, low = -1, np.inf
        for rows in cut_rows(n, AT_ONCE):
            cost = np.minimum(rows_of(rows), near).sum(axis=1)
            cost[np.isin(np.arange(rows.start, rows.stop), chosen)] = np.inf
            least = int(cost.argmin())
            if cost[least] < low:
                best, low = rows.start + least, float(cost[least])
        chosen.append(best)
        near = np.minimum(near, rows_of(np.array([best]))[0])
    return np.array(chosen)


def distance_rows(space: Space, metric: object, *, keep: bool = True) -> RowsOf:
    """Distances of some objects to all; ``keep``: the matrix, where it fits the memory budget."""
    keep = keep and 8.0 * space.n**2 <= budget_bytes()
    if space.own_metric is not None and keep:
        whole = np.empty((space.n, space.n))
        for rows in cut_rows(space.n, space.block_rows):
            whole[rows] = space.X.block(rows, slice(0, space.n))
        np.fill_diagonal(whole, 0.0)
        return lambda objects: whole[objects]
    pairs = Pairs(space, metric, wide=True)
    blocks = [np.arange(rows.start, rows.stop) for rows in pairs.blocks]

    def rows_of(objects: Any) -> np.ndarray:
        objects = np.arange(space.n)[objects]
        tables = [np.asarray(pairs.block(objects, others), np.float64) for others in blocks]
        table = np.concatenate(tables, axis=1)
        table[np.arange(len(objects)), objects] = 0.0
        return table

    if keep:
        whole = np.concatenate([rows_of(objects) for objects in blocks])
        return lambda objects: whole[objects]
    return rows_of
