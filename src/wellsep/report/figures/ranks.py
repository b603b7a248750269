"""The figure of a ranking: the rank of each distinct partition, and its ranks over half-samples."""

from __future__ import annotations

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep.evaluate import Ranking
from wellsep.report.figures.records import RankIntervals


def rank_intervals(ranking: Ranking, most: int = 30) -> RankIntervals:
    """The best distinct partitions with their intervals; of equal ones the first is named.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> side = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 9 * side[:, None]
    >>> runs = ws.Runs.from_parts({"X": X}, {"sides": side, "thirds": np.arange(60) % 3})
    >>> figure = rank_intervals(ws.judge(runs, n_draws=6, dip=False).ranking)
    >>> figure.names, figure.interval.tolist()
    (('sides', 'thirds'), [[1, 1], [2, 2]])
    """
    check_count("n_runs", most)
    sure = ranking.confidence
    if sure is None:
        raise ValueError(
            "result must hold rank intervals, got none; judge the runs with n_draws=100."
        )
    rows = ranking.first_of_each
    counts = ranking.classes.sizes
    rows = rows[:most]
    return RankIntervals(
        names=tuple(ranking.names[at] for at in rows),
        counts=counts[ranking.classes.of[rows]],
        rank=ranking.rank[rows],
        interval=np.asarray(sure.interval)[rows],
        probability=np.asarray(sure.probability_best)[rows],
        level=float(sure.level),
        n_draws=int(sure.n_draws),
        n_partitions=len(counts),
    )
