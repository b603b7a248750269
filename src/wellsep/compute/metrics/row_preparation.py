"""Rows made ready for a metric: centred, of length one, standardised, whitened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import to_numpy

if TYPE_CHECKING:
    from wellsep.compute.data.rows import Space

PARALLEL = 16 * np.finfo(np.float64).eps  # that rounding may put between equal directions


class Prepared(NamedTuple):
    """Rows as a metric wants them."""

    X: Any  # (n, d)
    zero: Any = None  # (n,) bool, rows that have no direction; None: there are none

    def take(self, rows: Any) -> Prepared:
        """Some of the rows."""
        return Prepared(self.X[rows, :], None if self.zero is None else self.zero[rows])


def unit_rows(X: Any, xp: Any = np) -> Prepared:
    """Rows of length one in float64; a zero row stays zero and is marked."""
    if sp.issparse(X):
        largest = np.asarray(abs(X).max(axis=1).todense(), dtype=np.float64).reshape(-1)
        scaled = sp.diags_array(1 / np.where(largest > 0, largest, 1)) @ X.astype(np.float64)
        lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).reshape(-1))
        unit = sp.csr_array(sp.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ scaled)
        return Prepared(unit, largest == 0 if (largest == 0).any() else None)
    wide = xp.astype(X, xp.float64)
    largest = xp.max(xp.abs(wide), axis=1, keepdims=True)
    wide = wide / _positive(largest, xp)  # squares of tiny rows would vanish
    unit = wide / _positive(xp.sqrt(xp.sum(wide * wide, axis=1, keepdims=True)), xp)
    zero = largest[:, 0] == 0
    return Prepared(unit, zero if bool(xp.any(zero)) else None)


def _positive(lengths: Any, xp: Any) -> Any:
    return xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def centred_rows(space: Space, wide: bool) -> Prepared:
    """Rows about the mean: dot products of data far from the origin would cancel."""
    widened = wide and space.X.dtype != space.xp.float64
    return Prepared(space.about_mean(slice(None)) if widened else space.centred)


def directions(space: Space, wide: bool) -> Prepared:
    """Rows of length one; about ``space.axis`` where they all lie near it."""
    unit, zero = unit_rows(space.X, space.xp)
    if space.axis is not None:
        unit = about_axis(space, unit, space.axis)
    return Prepared(unit if wide else space.xp.astype(unit, space.X.dtype), zero)


def about_axis(space: Space, unit: Any, axis: np.ndarray) -> Any:
    """Rows of length one about an axis; parallel ones lie on it, whatever they round to."""
    xp, gap = space.xp, unit - space.asarray(axis)
    apart = xp.max(xp.abs(gap), axis=1, keepdims=True) > PARALLEL
    return gap * xp.astype(apart, gap.dtype)


def standardized_rows(space: Space, wide: bool) -> Prepared:
    """Rows over the standard deviations of all objects: Euclidean then, whatever is cut out."""
    X = to_numpy(centred_rows(space, True).X)
    spread = X.std(axis=0, ddof=1)
    if not (spread > 0).all():
        raise ValueError(
            "X must have no constant column for this metric, got column "
            f"{int((spread > 0).argmin())}; drop it."
        )
    return Prepared(space.asarray(X / spread))


def whitened_rows(space: Space, wide: bool) -> Prepared:
    """Rows turned so that all objects have the unit covariance: Euclidean distances then."""
    X = to_numpy(centred_rows(space, True).X)
    covariance = np.atleast_2d(np.cov(X.T))
    values, vectors = np.linalg.eigh(covariance)
    if not values[0] > 1e-12 * values[-1]:
        raise ValueError(
            "X must have a covariance that can be inverted for this metric, got one of lower rank; "
            "drop columns that follow from others, or give more objects."
        )
    return Prepared(space.asarray(X @ vectors / np.sqrt(values)))


def square_lengths(X: Any, zero: Any, xp: Any) -> Any:
    """(n,) squared lengths; a zero row has length one along an axis of its own."""
    if sparse_usable(X):
        square = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1)
    else:
        square = np.einsum("ij,ij->i", X, X) if xp is np else xp.sum(X * X, axis=1)
    return square if zero is None else square + xp.astype(zero, square.dtype)


def sparse_usable(rows: Any) -> bool:
    """Whether rows are a sparse matrix."""
    return sp.issparse(rows)


class Sums(NamedTuple):
    """Distances summed over a cluster without pairs, from sums of rows over the cluster."""

    rows: Callable[[Any, slice], Any]  # (space, rows) → (b, e) float64: what is summed
    # (space, rows, sums (ΣK, e), mass (ΣK,)) → (ΣK, b), or (ΣK, 1) where all rows have one length:
    # half the squared lengths of both sides; what remains of it after products may be rounding
    lengths: Callable[..., Any]
    distances: Callable[..., Any]  # (space, rows, sums, lengths) → (ΣK, b)
    itself: Callable[..., Any]  # (space, rows) → (b,) what that counts from an object to itself


def unit_block(space: Space, rows: slice) -> Any:
    """z; about an axis also its squared length, in a column of its own."""
    unit, zero = unit_rows(space.X[rows, :], space.xp)
    if space.axis is None:
        return unit
    unit = about_axis(space, unit, space.axis)
    return space.xp.concat([unit, square_lengths(unit, zero, space.xp)[:, None]], axis=1)


def half_lengths(space: Space, rows: Any, sums: Any, mass: Any) -> Any:
    """½Σ(‖z‖² + ‖z'‖²) over the members z' of a cluster; its mass where all lengths are one."""
    if space.axis is None:
        return mass[:, None]
    return 0.5 * (mass[:, None] * rows[None, :, -1] + sums[:, -1:])


def less_products(space: Space, rows: Any, sums: Any, lengths: Any) -> Any:
    """½Σ‖z − z'‖² is the half lengths less z·Σz'."""
    if space.axis is not None:
        rows, sums = rows[:, :-1], sums[:, :-1]
    table = (-sums) @ rows.T
    table += lengths  # in place: the table is large
    return table


def missing_length(space: Space, rows: Any) -> Any:
    """‖z‖² − z·z: 1 for a zero row, rounding for all others."""
    if space.axis is not None:
        return rows[:, -1] - square_lengths(rows[:, :-1], None, space.xp)
    product = rows * rows
    return 1 - (product.sum(axis=1) if sp.issparse(rows) else space.xp.sum(product, axis=1))


DIRECTION_SUMS = Sums(unit_block, half_lengths, less_products, missing_length)
