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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.table import Rows
from wellsep.compute.statistics.neighbour_graph import (
    distances_to,
    find_duplicates,
    gap_squares,
    smallest,
)

if TYPE_CHECKING:
    from wellsep.compute.statistics.cluster_prototypes import Around

# Distances closer than this, relatively, are one distance: means carry rounding, and whether two
# objects on one sphere around their prototype see each other must not depend on the row order.
TIE = 1e-12
# A kd-tree visits most of its points beyond this many features.
TREE_FEATURES = 14
_SMALL = 512  # up to this many candidates one distance block beats a tree
_BLOCK = 1 << 21  # entries of a distance block: 16 MiB of float64
_ROWS = 1 << 14  # rows per tree query
_VOTERS = 1 << 15  # rows whose neighbours vote at once
_SPARE = 1  # neighbours looked at beyond t, to see whether the t-th ties
# Where more objects than this tie at the t-th place, these many are heard; fewer where so many
# rows tie that their neighbours would fill more than half a gigabyte.
_MOST, _TABLE = 1 << 10, 1 << 25

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
    """LCD and |N| of every member of one cluster.

    Parameters
    ----------
    points : float64 array (m, d), the members.
    center : float64 array (d,), the prototype.
    n_neighbors : t of the paper.
    workers : threads of a tree search.
    device_rows : the members as a tensor on an accelerator, where they are then searched.
    """
    # Of objects that coincide t + 1 are enough: no member sees more of them, and what one of
    # them sees the others see.
    copies = find_duplicates(points, n_neighbors + 1)
    surplus = copies.place > n_neighbors
    if not surplus.any():
        return _witnesses(points, center, n_neighbors, workers, device_rows)
    kept = np.ones(len(points), dtype=bool)
    kept[copies.rows[surplus]] = False
    found = Witnesses(np.empty(len(points)), np.empty(len(points), dtype=np.int32))
    some_device_rows = None if device_rows is None else device_rows[kept]
    first = copies.rows[np.flatnonzero(copies.place == 0)[copies.spot]]
    for values, some in zip(
        found, _witnesses(points[kept], center, n_neighbors, workers, some_device_rows), strict=True
    ):
        values[kept] = some
        values[copies.rows] = values[first]
    return found


def _witnesses(
    points: np.ndarray, center: np.ndarray, n_neighbors: int, workers: int, device_rows: Any
) -> Witnesses:
    radii = distances_to(points, center)
    order = np.argsort(radii, kind="stable")
    members, radii = np.ascontiguousarray(points[order]), radii[order]
    reach = np.searchsorted(radii, radii * (1 + TIE), side="right")
    total, size = np.zeros(len(members)), np.zeros(len(members), dtype=np.int32)
    search = _Search(radii, reach, n_neighbors, total, size)
    rows = np.flatnonzero(radii > 0)  # on the prototype nothing stands between: LCD = 0
    if device_rows is not None and len(members) > _SMALL:
        device = load("wellsep.compute.engine.device.neighbours")
        search.settle(
            rows,
            device.prefix_search(device_rows[order], center, reach, fused_usable(device_rows)),
            n_neighbors + 2,
        )
        return _given_order(order, total, size)
    as_trees = members.shape[1] <= TREE_FEATURES
    for level, first, last in _levels(reach, rows, as_trees):
        nearest: Nearest
        if as_trees and level > _SMALL:
            nearest = _tree_search(members[:level], members, radii, workers)
            start = 2 * n_neighbors + 2
        else:
            nearest = _block_search(members, center, radii, reach)
            start = n_neighbors + 2
        search.settle(rows[first:last], nearest, start)
    return _given_order(order, total, size)


