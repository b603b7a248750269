"""Holm's step-down correction: many tests, one error rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_number, check_numbers
from wellsep._text.sentences import Views


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
