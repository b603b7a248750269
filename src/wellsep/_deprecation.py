"""Warn that a public name goes, and say what to use instead."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(*, instead: str, gone_in: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function warn with a ``FutureWarning`` whenever it is called.

    Parameters
    ----------
    instead : str
        What to use instead.
    gone_in : str
        The version that no longer has the function.

    Examples
    --------
    >>> @deprecated(instead="`new`", gone_in="2.0")
    ... def old():
    ...     return 1
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     old()
    1
    >>> str(told[0].message)
    'old goes in wellsep 2.0. Use `new`.'
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def warning(*args: P.args, **kwargs: P.kwargs) -> R:
            sentence = f"{function.__name__} goes in wellsep {gone_in}. Use {instead}."
            warnings.warn(sentence, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warning

    return wrap
