"""Points made ready for loops over centres, in memory or in the chunks of a dask array.

A block function takes ``Points``, the rows of one block, and small arrays. A loop runs it on all
rows, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from wellsep._checks.arrays import host_view, in_library_of, is_host, to_numpy, unit_of
from wellsep.compute.data.opening import as_space
from wellsep.compute.data.rows import Space
from wellsep.compute.kmeans.nearest_centres import DEVICE_BLOCK, Nearest, NearestTwo, row_blocks
from wellsep.compute.metrics.row_preparation import Prepared, unit_rows
from wellsep.compute.metrics.table import COSINE

if TYPE_CHECKING:
    from wellsep.compute.engine.dask.points import ChunkedPoints

METRICS = ("euclidean", COSINE)
PointSet: TypeAlias = Union["Points", "ChunkedPoints"]  # in memory, or in the chunks of Dask

Block = Callable[..., Any]  # block function: (points, *beside, *given) → what adds up, or rows


class Frame(NamedTuple):
    """What makes points of rows, the same for every block."""

    metric: str
    offset: np.ndarray | None  # (d,) what is taken away from X; None: nothing
    spread: float = np.nan  # mean variance of the features, the unit of tol
    unit: float = 1.0  # power of two that rows are divided by; lengths times it are the user's

    @property
    def directions(self) -> bool:
        """Whether rows count by their direction alone, and have unit length."""
        return self.metric == COSINE

    def enter(self, centers: np.ndarray) -> np.ndarray:
        """Centres of X as centres of the points."""
        if self.directions:
            return check_directions(centers)
        return (centers if self.offset is None else centers - self.offset) / self.unit

    def leave(self, centers: np.ndarray) -> np.ndarray:
        centers = centers * self.unit
        return centers if self.offset is None else centers + self.offset

    def squared(self, sums: Any) -> Any:
        """Sums of squares of the points in the unit of the user."""
        return sums * self.unit * self.unit


@dataclass(frozen=True, eq=False)
class RowValues:
    """A value or record for each point: known, or made again wherever a block needs it."""

    known: Any = None
    function: Block | None = None
    beside: Sequence[RowValues] = ()
    given: tuple[Any, ...] = ()

    def of(self, points: Points) -> Any:
        """The values of the points of one block."""
        if self.function is None:
            return self.known
        return points.fold(self.function, *self.given, beside=self.beside)


@dataclass(frozen=True, eq=False)
class Points:
    """Points in memory or on a device: all of them, or one block; centres in the same frame.

    Loops run block functions over all points: ``fold`` adds up what they return, ``values`` keeps
    an entry for each point. ``beside`` are values of the points, which a block function gets
    before the other arguments. ``ChunkedPoints`` has the same verbs.
    """

    X: Any  # (n, d) centred (euclidean, dense) or of unit length (cosine)
    weights: np.ndarray | None  # (n,) float64 on the host; None: all one
    device_weights: Any  # the same in the library and on the device of X
    norms: Any  # (n,) squared norm of each row
    frame: Frame
    zero: Any = None  # (n,) bool beside X: rows without a direction; None: none
    pull: np.ndarray | None = None  # the weights, 0 for zero rows: what moves centres
    device_pull: Any = None
    source: Any = None
    start: int = 0  # number of the first row

    in_chunks = False

    @cached_property
    def space(self) -> Space:
        """The rows as their array library works on them."""
        return as_space(self.X)

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def like(self) -> Any:
        # Sparse rows are worked on in float64; results have the type that was given.
        return (
            np.empty((0, self.X.shape[1]), self.source.dtype)
            if sp.issparse(self.X)
            else self.source
        )

    @property
    def any_zero(self) -> bool:
        return self.zero is not None

    @property
    def pull_or_ones(self) -> np.ndarray:
        """(n,) what each point moves centres by."""
        return np.ones(self.n) if self.pull is None else self.pull

    def pulls(self) -> np.ndarray | None:
        return self.pull

    def fold(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> Any:
        return function(self, *(values.of(self) for values in beside), *given)

    def values(self, function: Block, *given: Any, beside: Sequence[RowValues] = ()) -> RowValues:
        return RowValues(self.fold(function, *given, beside=beside))

    def publish(self, values: RowValues, dtype: Any, width: int | None = None) -> Any:
        return in_library_of(self.source, values.known)

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.space.dense(np.asarray(rows))


def prepare(
    X: Any,
    sample_weight: np.ndarray | None = None,
    metric: str = "euclidean",
    frame: Frame | None = None,
    start: int = 0,
) -> Points:
    """Centre (euclidean, dense) or normalise (cosine) X; the mean is taken in float64.

    A given ``frame`` takes the place of what would be measured.
    """
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weights = uneven(weights)
    given, X, zero = X, host_view(X), None
    if metric == COSINE:
        offset, (values, zero) = None, prepare_directions(X)
        unit = 1.0
    else:
        if sp.issparse(X):  # never centred: far from the origin nothing of float32 would be left
            offset, values = None, X.astype(np.float64, copy=False)
        else:
            offset = _mean(X, weights) if frame is None else frame.offset
            values = X if offset is None else replace(as_space(X), origin=offset).centred
        unit = unit_of(X) if frame is None else frame.unit
        values = values if unit == 1 else values * (1 / unit)
    spread = mean_variance(values, weights) if frame is None else frame.spread
    made = Frame(metric, offset, spread, unit)
    space = as_space(values)
    norms, there = space.norms(), None if weights is None else space.beside(weights)
    if zero is None:
        return Points(values, weights, there, norms, made, None, weights, there, given, start)
    # As if a zero row had length one along an axis of its own: at distance 1 from every centre.
    norms = norms + space.beside(to_numpy(zero).astype(np.float64))
    pull = np.where(to_numpy(zero), 0.0, 1.0 if weights is None else weights)
    pulled = space.beside(pull)
    return Points(values, weights, there, norms, made, zero, pull, pulled, given, start)


def uneven(weights: np.ndarray | None) -> np.ndarray | None:
    """None for weights of one: sums and draws are then those without weights, bit for bit."""
    return None if weights is None or bool((weights == 1.0).all()) else weights


def assign(points: Points, centers: np.ndarray) -> Nearest:
    """Nearest centre of every point and its distance: ‖x−μ‖², or 1 − cos for cosine.

    A zero row is at distance 1 from every centre and belongs to the first.
    """
    first, near = points.space.nearest(centers, points.norms)
    if not points.frame.directions:
        return Nearest(first, near)
    near = 0.5 * near
    if points.zero is not None:
        first[points.zero], near[points.zero] = 0, 1.0
    return Nearest(first, near)


def assign_labels(points: Points, centers: np.ndarray) -> Any:
    """Nearest centre of every point."""
    return assign(points, centers).first


def labels_of(points: Points, found: Nearest | NearestTwo) -> Any:
    return found.first


def inertia(points: Points, labels: Any, centers: np.ndarray) -> float:
    """Σ w‖x−μ_c‖² (or Σ w(1−cos)), from differences where the data are dense: no cancellation."""
    squares = points.space.own_squares(centers, labels, points.norms, points.zero)
    xp = points.space.xp
    if points.device_weights is not None:
        squares = squares * xp.astype(points.device_weights, xp.float64)
    total = float(xp.sum(squares))
    return 0.5 * total if points.frame.directions else total


def label_sums(
    points: Points, found: Nearest | NearestTwo, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sum of the points and the total weight of every cluster, but for zero rows."""
    sums = points.space.code_sums(found.first, points.device_weights, n_clusters)
    return sums, points.space.code_masses(found.first, points.device_pull, n_clusters)


