"""Whether kernels can be used, and whether they pay. ``WELLSEP_KERNELS=0`` turns all off."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from functools import cache
from typing import Any

from wellsep._checks.arrays import device_of, kernels_wanted
from wellsep._text.sentences import shown

PAYS_FROM = 1e10  # additions, about a second; numba takes half of that to load
_additions_so_far = 0.0


def device_usable(X: Any) -> bool:
    """Whether X lies on an accelerator, and ``compute/engine/device`` may work on it there."""
    return kernels_wanted() and device_of(X) is not None


def compiled_pays(additions: float) -> bool:
    """Whether numba works and, with these additions and all before them, worth loading."""
    global _additions_so_far
    _additions_so_far += additions
    pays = "numba" in sys.modules or _additions_so_far >= PAYS_FROM
    return pays and numba_works()


@cache
def numba_works() -> bool:
    """Whether numba can be imported and used; imports it, so ask only where it would pay."""
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        import numba

        numba.njit(cache=True)(device_usable)  # refused where no folder can be written to
    except Exception as error:  # one built for another NumPy raises what it likes
        warnings.warn(
            f"numba is installed but cannot be used ({type(error).__name__}: "
            f"{shown(str(error))}); NumPy is used in its place, which is slower.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True
