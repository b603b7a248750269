"""Density trees of clusters: core distances, mutual reachability, what joins and parts clusters.

Trees lie inside clusters, so partitions share them only where they share a cluster. What all
clusters share are distances: small data have one table of them, and Prim's algorithm grows the
trees of all clusters of all partitions side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engine.threads import ROWS, cut_rows, in_threads, one_blas_thread, pair_rounds
from wellsep.compute.metrics.table import Rows, find, numpy_squares, pair_squares, rows_of
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.spanning_tree import TIE, Dissimilarities, spanning_tree

SHARED = 2048  # objects; so many have one table of distances for all partitions
TABLES = SHARED**2  # entries of the tables of small clusters that are worked on at once
ABREAST = 1 << 18  # objects of clusters of about the same size whose trees grow side by side
BLOCK = 256  # inner objects of a block whose reach is looked for
NARROW = 128  # columns; up to so many, distances are computed again sooner than picked from a table
FAINT = 1e-250  # a sum of powers below this has lost digits


class DensityTrees(NamedTuple):
    """What the minimum spanning trees of mutual reachability say about one partition."""

    sizes: np.ndarray  # (K,)
    sparseness: np.ndarray  # (K,) longest inner edge of a cluster's tree; NaN for a single object
    separation: np.ndarray  # (K,) shortest reach to inner objects of another; inf if there is none
    n_objects: int  # all, with those that are not counted


class Tree(NamedTuple):
    """What one cluster's tree says."""

    inner: np.ndarray  # positions of the inner objects
    core: np.ndarray  # their squared core distances
    sparseness: float


class Grown(NamedTuple):
    """Edges between columns of a table, and the squared core distances of its members."""

    edges: np.ndarray  # (size - 1, 2) places among the members
    core: np.ndarray  # (size,)


