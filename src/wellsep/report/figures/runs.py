"""Figures of the structure: scores by space, agreement of the runs, their tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep.evaluate import AceResult, Consensus, Ranking, Scores
from wellsep.evaluate.clusters.tree import resolution_tree
from wellsep.report.figures.ace import space_order
from wellsep.report.figures.trees import tree_figure, tree_payload
from wellsep.report.figures.votes import run_agreement
from wellsep.report.pack import pack, upper

MOST_CELLS = 300  # rows and columns of a heat map: more cannot be told apart on a screen
MOST_LEVELS = 12  # of the tree
_LEVELS = 254  # of a colour


@dataclass(frozen=True, eq=False)
class ScoreGrid:
    """Scores of the best distinct partitions in every space."""

    index: str
    partitions: np.ndarray  # (R,) positions, best first
    spaces: np.ndarray  # (L,) positions, by group
    values: np.ndarray  # (R, L) with the index's own sign, NaN where undefined
    direction: int


def score_grid(ranking: Ranking, scores: Scores, ace: AceResult) -> ScoreGrid:
    """Scores by the deciding index, one row for each distinct partition, the best first.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> result = ws.ace(scores, dip=False)
    >>> grid = score_grid(rank(result), scores, result)
    >>> grid.partitions.tolist(), grid.values.shape
    ([1, 2, 0], (3, 2))
    """
    rows = ranking.first_of_each[:MOST_CELLS]
    columns = space_order(ace)[:MOST_CELLS]
    values = np.asarray(scores.values[ace.index], dtype=float)
    return ScoreGrid(
        index=ace.index,
        partitions=rows,
        spaces=columns,
        values=values[np.ix_(columns, rows)].T,
        direction=int(scores.directions[ace.index]),
    )


def grid_payload(grid: ScoreGrid) -> dict[str, Any]:
    """The scores as the page's script reads them."""
    return {
        "index": grid.index,
        "rows": grid.partitions,
        "columns": grid.spaces,
        "values": pack(grid.values, "f4"),
        "direction": grid.direction,
    }


def agreement_payload(vote: Consensus) -> dict[str, Any]:
    """Agreement of the distinct partitions as the page's script reads it, in steps of 1/254."""
    figure = run_agreement(vote)
    n = min(len(figure.names), MOST_CELLS)
    place = {name: i for i, name in enumerate(vote.partitions)}
    rows = np.arange(len(figure.names))
    if n < len(rows):  # those that agree most with the others, in the order of the figure
        rows = np.sort(np.argsort(-figure.values.mean(axis=1), kind="stable")[:n])
    values = np.clip(figure.values[np.ix_(rows, rows)], -1, 1)
    return {
        "rows": [place[figure.names[i]] for i in rows],
        "counts": figure.counts[rows],
        "values": pack(np.rint((upper(values) + 1) / 2 * _LEVELS), "u1"),
        "measure": figure.measure,
        "floor": figure.floor,
        "of": len(figure.names),
    }


def runs_tree_payload(ranking: Ranking, partitions: Mapping[str, Any]) -> dict[str, Any] | None:
    """The best clustering of each number of clusters, as a tree; None with fewer than two."""
    counts = ranking.n_clusters
    if counts is None:
        return None
    best: dict[int, str] = {}
    for i in ranking.order:
        if counts[i] >= 2:
            best.setdefault(int(counts[i]), ranking.names[i])
    ks = sorted(best)
    if len(ks) < 2:
        return None
    if len(ks) > MOST_LEVELS:
        at = np.unique(np.linspace(0, len(ks) - 1, MOST_LEVELS).round().astype(int))
        ks = [ks[i] for i in at]
    tree = resolution_tree({best[k]: partitions[best[k]] for k in ks})
    return tree_payload(tree_figure(tree))
