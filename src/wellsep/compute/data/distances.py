"""Spaces without coordinates: distances come in blocks, and nothing larger is made."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from wellsep.compute.data.opening import Space, as_space, open_space, to_torch
from wellsep.compute.data.safe_units import safe_unit
from wellsep.compute.engine.threads import effective_jobs
from wellsep.compute.metrics.table import PRECOMPUTED, Prepared, find
from wellsep.distances.base import PairSpace


class DistanceSpace(Space):
    """Objects without coordinates: X is a ``PairSpace``, which gives distances by blocks."""

    @cached_property
    def shift(self) -> np.ndarray:
        raise TypeError("X must have coordinates where centres are computed, got distances.")

    @property
    def given(self) -> Any:
        return self.X if self.unit == 1 else self.X.scaled(self.unit)

    def distance_rows(self) -> Any:
        return self.X

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


def open_distances(X: PairSpace, device: Any, n_jobs: int | None) -> Space:
    if not X.complete:
        raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
    if device is not None and device != "cpu":
        # A card holds the whole matrix: its passes take blocks of a tensor.
        made = open_space(to_torch(np.asarray(X), device), n_jobs=n_jobs)
        return replace(made, own_metric=PRECOMPUTED, _views={})
    unit = safe_unit(X.largest, X.dtype)
    scaled = X if unit == 1 else X.scaled(1 / unit)
    return as_space(scaled, effective_jobs(n_jobs), unit)
