"""A space reduced to few dimensions: principal components, classical scaling, distances.

Work is done in float64 and in blocks. Objects that have distances, or too many columns to fill in,
get their axes by classical scaling: the centred Gram matrix of some objects has the eigenvalues of
their covariance, and its vectors are their scores. It follows from squared distances (−½JD²J) and
from sparse rows alike, so no table of n × d numbers is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.spatial.distance import pdist

from wellsep._checks.arrays import in_safe_units, to_numpy
from wellsep.distances.base import PairSpace

BLOCK = 1 << 22  # values converted to float64 at a time
RANK = 1e-12  # components with a smaller share of the first one's variance are rounding
DENSE_UP_TO = 500  # rows; beyond, a full reduction costs more than some hundred products


def leading_eigenpairs(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, descending, and their vectors (size, k), to full precision."""
    size = len(A)
    k = min(k, size)
    if size > DENSE_UP_TO:
        with suppress(ArpackNoConvergence):  # eigenvalues too close for it, yet not equal
            return _one_by_one(A, k)
    values, vectors = eigh(A, subset_by_index=(size - k, size - 1))
    if len(values) < k:  # all equal up to rounding: LAPACK's search by index finds none
        values, vectors = eigh(A)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def _one_by_one(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos, each pair found after the ones before are taken out of the matrix.

    Asked for two pairs at once, Lanczos may miss the second copy of a repeated eigenvalue, and a
    component that has no direction would look well defined.
    """
    size = len(A)
    values, vectors = np.zeros(k), np.zeros((size, k))
    rng = np.random.default_rng(0)  # starting points only; the answers do not depend on them

    def product(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        return A @ x - vectors @ (values * (vectors.T @ x))

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    for i in range(k):
        value, vector = eigsh(
            operator, k=1, which="LA", v0=rng.normal(size=size), ncv=40, maxiter=300
        )
        values[i], vectors[:, i] = value[0], vector[:, 0]
    return values, vectors


class Components(NamedTuple):
    """Leading principal components, or distances of pairs of objects in their place."""

    # (n, k), each column centred; sign: largest loading or score positive; distances: (pairs, 1)
    scores: np.ndarray
    gaps: np.ndarray  # (k,) relative distance of each eigenvalue to the next, NaN if all are 0
    scaled: bool  # whether the columns were brought to unit variance
    constant: np.ndarray  # (d,) bool
    n_objects: int  # how many objects they come from


def columns_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean in float64 and span of each column, and whether it is constant; each (d,)."""
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    constant = low == high
    mean = np.where(constant, low, X.mean(axis=0, dtype=np.float64))
    return mean, high - low, constant


def principal_components(X: np.ndarray, n_components: int, *, scale: bool) -> Components:
    """Leading components of X; with ``scale`` of its columns at unit variance.

    As in the ACE authors' analysis, a single constant column switches scaling off for all.
    """
    n, d = X.shape
    mean, span, constant = columns_of(X)
    scaled = scale and not constant.any()
    if constant.all():
        return Components(np.zeros((n, 1)), np.array([np.nan]), scaled, constant, n)
    # Dividing by the span first keeps squares from overflowing; only ratios matter here.
    unit = span if scaled else np.full(d, span.max())
    if d <= n:
        moments = np.zeros((d, d))
        for rows in _blocks(n, d):
            Z = (X[rows] - mean) / unit
            moments += Z.T @ Z
        if scaled:
            norm = np.sqrt(moments.diagonal())
            moments /= np.outer(norm, norm)
            unit = unit * norm
    else:
        moments = np.zeros((n, n))
        for columns in _blocks(d, n):
            Z = (X[:, columns] - mean[columns]) / unit[columns]
            if scaled:
                Z /= np.sqrt(np.einsum("ij,ij->j", Z, Z))
            moments += Z @ Z.T
    values, vectors, gaps = _leading(moments, n_components)
    if d <= n:
        weights = vectors / unit[:, None]
        scores = np.concatenate([(X[rows] - mean) @ weights for rows in _blocks(n, d)])
    else:
        scores = vectors * np.sqrt(values)
    return Components(scores, gaps, scaled, constant, n)


def _leading(moments: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest k eigenvalues above rounding, descending; their vectors; their relative gaps.

    A gap says how far an eigenvalue lies above the next, relative to itself; NaN where it is 0.
    """
    values, vectors = leading_eigenpairs(moments, k + 1)
    values = np.append(np.maximum(values, 0.0), 0.0)
    used = max(1, min(k, int(np.count_nonzero(values > RANK * values[0]))))
    values, following, vectors = values[:used], values[1 : used + 1], vectors[:, :used]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(used)])
    with np.errstate(invalid="ignore"):
        gaps: np.ndarray = (values - following) / values
    return values, vectors * signs, gaps


def _blocks(length: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def pairwise_distances(X: np.ndarray, max_pairs: int, rng: np.random.Generator) -> Components:
    """Euclidean distances of the standardised objects, of a random part of them if too many."""
    n = len(X)
    mean, span, constant = columns_of(X)
    scaled = not constant.any()
    largest = int((1 + np.sqrt(1 + 8 * max_pairs)) // 2)
    chosen = np.arange(n) if n <= largest else np.sort(rng.choice(n, largest, replace=False))
    unit = span if scaled else np.full(X.shape[1], span.max() or 1.0)
    Z = (X[chosen] - mean) / unit
    if scaled:
        square = np.zeros(X.shape[1])
        for rows in _blocks(n, X.shape[1]):
            block = (X[rows] - mean) / unit
            square += np.einsum("ij,ij->j", block, block)
        Z /= np.sqrt(square / (n - 1))
    return Components(pdist(Z)[:, None], np.array([np.nan]), scaled, constant, len(chosen))


def given_pairs(gram: np.ndarray) -> Components:
    """Distances of all pairs of objects that have this Gram matrix."""
    squares = gram.diagonal()
    i, j = np.triu_indices(len(gram), 1)
    values = np.sqrt(np.maximum(squares[i] + squares[j] - 2 * gram[i, j], 0.0))
    constant = np.array([not values.any()])
    return Components(values[:, None], np.array([np.nan]), False, constant, len(gram))


MOST_OBJECTS = 500  # whose axes are tested, of a space of distances
MOST_SPARSE = 2000  # the same of sparse rows


def has_columns(X: Any) -> bool:
    """Whether a space is a dense table of coordinates."""
    return not isinstance(X, PairSpace) and not sp.issparse(X)


def take_objects(X: Any, objects: np.ndarray) -> Any:
    """The space of some objects: rows, and columns too of distances."""
    return X.take(objects) if isinstance(X, PairSpace) else X[objects]


def centred_gram(X: Any, objects: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
    """(m, m) inner products of some objects about their mean, in float64 and a unit that is safe.

    With ``rng``, whole distances get noise of one step before: their ties would look like modes.

    >>> from wellsep.distances.matrix import Distances
    >>> centred_gram(Distances([1.0, 3, 2]), np.arange(3)).round(2).diagonal().tolist()
    [1.78, 0.11, 2.78]
    """
    if isinstance(X, PairSpace):
        D, _ = in_safe_units(X.block(objects, objects).astype(np.float64))
        if rng is not None and (np.rint(D) == D).all() and D.any():
            D = _with_noise(D, rng)
        gram = -0.5 * D**2
    else:
        rows, _ = in_safe_units(X[objects].astype(np.float64))
        gram = to_numpy(rows @ rows.T)
    mean = gram.mean(axis=0)
    return gram - mean - mean[:, None] + mean.mean()


def _with_noise(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform noise of one step on every pair."""
    steps = np.diff(np.unique(D))
    step = float(steps.min()) if len(steps) else 1.0
    noise = np.triu(rng.uniform(-0.5, 0.5, D.shape), 1) * step
    return np.maximum(D + noise + noise.T, 0.0)


def scaled_components(gram: np.ndarray, k: int) -> Components:
    """The first axes of objects with this Gram matrix, as `principal_components` gives them."""
    top = float(np.abs(gram).max(initial=0))
    constant = np.array([top == 0])
    if top == 0:
        return Components(np.zeros((len(gram), 1)), np.array([np.nan]), False, constant, len(gram))
    values, vectors, gaps = _leading(gram / top, k)
    return Components(vectors * np.sqrt(values * top), gaps, False, constant, len(gram))


def coordinates(X: Any, objects: np.ndarray) -> np.ndarray:
    """(m, p) all axes of some objects with positive eigenvalues: Euclidean distances are kept."""
    values, vectors = np.linalg.eigh(centred_gram(X, objects))
    positive = values > RANK * max(float(values[-1]), 0.0)
    if not positive.any():
        return np.zeros((len(objects), 1))
    return vectors[:, positive] * np.sqrt(values[positive])
