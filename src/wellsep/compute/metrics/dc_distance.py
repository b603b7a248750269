"""DC-distances: minimax paths over mutual reachability, read from the order of a tree's leaves.

dc(x, y) is the smallest, over all paths from x to y, of the largest mutual reachability
max(core(x), core(y), ‖x − y‖) on the path. It is the largest edge between x and y in a minimum
spanning tree. Objects stand in the order in which the edges, from the shortest, join them: what was
joined is then a run of places, and the distance of two places is the largest merge height between
them. All statistics come from these heights; no n × n table is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import check_count
from wellsep._threads import cut_rows
from wellsep.compute.data.rows import Space, one_hot
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.squares import Rows, rows_of
from wellsep.compute.metrics.table import Metric
from wellsep.compute.requests import Block, Task, Want
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph
from wellsep.compute.statistics.silhouette_widths import widths_from_sums
from wellsep.compute.statistics.spanning_tree import Dissimilarities, root, spanning_tree

MIN_POINTS = 5  # as the paper has it
AT_ONCE = 1 << 24  # numbers of the tables that sums over clusters are worked out in


class LeafOrder(NamedTuple):
    """n objects in the order of the tree's leaves, and the n − 1 merges from the lowest."""

    gaps: np.ndarray  # (n - 1,) merge height between consecutive places
    core: np.ndarray  # (n,) core distance of each object
    left: np.ndarray  # (n - 1,) children of each merge: an object, or n + a merge; left comes first
    right: np.ndarray
    height: np.ndarray  # (n - 1,) rising
    start: np.ndarray  # (2n - 1,) first place of what each object or merge holds
    size: np.ndarray  # (2n - 1,) and how many places that are

    @property
    def place(self) -> np.ndarray:
        """(n,) of each object."""
        return self.start[: len(self.core)]


class MinimaxParts(NamedTuple):
    """How clusters and noise of one partition lie under dc-distances."""

    widths: np.ndarray  # (n,) silhouette widths; NaN for noise
    sparse: np.ndarray  # (n_noise,) core distance over the largest one of the sparsest cluster
    far: np.ndarray  # (n_noise,) smallest distance to a cluster over its largest core distance


def dc_metric(min_points: int = MIN_POINTS) -> Metric:
    """Return the metric "dc" with another number of objects in a core distance.

    Take all paths from x to y along objects. The length of a path is its longest step, measured as
    mutual reachability max(core(x), core(y), ‖x − y‖). The distance is the length of the shortest
    path.

    Parameters
    ----------
    min_points : int, default 5
        A core distance reaches so many objects, the object itself being the first. With 1 the
        distance is that of single linkage.

    Returns
    -------
    Metric
        To be passed as ``metric=``.

    Examples
    --------
    >>> import wellsep as ws
    >>> X, labels = [[0.0], [1], [3], [7], [8]], [0, 0, 0, 1, 1]
    >>> round(ws.silhouette_score(X, labels, metric=ws.dc_metric(2)), 4)
    0.65
    """
    check_count("min_points", min_points, 1)
    return Metric(
        "dc" if min_points == MIN_POINTS else f"dc(min_points={min_points})",
        prepare=partial(tree_places, min_points),
        block=between_places,
        whole=True,
        cluster_sums=partial(cluster_sums, min_points),
    )


def leaf_order(space: Space, min_points: int) -> LeafOrder:
    """The order of a space's objects, made once; on the host in float64."""
    key = ("leaf order", min_points)
    if key not in space._views:
        space._views[key] = _grown(space.on_host().X, min_points, space.host_jobs)
    return space._views[key]


