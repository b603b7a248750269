"""Data made ready for a k-means loop: centred or normalised once, with weights and norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from wellsep._checks import to_numpy
from wellsep.compute.nearest import Nearest, code_sums, is_host, nearest, squared_norms, to_like

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

    def frame(self, centers: np.ndarray) -> np.ndarray:
        """Centres of X as centres of the values."""
        if self.metric == "cosine":
            return unit_rows(centers)
        return centers if self.offset is None else centers - self.offset

    def unframe(self, centers: np.ndarray) -> np.ndarray:
        return centers if self.offset is None else centers + self.offset


def prepare(X: Any, sample_weight: np.ndarray | None = None, metric: str = "euclidean") -> Points:
    """Centre (euclidean, dense) or normalise (cosine) X; mean and variance in float64."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    offset = None
    if metric == "cosine":
        values = _unit(X)
        mean, second = _moments(values, weights)
    else:
        mean, second = _moments(X, weights)
        values = X
        if not sp.issparse(X):
            offset = mean
            values = X - mean.astype(X.dtype) if is_host(X) else X - to_like(mean, X)
            if is_host(X) and X.dtype == np.float32:
                # A float32 offset far from zero would lose what centring is there to keep.
                values = (X - mean).astype(np.float32)
            # The variance about the mean, not as a difference of two large moments.
            mean, second = _moments(values, weights)
    spread = float(np.mean(np.maximum(second - mean**2, 0.0)))
    if is_host(values) and not sp.issparse(values):
        values = np.ascontiguousarray(values)
    on_device = weights if weights is None or is_host(values) else to_like(weights, values)
    return Points(values, weights, on_device, squared_norms(values), offset, spread, metric)


def assign(points: Points, centers: np.ndarray) -> Nearest:
    """Nearest centre of every point and its distance: ‖x−μ‖², or 1 − cos for cosine."""
    found = nearest(points.values, centers, points.norms)
    return found if points.metric == "euclidean" else found._replace(near=0.5 * found.near)


def inertia(points: Points, centers: np.ndarray, labels: Any) -> float:
    """Σ w‖x−μ_c‖² (or Σ w(1−cos)), from differences where the data are dense: no cancellation."""
    values, weights = points.values, points.weights
    if sp.issparse(values):
        products = np.asarray(values.multiply(centers[labels]).sum(axis=1)).ravel()
        norms = np.einsum("ij,ij->i", centers, centers)[labels]
        distances = np.maximum(points.norms - 2.0 * products + norms, 0.0)
    elif is_host(values):
        distances = np.empty(len(values))
        step = max(64, (1 << 18) // values.shape[1])
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            gap = values[rows] - centers[labels[rows]]
            distances[rows] = np.einsum("ij,ij->i", gap, gap)
    else:
        xp = array_namespace(values)
        gap = values - xp.take(to_like(centers, values), labels, axis=0)
        distances = to_numpy(xp.sum(gap * gap, axis=1)).astype(np.float64)
    total = float(distances.sum() if weights is None else distances @ weights)
    return total if points.metric == "euclidean" else 0.5 * total


def label_sums(points: Points, labels: Any, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sum of the points and the total weight of every cluster."""
    return code_sums(points.values, labels, points.device_weights, n_clusters)


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


def unit_rows(centers: np.ndarray) -> np.ndarray:
    """Rows of unit length; a row of zeros stays."""
    length = np.sqrt(np.einsum("ij,ij->i", centers, centers))
    return centers / np.where(length > 0.0, length, 1.0)[:, None]


def _unit(X: Any) -> Any:
    length = to_numpy(squared_norms(X)).astype(np.float64) ** 0.5
    if not length.all():
        row = int(np.flatnonzero(length == 0.0)[0])
        raise ValueError(
            f"X must have no row of zeros for metric='cosine', got one at row {row}; "
            "drop such rows first."
        )
    if sp.issparse(X):
        return sp.csr_array(sp.diags_array(1.0 / length) @ X).astype(X.dtype)
    if is_host(X):
        return (X / length[:, None]).astype(X.dtype, copy=False)
    return X / to_like(length[:, None], X)


def _moments(X: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and mean square of every feature, in float64."""
    n = X.shape[0]
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    if sp.issparse(X):
        return share @ X, share @ X.multiply(X).tocsr()
    if is_host(X):
        mean, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        step = max(64, (1 << 18) // X.shape[1])
        for start in range(0, n, step):
            block = X[start : start + step].astype(np.float64, copy=False)
            mean += share[start : start + step] @ block
            second += share[start : start + step] @ (block * block)
        return mean, second
    xp = array_namespace(X)
    wide = xp.astype(X, xp.float64)
    on_device = to_like(share, wide)
    return to_numpy(on_device @ wide), to_numpy(on_device @ (wide * wide))
