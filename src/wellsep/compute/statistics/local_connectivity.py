"""Neighbours that stand between an object and its prototype, and how far they pull aside (LCD).

For one cluster with prototype c, r(x) = dist(x, c): the up to t nearest other members s with
r(s) <= r(x) and dist(x, s) < r(x), and the sum of their disagreements (equations 1 to 6 of
Deepak P, "Local connectivity in centroid clustering", IDEAS 2020).

Sorted by r, the candidates of x are a prefix of the cluster. Prefixes are grouped by powers of
two and each group is searched in its own tree (or in distance blocks where trees do not pay), so
at least half of what a search can meet is a candidate and a few neighbours beyond t settle most
objects; the rest ask for twice as many until the ball of radius r(x) is exhausted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.squares import Rows
from wellsep.compute.statistics import neighbour_graph
from wellsep.compute.statistics.neighbour_graph import (
    distances_to,
    find_duplicates,
    gap_squares,
    smallest,
)

# Distances closer than this, relatively, are one distance: means carry rounding, and whether two
# objects on one sphere around their prototype see each other must not depend on the row order.
TIE = 1e-12
_SMALL = 512  # up to this many candidates one distance block beats a tree
_BLOCK = 1 << 21  # entries of a distance block: 16 MiB of float64
_ROWS = 1 << 14  # rows per tree query

# rows, k -> distances (rows, k) rising, positions (rows, k), a bound that nothing unseen beats
Nearest = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Witnesses(NamedTuple):
    """What the neighbours of each member of one cluster say."""

    disagreement: np.ndarray  # (m,) LCD(x, c)
    size: np.ndarray  # (m,) |N(x)|


def disagreement(to_neighbour, neighbour_to_center, to_center) -> np.ndarray:
    """LCD(x, c, s) = Dev * ND (equations 3 to 5), Dev clipped at 0 against rounding."""
    path = neighbour_to_center + to_neighbour
    # A duplicate of x adds nothing: ND = 0. The path is 0 only where distances are no metric.
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.maximum(path / to_center - 1.0, 0.0)
        return np.where(path > 0, deviation * (to_neighbour / path), 0.0)


def cluster_witnesses(
    points: np.ndarray,
    center: np.ndarray,
    n_neighbors: int,
    *,
    workers: int = 1,
    device_rows: Any = None,
) -> Witnesses:
    """LCD and |N| of the members (m, d) of a cluster; ``device_rows`` are searched where given."""
    # Of objects that coincide t + 1 are enough: no member sees more of them, and what one of
    # them sees the others see.
    copies = find_duplicates(points, n_neighbors + 1)
    kept = np.ones(len(points), dtype=bool)
    kept[copies.rows[copies.place > n_neighbors]] = False
    search = _Search(distances_to(points, center), n_neighbors, kept)
    members, radii, reach = np.ascontiguousarray(points[search.order]), search.radii, search.reach
    in_blocks = search.rows
    if device_rows is not None and len(members) > _SMALL:
        device = load("wellsep.compute.engine.device.neighbours")
        sorted_rows = device_rows[search.order]
        nearest = device.prefix_search(sorted_rows, center, reach, fused_usable(device_rows))
    else:
        nearest = _block_search(members, center, radii, reach)
        if members.shape[1] <= neighbour_graph.TREE_FEATURES:
            few = int(np.searchsorted(reach[in_blocks], _SMALL, side="right"))
            in_blocks, in_trees = in_blocks[:few], in_blocks[few:]
            level = 2 * _SMALL
            while len(in_trees):  # prefixes are at most twice as long as needed
                last = int(np.searchsorted(reach[in_trees], level, side="right"))
                if last:
                    tree = _tree_search(members[:level], members, radii, workers)
                    search.settle(in_trees[:last], tree, 2 * n_neighbors + 2)
                in_trees, level = in_trees[last:], 2 * level
    search.settle(in_blocks, nearest, n_neighbors + 2)
    first = copies.rows[np.flatnonzero(copies.place == 0)[copies.spot]]
    for values in search.witnesses:
        values[copies.rows] = values[first]
    return search.witnesses


def witnesses_of_distances(
    block: Callable[[np.ndarray, np.ndarray], np.ndarray], radii: np.ndarray, n_neighbors: int
) -> Witnesses:
    """The same of members known by ``block(rows, columns)``, their distances in float64."""
    search = _Search(radii, n_neighbors)
    order = search.order

    def distances(rows, prefix):
        return block(order[rows], order[:prefix])

    def lowest(table, rows, k):
        position = smallest(table, min(k, table.shape[1]))
        distance = np.take_along_axis(table, position, axis=1)
        return distance, position, distance[:, -1]

    search.settle(search.rows, _in_blocks(distances, lowest, search.reach), n_neighbors + 2)
    return search.witnesses


class _Search:
    """The ``kept`` members of one cluster, sorted by radius, and the results of all members."""

    def __init__(self, radii: np.ndarray, n_neighbors: int, kept: np.ndarray | None = None) -> None:
        order = np.argsort(radii, kind="stable")
        self.order = order if kept is None else order[kept[order]]
        self.radii, self.n_neighbors = radii[self.order], n_neighbors
        self.reach = np.searchsorted(self.radii, self.radii * (1 + TIE), side="right")
        self.rows = np.flatnonzero(self.radii > 0)  # on the prototype nothing is between: LCD = 0
        self.witnesses = Witnesses(np.zeros(len(radii)), np.zeros(len(radii), dtype=np.int32))

    def settle(self, rows: np.ndarray, nearest: Nearest, k: int) -> None:
        """Fill the results of `rows`, asking `nearest` for more where its answer was too short."""
        while len(rows):
            width = max(1, _ROWS * 16 // k)
            left = [
                self._settle(rows[start : start + width], nearest, k)
                for start in range(0, len(rows), width)
            ]
            rows, k = np.concatenate(left), 2 * k

    def _settle(self, rows, nearest, k):
        distance, position, unseen = nearest(rows, k)
        own = self.radii[rows]
        seen = np.minimum(position, len(self.radii) - 1)
        valid = (
            (position < self.reach[rows][:, None])
            & (position != rows[:, None])
            & (distance < (own * (1 - TIE))[:, None])
        )
        place = np.cumsum(valid, axis=1)
        enough = place[:, -1] >= self.n_neighbors
        column = np.argmax(place >= self.n_neighbors, axis=1)  # of the t-th neighbour, if any
        last = np.where(enough, distance[np.arange(len(rows)), column], np.inf)
        done = (unseen >= own * (1 - TIE)) | (last * (1 + TIE) < unseen)
        distance, seen, valid, own, last = (a[done] for a in (distance, seen, valid, own, last))
        theirs = np.where(valid, self.radii[seen], own[:, None])
        terms = disagreement(np.where(valid, distance, 0.0), theirs, own[:, None])
        members, t = self.order[rows[done]], self.n_neighbors
        self.witnesses.disagreement[members] = _nearest_terms(distance, valid, terms, last, t)
        self.witnesses.size[members] = np.minimum(valid.sum(axis=1), t)
        return rows[~done]


def _nearest_terms(distance, valid, terms, last, t):
    """Sum of the t nearest terms per row; at the t-th place the smaller term goes first."""
    inside = valid & (distance < (last * (1 - TIE))[:, None])
    total = np.where(inside, terms, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        edge = valid & ~inside & (distance <= (last * (1 + TIE))[:, None])
    rows = np.flatnonzero(edge.any(axis=1))
    if len(rows):
        tied = np.sort(np.where(edge[rows], terms[rows], np.inf), axis=1)
        free = t - inside[rows].sum(axis=1)
        taken = np.arange(tied.shape[1]) < free[:, None]
        total[rows] += np.where(taken, tied, 0.0).sum(axis=1)
    return total


def _tree_search(prefix, members, radii, workers) -> Nearest:
    tree = cKDTree(prefix)

    def nearest(rows, k):
        k = min(k, tree.n)
        # Rows are sorted by radius, so the last radius bounds the balls of all of them.
        bound = radii[rows[-1]] * (1 + TIE)
        distance, position = tree.query(
            members[rows], k=range(1, k + 1), distance_upper_bound=bound, workers=workers
        )
        unseen = np.full(len(rows), np.inf) if k == tree.n else distance[:, -1]
        return distance, position, unseen

    return nearest


def _block_search(members, center, radii, reach) -> Nearest:
    squares = radii * radii
    centred = Rows(members - center, squares)
    slack = 4 * (members.shape[1] + 8) * np.finfo(float).eps  # of a distance block, relative

    def products(rows, prefix):
        return centred.left[rows] @ centred.right[:prefix].T

    def lowest(table, rows, k):
        own = squares[rows][:, None]
        table[table > own * (1 + slack)] = np.inf
        if k <= table.shape[1]:
            position = np.argpartition(table, k - 1, axis=1)[:, :k]
        else:
            position = np.broadcast_to(np.arange(table.shape[1]), table.shape)
        rough = np.take_along_axis(table, position, axis=1)
        bound = np.sqrt(np.maximum(rough.max(axis=1) - slack * own[:, 0], 0.0))
        # The block only finds them: ties are told from true differences.
        exact = np.sqrt(gap_squares(members, rows, position))
        exact[np.isinf(rough)] = np.inf
        by = np.argsort(exact, axis=1, kind="stable")
        return np.take_along_axis(exact, by, 1), np.take_along_axis(position, by, 1), bound

    return _in_blocks(products, lowest, reach)


def _in_blocks(table_of, lowest, reach) -> Nearest:
    """A search by blocks of bounded size.

    ``table_of(rows, prefix)`` makes a table, and ``lowest(table, rows, k)`` takes from it the
    distances and positions of up to k nearest, with a bound below those of all others.
    """

    def nearest(rows, k):
        height = max(1, _BLOCK // max(int(reach[rows[-1]]), 1))
        # Blocks of shorter prefixes may hold fewer columns.
        distance, unseen = np.full((len(rows), k + 1), np.inf), np.empty(len(rows))
        position = np.full((len(rows), k + 1), len(reach), dtype=np.intp)
        for start in range(0, len(rows), height):
            block = slice(start, start + height)
            some = rows[block]
            prefix = int(reach[some[-1]])
            table = table_of(some, prefix)
            table[np.arange(prefix) >= reach[some][:, None]] = np.inf
            table[np.arange(len(some)), some] = np.inf
            near, columns, bound = lowest(table, some, k + 1)
            unseen[block] = bound if k < prefix else np.inf
            distance[block, : near.shape[1]], position[block, : near.shape[1]] = near, columns
        return distance, position, unseen

    return nearest
