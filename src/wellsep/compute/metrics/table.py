"""The table of metrics: how rows are made ready, and how far two blocks of them lie apart.

A metric is one entry of ``METRICS``: those at the end of this file, and "dc", which
``data.opening`` adds. A name of scikit-learn's or a function gets an entry made by ``find``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import device
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from wellsep._checks.arrays import kernels_wanted, to_numpy
from wellsep._plugins import new_plugins
from wellsep._text.sentences import shown
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.metrics.row_preparation import (
    DIRECTION_SUMS,
    Prepared,
    Sums,
    centred_rows,
    directions,
    standardized_rows,
    whitened_rows,
)
from wellsep.compute.metrics.squares import Rows, numpy_squares, same_objects, squares
from wellsep.distances.base import PRECOMPUTED, check_matrix, clean_matrix
from wellsep.distances.matrix import Distances

SCIPY_ONLY = ("jensenshannon", "minkowski", "sokalmichener")  # names that scikit-learn lacks


def root(squares: Any, xp: Any) -> Any:
    return xp.sqrt(squares)


def whole(squares: Any, xp: Any) -> Any:
    return squares


def half(squares: Any, xp: Any) -> Any:
    """Of rows of length one: ½‖z − z'‖² keeps what 1 − zz' would cancel."""
    return 0.5 * squares


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

    def squared(self) -> Metric:
        """The entry of the squared distances."""

        def block(i: Rows, j: Rows, xp: Any) -> Any:
            return xp.astype(self.distances(i, j, xp), xp.float64) ** 2

        return Metric(
            ("squared", self.name),
            prepare=self.prepare,
            block=block,
            symmetric=self.symmetric,
            coordinates=self.coordinates,
        )

    def need_rows(self, where: str, error: type[Exception] = ValueError) -> None:
        """Refuse a metric of which two rows do not tell their distance."""
        if self.whole:
            raise error(
                f"metric must be one that is computed from two rows {where}, got {self.name!r}, "
                f"which needs all rows at once; {self.remedy}."
            )
        if not self.coordinates:
            raise error(
                f"metric must be one that is computed from rows {where}, got {self.name!r}."
            )

    @property
    def takes_sparse(self) -> bool:
        """Whether sums of distances to clusters leave sparse rows sparse."""
        return self.sums is not None or self.finish is root

    def in_unit(self, distances: Any, unit: float) -> Any:
        """Distances of rows that were divided by ``unit``, as those of the rows themselves."""
        if self.coordinates and self.prepare is not centred_rows:
            return distances
        return distances * (unit**2 if self.finish is whole else unit)

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
    return pairwise_distances(X, Y, metric=metric)


def as_elsewhere(metric: Metric) -> Callable[[np.ndarray], np.ndarray] | None:
    """How scikit-learn or SciPy computes the distances between rows; None if neither does."""
    if isinstance(metric.name, str) and metric.coordinates and known_elsewhere(metric.name):
        return lambda X: elsewhere(X, X, metric.name)
    return None


def as_given(space: Any, wide: bool) -> Prepared:
    return Prepared(space.given)


def distance_matrix(space: Any, wide: bool) -> Prepared:
    """The rows of distances that X consists of, refused where it cannot be a matrix of them."""
    exact = check_matrix(space.X, "X").exact
    return Prepared(space.X if exact else clean_matrix(space.X, space.xp))


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


_MATRIX: dict[str, Any] = {"prepare": distance_matrix, "block": given_distances}
_OWN = (
    Metric("euclidean", prepare=centred_rows, finish=root),
    Metric("sqeuclidean", prepare=centred_rows, finish=whole, linear=True),
    # A zero row is at distance 1 from everything but itself, as scikit-learn has it.
    Metric("cosine", prepare=directions, finish=half, linear=True, sums=DIRECTION_SUMS),
    Metric(PRECOMPUTED, **_MATRIX, coordinates=False, opens=Distances.of_matrix),
    Metric("gower", **_MATRIX, coordinates=False, opens=MixedTable),
    # The matrix of these two is that of all objects, before subsets.
    Metric(
        "seuclidean",
        prepare=standardized_rows,
        finish=root,
        whole=True,
        remedy="pass X / X.std(axis=0, ddof=1) with metric='euclidean', which is the same",
    ),
    Metric(
        "mahalanobis",
        prepare=whitened_rows,
        finish=root,
        whole=True,
        remedy="pass X @ vectors / sqrt(values) with metric='euclidean', which is the same, where "
        "values, vectors = numpy.linalg.eigh(covariance of the columns of X)",
    ),
)
METRICS: dict[str, Metric] = {entry.name: entry for entry in _OWN}
COSINE = METRICS["cosine"].name
