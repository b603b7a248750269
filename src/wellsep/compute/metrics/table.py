"""The table of metrics: how rows are made ready, and how far two blocks of them lie apart.

A metric is one entry of ``METRICS``: those at the end of this file, and "dc", which
``data.opening`` adds. A name of scikit-learn's or a function gets an entry made by ``find``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from wellsep._checks.arrays import kernels_wanted, to_numpy
from wellsep._plugins import new_plugins
from wellsep._text.sentences import shown
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.metrics.row_preparation import (
    Prepared,
    as_given,
    centred_rows,
    directions,
    distance_matrix,
    half_lengths,
    less_products,
    missing_length,
    sparse_usable,
    square_lengths,
    standardized_rows,
    unit_block,
    whitened_rows,
)
from wellsep.distances.matrix import Distances

# Two scales in one set: a few far rows make ‖x‖² + ‖y‖² − 2xy lose the small distances of all
# others, also far from the mean. So pairs closer than this share of the squared lengths in their
# block, in double and in single precision, are computed again in float64 from the differences of
# the rows as given; other squares are off by at most eps/share, 2e-9 and 6e-4 of themselves. That
# costs one look for the smallest of a block, and where float32 has many close pairs, a product of
# the block in float64.
CLOSE = (1e-7, 1e-4)
AT_ONCE = 1 << 16  # numbers of pairs that are computed again together
ROUNDING = 1e-14  # share of their lengths that sums of products may leave between equal rows
SCIPY_ONLY = ("jensenshannon", "minkowski", "sokalmichener")  # names that scikit-learn lacks
FEW = 16  # where more than one pair of so many is close, the whole block is computed again


@dataclass(frozen=True, eq=False)
class Rows:
    """One block of prepared rows.

    A zero row counts as a row of length one along an axis of its own, which ``X`` does not show:
    ``square`` has it, so that products put such a row at squared distance 2 from all others.
    """

    X: Any  # (b, d); of distances the table of all objects, of which ``at`` names some
    square: Any = None  # (b,) squared lengths; None where the metric needs none
    zero: Any = None  # (b,) bool, or None
    at: Any = None  # place among all rows; equal places mean the same objects
    members: Any = None  # (ΣK, b) weights in every cluster of every partition, side by side
    given: Any = None  # (b, d) what X was made of by a shift that rounds; None: X itself

    @property
    def exact(self) -> Any:
        """(b, d) rows whose differences are those of the objects."""
        return self.X if self.given is None else self.given

    @cached_property
    def left(self) -> np.ndarray:
        """(b, d + 2): −2x, ‖x‖², 1; ``left[i] · right[j]`` is ‖x_i‖² + ‖x_j‖² − 2 x_i·x_j."""
        square = self.square[:, None]
        return np.hstack([-2 * self.X, square, np.ones_like(square)])

    @cached_property
    def right(self) -> np.ndarray:
        """(b, d + 2): x, 1, ‖x‖²."""
        square = self.square[:, None]
        return np.hstack([self.X, np.ones_like(square), square])

    def part(self, rows: slice) -> Rows:
        """Some consecutive rows, placed by ``rows``."""
        zero = None if self.zero is None else self.zero[rows]
        given = None if self.given is None else self.given[rows]
        return Rows(self.X[rows], self.square[rows], zero, rows, given=given)

    def take(self, rows: np.ndarray | slice) -> Rows:
        """Some of the rows, with what is known of them."""
        zero = None if self.zero is None else self.zero[rows]
        given = None if self.given is None else self.given[rows]
        some = Rows(self.X[rows], self.square[rows], zero, rows, given=given)
        some.__dict__.update(left=self.left[rows], right=self.right[rows])
        return some

    def bare(self, rows: np.ndarray | slice) -> Rows:
        """Some of the rows, for differences only."""
        return Rows(self.exact[rows], zero=None if self.zero is None else self.zero[rows])

    def slack(self, other: Rows) -> float:
        """How far a squared distance from the product may lie off."""
        reach = float(self.square.max(initial=0)) + float(other.square.max(initial=0))
        return 2 * (self.X.shape[1] + 4) * np.finfo(np.float64).eps * reach


def same_objects(i: Rows, j: Rows) -> bool:
    return i is j or (isinstance(i.at, slice) and i.at == j.at)


def rows_of(prepared: Any, at: Any = None, xp: Any = np) -> Rows:
    """Prepared rows as one block."""
    X, zero = prepared if isinstance(prepared, Prepared) else (prepared, None)
    return Rows(X, square_lengths(X, zero, xp), zero, at)


def own_axis(i: Rows, j: Rows, xp: Any) -> Any:
    """(b_i, b_j) what zero rows add to squared differences; 0 where there are none."""
    found: Any = 0.0
    if i.zero is not None:
        found = found + xp.astype(i.zero, xp.float64)[:, None]
    if j.zero is not None:
        found = found + xp.astype(j.zero, xp.float64)[None, :]
    return found


def pair_squares(i: Rows, r: np.ndarray | slice, j: Rows, c: np.ndarray) -> np.ndarray:
    """(p,) squared distances of pairs of different objects on the host, from differences."""
    gap = np.asarray(i.exact[r].astype(np.float64, copy=False) - j.exact[c])
    found = np.einsum("ij,ij->i", gap, gap)
    for zero, at in ((i.zero, r), (j.zero, c)):
        if zero is not None:
            found += zero[at]
    return found


def product_squares(X: Any, Y: Any, lengths: Any) -> Any:
    """(a, b) ‖x‖² + ‖y‖² − 2xy, given the ``lengths`` summed; rounding may make it negative."""
    return lengths - 2 * (X @ Y.T)


def squares(i: Rows, j: Rows, xp: Any) -> Any:
    """‖x‖² + ‖y‖² − 2xy, and exactly 0 from an object to itself or to its equal."""
    if sparse_usable(i.X):
        return sparse_squares(i, j)
    lengths = i.square[:, None] + j.square[None, :]
    table = product_squares(i.X, j.X, lengths)
    single = table.dtype != xp.float64
    close = table < CLOSE[single] * lengths
    count = int(xp.sum(xp.astype(close, xp.int64)))
    if single and count > close.shape[0] * close.shape[1] // FEW:
        return xp.astype(squares(*_wide(i, j, xp), xp), table.dtype)
    if count:
        table[close] = _from_differences(i.exact, j.exact, close, table.dtype, xp)
    table = xp.where(table > 0, table, xp.zeros_like(table))
    return _clear_diagonal(table, xp) if same_objects(i, j) else table


def sparse_squares(i: Rows, j: Rows) -> np.ndarray:
    """The same of sparse rows with sparse or dense ones: the block alone is dense."""
    lengths = i.square[:, None] + j.square[None, :]
    products, both = i.X @ j.X.T, sparse_usable(j.X)
    table: np.ndarray = lengths - 2 * (products.toarray() if both else products)
    r, c = np.nonzero(table < CLOSE[0] * lengths)
    step = AT_ONCE if both else max(64, AT_ONCE // i.X.shape[1])
    for start in range(0, len(r), step):
        part = slice(start, start + step)
        gap = i.X[r[part]] - j.X[c[part]]
        table[r[part], c[part]] = square_lengths(gap if both else np.asarray(gap), None, np)
    return _clear_diagonal(table, np) if same_objects(i, j) else table


def _from_differences(left: Any, right: Any, pairs: Any, dtype: Any, xp: Any) -> Any:
    """(p,) squared distances of the marked pairs; a zero row is never close to another."""
    r, c = xp.nonzero(pairs)
    found = []
    for start in range(0, r.shape[0], AT_ONCE):
        part = slice(start, min(start + AT_ONCE, r.shape[0]))
        one, other = xp.take(left, r[part], axis=0), xp.take(right, c[part], axis=0)
        gap = xp.astype(one, xp.float64) - xp.astype(other, xp.float64)
        found.append(xp.sum(gap * gap, axis=1))
    return xp.astype(xp.concat(found), dtype)


def _wide(i: Rows, j: Rows, xp: Any) -> tuple[Rows, Rows]:
    """Both blocks in float64 about an origin of their own."""
    origin = xp.mean(xp.astype(i.exact, xp.float64), axis=0)

    def about(rows: Rows) -> Rows:
        X = xp.astype(rows.exact, xp.float64) - origin
        return rows_of(Prepared(X, rows.zero), rows.at, xp)

    left = about(i)
    return left, left if i is j else about(j)


def _clear_diagonal(table: Any, xp: Any) -> Any:
    return table * (1 - xp.eye(table.shape[0], dtype=table.dtype, device=device(table)))


def numpy_squares(i: Rows, j: Rows) -> np.ndarray:
    """[−2x, ‖x‖², 1]·[y, 1, ‖y‖²]: one product instead of a product and two sweeps."""
    if sparse_usable(i.X):
        return sparse_squares(i, j)
    table = i.left @ j.right.T
    itself = same_objects(i, j)
    if itself:
        np.fill_diagonal(table, np.inf)  # out of the way of the search for close pairs
    reach = float(i.square.max(initial=0)) + float(j.square.max(initial=0))  # blocks may be empty
    limit = CLOSE[table.dtype != np.float64] * reach
    if table.min(initial=np.inf) < limit:
        recompute_close(table, i, j, limit)
    if itself:
        np.fill_diagonal(table, 0)
    return table


def recompute_close(table: np.ndarray, i: Rows, j: Rows, limit: float) -> None:
    """Squared distances below ``limit`` again from differences; infinite ones stay."""
    close = table < limit
    if np.count_nonzero(close) > table.size // FEW:
        if table.dtype == np.float64:
            again = cdist(i.exact, j.exact, "sqeuclidean") + own_axis(i, j, np)
        else:
            again = numpy_squares(*_wide(i, j, np))
        np.copyto(table, again, where=np.isfinite(table), casting="same_kind")
        return
    r, c = np.nonzero(close)
    for part in range(0, len(r), 8192):
        some, others = r[part : part + 8192], c[part : part + 8192]
        table[some, others] = pair_squares(i, some, j, others)


def root(squares: Any, xp: Any) -> Any:
    return xp.sqrt(squares)


def whole(squares: Any, xp: Any) -> Any:
    return squares


def half(squares: Any, xp: Any) -> Any:
    """Of rows of length one: ½‖z − z'‖² keeps what 1 − zz' would cancel."""
    return 0.5 * squares


class Sums(NamedTuple):
    """Distances summed over a cluster without pairs, from sums of rows over the cluster."""

    rows: Callable[[Any, slice], Any]  # (space, rows) → (b, e) float64: what is summed
    # (space, rows, sums (ΣK, e), mass (ΣK,)) → (ΣK, b), or (ΣK, 1) where all rows have one length:
    # half the squared lengths of both sides; what remains of it after products may be rounding
    lengths: Callable[..., Any]
    distances: Callable[..., Any]  # (space, rows, sums, lengths) → (ΣK, b)
    itself: Callable[..., Any]  # (space, rows) → (b,) what that counts from an object to itself


@dataclass(frozen=True)
class Metric:
    """One metric; two entries of the same name are the same.

    Attributes
    ----------
    name : str or callable
    prepare : callable
        ``prepare(space, wide) -> Prepared``: the rows as the metric wants them, beside X; in
        float64 with ``wide``.
    finish : callable or None
        ``finish(squares, xp) -> distances``, rising, where a distance follows from the squared
        Euclidean distance of prepared rows. Indices that one pair decides are then fast and exact.
    block : callable or None
        ``block(i, j, xp) -> (b_i, b_j)`` distances of two ``Rows`` where there is no ``finish``;
        0 from an object to itself.
    linear : bool
        Whether ``finish`` only multiplies, so that sums within clusters need no pairs.
    symmetric : bool
    coordinates : bool
        False where X holds distances: its columns are then objects, as its rows are.
    sums : Sums or None
        How distances to clusters are summed without pairs.
    opens : callable or None
        ``opens(X) -> PairSpace``: what X is under this metric, where it has no coordinates.
    whole : bool
        Whether rows are made ready from all objects together: parts of X would have other
        distances.
    remedy : str
        What to do where rows cannot be made ready from all objects together.
    cluster_sums : callable or None
        ``cluster_sums(space, members (ΣK, n)) -> (ΣK, n)``: distances from all objects to clusters,
        summed without pairs, on the host.
    """

    name: Any
    prepare: Callable[[Any, bool], Prepared] = field(compare=False)
    finish: Callable[[Any, Any], Any] | None = field(default=None, compare=False)
    block: Callable[[Rows, Rows, Any], Any] | None = field(default=None, compare=False)
    linear: bool = field(default=False, compare=False)
    symmetric: bool = field(default=True, compare=False)
    coordinates: bool = field(default=True, compare=False)
    sums: Sums | None = field(default=None, compare=False)
    opens: Callable[[Any], Any] | None = field(default=None, compare=False)
    whole: bool = field(default=False, compare=False)
    remedy: str = field(
        default="pass X as a NumPy array to an index without sampling", compare=False
    )
    cluster_sums: Callable[..., Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if (self.finish is None) == (self.block is None):
            raise ValueError(
                f"metric {self.name!r} must have either finish or block, got both or neither."
            )

    def distances(self, i: Rows, j: Rows, xp: Any) -> Any:
        """(b_i, b_j) distances of two blocks; 0 from an object to itself."""
        if self.block is not None:
            return self.block(i, j, xp)
        return self.finish(squares(i, j, xp), xp)  # type: ignore[misc]

    def numpy_usable(self, X: Any) -> bool:
        """Whether ``numpy_distances`` serves these prepared rows."""
        return isinstance(X, np.ndarray) and self.finish is not None and kernels_wanted()

    def numpy_distances(self, i: Rows, j: Rows) -> np.ndarray:
        """The same of NumPy rows, in the memory of one product."""
        table = numpy_squares(i, j)
        if self.finish is root:
            return np.sqrt(table, out=table)
        if self.finish is half:
            return np.multiply(table, 0.5, out=table)
        return self.finish(table, np)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Metric({self.name!r})"


METRICS: dict[str, Metric] = {}


def add_metric(entry: Metric) -> Metric:
    """Put an entry into the table, under its name."""
    if entry.name in METRICS:
        raise ValueError(f"metric name must be new, got {entry.name!r}, which exists already.")
    METRICS[entry.name] = entry
    return entry


def find(metric: Any) -> Metric:
    """The entry of a name, made for a function or a name of scikit-learn's."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return METRICS.get(metric) or _named_elsewhere(metric)
    if callable(metric):
        return _made(metric, symmetric=False)
    raise TypeError(f"metric must be a name or a function of two rows, got {shown(metric)}.")


