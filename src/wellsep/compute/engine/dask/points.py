"""Points in the chunks of a dask array: block functions run on the workers, sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from wellsep.compute.engine.dask.chunks import Chunks
from wellsep.compute.kmeans.prepared_points import (
    LISTED,
    Block,
    Frame,
    Leading,
    Points,
    draw_key,
    prepare,
    prepare_directions,
)
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.table import COSINE
from wellsep.compute.statistics.cluster_moments import Moments


@dataclass(frozen=True, eq=False)
class RowValues:
    """A value or record for each point, made again wherever a block needs it."""

    function: Block
    beside: Sequence[RowValues] = ()
    given: tuple[Any, ...] = ()

    def of(self, points: Points) -> Any:
        """The values of the points of one block."""
        return self.function(points, *(values.of(points) for values in self.beside), *self.given)

    @property
    def first(self) -> RowValues:
        """The nearest centres in a record of them."""
        return RowValues(_first, [self])


def _made_again(method: Block) -> Any:
    """Give a method whose values are lazy: made for the points of each block that needs them."""
    return lambda points, *given: points.values(method, *given)


def _added_up(method: Block) -> Any:
    """Give a method that adds up what it returns for the points and the values of each block."""
    return lambda points, values, *given: points.fold(method, *given, beside=[values])


@dataclass(frozen=True, eq=False)
class ChunkedPoints(Points):
    """The points of a dask array; X are its chunks. Labels and distances stay on the workers."""

    n_zero: int = 0  # rows without a direction

    in_chunks: ClassVar[bool] = True

    @property
    def like(self) -> np.ndarray:
        return np.empty((0, self.X.d), dtype=self.X.dtype)

    @property
    def any_zero(self) -> bool:
        return self.n_zero > 0

    @cached_property
    def pull(self) -> np.ndarray | None:
        if self.any_zero:
            pull = attrgetter("pull_or_ones")
            pulls = self.X.each(_on_points, pull, self.frame, (), (), beside=[self.weights])
            return np.concatenate(pulls)
        if self.weights is None:
            return None
        return np.concatenate(replace(self.X, array=self.weights).each(_weights))

    def fold(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> Any:
        return self.X.fold(_on_points, function, self.frame, beside, given, beside=[self.weights])

    def values(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> RowValues:
        return RowValues(function, beside, given)

    def publish(self, values: RowValues, dtype: Any, width: int | None = None) -> Any:
        return self.X.lazy(
            _on_points, _itself, self.frame, [values], (dtype,), beside=[None], dtype=dtype,
            width=width,
        )  # fmt: skip

    def take(self, rows: np.ndarray) -> np.ndarray:
        some = prepare(self.X.take(rows), None, self.frame.metric, self.frame)
        return some.take(np.arange(len(rows)))

    assign = _made_again(Points.assign)
    nearest_two = _made_again(Points.nearest_two)
    distances = _made_again(Points.distances)
    inertia = _added_up(Points.inertia)
    label_sums = _added_up(Points.label_sums)
    label_counts = _added_up(Points.label_counts)
    farthest = _added_up(Points.farthest)

    def random_rows(self, size: int, random_state: np.random.RandomState) -> np.ndarray:
        if self.n <= LISTED:
            return super().random_rows(size, random_state)
        return self.fold(_draw_weights, draw_key(random_state), size).numbers


def _first(points: Points, nearest: Any) -> np.ndarray:
    return nearest.first


def _draw_weights(points: Points, key: int, wanted: int) -> Leading:
    return points.leading_draw(points.pull_or_ones, key, wanted)


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
    return RowValues(function, beside, given).of(points)


def _itself(points: Points, values: np.ndarray, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)


def _weights(weights: np.ndarray, start: int) -> np.ndarray:
    return weights


def prepare_chunks(
    chunks: Chunks, weights: Any = None, metric: str = "euclidean", frame: Frame | None = None
) -> ChunkedPoints:
    """Mean and spread from one pass; the rows stay where they are."""
    if frame is not None:
        return ChunkedPoints(chunks, weights, frame, source=chunks.source)
    reference = np.zeros(chunks.d) if metric == COSINE else chunks.shift
    unit = 1.0 if metric == COSINE else chunks.in_safe_units().unit
    facts, n_zero = chunks.fold(_describe, metric, reference, unit, beside=[weights], checked=True)
    spread = float((facts.square[0] / facts.mass[0]).mean())
    offset = None if metric == COSINE else reference + facts.mean[0] * unit
    made = Frame(metric, offset, spread, unit)
    return ChunkedPoints(chunks, weights, made, source=chunks.source, n_zero=int(n_zero))


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
