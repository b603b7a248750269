"""Density trees of clusters: core distances, mutual reachability, what joins and parts clusters.

Trees lie inside clusters, so partitions share them only where they share a cluster. What all
clusters share are distances: small data have one table of them where there are many partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from wellsep._threads import ROWS, cut_rows, in_rounds, in_threads, one_blas_thread, pair_rounds
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space, host
from wellsep.compute.metrics.squares import rows_of
from wellsep.compute.metrics.table import Metric, as_elsewhere, find
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.spanning_tree import (
    PLACE_BITS,
    TIE,
    Dissimilarities,
    mark_places,
    spanning_tree,
)

PLACES = 1 << PLACE_BITS // 2  # two such places fit into the last bits of a number
SHARED = PLACES  # objects; so many have one table of distances
LARGE = 1200  # objects of a cluster whose tree grows faster by blocks than in a table
TOGETHER = 128  # objects of small clusters whose trees grow in one table
BLOCK = 256  # inner objects of a block whose reach is looked for
NARROW = 128  # columns; up to so many, distances are computed again sooner than picked from a table
CLOSE = 1e-4  # squared distances below this share of squared lengths are computed again
FAR = 2.0**1000  # between clusters that share a table
EXACT = 16  # objects whose distances to as many others are computed together
AT_ONCE = 1 << 20  # pairs that may tie and are looked at together


class MetricPairs(Dissimilarities):
    """Squared dissimilarities max(distance², core_x, core_y) of some objects ``at`` of a space."""

    def __init__(
        self, space: Space, metric: Metric, at: np.ndarray, core: np.ndarray | None = None
    ) -> None:
        self.distances, self.at, self.core = Pairs(space, metric, wide=True), at, core
        self.limit = -np.inf  # distances of close pairs are right already

    def __len__(self) -> int:
        return len(self.at)

    def take(self, members: np.ndarray, core: np.ndarray | None = None) -> MetricPairs:
        some = copy(self)
        some.at, some.core = self.at[members], core
        return some

    def rough(self, i: np.ndarray | slice, j: np.ndarray | slice) -> np.ndarray:
        table = self.distances.host_block(self.at[i], self.at[j])
        return table * table

    def exact(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        parts = [self.rough(i[p], j[p]).diagonal() for p in cut_rows(len(i), EXACT)]
        squares = np.concatenate([np.empty(0), *parts])
        if self.core is None:
            return squares
        return np.maximum(squares, np.maximum(self.core[i], self.core[j]))

    def extremes(self, i: slice, j: slice) -> tuple[float, np.ndarray, np.ndarray]:
        table = self.distances.host_block(self.at[i], self.at[j])
        return float(table.max()) ** 2, table.min(axis=1) ** 2, table.min(axis=0) ** 2


class DensityTrees(NamedTuple):
    """What the minimum spanning trees of mutual reachability say about one partition.

    A cluster of one object has no tree: it is noise, as in the authors' program.
    """

    sizes: np.ndarray  # (K,)
    sparseness: np.ndarray  # (K,) longest inner edge of a cluster's tree; NaN without one
    separation: np.ndarray  # (K,) shortest reach to inner objects of another; NaN without trees
    n_objects: int  # all, with those that are not counted


class Tree(NamedTuple):
    """What one cluster's tree says."""

    inner: np.ndarray  # positions of the inner objects
    core: np.ndarray  # their squared core distances
    sparseness: float


class Grown(NamedTuple):
    """One cluster's tree, and the squared core distances of its members."""

    edges: np.ndarray  # (size - 1, 2) places among the members
    reach: np.ndarray  # (size - 1,) squared reachability, to one part in 10⁹
    core: np.ndarray  # (size,)
    rank: np.ndarray  # (size,) by core distance and sum of squared distances; equal ones share it


