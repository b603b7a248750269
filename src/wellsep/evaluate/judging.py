"""The main job in one call: score, let each judge answer, resample, and say who decides."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._files.records import freeze
from wellsep.compute.statistics.contingency import PairCounts
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.steps import judge_by_ace
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.certainty.confidence import repeat
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.judged import MOST_DRAWN, KeptCodes, judge_clusters
from wellsep.evaluate.clusters.objects import PartitionDetails, object_details
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.options import Ace, Options, Progress, VoteOptions, as_ace
from wellsep.evaluate.problem import Problem
from wellsep.evaluate.scores import Coordinates, NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import oriented_scores, score_spaces
from wellsep.evaluate.structure import structure_of
from wellsep.evaluate.vote.answer import Consensus, hold_vote, refuse_too_few
from wellsep.evaluate.vote.rule import FEWEST, shared_votes
from wellsep.indices.index_names import IndexSpec
from wellsep.partitions import Partitions
from wellsep.spaces.drawing_planes import drawn_objects, lay_out

MOST_LAID_OUT = 1000  # objects; t-SNE of them takes a few seconds


def judge(
    runs: Any,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    judge: str = "auto",
    noise: str = "penalize",
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
    """Rank runs without labels; say how stable the ranking is, what that is worth, and why.

    A clustering is supported by the runs with about as many clusters, and by the index: its score
    is their mean agreement times 1 + 2 mean silhouette, see :func:`wellsep.consensus`. Where all
    runs come from one embedding, or fewer than five clusterings differ, the index decides. Every
    method here can be wrong in the same way, and only numbers of clusters tried can be ranked.

    Parameters
    ----------
    runs : Runs, path, AnnData, Optuna study, mapping, or iterable of (name, embedding, labels)
        A path is what ``wellsep rank`` takes, such as a folder of runs. A mapping has for each name
        the labels, or (embedding, labels). What to take of AnnData, ``labels`` and ``spaces`` say.
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``. The first index decides the ranking. The others are
        computed and shown next to it.
    judge : {"auto", "ace", "consensus"}
        Which method decides. "auto": the runs with about as many clusters and the index together;
        the index alone if all runs come from one embedding or fewer than five clusterings differ;
        agreement alone where there is no embedding. "consensus": the runs and the index in any
        case. "ace": the embeddings that agree, as published, see :func:`wellsep.ace`. Another
        judge is shown next to it.
    noise : {"penalize", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. By default such objects are not counted and lower
        the score, so that a run that calls most objects noise does not win by it; an index that has
        no rule for them is refused. "exclude": they are not counted and cost nothing. "cluster":
        they are one cluster. "singletons": each is a cluster. "error": they are refused.
    X : array-like or frame of shape (n, p), optional
        The data the runs were made from. If given, the verdict says whether there is anything to
        cluster (AnnData brings what was measured), and every partition is also scored there, as a
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
    problem = Problem.open(runs, options)
    if len(problem.classes) == 1:
        _refuse_trivial(problem)
    scores, resampled = score_spaces(problem)
    answers, notes = _answers(problem, scores)
    decides = options.judge if "ace" in answers else "consensus"
    if decides == "auto":
        decides = "index" if "index" in answers else "consensus"
    answer: AceResult | Consensus = next(iter(answers[decides].values()))
    by_ace: AceResult | None = next(iter(answers.get("ace", {}).values()), None)
    confidence = None
    if problem.draws is not None:
        distinct, draws = problem.distinct, problem.draws
        confidence = repeat(answer, scores, draws, resampled, distinct, options)
    # The distinct partitions that are best, or come first in some draw.
    winners = () if confidence is None else confidence.first_in_draw.tolist()
    contenders = sorted({int(answer.classes.of[answer.order[0]]), *winners})
    clusterings = _named(problem, answer).clusters_only()
    vote: Consensus = next(iter(answers["consensus"].values()))
    weights = shared_votes(vote.agreement)  # near copies share a weight, as in the vote
    one_embedding = _one_embedding(scores) if scores.spaces else None
    clusters = judge_clusters(
        clusterings, answer, weights, contenders, one_embedding, n_jobs=n_jobs
    )
    of_best = plane = None
    if options.details and scores.spaces:
        # Distinct partitions, best first, each with its own space, else the one that counts most.
        heaviest = scores.spaces[0] if by_ace is None else by_ace.heaviest_spaces[0][0]
        own = (*scores.spaces, heaviest)  # the last: of a partition that was made in none
        chosen = [(answer.partitions[m], own[scores.made_in[m]]) for m in answer.first_of_each]
        of_best, descriptions = _describe(problem, chosen)
        clusters = replace(clusters, descriptions=descriptions)
        plane = None if options.layout is None else _layout(problem, scores, chosen[0][1])
    codes = KeptCodes.keep(clusterings, _drawn(scores, MOST_DRAWN), contenders)
    if codes is None:
        notes += (
            "The clusters of the objects are not kept, since they would take more than 50 MB: the "
            "page and settling need the runs.",
        )
    structure, in_input, features = None, None, problem.given.features
    if X is not None and by_ace is not None:
        spec = scores.index_specs[by_ace.index]
        by = {"device": device, "n_jobs": n_jobs}
        in_input = freeze(oriented_scores(X, problem.partitions, spec, **by))
    if X is not None:
        structure = structure_of(X, problem.distinct, n_jobs)
    elif features is not None:
        try:
            structure = structure_of(features.rows, problem.distinct, n_jobs)
        except (TypeError, ValueError) as reason:
            notes += (f"Whether there is anything to cluster could not be tested: {reason}",)
    params = problem.given.params
    return Judgement(
        scores,
        answers,
        confidence,
        details=of_best,
        input_scores=in_input,
        notes=notes,
        judge=decides,
        asked=options.judge,
        structure=structure,
        params={name: params[name] for name in problem.classes.names if params.get(name)},
        options=options.to_plain(),
        layout=plane,
        clusters=clusters,
        codes=codes,
    )


def _refuse_trivial(problem: Problem) -> None:
    """Refuse a single partition without spaces, and runs that all find fewer than two clusters."""
    n, k = len(problem.partitions), int(problem.partitions.n_clusters[0])
    if n == 1 and not problem.runs.spaces:
        refuse_too_few(problem.classes)
    if n > 1 and k < 2:
        found = "find one cluster only" if k else "call every object noise (-1)"
        raise NothingToRank(f"All {n} runs {found}; add runs that find two clusters or more.")


def _answers(problem: Problem, scores: Scores) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """What each judge says by each index, and notes; the index decides alone in one embedding."""
    options, classes, notes = problem.options, problem.classes, problem.notes
    by_ace: dict[str, AceResult] = {}
    if scores.spaces and (len(classes) > 1 or len(classes.names) == 1):  # ACE refuses one run
        for index in scores.indices:
            try:
                by_ace[index] = judge_by_ace(
                    scores, options.ace, index, dip=options.dip, classes=classes
                )
            except NothingToRank as reason:
                if not by_ace:
                    raise
                notes += (f"{index} could not rank the runs: {reason}",)
    progress = options.progress if len(classes) > 1 else None
    everyone = problem.partitions.noise_as_cluster()
    counts = PairCounts.of_codes(everyone.codes, n_jobs=options.n_jobs, progress=progress)
    vote = partial(hold_vote, problem.partitions.clusters_only(), counts, classes)
    if not by_ace:
        return {"consensus": {"ari": vote(VoteOptions())}}, notes
    settings = VoteOptions(tie_tolerance=options.ace.tie_tolerance)
    means = {index: answer.defined_baselines["mean_all"] for index, answer in by_ace.items()}
    answers: dict[str, dict[str, Any]] = {"ace": by_ace}
    answers["consensus"] = {index: vote(settings, index, mean) for index, mean in means.items()}
    if len(classes) < FEWEST or _one_embedding(scores):
        answers["index"] = {
            index: vote(settings, index, mean, by_index=True) for index, mean in means.items()
        }
    return answers, notes


def _one_embedding(scores: Scores) -> bool:
    """Whether all runs come from one embedding."""
    made = np.unique(scores.made_in)
    return len(scores.spaces) == 1 or (len(made) == 1 and made[0] >= 0)


def _named(problem: Problem, answer: Answer) -> Partitions:
    """The distinct partitions: of equal ones the one that is named, with its own labels."""
    first = answer.first_of_each
    first = first[np.argsort(answer.classes.of[first])]
    if np.array_equal(first, answer.classes.first):
        return problem.distinct
    return problem.partitions.subset(first.tolist())


def _describe(
    problem: Problem, chosen: list[tuple[str, str]]
) -> tuple[PartitionDetails, dict[str, ClusterDescription]]:
    """The best partition object by object, and what is in the clusters of the best ones."""
    (best, space), partitions, runs = chosen[0], problem.partitions, problem.given
    own = partitions[partitions.names.index(best)]
    details = object_details(runs.spaces[space], own, space, device=problem.options.device)
    X = runs.features if problem.options.X is None else problem.options.X
    descriptions = describe_best(
        runs.spaces, partitions, chosen, X=X, ids=runs.ids, details=details
    )
    return details, descriptions


def _drawn(scores: Scores, most: int) -> np.ndarray:
    """Positions of the objects that are drawn, or that would be."""
    drawn = scores.plot_coordinates
    return drawn_objects(scores.n_objects, most) if drawn is None else drawn.objects


def _layout(problem: Problem, scores: Scores, space: str) -> Coordinates:
    """Some objects in a plane: those of the input, else of the best partition's space."""
    X, objects = problem.options.X, _drawn(scores, MOST_LAID_OUT)
    if len(objects) > MOST_LAID_OUT:
        objects = objects[np.linspace(0, len(objects) - 1, MOST_LAID_OUT).round().astype(np.intp)]
    data = problem.given.spaces[space] if X is None else to_numpy(X)
    what = space if X is None else "the input"
    xy, axes = lay_out(data, objects, problem.options.layout)
    return Coordinates(freeze(objects), (freeze(xy),), (f"{axes} of {what}",))
