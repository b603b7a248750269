"""How many directions a space uses: RankMe and alpha-ReQ, from the spectrum of its covariance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from wellsep._checks.arrays import check_data, to_numpy
from wellsep.distances.base import PairSpace
from wellsep.spaces.drawing_planes import drawn_objects
from wellsep.spaces.projections import RANK, centred_gram, columns_of, has_columns

MOST_OBJECTS = 5000
WIDE = 1024  # columns; above, as many objects are drawn, and their Gram matrix has the spectrum


class Spectrum(NamedTuple):
    """Two summaries of the eigenvalues λ₁ ≥ λ₂ ≥ … of a space's covariance."""

    rankme: float
    alpha_req: float
    n_objects: int  # those that were looked at


def spectrum_of(X: Any) -> Spectrum:
    """RankMe and alpha-ReQ of a space; of 5,000 objects drawn at random where there are more.

    More than 1,024 columns, sparse rows and distances: of 1,024 objects. NaN if nothing varies.

    >>> spectrum_of(np.vstack([np.eye(3), -np.eye(3)]))
    Spectrum(rankme=3.0, alpha_req=0.0, n_objects=6)
    """
    if not isinstance(X, PairSpace):
        X = check_data(X, sparse=True)
    dense, (n, d) = has_columns(X), X.shape
    drawn = drawn_objects(n, MOST_OBJECTS if dense and d <= WIDE else WIDE)
    values = eigenvalues(to_numpy(X)[drawn]) if dense else _shares(centred_gram(X, drawn))
    return Spectrum(round(rankme(values), 12), round(alpha_req(values), 12) + 0.0, len(drawn))


def eigenvalues(X: np.ndarray) -> np.ndarray:
    """Eigenvalues of the covariance over the largest, descending; those of rounding left out."""
    mean, span, _ = columns_of(X)
    Z = (X - mean) / (span.max(initial=0) or 1)  # keeps squares from overflowing; ratios matter
    return _shares(Z.T @ Z if Z.shape[1] <= len(Z) else Z @ Z.T)


def _shares(moments: np.ndarray) -> np.ndarray:
    """Eigenvalues over the largest; those of rounding, and negative ones, are left out."""
    values = eigvalsh(moments)[::-1]
    if not values[0] > 0:
        return np.empty(0)
    return values[values > RANK * values[0]] / values[0]


def rankme(values: np.ndarray) -> float:
    """exp of the entropy of the singular values' shares: from 1 to the number of directions.

    Garrido, Balestriero, Najman & LeCun (2023), "RankMe: assessing the downstream performance of
    pretrained self-supervised representations by their rank", ICML, equation 1. Departs from it:
    the data are centred, since where a space lies says nothing of its clusters.

    >>> round(rankme(np.array([1.0, 1.0, 0.25])), 4)  # shares .4, .4, .2
    2.8717
    """
    if len(values) == 0:
        return float("nan")
    share = np.sqrt(values) / np.sqrt(values).sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def alpha_req(values: np.ndarray) -> float:
    """The power α by which eigenvalues fall, λ_k ∝ k^−α: least squares of ln λ_k on ln k.

    Agrawal, Mondal, Ghosh & Richards (2022), "α-ReQ: assessing representation quality in
    self-supervised learning by measuring eigenspectrum decay", NeurIPS; 0 where all directions
    vary alike. All eigenvalues above rounding enter. NaN with fewer than two.

    >>> round(alpha_req(np.array([1.0, 1 / 4, 1 / 9])), 12)
    2.0
    """
    if len(values) < 2:
        return float("nan")
    x, y = np.log(np.arange(1, len(values) + 1)), np.log(values)
    x = x - x.mean()
    return float(-(x @ y) / (x @ x))
