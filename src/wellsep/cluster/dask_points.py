"""Points in chunks: the Lloyd loop, fitting and predicting where X is on Dask.

Every kernel here is a function of one portion's points and small arrays; what it returns adds up
in float64. No label and no distance leaves a worker.
"""

# mypy: disable-error-code="misc"
# ChunkedPoints stand where Points are expected without being any.

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import dask.array as da
import numpy as np
from sklearn.utils.validation import validate_data

from wellsep._checks import to_numpy
from wellsep.cluster.loop import LloydResult, give_away, means, run
from wellsep.cluster.points import Points, assign, inertia, label_sums, prepare, take_rows
from wellsep.cluster.seeding import center_distances
from wellsep.compute.dask_chunks import Chunks, open_chunks
from wellsep.compute.dask_labels import weigh_chunks
from wellsep.compute.moments import Asked, describe_rows


class Frame(NamedTuple):
    """What makes points of rows, the same for every portion."""

    offset: np.ndarray  # (d,)
    spread: float
    metric: str

    def points(self, X: np.ndarray, weights: np.ndarray | None) -> Points:
        return prepare(X, weights, self.metric, self.offset)._replace(spread=self.spread)


@dataclass(frozen=True, eq=False)
class ChunkedPoints:
    """The points of a dask array; stands where a loop over centres has ``Points``."""

    chunks: Chunks
    weights: Any  # dask array (n,) or None
    shape: Frame
    zeros: int = 0  # rows without a direction

    @property
    def metric(self) -> str:
        return self.shape.metric

    @property
    def spread(self) -> float:
        return self.shape.spread

    @property
    def offset(self) -> np.ndarray | None:
        return self.shape.offset if self.metric == "euclidean" else None

    @cached_property
    def pull(self) -> Any:
        """The weights, 0 for zero rows: a dask array (n,), or None for all one."""
        if not self.zeros:
            return self.weights
        return self.chunks.lazy(_on_points, _pull, self.shape, (), beside=[self.weights])

    @property
    def values(self) -> np.ndarray:
        """No rows, of the float type of the data: what centres are published like."""
        return np.empty((0, self.chunks.d), dtype=self.chunks.dtype)

    frame: ClassVar[Any] = Points.frame
    unframe: ClassVar[Any] = Points.unframe

    def fold(self, kernel: Any, *shared: Any) -> Any:
        """``kernel(points, *shared, start)`` of every portion, added up."""
        return self.chunks.fold(_on_points, kernel, self.shape, shared, beside=[self.weights])

    def each(self, kernel: Any, *shared: Any, which: Any = None, added: bool = False) -> list:
        """The same for each portion by itself, or for some."""
        return self.chunks.each(
            _on_points, kernel, self.shape, shared, beside=[self.weights], which=which, added=added
        )

    def lazy(self, kernel: Any, *shared: Any, dtype: Any, width: int | None = None) -> da.Array:
        return self.chunks.lazy(
            _on_points, kernel, self.shape, shared, beside=[None], dtype=dtype, width=width
        )

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows by number, as points in float64."""
        points = self.shape.points(self.chunks.take(rows), None)
        return take_rows(points, np.arange(len(rows)))


def _on_points(
    X: np.ndarray,
    weights: np.ndarray | None,
    kernel: Any,
    frame: Frame,
    shared: tuple[Any, ...],
    start: int,
) -> Any:
    return kernel(frame.points(X, weights), *shared, start)


def open_fit(estimator: Any, X: Any, *, reset: bool, sized: bool = True) -> Chunks:
    """Chunks of X; number and names of the features kept or compared."""
    chunks = open_chunks(X, sized=sized)
    skeleton = X._meta if hasattr(X, "to_dask_array") else np.empty((1, chunks.d))
    validate_data(estimator, skeleton, reset=reset, skip_check_array=True)
    return chunks


@prepare.register(Chunks)
def _prepare(
    X: Chunks, sample_weight: Any = None, metric: str = "euclidean", offset: Any = None
) -> ChunkedPoints:
    """Mean and spread from one pass; the rows stay where they are."""
    weights = sample_weight
    if isinstance(weights, np.ndarray):
        weights = weigh_chunks(weights, X)
    if offset is not None:
        return ChunkedPoints(X, weights, Frame(offset, np.nan, metric))
    cosine = metric == "cosine"
    reference = np.zeros(X.d) if cosine else X.reference
    facts, zeros = X.fold(_describe, metric, reference, beside=[weights], checked=True)
    spread = float((facts.square[0] / facts.mass[0]).mean())
    return ChunkedPoints(X, weights, Frame(reference + facts.mean[0], spread, metric), int(zeros))


def _describe(
    X: np.ndarray, weights: np.ndarray | None, metric: str, reference: np.ndarray, start: int
) -> tuple[Any, int]:
    """Moments of the rows, and how many have no direction."""
    points = prepare(X, None, metric, reference) if metric == "cosine" else None
    values = X if points is None else points.values
    nothing = np.zeros(0, dtype=np.intp)
    facts = describe_rows(values, None, weights, nothing, reference, Asked(weighted=True))
    return facts.weighted, 0 if points is None or points.zero is None else int(points.zero.sum())


def _pull(points: Points, start: int) -> np.ndarray:
    return np.ones(len(points.values)) if points.pull is None else points.pull


@run.register(ChunkedPoints)
def _run(
    points: ChunkedPoints, centers: np.ndarray, *, max_iter: int = 300, tol: float = 1e-4
) -> LloydResult:
    """Lloyd's loop, one pass an iteration.

    Labels stand still exactly where the sums do: they are added in the same order every time.
    """
    before = None
    n_iter = 0
    for _ in range(max_iter):
        n_iter += 1
        sums, mass = points.fold(_label_sums, centers)
        still = before is not None and np.array_equal(sums, before)
        before = sums.copy()
        moved = update_chunks(points, centers, sums, mass)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if still or shift <= tol * points.spread:
            break
    labels = points.lazy(_labels, centers, dtype=np.int32)
    return LloydResult(centers, labels, float(points.fold(_inertia, centers)), n_iter)


def update_chunks(
    points: ChunkedPoints, centers: np.ndarray, sums: np.ndarray, mass: np.ndarray
) -> np.ndarray:
    """Each centre on the mean of its points; empty clusters on the farthest points of all."""
    empty = np.flatnonzero(mass == 0.0)
    if len(empty):
        far = points.fold(_farthest, centers, len(empty))
        sums, mass = give_away(sums, mass, empty, far.rows, far.codes, far.weights)
    return means(points, sums, mass, centers)  # type: ignore[arg-type]


class Farthest(NamedTuple):
    """The points farthest from their centres, farthest first; of equals the first row."""

    distances: np.ndarray
    numbers: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    wanted: int

    @classmethod
    def merged(cls, parts: list[Farthest]) -> Farthest:
        columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:5]]
        order = np.lexsort((columns[1], -columns[0]))[: parts[0].wanted]
        return cls(*(column[order] for column in columns), parts[0].wanted)  # type: ignore


def _farthest(points: Points, centers: np.ndarray, wanted: int, start: int) -> Farthest:
    found = assign(points, centers)
    weights = np.ones(len(found.near)) if points.pull is None else points.pull
    distances = np.where(weights > 0.0, found.near, 0.0)
    at = np.argsort(-distances, kind="stable")[:wanted]
    at = at[distances[at] > 0.0]
    rows = take_rows(points, at)
    return Farthest(distances[at], start + at, rows, found.first[at], weights[at], wanted)


def _label_sums(points: Points, centers: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    return label_sums(points, assign(points, centers).first, len(centers))


def _inertia(points: Points, centers: np.ndarray, start: int) -> float:
    return inertia(points, centers, assign(points, centers).first)


def _labels(points: Points, centers: np.ndarray, start: int) -> np.ndarray:
    return assign(points, centers).first.astype(np.int32, copy=False)


def _distances(points: Points, centers: np.ndarray, start: int) -> np.ndarray:
    squared = center_distances(points, centers).T
    found = 0.5 * squared if points.metric == "cosine" else np.sqrt(squared)
    return np.ascontiguousarray(found, dtype=points.values.dtype)


def _fitted(estimator: Any, X: Any, sized: bool) -> tuple[ChunkedPoints, np.ndarray]:
    chunks = open_fit(estimator, X, reset=False, sized=sized)
    centers = to_numpy(estimator.cluster_centers_).astype(np.float64)
    points: Any = prepare(chunks, None, estimator._metric, centers.mean(axis=0))
    return points, points.frame(centers)


def predict_chunks(estimator: Any, X: Any) -> da.Array:
    """Lazy labels, chunk by chunk."""
    points, centers = _fitted(estimator, X, sized=False)
    return points.lazy(_labels, centers, dtype=np.int32)


def transform_chunks(estimator: Any, X: Any) -> da.Array:
    """Lazy distances to every centre, chunk by chunk."""
    points, centers = _fitted(estimator, X, sized=False)
    return points.lazy(_distances, centers, dtype=points.chunks.dtype, width=len(centers))


def score_chunks(estimator: Any, X: Any, sample_weight: Any) -> float:
    points, centers = _fitted(estimator, X, sized=True)
    weights = weigh_chunks(sample_weight, points.chunks)
    return -float(ChunkedPoints(points.chunks, weights, points.shape).fold(_inertia, centers))


def n_distinct(labels: da.Array) -> int:
    """How many labels there are; goes through the data once."""
    parts = Chunks(labels, None).each(_distinct)
    return len(np.unique(np.concatenate(parts)))


def _distinct(labels: np.ndarray, start: int) -> np.ndarray:
    return np.unique(labels)
