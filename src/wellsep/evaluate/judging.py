"""The main job in one call: score, let each judge answer, resample, and say who decides."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._files.records import freeze
from wellsep.compute.statistics.contingency import Counted, count_labels
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.baselines import oriented_scores
from wellsep.evaluate.certainty.confidence import RankConfidence, ace_draws, rank_draws
from wellsep.evaluate.certainty.draws import Plan, draw_plan
from wellsep.evaluate.certainty.half_samples import Resampled, Resampling
from wellsep.evaluate.certainty.vote_draws import confidence_of_vote
from wellsep.evaluate.clusters.describing_best import describe_best
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.objects import details_of_best, leading_space, object_details
from wellsep.evaluate.distinct import class_numbers, judge_distinct, rows_once, spaces_once
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.keywords import takes_options
from wellsep.evaluate.options import AceOptions, Options
from wellsep.evaluate.problem import open_runs
from wellsep.evaluate.scores import Coordinates, NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import (
    encode_labels,
    encode_runs,
    score_spaces,
    scores_of_labels,
    with_drawn_spaces,
)
from wellsep.evaluate.structure import structure_of
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.vote.ballot import plain_votes, refuse_too_few, unanimous_vote, vote_by_ace
from wellsep.evaluate.vote.weights import all_equal, first_of_class, k_varies, number_classes
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.folder_names import natural_key
from wellsep.spaces.drawing_planes import drawn_objects, lay_out

MOST_LAID_OUT = 1000  # objects; t-SNE of them takes a few seconds


@takes_options(Options)
def judge(runs: Runs, options: Options) -> Judgement:
    """Rank runs without labels; say how certain the ranking is and why.

    Where the number of clusters varies, the partitions vote for each other and ACE weighs their
    votes. Elsewhere ACE decides. ``judge=`` chooses one of the two. With labels alone, without any
    embedding, all votes weigh the same. All judges can be wrong together, and agreement sees no
    number of clusters beyond those that were tried.

    Parameters
    ----------
    runs : Runs, AnnData, Optuna study, or iterable of (name, labels, embedding)
        The labelings and embeddings of AnnData are chosen by ``labels`` and ``spaces``.
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
    runs = open_runs(runs, options)
    found = replace(_judge(runs, options), options=options.to_plain())
    if options.layout is None or not options.details or not runs.spaces:
        return found
    return replace(found, layout=_layout(runs, found, options))


def _layout(runs: Runs, found: Judgement, options: Options) -> Coordinates:
    """Some objects in a plane: those of the input, else of the best partition's own space."""
    kept = found.scores.plot_coordinates
    chosen = drawn_objects(runs.n_objects, MOST_LAID_OUT) if kept is None else kept.objects
    if len(chosen) > MOST_LAID_OUT:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_LAID_OUT).round().astype(np.intp)]
    if options.X is not None:
        X, what = to_numpy(options.X), "the input"
    else:
        at = found.scores.made_in[found.scores.partitions.index(found.ranking.best)]
        what = found.scores.spaces[max(0, int(at))]
        X = runs.spaces[what]
    xy, axes = lay_out(X, chosen, options.layout or "auto")
    return Coordinates(freeze(chosen), (freeze(xy),), (f"{axes} of {what}",))


