"""All pairs of rows on Dask, by pairs of blocks: n²/2 distances, shared out over the workers.

A task takes two blocks of rows and runs the in-memory kernels on them; distances never leave it.
Sums over clusters come back to the task that owns the block, and only means per cluster to the
caller.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from wellsep._threads import cut_rows, merge, one_blas_thread
from wellsep.compute.engine.dask.chunks import ARITY, Chunks, Constants, add_tree, row_keys, settled
from wellsep.compute.engine.dask.client import active_client
from wellsep.compute.requests import Task

BLOCK_BYTES = 32 << 20
LEAST_ROWS = 2000  # rows of a block below which more blocks would not pay
FEWEST = 8  # blocks, where there are rows enough: 36 pairs keep a few workers busy
WORTH_SAYING = 60.0  # seconds of work from which the cost is said beforehand


class Blocks(NamedTuple):
    """Rows, codes and weights, cut anew for work on pairs."""

    rows: Chunks
    beside: list[Any]  # codes (M, n), weights (n,)
    frame: Any  # makes a task in memory of some rows

    def fold_pairs(self, f: Callable[..., Any], given: tuple) -> Any:
        """``f(left, right, places, *given)`` of every pair of blocks i ≤ j, added up."""
        graph, pairs, _ = self._pairs(f, given)
        return self._compute(graph, list(pairs.values()))

    def fold_strips(
        self, pair: Callable[..., Any], finish: Callable[..., Any], metric: Any, given: tuple,
        each: bool,
    ) -> Any:  # fmt: skip
        """``finish(block, sums, metric, *given)`` of every block with its sums, added up.

        With ``each`` what it says of each row, as a lazy array cut as the blocks are.
        """
        graph, pairs, name = self._pairs(pair, (metric,))
        shared = (f"{name}-given",)
        graph[shared] = Constants(metric, *given)
        finished = []
        for i in range(len(self.rows.sizes)):
            # Of a pair of blocks the first has its sums first.
            visits = [key for (a, b), key in pairs.items() if i in (a, b)]
            sides = [int(a != i) for a, b in pairs if i in (a, b)]
            parts = []
            for start in range(0, len(visits), ARITY):
                several = slice(start, start + ARITY)
                parts.append((f"{name}-strip{i}", start))
                graph[parts[-1]] = (_add_sides, visits[several], sides[several])
            finished.append((f"{name}-finished", i))
            total = add_tree(graph, parts)
            graph[finished[-1]] = (_finish, finish, (f"{name}-block", i), total, shared)
        if not each:
            return self._compute(graph, finished)
        layer = self.rows.layer(finished[0][0], graph, self.beside)
        return da.Array(layer, finished[0][0], chunks=(self.rows.sizes,), dtype=np.float64)

    def _pairs(
        self, f: Callable[..., Any], given: tuple
    ) -> tuple[dict, dict[tuple[int, int], tuple], str]:
        """A graph with a task for each pair of blocks; each kind of task has a name of its own."""
        say_cost(self.rows)
        name = f"wellsep-{f.__name__.strip('_')}-{uuid.uuid4().hex}"
        shared, frame = (f"{name}-shared",), (f"{name}-frame",)
        graph: dict = {shared: Constants(*given), frame: Constants(self.frame)}
        rows = self.rows
        nothing: list[Any] = [None] * len(rows.sizes)
        keys = [nothing if a is None else row_keys(a) for a in (rows.array, *self.beside)]
        for i in range(len(rows.sizes)):
            graph[f"{name}-block", i] = (_block, *(k[i] for k in keys), frame)
        pairs = {}
        for i, j in combinations_with_replacement(range(len(rows.sizes)), 2):
            places = [int(rows.starts[i]), int(rows.starts[j])]
            pairs[i, j] = (name, i, j)
            two = (f"{name}-block", i), (f"{name}-block", j)
            graph[pairs[i, j]] = (_visit, f, *two, places, shared)
        return graph, pairs, name

    def _compute(self, graph: dict, parts: list[tuple]) -> Any:
        """The sum of some tasks of a graph."""
        key = add_tree(graph, parts)
        name = str(key[0])
        layer = self.rows.layer(name, graph, self.beside)
        return dask.compute(Delayed(key, layer, layer=name))[0]


def cut_blocks(task: Any, *, lazily: bool = False) -> Blocks:
    """Blocks of at most 32 MB, few enough that their pairs can be scheduled."""
    chunks, codes, weights = task.space, task.partitions.codes, task.weights
    rows = min(BLOCK_BYTES // (chunks.d * 8), max(LEAST_ROWS, -(-chunks.n // FEWEST)))
    sizes = tuple(b.stop - b.start for b in cut_rows(chunks.n, max(1, rows)))
    arrays = [chunks.array.rechunk({0: sizes}), codes.rechunk({1: sizes})]
    if weights is not None:
        arrays.append(weights.rechunk((sizes,)))
    if not lazily:
        arrays = [settled(array) for array in arrays]
    X, codes, *mass = arrays
    return Blocks(Chunks(X, chunks.source), [codes, mass[0] if mass else None], task.frame)


def say_cost(rows: Chunks) -> None:
    """Warn before work that takes more than a minute: how many distances, how long, what else."""
    n, d = rows.shape
    distances = n * (n - 1) / 2
    client = active_client()  # without one the threads of this machine compute
    at_once = (os.cpu_count() or 1) if client is None else max(1, sum(client.nthreads().values()))
    seconds = distances * (2.5e-9 + 4e-11 * d) / at_once
    if seconds > WORTH_SAYING:
        warnings.warn(
            f"Every one of the {distances:.2g} distances between {n:,} objects will be computed: "
            f"of the order of {_duration(seconds)} on {at_once} thread(s). Centroid indices need "
            "one or two passes over the rows, and silhouette_estimate samples the silhouette.",
            UserWarning,
            stacklevel=6,
        )


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _block(X: np.ndarray, codes: np.ndarray, weights: Any, frame: Constants) -> Task:
    return frame.values[0].task(X, codes, weights)


def _visit(
    f: Callable[..., Any], left: Task, right: Task, places: list[int], given: Constants
) -> Any:
    with one_blas_thread():
        return f(left, right, places, *given.values)


def _add_sides(pairs: list[tuple[Any, Any]], sides: list[int]) -> np.ndarray:
    return merge([pair[side] for pair, side in zip(pairs, sides, strict=True)])


def _finish(finish: Callable[..., Any], task: Task, sums: np.ndarray, given: Constants) -> Any:
    return finish(task.block(), sums, *given.values)
