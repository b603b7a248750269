"""How certain a ranking is: ranks over samples of half the objects, half the runs and most spaces.

Where ACE decides, half of the runs choose the spaces that answer in each half-sample. Where a vote
decides, half of the runs vote. All runs stay candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep._checks.values import check_kind
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import listing
from wellsep.compute.engine.dask.client import open_client
from wellsep.compute.statistics.contingency import GroupCounts
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.steps import admit, answer_of, fill_worst
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.certainty.half_samples import (
    MOST_TREE_DRAWS,
    Draws,
    Resampled,
    draw_panels,
    draw_plan,
    grows_trees,
    resample,
)
from wellsep.evaluate.options import Calling, Progress
from wellsep.evaluate.ranks import ranks_with_gaps
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import Team, over_spaces, tell
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.vote.rule import mean_agreement, on_one_scale
from wellsep.indices.external import adjusted_rand
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs
from wellsep.runs.folder_names import best_first, natural_key

FEWEST_RUNS = 5  # that choose the spaces in a draw; fewer cannot agree significantly
LEVEL = 0.9  # share of the draws that an interval covers
MOST = 2e8  # pairs of partitions times objects that are counted for the draws of a vote
FEWEST_OBJECTS = 1000  # that are counted in any case
VOTERS = 3  # that vote in each draw at least


@dataclass(frozen=True, eq=False)
class RankConfidence(Result, row_names="partition"):
    """Ranks of M partitions over B half-samples of the objects.

    Attributes
    ----------
    ranks : ndarray of shape (B, M), 1 = best
    first_in : ndarray of shape (M,), share of the half-samples in which each is first; ties
        share, equal partitions are one. It says how stable the pick is, and is no probability
    interval : ndarray of shape (M, 2), lowest and highest rank in `level` of the half-samples
    level : float
    n_draws, n_groups : int
    spaces_left_out : int, spaces left out of each half-sample
    objects_per_draw : int, objects of a half-sample whose widths were computed anew; the others
        keep those of the full sample
    notes : sentences
    classes : Classes, the M partitions by name (``partitions``), and which of them are equal
    first_in_draw : ndarray of shape (B,), the distinct partition that comes first in each draw; of
        several that tie, the first by name
    gap_sd : ndarray of shape (M,) or None, standard deviation over the draws of the gap between the
        score of the best partition and that of each one
    runs_per_draw : int, distinct partitions that take part in each draw: where ACE decides, they
        choose the spaces that answer; where a vote decides, they vote. 0 if all take part
    """

    ranks: np.ndarray
    first_in: np.ndarray
    interval: np.ndarray
    level: float
    n_draws: int
    n_groups: int
    spaces_left_out: int
    classes: Classes
    first_in_draw: np.ndarray
    objects_per_draw: int = 0
    notes: tuple[str, ...] = ()
    gap_sd: np.ndarray | None = None
    runs_per_draw: int = 0

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of the M partitions."""
        return self.classes.names

    def share_of_k(self, n_clusters: np.ndarray) -> dict[int, float]:
        """K to the share of the half-samples in which a partition with K clusters comes first."""
        ks = n_clusters[self.classes.first][self.first_in_draw]
        values, times = np.unique(ks, return_counts=True)
        return dict(zip(values.tolist(), (times / len(ks)).tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """Return how often each partition comes first, its lowest and its highest rank."""
        low, high = self.interval.T.tolist()
        return {
            "partition": list(self.partitions),
            "first_in": self.first_in.tolist(),
            "rank_low": low,
            "rank_high": high,
        }

    def sentences(self) -> Iterator[str]:
        """Say which partition is best most often."""
        at = int(self.first_in.argmax())
        low, high = self.interval[at]
        yield (
            f"Over {self.n_draws} half-samples of the objects, {self.partitions[at]!r} comes first "
            f"in {self.first_in[at]:.0%} (rank {low:g} to {high:g} in {self.level:.0%})."
        )
        yield from self.notes

    def beside(self, answer: Answer) -> Iterator[str]:
        """Say how often the best partition of an answer stays the best, and which is otherwise."""
        chance = self.first_in
        place = answer.rank
        often = best_first(-chance, answer.partitions)
        best = next(i for i in often if place[i] == 1)
        low, high = self.interval[best]
        also = " that also leave out embeddings" if self.spaces_left_out else ""
        if self.runs_per_draw:
            voters = f"let {self.runs_per_draw} different clusterings {answer.in_draws}"
            also += f" and {voters}" if also else f" that {voters}"
        yield (
            f"Over {self.n_draws} half-samples of the objects{also}, "
            f"{answer.partitions[best]!r} comes first in {chance[best]:.0%} of them "
            f"(rank {low:g} to {high:g} in {self.level:.0%})."
        )
        equal = answer.classes.equal_to(best)
        rival = next(i for i in often if not equal[i])
        if chance[rival] > chance[best]:
            yield f"{answer.partitions[rival]!r} comes first more often, in {chance[rival]:.0%}."
        elif chance[rival] > 0:
            yield f"Next is {answer.partitions[rival]!r} with {chance[rival]:.0%}."
        outside = (place < self.interval[:, 0]) | (place > self.interval[:, 1])
        if outside.any():
            there = (answer.partitions[i] for i in np.flatnonzero(outside))
            names = listing(map(repr, sorted(there, key=natural_key)), most=4)
            few = outside.sum() == 1
            yield (
                f"The rank of {names} lies outside the interval of "
                f"{'its' if few else 'their'} ranks in the half-samples, so it depends on the "
                "objects, embeddings and runs at hand."
            )
        yield from self.notes


def rank_confidence(
    runs: Runs,
    scores: Scores,
    result: AceResult,
    *,
    n_draws: int = 100,
    device: Any = None,
    n_jobs: int | None = None,
    scheduler: Any = None,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> RankConfidence:
    """Repeat ACE on half-samples: a rank interval of each run, and how often it comes first.

    A half-sample takes half of the objects without replacement, and leaves out some spaces at
    random. The spread of half-samples is that of the whole sample. With replacement there would be
    ties that the dip test takes for modes. Half of the runs, at least five, choose in each
    half-sample which spaces answer and how much each counts; every run is then scored by that
    answer. So every run has a rank in every half-sample, and it varies with the runs that choose.
    With fewer than five runs no agreement of spaces could be significant, so all of them choose.

    The objects are split once into 12 random groups, and a half-sample is a choice of half
    of them. Its scores follow from sums kept per group, so the distances of a space are computed
    once for all. For a silhouette of more than 480 objects, a half-sample's value has two parts.
    The first is the mean of the full sample's widths over its objects. The second is the change of
    width that the half brings about, estimated from 240 of them, more with over 20 clusters.

    Parameters
    ----------
    runs : Runs
        The runs that were scored.
    scores : Scores
        Of these runs.
    result : AceResult
        Whose index and options are used in every half-sample.
    n_draws : int
        Number of half-samples.
    device, n_jobs, scheduler, progress
        Device, threads or Dask cluster that compute; a function that is told the progress.
    random_state : int or Generator
        Draws the half-samples.

    Returns
    -------
    RankConfidence

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> from wellsep.evaluate import rank_confidence
    >>> side = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(2, 60, 3)) + 9 * side[:, None]
    >>> labels = {"sides": side, "thirds": np.arange(60) % 3, "halves": np.arange(60) < 30}
    >>> runs = ws.Runs.from_parts({"first": X[0], "second": X[1]}, labels)
    >>> scores = ws.score_runs(runs)
    >>> sure = rank_confidence(runs, scores, ws.ace(scores), n_draws=10)
    >>> sure.first_in.tolist(), sure.interval[0].tolist()
    ([1.0, 0.0, 0.0], [1, 1])
    """
    check_count("n_draws", n_draws)
    calling = Calling(
        device=device,
        n_jobs=n_jobs,
        scheduler=scheduler,
        progress=progress,
        random_state=random_state,
    )
    check_kind("runs", runs, Runs, "load a folder with load_runs")
    check_kind("scores", scores, Scores, "make them with score_runs")
    check_kind("result", result, AceResult, "make one with ace")
    there = set(scores.spaces) <= set(runs.spaces)  # copies count once and may have left
    if not there or scores.partitions != tuple(runs.partitions):
        raise ValueError("scores must be of these runs, got other spaces or partitions.")
    if scores.settings is None or result.index not in scores.index_specs:
        raise ValueError(
            f"scores must come from score_runs with index {result.index!r}, got a matrix of their "
            "own; half-samples must be scored anew."
        )
    settings = scores.settings
    partitions = Partitions.from_labels(dict(runs.partitions), noise=settings.noise)
    if len(result.classes) < len(partitions):
        partitions = partitions.subset(result.classes.first.tolist())
    draws = draw_plan(
        partitions,
        scores.spaces,
        n_draws,
        random_state,
        scores.index_specs[result.index],
        projection=settings.projection,
        test=result.dip and scores.dip is not None,
    )
    with open_client(calling.scheduler) as client:
        team = Team(client, runs, partitions, calling)
        own = {name: (name,) for name in scores.spaces}
        outcomes = over_spaces(team, scores.spaces, resample, partitions, draws, own=own)
        resampled = {name: halves for name, (_, halves) in outcomes}
    return repeat(result, scores, draws, resampled, partitions, calling)


def repeat(
    answer: AceResult | Consensus,
    scores: Scores,
    draws: Draws,
    resampled: Mapping[str, Resampled],
    distinct: Partitions,
    options: Calling,
) -> RankConfidence:
    """How certain an answer is: ACE's, that of the vote, or that of the index."""
    if isinstance(answer, AceResult):
        drawn = repeat_ace(draws, scores, answer, resampled, distinct.codes, options.progress)
    else:
        by_index = repeat_index(draws, scores, answer.index, resampled) if resampled else None
        drawn = repeat_vote(
            answer, distinct, draws, by_index, n_jobs=options.n_jobs, progress=options.progress
        )
    return summarise_draws(drawn, answer, draws)


class Drawn(NamedTuple):
    """What a judge says in every draw."""

    scores: list[np.ndarray | None]  # (D,) of each draw; None where it tells no partitions apart
    without: list[np.ndarray]  # (D,) bool in each draw with scores: no score in its spaces
    runs_per_draw: int = 0
    notes: tuple[str, ...] = ()


def repeat_ace(
    draws: Draws,
    scores: Scores,
    result: AceResult,
    resampled: Mapping[str, Resampled],
    codes: np.ndarray,
    progress: Progress | None = None,
) -> Drawn:
    """ACE's answer in every draw, where half of the partitions choose the spaces for all."""
    index, options = result.index, result.options
    taken, matrices = _scores_by_draw(draws, scores, index, resampled)
    pvalues = np.ones(taken.shape)
    for i, space in enumerate(scores.spaces):
        if resampled[space].pvalues is not None:
            pvalues[draws.of(space), i] = resampled[space].pvalues
    tested = result.dip and scores.dip is not None
    if tested:
        # A component that all objects leave undefined is an accident in every half of them.
        pvalues[:, np.isnan(scores.dip.pvalue)] = np.nan  # type: ignore[union-attr]
    panels = draw_panels(codes, len(draws), least=FEWEST_RUNS, seed=draws.seed)
    answers: list[np.ndarray | None] = []
    without = []
    for draw, panel in enumerate(panels):
        tell(progress, draw, len(draws), "half-samples")
        matrix = matrices[draw, taken[draw]]
        admitted: Sequence[int] = range(len(matrix))
        if tested:
            admitted = admit(pvalues[draw, taken[draw]], options.dip_alpha).retained
        try:
            filled = fill_worst(matrix, options.undefined, index)
            choosing = fill_worst(matrix[:, panel], options.undefined, index)
            _, _, winner, _ = answer_of(choosing, admitted, options, index)
        except NothingToRank:
            answers.append(None)
            continue
        answering = list(winner.spaces)
        answers.append(winner.weights @ filled[answering])
        without.append(np.isnan(matrix[answering]).all(axis=0))
    tell(progress, len(draws), len(draws), "half-samples")
    return Drawn(answers, without, panels.shape[1] if panels.shape[1] < len(codes) else 0)


def repeat_index(
    draws: Draws, scores: Scores, index: str, resampled: Mapping[str, Resampled]
) -> list[np.ndarray | None]:
    """(D,) the mean of an index over the spaces of every draw; None where all is undefined."""
    taken, matrices = _scores_by_draw(draws, scores, index, resampled)
    means: list[np.ndarray | None] = []
    for draw, rows in enumerate(taken):
        try:
            means.append(fill_worst(matrices[draw, rows], "worst", index).mean(axis=0))
        except NothingToRank:
            means.append(None)
    return means


def _scores_by_draw(
    draws: Draws, scores: Scores, index: str, resampled: Mapping[str, Resampled]
) -> tuple[np.ndarray, np.ndarray]:
    """(B, L) which spaces each draw takes, and (B, L, D) scores there, NaN where undefined."""
    n_distinct = next(iter(resampled.values())).values.shape[1]
    taken = np.zeros((len(draws), len(scores.spaces)), dtype=bool)
    matrices = np.full((*taken.shape, n_distinct), np.nan)
    for i, space in enumerate(scores.spaces):
        rows = draws.of(space)
        taken[rows, i] = True
        matrices[rows, i] = resampled[space].values * scores.directions[index]
    matrices[~np.isfinite(matrices)] = np.nan
    return taken, matrices


def repeat_vote(
    vote: Consensus,
    distinct: Partitions,
    draws: Draws,
    by_index: Sequence[np.ndarray | None] | None = None,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Drawn:
    """A vote in every draw; ``by_index`` has the index of the distinct partitions in each."""
    if vote.by_index and by_index is not None:
        return Drawn(list(by_index), [])
    whole = distinct.noise_as_cluster()
    objects, notes = _counted_objects(whole, draws)
    codes, groups = whole.codes[:, objects], draws.halves.group[objects]
    tables = GroupCounts.of_codes(codes, groups, draws.n_groups, n_jobs=n_jobs, progress=progress)
    panels = draw_panels(whole.codes, len(draws), least=VOTERS, seed=draws.seed)
    answers: list[np.ndarray | None] = []
    for draw, counts in enumerate(tables.counts(draws.halves.chosen)):
        tell(progress, draw, len(draws), "half-samples")
        voting = np.zeros(len(whole), dtype=bool)
        voting[panels[draw]] = True
        agreed = mean_agreement(adjusted_rand(counts), vote.shares * voting)
        index = None if by_index is None else by_index[draw]
        if index is not None:
            index = on_one_scale(index, bounded=vote.bounded, tolerance=vote.options.tie_tolerance)
        answers.append(vote.score_by(agreed, index))
    tell(progress, len(draws), len(draws), "half-samples")
    n_voting = panels.shape[1] if panels.shape[1] < len(whole) else 0
    return Drawn(answers, [], n_voting, notes)


def _counted_objects(whole: Partitions, draws: Draws) -> tuple[np.ndarray, tuple[str, ...]]:
    """The objects that the draws count: all, or as many of each group as the bound allows."""
    n = whole.n_objects
    pairs = max(1, len(whole) * (len(whole) - 1) // 2)
    most = max(FEWEST_OBJECTS, int(MOST / pairs))
    if n <= most:
        return np.arange(n), ()
    order = np.argsort(draws.halves.group, kind="stable")
    sizes = np.bincount(draws.halves.group, minlength=draws.n_groups)
    members = np.split(order, np.cumsum(sizes)[:-1])
    objects = np.sort(np.concatenate([group[: most // draws.n_groups] for group in members]))
    return objects, (f"The half-samples count the votes of {len(objects):,} of {n:,} objects.",)


def summarise_draws(drawn: Drawn, answer: Answer, draws: Draws) -> RankConfidence:
    """Summarise the scores of the distinct partitions in all draws beside the full ``answer``."""
    told = np.array([scores for scores in drawn.scores if scores is not None])
    if not len(told):
        raise NothingToRank("No half-sample tells the clusterings apart, so none can be ranked.")
    n_draws, notes = len(draws), drawn.notes
    if len(told) < n_draws:
        notes += (f"{n_draws - len(told)} of {n_draws} half-samples rank no run above another.",)
    if draws.index and n_draws == MOST_TREE_DRAWS and grows_trees(draws.index, draws.params):
        notes += (f"{draws.index} grows trees anew in every half-sample, so {n_draws} are drawn.",)
    if draws.objects_per_draw < draws.half_size:
        notes += (
            "Silhouette values in each half-sample are estimated from "
            f"{draws.objects_per_draw:,} of its {draws.half_size:,} objects.",
        )
    gaps = told[:, [int(np.argmax(answer.distinct_scores))]] - told
    ranked = np.where(drawn.without, np.nan, told) if drawn.without else told
    return summarise(
        np.stack([ranks_with_gaps(one, answer.options.tie_tolerance) for one in ranked]),
        LEVEL,
        draws.n_groups,
        draws.left_out,
        classes=answer.classes,
        objects_per_draw=draws.objects_per_draw,
        notes=notes,
        gap_sd=freeze(gaps.std(axis=0)[answer.classes.of]),
        runs_per_draw=drawn.runs_per_draw,
    )


def summarise(
    places: np.ndarray,
    level: float,
    n_groups: int,
    left_out: int,
    *,
    classes: Classes | None = None,
    **facts: Any,
) -> RankConfidence:
    """Intervals and shares of first ranks from (B, D) ranks; ``facts`` are other fields."""
    best = places == 1
    if classes is None:
        classes = Classes.all_differ(tuple(f"clustering {m}" for m in range(places.shape[1])))
    names = [classes.names[m] for m in classes.first]
    by_name = best_first([0] * len(names), names)
    tail = (1 - level) / 2
    low = np.quantile(places, tail, axis=0, method="inverted_cdf")
    high = np.quantile(places, 1 - tail, axis=0, method="inverted_cdf")
    return RankConfidence(
        ranks=freeze(places[:, classes.of]),
        first_in=freeze((best / best.sum(axis=1, keepdims=True)).mean(axis=0)[classes.of]),
        interval=freeze(np.column_stack([low, high])[classes.of]),
        level=level,
        n_draws=len(places),
        n_groups=n_groups,
        spaces_left_out=left_out,
        classes=classes,
        first_in_draw=freeze(by_name[best[:, by_name].argmax(axis=1)]),
        **facts,
    )