def _grown(X: np.ndarray, min_points: int, jobs: int) -> LeafOrder:
    n = len(X)
    if n < min_points:
        raise ValueError(
            f"min_points must be at most the number of objects for dc-distances, got {min_points} "
            f"and {n} objects."
        )
    core = np.zeros(n)  # the object itself is the first of its min_points
    if min_points > 1:
        core = NeighbourGraph.of(X, min_points - 1, n_jobs=jobs).distances[:, -1]
    tree = spanning_tree(Dissimilarities(rows_of(X - X.mean(axis=0)), core * core), jobs)
    heights = np.sqrt(tree.squares)
    rising = np.argsort(heights, kind="stable")
    return _joined(tree.edges[rising], heights[rising], core)


def _joined(edges: np.ndarray, heights: np.ndarray, core: np.ndarray) -> LeafOrder:
    """Merges edge by edge; then places from the root down, those on the left first."""
    n = len(core)
    parent, node = list(range(n)), list(range(n))
    left, right, size, start = [0] * (n - 1), [0] * (n - 1), [1] * (2 * n - 1), [0] * (2 * n - 1)
    for step, (a, b) in enumerate(edges.tolist()):
        a, b = root(parent, a), root(parent, b)
        left[step], right[step] = node[a], node[b]
        size[n + step] = size[node[a]] + size[node[b]]
        parent[b], node[a] = a, n + step
    for step in reversed(range(n - 1)):
        start[left[step]] = start[n + step]
        start[right[step]] = start[n + step] + size[left[step]]
    (lefts, rights), places = np.array([left, right], dtype=np.intp), np.array(start, dtype=np.intp)
    gaps = np.empty(n - 1)
    gaps[places[rights] - 1] = heights
    return LeafOrder(gaps, core, lefts, rights, heights, places, np.array(size, dtype=np.intp))


def tree_places(min_points: int, space: Space, wide: bool) -> Prepared:
    """Rows that hold a place and the largest heights within 1, 2, 4 … places after and before it.

    Two such rows are enough for their distance: two runs of 2^k places, one after the lower place
    and one before the upper, cover all that lies between.
    """
    order = leaf_order(space, min_points)
    n = len(order.place)
    levels = max(1, int(np.ceil(np.log2(max(n, 2)))))
    after = np.zeros((levels, n))  # [k, p]: largest of the heights p … p + 2^k − 1
    before = np.zeros((levels, n))  # [k, p]: largest of the heights p − 2^k … p − 1
    after[0, : n - 1], before[0, 1:] = order.gaps, order.gaps
    for k in range(1, levels):
        step = 1 << (k - 1)
        after[k], before[k] = after[k - 1], before[k - 1]
        np.maximum(after[k, :-step], after[k - 1, step:], out=after[k, :-step])
        np.maximum(before[k, step:], before[k - 1, :-step], out=before[k, step:])
    rows = np.column_stack([np.arange(n), after.T, before.T])[order.place]
    dtype = space.xp.float64 if wide else space.X.dtype
    return Prepared(space.asarray(rows, dtype=dtype))


def between_places(i: Rows, j: Rows, xp: Any) -> Any:
    """(b_i, b_j) the largest height between two places; 0 from a place to itself."""
    levels = (i.X.shape[1] - 1) // 2
    apart = xp.astype(j.X[:, :1].T - i.X[:, :1], xp.float64)
    gap = xp.abs(apart)
    level = xp.astype(xp.log2(xp.where(gap > 1, gap, xp.ones_like(gap))), xp.int64)
    lower = apart > 0
    a = xp.take_along_axis(i.X[:, 1:], xp.where(lower, level, level + levels), axis=1)
    b = xp.take_along_axis(j.X[:, 1:].T, xp.where(lower, level + levels, level), axis=0)
    largest = xp.where(a > b, a, b)
    return xp.where(gap > 0, largest, xp.zeros_like(largest))


