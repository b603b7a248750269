"""How the work on many spaces is shared out: among threads here, or tasks on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from wellsep._threads import budget_bytes, effective_jobs, some_at_once
from wellsep.evaluate.options import Calling, Computing, Progress
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.run import Part


@dataclass(frozen=True, eq=False)
class Team:
    """Those who work on the spaces of some runs."""

    client: Any  # of a Dask cluster, or None: this process
    runs: Runs
    partitions: Partitions  # whose clusters take room
    options: Calling


def over_spaces(
    team: Team,
    spaces: tuple[str, ...],
    function: Callable[..., Any],
    *shared: Any,
    own: Mapping[str, tuple[Any, ...]] | None = None,
    finished: int = 0,
) -> Iterator[tuple[str, Any]]:
    """``function(X, computing, *shared, *own[space])`` of each; ``finished`` were done before."""
    progress, total = team.options.progress, finished + len(spaces)
    given = dict.fromkeys(spaces, ()) if own is None else own
    if not spaces:
        tell(progress, total, total, "")
        return
    here = team.client is None
    if here:
        each = _here(team, spaces, lambda X, by, name: function(X, by, *shared, *given[name]))
    else:
        each = _on_cluster(team, spaces, function, shared, given)
    tell(progress, finished, total, spaces[0] if here else "")
    for done, (name, result) in enumerate(each, 1):
        yield name, result
        following = "" if done == len(spaces) else spaces[done] if here else name
        tell(progress, finished + done, total, following)


def _here(
    team: Team, spaces: tuple[str, ...], function: Callable[[Any, Computing, str], Any]
) -> Iterator[tuple[str, Any]]:
    """In order: several small spaces at once, large ones one by one, as the data alone decide."""
    computing = team.options.part(Computing)

    def work(name: str, computing: Computing) -> Any:
        return function(team.runs.spaces[name], computing, name)

    room = _spaces_that_fit(team, spaces)
    if room < 2:
        results: Generator[Any, None, None] = (work(name, computing) for name in spaces)
    else:
        jobs = effective_jobs(computing.n_jobs)
        at_once = min(jobs, room, len(spaces))
        share = replace(computing, n_jobs=jobs // at_once)
        items = ((name, share) for name in spaces)
        results = some_at_once(at_once, work, items, first_alone=computing.device is not None)
    with closing(results):
        for name in spaces:
            try:
                result = next(results)
            except (ValueError, TypeError) as error:
                raise named(error, name) from error
            yield name, result


def _spaces_that_fit(team: Team, spaces: tuple[str, ...]) -> int:
    """Spaces whose distance sums and rows fit the memory budget together."""
    widest = max(team.runs[name].n_features or 0 for name in spaces)
    columns = int(team.partitions.offsets[-1]) + 4 * widest
    return int(budget_bytes() / (8.0 * team.runs.n_objects * columns))


def tell(progress: Progress | None, done: int, total: int, name: str) -> None:
    """Report how many spaces are done, and the one that comes next."""
    if progress is not None:
        progress(done, total, name)


def named(error: Exception, space: str) -> Exception:
    """The error with the name of the space in it."""
    text = str(error)
    if repr(space) in text:
        return error
    return type(error)(f"embedding {space!r}: {text}")


def _on_cluster(
    team: Team,
    spaces: tuple[str, ...],
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    own: Mapping[str, tuple[Any, ...]],
) -> Iterator[tuple[str, Any]]:
    """As each is done. A worker opens the embedding itself where it lies in a file."""
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    client, computing = team.client, team.options.part(Computing)
    # A task, not scattered data: what a task made can be made again.
    common = client.submit(_keep, (computing, *shared), pure=False)
    futures = {
        client.submit(
            _on_space, team.runs[name]._part("embedding"), function, common, own[name], pure=False
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
                    f"Several workers were lost while they computed on embedding {name!r}. With a "
                    "cache, finished embeddings are kept. Give the workers more memory and repeat "
                    "the call."
                ) from None
            except CancelledError:
                raise ConnectionError(
                    "The Dask scheduler went away after "
                    f"{len(spaces) - len(futures) - 1} of {len(spaces)} embeddings. With a cache, "
                    "finished embeddings are kept. Start it again and repeat the call."
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
