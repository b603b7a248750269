"""The main job in one call, and all its records in one: scores, answers, confidence, details."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._checks import check_count
from wellsep._records import Record, freeze
from wellsep.evaluate.adaptive import ace
from wellsep.evaluate.baselines import input_scores
from wellsep.evaluate.confidence import RankConfidence, draw_plan, rank_draws
from wellsep.evaluate.details import PartitionDetails, partition_details
from wellsep.evaluate.ranking import Ranking, rank
from wellsep.evaluate.result import AceResult
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.evaluate.scoring import Progress, check_runs, score_spaces
from wellsep.indices.scoring import IndexSpec, parse_indices
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class Judgement(Record):
    """Everything that was found out about some runs, without their truth.

    Attributes
    ----------
    scores : Scores
    answers : dict of judge to dict of index to AceResult
        What each judge says by each index. The only judge so far is "ace".
    confidence : RankConfidence or None
        Of the deciding answer.
    details : PartitionDetails or None
        The best partition, object by object.
    input_scores : ndarray of shape (M,) or None
        Scores in the data that the runs were made from, by the deciding index.
    notes : sentences on indices that could not rank the runs
    judge : str
        The judge that decides.
    """

    scores: Scores
    answers: Mapping[str, Mapping[str, AceResult]]
    confidence: RankConfidence | None = None
    details: PartitionDetails | None = None
    input_scores: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    judge: str = "ace"

    @property
    def answer(self) -> AceResult:
        """The deciding judge's answer by the deciding index, the first one."""
        return next(iter(self.answers[self.judge].values()))

    @cached_property
    def ranking(self) -> Ranking:
        """The partitions in the order of the answer."""
        others = list(self.answers[self.judge].values())[1:]
        return rank(
            self.answer,
            others=others,
            confidence=self.confidence,
            input_scores=self.input_scores,
        )

    def explain(self) -> str:
        """Plain sentences: what fell out and why, which group won, and how sure one can be."""
        return "\n".join((*self.ranking.explanation, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """All findings as plain nested data, for JSON."""
        result, ranking = self.answer, self.ranking
        names = result.spaces
        return {
            "best": list(ranking.winners),
            "index": result.index,
            "ranking": [
                dict(zip(ranking.table(), row, strict=True))
                for row in zip(*ranking.table().values(), strict=True)
            ],
            "explanation": [*ranking.explanation, *self.notes],
            "winning_spaces": dict(
                zip((names[i] for i in result.winning_spaces), result.weights, strict=True)
            ),
            "won_by": result.won_by,
            "groups": [[names[i] for i in group] for group in result.groups],
            "outliers": [names[i] for i in result.outliers],
            "dropped": [
                {"space": d.space, "step": d.step, "why": d.reason} for d in result.dropped
            ],
            "undefined": [
                {"space": s, "partition": p, "why": why} for s, p, why in result.undefined
            ],
            "dip": _dip_table(self.scores, result),
            "agreement": None if result.agreement is None else {
                "spaces": [names[i] for i in result.retained],
                "correlation": result.agreement,
                "pvalue": result.pvalue,
                "adjusted": result.adjusted,
                "edges": result.edges,
            },
            "other_indices": {k: list(v) for k, v in ranking.by_other_index.items()},
            "options": dict(result.options),
            "settings": dict(self.scores.settings),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return self.ranking._repr_html_()


def _dip_table(scores: Scores, result: AceResult) -> list[dict[str, Any]]:
    if scores.dip is None or result.dip_adjusted is None:
        return []
    columns = (scores.spaces, scores.dip.statistic, scores.dip.pvalue, result.dip_adjusted)
    return [
        {"space": s, "statistic": float(d), "pvalue": float(p), "adjusted": float(a), "note": note}
        for s, d, p, a, note in zip(*columns, scores.dip.notes, strict=True)
    ]


def judge(
    runs: Runs,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    n_draws: int = 100,
    X: Any = None,
    noise: str = "error",
    convention: str | None = None,
    projection: str = "pca",
    details: bool = True,
    n_jobs: int | None = None,
    device: Any = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    random_state: Any = 0,
    scheduler: Any = None,
    **options: Any,
) -> Judgement:
    """Score, judge by ACE, resample and rank: the main job in one call.

    Parameters
    ----------
    runs : Runs
    indices : sequence of str or (str, dict)
        The first index decides the ranking. The others are computed and shown next to it.
    n_draws : int
        Half-samples for the rank intervals; 0 for none.
    X : array-like of shape (n, p), optional
        The data the runs were made from. If given, every partition is also scored there, as a
        baseline.
    noise, convention, projection, n_jobs, device, cache, progress, random_state, scheduler
        As in :func:`wellsep.score_runs`.
    details : bool
        Also keep the silhouette widths and margins of the best partition.
    **options
        Of :func:`wellsep.ace`: ``dip``, ``alpha``, ``grouping``, ``links`` …

    Returns
    -------
    Judgement

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 40)
    >>> spaces = {f"s{i}": rng.normal(0, 1, (120, 2)) + 6 * np.eye(3)[truth, :2] for i in range(4)}
    >>> runs = ws.Runs.from_parts(spaces, {"three": truth, "two": truth > 0})
    >>> ws.judge(runs, n_draws=0).ranking.best
    'three'
    """
    check_count("n_draws", n_draws, minimum=0)
    check_runs(runs)
    dip, spaces = options.get("dip", True), tuple(runs.spaces)
    plan = job = None
    if n_draws:
        asked = {index.label(p): (index.name, p) for index, p in parse_indices(indices, convention)}
        decides = options.get("index") or next(iter(asked))
        most_clusters = max((len(np.unique(v)) for v in runs.partitions.values()), default=0)
        size = runs.n_objects, len(spaces), most_clusters
        plan = draw_plan(*size, n_draws, random_state=random_state)
        if decides in asked:  # ace refuses any other
            job = plan.resampling(*asked[decides], spaces, projection, test=bool(dip))
    scores, resampled = score_spaces(
        runs, indices, job, noise=noise, convention=convention, dip=dip, projection=projection,
        n_jobs=n_jobs, device=device, cache=cache, progress=progress, random_state=random_state,
        scheduler=scheduler,
    )  # fmt: skip
    answer = ace(scores, **options)
    answers = {answer.index: answer}
    notes: tuple[str, ...] = ()
    for index in scores.indices[1:]:
        try:
            answers[index] = ace(scores, index=index, **options)
        except NothingToRank as reason:
            notes += (f"{index} could not rank the runs: {reason}",)
    confidence = None
    if plan is not None and job is not None:
        confidence = rank_draws(plan, job, scores, answer, resampled)
    in_input = None
    if X is not None:
        deciding = scores.settings["indices"][answer.index]
        in_input = freeze(
            input_scores(X, runs, index=deciding, noise=noise, device=device, n_jobs=n_jobs)
        )
    policy = "exclude" if noise == "error" else noise
    found = partition_details(runs, answer, noise=policy, device=device) if details else None
    return Judgement(scores, {"ace": answers}, confidence, found, in_input, notes)
