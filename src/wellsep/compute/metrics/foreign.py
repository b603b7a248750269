"""Metrics that scikit-learn or SciPy has: whether two rows decide them, and their distances."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

SCIPY_ONLY = ("jensenshannon", "minkowski", "sokalmichener")  # names that scikit-learn lacks


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
