"""The twin of ``search_state.CentreState`` in numba, for dense rows.

It also keeps a lower bound on the distance (not squared) of every point to all but its two nearest
centres. A move then costs what the points near the moved centres cost; most others are passed over
after one comparison.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from wellsep.compute.kmeans.search_state import CentreState

# Infinity is a bound here, so "no NaN" and "no infinity" must not be promised.
FAST = {"reassoc", "contract", "arcp", "nsz"}
BLOCK = 256  # rows of one product


class CompiledState(CentreState):
    """Gives what its reference gives, but for the rounding of sums."""

    arrays = (*CentreState.arrays, "third", "count")

    def recount(self):
        super().recount()
        self.count = np.bincount(self.first, self.weights > 0.0, self.k)

    def move(self, codes, places):
        self.work += float(self.points.n * len(codes))
        way = np.zeros(self.k)
        way[codes] = np.sqrt(((self.centers[codes] - places) ** 2).sum(axis=1))
        self.centers[codes] = places
        self.touched[codes] = True
        _move(
            self.points.X, self.norms, self.weights, self.centers, self.first, self.second,
            self.near, self.far, self.third, self.sums, self.mass, self.count, self.touched,
            self.slack, np.asarray(codes, dtype=np.int64), way,
        )  # fmt: skip
        self.cost = float(self.near @ self.weights)

    def _look(self):
        # Products of rows are exact to this share of the squared lengths.
        self.slack = 4.0 * float(np.finfo(self.points.X.dtype).eps)
        self.third = np.full(self.points.n, np.inf)
        _scan(
            self.points.X, self.norms, self.centers, np.arange(self.points.n), self.first,
            self.second, self.near, self.far, self.third, self.slack,
        )  # fmt: skip


