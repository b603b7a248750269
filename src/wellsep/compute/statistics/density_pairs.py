"""Density trees of clusters under any metric, from blocks of distances.

Euclidean trees are grown faster in ``density_trees``; what a tree says is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.engine.threads import ROWS, cut_rows
from wellsep.compute.metrics.table import Metric, Rows, square_lengths
from wellsep.compute.statistics.density_trees import (
    SHARED,
    DensityTrees,
    Grown,
    Tree,
    core_of,
    distinct_clusters,
    grow_trees,
    log_powers,
    lone,
)
from wellsep.compute.statistics.spanning_tree import TIE

Squares = Callable[[np.ndarray, np.ndarray], np.ndarray]


def trees_by_pairs(space: Space, metric: Metric, codes: np.ndarray, d: float) -> list[DensityTrees]:
    """What the trees say about each partition; core distances are powers to the ``d``."""
    squares = _squares_of(space, metric)
    clusters, numbers = distinct_clusters(codes)
    trees = [_grow(squares, members, d) for members in clusters]
    return [
        _part(squares, [trees[k] for k in mine], [len(clusters[k]) for k in mine], space.n)
        for mine in numbers
    ]


def _squares_of(space: Space, metric: Metric) -> Squares:
    X, zero = space.on_host(metric) if space.own_metric is None else space.prepared(metric)
    square = None if metric.finish is None else square_lengths(X, zero, np)

    def side(at: np.ndarray) -> Rows:
        own = None if zero is None else zero[at]
        return Rows(X[at, :], None if square is None else square[at], own, at)

    def squares(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        table = np.asarray(metric.distances(side(i), side(j), np), np.float64)
        return table * table

    return squares


def _grow(squares: Squares, members: np.ndarray, d: float) -> Tree:
    """Inner objects and the longest inner edge of one cluster's tree."""
    n = len(members)
    if n < 2:
        return lone(members)
    if n <= SHARED:
        table = squares(members, members)
        np.fill_diagonal(table, np.inf)
        core = core_of(log_powers(table, d), n, d)
        grown = grow_trees(table.ravel(), [n], [np.arange(n)], [core])[0]
    else:
        core = np.concatenate(
            [_core_block(squares, members, part, d) for part in cut_rows(n, ROWS)]
        )
        grown = Grown(_prim(squares, members, core), core)
    edges, core = grown
    inner = np.bincount(edges.reshape(-1), minlength=n) > 1
    between = edges[inner[edges].all(axis=1)]
    edges = between if len(between) else edges
    lengths = np.array([float(squares(members[[a]], members[[b]])[0, 0]) for a, b in edges])
    reach = np.maximum(lengths, core[edges].max(axis=1))
    places = np.flatnonzero(inner) if inner.any() else np.arange(n)
    return Tree(members[places], core[places], float(np.sqrt(reach.max())))


def _core_block(squares: Squares, members: np.ndarray, part: slice, d: float) -> np.ndarray:
    total = np.full(part.stop - part.start, -np.inf)
    for other in cut_rows(len(members), ROWS):
        table = squares(members[part], members[other])
        table[np.arange(part.start, part.stop)[:, None] == np.arange(other.start, other.stop)] = (
            np.inf
        )
        total = np.logaddexp(total, log_powers(table, d))
    return core_of(total, len(members), d)


def _prim(squares: Squares, members: np.ndarray, core: np.ndarray) -> np.ndarray:
    """(n - 1, 2) edges of the tree, row by row; ties of reachability go to the nearer object."""
    n = len(members)
    outside = np.arange(1, n)
    key, parent = np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    edges, last = np.empty((n - 1, 2), dtype=np.intp), 0
    for step in range(n - 1):
        plain = squares(members[[last]], members[outside])[0]
        value = np.maximum(np.maximum(plain, core[last]), core[outside]) + TIE * plain
        nearer = value < key[outside]
        key[outside[nearer]], parent[outside[nearer]] = value[nearer], last
        at = int(key[outside].argmin())
        last = int(outside[at])
        edges[step] = parent[last], last
        outside = np.delete(outside, at)
    return edges


def _part(squares: Squares, trees: list[Tree], sizes: list[int], n: int) -> DensityTrees:
    separation = np.full(len(trees), np.inf)
    for a, one in enumerate(trees):
        for b in range(a + 1, len(trees)):
            reach = _reach(squares, one, trees[b])
            separation[[a, b]] = np.minimum(separation[[a, b]], reach)
    sparseness = np.array([tree.sparseness for tree in trees])
    return DensityTrees(np.array(sizes), sparseness, separation, n)


def _reach(squares: Squares, a: Tree, b: Tree) -> float:
    """Smallest max(core, core, distance) between the inner objects of two clusters."""
    best: Any = np.inf
    for i in cut_rows(len(a.core), ROWS):
        for j in cut_rows(len(b.core), ROWS):
            table = np.maximum(squares(a.inner[i], b.inner[j]), a.core[i][:, None])
            best = min(best, float(np.maximum(table, b.core[j]).min()))
    return float(np.sqrt(best))
