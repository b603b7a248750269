"""How sure a vote is: half of the objects, half of the voters and some spaces less in each draw.

The cost is bounded: pairs of partitions times objects are at most ``MOST``, and each pair is
counted once for all draws.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from wellsep.compute.statistics.half_sample_tables import count_by_group
from wellsep.evaluate.certainty.confidence import RankConfidence, summarise_scores
from wellsep.evaluate.certainty.draws import Plan, draw_panels
from wellsep.evaluate.certainty.half_samples import Resampling
from wellsep.evaluate.options import Progress
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.vote.weights import mean_agreement, vote_weights
from wellsep.indices.external import adjusted_rand
from wellsep.partitions import Partitions

MOST = 2e8  # pairs of partitions times objects that are counted for the draws
FEWEST = 1000  # objects that are counted in any case
VOTERS = 3  # that vote in each draw at least


def confidence_of_vote(
    vote: Consensus,
    partitions: Partitions,
    plan: Plan,
    by_ace: Iterable[np.ndarray | None],
    *,
    job: Resampling | None = None,
    spent: float = 0.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> RankConfidence:
    """Repeat a vote by ARI in every draw and summarise the ranks.

    ``by_ace`` gives ACE's scores in each draw, for the weights; None: all votes weigh the same.
    Every partition is a candidate in every draw. Half of them vote, drawn anew each time.
    """
    begin = time.perf_counter()
    first = vote.classes.first
    whole = partitions.subset(first.tolist()).noise_as_cluster()
    objects, notes = _counted_objects(whole, plan)
    n_groups = plan.halves.chosen.shape[1]
    codes, groups = whole.codes[:, objects], plan.halves.group[objects]
    tables = count_by_group(codes, groups, n_groups, n_jobs=n_jobs, progress=progress)
    n_draws = len(plan.halves.chosen)
    panels = draw_panels(whole.codes, n_draws, least=VOTERS, seed=plan.seed)
    tolerance = vote.options.tie_tolerance
    found: list[np.ndarray | None] = []
    counted = tables.counts(plan.halves.chosen)
    for counts, voters, scores in zip(counted, panels, by_ace, strict=True):
        agreement = adjusted_rand(counts)
        liked = None if scores is None else scores[voters]
        own = vote_weights(liked, agreement[np.ix_(voters, voters)], tolerance)
        weights = np.zeros(len(first))
        weights[voters] = own
        found.append(mean_agreement(agreement, weights))
    return summarise_scores(
        found,
        vote,
        plan,
        job,
        seconds=spent + time.perf_counter() - begin,
        notes=notes,
        runs_per_draw=panels.shape[1] if panels.shape[1] < len(first) else 0,
    )


def _counted_objects(whole: Partitions, plan: Plan) -> tuple[np.ndarray, tuple[str, ...]]:
    """The objects that the draws count: all, or as many of each group as the bound allows."""
    n, n_groups = whole.n_objects, plan.halves.chosen.shape[1]
    pairs = max(1, len(whole) * (len(whole) - 1) // 2)
    most = max(FEWEST, int(MOST / pairs))
    if n <= most:
        return np.arange(n), ()
    order = np.argsort(plan.halves.group, kind="stable")
    sizes = np.bincount(plan.halves.group, minlength=n_groups)
    members = np.split(order, np.cumsum(sizes)[:-1])
    kept = np.sort(np.concatenate([own[: most // n_groups] for own in members]))
    note = f"The draws count the votes of {len(kept):,} of {n:,} objects."
    return kept, (note,)