def label_counts(points: Points, labels: Any, n_clusters: int) -> np.ndarray:
    """Number of points of every cluster."""
    return points.space.code_masses(labels, None, n_clusters)


def check_directions(centers: np.ndarray) -> np.ndarray:
    """Centres at unit length; one without a direction would be near to nothing."""
    unit, zero = unit_rows(centers)
    if zero is not None:
        raise ValueError(
            "centers must have no row of zeros for metric='cosine', got one at row "
            f"{int(np.flatnonzero(zero)[0])}; give it a direction."
        )
    return unit


def prepare_directions(X: Any) -> Prepared:
    """Rows of unit length in the float type of X; zero rows are marked."""
    space = as_space(X)
    unit, zero = unit_rows(X, space.xp)
    return Prepared(space.narrow(unit), zero)


def mean_variance(values: Any, weights: np.ndarray | None = None) -> float:
    """Of all features."""
    mean = _mean(values, weights)
    return float(np.mean(np.maximum(_mean(values, weights, squared=True) - mean**2, 0.0)))


def _mean(X: Any, weights: np.ndarray | None, *, squared: bool = False) -> np.ndarray:
    """Weighted mean of every feature, or of its square, in float64."""
    n = X.shape[0]
    if not is_host(X):
        return _mean_there(X, weights, squared)
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    if sp.issparse(X):
        return share @ (X.multiply(X).tocsr() if squared else X)
    mean = np.zeros(X.shape[1])
    for rows in row_blocks(n, X.shape[1], 1 << 18):
        block = X[rows].astype(np.float64, copy=False)
        mean += share[rows] @ (block * block if squared else block)
    return mean


def _mean_there(X: Any, weights: np.ndarray | None, squared: bool) -> np.ndarray:
    """The same on the device; equal weights are not sent there."""
    xp = array_namespace(X)
    total = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], X.shape[1], DEVICE_BLOCK):
        wide = xp.astype(X[rows, :], xp.float64)
        wide = wide * wide if squared else wide
        some = (
            xp.sum(wide, axis=0) if weights is None else as_space(wide).beside(weights[rows]) @ wide
        )
        total += to_numpy(some)
    return total / (X.shape[0] if weights is None else weights.sum())
