"""Where the clusters of a resolution tree are drawn, and in which colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.evaluate import ResolutionTree
from wellsep.report.figures.records import TreeFigure

_SWEEPS = 8  # down and up again; more change little


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


def tree_payload(figure: TreeFigure) -> dict[str, Any]:
    """The tree as the page's script reads it."""
    return {
        "levels": list(figure.levels),
        "clusters": list(figure.clusters),
        "level": figure.level,
        "x": figure.x,
        "sizes": figure.sizes,
        "codes": figure.codes,
        "links": figure.links,
        "counts": figure.counts,
        "shares": figure.shares,
    }


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
