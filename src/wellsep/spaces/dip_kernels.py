"""The numba twin of :func:`wellsep.spaces.dip_hulls.dip_of_steps`, for many dips or repeated ones.

numba is imported when the twin is first asked for, never before; ``WELLSEP_KERNELS=0`` turns it
off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

import numpy as np

from wellsep._checks.arrays import kernels_wanted
from wellsep.compute.engine.kernel_choice import numba_works

PAYS_FROM = 40_000_000  # units of work; below, loading the compiled code costs more than it saves
PER_SAMPLE = 20_000  # NumPy's calls cost a sample as much as so many of its values

_spent = 0  # units of work that NumPy has had with single samples


def usable(n_rows: int, n: int) -> bool:
    """Say whether the compiled twin exists and pays for so many samples."""
    return n_rows * (PER_SAMPLE + n) >= PAYS_FROM and numba_works()


def many_dips(rows: np.ndarray) -> np.ndarray:
    """Rows of ascending values → twice each dip, in objects; compiled."""
    return _compiled()(rows)[:, 0]


def one_dip(n: int) -> Callable[[np.ndarray], np.ndarray] | None:
    """The compiled function for one more sample of n values, or None while it does not pay.

    How many will follow is not known, and numba may be loaded already. If it is not, the twin is
    loaded when NumPy has taken as long over single samples as loading takes: whatever follows,
    that is at most twice the time of knowing.
    """
    global _spent
    if not kernels_wanted():
        return None
    if not _compiled.cache_info().currsize and "numba" not in sys.modules:
        _spent += PER_SAMPLE + n
        if _spent < PAYS_FROM:
            return None
    return _compiled() if numba_works() else None


@cache
def _compiled() -> Callable[[np.ndarray], np.ndarray]:
    from wellsep.spaces.dip_numba import dips_of_rows

    compiled: Callable[[np.ndarray], np.ndarray] = dips_of_rows
    return compiled
