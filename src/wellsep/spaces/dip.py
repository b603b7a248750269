"""Hartigan's dip: how far a sample is from every unimodal distribution; Holm's correction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_number, check_numbers, to_numpy
from wellsep._text.sentences import Views
from wellsep.spaces.dip_hulls import dip_of_steps, majorant, minorant, steps_of
from wellsep.spaces.dip_null import null_table, quickest_dips, table_pvalue


@dataclass(frozen=True)
class DipResult(Views):
    """The dip of a sample and its p-value.

    Attributes
    ----------
    statistic : float
        The dip, between 1/(2n) and 1/4.
    pvalue : float
        Probability of so large a dip in a uniform sample of the same size.
    modal_interval : tuple of two floats
        Where the nearest unimodal distribution has its mode.
    n_values : int
        Size of the sample.
    at_bound : bool
        True where the p-value is the smallest in the table and means "at most this".
    """

    statistic: float
    pvalue: float
    modal_interval: tuple[float, float]
    n_values: int
    at_bound: bool

    def sentences(self) -> Iterator[str]:
        """Say the dip and its p-value."""
        at_most = "≤" if self.at_bound else "="
        yield (
            f"The dip of {self.n_values:,} values is {self.statistic:.4g}, "
            f"p {at_most} {self.pvalue:.3g}."
        )


def dip_statistic(x: Any) -> float:
    r"""Return the dip: distance of the sample's distribution to the nearest with one mode.

    .. math:: D = \min_{G\ \text{unimodal}} \; \sup_t \, |F_n(t) - G(t)|

    Between 1/(2n) and 1/4; larger means further from one mode. Reversing, shifting or stretching
    the values changes nothing. If all values are equal it is 1/(2n), as in R. By the definition it
    would be 0, as G may jump at its mode. Sorting apart, the cost is a few sweeps over the sample.

    Parameters
    ----------
    x : array-like of shape (n,)
        The values, in any order, ties allowed. A list, a series or a tensor will do.

    References
    ----------
    J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", The Annals of Statistics
    13(1), 1985, 70-84.

    Examples
    --------
    >>> from wellsep.spaces import dip_statistic
    >>> dip_statistic([1, 2, 3, 4])
    0.125
    >>> dip_statistic([0, 0, 0, 7, 7, 7])
    0.25
    """
    ordered = _ordered(x)
    n = len(ordered)
    return quickest_dips(1, n)(ordered[None]).item(0) / (2 * n)


def dip_test(x: Any) -> DipResult:
    r"""Test whether a sample has more than one mode.

    .. math:: p = P(D_n \ge D), \qquad D_n \text{ the dip of } n \text{ uniform values}

    Small p: one mode is not believable. The uniform is the hardest unimodal case, so the test is
    conservative for bell-shaped data, whose p-values lie near 1.

    p is looked up among simulated quantiles of sqrt(n)·D (4 ≤ n ≤ 50,000; larger samples use the
    last row). It is never 0: past the last column it is 1e-5, meaning "at most", and ``at_bound``
    is True. Up to three values always have p = 1.

    Parameters
    ----------
    x : array-like of shape (n,)
        The values, in any order, ties allowed.

    Returns
    -------
    DipResult

    References
    ----------
    J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", The Annals of Statistics
    13(1), 1985, 70-84.

    Examples
    --------
    >>> import numpy as np
    >>> from wellsep import dip_test
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.normal(size=300), rng.normal([-3, 3], size=(150, 2)).ravel()
    >>> dip_test(one).pvalue > 0.5, dip_test(two).pvalue < 0.001
    (True, True)
    """
    ordered = _ordered(x)
    n = len(ordered)
    height, low, high = quickest_dips(1, n)(ordered[None])[0].tolist()
    statistic = height / (2 * n)
    pvalue = table_pvalue(n, statistic)
    return DipResult(statistic, pvalue, (low, high), n, pvalue <= null_table().bound)


def dip_tests(rows: np.ndarray) -> np.ndarray:
    """(m,) the p-value of each row of values (m, n): 1 for equal values, NaN for a row with NaN."""
    rows = np.sort(rows, axis=1)
    n = rows.shape[1]
    pvalues = np.where(np.isnan(rows[:, -1]), np.nan, 1.0)
    several = np.flatnonzero(rows[:, 0] < rows[:, -1])
    heights = quickest_dips(len(several), n)(rows[several])[:, 0]
    pvalues[several] = [table_pvalue(n, height / (2 * n)) for height in heights.tolist()]
    return pvalues


def _ordered(x: Any) -> np.ndarray:
    """x as a new float64 vector, ascending, after a check that all its values are finite."""
    values = to_numpy(x, "x")
    if values.ndim != 1:
        raise ValueError(
            f"x must be one-dimensional, got shape {values.shape}; "
            "reduce a space with multimodality, or pass one column."
        )
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64, casting="unsafe" if values.dtype == "O" else "safe")
        except (TypeError, ValueError):
            raise TypeError(f"x must be numeric, got an array of type {values.dtype}.") from None
    if len(values) == 0:
        raise ValueError("x must have at least 1 value, got 0.")
    # float32 is sorted as it is: half the bytes in half the time.
    ordered = values.astype(np.float32 if values.dtype == np.float32 else np.float64)
    ordered.sort()
    ordered = ordered.astype(np.float64, copy=False)
    if not (isfinite(ordered.item(0)) and isfinite(ordered.item(-1))):  # NaN is sorted to the end
        where = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"x must be finite, got {values[where]} at {where}; drop or impute it first."
        )
    return ordered


def nearest_unimodal(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distribution with one mode nearest to a sample: heights and places of its knots.

    Its distribution function is linear between them, convex up to the mode and concave beyond.

    >>> heights, places = nearest_unimodal(np.array([0.0, 1.0, 1.0, 2.0, 5.0]))
    >>> heights.round(3).tolist(), places.tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 1.0, 1.0, 2.0, 5.0])
    """
    distinct, below, upto, factor = steps_of(np.sort(values))
    dip = dip_of_steps(distinct, below, upto)
    left = minorant(distinct[: dip.first + 1], below[: dip.first + 1])
    right = dip.last + majorant(distinct[dip.last :], upto[dip.last :])
    heights = np.maximum.accumulate(np.append(below[left], upto[right] - dip.height))
    return heights / heights[-1], distinct[np.append(left, right)] / factor


