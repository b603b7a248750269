"""The main job in one call: score, let each judge answer, resample, and say who decides."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._files.records import freeze
from wellsep.compute.statistics.contingency import Counted, count_labels
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.baselines import oriented_scores
from wellsep.evaluate.ace_method.steps import judge_by_ace
from wellsep.evaluate.certainty.confidence import RankConfidence, ace_draws, rank_draws
from wellsep.evaluate.certainty.draws import Plan, draw_plan
from wellsep.evaluate.certainty.half_samples import Resampled, Resampling
from wellsep.evaluate.certainty.vote_draws import confidence_of_vote
from wellsep.evaluate.clusters.describing_best import describe_best
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.objects import details_of_best, leading_space, object_details
from wellsep.evaluate.distinct import rows_once, spaces_once
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.options import Ace, Options, Progress, VoteOptions, as_ace
from wellsep.evaluate.problem import open_runs
from wellsep.evaluate.scores import Coordinates, NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import (
    encode_labels,
    encode_runs,
    score_spaces,
    scores_of_labels,
    with_drawn_spaces,
)
from wellsep.evaluate.scoring.workers import tell
from wellsep.evaluate.structure import structure_of
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.vote.ballot import hold_vote, plain_votes, refuse_too_few, vote_by_ace
from wellsep.evaluate.vote.weights import k_varies
from wellsep.indices.index_names import IndexSpec
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.folder_names import natural_key
from wellsep.spaces.drawing_planes import drawn_objects, lay_out

MOST_LAID_OUT = 1000  # objects; t-SNE of them takes a few seconds


def judge(
    runs: Any,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    judge: str = "auto",
    noise: str = "priced",
    X: Any = None,
    n_draws: int = 100,
    dip: bool = True,
    details: bool = True,
    layout: str | None = None,
    spaces: Any = None,
    labels: Any = None,
    pairs: Any = None,
    max_spaces: int | None = None,
    ace: Ace | Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: Any = None,
    n_jobs: int | None = None,
    scheduler: Any = None,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> Judgement:
    """Rank runs without labels; say how certain the ranking is and why.

    Where the number of clusters varies, the partitions vote for each other and ACE weighs their
    votes. Elsewhere ACE decides. ``judge=`` chooses one of the two. With labels alone, without any
    embedding, all votes weigh the same. All judges can be wrong together, and agreement sees no
    number of clusters beyond those that were tried.

    Parameters
    ----------
    runs : Runs, path, AnnData, Optuna study, mapping, or iterable of (name, embedding, labels)
        A path is what ``wellsep rank`` takes, such as a folder of runs. A mapping has for each name
        the labels, or (embedding, labels). What to take of AnnData, ``labels`` and ``spaces`` say.
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``. The first index decides the ranking. The others are
        computed and shown next to it.
    judge : {"auto", "ace", "consensus"}
        Who decides. "ace": the spaces that agree, see :func:`wellsep.ace`. "consensus": the
        partitions vote for each other, see :func:`wellsep.consensus`, and a vote weighs by its
        squared rank by ACE. "auto": consensus where the number of clusters varies (at least three
        different ones among distinct partitions, and their 90 % quantile at least 1.5 times their
        10 % quantile), else ACE. Without any space all votes weigh the same. The other judge is
        shown next to it.
    noise : {"priced", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. By default such objects are not counted and lower
        the score, so that a run that calls most objects noise does not win by it; an index that has
        no price for them is refused. "exclude": they are not counted and cost nothing. "cluster":
        they are one cluster. "singletons": each is a cluster. "error": they are refused.
    X : array-like or frame of shape (n, p), optional
        The data the runs were made from. If given, every partition is also scored there, as a
        baseline. The columns of a frame name the features that make each cluster: pass
        ``pandas.DataFrame(X, columns=names)`` to name those of an array.
    n_draws : int
        Half-samples for the rank intervals; 0 for none.
    dip : bool
        Test every space for more than one mode, and leave out those in which the test finds one
        only. A space whose test is undefined (p is NaN) is kept. If no test finds more than one
        mode, all are kept. The explanation says which.
    details : bool
        Also keep the silhouette widths and margins of the best partition, what is in the clusters
        of the five best, and the coordinates of at most 2,000 objects in every space, for drawing.
    layout : {None, "auto", "umap", "tsne", "pca"}
        Also lay out at most 1,000 objects in a plane, to draw every clustering in: those of ``X``,
        else of the space that the best partition was made in. "auto": UMAP where it is installed,
        else t-SNE. It takes seconds; None draws principal components of each space instead.
    spaces : str or iterable of str, optional
        Score in these embeddings only, by name or pattern; a text is split at commas.
    labels : str or iterable of str, optional
        Score these partitions only, by name or pattern, such as ``"leiden_*"``.
    pairs : str or mapping of str to str, optional
        In which embedding a partition was made, see :func:`wellsep.adapters.runs_from_anndata`.
    max_spaces : int, optional
        Score the partitions in at most so many spaces, drawn by ``random_state``. All partitions
        are kept. The work grows with the number of spaces, and that of ACE with its square.
    ace : Ace or mapping, optional
        The switches of ACE, such as ``Ace(grouping="dbscan")``, see :class:`wellsep.Ace`.
    cache : path, optional
        Folder that keeps finished spaces by content; an interrupted call continues from it, and
        only new partitions are scored again.
    device : str, optional
        "cuda" computes on the GPU through PyTorch.
    n_jobs : int, optional
        Threads; by default as many as BLAS would use. The result does not depend on it.
    scheduler : str or distributed.Client, optional
        A Dask cluster that works on the spaces, each in a task of its own; an active client is
        used by default. Embeddings in files are read by the workers.
    progress : callable, optional
        Called as ``progress(done, total, space)`` before each space, and at the end; then the
        same way for the half-samples, which are called "half-samples", and, with more than 64
        partitions, for those whose pairs are counted, called "pairs".
    random_state : int or Generator
        Chooses the objects whose coordinates are kept, the half-samples, and the spaces of
        ``max_spaces``.

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
    options = Options(
        indices=indices,
        judge=judge,
        noise=noise,
        X=X,
        n_draws=n_draws,
        dip=dip,
        details=details,
        layout=layout,
        spaces=spaces,
        labels=labels,
        pairs=pairs,
        max_spaces=max_spaces,
        ace=as_ace(ace),
        cache=cache,
        device=device,
        n_jobs=n_jobs,
        scheduler=scheduler,
        progress=progress,
        random_state=random_state,
    )
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
    classes = partitions.distinct
    if 1 == len(classes) < len(partitions):
        return _judge_equal(runs, partitions, options)
    n_spaces = len(runs.spaces)
    runs = with_drawn_spaces(runs, options)
    once, copies = spaces_once(runs)
    plan = job = None
    if options.n_draws:
        index, params = next(iter(options.parsed.values()))
        spaces, first = tuple(once.spaces), (index.name, params)
        plan = draw_plan(partitions, spaces, options.n_draws, options.random_state, first)
        job = plan.resampling(*first, spaces, options.projection, test=options.dip)
    scores, resampled = score_spaces(once, partitions, options, job)
    scores = rows_once(scores, copies)
    answer = judge_by_ace(scores, options.ace, dip=options.dip, classes=classes)
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
            answers[index_name] = judge_by_ace(
                scores, options.ace, index_name, dip=options.dip, classes=classes
            )
        except NothingToRank as reason:
            notes += (f"{index_name} could not rank the runs: {reason}",)
    counted = count_labels(partitions, n_jobs=options.n_jobs, progress=options.progress)
    by_judge: dict[str, dict[str, Any]] = {"ace": answers}
    if plain := plain_votes(counted, classes):
        votes = {k: vote_by_ace(counted, own) for k, own in answers.items()}
        by_judge |= {"consensus": votes, "plain_consensus": plain}
    decides = _who_decides(options.judge, counted, by_judge)
    confidence = None
    if plan is not None and job is not None:
        vote = by_judge["consensus"][answer.index] if decides == "consensus" else None
        confidence = _confidence(partitions, plan, job, scores, answer, vote, resampled, options)
    in_input = None
    if options.X is not None:
        by = {"device": options.device, "n_jobs": options.n_jobs}
        of_answer = scores.index_specs[answer.index]
        in_input = freeze(oriented_scores(options.X, partitions, of_answer, **by))
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
    classes = next(iter(by_judge["consensus"].values())).classes
    varies = k_varies(counted.n_clusters[classes.first])
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
        codes = partitions.codes[answer.classes.first]
        return rank_draws(plan, job, scores, answer, resampled, codes, progress=options.progress)
    draws = ace_draws(plan, job, scores, answer, resampled, options.progress)
    return confidence_of_vote(
        vote,
        partitions,
        plan,
        (None if draw is None else draw.scores for draw in draws),
        job=job,
        spent=sum(one.seconds for one in resampled.values()),
        n_jobs=options.n_jobs,
        progress=options.progress,
    )


def _draws_without_ace(options: Options) -> Iterator[None]:
    for draw in range(options.n_draws):
        tell(options.progress, draw, options.n_draws, "half-samples")
        yield None
    tell(options.progress, options.n_draws, options.n_draws, "half-samples")


def _judge_equal(runs: Runs, partitions: Partitions, options: Options) -> Judgement:
    """The judgement of runs that all found the same clustering: is there anything to cluster."""
    n, k = len(partitions), int(partitions.n_clusters[0])
    if k < 2:
        found = "find one cluster only" if k else "call every object noise (-1)"
        raise NothingToRank(f"All {n} runs {found}; add runs that find two clusters or more.")
    counted = count_labels(partitions, n_jobs=options.n_jobs)
    vote = hold_vote(counted, partitions.distinct, VoteOptions())
    structure = details = None
    if runs.spaces:
        once, copies = spaces_once(with_drawn_spaces(runs, options))
        scores = rows_once(score_spaces(once, partitions, options)[0], copies)
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
    if 1 == len(partitions.distinct) < len(partitions):
        return _judge_equal(runs, partitions, options)
    counted = count_labels(partitions, n_jobs=options.n_jobs, progress=options.progress)
    refuse_too_few(partitions.distinct)
    plain = plain_votes(counted, partitions.distinct)
    vote = plain["ari"]
    confidence = None
    if options.n_draws:
        plan = draw_plan(partitions, (), options.n_draws, options.random_state)
        confidence = confidence_of_vote(
            vote,
            partitions,
            plan,
            _draws_without_ace(options),
            n_jobs=options.n_jobs,
            progress=options.progress,
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
