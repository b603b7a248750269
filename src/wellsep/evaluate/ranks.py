"""Ranks with ties, and rank correlation: exact enough that the order of rows does not matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

TIE = 1e-12  # relative; weights, stabilities and scores closer than this are equal


class RankAgreement(NamedTuple):
    """Rank correlation of every pair of rows."""

    correlation: np.ndarray  # (L, L), diagonal 1
    distance: np.ndarray  # (L, L) 1 - correlation, without cancellation
    pvalue: np.ndarray  # (L, L) one-sided (greater), NaN on the diagonal and for two columns


def tied_classes(values: npt.ArrayLike, *, tolerance: float = TIE) -> np.ndarray:
    """Number the distinct values of a vector from 0; values closer than rounding are one."""
    return tied_rows(np.asarray(values, dtype=float)[None], tolerance)[0]


def tied_rows(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """(L, M) the tied classes of each row."""
    if rows.size == 0:
        return np.zeros(rows.shape, dtype=np.intp)
    order = np.argsort(rows, axis=1, kind="stable")
    # Neighbours are equal when they differ by at most `tolerance` of the larger magnitude, but of a
    # thousandth of the largest at least, so that rounding around 0 makes no order.
    ordered = np.take_along_axis(rows, order, axis=1)
    size = np.abs(ordered)
    size = np.maximum(size, 1e-3 * size.max(axis=1, keepdims=True))
    step = np.diff(ordered, axis=1) > tolerance * np.maximum(size[:, 1:], size[:, :-1])
    numbers = np.zeros(rows.shape, dtype=np.intp)
    np.cumsum(step, axis=1, out=numbers[:, 1:])
    classes = np.empty_like(numbers)
    np.put_along_axis(classes, order, numbers, axis=1)
    return classes


def average_ranks(values: npt.ArrayLike, *, tolerance: float = TIE) -> np.ndarray:
    """Ascending ranks 1..M, ties share their mean rank."""
    return _mean_ranks(tied_classes(values, tolerance=tolerance)[None])[0]


def _mean_ranks(classes: np.ndarray) -> np.ndarray:
    """(L, M) ascending ranks in each row."""
    n_rows, m = classes.shape
    place = classes + m * np.arange(n_rows)[:, None]
    counts = np.bincount(place.ravel(), minlength=n_rows * m).reshape(n_rows, m)
    last = np.cumsum(counts, axis=1)
    return np.take_along_axis(last - (counts - 1) / 2, classes, axis=1)


def ranks(scores: npt.ArrayLike, *, tolerance: float = TIE) -> np.ndarray:
    """Competition ranks, 1 = best (largest); ties share the better rank."""
    classes = tied_classes(scores, tolerance=tolerance)
    better = np.concatenate([np.cumsum(np.bincount(classes)[::-1])[::-1], [0]])
    return better[classes + 1] + 1


def ranks_with_gaps(scores: np.ndarray, tolerance: float) -> np.ndarray:
    """Competition ranks, 1 = best; all without a score (NaN) share the last one."""
    there = ~np.isnan(scores)
    places = np.full(len(scores), int(there.sum()) + 1)
    places[there] = ranks(scores[there], tolerance=tolerance)
    return places


def _exact_cosine(inner: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """r = c / sqrt(v w) and 1 - r from integers c, v, w, both correctly rounded up to a few ulp."""
    # Python's integers have no largest one.
    kind = np.int64 if square.max(initial=0) < 2**31 else object
    inner, square = inner.astype(kind), square.astype(kind)
    product = np.multiply.outer(square, square)
    root = np.sqrt(product.astype(float))
    correlation = inner.astype(float) / root
    # 1 - c/s = (s² - c²) / (s (s + c)), whose numerator is an exact integer
    rest = (product - inner * inner).astype(float)
    positive = inner.astype(float) > 0
    near = rest / (root * np.where(positive, root + inner.astype(float), 1.0))
    distance = np.where(positive, near, 1.0 - correlation)
    correlation = np.where(positive, 1.0 - distance, correlation)
    return correlation, distance


def _rank_products(classes: np.ndarray) -> np.ndarray:
    """(L, L) products of the rows' centred ranks, doubled: integers, so that every sum is exact."""
    m = classes.shape[1]
    doubled = 2 * _mean_ranks(classes) - (m + 1)
    return np.rint(doubled @ doubled.T).astype(np.int64)


def _order_products(classes: np.ndarray) -> np.ndarray:
    """(L, L) concordant minus discordant pairs of columns; on the diagonal the pairs not tied."""
    i, j = np.triu_indices(classes.shape[1], 1)
    signs = np.sign(classes[:, j] - classes[:, i]).astype(float)  # (L, M (M - 1) / 2)
    return np.rint(signs @ signs.T).astype(np.int64)


def rank_agreement(kind: str, rows: np.ndarray, *, tolerance: float = TIE) -> RankAgreement:
    """Spearman's r_s or Kendall's tau_b between rows.

    p is by Student's t with M - 2 degrees of freedom; Kendall's is exact without ties, else normal
    with the ties' variance.
    """
    m = rows.shape[1]
    classes = tied_rows(rows, tolerance)
    inner = CORRELATIONS[kind](classes)
    correlation, distance = _exact_cosine(inner, np.diag(inner))
    pvalue = np.full(correlation.shape, np.nan)
    if m > 2 and kind == "kendall":
        pvalue = _kendall_pvalues(inner, classes)
    elif m > 2:
        with np.errstate(divide="ignore", invalid="ignore"):
            t = correlation * np.sqrt((m - 2) / ((1 + correlation) * distance))
        pvalue = special.stdtr(m - 2, -t)
    np.fill_diagonal(pvalue, np.nan)
    return RankAgreement(correlation, distance, pvalue)


def _kendall_pvalues(inner: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """P(concordant - discordant >= observed) for every pair of rows."""
    m = classes.shape[1]
    total = m * (m - 1) // 2
    counts = [np.bincount(row) for row in classes]
    tied = np.array([(c > 1).any() for c in counts])
    two = np.array([(c * (c - 1.0)).sum() for c in counts])
    three = np.array([(c * (c - 1.0) * (c - 2)).sum() for c in counts])
    slope = np.array([(c * (c - 1.0) * (2 * c + 5)).sum() for c in counts])
    variance = (m * (m - 1.0) * (2 * m + 5) - np.add.outer(slope, slope)) / 18
    variance += np.multiply.outer(two, two) / (2.0 * m * (m - 1))
    variance += np.multiply.outer(three, three) / (9.0 * m * (m - 1) * (m - 2))
    pvalue: np.ndarray = special.ndtr(-inner / np.sqrt(variance))
    # share of permutations with a given number of discordant pairs, one object at a time
    share = np.ones(1)
    for size in range(2, m + 1):
        share = np.convolve(share, np.full(size, 1.0 / size))
    at_most = np.minimum(np.cumsum(share), 1.0)
    discordant = (total - inner) // 2
    return np.where(np.logical_or.outer(tied, tied), pvalue, at_most[discordant])


CORRELATIONS = {"spearman": _rank_products, "kendall": _order_products}


def rank_correlation(kind: str, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's r_s or Kendall's tau_b where both vectors are finite; NaN for a constant."""
    pair = np.array([first, second], dtype=float)
    pair = pair[:, np.isfinite(pair).all(axis=0)]
    inner = CORRELATIONS[kind](tied_rows(pair, TIE))
    if not np.diag(inner).all():
        return float("nan")
    return float(_exact_cosine(inner, np.diag(inner))[0][0, 1])
