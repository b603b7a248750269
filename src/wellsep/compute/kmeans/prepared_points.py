"""Points made ready for loops over centres: rows about their mean or of unit length, and weights.

`Points` are in memory or on a device. The chunks of a dask array have a subclass, whose methods run
these on the workers; a loop over centres need not know which it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import host_view, in_library_of, is_dask, is_host, to_numpy, unit_of
from wellsep._threads import budget_bytes, row_blocks
from wellsep.compute.data.opening import as_space, like_given
from wellsep.compute.data.rows import Space
from wellsep.compute.kernels import load
from wellsep.compute.kmeans.nearest_centres import DEVICE_BLOCK, Nearest, NearestTwo, host_labels
from wellsep.compute.metrics.row_preparation import Prepared, unit_rows
from wellsep.compute.metrics.table import COSINE

LISTED = 1 << 24  # rows in chunks up to which a permutation of all is drawn, as in memory

Block = Callable[..., Any]  # function of the points of a block, values of theirs, and what is given


class Frame(NamedTuple):
    """How rows become points: centred or normalised, in which unit; the same for all blocks."""

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

    def means(self, sums: np.ndarray, mass: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """(k, d) means, or directions, of summed points; centres without mass stay."""
        if self.directions:
            length = np.sqrt(np.einsum("ij,ij->i", sums, sums))
            moved = unit_rows(sums).X
            return np.where((length > 0.0)[:, None], moved, centers)
        filled = (mass > 0.0)[:, None]
        return np.where(filled, sums / np.where(filled, mass[:, None], 1.0), centers)


class Leading(NamedTuple):
    """The points with the smallest keys, in order; of equal keys the first row."""

    keys: np.ndarray
    numbers: np.ndarray
    columns: tuple[np.ndarray, ...]  # what is known of them
    wanted: int

    @classmethod
    def merged(cls, parts: list[Leading]) -> Leading:
        """Those with the smallest keys of all parts."""
        keys = np.concatenate([part.keys for part in parts])
        numbers = np.concatenate([part.numbers for part in parts])
        order = np.lexsort((numbers, keys))[: parts[0].wanted]
        columns = zip(*(part.columns for part in parts), strict=True)
        ordered = tuple(np.concatenate(column)[order] for column in columns)
        return cls(keys[order], numbers[order], ordered, parts[0].wanted)


@dataclass(frozen=True, eq=False)
class Points:
    """Points in memory or on a device: all of them, or one block; centres in the same frame.

    What belongs to each point (nearest centres, labels, distances) may be lazy in a subclass:
    methods take it as other methods gave it, and ``publish`` makes results of it.
    """

    X: Any  # (n, d) centred (euclidean, dense) or of unit length (cosine)
    weights: np.ndarray | None  # (n,) float64 on the host; None: all one
    frame: Frame
    zero: Any = None  # (n,) bool beside X: rows without a direction; None: none
    source: Any = None
    start: int = 0  # number of the first row

    METRICS: ClassVar[tuple[str, ...]] = ("euclidean", COSINE)
    in_chunks: ClassVar[bool] = False

    @cached_property
    def space(self) -> Space:
        """The rows as their array library works on them."""
        return as_space(self.X)

    @cached_property
    def norms(self) -> Any:
        """(n,) squared norm of each row; 1 of a zero row, as if along an axis of its own."""
        norms = self.space.norms()
        if self.zero is None:
            return norms
        return norms + self.space.beside(to_numpy(self.zero).astype(np.float64))

    @cached_property
    def pull(self) -> np.ndarray | None:
        """(n,) the weights, 0 for zero rows: what moves centres. None: all one."""
        if self.zero is None:
            return self.weights
        return np.where(to_numpy(self.zero), 0.0, 1.0 if self.weights is None else self.weights)

    @cached_property
    def device_weights(self) -> Any:
        """The weights in the library and on the device of X."""
        return None if self.weights is None else self.space.beside(self.weights)

    @cached_property
    def device_pull(self) -> Any:
        """``pull`` in the library and on the device of X."""
        return self.device_weights if self.zero is None else self.space.beside(self.pull_or_ones)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def like(self) -> Any:
        """An array in the library and float type of results."""
        if sp.issparse(self.X):  # worked on in float64; results have the type that was given
            return np.empty((0, self.X.shape[1]), self.source.dtype)
        return self.source

    @property
    def any_zero(self) -> bool:
        return self.zero is not None

    @property
    def pull_or_ones(self) -> np.ndarray:
        """(n,) what each point moves centres by."""
        return np.ones(self.n) if self.pull is None else self.pull

    def fold(self, function: Block, *given: Any, beside: Sequence[Any] = ()) -> Any:
        """``function(points, *beside, *given)``, added up over all blocks of points."""
        return function(self, *beside, *given)

    def publish(self, values: Any, dtype: Any, width: int | None = None) -> Any:
        """Values of the points for the user, in the library of the data."""
        return in_library_of(self.source, values)

    def publish_centers(self, centers: np.ndarray) -> Any:
        """Centres of the points as centres of the data, in their library and float type."""
        return like_given(self.like, self.frame.leave(centers))

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.space.dense(np.asarray(rows))

    def device_blocks(self, width: int) -> Iterator[slice]:
        """Rows of which a table with so many columns keeps a card busy."""
        return row_blocks(self.n, width, DEVICE_BLOCK)

    # ------------------------------------------------------------------- points and centres

    def assign(self, centers: np.ndarray) -> Nearest:
        """Nearest centre of every point and its distance: ‖x−μ‖², or 1 − cos for cosine.

        A zero row is at distance 1 from every centre and belongs to the first.
        """
        first, near = self.space.nearest(centers, self.norms)
        if not self.frame.directions:
            return Nearest(first, near)
        near = 0.5 * near
        if self.zero is not None:
            first[self.zero], near[self.zero] = 0, 1.0
        return Nearest(first, near)

    def nearest_two(self, centers: np.ndarray) -> NearestTwo:
        """The two nearest centres of every point, with squared distances."""
        return self.space.nearest_two(centers, self.norms)

    def distances(self, centers: np.ndarray) -> Any:
        """(n, k) distance of every point to every centre, or 1 − cos."""
        squared = self.space.center_squares(centers, self.norms).T
        if self.frame.directions:
            distances = 0.5 * squared
        else:
            distances = self.space.xp.sqrt(squared) * self.frame.unit
        narrow = self.space.narrow(distances)
        return narrow.astype(self.like.dtype, copy=False) if sp.issparse(self.X) else narrow

    def inertia(self, labels: Any, centers: np.ndarray) -> float:
        """Σ w‖x−μ_c‖² (or Σ w(1−cos)), from differences where X is dense: no cancellation."""
        squares = self.space.own_squares(centers, labels, self.norms, self.zero)
        xp = self.space.xp
        if self.device_weights is not None:
            squares = squares * xp.astype(self.device_weights, xp.float64)
        total = float(xp.sum(squares))
        return 0.5 * total if self.frame.directions else total

    def label_sums(self, labels: Any, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """Weighted sum of the points and the total weight of every cluster, but for zero rows."""
        sums = self.space.code_sums(labels, self.device_weights, n_clusters)
        return sums, self.space.code_masses(labels, self.device_pull, n_clusters)

    @staticmethod
    def labels_of_rows(X: np.ndarray, centers: np.ndarray) -> np.ndarray | None:
        """Nearest centre of rows as they are; None where they must be made ready first."""
        with np.errstate(over="ignore", invalid="ignore"):
            offset = centers.mean(axis=0)
            about = centers - offset
        return host_labels(X, about, offset)

    def label_counts(self, labels: Any, n_clusters: int) -> np.ndarray:
        """Number of points of every cluster."""
        return self.space.code_masses(labels, None, n_clusters)

    def update(self, nearest: Nearest | NearestTwo, centers: np.ndarray) -> np.ndarray:
        """Each centre on the weighted mean of its points; empty clusters on the farthest points."""
        return self.reseeded_means(nearest, *self.label_sums(nearest.first, len(centers)), centers)

    def reseeded_means(
        self,
        nearest: Nearest | NearestTwo,
        sums: np.ndarray,
        mass: np.ndarray,
        centers: np.ndarray,
    ) -> np.ndarray:
        """The means, with each empty cluster on one of the points farthest from their centres."""
        empty = np.flatnonzero(mass == 0.0)
        if len(empty):
            sums, mass = sums.copy(), mass.copy()
            far = self.farthest(nearest, len(empty))
            # Each empty cluster takes one of the points from its cluster.
            for code, point, old, weight in zip(empty, *far.columns, strict=False):
                sums[old] -= weight * point
                mass[old] -= weight
                sums[code], mass[code] = weight * point, weight
        return self.frame.means(sums, mass, centers)

    def farthest(self, nearest: Nearest | NearestTwo, wanted: int) -> Leading:
        """The points farthest from their centres, with their rows, codes and weights."""
        distances = to_numpy(nearest.near).astype(np.float64)
        weights = self.pull_or_ones
        distances = np.where(weights > 0.0, distances, 0.0)
        least = np.partition(distances, -wanted)[-wanted] if wanted < len(distances) else 0.0
        far = np.flatnonzero((distances >= least) & (distances > 0.0))  # sorting all takes seconds
        rows = far[np.argsort(-distances[far], kind="stable")[:wanted]]
        columns = self.take(rows), to_numpy(nearest.first)[rows], weights[rows]
        return Leading(-distances[rows], self.start + rows, columns, wanted)

    # ------------------------------------------------------------------- draws

    def rows_at_shares(self, mass: Any, shares: np.ndarray) -> tuple[np.ndarray, float]:
        """Where the running sum of ``mass`` passes these shares of the total, and the total."""
        course = self.space.xp.cumsum(mass, 0)
        total = float(course[-1])
        targets = self.space.beside(shares * total)
        rows = to_numpy(self.space.xp.searchsorted(course, targets, side="right"))
        return np.minimum(rows, len(course) - 1), total

    def random_rows(self, size: int, random_state: np.random.RandomState) -> np.ndarray:
        """Distinct rows, drawn in proportion to their weight; no zero row, it has no direction."""
        pull = self.pull
        if pull is None:
            return random_state.choice(self.n, size, replace=False)
        share, counted = self.shares(pull), np.flatnonzero(pull)
        if len(counted) < size:
            if self.any_zero:
                return np.resize(counted, size)  # fewer directions than clusters: some twice
            rest = np.flatnonzero(pull == 0.0)[: size - len(counted)]
            return np.concatenate([counted, rest])
        return random_state.choice(len(pull), size, replace=False, p=share)

    def leading_draw(
        self, mass: np.ndarray, key: int, wanted: int, *, rows: bool = False
    ) -> Leading:
        """A draw in proportion to ``mass``, the same however rows are cut; with the ``rows``."""
        keys, heavy = draw_keys(row_uniforms(key, self.start, len(mass)), mass)
        order = np.argsort(keys, kind="stable")[:wanted]
        columns = (self.take(heavy[order]),) if rows else ()
        return Leading(keys[order], self.start + heavy[order], columns, wanted)

    def shares(self, pull: np.ndarray) -> np.ndarray:
        """The chance of each row to be drawn."""
        if self.any_zero and not pull.any():
            raise ValueError(
                "X must have a row that is not zero for metric='cosine', got rows of zeros only."
            )
        return pull / pull.sum()

    def sample(self, size: int, random_state: np.random.RandomState) -> Points:
        """Some points in memory, in their frame: all where they are few, and what memory allows."""
        size = min(size, self.n, max(1, int(budget_bytes() / (32 * self.like.shape[1]))))
        if size == self.n:
            rows, weights = np.arange(self.n), self.pull
        else:
            rows, weights = np.sort(self.random_rows(size, random_state)), None
        frame = Frame(self.frame.metric, None, self.frame.spread)
        return prepare(self.take(rows), weights, frame.metric, frame)


def prepare(
    X: Any,
    sample_weight: np.ndarray | None = None,
    metric: str = "euclidean",
    frame: Frame | None = None,
    start: int = 0,
) -> Points:
    """Centre (euclidean, dense) or normalise (cosine) X; the mean is taken in float64.

    A given ``frame`` takes the place of what would be measured. X may be the chunks of a dask
    array, whose rows stay where they are.
    """
    if is_dask(getattr(X, "array", None)):  # Chunks
        on_dask = load("wellsep.compute.engine.dask.points")
        return on_dask.prepare_chunks(X, sample_weight, metric, frame)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and bool((weights == 1.0).all()):
        weights = None  # sums and draws are then those without weights, bit for bit
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
    return Points(values, weights, Frame(metric, offset, spread, unit), zero, given, start)


def draw_key(random_state: np.random.RandomState) -> int:
    """What the random numbers of all rows follow from."""
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


def row_uniforms(key: int, start: int, n: int) -> np.ndarray:
    """Random numbers of rows ``start`` to ``start + n``, the same however the rows are cut."""
    bits = np.random.Philox(key=key)
    bits.advance(start // 4)  # each step of the counter makes four numbers
    skipped = start % 4
    return np.random.Generator(bits).random(n + skipped)[skipped:]


def draw_keys(uniform: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−ln(u)/mass of the rows that have some, and which these are.

    The rows with the smallest keys are a draw without replacement, in proportion to mass
    (Efraimidis and Spirakis, 2006, Weighted random sampling with a reservoir).
    """
    heavy = np.flatnonzero(mass > 0)
    return -np.log1p(-uniform[heavy]) / mass[heavy], heavy


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
    """The mean of the variances of all features."""
    mean = _mean(values, weights)
    return float(np.mean(np.maximum(_mean(values, weights, squared=True) - mean**2, 0.0)))


def _mean(X: Any, weights: np.ndarray | None, *, squared: bool = False) -> np.ndarray:
    """Weighted mean of every feature, or of its square, in float64."""
    n, d = X.shape
    total = n if weights is None else weights.sum()
    if sp.issparse(X):
        share = (np.ones(n) if weights is None else weights) / total
        return share @ (X.multiply(X).tocsr() if squared else X)
    space, mean = as_space(X), np.zeros(d)
    for rows in row_blocks(n, d, 1 << 18 if is_host(X) else DEVICE_BLOCK):
        block = space.xp.astype(X[rows, :], space.xp.float64, copy=False)
        ones = space.xp.ones_like(block[:, 0])  # where X lies: equal weights are not sent there
        share = (ones if weights is None else space.asarray(weights[rows])) / total
        mean += to_numpy(share @ (block * block if squared else block))
    return mean
