"""Nearest neighbours and the minimum spanning tree of objects, exact, from blocked products."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from wellsep._threads import ROWS, cut_rows, in_rounds, in_threads, pair_rounds
from wellsep.compute.metrics.squares import CLOSE, Rows, pair_squares, recompute_close, rows_of

# The last bits of a reachability hold places: the tree is unique, and what differs less is equal.
PLACE_BITS = 22
TIE = 2.0 ** (PLACE_BITS - 52)


class Neighbours(NamedTuple):
    """The nearest other object of each object."""

    nearest: np.ndarray  # (n,)
    square: np.ndarray  # (n,) squared dissimilarity


class Tree(NamedTuple):
    """A minimum spanning tree over all objects."""

    edges: np.ndarray  # (n - 1, 2)
    squares: np.ndarray  # (n - 1,) squared dissimilarity of each edge


class Dissimilarities:
    """Squared dissimilarities max(‖x − y‖², core_x, core_y) of blocks of objects.

    Objects that have a ``core`` come by rising core: of equal dissimilarities the one is smaller
    that has the smaller core at one end.
    """

    def __init__(self, rows: Rows, core: np.ndarray | None = None, close: float = CLOSE[0]) -> None:
        self.rows, self.core, self.close = rows, core, close
        self.limit = close * 2 * float(rows.square.max(initial=0))

    def __len__(self) -> int:
        return len(self.rows.X)

    def take(self, members: np.ndarray, core: np.ndarray | None = None) -> Dissimilarities:
        """Some of the objects, about their mean."""
        X = self.rows.X[members]
        return Dissimilarities(rows_of(X - X.mean(axis=0)), core, self.close)

    def rough(self, i: np.ndarray | slice, j: np.ndarray | slice) -> np.ndarray:
        """Squared distances from products: those of close pairs have few digits."""
        return self.rows.left[i] @ self.rows.right[j].T

    def plain(
        self, i: np.ndarray | slice, j: np.ndarray | slice, barred: np.ndarray | None = None
    ) -> np.ndarray:
        """Squared distances; pairs that are ``barred`` are infinitely far apart."""
        table = self.rough(i, j)
        if barred is not None:
            np.putmask(table, barred, np.inf)
        if table.min(initial=np.inf) < self.limit:
            recompute_close(table, self.rows.bare(i), self.rows.bare(j), self.limit)
        return table

    def table(
        self, i: np.ndarray | slice, j: np.ndarray | slice, barred: np.ndarray | None = None
    ) -> np.ndarray:
        table = self.plain(i, j, barred)
        if self.core is None:
            return table
        np.maximum(table, self.core[i][:, None], out=table)
        np.maximum(table, self.core[j], out=table)
        place = np.arange(len(self.core))
        mark_places(table, np.minimum(place[i][:, None], place[j]))
        if barred is not None:
            np.putmask(table, barred, np.inf)
        return table

    def exact(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """(len(i),) without places."""
        squares = np.empty(len(i))
        for part in (slice(start, start + 4096) for start in range(0, len(i), 4096)):
            squares[part] = pair_squares(self.rows, i[part], self.rows, j[part])
        if self.core is None:
            return squares
        return np.maximum(squares, np.maximum(self.core[i], self.core[j]))

    def extremes(self, i: slice, j: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """The largest of a block, and the smallest of each row and column; from differences."""
        table = self.plain(i, j)
        rows, columns = np.arange(i.start, i.stop), np.arange(j.start, j.stop)
        largest = self.exact(rows, columns[table.argmax(axis=1)]).max()
        mine = self.exact(rows, columns[table.argmin(axis=1)])
        return float(largest), mine, self.exact(rows[table.argmin(axis=0)], columns)


def mark_places(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Round numbers in place to one part in 10⁹, and add places below 2²² to their last bits."""
    bits = table.view(np.int64)
    bits += 1 << (PLACE_BITS - 1)
    bits &= -1 << PLACE_BITS
    bits += places
    return table


