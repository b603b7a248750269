"""Worker processes of joblib: they end with the process that started them."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

_PAUSE = 0.5  # seconds between two looks at the parent


def ending_with_parent(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for joblib; a worker that runs it ends when this process has ended."""
    return functools.partial(_watched, os.getpid(), function)


def _watched(parent: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # Threads of this process, and workers that another machine started, have another parent.
    if os.name == "posix" and os.getppid() == parent:
        _watch(parent)
    return function(*args, **kwargs)


@functools.cache
def _watch(parent: int) -> None:
    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_PAUSE)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
