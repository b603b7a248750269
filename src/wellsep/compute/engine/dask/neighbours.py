"""Nearest neighbours of rows that lie on Dask, found by pairs of blocks."""

from __future__ import annotations

import operator
import uuid

import dask
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from wellsep.compute.engine.dask.chunks import Chunks, add_tree, row_keys, settled
from wellsep.compute.engine.dask.labels import weigh_chunks
from wellsep.compute.engine.dask.pairs import block_sizes, say_cost
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph, nearest_neighbours


def neighbours_of(X: Chunks, counted: np.ndarray, t: int) -> NeighbourGraph:
    """The t nearest among the counted rows of each counted row, numbered among themselves."""
    say_cost(X)
    sizes = block_sizes(X, least=2 * t + 2)
    rows = Chunks(settled(X.array.rechunk({0: sizes})), X.source)
    mask = weigh_chunks(counted.astype(np.float64), rows)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    before = np.concatenate([[0], np.cumsum(counted)])[edges]  # counted rows before each block
    name = f"wellsep-neighbours-{uuid.uuid4().hex}"
    graph: dict = {}
    for i, (x, w) in enumerate(zip(*map(row_keys, (rows.array, mask)), strict=True)):
        graph[f"{name}-block", i] = (_kept, x, w, int(before[i]))
    parts = _visit_pairs(graph, name, len(sizes), t)
    graph[name] = (list, parts)
    layer = HighLevelGraph.from_collections(name, graph, dependencies=[rows.array, mask])
    found = dask.compute(Delayed(name, layer, layer=name))[0]
    indices, distances = (
        np.concatenate([getattr(part, of) for part in found]) for of in ("indices", "distances")
    )
    return NeighbourGraph(indices, distances, "blocks")


def _visit_pairs(graph: dict, name: str, n_blocks: int, t: int) -> list[tuple]:
    """A task for each pair of blocks, and for each block the best of what it was told."""
    pairs = [(i, j) for i in range(n_blocks) for j in range(i + 1, n_blocks)] or [(0, 0)]
    for i, j in pairs:
        graph[f"{name}-pair", i, j] = (_search, (f"{name}-block", i), (f"{name}-block", j), t)
    best = []
    for i in range(n_blocks):
        told = [(f"{name}-side-{i}", *pair) for pair in pairs if i in pair]
        for key in told:
            second = key[2] == i and key[1] != i
            graph[key] = (operator.getitem, (f"{name}-pair", *key[1:]), int(second))
        best.append(add_tree(graph, told))
    return best


def _kept(X: np.ndarray, mask: np.ndarray, first: int) -> tuple[np.ndarray, int]:
    return X[mask > 0], first


def _search(
    left: tuple[np.ndarray, int], right: tuple[np.ndarray, int], t: int
) -> list[NeighbourGraph]:
    """Neighbours among two blocks together, for the rows of either; -1 where there are fewer."""
    same = left[1] == right[1]
    blocks = [left] if same else [left, right]
    numbers = np.concatenate([first + np.arange(len(X)) for X, first in blocks])
    X = np.concatenate([X for X, _ in blocks])
    indices, distances = np.full((len(X), t), -1), np.full((len(X), t), np.inf)
    some = min(t, len(X) - 1)
    if some > 0:
        graph = nearest_neighbours(X, some, n_jobs=1)
        indices[:, :some], distances[:, :some] = numbers[graph.indices], graph.distances
    cut = len(left[0])
    return [
        NeighbourGraph(indices[rows], distances[rows], "blocks")
        for rows in (slice(cut), slice(cut, None))
    ]
