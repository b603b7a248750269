"""Spaces without coordinates: distances come in blocks, and nothing larger is made."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from wellsep.compute.data.rows import Space
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.table import find


class DistanceSpace(Space):
    """Objects without coordinates: X is a ``PairSpace``, which gives distances by blocks."""

    @cached_property
    def shift(self) -> np.ndarray:
        raise TypeError("X must have coordinates where centres are computed, got distances.")

    @property
    def given(self) -> Any:
        return self.X if self.unit == 1 else self.X.scaled(self.unit)

    def prepared(self, metric: Any, *, wide: bool = False) -> Prepared:
        entry = find(metric)
        if entry.coordinates:
            raise TypeError(
                f"metric must be {self.own_metric!r} for a space of distances, got {entry.name!r}."
            )
        return Prepared(self.X)

    def some(self, objects: np.ndarray) -> Any:
        return self.given.take(objects)

    def with_rows(self, X: Any) -> Space:
        raise TypeError("X must have coordinates where rows are added, got distances.")
