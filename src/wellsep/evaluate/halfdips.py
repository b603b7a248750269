"""Dip tests of a space on many half-samples, from moments kept per group of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_data, to_numpy
from ..compute.engines import one_blas_thread
from ..spaces import dip_test, multimodality
from ..spaces.eigen import leading_eigenpairs
from ..spaces.modes import SMALLEST_GAP
from .halves import Halves

WIDEST = 600  # columns; beyond, keeping d × d moments per group costs more than it saves
AT_ONCE = 16  # half-samples projected together


def half_dips(X: Any, halves: Halves, draws: np.ndarray, projection: str) -> np.ndarray:
    """p-value of the dip test for each of the half-samples `draws`, NaN where it is undefined.

    The first principal component of a half-sample follows from the sums of x and xx' over its
    groups; all halves are then projected in one product. Other projections are tested one by one.
    """
    X = to_numpy(check_data(X))
    n, d = X.shape
    # the same half may be drawn twice
    _, first, again = np.unique(
        halves.chosen[draws], axis=0, return_index=True, return_inverse=True
    )
    distinct = draws[first]
    if projection in ("pca", "pca-scaled") and d <= min(WIDEST, n // 2):
        with one_blas_thread():  # small matrices: threads would only wait for each other
            found = _by_moments(X, halves, distinct, projection == "pca-scaled")
    else:
        found = [
            multimodality(X[halves.objects(draw)], projection=projection, random_state=0).pvalue
            for draw in distinct
        ]
    return np.asarray(found)[again.reshape(-1)]


def _by_moments(X: np.ndarray, halves: Halves, draws: np.ndarray, scale: bool) -> list[float]:
    n_groups, d = halves.chosen.shape[1], X.shape[1]
    shift = X.mean(axis=0, dtype=np.float64)
    low, high = np.empty((2, n_groups, d))
    sums, squares = np.empty((n_groups, d)), np.empty((n_groups, d, d))
    for g in range(n_groups):
        rows = X[halves.group == g] - shift
        low[g], high[g] = rows.min(axis=0), rows.max(axis=0)
        sums[g], squares[g] = rows.sum(axis=0), rows.T @ rows
    size = np.bincount(halves.group, minlength=n_groups)
    weights = np.zeros((d, len(draws)))
    for i, draw in enumerate(draws):
        chosen = halves.chosen[draw]
        constant = low[chosen].min(axis=0) == high[chosen].max(axis=0)
        square = np.tensordot(chosen.astype(float), squares, axes=1)
        weights[:, i] = _first_component(
            chosen @ sums, square, size[chosen].sum(), constant, scale, SMALLEST_GAP[X.dtype]
        )
    pvalues = []
    for start in range(0, len(draws), AT_ONCE):
        part = weights[:, start : start + AT_ONCE]
        projected = np.empty((len(X), part.shape[1]))
        for g in range(n_groups):
            inside = halves.group == g
            projected[inside] = (X[inside] - shift) @ part
        for column, draw in zip(projected.T, draws[start:], strict=False):
            z = column[halves.objects(draw)]
            if np.isnan(z[0]):  # no first component
                pvalues.append(np.nan)
            else:
                pvalues.append(dip_test(z).pvalue if np.ptp(z) > 0 else 1.0)
    return pvalues


def _first_component(total, square, n, constant, scale, smallest_gap) -> np.ndarray:
    """Loadings (d,) of the first component, NaN if undefined; no scaling of constant columns."""
    covariance = square - np.outer(total, total) / n
    if constant.all():
        return np.zeros(len(total))
    unit = np.ones(len(total))
    if scale and not constant.any():
        unit = np.sqrt(np.maximum(covariance.diagonal(), np.finfo(float).tiny))
        covariance = covariance / np.outer(unit, unit)
    values, vectors = leading_eigenpairs(covariance, 2)
    if len(values) > 1 and values[0] - values[1] < smallest_gap * values[0]:
        return np.full(len(total), np.nan)
    return vectors[:, 0] / unit