def _named_elsewhere(metric: str) -> Metric:
    """The entry of a metric that scikit-learn or SciPy has, or that another package brings."""
    if known_elsewhere(metric):
        return _made(metric, symmetric=True)
    for entry in new_plugins("wellsep.metrics", Metric, METRICS):
        add_metric(entry)
    if metric in METRICS:
        return METRICS[metric]
    raise ValueError(
        f"metric must be one of {', '.join(map(repr, METRICS))}, a metric of scikit-learn or SciPy "
        f"that two rows decide, or a function of two rows, got {shown(metric)}; compute other "
        "distances yourself and pass wellsep.Distances."
    )


@functools.cache
def known_elsewhere(metric: str) -> bool:
    """Whether scikit-learn or SciPy has a metric of the name, tried on a few rows."""
    rows = np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 0.0], [3.0, 5.0]])
    with warnings.catch_warnings(action="ignore"):
        try:
            return len(elsewhere(rows, rows, metric)) > 0
        except (ValueError, TypeError):
            return False


def elsewhere(X: np.ndarray, Y: np.ndarray, metric: Any) -> np.ndarray:
    """Distances of the rows of two blocks by scikit-learn, or by SciPy for names of its own."""
    if isinstance(metric, str) and metric in SCIPY_ONLY:
        return cdist(X, Y, metric)
    found: np.ndarray = pairwise_distances(X, Y, metric=metric)
    return found


