"""What a page of a ranking rests on: the result, the runs, and what is known about the objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.evaluate import (
    AceResult,
    ClusterDescription,
    Consensus,
    EmbeddingRanking,
    Judgement,
    PartitionDetails,
    Ranking,
    Scores,
    Verdict,
    partition_details,
    rank,
)
from wellsep.evaluate.clusters.describing_best import describe_best
from wellsep.evaluate.scores import Coordinates
from wellsep.partitions import encode
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class Evidence:
    """A ranking and what is known about it; None where it was not given."""

    ranking: Ranking
    scores: Scores | None = None
    details: PartitionDetails | None = None
    runs: Runs | None = None
    truth: np.ndarray | None = None
    verdict: Verdict | None = None
    explanation: tuple[str, ...] = ()
    embeddings: EmbeddingRanking | None = None
    vote: Consensus | None = None
    laid_out: Coordinates | None = None
    known: Mapping[str, Any] = field(default_factory=dict)  # columns about the objects
    described: Mapping[str, ClusterDescription] = field(default_factory=dict)  # best first

    @property
    def ace(self) -> AceResult | None:
        """ACE's answer, whoever decides; None where there was no embedding."""
        return self.ranking.by_ace

    @property
    def spaces(self) -> tuple[str, ...]:
        return () if self.ace is None else self.ace.spaces

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


def collect_evidence(
    result: Judgement | Ranking | AceResult | Consensus,
    *,
    runs: Any,
    truth: Any,
    objects: Any = None,
) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    scores = details = verdict = embeddings = None
    described: Mapping[str, ClusterDescription] = {}
    if isinstance(result, Judgement):
        ranking, scores, details = result.ranking, result.scores, result.details
        verdict, explanation = result.verdict, result.explanation
        embeddings, described = result.embeddings, result.descriptions
    else:
        ranking = result if isinstance(result, Ranking) else rank(result)
        explanation = ranking.explanation
    if runs is not None:
        _check_runs(ranking, runs)
        if details is None and ranking.by_ace is not None:
            settings = None if scores is None else scores.settings
            noise = "exclude" if settings is None else settings.noise  # as it was judged
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
    laid_out = result.layout if isinstance(result, Judgement) else None
    vote = result.vote if isinstance(result, Judgement) else None
    found = Evidence(
        ranking, scores, details, runs, truth, verdict, explanation, embeddings, vote, laid_out
    )
    found = replace(found, described=described)
    if objects is None:  # what came with the runs
        objects = runs.objects if isinstance(runs, Runs) else {}
    return replace(found, known=_columns(objects, found.n_objects))


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
