"""A sample of rows on Dask, and its distances to all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.compute.engine.dask.chunks import Chunks
from wellsep.compute.engine.dask.engine import OnDask
from wellsep.compute.statistics.sampled_sums import (
    Sample,
    class_masses,
    locate,
    masses,
    sample_sums,
)


class ChunkedRows:
    """Rows, codes and weights of one partition in chunks."""

    def __init__(self, task: OnDask) -> None:
        self.chunks = task.space
        self.codes: Any = task.partitions.codes[0]
        self.k = len(task.partitions.classes[0])
        self.weights, self.weighted = task.weights, task.weights is not None

    def class_masses(self) -> np.ndarray:
        return Chunks(self.codes, None).fold(class_masses, self.k, beside=[self.weights])

    def take(self, targets: np.ndarray) -> Sample:
        """The rows at these places of the running sum of weights; only their chunks are read."""
        column = Chunks(self.codes, None)
        totals = np.array(column.each(_total, beside=[self.weights], whole=True))
        course = np.cumsum(totals)
        last = int(np.flatnonzero(totals)[-1])
        owner = np.minimum(np.searchsorted(course, targets, side="right"), last)
        before = course - totals
        wanted = {
            int(self.chunks.starts[c]): targets[owner == c] - before[c] for c in np.unique(owner)
        }
        parts = self.chunks.each(
            _take,
            wanted,
            beside=[self.codes, self.weights],
            which=np.unique(owner).tolist(),
            whole=True,
        )
        return Sample(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def sums(self, sample: np.ndarray, metric: Any) -> np.ndarray:
        return self.chunks.fold(
            sample_sums,
            sample,
            self.k,
            metric,
            self.chunks.reference,
            beside=[self.codes, self.weights],
            checked=True,
        )


def _total(codes: np.ndarray, weights: np.ndarray | None, start: int) -> float:
    return float(masses(codes, weights).sum())


def _take(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    wanted: dict[int, np.ndarray],
    start: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mass = masses(codes, weights)
    at = locate(mass, wanted[start])
    return X[at], codes[at], mass[at]