def provide_density_trees(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``ties``: which of equally short trees is taken, "core" or "hdbscan".

    Options ``metric`` and ``d``: other distances than Euclidean, and the power of core distances.
    """
    space, jobs = task.space, task.space.host_jobs
    found: dict[Want, list[Any]] = {}
    for one in wants:
        metric, d = find(one.get("metric")), one.get("d") or space.d
        plain, first = metric == find("euclidean"), one.get("ties") == "hdbscan"
        order = np.arange(space.n) if first else _order_of_rows(space)
        clusters, numbers = distinct_clusters(task.partitions.codes[:, order])
        if plain:
            X = _rows(space)[order]
            pairs = Dissimilarities(rows_of(X - X.mean(axis=0)), close=CLOSE)
        else:
            pairs = MetricPairs(space, metric, order)
        table = None
        if first:
            distances = _as_in_hdbscan(space, metric, pairs)
            trees = [_first_tree(distances(m), m, d) if len(m) > 1 else None for m in clusters]
        else:
            if sum(len(m) ** 2 for m in clusters) > space.n**2 and space.n <= SHARED:
                with one_blas_thread():
                    table = pairs.plain(slice(None), slice(None))
            trees = _grow(pairs, table, clusters, d, jobs)
        table = None if plain and space.d <= NARROW else table
        found[one] = []
        for mine in numbers:
            sizes = np.array([len(clusters[k]) for k in mine])
            some = [tree for k in mine if (tree := trees[k]) is not None]
            sparseness, separation = np.full((2, len(mine)), np.nan)
            if len(some) > 1:
                sparseness[sizes > 1] = [tree.sparseness for tree in some]
                separation[sizes > 1] = _separation(pairs, table, some, jobs)
            found[one].append(DensityTrees(sizes, sparseness, separation, space.n))
    return found


def _rows(space: Space) -> np.ndarray:
    """The rows in float64 on the host, as they were given."""
    space.refuse_sparse()
    return np.ascontiguousarray(host(space.X), dtype=np.float64)


def _order_of_rows(space: Space) -> np.ndarray:
    """An order that is the same however the objects came, so that sums are rounded alike."""
    if space.own_metric is not None:
        return np.arange(space.n)
    X = _rows(space) + 0.0  # a zero without its sign
    return X.view(f"V{X.itemsize * X.shape[1]}")[:, 0].argsort(kind="stable")


def distinct_clusters(codes: np.ndarray) -> tuple[list[np.ndarray], list[list[int]]]:
    """Every cluster once, as sorted positions, and which of them each partition has."""
    seen: dict[bytes, int] = {}
    clusters: list[np.ndarray] = []
    numbers = []
    for row in codes:
        order = np.argsort(row, kind="stable")[int((row < 0).sum()) :]
        mine = []
        for members in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
            number = seen.setdefault(members.tobytes(), len(clusters))
            if number == len(clusters):
                clusters.append(members)
            mine.append(number)
        numbers.append(mine)
    return clusters, numbers


def _grow(
    pairs: Dissimilarities,
    table: np.ndarray | None,
    clusters: list[np.ndarray],
    d: float,
    jobs: int,
) -> list[Tree | None]:
    """Small clusters share a table, large ones are worked on by blocks; None for one object."""
    trees: list[Tree | None] = [None] * len(clusters)
    for batch in _batches(clusters):
        sizes = np.array([len(clusters[k]) for k in batch])
        members = np.concatenate([clusters[k] for k in batch])
        if table is not None:
            grown = _side_by_side(table[members[:, None], members], sizes, d)
        elif sizes[0] > LARGE:
            grown = [_by_blocks(pairs.take(members), d, jobs)]
        else:
            with one_blas_thread():
                squares = pairs.take(members).plain(slice(None), slice(None))
            grown = _side_by_side(squares, sizes, d)
        for k, one in zip(batch, grown, strict=True):
            trees[k] = _tree(pairs, clusters[k], one)
    return trees


def _batches(clusters: list[np.ndarray]) -> Iterator[list[int]]:
    """Numbers of small clusters that fit together; a larger one is alone."""
    batch: list[int] = []
    room = TOGETHER
    several = [k for k, members in enumerate(clusters) if len(members) > 1]
    for k in sorted(several, key=lambda k: (len(clusters[k]), clusters[k][0])):
        if batch and len(clusters[k]) > min(room, LARGE):
            yield batch
            batch, room = [], TOGETHER
        batch.append(k)
        room -= len(clusters[k])
    if batch:
        yield batch


def _side_by_side(squares: np.ndarray, sizes: np.ndarray, d: float) -> list[Grown]:
    """Trees of clusters whose members lie side by side in a table, which is overwritten.

    SciPy's single linkage is Prim's algorithm. It returns the length of each edge alone, but the
    last bits of a length say which objects the edge joins: their places by rising core distance.
    """
    np.fill_diagonal(squares, np.inf)
    own = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) > 1:
        squares[own[:, None] != own] = np.inf
    core = core_of(log_powers(squares, d), sizes[own], d)
    level, rank, order = _by_density(
        core, lambda at: np.where(squares[at] < np.inf, squares[at], 0).sum(axis=1)
    )
    np.maximum(squares, level, out=squares)
    np.maximum(squares, level[:, None], out=squares)
    if len(sizes) > 1:
        np.minimum(squares, FAR, out=squares)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    lower = (PLACES - 1) * place
    ends = np.minimum(lower, lower[:, None])
    ends += place
    ends += place[:, None]  # the lower place times PLACES, plus the higher
    keys = mark_places(squareform(squares, checks=False), squareform(ends, checks=False))
    keys = linkage(keys, "single")[:, 2]
    keys = keys[keys < FAR]
    ends = keys.view(np.int64) % PLACES**2
    edges = order[np.column_stack([ends // PLACES, ends % PLACES])]
    reach = (keys.view(np.int64) - ends).view(np.float64)
    grown = []
    for k, start in enumerate(np.cumsum(sizes) - sizes):
        members = slice(start, start + sizes[k])
        mine = own[edges[:, 0]] == k
        grown.append(Grown(edges[mine] - start, reach[mine], core[members], rank[members]))
    return grown


def _by_density(
    core: np.ndarray, sums: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Core distances without their rounding, ranks by them, and an order; ``sums`` part ties."""
    level = _levels(core)
    order = np.argsort(level, kind="stable")
    new = _steps(level[order])
    if not new.all():
        total, tied = np.zeros_like(core), ~new
        tied[:-1] |= ~new[1:]
        total[order[tied]] = _levels(sums(order[tied]))
        order = np.lexsort((total, level))
        new = _steps(level[order]) | _steps(total[order])
    rank = np.empty_like(order)
    rank[order] = np.cumsum(new)
    return level, rank, order


def _levels(values: np.ndarray) -> np.ndarray:
    """Values, each replaced by the smallest of those that differ by rounding only."""
    order = np.argsort(values, kind="stable")
    rising = values[order]
    new = _steps(rising, TIE)
    level = np.empty_like(values)
    level[order] = rising[new][np.cumsum(new) - 1]
    return level


def _steps(values: np.ndarray, share: float = 0.0) -> np.ndarray:
    """Whether each value lies by more than a share of itself above the one before it."""
    new = np.ones(len(values), dtype=bool)
    np.greater(values[1:] - values[:-1], share * values[1:], out=new[1:])
    return new


def log_powers(squares: np.ndarray, d: float) -> np.ndarray:
    """ln Σ distance^−d over each row; inf beside a duplicate."""
    with np.errstate(divide="ignore", over="ignore"):
        powers = np.log(squares)
        powers *= -d / 2
        top = powers.max(axis=1)
        safe = np.where(np.isfinite(top), top, 0)
        powers -= safe[:, None]
        found: np.ndarray = np.log(np.exp(powers, out=powers).sum(axis=1)) + safe
    return found


def core_of(logs: np.ndarray, size: int | np.ndarray, d: float) -> np.ndarray:
    """Squared (mean over the others of distance^−d)^(−1/d), in logarithms; 0 beside a duplicate."""
    with np.errstate(over="ignore"):
        core: np.ndarray = np.exp(-2 / d * (logs - np.log(size - 1)))
    return core


def _by_blocks(pairs: Dissimilarities, d: float, jobs: int) -> Grown:
    n = len(pairs)
    blocks = cut_rows(n, ROWS)
    core, total = np.empty(n), np.zeros(n)

    def visit(i: slice) -> None:
        logs = np.full(i.stop - i.start, -np.inf)
        for j in blocks:
            table = pairs.plain(i, j)
            total[i] += table.sum(axis=1)
            if i == j:
                np.fill_diagonal(table, np.inf)
            logs = np.logaddexp(logs, log_powers(table, d))
        core[i] = core_of(logs, n, d)

    in_threads(jobs, visit, blocks)
    level, rank, order = _by_density(core, lambda at: total[at])
    tree = spanning_tree(pairs.take(order, level[order]), jobs)
    return Grown(order[np.sort(tree.edges, axis=1)], tree.squares, core, rank)


def _tree(pairs: Dissimilarities, members: np.ndarray, grown: Grown) -> Tree:
    """Inner objects have two or more edges, inner edges join two of them; a cluster that has none
    of either (two or three objects, a star) counts all."""
    edges, reach, core, rank = grown

    def reach_of(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return np.maximum(pairs.exact(members[i], members[j]), np.maximum(core[i], core[j]))

    degree = np.bincount(edges.reshape(-1), minlength=len(members))
    if len(set(rank[core > 0].tolist())) < np.count_nonzero(core):
        edges, reach, degree = _with_ties(grown, reach_of)
    inner = degree > 1
    between = inner[edges].all(axis=1)
    if between.any():
        edges, reach = edges[between], reach[between]
    squares = reach_of(*edges[reach >= (1 - 2 * TIE) * reach.max()].T)
    places = np.flatnonzero(inner) if inner.any() else np.arange(len(members))
    return Tree(members[places], core[places], float(np.sqrt(squares.max())))


def _with_ties(
    grown: Grown, reach_of: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All edges that tie with one of the tree, their reach, and the number of joins at each object.

    Edges tie where reachability is equal and both ends have equal ranks. Which of them a tree
    takes would depend on the order of the objects, so all count. Those that tie between the same
    two parts of the tree are one join, for a tree has one of them.
    """
    n, core, rank = len(grown.core), grown.core, grown.rank
    copies = grown.edges[grown.reach == 0][:, 1]  # all other edges of a place have the first end
    equal = {r: np.setdiff1d(np.flatnonzero(rank == r), copies) for r in set(rank.tolist())}
    tied = np.array([core[m] > 0 and len(equal[r]) > 1 for m, r in enumerate(rank.tolist())])
    ends = np.take_along_axis(grown.edges, np.argsort(rank[grown.edges], axis=1), axis=1)
    reach = reach_of(*ends.T)
    order = np.lexsort((rank[ends[:, 1]], rank[ends[:, 0]], _levels(reach)))
    part = np.arange(n)
    edges: list[Any] = []
    lengths: list[Any] = []
    joins: list[Any] = []
    for i, j, length in zip(*ends[order].T.tolist(), reach[order].tolist(), strict=True):
        if part[i] == part[j]:
            continue
        both = np.array([[i, j]])
        if tied[i] or tied[j]:
            own, other = equal[rank[i]], equal[rank[j]]
            both = np.concatenate(
                [
                    pair[np.abs(reach_of(*pair.T) - length) <= 2 * TIE * length]
                    for some in cut_rows(len(own), max(1, AT_ONCE // len(other)))
                    for pair in [np.array(np.meshgrid(own[some], other)).reshape(2, -1).T]
                ]
            )
            both = both[part[both[:, 0]] != part[both[:, 1]]]
        edges.append(both)
        lengths.append(np.full(len(both), length))
        joins.append(np.sort(part[both], axis=1) @ [n, 1] + n * n * len(joins))
        for x, y in both.tolist():
            part[part == part[x]] = part[y]
    both, join = np.concatenate(edges), np.unique(np.concatenate(joins), return_inverse=True)[1]
    at, join = np.divmod(np.unique(both.T * (len(join) + 1) + join), len(join) + 1)
    degree, total = np.bincount(at, minlength=n), np.bincount(at, weights=join, minlength=n)
    # Two objects with the same two joins: the second of these ends at one of them only.
    first, second = both.T
    alone = (degree[first] == 2) & (degree[second] == 2) & (total[first] == total[second])
    return both[~alone], np.concatenate(lengths)[~alone], degree


def _as_in_hdbscan(
    space: Space, metric: Metric, pairs: Dissimilarities
) -> Callable[[np.ndarray], np.ndarray]:
    """Distances between objects, rounded as in hdbscan where scikit-learn has the metric."""
    distances = as_elsewhere(metric)
    if distances is not None:
        X = _rows(space) * (1 if metric.finish else space.unit)
        return lambda at: distances(X[at])
    return lambda at: np.sqrt(pairs.take(at).plain(slice(None), slice(None)))


def _first_tree(distances: np.ndarray, members: np.ndarray, d: float) -> Tree:
    """The tree of ``hdbscan.validity``, which depends on the order of the rows.

    Prim's algorithm starts at the first row; of equally near objects the first is taken. A new
    object is then tied to the first object of the tree at the same reach, as ``np.isclose`` says
    it. Duplicates do not count in core distances. Of two objects the first alone is inner.
    """
    n = len(members)
    with np.errstate(divide="ignore", over="ignore"):
        core = np.where(distances != 0, (1 / distances) ** d, 0).sum(axis=1) / (n - 1)
        core = core ** (-1 / d) if core.any() else core
    reach = np.maximum(distances, np.maximum(core[:, None], core))
    edges, lengths = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    inside, best, new = np.zeros(n, dtype=bool), np.full(n, np.inf), 0
    for step in range(n - 1):
        inside[new] = True
        np.minimum(best, reach[new], out=best)
        best[inside] = np.inf
        new = int(best.argmin())
        near = np.flatnonzero(inside & np.isclose(reach[new], best[new]))
        edges[step], lengths[step] = (int(near[0]), new), best[new]
    inner = np.bincount(edges.reshape(-1), minlength=n) > 1
    kept = inner[edges].all(axis=1)
    places = np.flatnonzero(inner) if inner.any() else np.zeros(1, dtype=np.intp)
    longest = lengths[kept].max() if kept.any() else lengths.max()
    return Tree(members[places], core[places] ** 2, float(longest))


def _separation(
    pairs: Dissimilarities, table: np.ndarray | None, trees: list[Tree], jobs: int
) -> np.ndarray:
    """(K,) smallest max(core, core, distance) from inner objects of a cluster to another's."""
    inner = np.concatenate([tree.inner for tree in trees])
    core = np.concatenate([tree.core for tree in trees])
    codes = np.repeat(np.arange(len(trees)), [len(tree.inner) for tree in trees])
    some = pairs.take(inner)

    def squares(i: slice, j: slice) -> np.ndarray:
        return some.plain(i, j) if table is None else table[inner[i][:, None], inner[j]]

    best, pair = np.full(len(trees), np.inf), np.zeros((len(trees), 2), dtype=np.intp)
    lock = threading.Lock()
    blocks = cut_rows(len(inner), BLOCK if len(inner) <= SHARED else ROWS)

    def visit(i: int, j: int) -> None:
        a, b = blocks[i], blocks[j]
        if codes[a.start] == codes[b.stop - 1]:
            return
        reach = np.maximum(squares(a, b), core[a][:, None])
        first, second = (np.flatnonzero(np.diff(codes[rows], prepend=-1)) for rows in (a, b))
        low = np.maximum(np.minimum.reduceat(reach, first, axis=0), core[b])
        low = np.minimum.reduceat(low, second, axis=1)  # (clusters of a, clusters of b)
        mine, theirs = codes[a][first], codes[b][second]
        low[mine[:, None] == theirs] = np.inf
        with lock:
            for one, other, values in ((mine, theirs, low), (theirs, mine, low.T)):
                at = values.argmin(axis=1)
                value = values[np.arange(len(one)), at]
                better = value < best[one]
                best[one[better]] = value[better]
                pair[one[better]] = np.column_stack([one, other[at]])[better]

    in_rounds(jobs, visit, pair_rounds(len(blocks)))
    nearest = [(min(one), max(one)) for one in pair.tolist()]
    reach = {(a, b): _reach(pairs, trees[a], trees[b]) for a, b in set(nearest)}
    return np.array([reach[one] for one in nearest])


def _reach(pairs: Dissimilarities, a: Tree, b: Tree) -> float:
    """Smallest max(core, core, distance) between the inner objects of two clusters."""
    best = np.inf
    for i in cut_rows(len(a.core), ROWS):
        for j in cut_rows(len(b.core), ROWS):
            table = np.maximum(pairs.plain(a.inner[i], b.inner[j]), a.core[i][:, None])
            np.maximum(table, b.core[j], out=table)
            r, c = divmod(int(table.argmin()), table.shape[1])
            square = pairs.exact(a.inner[i][[r]], b.inner[j][[c]])
            best = min(best, max(float(square[0]), float(a.core[i][r]), float(b.core[j][c])))
    return float(np.sqrt(best))