def nearest_neighbours(pairs: Dissimilarities, jobs: int) -> Neighbours:
    """The nearest other object of each; every pair of blocks is visited once and used both ways."""
    n = len(pairs)
    blocks = cut_rows(n, ROWS)
    itself = np.eye(ROWS, dtype=bool)
    best = Neighbours(np.full(n, -1), np.full(n, np.inf))

    def visit(i: int, j: int) -> None:
        size = blocks[i].stop - blocks[i].start
        table = pairs.table(blocks[i], blocks[j], itself[:size, :size] if i == j else None)
        _improve(best, blocks[i], table, blocks[j].start)
        if i != j:
            _improve(best, blocks[j], table.T, blocks[i].start)

    in_rounds(jobs, visit, pair_rounds(len(blocks)))
    return best


def _improve(best: Neighbours, rows: np.ndarray | slice, table: np.ndarray, start: int) -> None:
    at = table.argmin(axis=1)
    square = np.take_along_axis(table, at[:, None], axis=1)[:, 0]
    tied = (square == best.square[rows]) & (at + start < best.nearest[rows])
    better = (square < best.square[rows]) | tied
    best.square[rows] = np.where(better, square, best.square[rows])
    best.nearest[rows] = np.where(better, at + start, best.nearest[rows])


def spanning_tree(pairs: Dissimilarities, jobs: int, near: Neighbours | None = None) -> Tree:
    """Borůvka's rounds: each component takes its shortest way out.

    An object looks for its nearest neighbour outside its component only while what it found last
    (a lower bound, for components only grow) is below what its component knows already.
    """
    n = len(pairs)
    near = nearest_neighbours(pairs, jobs) if near is None else near
    index, bound = near.nearest.copy(), near.square.copy()
    component = np.arange(n)
    edges: list[np.ndarray] = []
    count = n
    # Few components are joined in one go: each fills blocks of its own.
    while count > max(8, 4 * n // ROWS):
        _search(pairs, component, index, bound, jobs, count)
        known = np.flatnonzero(component[index] != component)
        order = known[np.lexsort((bound[known], component[known]))]
        chosen = order[np.diff(component[order], prepend=-1) > 0]  # each takes its shortest way
        count, component, kept = _join(component, chosen, index, bound, count)
        edges.append(kept)
    if count > 1:
        edges.append(_last_edges(pairs, component, count, jobs))
    both = np.vstack(edges) if edges else np.empty((0, 2), dtype=np.intp)
    return Tree(both, pairs.exact(both[:, 0], both[:, 1]))


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

        in_threads(jobs, ask, [asking[part] for part in cut_rows(len(asking), ROWS)])


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


def root(parent: list[int], x: int) -> int:
    """The element that stands for all that is joined with x; ``parent`` leads there sooner then."""
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


def _acyclic(a: np.ndarray, b: np.ndarray, count: int) -> Iterator[bool]:
    """Kruskal's test, edge by edge: does it join two parts that are still apart?"""
    parent = list(range(count))
    for left, right in zip(a.tolist(), b.tolist(), strict=True):
        p, q = root(parent, left), root(parent, right)
        parent[p] = q
        yield p != q


def _last_edges(pairs: Dissimilarities, component: np.ndarray, count: int, jobs: int) -> np.ndarray:
    """The shortest way between every two components in one pass, and the tree of those."""
    order = np.argsort(component, kind="stable")
    groups = component[order]
    blocks = cut_rows(len(order), ROWS, groups)
    owner = [int(groups[b.start]) for b in blocks]
    best: dict[tuple[int, int], tuple[float, int, int]] = {}
    lock = threading.Lock()

    def visit(i: int, j: int) -> None:
        if owner[i] == owner[j]:
            return
        table = pairs.table(order[blocks[i]], order[blocks[j]])
        r, c = divmod(int(table.argmin()), table.shape[1])
        offer = float(table[r, c]), int(order[blocks[i].start + r]), int(order[blocks[j].start + c])
        with lock:
            best[owner[i], owner[j]] = min(offer, best.get((owner[i], owner[j]), offer))

    in_rounds(jobs, visit, pair_rounds(len(blocks)))
    ways = sorted((square, max(p, q), p, q, a, b) for (a, b), (square, p, q) in best.items())
    *_, start, end, a, b = map(np.array, zip(*ways, strict=True))
    kept = np.fromiter(_acyclic(a, b, count), dtype=bool, count=len(a))
    return np.column_stack([start, end])[kept]
