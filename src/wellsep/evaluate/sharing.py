"""How the work on many spaces is shared out among the threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from wellsep.compute.engine import budget_bytes, effective_jobs, some_at_once
from wellsep.evaluate.options import Calling, Computing, Progress
from wellsep.partitions import Partitions
from wellsep.runs import Runs

SAVING = threading.Lock()  # equal spaces have one folder in a cache


def over_spaces_here(
    runs: Runs,
    spaces: tuple[str, ...],
    partitions: Partitions,
    function: Callable[[str, Computing], Any],
    options: Calling,
) -> Iterator[tuple[str, Any]]:
    """``function(space, computing)`` of every space, in order.

    Small spaces are worked on several at once, each with its share of the threads; large ones one
    after the other, each with all of them. Which of both depends on the data alone.
    """
    computing = options.part(Computing)
    room = _spaces_that_fit(runs, spaces, partitions)
    if room < 2:
        found: Generator[Any, None, None] = (function(name, computing) for name in spaces)
    else:
        jobs = effective_jobs(computing.n_jobs)
        at_once = min(jobs, room, len(spaces))
        mine = replace(computing, n_jobs=jobs // at_once)
        items = ((name, mine) for name in spaces)
        on_device = computing.device is not None
        found = some_at_once(at_once, function, items, first_alone=on_device)
    with closing(found):
        for done, name in enumerate(spaces):
            tell(options.progress, done, len(spaces), name)
            try:
                one = next(found)
            except (ValueError, TypeError) as error:
                raise named(error, name) from error
            yield name, one
    tell(options.progress, len(spaces), len(spaces), "")


def _spaces_that_fit(runs: Runs, spaces: tuple[str, ...], partitions: Partitions) -> int:
    """Spaces whose distance sums and rows fit the memory budget together."""
    widest = max(runs[name].n_features or 0 for name in spaces)
    columns = int(partitions.offsets[-1]) + 4 * widest
    return int(budget_bytes() / (8.0 * runs.n_objects * columns))


def tell(progress: Progress | None, done: int, total: int, name: str) -> None:
    """Report how many spaces are done, and the one that comes next."""
    if progress is not None:
        progress(done, total, name)


def named(error: Exception, space: str) -> Exception:
    """The error with the name of the space in it."""
    text = str(error)
    if repr(space) in text:
        return error
    return type(error)(f"space {space!r}: {text}")
