"""One task per space on a Dask cluster: workers read the embeddings, this process keeps results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wellsep.compute.dask.client import open_client
from wellsep.runs import Runs
from wellsep.runs.run import Part

Step = Callable[..., Any]
Progress = Callable[[int, int, str], None]


def each_space(
    runs: Runs,
    spaces: tuple[str, ...],
    function: Step,
    shared: tuple[Any, ...],
    own: dict[str, tuple[Any, ...]],
    *,
    scheduler: Any,
    progress: Progress | None,
) -> Iterator[tuple[str, Any]]:
    """``function(X, *shared, *own[space])``, here in order or on a cluster as each is done."""
    with open_client(scheduler) as client:
        if client is None:
            for done, name in enumerate(spaces):
                _tell(progress, done, len(spaces), name)
                yield name, function(runs.spaces[name], *shared, *own[name])
        else:
            _tell(progress, 0, len(spaces), "")
            found = over_spaces(client, runs, spaces, function, *shared, own=own)
            for done, (name, result) in enumerate(found, 1):
                yield name, result
                if done < len(spaces):
                    _tell(progress, done, len(spaces), name)
        _tell(progress, len(spaces), len(spaces), "")


def _tell(progress: Progress | None, done: int, total: int, name: str) -> None:
    if progress is not None:
        progress(done, total, name)


def over_spaces(
    client: Any,
    runs: Runs,
    spaces: tuple[str, ...],
    function: Step,
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


def _on_space(part: Part, function: Step, shared: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
    return function(part.open(), *shared, *own)


def named(error: Exception, space: str) -> Exception:
    """The error with the space it is about."""
    text = str(error)
    if repr(space) in text:
        return error
    return type(error)(f"space {space!r}: {text}")
