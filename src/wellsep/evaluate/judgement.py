"""The main job in one call, and all its records in one: scores, answers, confidence, details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._records import Record, freeze
from wellsep.compute.contingency import count_labels
from wellsep.evaluate.baselines import oriented_scores
from wellsep.evaluate.confidence import RankConfidence, draw_plan, rank_draws
from wellsep.evaluate.copies import class_numbers, judge_distinct, rows_once, spaces_once
from wellsep.evaluate.details import PartitionDetails, details_of_best
from wellsep.evaluate.embeddings import EmbeddingRanking, rank_embeddings
from wellsep.evaluate.options import AceOptions, Options, takes_options
from wellsep.evaluate.ranking import Ranking, rank
from wellsep.evaluate.result import AceResult
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.evaluate.scoring import encode_runs, score_spaces, with_drawn_spaces
from wellsep.evaluate.voting import VOTES, draws_of, plain_votes, vote_of
from wellsep.evaluate.voting_result import Consensus
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class Judgement(Record):
    """Everything that was found out about some runs, without their truth.

    Attributes
    ----------
    scores : Scores
    answers : dict of judge to dict of index to AceResult, or of agreement to Consensus
        What each judge says: "ace" by each index, "consensus" (without a first judge) by "ari" and
        "nmi".
    confidence : RankConfidence or None
        Of the deciding answer.
    details : PartitionDetails or None
        The best partition, object by object.
    input_scores : ndarray of shape (M,) or None
        Scores in the data that the runs were made from, by the deciding index.
    notes : sentences on indices that could not rank the runs
    judge : str
        The judge that decides; a key of `answers`.
    """

    scores: Scores
    answers: Mapping[str, Mapping[str, Any]]
    confidence: RankConfidence | None = None
    details: PartitionDetails | None = None
    input_scores: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    judge: str = "ace"

    @property
    def answer(self) -> AceResult | Consensus:
        """The deciding judge's answer, by the deciding index, the first one, or by a vote."""
        answer: AceResult | Consensus = next(iter(self.answers[self.judge].values()))
        return answer

    @property
    def by_ace(self) -> AceResult:
        """ACE's answer by the deciding index."""
        answer: AceResult = next(iter(self.answers["ace"].values()))
        return answer

    @cached_property
    def ranking(self) -> Ranking:
        """The partitions in the order of the answer."""
        others = list(self.answers["ace"].values())[1:]
        answer = self.answer
        return rank(
            self.by_ace,
            others=others,
            confidence=self.confidence,
            input_scores=self.input_scores,
            votes=self.votes,
            decided_by=answer if isinstance(answer, Consensus) else None,
        )

    @cached_property
    def embeddings(self) -> EmbeddingRanking:
        """The embeddings in the order of :func:`wellsep.rank_embeddings`."""
        return rank_embeddings(self)

    @property
    def votes(self) -> dict[str, np.ndarray]:
        """Scores of the plain consensus, by its name beside the baselines."""
        found = self.answers.get("consensus", {})
        return {name: found[m].scores for name, m in VOTES.items() if m in found}

    def explain(self) -> str:
        """Say in plain sentences what was left out and why, what decided, and how sure it is."""
        said = (*self.ranking.explanation, *self.notes, self.embeddings.explain())
        return "\n".join(filter(None, said))

    def to_dict(self) -> dict[str, Any]:
        """All findings as plain nested data, for JSON."""
        result, ranking = self.by_ace, self.ranking
        names = result.spaces
        return {
            "best": list(ranking.winners),
            "judge": self.judge,
            "index": result.index,
            "ranking": [
                dict(zip(ranking.table(), row, strict=True))
                for row in zip(*ranking.table().values(), strict=True)
            ],
            "explanation": [*ranking.explanation, *self.notes],
            "embeddings": self.embeddings.to_rows(),
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
            "options": {k: v for k, v in asdict(result.options).items() if k != "index"},
            "settings": _settings(self.scores),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas frame of the ranking, best first."""
        return self.ranking.to_frame()

    def _repr_html_(self) -> str:
        return self.ranking._repr_html_()


def _settings(scores: Scores) -> dict[str, Any]:
    """What the values depend on; the options say whether there was a dip test."""
    settings = {} if scores.settings is None else asdict(scores.settings)
    if not settings.pop("dip", True):
        settings["projection"] = None
    settings.pop("n_plotted", None)  # no value depends on it
    return {"indices": dict(scores.index_specs), **settings, "version": scores.version}


def _dip_table(scores: Scores, result: AceResult) -> list[dict[str, Any]]:
    if scores.dip is None or result.dip_adjusted is None:
        return []
    columns = (scores.spaces, scores.dip.statistic, scores.dip.pvalue, result.dip_adjusted)
    return [
        {"space": s, "statistic": float(d), "pvalue": float(p), "adjusted": float(a), "note": note}
        for s, d, p, a, note in zip(*columns, scores.dip.notes, strict=True)
    ]


@takes_options(Options)
def judge(runs: Runs, options: Options) -> Judgement:
    """Score, judge, resample and rank: the main job in one call.

    Parameters
    ----------
    runs : Runs
    **options
        The fields of :class:`Options`.

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
    partitions = encode_runs(runs, options)
    n_spaces = len(runs.spaces)
    runs = with_drawn_spaces(runs, options)
    once, copies = spaces_once(runs)
    plan = job = None
    if options.n_draws:
        index, params = options.deciding
        drawn_for = index.name, params
        plan = draw_plan(partitions, len(once.spaces), drawn_for, options, options.random_state)
        test = options.dip and options.redo_dip
        job = plan.resampling(index.name, params, tuple(once.spaces), options.projection, test=test)
    scores, resampled = score_spaces(once, partitions, options, job)
    scores = replace(rows_once(scores, copies), class_of=class_numbers(partitions.first_equal))
    by_ace = options.part(AceOptions)
    answer = judge_distinct(scores, by_ace)
    answers = {answer.index: answer}
    notes: tuple[str, ...] = ()
    if len(runs.spaces) < n_spaces:
        notes = (
            f"The partitions were scored in {len(runs.spaces):,} of {n_spaces:,} spaces, drawn at "
            "random (max_spaces).",
        )
    for index_name in scores.indices:
        if index_name == answer.index:
            continue
        try:
            answers[index_name] = judge_distinct(scores, replace(by_ace, index=index_name))
        except NothingToRank as reason:
            notes += (f"{index_name} could not rank the runs: {reason}",)
    counted = count_labels(partitions, n_jobs=options.n_jobs)
    by_judge: dict[str, dict[str, Any]] = {"ace": answers}
    if votes := plain_votes(counted):
        by_judge["consensus"] = votes
    score_draw = None
    if options.judge != "ace":
        if options.judge not in by_judge:
            by_judge[options.judge] = {"ari": vote_of(options.judge, counted, answer)}
        if plan is not None:
            score_draw = draws_of(options.judge, partitions, plan.halves)
    confidence = None
    if plan is not None and job is not None:
        confidence = rank_draws(
            plan,
            job,
            scores,
            answer,
            resampled,
            options.level,
            score_draw=score_draw,
            progress=options.progress,
        )
    in_input = None
    if options.X is not None:
        spec = scores.index_specs[answer.index]
        by = {"device": options.device, "n_jobs": options.n_jobs}
        in_input = freeze(oriented_scores(options.X, partitions, spec, **by))
    found = Judgement(scores, by_judge, confidence, None, in_input, notes, options.judge)
    if not options.details:
        return found
    best = found.ranking.best
    return replace(found, details=details_of_best(runs, partitions, answer, best, options.device))
