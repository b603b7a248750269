"""Nearest neighbours and the minimum spanning tree of objects, and density trees of clusters.

All exact, from blocked products. Density trees: core distances, mutual reachability, and what joins
and parts clusters.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from wellsep.compute.engine import ROWS, cut_rows, in_threads, pair_rounds
from wellsep.compute.metrics import CLOSE, Rows, pair_squares, recompute_close, rows_of
from wellsep.compute.wants import Task, Want

# Ties of mutual reachability are broken by the plain distance, so that the tree is unique.
TIE = 1e-9


class Neighbours(NamedTuple):
    """The nearest other object of each object."""

    nearest: np.ndarray  # (n,)
    square: np.ndarray  # (n,) squared dissimilarity


class Tree(NamedTuple):
    """A minimum spanning tree over all objects."""

    edges: np.ndarray  # (n - 1, 2)
    squares: np.ndarray  # (n - 1,) squared dissimilarity of each edge


class Dissimilarities:
    """Squared dissimilarities max(‖x − y‖², core_x, core_y) of blocks of objects."""

    def __init__(self, rows: Rows, core: np.ndarray | None) -> None:
        self.rows, self.core = rows, core
        self.limit = CLOSE[0] * 2 * float(rows.square.max(initial=0))

    def table(
        self, i: np.ndarray | slice, j: slice, barred: np.ndarray | None = None
    ) -> np.ndarray:
        """Pairs that are ``barred`` are infinitely far apart."""
        table = self.rows.left[i] @ self.rows.right[j].T
        if barred is not None:
            np.putmask(table, barred, np.inf)
        if table.min(initial=np.inf) < self.limit:
            recompute_close(table, self.rows.bare(i), self.rows.bare(j), self.limit)
        if self.core is None:
            return table
        plain = table * TIE
        np.maximum(table, self.core[i][:, None], out=table)
        np.maximum(table, self.core[j], out=table)
        table += plain
        return table

    def exact(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """(len(i),) without the tie-breaker."""
        squares = np.empty(len(i))
        for part in cut_rows(len(i), 4096):
            squares[part] = pair_squares(self.rows, i[part], self.rows, j[part])
        if self.core is None:
            return squares
        return np.maximum(squares, np.maximum(self.core[i], self.core[j]))


def nearest_neighbours(rows: Rows, jobs: int, core: np.ndarray | None = None) -> Neighbours:
    """The nearest other object of each; every pair of blocks is visited once and used both ways."""
    pairs, n = Dissimilarities(rows, core), len(rows.X)
    blocks = cut_rows(n, ROWS)
    itself = np.eye(ROWS, dtype=bool)
    best = Neighbours(np.full(n, -1), np.full(n, np.inf))

    def visit(i: int, j: int) -> None:
        size = blocks[i].stop - blocks[i].start
        table = pairs.table(blocks[i], blocks[j], itself[:size, :size] if i == j else None)
        _improve(best, blocks[i], table, blocks[j].start)
        if i != j:
            _improve(best, blocks[j], table.T, blocks[i].start)

    in_threads(jobs, visit, pair_rounds(len(blocks)))
    return best


def _improve(best: Neighbours, rows: np.ndarray | slice, table: np.ndarray, start: int) -> None:
    at = table.argmin(axis=1)
    square = np.take_along_axis(table, at[:, None], axis=1)[:, 0]
    better = square < best.square[rows]
    best.square[rows] = np.where(better, square, best.square[rows])
    best.nearest[rows] = np.where(better, at + start, best.nearest[rows])


def spanning_tree(
    rows: Rows, jobs: int, *, core: np.ndarray | None = None, near: Neighbours | None = None
) -> Tree:
    """Borůvka's rounds: each component takes its shortest way out.

    An object looks for its nearest neighbour outside its component only while what it found last
    (a lower bound, for components only grow) is below what its component knows already.
    """
    n = len(rows.X)
    pairs = Dissimilarities(rows, core)
    near = nearest_neighbours(rows, jobs, core) if near is None else near
    index, bound = near.nearest.copy(), near.square.copy()
    component = np.arange(n)
    edges: list[np.ndarray] = []
    count = n
    while count > _few(n):
        _search(pairs, component, index, bound, jobs, count)
        chosen = _shortest_way_out(component, index, bound, count)
        count, component, kept = _join(component, chosen, index, bound, count)
        edges.append(kept)
    if count > 1:
        edges.append(_last_edges(pairs, component, count, jobs))
    both = np.vstack(edges) if edges else np.empty((0, 2), dtype=np.intp)
    return Tree(both, pairs.exact(both[:, 0], both[:, 1]))


def _few(n: int) -> int:
    """So few components are joined in one go: each fills blocks of its own."""
    return max(8, 4 * n // ROWS)


def _search(
    pairs: Dissimilarities,
    component: np.ndarray,
    index: np.ndarray,
    bound: np.ndarray,
    jobs: int,
    count: int,
) -> None:
    """Make sure that the shortest way out of every component is known."""
    n = len(component)
    blocks = cut_rows(n, ROWS)
    while True:
        known = component[index] != component
        best = np.full(count, np.inf)
        np.minimum.at(best, component[known], bound[known])
        asking = np.flatnonzero(~known & (bound < best[component]))
        if not len(asking):
            return
        # Those who were content with much before are likely to lie at the rim: they go first, and
        # what they find spares the others the search.
        asking = asking[np.argsort(-bound[asking], kind="stable")][: max(ROWS, len(asking) // 2)]

        def ask(rows: np.ndarray) -> None:
            found = Neighbours(np.full(len(rows), -1), np.full(len(rows), np.inf))
            mine = component[rows][:, None]
            for columns in blocks:
                table = pairs.table(rows, columns, mine == component[columns])
                _improve(found, slice(None), table, columns.start)
            index[rows], bound[rows] = found

        in_threads(jobs, ask, iter([[(asking[part],) for part in cut_rows(len(asking), ROWS)]]))


def _shortest_way_out(
    component: np.ndarray, index: np.ndarray, bound: np.ndarray, count: int
) -> np.ndarray:
    """(count,) the object at which each component leaves."""
    known = np.flatnonzero(component[index] != component)
    order = known[np.lexsort((bound[known], component[known]))]
    first = np.flatnonzero(np.diff(component[order], prepend=-1))
    return order[first]


def _join(
    component: np.ndarray, chosen: np.ndarray, index: np.ndarray, bound: np.ndarray, count: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """Merge along the chosen edges; of two components that chose each other one edge stays."""
    order = chosen[np.argsort(bound[chosen], kind="stable")]
    a, b = component[order], component[index[order]]
    kept = np.fromiter(_acyclic(a, b, count), dtype=bool, count=len(a))
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(count, count))
    merged, label = connected_components(graph, directed=False)
    return merged, label[component], np.column_stack([order, index[order]])[kept]


def _acyclic(a: np.ndarray, b: np.ndarray, count: int) -> Iterator[bool]:
    """Kruskal's test, edge by edge: does it join two parts that are still apart?"""
    parent = list(range(count))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for left, right in zip(a.tolist(), b.tolist(), strict=True):
        p, q = root(left), root(right)
        parent[p] = q
        yield p != q