def cluster_sums(min_points: int, space: Space, members: sp.csr_array) -> np.ndarray:
    """(ΣK, n) distances from all objects to clusters, summed by weight, in O(n·ΣK·log n).

    At a merge every object of one side is equally far from all of the other. What an object adds
    up on its way to the root is summed by doubling the steps.
    """
    order = leaf_order(space, min_points)
    n = len(order.place)
    nodes = 2 * n - 1
    sums = np.empty((members.shape[0], n))
    parent = np.full(nodes, nodes - 1)
    parent[order.left] = parent[order.right] = n + np.arange(n - 1)
    by_place = members[:, np.argsort(order.place)]
    width = max(1, AT_ONCE // nodes)
    for rows in cut_rows(len(sums), width):
        running = np.zeros((n + 1, rows.stop - rows.start))
        np.cumsum(by_place[rows].toarray().T, axis=0, out=running[1:])
        mass = running[order.start + order.size] - running[order.start]  # (nodes, columns)
        table = np.zeros_like(mass)
        table[order.left] = order.height[:, None] * mass[order.right]
        table[order.right] = order.height[:, None] * mass[order.left]
        up = parent
        while (up != nodes - 1).any():
            table += table[up]
            up = up[up]
        sums[rows] = table[:n].T
    return sums


def provide_minimax(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``min_points``: how many objects a core distance reaches, the object itself one."""
    return {one: list(_parts(task, one.get("min_points"))) for one in wants}


def _parts(task: Task, min_points: int) -> Iterator[MinimaxParts | None]:
    """None where there are too few objects for a core distance."""
    space, partitions = task.space, task.partitions
    for m, codes in enumerate(partitions.codes):
        k, noise = len(partitions.classes[m]), codes < 0
        widths, none = np.where(noise, np.nan, 0.0), np.ones(int(noise.sum()))
        if k == 0 or (k == 1 and not noise.any()):
            yield MinimaxParts(widths, none, none)
            continue
        if space.n < min_points:
            yield None
            continue
        order = leaf_order(space, min_points)
        members = sp.csr_array(one_hot(codes[None], np.array([k]), None).T)
        sums = cluster_sums(min_points, space, members)
        sums, counted, uncounted = sums[:, ~noise], codes[~noise], np.flatnonzero(noise)
        sizes = partitions.sizes[m].astype(float)
        if k == 1:  # its only rivals are noise objects, each by itself
            near = _smallest(order, np.flatnonzero(~noise), uncounted)
            sums, sizes = np.vstack([sums, near]), np.append(sizes, 1.0)
        block = Block.of_codes(counted[None], np.array([len(sizes)]))
        widths[~noise] = widths_from_sums(block, sums, sizes, sizes, 0.0)[0]
        largest = np.zeros(k)
        np.maximum.at(largest, counted, order.core[~noise])
        far = np.full(len(uncounted), np.inf)
        for code in range(k):
            near = _smallest(order, uncounted, np.flatnonzero(codes == code))
            far = np.minimum(far, _ratio(near, largest[code]))
        yield MinimaxParts(widths, _ratio(order.core[uncounted], largest.max()), far)


def _ratio(values: np.ndarray, to: float) -> np.ndarray:
    """0/0 is 1: as far as the cluster is wide."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = values / to
    return np.where(np.isnan(ratio), 1.0, ratio)


def _smallest(order: LeafOrder, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(len(some),) smallest distance to the others: that to the next place before or after."""
    marked = np.zeros(len(order.place), dtype=bool)
    marked[order.place[others]] = True
    before, after = _to_last(order.gaps, marked), _to_last(order.gaps[::-1], marked[::-1])[::-1]
    return np.minimum(before, after)[order.place[some]]


def _to_last(gaps: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """(n,) the largest height back to the last marked place before; inf where there is none.

    Heights are ranked, and a run that starts at a mark is lifted above all runs before it.
    """
    runs = np.cumsum(np.concatenate([[0], marked[:-1]]))  # marks before each place
    values = np.unique(gaps)
    ranks = np.concatenate([[0], np.searchsorted(values, gaps)])
    lift = runs * max(len(values), 1)
    largest = np.maximum.accumulate(ranks + lift) - lift
    heights = values[largest] if len(values) else np.zeros(len(marked))
    return np.where(runs > 0, heights, np.inf)
