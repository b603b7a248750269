"""A space reduced to few dimensions: principal components or distances, in float64 and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from wellsep.spaces.eigen import leading_eigenpairs

BLOCK = 1 << 22  # values converted to float64 at a time
RANK = 1e-12  # components with a smaller share of the first one's variance are rounding


class Components(NamedTuple):
    """Leading principal components."""

    scores: np.ndarray  # (n, k), each column centred; sign: largest loading or score positive
    gaps: np.ndarray  # (k,) relative distance of each eigenvalue to the next, NaN if all are 0
    scaled: bool  # whether the columns were brought to unit variance
    constant: np.ndarray  # (d,) bool


class Columns(NamedTuple):
    """Per-column statistics, each (d,)."""

    mean: np.ndarray
    span: np.ndarray  # largest minus smallest value
    constant: np.ndarray


def columns_of(X: np.ndarray) -> Columns:
    """Mean in float64 and span of each column."""
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    constant = low == high
    mean = np.where(constant, low, X.mean(axis=0, dtype=np.float64))
    return Columns(mean, high - low, constant)


def principal_components(X: np.ndarray, n_components: int, *, scale: bool) -> Components:
    """Leading components of X; with ``scale`` of its columns at unit variance.

    As in the ACE authors' analysis, a single constant column switches scaling off for all.
    """
    n, d = X.shape
    columns = columns_of(X)
    scaled = scale and not columns.constant.any()
    if columns.constant.all():
        return Components(np.zeros((n, 1)), np.array([np.nan]), scaled, columns.constant)
    # Dividing by the span first keeps squares from overflowing; only ratios matter here.
    unit = columns.span if scaled else np.full(d, columns.span.max())
    if d <= n:
        moments = np.zeros((d, d))
        for rows in _blocks(n, d):
            Z = (X[rows] - columns.mean) / unit
            moments += Z.T @ Z
        if scaled:
            norm = np.sqrt(moments.diagonal())
            moments /= np.outer(norm, norm)
            unit = unit * norm
    else:
        moments = np.zeros((n, n))
        for part in _blocks(d, n):
            Z = (X[:, part] - columns.mean[part]) / unit[part]
            if scaled:
                Z /= np.sqrt(np.einsum("ij,ij->j", Z, Z))
            moments += Z @ Z.T
    values, vectors = _leading(moments, n_components)
    if d <= n:
        weights = vectors / unit[:, None]
        scores = np.concatenate([(X[rows] - columns.mean) @ weights for rows in _blocks(n, d)])
    else:
        scores = vectors * np.sqrt(values[: vectors.shape[1]])
    following = np.append(values[1:], 0.0)[: scores.shape[1]]
    leading = values[: scores.shape[1]]
    return Components(scores, (leading - following) / leading, scaled, columns.constant)


def _leading(moments: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest k+1 eigenvalues, descending, and the vectors of the first k above rounding."""
    values, vectors = leading_eigenpairs(moments, k + 1)
    values = np.maximum(values, 0.0)
    used = min(k, int(np.count_nonzero(values > RANK * values[0])))
    vectors = vectors[:, :used]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(used)])
    return values, vectors * signs


def _blocks(length: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


class PairDistances(NamedTuple):
    """PairDistances between pairs of objects."""

    values: np.ndarray  # (pairs,)
    n_objects: int  # how many objects they come from
    scaled: bool
    constant: np.ndarray  # (d,) bool


def pairwise_distances(X: np.ndarray, max_pairs: int, rng: np.random.Generator) -> PairDistances:
    """Euclidean distances of the standardised objects, of a random part of them if too many."""
    n = len(X)
    columns = columns_of(X)
    scaled = not columns.constant.any()
    largest = int((1 + np.sqrt(1 + 8 * max_pairs)) // 2)
    chosen = np.arange(n) if n <= largest else np.sort(rng.choice(n, largest, replace=False))
    span = columns.span.max()
    if span == 0:
        values = np.zeros(len(chosen) * (len(chosen) - 1) // 2)
        return PairDistances(values, len(chosen), scaled, columns.constant)
    unit = columns.span if scaled else np.full(X.shape[1], span)
    Z = (X[chosen] - columns.mean) / unit
    if scaled:
        square = np.zeros(X.shape[1])
        for rows in _blocks(n, X.shape[1]):
            block = (X[rows] - columns.mean) / unit
            square += np.einsum("ij,ij->j", block, block)
        Z /= np.sqrt(square / (n - 1))
    return PairDistances(pdist(Z), len(chosen), scaled, columns.constant)


def given_pairs(gram: np.ndarray) -> PairDistances:
    """Distances of all pairs of objects that have this Gram matrix."""
    own = gram.diagonal()
    i, j = np.triu_indices(len(gram), 1)
    values = np.sqrt(np.maximum(own[i] + own[j] - 2 * gram[i, j], 0.0))
    return PairDistances(values, len(gram), False, np.array([not values.any()]))