def _last_edges(pairs: Dissimilarities, component: np.ndarray, count: int, jobs: int) -> np.ndarray:
    """The shortest way between every two components in one pass, and the tree of those."""
    order = np.argsort(component, kind="stable")
    ordered = Dissimilarities(
        pairs.rows.take(order), None if pairs.core is None else pairs.core[order]
    )
    groups = component[order]
    blocks = cut_rows(len(order), ROWS, groups)
    owner = [int(groups[b.start]) for b in blocks]
    best: dict[tuple[int, int], tuple[float, int, int]] = {}
    lock = threading.Lock()

    def visit(i: int, j: int) -> None:
        if owner[i] == owner[j]:
            return
        table = ordered.table(blocks[i], blocks[j])
        r, c = divmod(int(table.argmin()), table.shape[1])
        offer = float(table[r, c]), int(order[blocks[i].start + r]), int(order[blocks[j].start + c])
        with lock:
            best[owner[i], owner[j]] = min(offer, best.get((owner[i], owner[j]), offer))

    in_threads(jobs, visit, pair_rounds(len(blocks)))
    ways = sorted((square, p, q, a, b) for (a, b), (square, p, q) in best.items())
    _, start, end, a, b = map(np.array, zip(*ways, strict=True))
    kept = np.fromiter(_acyclic(a, b, count), dtype=bool, count=len(a))
    return np.column_stack([start, end])[kept]


class DensityTrees(NamedTuple):
    """What the minimum spanning trees of mutual reachability say about one partition."""

    sizes: np.ndarray  # (K,)
    sparseness: np.ndarray  # (K,) longest inner edge of a cluster's tree; NaN for a single object
    separation: np.ndarray  # (K, K) shortest reach between inner objects; inf on the diagonal
    n_objects: int  # all, with those that are not counted


