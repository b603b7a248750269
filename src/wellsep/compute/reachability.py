"""Clusters as density trees: core distances, mutual reachability, and what joins and parts them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engines import ROWS, cut, share_out, tournament
from wellsep.compute.metrics import Rows, rows_of
from wellsep.compute.statistics import Task, Want, provides
from wellsep.compute.tree import Dissimilarities, spanning_tree


class DensityTrees(NamedTuple):
    """What the minimum spanning trees of mutual reachability say about one partition."""

    sizes: np.ndarray  # (K,)
    sparseness: np.ndarray  # (K,) longest inner edge of a cluster's tree; NaN for a single object
    separation: np.ndarray  # (K, K) shortest reach between inner objects; inf for single objects
    n_objects: int  # all, with those that are not counted


class _Tree(NamedTuple):
    rows: Rows  # the inner objects
    core: np.ndarray  # their squared core distances
    sparseness: float


@provides("density_trees")
def provide_density_trees(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    X = task.space.on_host().X
    entries = [_grow(X, codes, task.space.host_jobs) for codes in task.partitions.codes]
    return {w: entries for w in wants}


def _grow(X: np.ndarray, codes: np.ndarray, jobs: int) -> DensityTrees:
    sizes = np.bincount(codes[codes >= 0])
    trees = [_tree(X[codes == k], jobs) if sizes[k] > 1 else None for k in range(len(sizes))]
    separation = np.full((len(sizes),) * 2, np.inf)

    def visit(i: int, j: int) -> None:
        a, b = trees[i], trees[j]
        if i != j and a is not None and b is not None:
            separation[i, j] = separation[j, i] = _reach(a, b)

    share_out(jobs, visit, tournament(len(trees)))
    sparseness = np.array([np.nan if t is None else t.sparseness for t in trees])
    return DensityTrees(sizes, sparseness, separation, len(codes))


def _tree(X: np.ndarray, jobs: int) -> _Tree:
    """Inner objects have two or more edges, inner edges join two of them; a cluster that has none
    of either (two or three objects, a star) counts all."""
    rows = rows_of(X - X.mean(axis=0))
    core = core_squares(rows, jobs)
    tree = spanning_tree(rows, jobs, core=core)
    degree = np.bincount(tree.edges.reshape(-1), minlength=len(X))
    inner = degree > 1
    edges = tree.squares[inner[tree.edges].all(axis=1)]
    members = np.flatnonzero(inner) if inner.any() else np.arange(len(X))
    longest = edges.max() if len(edges) else tree.squares.max()
    return _Tree(rows_of(X[members]), core[members], float(np.sqrt(longest)))


def core_squares(rows: Rows, jobs: int) -> np.ndarray:
    """Squared (mean over the others of distance^−d)^(−1/d), in logarithms; 0 beside a duplicate."""
    n, d = rows.X.shape
    pairs, blocks = Dissimilarities(rows, None), cut(n, ROWS)
    core = np.empty(n)

    def visit(i: slice) -> None:
        itself = np.arange(i.start, i.stop)
        total = np.full(i.stop - i.start, -np.inf)
        for j in blocks:
            table = pairs.table(i, j, itself[:, None] == np.arange(j.start, j.stop))
            with np.errstate(divide="ignore"):
                powers = -d / 2 * np.log(np.maximum(table, 0))  # inf for a duplicate
            total = np.logaddexp(total, _log_sum(powers))
        core[i] = np.exp(-2 / d * (total - np.log(n - 1)))

    share_out(jobs, visit, iter([[(i,) for i in blocks]]))
    return core


def _log_sum(powers: np.ndarray) -> np.ndarray:
    """ln Σ exp over each row."""
    top = powers.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0)
    with np.errstate(over="ignore", divide="ignore"):
        return np.log(np.exp(powers - safe[:, None]).sum(axis=1)) + safe


def _reach(a: _Tree, b: _Tree) -> float:
    """Smallest max(core, core, distance) between the inner objects of two clusters."""
    best = np.inf
    for i in cut(len(a.core), ROWS):
        for j in cut(len(b.core), ROWS):
            left, right = a.rows.take(i), b.rows.take(j)
            table = np.maximum(left.left @ right.right.T, 0)
            np.maximum(table, a.core[i][:, None], out=table)
            np.maximum(table, b.core[j], out=table)
            r, c = divmod(int(table.argmin()), table.shape[1])
            gap = left.X[r] - right.X[c]
            best = min(best, max(float(gap @ gap), float(a.core[i][r]), float(b.core[j][c])))
    return float(np.sqrt(best))