def _judge(runs: Runs, options: Options) -> Judgement:
    """Scores, answers, confidence and details; with labels alone, or equal runs, what there is."""
    if isinstance(runs, Runs) and not runs.spaces and runs.partitions:
        return _judge_labels(runs, options)
    partitions = encode_runs(runs, options)
    if all_equal(partitions.first_equal):
        return _judge_equal(runs, partitions, options)
    n_spaces = len(runs.spaces)
    runs = with_drawn_spaces(runs, options)
    once, copies = spaces_once(runs)
    plan = job = None
    if options.n_draws:
        index, params = options.deciding
        drawn_for = index.name, params
        plan = draw_plan(partitions, tuple(once.spaces), options, options.random_state, drawn_for)
        test = options.dip and options.redo_dip
        job = plan.resampling(index.name, params, tuple(once.spaces), options.projection, test=test)
    scores, resampled = score_spaces(once, partitions, options, job)
    scores = replace(rows_once(scores, copies), class_of=class_numbers(partitions.first_equal))
    by_ace = options.part(AceOptions)
    answer = judge_distinct(scores, by_ace)
    answers = {answer.index: answer}
    notes = runs.notes
    if len(runs.spaces) < n_spaces:
        notes += (
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
    if plain := plain_votes(counted):
        votes = {k: vote_by_ace(counted, own) for k, own in answers.items()}
        by_judge |= {"consensus": votes, "plain_consensus": plain}
    decides = _who_decides(options.judge, counted, by_judge)
    confidence = None
    if plan is not None and job is not None:
        vote = by_judge["consensus"][answer.index] if decides == "consensus" else None
        confidence = _confidence(partitions, plan, job, scores, answer, vote, resampled, options)
    in_input = None
    if options.X is not None:
        spec = scores.index_specs[answer.index]
        by = {"device": options.device, "n_jobs": options.n_jobs}
        in_input = freeze(oriented_scores(options.X, partitions, spec, **by))
    structure = structure_of(once, scores, partitions, options)
    found = Judgement(
        scores,
        by_judge,
        confidence,
        input_scores=in_input,
        notes=notes,
        judge=decides,
        asked=options.judge,
        structure=structure,
        params=_params_of(runs),
    )
    if not options.details:
        return found
    best = found.ranking.best
    own = int(scores.made_in[scores.partitions.index(best)])
    details = details_of_best(runs, partitions, answer, best, own, options.device)
    found = replace(found, details=details)
    return replace(found, descriptions=_descriptions(runs, partitions, found, options))


def _descriptions(
    runs: Runs, partitions: Partitions, found: Judgement, options: Options
) -> dict[str, ClusterDescription]:
    """What is in the clusters of the best distinct partitions, each in its own space."""
    ranking, scores = found.ranking, found.scores
    ace = found.by_ace
    heaviest = scores.spaces[0] if ace is None else leading_space(ace)
    place = {name: at for at, name in enumerate(scores.partitions)}
    chosen = []
    for at in ranking.first_of_each:
        name = ranking.names[at]
        own = int(scores.made_in[place[name]])
        chosen.append((name, scores.spaces[own] if own >= 0 else heaviest))
    return describe_best(
        runs.spaces,
        partitions,
        chosen,
        X=options.X,
        feature_names=options.feature_names,
        ids=runs.ids,
        details=found.details,
    )


def _params_of(runs: Runs) -> dict[str, Mapping[str, Any]]:
    """Parameters of the runs that have a partition and any."""
    return {name: one for name, one in runs.params.items() if one and name in runs.partitions}


def _who_decides(asked: str, counted: Counted, by_judge: Mapping[str, Any]) -> str:
    """The judge that was asked for, or the one that suits the numbers of clusters."""
    if "consensus" not in by_judge:
        return "ace"
    if asked != "auto":
        return asked
    class_of = next(iter(by_judge["consensus"].values())).class_of
    varies = k_varies(counted.n_clusters[first_of_class(class_of)])
    return "consensus" if varies else "ace"


def _confidence(
    partitions: Partitions,
    plan: Plan,
    job: Resampling,
    scores: Scores,
    answer: AceResult,
    vote: Consensus | None,
    resampled: Mapping[str, Resampled],
    options: Options,
) -> RankConfidence:
    """How sure the deciding answer is: ACE's, or that of the vote."""
    if vote is None:
        class_of = number_classes(partitions.first_equal)
        codes = partitions.codes[first_of_class(class_of)]
        progress = options.progress
        return rank_draws(
            plan, job, scores, answer, resampled, codes, options.level, progress=progress
        )
    draws = ace_draws(plan, job, scores, answer, resampled, vote.class_of, options.progress)
    return confidence_of_vote(
        vote,
        partitions,
        plan,
        (None if draw is None else draw.scores for draw in draws),
        job=job,
        level=options.level,
        spent=sum(one.seconds for one in resampled.values()),
        n_jobs=options.n_jobs,
    )


def _judge_equal(runs: Runs, partitions: Partitions, options: Options) -> Judgement:
    """The judgement of runs that all found the same clustering: is there anything to cluster."""
    n, k = len(partitions), int(partitions.n_clusters[0])
    if k < 2:
        found = "find one cluster only" if k else "call every object noise (-1)"
        raise NothingToRank(f"All {n} runs {found}; add runs that find two clusters or more.")
    vote = unanimous_vote(count_labels(partitions, n_jobs=options.n_jobs))
    structure = details = None
    if runs.spaces:
        once, copies = spaces_once(with_drawn_spaces(runs, options))
        scores = rows_once(score_spaces(once, partitions, options)[0], copies)
        scores = replace(scores, class_of=class_numbers(partitions.first_equal))
        structure = structure_of(once, scores, partitions, options)
        if options.details:
            space = scores.spaces[max(0, int(scores.made_in[0]))]
            own = partitions[partitions.names.index(min(partitions.names, key=natural_key))]
            details = object_details(runs.spaces[space], own, space, device=options.device)
    else:
        scores = scores_of_labels(runs, partitions, options)
    judged = Judgement(
        scores,
        {"consensus": {"ari": vote}},
        details=details,
        notes=runs.notes,
        judge="consensus",
        asked=options.judge,
        structure=structure,
        params=_params_of(runs),
    )
    if details is None:
        return judged
    return replace(judged, descriptions=_descriptions(runs, partitions, judged, options))


def _judge_labels(runs: Runs, options: Options) -> Judgement:
    """The judgement of partitions alone: they vote, and all votes weigh the same."""
    if options.judge == "ace":
        raise ValueError(
            "judge must be 'auto' or 'consensus' where runs have no embedding, got 'ace'; load "
            "runs with their embeddings."
        )
    partitions = encode_labels(runs, options)
    if all_equal(partitions.first_equal):
        return _judge_equal(runs, partitions, options)
    counted = count_labels(partitions, n_jobs=options.n_jobs)
    refuse_too_few(counted.names, number_classes(counted.counts.first_equal))
    plain = plain_votes(counted)
    vote = plain["ari"]
    confidence = None
    if options.n_draws:
        plan = draw_plan(partitions, (), options, options.random_state)
        without_ace = itertools.repeat(None, options.n_draws)
        confidence = confidence_of_vote(
            vote, partitions, plan, without_ace, level=options.level, n_jobs=options.n_jobs
        )
    scores = scores_of_labels(runs, partitions, options)
    by_judge = {"consensus": {"ari": vote}, "plain_consensus": plain}
    return Judgement(
        scores,
        by_judge,
        confidence,
        notes=runs.notes,
        judge="consensus",
        asked=options.judge,
        params=_params_of(runs),
    )
