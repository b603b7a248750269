"""Ranks with ties, and rank correlation: exact enough that the order of rows does not matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from .grouping import TIE


class RankAgreement(NamedTuple):
    """Rank correlation of every pair of rows."""

    correlation: np.ndarray  # (L, L), diagonal 1
    distance: np.ndarray  # (L, L) 1 - correlation, without cancellation
    pvalue: np.ndarray  # (L, L) one-sided (greater), NaN on the diagonal and for two columns


def tied_classes(values: np.ndarray, *, tolerance: float = TIE) -> np.ndarray:
    """Number the distinct values of a vector from 0 upwards; values closer than rounding are one.

    Two neighbours are equal when they differ by at most `tolerance` of the larger magnitude (but of
    a thousandth of the largest at least, so that rounding around 0 makes no order).

    Examples
    --------
    >>> tied_classes([0.5, 0.5 + 1e-15, -1.0])
    array([1, 1, 0])
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    size = np.maximum(np.abs(ordered), 1e-3 * np.abs(ordered).max(initial=0.0))
    step = np.diff(ordered) > tolerance * np.maximum(size[1:], size[:-1])
    classes = np.empty(len(values), dtype=np.intp)
    classes[order] = np.concatenate([[0], np.cumsum(step)]) if len(values) else []
    return classes


def average_ranks(values: np.ndarray, *, tolerance: float = TIE) -> np.ndarray:
    """Ascending ranks 1..M, ties share their mean rank.

    Examples
    --------
    >>> average_ranks([0.2, 0.9, 0.2])
    array([1.5, 3. , 1.5])
    """
    classes = tied_classes(values, tolerance=tolerance)
    counts = np.bincount(classes)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[classes]


def _exact_cosine(inner: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """r = c / sqrt(v w) and 1 - r from integers c, v, w, both correctly rounded up to a few ulp."""
    inner = np.asarray(inner, dtype=object)
    product = np.multiply.outer(square.astype(object), square.astype(object))
    root = np.sqrt(product.astype(float))
    correlation = inner.astype(float) / root
    # 1 - c/s = (s² - c²) / (s (s + c)), whose numerator is an exact integer
    rest = (product - inner * inner).astype(float)
    positive = inner.astype(float) > 0
    near = rest / (root * np.where(positive, root + inner.astype(float), 1.0))
    distance = np.where(positive, near, 1.0 - correlation)
    correlation = np.where(positive, 1.0 - distance, correlation)
    return correlation, distance


def spearman(rows: np.ndarray, *, tolerance: float = TIE) -> RankAgreement:
    """Spearman's r_s between rows; p by Student's t with M - 2 degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> spearman(np.array([[1.0, 2, 3, 4], [1, 2, 4, 3]])).correlation[0, 1].round(12)
    np.float64(0.8)
    """
    m = rows.shape[1]
    # twice the rank, centred: integers, so that every sum below is exact
    ranks = np.array([2 * average_ranks(row, tolerance=tolerance) - (m + 1) for row in rows])
    inner = np.rint(ranks @ ranks.T).astype(np.int64)
    correlation, distance = _exact_cosine(inner, np.diag(inner))
    pvalue = np.full(correlation.shape, np.nan)
    if m > 2:
        with np.errstate(divide="ignore", invalid="ignore"):
            t = correlation * np.sqrt((m - 2) / ((1 + correlation) * distance))
        pvalue = special.stdtr(m - 2, -t)
    np.fill_diagonal(pvalue, np.nan)
    return RankAgreement(correlation, distance, pvalue)


def kendall(rows: np.ndarray, *, tolerance: float = TIE) -> RankAgreement:
    """Kendall's tau_b between rows; p exact without ties, else normal with the ties' variance.

    Examples
    --------
    >>> import numpy as np
    >>> kendall(np.array([[1.0, 2, 3, 4], [1, 2, 4, 3]])).correlation[0, 1].round(12)
    np.float64(0.666666666667)
    """
    m = rows.shape[1]
    classes = np.array([tied_classes(row, tolerance=tolerance) for row in rows])
    i, j = np.triu_indices(m, 1)
    signs = np.sign(classes[:, j] - classes[:, i])  # (L, M (M - 1) / 2)
    inner = (signs.astype(float) @ signs.T.astype(float)).astype(np.int64)
    correlation, distance = _exact_cosine(inner, np.diag(inner))
    pvalue = np.full(correlation.shape, np.nan)
    if m > 2:
        pvalue = _kendall_pvalues(inner, classes)
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
    pvalue = special.ndtr(-inner / np.sqrt(variance))
    # share of permutations with a given number of discordant pairs, one object at a time
    share = np.ones(1)
    for size in range(2, m + 1):
        share = np.convolve(share, np.full(size, 1.0 / size))
    at_most = np.minimum(np.cumsum(share), 1.0)
    discordant = (total - inner) // 2
    return np.where(np.logical_or.outer(tied, tied), pvalue, at_most[discordant])


CORRELATIONS = {"spearman": spearman, "kendall": kendall}
