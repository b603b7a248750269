"""What runs judged together must share, and their arrays by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from wellsep.runs.run import Run


def check_names(runs: Sequence[Run]) -> None:
    seen: set[str] = set()
    for run in runs:
        if run.name in seen:
            raise ValueError(f"names of runs must be unique, got {run.name!r} twice.")
        seen.add(run.name)


def check_counts(runs: Sequence[Run]) -> None:
    counts = [run.n_objects for run in runs]
    # The odd one out is named against the number most runs have.
    usual = max(dict.fromkeys(counts), key=counts.count)
    model = runs[counts.index(usual)]
    for run in runs:
        if run.n_objects != usual:
            raise ValueError(
                f"run {run.name!r} must have the {usual} objects that run {model.name!r} has, "
                f"got {run.n_objects}; all runs must describe the same objects in the same order."
            )


def check_spaces(runs: Sequence[Run]) -> None:
    spaces = [run.name for run in runs if run.has_embedding]
    for run in runs:
        if run.space is not None and run.space not in spaces:
            raise ValueError(
                f"space of run {run.name!r} must be a run with an embedding, got {run.space!r}; "
                f"there are {listed(spaces)}."
            )


def common_ids(runs: Sequence[Run]) -> np.ndarray | None:
    """The ids all runs that have any agree on."""
    first, ids = runs[0], None
    for run in runs:
        part = run._part("ids")
        if part is None:
            continue
        if ids is None:
            first, ids = run, part.open()
        else:
            _check_same_ids(first, ids, run, part.open())
    return ids


def _check_same_ids(first: Run, ids: np.ndarray, run: Run, others: np.ndarray) -> None:
    if ids is others:
        return
    if (ids.dtype.kind == "U") != (others.dtype.kind == "U"):  # numbers read from a text file
        ids, others = ids.astype(np.str_), others.astype(np.str_)
    differ = ids != others
    if differ.any():
        where = int(np.flatnonzero(differ)[0])
        same = np.array_equal(np.sort(ids), np.sort(others))
        remedy = "sort its objects alike" if same else "use the same objects in every run"
        raise ValueError(
            f"ids of run {run.name!r} must equal those of run {first.name!r}, got "
            f"{others[where].item()!r} in place of {ids[where].item()!r} at position {where}; "
            f"{remedy}."
        )


class Parts(Mapping[str, np.ndarray]):
    """Name → array, opened when asked for."""

    def __init__(self, runs: Iterable[Run], kind: str):
        self._runs = {run.name: run for run in runs if run._part(kind) is not None}
        self._kind = kind

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            run = self._runs[name]
        except (KeyError, TypeError):
            what = "space" if self._kind == "embedding" else "partition"
            raise KeyError(f"no {what} is called {name!r}; there are {listed(self)}") from None
        return getattr(run, self._kind)

    def __contains__(self, name: object) -> bool:
        return name in self._runs

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        what = "spaces" if self._kind == "embedding" else "partitions"
        return f"<{len(self)} {what}: {listed(self)}>"


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a sentence, shortened."""
    names = list(names)
    shown = ", ".join(repr(n) for n in names[:most]) or "none"
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
