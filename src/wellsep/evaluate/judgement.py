"""The main job in one call, and all its records in one: scores, answers, ranking, choice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._checks import check_count
from ..indices.scoring import IndexSpec, parse_indices
from ..runs import Runs
from .ace import ace
from .baselines import raw as raw_scores
from .choice import Choice, describe_choice
from .ranking import Ranking, rank
from .records import Record
from .result import AceResult
from .scores import NothingToRank, Scores
from .scoring import Progress, check_runs, score_spaces
from .sureness import draw_plan, rank_draws


@dataclass(frozen=True, eq=False)
class Judgement(Record):
    """Everything that was found out about some runs, without their truth.

    Attributes
    ----------
    scores : Scores
    results : tuple of AceResult
        One per index; the first is the answer.
    ranking : Ranking
    choice : Choice or None
        The chosen partition, object by object.
    notes : sentences on indices that could not stand beside the first
    """

    scores: Scores
    results: tuple[AceResult, ...]
    ranking: Ranking
    choice: Choice | None = None
    notes: tuple[str, ...] = ()

    @property
    def result(self) -> AceResult:
        """The answer."""
        return self.results[0]

    def explain(self) -> str:
        """Plain sentences: what fell out and why, which group won, and how sure one can be."""
        return "\n".join((*self.ranking.explanation, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """All findings as plain nested data, for JSON."""
        result, ranking = self.result, self.ranking
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
            "kind": result.kind,
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
            "beside": {r.index: list(r.scores) for r in self.results[1:]},
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
    reduction: str = "pca-scaled",
    describe: bool = True,
    n_jobs: int | None = None,
    device: Any = None,
    cache: str | os.PathLike | None = None,
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
        The first is the answer, the others stand beside it.
    n_draws : int
        Half-samples for the rank intervals; 0 for none.
    X : array-like of shape (n, p), optional
        The input space, for the raw baseline.
    noise, convention, reduction, n_jobs, device, cache, progress, random_state, scheduler
        As in :func:`wellsep.score_runs`.
    describe : bool
        Also keep the silhouette widths and margins of the chosen partition.
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
        plan = draw_plan(runs.n_objects, len(spaces), n_draws, random_state=random_state)
        if decides in asked:  # ace refuses any other
            job = plan.resampling(*asked[decides], spaces, reduction, test=bool(dip))
    scores, resampled = score_spaces(
        runs, indices, job, noise=noise, convention=convention, dip=dip, reduction=reduction,
        n_jobs=n_jobs, device=device, cache=cache, progress=progress, random_state=random_state,
        scheduler=scheduler,
    )  # fmt: skip
    results: tuple[AceResult, ...] = (ace(scores, **options),)
    notes: tuple[str, ...] = ()
    for index in scores.indices[1:]:
        try:
            results += (ace(scores, index=index, **options),)
        except NothingToRank as reason:
            notes += (f"{index} does not stand beside: {reason}",)
    sure = None
    if plan is not None and job is not None:
        sure = rank_draws(plan, job, scores, results[0], resampled)
    raw = None
    if X is not None:
        first = (scores.settings["indices"][results[0].index],)
        raw = raw_scores(X, runs, indices=first, noise=noise, device=device, n_jobs=n_jobs)[
            results[0].index
        ]
    ranking = rank(results[0], beside=results[1:], sureness=sure, raw=raw)
    policy = "exclude" if noise == "error" else noise
    choice = describe_choice(runs, results[0], noise=policy, device=device) if describe else None
    return Judgement(scores, results, ranking, choice, notes)
