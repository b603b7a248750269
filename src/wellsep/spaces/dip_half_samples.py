"""Dip tests of a space on many half-samples, from moments kept per group of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_data, in_safe_units, to_numpy
from wellsep._threads import effective_jobs, in_threads
from wellsep.compute.statistics.half_samples import Halves
from wellsep.distances.base import PairSpace
from wellsep.spaces.dip import dip_tests
from wellsep.spaces.modes import SMALLEST_GAP, multimodality
from wellsep.spaces.projections import has_columns, leading_eigenpairs, take_objects

WIDEST = 600  # columns; beyond, keeping d × d moments per group costs more than it saves
AT_ONCE = 16  # half-samples whose components are computed together
SMALL = 64  # columns; up to here all eigenvectors of many matrices cost less than one of each


def half_dips(
    X: Any, halves: Halves, draws: np.ndarray, projection: str, n_jobs: int | None = None
) -> np.ndarray:
    """p-value of the dip test for each of the half-samples `draws`, NaN where it is undefined.

    The first principal component of a half-sample follows from the sums of x and xx' over its
    groups. Other projections are tested one by one.
    """
    if len(draws) == 0:
        return np.empty(0)
    if not isinstance(X, PairSpace):
        X = check_data(X, sparse=True)
    X = in_safe_units(to_numpy(X))[0] if has_columns(X) else X  # no dip depends on the unit
    n, d = X.shape
    # the same half may be drawn twice
    _, first, again = np.unique(
        halves.chosen[draws], axis=0, return_index=True, return_inverse=True
    )
    distinct = draws[first]
    if has_columns(X) and projection in ("pca", "pca-scaled") and d <= min(WIDEST, n // 2):
        scale = projection == "pca-scaled"
        pvalues = _by_moments(X, halves, distinct, scale, effective_jobs(n_jobs))
    else:
        rows = (take_objects(X, halves.objects(draw)) for draw in distinct)
        tests = (multimodality(x, projection=projection, random_state=0) for x in rows)
        pvalues = np.array([test.pvalue for test in tests])
    return pvalues[again.reshape(-1)]


def _by_moments(
    X: np.ndarray, halves: Halves, draws: np.ndarray, scale: bool, jobs: int
) -> np.ndarray:
    n_groups, d = halves.chosen.shape[1], X.shape[1]
    shift = X.mean(axis=0, dtype=np.float64)
    order = np.argsort(halves.group, kind="stable")
    size = np.bincount(halves.group, minlength=n_groups)
    groups = np.split(X[order] - shift, np.cumsum(size)[:-1])
    low, high = np.empty((2, n_groups, d))
    sums, squares = np.empty((n_groups, d)), np.empty((n_groups, d, d))
    pvalues = np.ones(len(draws))

    def describe(g: int) -> None:
        rows = groups[g]
        low[g], high[g] = rows.min(axis=0), rows.max(axis=0)
        sums[g], squares[g] = rows.sum(axis=0), rows.T @ rows

    def test(start: int) -> None:
        """Half-samples with equally many objects are tested together."""
        batch = np.arange(start, min(start + AT_ONCE, len(draws)))
        chosen = halves.chosen[draws[batch]]
        constant = np.stack([low[c].min(axis=0) == high[c].max(axis=0) for c in chosen])
        n, total = chosen @ size, chosen @ sums
        covariance = np.tensordot(chosen.astype(float), squares, axes=1)
        covariance -= total[:, :, None] * total[:, None, :] / n[:, None, None]
        weights = _first_components(covariance, constant, scale, SMALLEST_GAP[X.dtype])
        projected = [rows @ weights.T for rows in groups]  # (objects of the group, draws) each
        for n_objects in np.unique(n):
            alike = np.flatnonzero(n == n_objects)
            table = np.stack(
                [np.concatenate([z[:, i] for z, c in zip(projected, chosen[i], strict=True) if c])
                 for i in alike]
            )  # fmt: skip
            pvalues[batch[alike]] = dip_tests(table)

    # small matrices: threads of BLAS would only wait for each other
    in_threads(jobs, describe, range(n_groups))
    in_threads(jobs, test, range(0, len(draws), AT_ONCE))
    return pvalues


def _first_components(
    covariance: np.ndarray, constant: np.ndarray, scale: bool, smallest_gap: float
) -> np.ndarray:
    """Loadings (draws, d) of the first components; unscaled where a column is constant.

    NaN where there is none, 0 where all columns are constant.
    """
    unit = np.ones(constant.shape)
    if scale:
        some = ~constant.any(axis=1)
        variance = np.einsum("bii->bi", covariance[some])
        unit[some] = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        covariance /= unit[:, :, None] * unit[:, None, :]
    if constant.shape[1] <= SMALL:
        values, vectors = np.linalg.eigh(covariance)
        first, leading = vectors[:, :, -1], values[:, :-3:-1]
    else:
        pairs = [leading_eigenpairs(table, 2) for table in covariance]
        first = np.stack([vectors[:, 0] for _, vectors in pairs])
        leading = np.stack([values for values, _ in pairs])
    if leading.shape[1] > 1:
        undefined = leading[:, 0] - leading[:, 1] < smallest_gap * leading[:, 0]
        first = np.where(undefined[:, None], np.nan, first)
    return np.where(constant.all(axis=1, keepdims=True), 0.0, first / unit)