class _Tree(NamedTuple):
    rows: Rows  # the inner objects
    core: np.ndarray  # their squared core distances
    sparseness: float


def provide_density_trees(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``ties``: which of equally short trees is taken, "distance" or "hdbscan"."""
    X, jobs = task.space.on_host().X, task.space.host_jobs
    return {
        w: [_grow(X, codes, jobs, w.get("ties")) for codes in task.partitions.codes] for w in wants
    }


def _grow(X: np.ndarray, codes: np.ndarray, jobs: int, ties: str) -> DensityTrees:
    sizes = np.bincount(codes[codes >= 0])
    grow = _tree if ties == "distance" else _first_tree
    trees = [
        grow(X[codes == k], jobs) if sizes[k] > 1 else _lone(X[codes == k])
        for k in range(len(sizes))
    ]
    separation = np.full((len(sizes),) * 2, np.inf)

    def visit(i: int, j: int) -> None:
        if i != j:
            separation[i, j] = separation[j, i] = _reach(trees[i], trees[j])

    in_threads(jobs, visit, pair_rounds(len(trees)))
    return DensityTrees(sizes, np.array([t.sparseness for t in trees]), separation, len(codes))


def _lone(X: np.ndarray) -> _Tree:
    """A single object: no density and no edge, but a place, from which others are far or near."""
    return _Tree(rows_of(X), np.zeros(1), np.nan)


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


def _first_tree(X: np.ndarray, jobs: int) -> _Tree:
    """The tree of ``hdbscan.validity``, which depends on the order of the rows.

    Prim's algorithm starts at the first row; of equally near objects the first is taken. A new
    object is then tied to the first object of the tree at the same reach, as ``np.isclose`` says
    it. Duplicates do not count in core distances. Of two objects the first alone is inner.
    """
    n, d = X.shape
    rows = rows_of(X - X.mean(axis=0))
    core = _cores_without_duplicates(rows, d)

    def reach(i: int) -> np.ndarray:
        gap = rows.X - rows.X[i]
        return np.maximum(np.sqrt(np.einsum("ij,ij->i", gap, gap)), np.maximum(core, core[i]))

    edges, lengths = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    inside, best = np.zeros(n, dtype=bool), np.full(n, np.inf)
    row = reach(0)
    inside[0] = True
    for step in range(n - 1):
        np.minimum(best, row, out=best)
        best[inside] = np.inf
        new = int(best.argmin())
        row = reach(new)
        tied = np.flatnonzero(inside & np.isclose(row, best[new]))
        edges[step], lengths[step] = (int(tied[0]), new), best[new]
        inside[new] = True
    inner = np.bincount(edges.reshape(-1), minlength=n) > 1
    kept = inner[edges].all(axis=1)
    members = np.flatnonzero(inner) if inner.any() else np.zeros(1, dtype=np.intp)
    longest = lengths[kept].max() if kept.any() else lengths.max()
    return _Tree(rows_of(X[members]), core[members] ** 2, float(longest))


def _cores_without_duplicates(rows: Rows, d: int) -> np.ndarray:
    """(n,) (Σ distance^−d over those elsewhere / (n − 1))^(−1/d); 0 if all lie in one place."""
    n = len(rows.X)
    core = np.zeros(n)
    for i in range(n):
        gap = rows.X - rows.X[i]
        square = np.einsum("ij,ij->i", gap, gap)
        square = square[square > 0]
        if len(square):
            total = _log_sum(-d / 2 * np.log(square)[None])[0]
            core[i] = np.exp(-(total - np.log(n - 1)) / d)
    return core


def core_squares(rows: Rows, jobs: int) -> np.ndarray:
    """Squared (mean over the others of distance^−d)^(−1/d), in logarithms; 0 beside a duplicate."""
    n, d = rows.X.shape
    pairs, blocks = Dissimilarities(rows, None), cut_rows(n, ROWS)
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

    in_threads(jobs, visit, iter([[(i,) for i in blocks]]))
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
    for i in cut_rows(len(a.core), ROWS):
        for j in cut_rows(len(b.core), ROWS):
            left, right = a.rows.take(i), b.rows.take(j)
            table = np.maximum(left.left @ right.right.T, 0)
            np.maximum(table, a.core[i][:, None], out=table)
            np.maximum(table, b.core[j], out=table)
            r, c = divmod(int(table.argmin()), table.shape[1])
            gap = left.X[r] - right.X[c]
            best = min(best, max(float(gap @ gap), float(a.core[i][r]), float(b.core[j][c])))
    return float(np.sqrt(best))