def as_elsewhere(metric: Metric) -> Callable[[np.ndarray], np.ndarray] | None:
    """How scikit-learn or SciPy computes the distances between rows; None if neither does."""
    if isinstance(metric.name, str) and metric.coordinates and known_elsewhere(metric.name):
        return lambda X: elsewhere(X, X, metric.name)
    return None


def need_coordinates(metric: Any, where: str, error: type[Exception] = ValueError) -> Metric:
    """The entry of a metric, refused if two rows do not tell their distance."""
    entry = find(metric)
    if entry.whole:
        raise error(
            f"metric must be one that is computed from two rows {where}, got {entry.name!r}, which "
            f"needs all rows at once; {entry.remedy}."
        )
    if not entry.coordinates:
        raise error(f"metric must be one that is computed from rows {where}, got {entry.name!r}.")
    return entry


def general_distances(metric: Any, i: Rows, j: Rows, xp: Any) -> Any:
    """Whatever scikit-learn or SciPy computes, on the host."""
    table = elsewhere(to_numpy(i.X), to_numpy(j.X), metric)
    if same_objects(i, j):
        np.fill_diagonal(table, 0)
    return xp.asarray(table, device=device(i.X))


def _made(metric: Any, *, symmetric: bool) -> Metric:
    block = partial(general_distances, metric)
    return Metric(metric, prepare=as_given, block=block, symmetric=symmetric)


