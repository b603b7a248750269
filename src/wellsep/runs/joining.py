"""Runs of several folders together: names that stay unique by their path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from wellsep.runs.collection import Runs
from wellsep.runs.run import Run


def below(path: str, runs: Iterable[Run]) -> list[Run]:
    """The runs with a path before their names, also where they name the space of each other."""
    runs = list(runs)
    names = {run.name for run in runs}
    return [
        run._with(
            name=f"{path}/{run.name}",
            space=f"{path}/{run.space}" if run.space in names else run.space,
        )
        for run in runs
    ]


def join_runs(parts: Mapping[str, Runs]) -> Runs:
    """The runs of several sources, by path; a source with a name that another has puts it before.

    Examples
    --------
    >>> dec, idec = (Runs.from_parts({}, {"K=2": [0, 0, 1]}) for _ in range(2))
    >>> join_runs({"dec": dec, "idec": idec}).names
    ('dec/K=2', 'idec/K=2')
    """
    times = Counter(name for runs in parts.values() for name in runs.names)
    joined: list[Run] = []
    for path, runs in parts.items():
        joined += below(path, runs) if any(times[name] > 1 for name in runs.names) else runs
    notes = tuple(dict.fromkeys(note for runs in parts.values() for note in runs.notes))
    return Runs(tuple(joined), notes=notes)
