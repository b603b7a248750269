"""How the work on many spaces is shared out among the threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from wellsep.compute.engine.threads import budget_bytes, effective_jobs, some_at_once
from wellsep.evaluate.options import Calling, Computing, Progress
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.run import Part

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


def over_spaces(
    client: Any,
    runs: Runs,
    spaces: tuple[str, ...],
    function: Callable[..., Any],
    *shared: Any,
    own: dict[str, tuple[Any, ...]] | None = None,
) -> Iterator[tuple[str, Any]]:
    """``function(X, *shared, *own[space])`` of every space, as each is done.

    A worker opens the embedding itself where it lies in a file. ``shared`` travels once. When a
    worker is lost, its task alone is done again elsewhere.
    """
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    # A task, not scattered data: what a task made can be made again.
    common = client.submit(_keep, shared, pure=False)
    futures = {
        client.submit(
            _on_space,
            runs[name]._part("embedding"),
            function,
            common,
            () if own is None else own[name],
            pure=False,
        ): name
        for name in spaces
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):
            name = futures.pop(future)
            try:
                result = future.result()
            except KilledWorker:
                raise MemoryError(
                    f"Several workers were lost while they computed on space {name!r}. With a "
                    "cache, finished spaces are kept. Give the workers more memory and repeat the "
                    "call."
                ) from None
            except CancelledError:
                raise ConnectionError(
                    "The Dask scheduler went away after "
                    f"{len(spaces) - len(futures) - 1} of {len(spaces)} spaces. With a cache, "
                    "finished spaces are kept. Start it again and repeat the call."
                ) from None
            except (ValueError, TypeError, OSError) as error:
                raise named(error, name) from error
            # Released, or the scheduler would compute it again if its worker were lost later.
            future.release()
            yield name, result
    finally:
        client.cancel(list(futures))


def _keep(shared: tuple[Any, ...]) -> tuple[Any, ...]:
    return shared


def _on_space(
    part: Part, function: Callable[..., Any], shared: tuple[Any, ...], own: tuple[Any, ...]
) -> Any:
    return function(part.open(), *shared, *own)