def provide_density_trees(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``ties``: which of equally short trees is taken, "distance" or "hdbscan".

    Options ``metric`` and ``d``: other distances than Euclidean, and the power of core distances.
    """
    other = [w for w in wants if w.get("metric", "euclidean") != "euclidean" or w.get("d")]
    if other:
        from wellsep.compute.statistics.density_pairs import trees_by_pairs

        found = {
            w: trees_by_pairs(
                task.space,
                find(w.get("metric", "euclidean")),
                task.partitions.codes,
                w.get("d") or task.space.d,
            )
            for w in other
        }
        rest = [w for w in wants if w not in found]
        return {**found, **(provide_density_trees(task, rest) if rest else {})}
    X, jobs = task.space.on_host().X, task.space.host_jobs
    rows = rows_of(X - X.mean(axis=0))
    codes = task.partitions.codes
    clusters, numbers = distinct_clusters(codes)
    table = _squares(rows, slice(None)) if len(X) <= SHARED else None
    found = {}
    for one in wants:
        if one.get("ties") == "hdbscan":
            trees = [_first_tree(rows, members) for members in clusters]
        elif table is not None:
            trees = _from_shared_table(rows, table, clusters)
        else:
            trees = _from_own_tables(rows, clusters, jobs)
        found[one] = [
            _part(rows, table, [trees[k] for k in mine], [len(clusters[k]) for k in mine], jobs)
            for mine in numbers
        ]
    return found


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


def _squares(rows: Rows, members: np.ndarray | slice) -> np.ndarray:
    """Squared distances between some objects, infinite from each to itself."""
    some = rows if isinstance(members, slice) else rows.take(members)
    barred = np.eye(len(some.X), dtype=bool)
    with one_blas_thread():
        table = Dissimilarities(some, None).table(slice(None), slice(None), barred)
    return np.maximum(table, 0, out=table)


def _from_shared_table(rows: Rows, table: np.ndarray, clusters: list[np.ndarray]) -> list[Tree]:
    """Powers of distances are taken once for all clusters."""
    d = rows.X.shape[1]
    top, powers = _scaled_powers(table, d)
    cores = []
    for members in clusters:
        total = powers[members[:, None], members].sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(total) + top[members]
        faint = np.flatnonzero(total < FAINT)
        if len(faint):
            logs[faint] = log_powers(table[members[faint][:, None], members], d)
        cores.append(core_of(logs, len(members), d))
    grown = grow_trees(table.ravel(), [len(table)] * len(clusters), clusters, cores)
    return [_tree(rows, m, g) for m, g in zip(clusters, grown, strict=True)]


def _scaled_powers(table: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the largest ln distance^−d of each object, and all its powers over that one."""
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    logs *= -d / 2  # inf for a duplicate, -inf from an object to itself
    top = np.where(np.isposinf(logs), -np.inf, logs).max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    logs -= top[:, None]
    with np.errstate(over="ignore"):
        return top, np.exp(logs, out=logs)


def log_powers(squares: np.ndarray, d: float) -> np.ndarray:
    """ln Σ distance^−d over each row; inf beside a duplicate."""
    with np.errstate(divide="ignore", over="ignore"):
        powers = -d / 2 * np.log(squares)
        top = powers.max(axis=1)
        safe = np.where(np.isfinite(top), top, 0)
        found: np.ndarray = np.log(np.exp(powers - safe[:, None]).sum(axis=1)) + safe
    return found


def core_of(logs: np.ndarray, size: int, d: float) -> np.ndarray:
    """Squared (mean over the others of distance^−d)^(−1/d), in logarithms; 0 beside a duplicate."""
    return np.exp(-2 / d * (logs - np.log(max(size - 1, 1))))


def _from_own_tables(rows: Rows, clusters: list[np.ndarray], jobs: int) -> list[Tree]:
    """Small clusters in batches, each with a table of its own; large ones by blocks."""
    trees: list[Any] = [None] * len(clusters)
    for batch in _batches([len(members) for members in clusters]):
        if len(clusters[batch[0]]) > SHARED:
            trees[batch[0]] = _by_blocks(rows, clusters[batch[0]], jobs)
            continue
        tables = [_squares(rows, clusters[k]) for k in batch]
        d = rows.X.shape[1]
        cores = [core_of(log_powers(table, d), len(table), d) for table in tables]
        flat = np.concatenate([table.ravel() for table in tables])
        places = [np.arange(len(table)) for table in tables]
        for k, grown in zip(
            batch, grow_trees(flat, [len(t) for t in tables], places, cores), strict=True
        ):
            trees[k] = _tree(rows, clusters[k], grown)
    return trees


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Clusters whose tables fit together; a large cluster is alone."""
    batch: list[int] = []
    room = 0
    for k in np.argsort(sizes, kind="stable").tolist():
        if batch and (room + sizes[k] ** 2 > TABLES or sizes[k] > SHARED):
            yield batch
            batch, room = [], 0
        batch.append(k)
        room += sizes[k] ** 2
    if batch:
        yield batch


def _by_blocks(rows: Rows, members: np.ndarray, jobs: int) -> Tree:
    X = rows.X[members]
    some = rows_of(X - X.mean(axis=0))
    core = core_squares(some, jobs)
    tree = spanning_tree(some, jobs, core=core)
    return _tree(rows, members, Grown(tree.edges, core))


def grow_trees(
    flat: np.ndarray, strides: Sequence[int], places: Sequence[np.ndarray], cores: list[np.ndarray]
) -> list[Grown]:
    """Prim's trees of mutual reachability of many clusters, side by side.

    Cluster c has the squared distance of its members a and b at ``start + a * stride + b`` of
    ``flat``. Where every stride is that of the same table, all clusters start at 0.
    """
    grown: list[Any] = [None] * len(places)
    shared = len(flat) == strides[0] ** 2 if strides else True
    starts = np.zeros(len(places), dtype=np.intp)
    if not shared:
        starts[1:] = np.cumsum(np.square(strides))[:-1]
    sizes = np.array([len(p) for p in places])
    width = np.frexp(np.maximum(sizes - 1, 1))[1]  # clusters of about the same size go together
    for one in np.unique(width):
        alike = np.flatnonzero(width == one)
        alike = alike[np.argsort(-sizes[alike], kind="stable")]
        most = max(1, ABREAST // int(sizes[alike[0]]))
        for first in range(0, len(alike), most):
            which = alike[first : first + most]
            mine = which.tolist()
            some = [places[c] for c in mine], [cores[c] for c in mine]
            edges = _prim(flat, starts[which], np.asarray(strides)[which], *some)
            for c, joins in zip(mine, edges, strict=True):
                grown[c] = Grown(np.searchsorted(places[c], joins), cores[c])
    return grown


def _prim(
    flat: np.ndarray,
    starts: np.ndarray,
    strides: np.ndarray,
    places: list[np.ndarray],
    cores: list[np.ndarray],
) -> list[np.ndarray]:
    """The edges (size - 1, 2) of each tree, as places; clusters come by falling size.

    Columns are the objects that are still outside. The one that joins leaves its column to the
    last, so that the tables become narrower and clusters that are done drop out at the end.
    """
    sizes = np.array([len(p) for p in places])
    count, width = len(places), int(sizes[0])
    place = np.zeros((count, width), dtype=np.intp)
    core = np.full((count, width), np.inf)  # beyond a cluster's end nothing is within reach
    for c, (p, r) in enumerate(zip(places, cores, strict=True)):
        place[c, : len(p)], core[c, : len(p)] = p, r
    key = np.full((count, width), np.inf)
    parent = np.zeros((count, width), dtype=np.intp)
    joins = np.zeros((count, width, 2), dtype=np.intp)
    chosen = np.zeros(count, dtype=np.intp)
    for step in range(width):
        live = int(np.searchsorted(-sizes, -step, side="left"))  # clusters of more than step
        every = np.arange(live)
        at = chosen[:live]
        joined, reach = place[every, at], core[every, at]
        joins[:live, step, 0], joins[:live, step, 1] = parent[every, at], joined
        last = sizes[:live] - 1 - step
        for table in (place, core, key, parent):
            table[every, at] = table[every, last]
        core[every, last], key[every, last] = np.inf, np.inf
        live = int(np.searchsorted(-sizes, -step - 1, side="left"))
        left = width - step - 1
        if live == 0 or left == 0:
            break
        at_row = (starts[:live] + joined[:live] * strides[:live])[:, None]
        plain = flat.take(at_row + place[:live, :left])
        value = np.maximum(plain, reach[:live, None])
        np.maximum(value, core[:live, :left], out=value)
        plain *= TIE
        value += plain
        nearer = value < key[:live, :left]
        np.copyto(key[:live, :left], value, where=nearer)
        np.copyto(parent[:live, :left], joined[:live, None], where=nearer)
        chosen[:live] = key[:live, :left].argmin(axis=1)
    return [joins[c, 1:size] for c, size in enumerate(sizes)]


def _tree(rows: Rows, members: np.ndarray, grown: Grown) -> Tree:
    """Inner objects have two or more edges, inner edges join two of them; a cluster that has none
    of either (two or three objects, a star) counts all."""
    if len(members) < 2:
        return lone(members)
    edges, core = grown
    inner = np.bincount(edges.reshape(-1), minlength=len(members)) > 1
    between = edges[inner[edges].all(axis=1)]
    if len(between):
        edges = between
    i, j = members[edges[:, 0]], members[edges[:, 1]]
    squares = np.maximum(pair_squares(rows, i, rows, j), core[edges].max(axis=1))
    places = np.flatnonzero(inner) if inner.any() else np.arange(len(members))
    return Tree(members[places], core[places], float(np.sqrt(squares.max())))


def lone(members: np.ndarray) -> Tree:
    """A single object: no density and no edge, but a place, from which others are far or near."""
    return Tree(members, np.zeros(len(members)), np.nan)


def _first_tree(rows: Rows, members: np.ndarray) -> Tree:
    """The tree of ``hdbscan.validity``, which depends on the order of the rows.

    Prim's algorithm starts at the first row; of equally near objects the first is taken. A new
    object is then tied to the first object of the tree at the same reach, as ``np.isclose`` says
    it. Duplicates do not count in core distances. Of two objects the first alone is inner.
    """
    n = len(members)
    if n < 2:
        return lone(members)
    X = rows.X[members]
    X = X - X.mean(axis=0)
    core = _cores_without_duplicates(X)

    def reach(i: int) -> np.ndarray:
        gap = X - X[i]
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
    places = np.flatnonzero(inner) if inner.any() else np.zeros(1, dtype=np.intp)
    longest = lengths[kept].max() if kept.any() else lengths.max()
    return Tree(members[places], core[places] ** 2, float(longest))


def _cores_without_duplicates(X: np.ndarray) -> np.ndarray:
    """(n,) (Σ distance^−d over those elsewhere / (n − 1))^(−1/d); 0 if all lie in one place."""
    n, d = X.shape
    core = np.zeros(n)
    for i in range(n):
        gap = X - X[i]
        square = np.einsum("ij,ij->i", gap, gap)
        square = square[square > 0]
        if len(square):
            core[i] = np.sqrt(core_of(log_powers(square[None], d), n, d)[0])
    return core


def _part(
    rows: Rows, table: np.ndarray | None, trees: list[Tree], sizes: list[int], jobs: int
) -> DensityTrees:
    """What parts the clusters of one partition: the shortest reach of each to any other."""
    sparseness = np.array([tree.sparseness for tree in trees])
    alone = len(trees) < 2
    separation = np.full(1, np.inf) if alone else _separation(rows, table, trees, jobs)
    return DensityTrees(np.array(sizes), sparseness, separation, len(rows.X))


def _separation(rows: Rows, table: np.ndarray | None, trees: list[Tree], jobs: int) -> np.ndarray:
    """(K,) smallest max(core, core, distance) from inner objects of a cluster to another's."""
    inner = np.concatenate([tree.inner for tree in trees])
    core = np.concatenate([tree.core for tree in trees])
    codes = np.repeat(np.arange(len(trees)), [len(tree.inner) for tree in trees])
    some = rows.take(inner)

    def squares(i: slice, j: slice) -> np.ndarray:
        if table is None or rows.X.shape[1] <= NARROW:
            return numpy_squares(some.take(i), some.take(j))
        return table[inner[i][:, None], inner[j]]

    best, pair = np.full(len(trees), np.inf), np.zeros((len(trees), 2), dtype=np.intp)
    lock = threading.Lock()
    blocks = cut_rows(len(inner), BLOCK if len(inner) <= SHARED else ROWS)

    def visit(i: int, j: int) -> None:
        a, b = blocks[i], blocks[j]
        if codes[a.start] == codes[b.stop - 1]:
            return
        reach = np.maximum(squares(a, b), core[a][:, None])
        first, second = _firsts(codes[a]), _firsts(codes[b])
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

    in_threads(jobs, visit, pair_rounds(len(blocks)))
    pairs = [(min(one), max(one)) for one in pair.tolist()]
    reach = {(a, b): _reach(rows, trees[a], trees[b]) for a, b in set(pairs)}
    return np.array([reach[one] for one in pairs])


def _firsts(codes: np.ndarray) -> np.ndarray:
    """Where each cluster begins among sorted codes."""
    return np.flatnonzero(np.diff(codes, prepend=-1))


def _reach(rows: Rows, a: Tree, b: Tree) -> float:
    """Smallest max(core, core, distance) between the inner objects of two clusters."""
    best = np.inf
    for i in cut_rows(len(a.core), ROWS):
        for j in cut_rows(len(b.core), ROWS):
            table = numpy_squares(rows.take(a.inner[i]), rows.take(b.inner[j]))
            np.maximum(table, a.core[i][:, None], out=table)
            np.maximum(table, b.core[j], out=table)
            r, c = divmod(int(table.argmin()), table.shape[1])
            gap = rows.X[a.inner[i][r]] - rows.X[b.inner[j][c]]
            best = min(best, max(float(gap @ gap), float(a.core[i][r]), float(b.core[j][c])))
    return float(np.sqrt(best))


def core_squares(rows: Rows, jobs: int) -> np.ndarray:
    """Squared core distances of the members of one cluster, block by block."""
    n, d = rows.X.shape
    pairs, blocks = Dissimilarities(rows, None), cut_rows(n, ROWS)
    core = np.empty(n)

    def visit(i: slice) -> None:
        itself = np.arange(i.start, i.stop)
        total = np.full(i.stop - i.start, -np.inf)
        for j in blocks:
            table = pairs.table(i, j, itself[:, None] == np.arange(j.start, j.stop))
            total = np.logaddexp(total, log_powers(np.maximum(table, 0), d))
        core[i] = core_of(total, n, d)

    in_threads(jobs, visit, iter([[(i,) for i in blocks]]))
    return core
