"""What a page of a ranking rests on: judgement, runs, and what is known about the objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.evaluate import (
    AceResult,
    ClusterDescription,
    Judgement,
    PartitionDetails,
    Ranking,
    partition_details,
)
from wellsep.evaluate.clusters.describing_best import describe_best
from wellsep.partitions import encode
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class Evidence:
    """A judgement and what else the page knows; None where it was not given."""

    judgement: Judgement
    details: PartitionDetails | None
    described: Mapping[str, ClusterDescription]  # best first
    runs: Runs | None
    truth: np.ndarray | None
    known: Mapping[str, Any]  # columns about the objects

    @property
    def ace(self) -> AceResult | None:
        """ACE's answer, whoever decides; None where there was no embedding."""
        return self.judgement.by_ace

    @property
    def spaces(self) -> tuple[str, ...]:
        return () if self.ace is None else self.ace.spaces

    @property
    def ids(self) -> np.ndarray | None:
        if self.runs is not None and self.runs.ids is not None:
            return self.runs.ids
        return self.judgement.scores.ids

    @property
    def n_objects(self) -> int:
        return self.judgement.scores.n_objects if self.runs is None else self.runs.n_objects

    @property
    def params(self) -> Mapping[str, Mapping[str, Any]]:
        return self.judgement.scores.params if self.runs is None else self.runs.params

    @property
    def made_in(self) -> np.ndarray:
        """(M,) for each partition the space it was made in, -1 where none is known."""
        made_in = np.asarray(self.judgement.scores.made_in)
        return made_in if self.spaces else np.full_like(made_in, -1)


def collect_evidence(
    judgement: Judgement, *, runs: Any, truth: Any, objects: Any = None
) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    ranking, scores = judgement.ranking, judgement.scores
    details, described = judgement.details, judgement.descriptions
    if runs is not None:
        _check_runs(ranking, runs)
        if details is None and ranking.by_ace is not None:
            noise = "exclude" if scores.settings is None else scores.settings.noise  # as judged
            details = partition_details(runs, ranking.by_ace, partition=ranking.best, noise=noise)
            best = encode(runs.partitions[ranking.best], noise=noise, name=ranking.best)
            pair = [(ranking.best, details.space)]
            described = describe_best(runs.spaces, best, pair, ids=runs.ids, details=details)
    if truth is not None:
        if runs is None:
            raise ValueError("truth must come with runs, got none; pass runs=load_runs(folder).")
        truth = to_numpy(truth, "truth").reshape(-1)
        if len(truth) != runs.n_objects:
            raise ValueError(
                f"truth must have one class per object ({runs.n_objects}), got {len(truth)}."
            )
    if objects is None:  # what came with the runs
        objects = {} if runs is None else runs.objects
    n_objects = scores.n_objects if runs is None else runs.n_objects
    known = _columns(objects, n_objects)
    return Evidence(judgement, details, described, runs, truth, known)


def _columns(objects: Any, n: int) -> dict[str, np.ndarray]:
    """Columns about the objects, by name, each of one value per object."""
    if not hasattr(objects, "keys") or not hasattr(objects, "__getitem__"):
        raise TypeError(
            "objects must be a frame or a mapping of names to columns, got "
            f"{type(objects).__name__}."
        )
    found = {str(name): np.asarray(objects[name]).reshape(-1) for name in objects}
    for name, values in found.items():
        if len(values) != n:
            raise ValueError(
                f"objects[{name!r}] must have one value per object ({n}), got {len(values)}."
            )
    return found


def _check_runs(ranking: Ranking, runs: Any) -> None:
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    for what, names, there in (
        ("partition", ranking.names, runs.partitions),
        ("space", () if ranking.by_ace is None else ranking.by_ace.spaces, runs.spaces),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"runs must hold every {what} that was ranked, got none called {missing[0]!r}."
            )