@dataclass(frozen=True, eq=False)
class HolmResult(Views):
    """Rejected hypotheses and adjusted p-values.

    Attributes
    ----------
    reject : ndarray of bool
        True where the hypothesis is rejected at family-wise error rate alpha.
    adjusted : ndarray of float
        Smallest alpha at which each would be rejected; NaN where the p-value was.
    alpha : float
        The family-wise error rate.
    """

    reject: np.ndarray
    adjusted: np.ndarray
    alpha: float

    def columns(self) -> dict[str, list[Any]]:
        """Return the adjusted p-value of each test, and whether its hypothesis is rejected."""
        return {"adjusted": self.adjusted.tolist(), "reject": self.reject.tolist()}

    def sentences(self) -> Iterator[str]:
        """Say how many hypotheses are rejected."""
        yield (
            f"{int(self.reject.sum())} of {len(self.reject)} hypotheses are rejected "
            f"(family-wise error rate {self.alpha:g})."
        )


def holm(pvalues: Any, alpha: float = 0.05) -> HolmResult:
    r"""Correct p-values for the number of tests made (Holm 1979).

    .. math:: \tilde p_{(i)} = \max_{j \le i} \, \min\{1, (m - j + 1)\, p_{(j)}\}

    in ascending order of the m p-values; a hypothesis is rejected where this is at most alpha.
    The chance of any false rejection is at most alpha, whatever the dependence between the tests.

    Parameters
    ----------
    pvalues : array-like of shape (m,)
        One p-value per test. NaN marks a test that could not be made: as in R, it counts neither
        in m nor as a rejection, and its adjusted value is NaN.
    alpha : float
        Family-wise error rate, in (0, 1].

    Returns
    -------
    HolmResult

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6(2), 1979, 65-70.

    Examples
    --------
    >>> from wellsep.spaces import holm
    >>> result = holm([0.01, 0.04, 0.03], alpha=0.05)
    >>> result.adjusted.tolist(), result.reject.tolist()
    ([0.03, 0.06, 0.06], [True, False, False])
    """
    alpha = check_number("alpha", alpha, 0, 1, open_left=True)
    p = check_numbers("pvalues", pvalues)
    if p.ndim != 1:
        raise ValueError(f"pvalues must be one-dimensional, got shape {p.shape}.")
    outside = (p < 0) | (p > 1)
    if outside.any():
        where = int(np.flatnonzero(outside)[0])
        raise ValueError(f"pvalues must lie between 0 and 1, got {p[where]} at {where}.")
    made = np.flatnonzero(~np.isnan(p))
    order = made[np.argsort(p[made], kind="stable")]
    steps = np.arange(len(order), 0, -1) * p[order]
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return HolmResult(adjusted <= alpha, adjusted, alpha)
