"""What a call with malformed input may end in, and what it may not."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

LIMIT = 20  # seconds of one call


class TookTooLong(Exception):
    """A call did not end in time."""


@contextlib.contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """Raise TookTooLong if the block takes longer; only in the main thread of POSIX."""

    def stop(*_: Any) -> None:
        raise TookTooLong(f"no end within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fault_of(function: Callable[[], Any], *arguments: str) -> str | None:
    """None for a value or a refusal that names one of the arguments; else what happened."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            with limited():
                function()
        except (TypeError, ValueError, OSError) as error:
            ours = type(error).__module__.startswith("wellsep")
            if ours or any(names(str(error), argument) for argument in arguments):
                return None
            return f"vague {type(error).__name__}: {error}"
        except Exception as error:
            if type(error).__module__.startswith("wellsep"):  # such as TrainingDiverged
                return None
            return f"{type(error).__name__}: {_text(error)}"
    return None


def names(message: str, argument: str) -> bool:
    """Whether a sentence names an argument."""
    return re.search(rf"(?<![A-Za-z_]){re.escape(argument)}(?![A-Za-z_])", message) is not None


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text cannot be shown)"
