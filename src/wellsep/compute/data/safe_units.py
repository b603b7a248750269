"""Extreme units: X divided by a power of two where squares would overflow or vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

# Exponents of two between which the largest number of X may lie: products of four numbers of
# such data, and of their differences, neither overflow nor vanish. Beyond, X is divided by a
# power of two, which changes no digit.
SAFE = {"float32": 32, "float64": 128}
FACTORS = {"float32": 120, "float64": 1000}  # exponents of the powers that the type itself holds


def in_safe_units(X: Any) -> tuple[Any, float]:
    """X divided by a power of two where squares would overflow or vanish, and that power.

    >>> in_safe_units(np.array([[1.0, -3.0]]))[1], in_safe_units(np.array([[0.0, 2.0**-200]]))
    (1.0, (array([[0., 1.]]), 6.223015277861142e-61))
    """
    unit = 1.0 if surely_safe(X) else safe_unit(largest_entry(X), X.dtype)
    return (X, unit) if unit == 1 else (X * (1 / unit), unit)


def unit_of(X: Any) -> float:
    """Power of two by which X is divided; 1 for all ordinary data."""
    return 1.0 if surely_safe(X) else safe_unit(largest_entry(X), X.dtype)


def surely_safe(X: Any) -> bool:
    """Whether the root mean square says so, which takes half the time of the largest entry."""
    if not isinstance(X, np.ndarray) or not X.size or not X.flags.c_contiguous:
        return False
    if isinstance(X, np.memmap):  # may be larger than memory; its extremes are found in blocks
        return False
    flat = X.reshape(-1)
    with np.errstate(over="ignore"):
        square = float(flat @ flat)
    limit = 4.0 ** SAFE[X.dtype.name]
    return X.size / limit < square < limit


def safe_unit(largest: float, dtype: Any) -> float:
    """Power of two by which data of such entries are divided; 1 for all ordinary data."""
    name = "float32" if "float32" in str(dtype) else "float64"
    exponent = int(np.frexp(largest)[1]) - 1
    if largest == 0 or abs(exponent) <= SAFE[name]:
        return 1.0
    return float(2.0 ** np.clip(exponent, -FACTORS[name], FACTORS[name]))


def largest_entry(X: Any) -> float:
    """Largest absolute value of X."""
    if sp.issparse(X):
        X = X.data
    if 0 in X.shape:
        return 0.0
    if isinstance(X, np.ndarray):
        return max(abs(float(X.max())), abs(float(X.min())))
    from array_api_compat import array_namespace

    xp = array_namespace(X)
    return max(abs(float(xp.max(X))), abs(float(xp.min(X))))
