"""How sure a ranking is: ranks over draws of half the objects, half the runs and most spaces.

Where ACE decides, half of the runs choose the spaces that answer in each draw. Where a vote
decides, half of the runs vote, see `vote_draws`. All runs stay candidates.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep._checks.values import check_kind
from wellsep._files.records import Result, freeze
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.baselines import fill_undefined
from wellsep.evaluate.ace_method.steps import judge_by_ace
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.certainty.draws import LEVEL, Plan, draw_panels, draw_plan
from wellsep.evaluate.certainty.half_samples import (
    MOST_TREE_DRAWS,
    Resampled,
    Resampling,
    grows_trees,
)
from wellsep.evaluate.options import Calling, Progress
from wellsep.evaluate.ranks import ranks_with_gaps
from wellsep.evaluate.scores import Dip, NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import resample_spaces
from wellsep.evaluate.scoring.workers import tell
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs
from wellsep.runs.folder_names import best_first

FEWEST_RUNS = 5  # that choose the spaces in a draw; fewer cannot agree significantly


@dataclass(frozen=True, eq=False)
class RankConfidence(Result, row_names="partition"):
    """Ranks of M partitions over B half-samples of the objects.

    Attributes
    ----------
    ranks : ndarray of shape (B, M), 1 = best
    probability_best : ndarray of shape (M,), ties share a win; equal partitions are one
    interval : ndarray of shape (M, 2), lowest and highest rank in `level` of the draws
    level : float
    n_draws, n_groups : int
    spaces_left_out : int, spaces left out of each draw
    objects_per_draw : int, objects of a half-sample whose widths were computed anew; the others
        keep those of the full sample
    seconds : float, spent on the half-samples; those of spaces worked on at once are added
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
    probability_best: np.ndarray
    interval: np.ndarray
    level: float
    n_draws: int
    n_groups: int
    spaces_left_out: int
    classes: Classes
    first_in_draw: np.ndarray
    objects_per_draw: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    gap_sd: np.ndarray | None = None
    runs_per_draw: int = 0

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of the M partitions."""
        return self.classes.names

    def columns(self) -> dict[str, list[Any]]:
        """Return each partition's chance of being best, its lowest and its highest rank."""
        low, high = self.interval.T.tolist()
        return {
            "partition": list(self.partitions),
            "p_best": self.probability_best.tolist(),
            "rank_low": low,
            "rank_high": high,
        }

    def sentences(self) -> Iterator[str]:
        """Say which partition is best most often."""
        at = int(self.probability_best.argmax())
        low, high = self.interval[at]
        yield (
            f"Over {self.n_draws} half-samples of the objects, {self.partitions[at]!r} is best in "
            f"{self.probability_best[at]:.0%} (rank {low:g} to {high:g} in {self.level:.0%})."
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
    """Repeat ACE on half-samples: a rank interval and the probability of being best for each run.

    Each draw takes half of the objects without replacement, and leaves out some spaces at random.
    The spread of half-samples is that of the whole sample. Drawing with replacement would make ties
    that the dip test takes for modes. Half of the runs, at least five, choose in each draw which
    spaces answer and how much each counts; every run is then scored by that answer. So every run
    has a rank in every draw, and it varies with the runs that choose. With fewer
    than five runs no agreement of spaces could be significant, so all of them choose.

    The objects are split once into 12 random groups, and a half-sample is a choice of half
    of them. Its scores follow from sums kept per group, so the distances of a space are computed
    once for all draws. For a silhouette of more than 480 objects, a half-sample's value has two
    parts. The first is the mean of the full sample's widths over its objects. The second is the
    change of width that the half brings about. It is estimated from 240 of them, or more where
    there are more than 20 clusters.

    Parameters
    ----------
    runs : Runs
        The runs that were scored.
    scores : Scores
        Of these runs.
    result : AceResult
        Whose index and options are used in every draw.
    n_draws : int
        Number of half-samples.
    device : str, optional
        "cuda" computes on the GPU through PyTorch.
    n_jobs : int, optional
        Threads; by default as many as BLAS would use. The result does not depend on it.
    scheduler : str or distributed.Client, optional
        A Dask cluster that works on the spaces, each in a task of its own; an active client is
        used by default. Embeddings in files are read by the workers.
    progress : callable, optional
        Called as ``progress(done, total, space)`` before each space, and at the end; then the
        same way for the half-samples, which are called "half-samples".
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
    >>> sure.probability_best.tolist(), sure.interval[0].tolist()
    ([1.0, 0.0, 0.0], [1, 1])
    """
    begin = time.perf_counter()
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
    spec = scores.index_specs[result.index]
    plan = draw_plan(partitions, scores.spaces, n_draws, random_state, spec)
    test = result.dip and scores.dip is not None
    job = plan.resampling(*spec, scores.spaces, settings.projection, test=test)
    resampled = dict(resample_spaces(runs, partitions, job, calling))
    codes = partitions.codes[result.classes.first]
    return rank_draws(plan, job, scores, result, resampled, codes, begin=begin, progress=progress)


def rank_draws(
    plan: Plan,
    job: Resampling,
    scores: Scores,
    result: AceResult,
    resampled: Mapping[str, Resampled],
    codes: np.ndarray,
    *,
    begin: float | None = None,
    progress: Progress | None = None,
) -> RankConfidence:
    """Repeat ACE in every draw and summarise the ranks.

    ``codes`` are those of the distinct partitions; half of them choose the spaces in each draw.
    """
    start = time.perf_counter()
    drawn = draw_panels(codes, len(plan.halves.chosen), least=FEWEST_RUNS, seed=plan.seed)
    panels = drawn if drawn.shape[1] < len(codes) else None
    found = list(ace_draws(plan, job, scores, result, resampled, progress, panels))
    spent = sum(one.seconds for one in resampled.values()) + time.perf_counter() - start
    return summarise_scores(
        [None if one is None else one.scores for one in found],
        result,
        plan,
        job,
        seconds=spent if begin is None else time.perf_counter() - begin,
        runs_per_draw=0 if panels is None else panels.shape[1],
        without=[one.without for one in found if one is not None],
    )


class AceDraw(NamedTuple):
    """ACE's answer in one draw."""

    scores: np.ndarray  # (D,) of the distinct partitions; one without a score has the worst
    without: np.ndarray  # (D,) bool: no score in any space of the answer


def ace_draws(
    plan: Plan,
    job: Resampling,
    scores: Scores,
    result: AceResult,
    resampled: Mapping[str, Resampled],
    progress: Progress | None = None,
    panels: np.ndarray | None = None,
) -> Iterator[AceDraw | None]:
    """ACE's answer in every draw; None where it tells no partitions apart.

    With ``panels`` ACE sees these partitions only, and all are scored in the spaces it chooses.
    """
    n_draws, n_spaces = len(plan.halves.chosen), len(scores.spaces)
    first = result.classes.first
    distinct = scores.some(first)
    kept = np.zeros((n_draws, n_spaces), dtype=bool)
    values = np.full((n_draws, n_spaces, len(first)), np.nan)
    pvalues = np.ones((n_draws, n_spaces))
    test = result.dip and scores.dip is not None
    for i, space in enumerate(scores.spaces):
        kept[job.draws[space], i] = True
        values[job.draws[space], i] = resampled[space].values[:, first]
        if resampled[space].pvalues is not None:
            pvalues[job.draws[space], i] = resampled[space].pvalues
    if test:
        # A component that all objects leave undefined is an accident in every half of them.
        pvalues[:, np.isnan(scores.dip.pvalue)] = np.nan  # type: ignore[union-attr]
    for draw in range(n_draws):
        tell(progress, draw, n_draws, "half-samples")
        spaces = np.flatnonzero(kept[draw])
        part = _sub_scores(distinct, result.index, values[draw], pvalues[draw], spaces, test)
        try:
            panel = part if panels is None else part.some(panels[draw])
            told = judge_by_ace(panel, result.options, dip=result.dip)
        except NothingToRank:
            yield None
            continue
        answering = list(told.winner.spaces)
        without = np.isnan(part.oriented(told.index)[answering]).all(axis=0)
        if panels is None:
            yield AceDraw(told.scores, without)
            continue
        matrix = fill_undefined(part, told.index, undefined=result.options.undefined).matrix
        yield AceDraw(told.winner.weights @ matrix[answering], without)
    tell(progress, n_draws, n_draws, "half-samples")


def summarise_scores(
    found: Sequence[np.ndarray | None],
    answer: Answer,
    plan: Plan,
    job: Resampling | None,
    *,
    seconds: float,
    notes: tuple[str, ...] = (),
    runs_per_draw: int = 0,
    without: Sequence[np.ndarray] | None = None,
) -> RankConfidence:
    """Summarise the scores of the distinct partitions in all draws.

    ``answer`` is that of the full sample; a draw without scores (None) is left out.
    ``without`` says which partitions have no score in each draw that is left: they come last.
    """
    told = np.array([scores for scores in found if scores is not None])
    if not len(told):
        raise NothingToRank("No half-sample tells the partitions apart, so none can be ranked.")
    n_draws, n_groups = plan.halves.chosen.shape
    if len(told) < n_draws:
        notes += (f"{n_draws - len(told)} of {n_draws} half-samples told no partitions apart.",)
    if job is not None and n_draws == MOST_TREE_DRAWS and grows_trees(job.index, job.params):
        notes += (f"{job.index} grows trees anew in every half-sample, so {n_draws} are drawn.",)
    size = int(plan.halves.chosen[0][plan.halves.group].sum())
    if job is not None and job.objects_per_draw < size:
        notes += (
            f"In each half-sample the widths of {job.objects_per_draw:,} of its {size:,} objects "
            "were computed anew; the others keep their widths among all objects.",
        )
    gaps = told[:, [int(np.argmax(answer.distinct_scores))]] - told
    ranked = told if without is None else np.where(without, np.nan, told)
    summary = summarise(
        np.stack([ranks_with_gaps(one, answer.options.tie_tolerance) for one in ranked]),
        LEVEL,
        n_groups,
        plan.left_out,
        objects_per_draw=size if job is None else job.objects_per_draw,
        seconds=seconds,
        notes=notes,
        classes=answer.classes,
    )
    return dataclasses.replace(
        summary,
        gap_sd=freeze(gaps.std(axis=0)[answer.classes.of]),
        runs_per_draw=runs_per_draw,
    )


def summarise(
    places: np.ndarray,
    level: float,
    n_groups: int,
    left_out: int,
    *,
    objects_per_draw: int = 0,
    seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    classes: Classes | None = None,
) -> RankConfidence:
    """Intervals and probabilities from the ranks of the distinct partitions in all draws.

    Without ``classes`` all partitions differ, and have no names.

    Examples
    --------
    >>> import numpy as np
    >>> found = summarise(np.array([[1, 2], [1, 1], [2, 1], [1, 2]]), 0.9, 12, 0)
    >>> found.probability_best
    array([0.625, 0.375])
    """
    best = places == 1
    if classes is None:
        classes = Classes.all_differ(tuple(f"partition {m}" for m in range(places.shape[1])))
    names = [classes.names[m] for m in classes.first]
    by_name = best_first([0] * len(names), names)
    tail = (1 - level) / 2
    low = np.quantile(places, tail, axis=0, method="inverted_cdf")
    high = np.quantile(places, 1 - tail, axis=0, method="inverted_cdf")
    return RankConfidence(
        ranks=freeze(places[:, classes.of]),
        probability_best=freeze((best / best.sum(axis=1, keepdims=True)).mean(axis=0)[classes.of]),
        interval=freeze(np.column_stack([low, high])[classes.of]),
        level=level,
        n_draws=len(places),
        n_groups=n_groups,
        spaces_left_out=left_out,
        objects_per_draw=objects_per_draw,
        seconds=seconds,
        notes=notes,
        classes=classes,
        first_in_draw=freeze(by_name[best[:, by_name].argmax(axis=1)]),
    )


def _sub_scores(
    scores: Scores,
    index: str,
    values: np.ndarray,
    pvalues: np.ndarray,
    kept: np.ndarray,
    test: bool,
) -> Scores:
    dip = Dip(pvalues[kept], pvalues[kept], ("",) * len(kept)) if test else None
    return dataclasses.replace(
        scores,
        values={index: values[kept]},
        directions={index: scores.directions[index]},
        spaces=tuple(scores.spaces[i] for i in kept),
        made_in=np.full(len(scores.partitions), -1),
        reasons={},
        dip=dip,
        dims=None,
        plot_coordinates=None,
    )
