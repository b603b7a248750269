"""The numba twin of :func:`wellsep.spaces.hulls.dip_of_steps`, for thousands of dips in one call.

numba is imported when :func:`many_dips` first runs, never before; ``WELLSEP_KERNELS=0`` turns it
off.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache

import numpy as np

PAYS_FROM = 3_000_000  # units of work; below, loading the compiled code costs more than it saves


def usable(n_rows: int, n: int) -> bool:
    """Say whether the compiled twin exists, is not switched off, and pays for so many samples."""
    return (
        n_rows * (1000 + n) >= PAYS_FROM  # NumPy's calls cost a row as much as a thousand values
        and os.environ.get("WELLSEP_KERNELS", "1") != "0"
        and importlib.util.find_spec("numba") is not None
    )


@cache
def many_dips() -> Callable[[np.ndarray], np.ndarray]:
    """The compiled function: rows of ascending distinct values → twice each dip, in objects."""
    from ._dip_numba import dips_of_rows

    return dips_of_rows
