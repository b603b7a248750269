"""Points in the chunks of a dask array: block functions run on the workers, sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from wellsep.compute.engine.dask.chunks import Chunks
from wellsep.compute.engine.dask.labels import weigh_chunks
from wellsep.compute.kmeans.prepared_points import (
    Block,
    Frame,
    Points,
    RowValues,
    prepare,
    prepare_directions,
)
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.table import COSINE
from wellsep.compute.statistics.cluster_moments import Moments


@dataclass(frozen=True, eq=False)
class ChunkedPoints:
    """The points of a dask array. No label and no distance leaves a worker."""

    chunks: Chunks
    weights: Any  # dask array (n,) or None
    frame: Frame
    n_zero: int = 0  # rows without a direction

    in_chunks = True

    @property
    def n(self) -> int:
        return self.chunks.n

    @property
    def like(self) -> np.ndarray:
        return np.empty((0, self.chunks.d), dtype=self.chunks.dtype)

    @property
    def source(self) -> Any:
        return self.chunks.source

    @property
    def any_zero(self) -> bool:
        return self.n_zero > 0

    def pulls(self) -> np.ndarray | None:
        if self.any_zero:
            pull = attrgetter("pull_or_ones")
            pulls = self.chunks.each(_on_points, pull, self.frame, (), (), beside=[self.weights])
            return np.concatenate(pulls)
        if self.weights is None:
            return None
        return np.concatenate(replace(self.chunks, array=self.weights).each(_weights))

    def fold(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> Any:
        return self.chunks.fold(
            _on_points, function, self.frame, beside, given, beside=[self.weights]
        )

    def values(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> RowValues:
        return RowValues(None, function, beside, given)

    def publish(self, values: RowValues, dtype: Any, width: int | None = None) -> Any:
        return self.chunks.lazy(
            _on_points, _itself, self.frame, [values], (dtype,), beside=[None], dtype=dtype,
            width=width,
        )  # fmt: skip

    def take(self, rows: np.ndarray) -> np.ndarray:
        some = prepare(self.chunks.take(rows), None, self.frame.metric, self.frame)
        return some.take(np.arange(len(rows)))


def _on_points(
    X: np.ndarray,
    weights: np.ndarray | None,
    function: Block,
    frame: Frame,
    beside: Sequence[RowValues],
    given: tuple[Any, ...],
    start: int,
) -> Any:
    points = prepare(X, weights, frame.metric, frame, start)
    return points.fold(function, *given, beside=beside)


def _itself(points: Points, values: np.ndarray, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)


def _weights(weights: np.ndarray, start: int) -> np.ndarray:
    return weights


def prepare_chunks(
    chunks: Chunks, weights: Any = None, metric: str = "euclidean", frame: Frame | None = None
) -> ChunkedPoints:
    """Mean and spread from one pass; the rows stay where they are."""
    if isinstance(weights, np.ndarray):
        weights = weigh_chunks(weights, chunks)
    if frame is not None:
        return ChunkedPoints(chunks, weights, frame)
    reference = np.zeros(chunks.d) if metric == COSINE else chunks.reference
    unit = 1.0 if metric == COSINE else chunks.in_safe_units().unit
    facts, n_zero = chunks.fold(_describe, metric, reference, unit, beside=[weights], checked=True)
    spread = float((facts.square[0] / facts.mass[0]).mean())
    offset = None if metric == COSINE else reference + facts.mean[0] * unit
    return ChunkedPoints(chunks, weights, Frame(metric, offset, spread, unit), int(n_zero))


def _describe(
    X: np.ndarray,
    weights: np.ndarray | None,
    metric: str,
    reference: np.ndarray,
    unit: float,
    start: int,
) -> tuple[Any, int]:
    """Moments of the rows, and how many have no direction."""
    values, zero = prepare_directions(X) if metric == COSINE else Prepared(X)
    wide = (values * (1 / unit)).astype(np.float64) - reference / unit
    return Moments.of_rows(wide, weights), 0 if zero is None else int(zero.sum())
