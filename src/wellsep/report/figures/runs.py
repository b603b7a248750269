"""Figures of the runs: ranks, scores by space, agreement with each other, their tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from wellsep.evaluate import AceResult, Consensus, Ranking, ResolutionTree, Scores
from wellsep.evaluate.clusters.tree import resolution_tree
from wellsep.evaluate.vote.answer import MEASURES
from wellsep.partitions import Partitions
from wellsep.report.figures.ace import colour_floor, space_order
from wellsep.report.pack import pack, to_payload, upper
from wellsep.report.sections.scatter import Labels, thinned

MOST_CELLS = 300  # rows and columns of a heat map: more cannot be told apart on a screen
MOST_LEVELS = 12  # of the tree
_MOST_SORTED = 200  # partitions whose neighbours are put in the best order; it takes their cube
_SWEEPS = 8  # down and up again; more change little
_LEVELS = 254  # of a colour


@dataclass(frozen=True, eq=False)
class RunAgreement:
    """Agreement of every two distinct partitions, ordered so that similar ones are neighbours."""

    names: tuple[str, ...]  # of the first run of each
    counts: np.ndarray  # (D,) runs that are each partition
    values: np.ndarray  # (D, D)
    measure: str  # in words

    @property
    def floor(self) -> float:
        """Where the colours start."""
        return colour_floor(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names, with the number of runs where it is not one."""
        pairs = zip(self.names, self.counts.tolist(), strict=True)
        return tuple(name if n == 1 else f"{name} (×{n})" for name, n in pairs)


@dataclass(frozen=True, eq=False)
class TreeFigure:
    """A resolution tree, laid out: a row per level, clusters placed to cross few links."""

    levels: tuple[str, ...]
    clusters: tuple[str, ...]
    level: np.ndarray  # (N,) row of each cluster
    x: np.ndarray  # (N,) from 0 to 1
    sizes: np.ndarray  # (N,)
    codes: np.ndarray  # (N,) colour: the largest part of a cluster keeps its colour, noise is -1
    links: np.ndarray  # (E, 2)
    counts: np.ndarray  # (E,)
    shares: np.ndarray  # (E,) share of the lower cluster that comes along the link


def score_grid(ranking: Ranking, scores: Scores, ace: AceResult) -> dict[str, Any]:
    """Scores by the deciding index, a row for each distinct partition, the best first.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> result = ws.ace(scores, dip=False)
    >>> grid = score_grid(rank(result), scores, result)
    >>> grid["rows"].tolist(), len(grid["columns"])
    ([1, 2, 0], 2)
    """
    rows, columns = ranking.first_of_each[:MOST_CELLS], space_order(ace)[:MOST_CELLS]
    values = np.asarray(scores.values[ace.index], dtype=float)
    return {
        "index": ace.index,
        "rows": rows,
        "columns": columns,
        "values": pack(values[np.ix_(columns, rows)].T, "f4"),
        "direction": int(scores.directions[ace.index]),
    }


def run_agreement(vote: Consensus) -> RunAgreement:
    """Agreement of the distinct partitions, similar ones next to each other.

    Examples
    --------
    >>> import wellsep as ws
    >>> vote = ws.consensus({"a": [0, 0, 0, 1, 1, 1], "b": [0, 1, 0, 1, 0, 1],
    ...                      "c": [0, 0, 0, 0, 1, 1], "copy of a": [1, 1, 1, 0, 0, 0]})
    >>> run_agreement(vote).labels
    ('b', 'a (×2)', 'c')
    """
    values, order = vote.agreement, np.arange(vote.n_distinct)
    if vote.n_distinct > 2:
        far = squareform(1 - values, checks=False)
        order = leaves_list(
            linkage(far, "average", optimal_ordering=vote.n_distinct <= _MOST_SORTED)
        )
    return RunAgreement(
        names=tuple(vote.classes.names[vote.classes.first[i]] for i in order),
        counts=vote.classes.sizes[order],
        values=values[np.ix_(order, order)],
        measure=MEASURES[vote.options.agreement],
    )


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


