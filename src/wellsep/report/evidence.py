"""What a page may draw on: a ranking with its answer in full, and the runs and scores behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks import to_numpy
from wellsep.evaluate import (
    AceResult,
    Judgement,
    PartitionDetails,
    Ranking,
    Scores,
    partition_details,
    rank,
)
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class Evidence:
    """A ranking and what is known about it; None where it was not given."""

    ranking: Ranking
    scores: Scores | None = None
    details: PartitionDetails | None = None
    runs: Runs | None = None
    truth: np.ndarray | None = None

    @property
    def result(self) -> AceResult:
        return self.ranking.result

    @property
    def spaces(self) -> tuple[str, ...]:
        return self.result.spaces

    @property
    def ids(self) -> np.ndarray | None:
        if self.runs is not None and self.runs.ids is not None:
            return self.runs.ids
        return None if self.scores is None else self.scores.ids

    @property
    def n_objects(self) -> int:
        if self.runs is not None:
            return self.runs.n_objects
        if self.details is not None:
            return len(self.details.codes)
        return 0 if self.scores is None else self.scores.n_objects

    @property
    def params(self) -> Mapping[str, Mapping[str, Any]]:
        if self.runs is not None:
            return self.runs.params
        return {} if self.scores is None else self.scores.params

    @property
    def made_in(self) -> np.ndarray:
        """(M,) for each partition the space it was made in, -1 where none is known."""
        place = {name: i for i, name in enumerate(self.spaces)}
        if self.scores is not None and self.scores.spaces == self.spaces:
            return np.asarray(self.scores.made_in)
        if self.runs is not None:
            spaces, names = list(self.runs.spaces), list(self.runs.partitions)
            made = {n: spaces[p] for n, p in zip(names, self.runs.made_in, strict=True) if p >= 0}
            return np.array([place.get(made.get(n, ""), -1) for n in self.ranking.names])
        return np.array([place.get(name, -1) for name in self.ranking.names])


def gather(result: Judgement | Ranking | AceResult, *, runs: Any, truth: Any) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    scores = details = None
    if isinstance(result, Judgement):
        ranking, scores, details = result.ranking, result.scores, result.details
    else:
        ranking = rank(result) if isinstance(result, AceResult) else result
    if runs is not None:
        _check_runs(ranking, runs)
        if details is None:
            details = partition_details(runs, ranking.result)
    if truth is not None:
        if runs is None:
            raise ValueError("truth must come with runs, got none; pass runs=load_runs(folder).")
        truth = to_numpy(truth).reshape(-1)
        if len(truth) != runs.n_objects:
            raise ValueError(
                f"truth must have one class per object ({runs.n_objects}), got {len(truth)}."
            )
    return Evidence(ranking, scores, details, runs, truth)


def _check_runs(ranking: Ranking, runs: Any) -> None:
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    for what, names, there in (
        ("partition", ranking.names, runs.partitions),
        ("space", ranking.result.spaces, runs.spaces),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"runs must hold every {what} that was ranked, got none called {missing[0]!r}."
            )
