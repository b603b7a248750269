"""Figures of the structure: scores by space, agreement of the runs, their tree, their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep.evaluate import AceResult, Consensus, PartitionDetails, Ranking, Scores
from wellsep.evaluate.resolutions import resolution_tree
from wellsep.partitions import encode
from wellsep.report.ace_figures import space_order
from wellsep.report.pack import pack, upper
from wellsep.report.scatter import LONGEST_NAME
from wellsep.report.tree_figures import tree_figure, tree_payload
from wellsep.report.vote_figures import run_agreement

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
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> result = ws.ace(scores, dip=False)
    >>> grid = score_grid(ws.rank(result), scores, result)
    >>> grid.partitions.tolist(), grid.values.shape
    ([1, 2, 0], (3, 2))
    """
    rows = first_of_each(ranking)[:MOST_CELLS]
    columns = space_order(ace)[:MOST_CELLS]
    values = np.asarray(scores.values[ace.index], dtype=float)
    return ScoreGrid(
        index=ace.index,
        partitions=rows,
        spaces=columns,
        values=values[np.ix_(columns, rows)].T,
        direction=int(scores.directions[ace.index]),
    )


def first_of_each(ranking: Ranking) -> np.ndarray:
    """Positions of the distinct partitions, best first; of equal ones the first."""
    found: dict[int, int] = {}
    for i in ranking.order:
        found.setdefault(int(ranking.class_of[i]), int(i))
    return np.array(list(found.values()), dtype=np.intp)


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


def cluster_table(
    details: PartitionDetails, other: tuple[str, Any] | None, ids: Any
) -> dict[str, list[Any]]:
    """One row per cluster of a partition: size, quality, neighbour, overlap, examples.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]})
    >>> details = ws.partition_details(runs, ws.ace(ws.score_runs(runs), dip=False))
    >>> table = cluster_table(details, ("bad", runs.partitions["bad"]), None)
    >>> table["objects"], table["nearest cluster"]
    ([2, 2], ['1', '0'])
    """
    codes, widths, k = details.codes, details.widths, len(details.clusters)
    members = [np.flatnonzero(codes == c) for c in range(k)]
    name = (lambda i: f"object {i}") if ids is None else (lambda i: str(ids[i])[:LONGEST_NAME])
    found: dict[str, list[Any]] = {
        "cluster": list(details.clusters),
        "objects": [len(own) for own in members],
        "share": [f"{len(own) / max(len(codes), 1):.1%}" for own in members],
    }
    if np.isfinite(widths).any():
        found["mean width"] = [_mean(widths[own]) for own in members]
        found["negative"] = [f"{np.mean(widths[own] < 0):.0%}" for own in members]
    near = [details.nearest[own][details.nearest[own] >= 0] for own in members]
    if any(len(one) for one in near):
        found["nearest cluster"] = [
            details.clusters[int(np.bincount(one).argmax())] if len(one) else None for one in near
        ]
    if other is not None:
        second = encode(other[1], noise="exclude", name=other[0])
        theirs, labels = second.codes[0], second.classes[0]
        overlap, which = [], []
        for own in members:
            shared = np.bincount(theirs[own][theirs[own] >= 0], minlength=len(labels))
            union = np.bincount(theirs[theirs >= 0], minlength=len(labels)) + len(own) - shared
            share = np.divide(shared, union, out=np.zeros(len(labels)), where=union > 0)
            at = int(share.argmax())
            overlap.append(float(share[at]))
            which.append(str(labels[at]))
        found[f"overlap with {other[0]}"] = overlap
        found["its cluster there"] = which
    if np.isfinite(widths).any():
        order = [own[np.argsort(-widths[own], kind="stable")] for own in members]
        found["typical"] = [", ".join(name(int(i)) for i in own[:2]) for own in order]
        found["doubtful"] = [", ".join(name(int(i)) for i in own[::-1][:2]) for own in order]
    return found


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