def given_distances(i: Rows, j: Rows, xp: Any) -> Any:
    """A part of the table of all objects, which both sides hold."""
    if hasattr(i.X, "block"):
        return i.X.block(i.at, j.at)
    return i.X[i.at, :][:, j.at]


def squared(metric: Any) -> Metric:
    """The entry of a metric's squared distances."""
    entry = find(metric)

    def block(i: Rows, j: Rows, xp: Any) -> Any:
        return xp.astype(entry.distances(i, j, xp), xp.float64) ** 2

    return Metric(
        ("squared", entry.name),
        prepare=entry.prepare,
        block=block,
        symmetric=entry.symmetric,
        coordinates=entry.coordinates,
    )


add_metric(Metric("euclidean", prepare=centred_rows, finish=root))
add_metric(Metric("sqeuclidean", prepare=centred_rows, finish=whole, linear=True))
add_metric(
    Metric(
        # A zero row is at distance 1 from everything but itself, as scikit-learn has it.
        "cosine",
        prepare=directions,
        finish=half,
        linear=True,
        sums=Sums(unit_block, half_lengths, less_products, missing_length),
    )
)
add_metric(
    Metric(
        "precomputed",
        prepare=distance_matrix,
        block=given_distances,
        coordinates=False,
        opens=Distances.of_matrix,
    )
)
add_metric(
    Metric(
        "gower",
        prepare=distance_matrix,
        block=given_distances,
        coordinates=False,
        opens=MixedTable,
    )
)
# The matrix of these two is that of all objects, before subsets.
add_metric(
    Metric(
        "seuclidean",
        prepare=standardized_rows,
        finish=root,
        whole=True,
        remedy="pass X / X.std(axis=0, ddof=1) with metric='euclidean', which is the same",
    )
)
add_metric(
    Metric(
        "mahalanobis",
        prepare=whitened_rows,
        finish=root,
        whole=True,
        remedy="pass X @ vectors / sqrt(values) with metric='euclidean', which is the same, where "
        "values, vectors = numpy.linalg.eigh(covariance of the columns of X)",
    )
)
COSINE = METRICS["cosine"].name
PRECOMPUTED = METRICS["precomputed"].name
