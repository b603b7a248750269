"""Tasks in worker processes of joblib, which end with the process that started them."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from joblib import Parallel, delayed

_PAUSE = 0.5  # seconds between two looks at the parent
Progress = Callable[[int, int, str], Any]  # tasks done, their number, what they are


def in_workers(
    function: Callable[..., Any],
    tasks: list[tuple[Any, ...]],
    n_jobs: int | None,
    progress: Progress | None = None,
    what: str = "",
) -> list[Any]:
    """``function(*task)`` of every task, in their order; progress is told before each and after."""
    done: list[Any] = []
    watched = ending_with_parent(function)
    calls = (delayed(watched)(*task) for task in tasks)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    tell = progress if progress is not None else lambda *_: None
    for count in range(len(tasks)):
        tell(count, len(tasks), what)
        done.append(next(results))
    tell(len(tasks), len(tasks), what)
    return done


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
