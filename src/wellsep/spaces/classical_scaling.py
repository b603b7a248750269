"""Classical scaling: axes of objects that have distances, or too many columns to fill in.

The centred Gram matrix of some objects has the eigenvalues of their covariance, and its vectors
are their scores. It follows from squared distances (−½JD²J) and from sparse rows alike, so no
table of n × d numbers is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.distances.base import PairSpace
from wellsep.spaces.eigen import leading_eigenpairs
from wellsep.spaces.projections import RANK, Components

MOST_OBJECTS = 500  # whose axes are tested, of a space of distances
MOST_SPARSE = 2000  # the same of sparse rows


def has_columns(X: Any) -> bool:
    """Whether a space is a dense table of coordinates."""
    return not isinstance(X, PairSpace) and not sp.issparse(X)


def most_tested(X: Any) -> int:
    """Objects whose axes are tested at most."""
    return MOST_OBJECTS if isinstance(X, PairSpace) else MOST_SPARSE


def take_objects(X: Any, objects: np.ndarray) -> Any:
    """The space of some objects: rows, and columns too of distances."""
    return X.take(objects) if isinstance(X, PairSpace) else X[objects]


def centred_gram(X: Any, objects: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
    """(m, m) inner products of some objects about their mean, in float64.

    With ``rng``, distances that are whole numbers get noise of one step before: their ties would
    look like modes.

    >>> from wellsep.distances.matrix import Distances
    >>> centred_gram(Distances([1.0, 3, 2]), np.arange(3)).round(2).diagonal().tolist()
    [1.78, 0.11, 2.78]
    """
    if isinstance(X, PairSpace):
        D = X.block(objects, objects).astype(np.float64)
        if rng is not None and (np.rint(D) == D).all() and D.any():
            D = _with_noise(D, rng)
        gram = -0.5 * D**2
    else:
        rows = X[objects].astype(np.float64)
        gram = (rows @ rows.T).toarray()
    mean = gram.mean(axis=0)
    centred: np.ndarray = gram - mean - mean[:, None] + mean.mean()
    return centred


def _with_noise(D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform noise of one step on every pair."""
    steps = np.diff(np.unique(D))
    step = float(steps.min()) if len(steps) else 1.0
    noise = np.triu(rng.uniform(-0.5, 0.5, D.shape), 1) * step
    found: np.ndarray = np.maximum(D + noise + noise.T, 0.0)
    return found


def scaled_components(gram: np.ndarray, k: int) -> Components:
    """The first axes of objects with this Gram matrix, as `principal_components` gives them."""
    top = float(np.abs(gram).max(initial=0))
    constant = np.array([top == 0])
    if top == 0:
        return Components(np.zeros((len(gram), 1)), np.array([np.nan]), False, constant)
    values, vectors = leading_eigenpairs(gram / top, k + 1)
    values = np.maximum(values, 0.0)
    used = max(1, min(k, int(np.count_nonzero(values > RANK * values[0]))))
    vectors = vectors[:, :used]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(used)])
    following = np.append(values[1:], 0.0)[:used]
    scores = vectors * signs * np.sqrt(values[:used] * top)
    with np.errstate(invalid="ignore"):
        gaps = (values[:used] - following) / values[:used]
    return Components(scores, gaps, False, constant)


def coordinates(X: Any, objects: np.ndarray) -> np.ndarray:
    """(m, p) all axes of some objects with positive eigenvalues: Euclidean distances are kept."""
    values, vectors = np.linalg.eigh(centred_gram(X, objects))
    kept = values > RANK * max(float(values[-1]), 0.0)
    if not kept.any():
        return np.zeros((len(objects), 1))
    found: np.ndarray = vectors[:, kept] * np.sqrt(values[kept])
    return found
