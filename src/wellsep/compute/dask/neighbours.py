"""Nearest neighbours of rows that lie on Dask, found by pairs of blocks."""

from __future__ import annotations

import operator
import uuid
from typing import NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from wellsep.compute.dask.chunks import Chunks, add_tree, row_keys, settled
from wellsep.compute.dask.labels import weigh_chunks
from wellsep.compute.dask.pairs import block_sizes, say_cost
from wellsep.compute.neighbours import NeighbourGraph, nearest_neighbours


def neighbours_of(X: Chunks, counted: np.ndarray, t: int) -> NeighbourGraph:
    """The t nearest among the counted rows of each counted row, numbered among themselves."""
    say_cost(X, [])
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
    indices, distances = (np.concatenate(column) for column in zip(*found, strict=True))
    return NeighbourGraph(indices, distances, "blocks", 1.0)


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


class Near(NamedTuple):
    """Neighbours of some rows, nearest first."""

    indices: np.ndarray  # (b, t) among all counted rows
    distances: np.ndarray  # (b, t)

    @classmethod
    def merged(cls, parts: list[Near]) -> Near:
        """The nearest of what several pairs found; who shares a block was found in each."""
        t = parts[0].indices.shape[1]
        indices = np.concatenate([p.indices for p in parts], axis=1)
        distances = np.concatenate([p.distances for p in parts], axis=1)
        by_index = np.argsort(indices, axis=1, kind="stable")
        sorted_indices = np.take_along_axis(indices, by_index, axis=1)
        again = np.zeros(indices.shape, dtype=bool)
        np.put_along_axis(
            again,
            by_index[:, 1:],
            (sorted_indices[:, 1:] == sorted_indices[:, :-1]) & (sorted_indices[:, 1:] >= 0),
            axis=1,
        )
        distances = np.where(again, np.inf, distances)
        order = np.lexsort((indices, distances), axis=1)[:, :t]
        return cls(*(np.take_along_axis(c, order, axis=1) for c in (indices, distances)))


def _kept(X: np.ndarray, mask: np.ndarray, first: int) -> tuple[np.ndarray, int]:
    return X[mask > 0], first


def _search(left: tuple[np.ndarray, int], right: tuple[np.ndarray, int], t: int) -> list[Near]:
    """Neighbours among two blocks together, for the rows of either."""
    same = left[1] == right[1]
    blocks = [left] if same else [left, right]
    numbers = np.concatenate([first + np.arange(len(X)) for X, first in blocks])
    X = np.concatenate([X for X, _ in blocks])
    missing = t - max(0, min(t, len(X) - 1))
    if missing == t:
        found = Near(np.full((len(X), t), -1), np.full((len(X), t), np.inf))
    else:
        graph = nearest_neighbours(X, t - missing, n_jobs=1)
        pad = ((0, 0), (0, missing))
        found = Near(
            np.pad(numbers[graph.indices], pad, constant_values=-1),
            np.pad(graph.distances, pad, constant_values=np.inf),
        )
    cut = len(left[0])
    return [Near(*(c[:cut] for c in found)), Near(*(c[cut:] for c in found))]
