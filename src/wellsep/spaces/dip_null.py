"""The dip of uniform samples: simulated on request, or looked up in the table that ships with us.

The uniform is the null distribution of the dip test: of all unimodal distributions it is the one
whose samples have (asymptotically) the largest dips.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import kernels_wanted
from wellsep._checks.values import check_generator
from wellsep.compute.engine.kernel_choice import compiled_pays
from wellsep.compute.kernels import load
from wellsep.spaces.dip_hulls import dips_of_rows

CHUNK = 1 << 17  # values simulated at a time: a megabyte stays in the processor's cache
PER_SAMPLE = 20_000  # NumPy's calls cost a sample as much as so many of its values
ADDITIONS = 250  # that take as long as NumPy takes for a value
ROUNDING = 1e-9  # two dips this close, relatively, are the same number computed twice


def null_dips(n: int, n_simulations: int, *, random_state: Any = None) -> np.ndarray:
    """Simulate the dip statistic of uniform samples; each is at least 1/(2n).

    Sorted uniforms are partial sums of exponential spacings, divided by their total. The dip
    does not depend on location or scale, so the first spacing and the division are left out.

    Parameters
    ----------
    n : int
        Size of each sample.
    n_simulations : int
        Number of samples.
    random_state : None, int, Generator or RandomState
        Source of randomness.

    Examples
    --------
    >>> from wellsep.spaces import null_dips
    >>> dips = null_dips(50, 200, random_state=0)
    >>> bool(dips.min() >= 0.01), bool(dips.max() <= 0.25)
    (True, True)
    """
    rng = check_generator(random_state)
    heights = np.ones(n_simulations)
    if n <= 3:  # three points in any position are 1/(2n) from a unimodal function
        return heights / (2 * n)
    dips = quickest_dips(n_simulations, n)
    n_rows = max(1, CHUNK // n)
    for start in range(0, n_simulations, n_rows):
        chunk = heights[start : start + n_rows]
        spacings = rng.standard_exponential((len(chunk), n - 1))
        # Far out a spacing of less than the rounding of the sum would make a tie.
        np.maximum(spacings, 4 * n * np.finfo(float).eps, out=spacings)
        rows = np.zeros((len(chunk), n))
        np.cumsum(spacings, axis=1, out=rows[:, 1:])
        chunk[:] = dips(rows)[:, 0]
    return heights / (2 * n)


def quickest_dips(n_rows: int, n: int) -> Callable[[np.ndarray], np.ndarray]:
    """The faster of both ``dips_of_rows`` for so many more samples of n values each."""
    work = float(ADDITIONS) * n_rows * (PER_SAMPLE + n)
    if not (kernels_wanted() and compiled_pays(work)):
        return dips_of_rows
    return load("wellsep.spaces.dip_numba").dips_of_rows


class NullTable(NamedTuple):
    """Simulated quantiles of sqrt(n)·D: ``probabilities[j]`` exceed ``quantiles[i, j]``."""

    n: np.ndarray  # (rows,) sample sizes, ascending
    simulations: np.ndarray  # (rows,)
    probabilities: np.ndarray  # (columns,) descending, without 1
    quantiles: np.ndarray  # (rows, columns)

    @property
    def bound(self) -> float:
        """The smallest p the table can give: beyond its last column, p is at most this."""
        return float(self.probabilities[-1])


@cache
def null_table() -> NullTable:
    """Read the table, once."""
    lines = files(__package__).joinpath("dip_null.csv").read_text(encoding="utf-8").splitlines()
    probabilities = np.array(lines[0].split(",")[2:], dtype=float)
    body = np.loadtxt(lines[1:], delimiter=",", ndmin=2)
    return NullTable(body[:, 0], body[:, 1], probabilities, body[:, 2:])


def smallest_share(n: int) -> float:
    """Probability that n uniform values have the smallest dip, 1/(2n): 2ⁿ⁻²/(n−1)!.

    The dip is smallest when the n − 1 spacings fall to one place and rise from there. All orders
    of the spacings are equally likely, and 2ⁿ⁻² of the (n−1)! have a single valley.
    """
    return 2.0 ** (n - 2) / factorial(n - 1) if n < 100 else 0.0


def table_pvalue(n: int, statistic: float) -> float:
    """P(D_n >= statistic) for uniform samples of size n, interpolated in sqrt(n)·D.

    Rows of neighbouring n are mixed in proportion to 1/sqrt(n); n beyond the last row uses the
    last. Between columns p is linear above .05 and log p below.
    """
    if n < null_table().n[0] or statistic * 2 * n <= 1 + ROUNDING:
        return 1.0
    knots, p, log_p = _knots(n)
    t = np.sqrt(n) * statistic
    if t >= knots[-1]:
        return null_table().bound
    linear = float(np.interp(t, knots, p))
    return linear if linear > 0.05 else float(np.exp(np.interp(t, knots, log_p)))


@lru_cache(maxsize=64)
def _knots(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of sqrt(n)·D for samples of size n, their p and its logarithm."""
    table = null_table()
    scale = -1 / np.sqrt(table.n)
    place = min(-1 / np.sqrt(n), scale[-1])
    above = int(np.clip(np.searchsorted(scale, place), 1, len(scale) - 1))
    share = (place - scale[above - 1]) / (scale[above] - scale[above - 1])
    pair = slice(above - 1, above + 1)
    quantiles = np.array([1 - share, share]) @ table.quantiles[pair]
    start = 1 - smallest_share(n)
    past = table.probabilities < start  # columns inside the jump at 1/(2n) say nothing more
    knots = np.concatenate(([1 / (2 * np.sqrt(n))], quantiles[past]))
    p = np.concatenate(([start], table.probabilities[past]))
    return knots, p, np.log(p)
