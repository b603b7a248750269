"""Let a function of data and one record of options take each option as a keyword."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_O = TypeVar("_O")
_R = TypeVar("_R")
_Q = ParamSpec("_Q")


@overload
def takes_options(
    kind: Callable[_Q, _O],
) -> Callable[[Callable[[_A, _O], _R]], Callable[Concatenate[_A, _Q], _R]]: ...
@overload
def takes_options(
    kind: Callable[_Q, _O], n_data: int
) -> Callable[[Callable[[_A, _B, _C, _O], _R]], Callable[Concatenate[_A, _B, _C, _Q], _R]]: ...
def takes_options(kind: Any, n_data: int = 1) -> Any:
    """Let a function of data and options take each option as a keyword of its own.

    Signature and docstring of the function name them all: the entry ``**options`` of its
    parameters gives way to those of the fields.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        data = list(inspect.signature(function).parameters.values())[:n_data]
        options = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY) if option.name != "indices"
            else option
            for option in inspect.signature(kind).parameters.values()
        ]  # fmt: skip
        signature = inspect.Signature([*data, *options])

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            try:
                given = signature.bind(*args, **keywords).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            records = [given.pop(parameter.name) for parameter in data]
            return function(*records, kind(**given))

        call.__signature__ = signature  # type: ignore[attr-defined]
        if function.__doc__ is not None:  # python -OO has none
            entries = _entries_of(kind)
            text = "\n".join(entries[option.name] for option in options)
            call.__doc__ = re.sub(
                r"^\*\*options\n(?:[ \t]+\S.*\n)+",
                lambda _: text + "\n",
                inspect.cleandoc(function.__doc__) + "\n",
                count=1,
                flags=re.MULTILINE,
            )
        return call

    return decorate


def _entries_of(kind: type) -> dict[str, str]:
    """What the docstrings of some options say about each field."""
    entries: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        _, _, section = inspect.cleandoc(vars(parent).get("__doc__") or "").partition(
            "Parameters\n----------\n"
        )
        for entry in re.split(r"\n(?=\S)", section.strip()):
            entries[entry.split(" : ")[0]] = entry
    return entries