def runs_tree(ranking: Ranking, labels: Mapping[str, Labels]) -> dict[str, Any] | None:
    """The best clustering of each number of clusters, as a tree; None with fewer than two."""
    counts = ranking.n_clusters
    if counts is None:
        return None
    best: dict[int, str] = {}
    for i in ranking.order:
        if counts[i] >= 2 and ranking.names[i] in labels:
            best.setdefault(int(counts[i]), ranking.names[i])
    ks = sorted(best)
    if len(ks) < 2:
        return None
    names = tuple(best[k] for k in thinned(np.array(ks), MOST_LEVELS).tolist())
    chosen = [labels[name] for name in names]
    codes = np.stack([one.codes for one in chosen]).astype(np.int32)
    # Whole numbers as numbers: noise, a number, has no place among texts.
    whole = [all(c.removeprefix("-").isdecimal() for c in one.clusters) for one in chosen]
    kinds = [int if numbers else str for numbers in whole]
    classes = [np.array(one.clusters, kind) for one, kind in zip(chosen, kinds, strict=True)]
    partitions = Partitions(codes, tuple(classes), names, (codes >= 0).mean(axis=1))
    tree = resolution_tree(partitions.take(np.arange(codes.shape[1])))
    return to_payload(tree_figure(tree))


def tree_figure(tree: ResolutionTree) -> TreeFigure:
    """Lay out a resolution tree: each level a row, clusters near those they come from.

    Examples
    --------
    >>> import wellsep as ws
    >>> figure = tree_figure(ws.resolution_tree({"k2": [0, 0, 0, 1, 1], "k3": [1, 1, 2, 0, 0]}))
    >>> figure.x.round(2).tolist(), figure.codes.tolist()
    ([0.25, 0.75, 0.83, 0.17, 0.5], [0, 1, 1, 0, 2])
    """
    return TreeFigure(
        levels=tree.levels,
        clusters=tree.clusters,
        level=tree.level,
        x=_places(tree),
        sizes=tree.sizes,
        codes=_colours(tree),
        links=tree.links,
        counts=tree.counts,
        shares=tree.share_of_target,
    )


def _places(tree: ResolutionTree) -> np.ndarray:
    """Order each level by the mean place of its neighbours (Sugiyama's barycentres)."""
    n = len(tree.sizes)
    rows = [np.flatnonzero(tree.level == step) for step in range(len(tree.levels))]
    x = np.empty(n)
    for row in rows:
        x[row] = (np.arange(len(row)) + 0.5) / len(row)
    upper, lower = tree.links.T
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        to, source = (lower, upper) if down else (upper, lower)
        for row in rows[1:] if down else rows[-2::-1]:
            mine = np.isin(to, row)
            mass = np.bincount(to[mine], tree.counts[mine], n)[row]
            wanted = np.bincount(to[mine], tree.counts[mine] * x[source[mine]], n)[row] / mass
            order = np.argsort(wanted, kind="stable")
            x[row[order]] = (np.arange(len(row)) + 0.5) / len(row)
    return x


def _colours(tree: ResolutionTree) -> np.ndarray:
    """The child that most of a cluster goes to keeps its colour; every other one has a new one."""
    codes = np.full(len(tree.sizes), -1, dtype=np.intp)
    heirs: dict[int, int] = {}  # the last one written has most objects
    for link in np.argsort(tree.counts, kind="stable"):
        source, target = tree.links[link].tolist()
        if tree.parents[target] == source:
            heirs[source] = target
    given = 0
    for node in np.flatnonzero(~tree.is_noise):
        parent = int(tree.parents[node])
        if parent >= 0 and heirs.get(parent) == node and codes[parent] >= 0:
            codes[node] = codes[parent]
        else:
            codes[node] = given
            given += 1
    return codes