def witnesses_of_distances(
    block: Callable[[np.ndarray, np.ndarray], np.ndarray], radii: np.ndarray, n_neighbors: int
) -> Witnesses:
    """The same of members known by their distances.

    Parameters
    ----------
    block : (rows, columns) -> float64 distances of some members to others.
    radii : float64 array (m,), distances of the members to the prototype.
    n_neighbors : t of the paper.
    """
    order = np.argsort(radii, kind="stable")
    radii = radii[order]
    reach = np.searchsorted(radii, radii * (1 + TIE), side="right")
    total, size = np.zeros(len(radii)), np.zeros(len(radii), dtype=np.int32)

    def distances(rows, k):
        prefix = int(reach[rows[-1]])
        table = block(order[rows], order[:prefix])
        table[np.arange(prefix) >= reach[rows][:, None]] = np.inf
        table[np.arange(len(rows)), rows] = np.inf
        position = smallest(table, min(k + 1, prefix))
        found = np.take_along_axis(table, position, axis=1)
        bound = found[:, -1] if k < prefix else np.full(len(rows), np.inf)
        return found, position, bound

    search = _Search(radii, reach, n_neighbors, total, size)
    search.settle(np.flatnonzero(radii > 0), _in_blocks(distances, reach), n_neighbors + 2)
    return _given_order(order, total, size)


def _given_order(order, total, size) -> Witnesses:
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return Witnesses(total[back], size[back])


def _levels(reach, rows, as_trees):
    """(prefix length, first, last) over `rows`: prefixes at most twice as long as needed."""
    if not as_trees:
        return [(int(reach[rows[-1]]), 0, len(rows))] if len(rows) else []
    needed = reach[rows]
    level, first, found = _SMALL, 0, []
    while first < len(rows):
        last = int(np.searchsorted(needed, level, side="right"))
        if last > first:
            found.append((min(level, len(reach)), first, last))
        first, level = last, level * 2
    return found


class _Search(NamedTuple):
    """One cluster, sorted by radius, and the two results being filled."""

    radii: np.ndarray
    reach: np.ndarray
    n_neighbors: int
    total: np.ndarray
    size: np.ndarray

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
        known = np.minimum(position, len(self.radii) - 1)
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
        distance, known, valid, own, last = (a[done] for a in (distance, known, valid, own, last))
        theirs = np.where(valid, self.radii[known], own[:, None])
        terms = disagreement(np.where(valid, distance, 0.0), theirs, own[:, None])
        chosen = _nearest_terms(distance, valid, terms, last, self.n_neighbors)
        self.total[rows[done]] = chosen
        self.size[rows[done]] = np.minimum(valid.sum(axis=1), self.n_neighbors)
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

    def block(rows, k):
        prefix = int(reach[rows[-1]])
        own = squares[rows][:, None]
        table = centred.left[rows] @ centred.right[:prefix].T
        table[np.arange(prefix) >= reach[rows][:, None]] = np.inf
        table[np.arange(len(rows)), rows] = np.inf
        table[table > own * (1 + slack)] = np.inf
        if k < prefix:
            position = np.argpartition(table, k, axis=1)[:, : k + 1]
            rough = np.take_along_axis(table, position, axis=1)
            bound = rough.max(axis=1)
            bound = np.sqrt(np.maximum(bound - slack * own[:, 0], 0.0))
        else:
            position = np.broadcast_to(np.arange(prefix), table.shape)
            rough, bound = table, np.full(len(rows), np.inf)
        # The block only finds them: ties are told from true differences.
        exact = np.sqrt(gap_squares(members, rows, position))
        exact[np.isinf(rough)] = np.inf
        by = np.argsort(exact, axis=1, kind="stable")
        return np.take_along_axis(exact, by, 1), np.take_along_axis(position, by, 1), bound

    return _in_blocks(block, reach)


