"""Opens data: asks once what X is, and wraps it in the class for its kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import host_view, in_library_of, in_safe_units, is_torch, safe_unit
from wellsep._checks.values import check_device
from wellsep._text.sentences import shown
from wellsep._threads import cut_rows, effective_jobs
from wellsep.compute.data.distances import DistanceSpace
from wellsep.compute.data.rows import Space, SparseSpace
from wellsep.compute.kernels import load
from wellsep.compute.metrics.dc_distance import dc_metric
from wellsep.compute.metrics.table import METRICS, add_metric
from wellsep.distances.base import PRECOMPUTED, PairSpace

MOVED_ROWS = 1 << 16  # that are copied at a time on their way to a device


def like_given(given: Any, values: np.ndarray) -> Any:
    """Host values in the library, on the device and in the float type of the given data."""
    if isinstance(given, np.ndarray):
        return values.astype(given.dtype, copy=False)
    space = as_space(host_view(given))
    return in_library_of(given, space.asarray(values, dtype=space.X.dtype))


def open_space(X: Any, *, device: Any = None, n_jobs: int | None = None) -> Space:
    """Wrap checked data; the only place that asks what X is."""
    if device is not None:
        device = check_device(device)
    if isinstance(X, PairSpace):
        if not X.complete:
            raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
        if device is not None and device != "cpu":
            # A card holds the whole matrix: its passes take blocks of a tensor.
            made = open_space(to_torch(np.asarray(X), device), n_jobs=n_jobs)
            return replace(made, own_metric=PRECOMPUTED, _views={})
        unit = safe_unit(X.largest, X.dtype)
        return as_space(X if unit == 1 else X.scaled(1 / unit), effective_jobs(n_jobs), unit)
    if device is not None and (device != "cpu" or is_torch(X)):
        X = to_torch(X, device)
    X, unit = in_safe_units(X if isinstance(X, np.ndarray) else host_view(X))
    return as_space(X, effective_jobs(n_jobs), unit)


def as_space(X: Any, n_jobs: int = 1, unit: float = 1.0) -> Space:
    """Rows that are ready for work, such as points, in the class of their array library."""
    if isinstance(X, PairSpace):
        return DistanceSpace(X, n_jobs, unit=unit, own_metric=X.metric)
    if sp.issparse(X):
        # About the origin squares cancel: far from it nothing of float32 would be left.
        return SparseSpace(X.astype(np.float64, copy=False), n_jobs, unit=unit)
    if isinstance(X, np.ndarray):
        return Space(X, n_jobs, unit=unit)
    return load("wellsep.compute.data.device_rows").DeviceSpace(X, 1, unit=unit)


def to_torch(X: Any, device: str) -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device must be None or 'cpu' without PyTorch, got {device!r}; "
            "install it with: pip install torch."
        ) from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device must be available, got {device!r} and PyTorch sees no CUDA GPU.")
    if sp.issparse(X):
        raise TypeError(f"X must be dense on device {device!r}, got a sparse matrix.")
    try:
        if isinstance(X, np.ndarray) and not X.flags.writeable:  # PyTorch warns of such arrays
            moved = torch.empty(X.shape, dtype=torch.as_tensor(X[:0].copy()).dtype, device=device)
            for rows in cut_rows(len(X), MOVED_ROWS):
                moved[rows] = torch.as_tensor(X[rows].copy())
            return moved
        return torch.as_tensor(X, device=device)
    except (RuntimeError, AssertionError) as error:  # a device that this PyTorch was not made for
        raise ValueError(
            f"device must be available, got {device!r}: {shown(str(error))}."
        ) from None


add_metric(dc_metric())  # not in the table itself: dc-distances rest on statistics of the rows
TAKEN = (*METRICS, "any scikit-learn metric")  # by every index that has a metric
