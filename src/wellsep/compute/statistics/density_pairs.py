"""Distances of objects under any metric, in the form that trees are grown from."""

from __future__ import annotations

from copy import copy

import numpy as np

from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space
from wellsep.compute.engine.threads import cut_rows
from wellsep.compute.metrics.table import Metric
from wellsep.compute.statistics.spanning_tree import Dissimilarities

AT_ONCE = 16  # pairs; the distances of so many objects to as many others are computed together


class MetricPairs(Dissimilarities):
    """Squared dissimilarities max(distance², core_x, core_y) of some objects ``at`` of a space."""

    def __init__(
        self, space: Space, metric: Metric, at: np.ndarray, core: np.ndarray | None = None
    ) -> None:
        self.distances, self.at, self.core = Pairs(space, metric, wide=True), at, core
        self.limit = -np.inf  # distances of close pairs are right already

    def __len__(self) -> int:
        return len(self.at)

    def take(self, members: np.ndarray, core: np.ndarray | None = None) -> MetricPairs:
        some = copy(self)
        some.at, some.core = self.at[members], core
        return some

    def rough(self, i: np.ndarray | slice, j: np.ndarray | slice) -> np.ndarray:
        table = self.distances.host_block(self.at[i], self.at[j])
        return table * table

    def exact(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        parts = [self.rough(i[p], j[p]).diagonal() for p in cut_rows(len(i), AT_ONCE)]
        squares = np.concatenate([np.empty(0), *parts])
        if self.core is None:
            return squares
        return np.maximum(squares, np.maximum(self.core[i], self.core[j]))