def _in_blocks(block, reach) -> Nearest:
    """A search by blocks of bounded size."""

    def nearest(rows, k):
        height = max(1, _BLOCK // max(int(reach[rows[-1]]), 1))
        parts = [block(rows[i : i + height], k) for i in range(0, len(rows), height)]
        # Blocks of shorter prefixes may hold fewer columns.
        wide = max(part[0].shape[1] for part in parts)
        return (
            np.concatenate([_widen(part[0], wide, np.inf) for part in parts]),
            np.concatenate([_widen(part[1], wide, len(reach)) for part in parts]),
            np.concatenate([part[2] for part in parts]),
        )

    return nearest


def _widen(table, columns, value):
    missing = columns - table.shape[1]
    return np.pad(table, ((0, 0), (0, missing)), constant_values=value) if missing else table


def best_supported(
    around: Around, radii: np.ndarray, n_neighbors: int, *, n_jobs: int | None = None
) -> np.ndarray:
    """The cluster that backs each object best; its own where none is better.

    Each of the t nearest objects s stands up for its own cluster, with prototype c, by
    1/2 - LCD(x, c, s), which is 1/2 where s does not lie between x and c (equation 2): x is then
    nearer to c than s is. Objects that tie at the t-th place share what places are left, so the
    row order plays no part. No more neighbours are asked than x's own cluster could provide.
    Where more than t objects coincide the most frequent cluster among them is best.

    A vote of the nearest, not LCD(x, c) against every other cluster: that falls towards 0 for a
    cluster far away, since all its members then lie almost on the line to its prototype.
    """
    codes, n = around.codes, len(around.codes)
    best = codes.copy()
    asked = np.minimum(n_neighbors, np.bincount(codes)[codes] - 1)
    crowded, best[crowded] = around.crowded(n_neighbors)
    rows, k = np.setdiff1d(np.arange(n), crowded), n_neighbors + _SPARE
    while len(rows):
        k = min(k, n - 1)
        most = min(_MOST, n - 1, _TABLE // len(rows))
        graph = around.graph(k, rows, n_jobs)
        place = graph.distances[np.arange(len(rows)), np.maximum(asked[rows], 1) - 1]
        cut = (graph.distances[:, -1] <= place * (1 + TIE)) & (k < most)
        seen = np.flatnonzero(~cut)
        for part in np.array_split(seen, len(seen) * k // (_VOTERS * 16) + 1):
            best[rows[part]] = _vote(
                around, radii, rows[part],
                graph.indices[part], graph.distances[part], asked[rows[part]],
            )  # fmt: skip
        rows, k = rows[cut], min(4 * k, most)
    return best


def _vote(around, radii, rows, neighbour, distance, asked):
    theirs, own = around.codes[neighbour], around.codes[rows]
    to_center = np.broadcast_to(radii[rows][:, None], theirs.shape).copy()
    row, column = np.nonzero(theirs != own[:, None])
    to_center[row, column] = np.sqrt(around.squares_to(rows[row], theirs[row, column]))
    between = (radii[neighbour] <= to_center * (1 + TIE)) & (distance < to_center * (1 - TIE))
    safe = np.where(between, to_center, 1.0)
    terms = disagreement(
        np.where(between, distance, 0.0), np.where(between, radii[neighbour], 1.0), safe
    )
    voice = (0.5 - np.where(between, terms, 0.0)) * _places(distance, asked)
    total = _voice_of_cluster(theirs, voice)
    at_home = np.where(theirs == own[:, None], total, 0.0).max(axis=1)
    # Of clusters that tie the first in code order, so that the row order plays no part.
    top = total.max(axis=1)
    rival = np.where(total >= top[:, None] * (1 - TIE), theirs, around.n_clusters).min(axis=1)
    return np.where(top > at_home * (1 + TIE), rival, own)


def most_frequent(spot, codes):
    """Of objects with at least t others on their spot: the cluster most of them belong to."""
    if not len(codes):
        return codes
    pairs, pair, counts = np.unique(
        np.stack([spot, codes]), axis=1, return_inverse=True, return_counts=True
    )
    order = np.lexsort((-counts, pairs[0]))
    first = order[np.unique(pairs[0][order], return_index=True)[1]]
    lead, most = pairs[1][first][spot], counts[first][spot]
    return np.where(most > counts[pair.reshape(-1)], lead, codes).astype(codes.dtype)


def _voice_of_cluster(theirs, voice):
    """Total voice of each neighbour's cluster, at that neighbour's column."""
    keys = np.arange(len(theirs))[:, None] * (int(theirs.max(initial=0)) + 1) + theirs
    _, place = np.unique(keys, return_inverse=True)
    place = place.reshape(voice.shape)
    return np.bincount(place.reshape(-1), voice.reshape(-1))[place]


def _places(distance, asked):
    """Weight of each column: 1 inside the t-th distance, a share of the rest at it, 0 beyond."""
    last = distance[np.arange(len(distance)), np.maximum(asked, 1) - 1][:, None]
    inside = distance < last * (1 - TIE)
    edge = ~inside & (distance <= last * (1 + TIE))
    share = (asked - inside.sum(axis=1)) / np.maximum(edge.sum(axis=1), 1)
    return inside * (asked > 0)[:, None] + edge * np.maximum(share, 0.0)[:, None]
