"""Data made ready for a k-means loop: centred or normalised once, with weights and norms."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from wellsep._checks import to_numpy
from wellsep.compute.metrics import Prepared, unit_rows
from wellsep.compute.nearest import (
    DEVICE_BLOCK,
    Nearest,
    bins,
    code_sums,
    is_host,
    nearest,
    row_blocks,
    squared_norms,
    to_like,
)

METRICS = ("euclidean", "cosine")


class Points(NamedTuple):
    """What every loop over centres needs of the data; centres are given in the same frame."""

    values: Any  # (n, d) centred (euclidean, dense) or of unit length (cosine)
    weights: np.ndarray | None  # (n,) float64 on the host; None: all one
    device_weights: Any  # the same in the library and on the device of the values
    norms: Any  # (n,) squared norm of each row
    offset: np.ndarray | None  # (d,) what was taken away from X; None: nothing
    spread: float  # mean variance of the features, the unit of tol
    metric: str
    zero: Any = None  # (n,) bool beside the values: rows without a direction; None: none
    pull: np.ndarray | None = None  # the weights, 0 for zero rows: what moves centres
    device_pull: Any = None

    def frame(self, centers: np.ndarray) -> np.ndarray:
        """Centres of X as centres of the values."""
        if self.metric == "cosine":
            return check_directions(centers)
        return centers if self.offset is None else centers - self.offset

    def unframe(self, centers: np.ndarray) -> np.ndarray:
        return centers if self.offset is None else centers + self.offset


@singledispatch
def prepare(
    X: Any,
    sample_weight: np.ndarray | None = None,
    metric: str = "euclidean",
    offset: np.ndarray | None = None,
) -> Points:
    """Centre (euclidean, dense) or normalise (cosine) X; the mean is taken in float64.

    A given ``offset`` takes the place of the mean, and the spread is then not worked out.
    """
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    dense_euclidean = metric == "euclidean" and not sp.issparse(X)
    measured, zero = offset is None, None
    if not dense_euclidean:
        offset, (values, zero) = None, _unit(X) if metric == "cosine" else Prepared(X)
    else:
        offset = _mean(X, weights) if offset is None else offset
        values = _shifted(X, offset)
    spread = _spread(values, weights) if measured else np.nan
    norms, there = squared_norms(values), _beside(weights, values)
    if zero is None:
        return Points(values, weights, there, norms, offset, spread, metric, None, weights, there)
    # As if a zero row had length one along an axis of its own: at distance 1 from every centre.
    norms = norms + _beside(to_numpy(zero).astype(np.float64), values)
    pull = np.where(to_numpy(zero), 0.0, 1.0 if weights is None else weights)
    return Points(
        values, weights, there, norms, offset, spread, metric, zero, pull, _beside(pull, values)
    )


def _beside(weights: np.ndarray | None, values: Any) -> Any:
    return weights if weights is None or is_host(values) else to_like(weights, values)


def assign(points: Points, centers: np.ndarray) -> Nearest:
    """Nearest centre of every point and its distance: ‖x−μ‖², or 1 − cos for cosine.

    A zero row is at distance 1 from every centre and belongs to the first.
    """
    first, near = nearest(points.values, centers, points.norms)
    if points.metric == "euclidean":
        return Nearest(first, near)
    near = 0.5 * near
    if points.zero is not None:
        first[points.zero], near[points.zero] = 0, 1.0
    return Nearest(first, near)


def inertia(points: Points, centers: np.ndarray, labels: Any) -> float:
    """Σ w‖x−μ_c‖² (or Σ w(1−cos)), from differences where the data are dense: no cancellation."""
    if is_host(points.values):
        distances, weights = _squared_to_own(points, centers, labels), points.weights
        total = float(distances.sum() if weights is None else distances @ weights)
    else:
        total = _inertia_there(points, to_like(centers, points.values), labels)
    return total if points.metric == "euclidean" else 0.5 * total


def _squared_to_own(points: Points, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) squared distance of each row on the host to the centre of its label."""
    values = points.values
    if sp.issparse(values):
        # Entry by entry: centres of all rows side by side would be a dense table.
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        terms = values.data * centers[labels[row], values.indices]
        products = np.bincount(row, weights=terms, minlength=values.shape[0])
        norms = np.einsum("ij,ij->i", centers, centers)[labels]
        return np.maximum(points.norms - 2.0 * products + norms, 0.0)
    distances = np.empty(len(values))
    for rows in row_blocks(len(values), values.shape[1], 1 << 18):
        gap = values[rows] - centers[labels[rows]]
        distances[rows] = np.einsum("ij,ij->i", gap, gap)
    return distances if points.zero is None else distances + points.zero


def _inertia_there(points: Points, centers: Any, labels: Any) -> float:
    """Σ w‖x−μ_c‖² on the device, added in float64."""
    xp = array_namespace(points.values)
    total = 0.0
    for rows in row_blocks(points.values.shape[0], centers.shape[1], DEVICE_BLOCK):
        gap = points.values[rows, :] - xp.take(centers, labels[rows], axis=0)
        squares = xp.astype(xp.sum(gap * gap, axis=1), xp.float64)
        if points.zero is not None:
            squares = squares + xp.astype(points.zero[rows], xp.float64)
        if points.device_weights is not None:
            squares = squares * xp.astype(points.device_weights[rows], xp.float64)
        total += float(xp.sum(squares))
    return total


def label_sums(points: Points, labels: Any, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sum of the points and the total weight of every cluster, but for zero rows."""
    sums = code_sums(points.values, labels, points.device_weights, n_clusters)
    return sums, to_numpy(bins(labels, points.device_pull, n_clusters))


def take_rows(points: Points, rows: np.ndarray) -> np.ndarray:
    """Some rows of the values as a dense float64 host array."""
    values = points.values
    if sp.issparse(values):
        return values[rows].toarray().astype(np.float64)
    if is_host(values):
        return values[rows].astype(np.float64)
    xp = array_namespace(values)
    index = to_like(np.asarray(rows), values, integer=True)
    return to_numpy(xp.take(values, index, axis=0)).astype(np.float64)


def check_directions(centers: np.ndarray) -> np.ndarray:
    """Centres at unit length; one without a direction would be near to nothing."""
    unit, zero = unit_rows(centers)
    if zero is not None:
        raise ValueError(
            "centers must have no row of zeros for metric='cosine', got one at row "
            f"{int(np.flatnonzero(zero)[0])}; give it a direction."
        )
    return unit


def _unit(X: Any) -> Prepared:
    """Rows of unit length in the float type of X; zero rows are marked."""
    if is_host(X):
        unit, zero = unit_rows(X)
        return Prepared(unit.astype(X.dtype, copy=False), zero)
    xp = array_namespace(X)
    unit, zero = unit_rows(X, xp)
    return Prepared(xp.astype(unit, X.dtype), zero)


def _shifted(X: Any, offset: np.ndarray) -> Any:
    if not is_host(X):
        return X - to_like(offset, X)
    # Float32 less a float64 offset: a rounded offset far from zero would lose what centring keeps.
    return np.ascontiguousarray(X - offset, dtype=X.dtype)


def _spread(values: Any, weights: np.ndarray | None) -> float:
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
        some = xp.sum(wide, axis=0) if weights is None else to_like(weights[rows], wide) @ wide
        total += to_numpy(some)
    return total / (X.shape[0] if weights is None else weights.sum())
