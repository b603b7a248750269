"""All pairs of rows on Dask, by pairs of blocks: n²/2 distances, shared out over the workers.

A task takes two blocks of rows and runs the in-memory kernels on them; distances never leave it.
Sums over clusters come back to the task that owns the block, and only means per cluster to the
caller.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from wellsep.compute.data.opening import Space
from wellsep.compute.engine.dask.chunks import ARITY, Chunks, Constants, add_tree, row_keys, settled
from wellsep.compute.engine.dask.labels import ChunkedTask
from wellsep.compute.engine.dask.passes import FirstPass
from wellsep.compute.engine.kernel_choice import choose
from wellsep.compute.engine.threads import cut_rows, merge, one_blas_thread
from wellsep.compute.metrics.table import Metric, Rows, find, need_coordinates
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.distance_sums import Sides, sum_pairs
from wellsep.compute.statistics.extreme_pairs import NAMES, provide_extremes
from wellsep.compute.statistics.silhouette_widths import WidthTotals, pair_block, widths_from_sums
from wellsep.partitions import Partitions

SUMS = ("widths", "within_distances", "between_distances")
PAIRWISE = (*SUMS, *NAMES, "selected_sums")
BLOCK_BYTES = 32 << 20
LEAST_ROWS = 2000  # rows of a block below which more blocks would not pay
FEWEST = 8  # blocks, where there are rows enough: 36 pairs keep a few workers busy
WORTH_SAYING = 60.0  # seconds of work from which the cost is said beforehand


class Blocks(NamedTuple):
    """Rows, codes and weights, cut anew for work on pairs."""

    rows: Chunks
    beside: list[Any]  # codes (M, n), weights (n,)
    known: FirstPass


def gather_pairs(
    task: ChunkedTask, wants: list[Want], clusters: list[Clusters]
) -> dict[Want, list[Any]]:
    """Pairwise statistics, one pass over all pairs for each metric and kind."""
    from wellsep.compute.engine.dask.selection import select_chunks

    blocks = cut_blocks(task, clusters)
    say_cost(blocks.rows, wants)
    found: dict[Want, list[Any]] = {}
    for metric in dict.fromkeys(find(w.get("metric", "euclidean")) for w in wants):
        mine = [w for w in wants if find(w.get("metric", "euclidean")) == metric]
        sums = [w for w in mine if w.name in SUMS]
        if sums:
            found.update(_sums(blocks, metric, sums))
        extremes = [w for w in mine if w.name in NAMES]
        if extremes:
            got = fold_pairs(blocks, _extremes, extremes)
            found.update({w: list(got.values[w]) for w in extremes})
        for w in mine:
            if w.name == "selected_sums":
                found[w] = select_chunks(task, blocks, metric)
    return found


def refuse_metric(wanted: Want) -> None:
    need_coordinates(wanted.get("metric", "euclidean"), "where X is a dask collection", TypeError)


def cut_blocks(task: ChunkedTask, clusters: list[Clusters], *, lazily: bool = False) -> Blocks:
    """Blocks of at most 32 MB, few enough that their pairs can be scheduled."""
    chunks = task.space
    codes: Any = task.partitions.codes
    sizes = block_sizes(chunks)
    arrays = [chunks.array.rechunk({0: sizes}), codes.rechunk({1: sizes})]
    if task.weights is not None:
        arrays.append(task.weights.rechunk((sizes,)))
    if not lazily:
        arrays = [settled(array) for array in arrays]
    rows, codes, *mass = arrays
    known = FirstPass(task.partitions.classes, clusters, [], {}, chunks.reference, chunks.unit)
    return Blocks(Chunks(rows, chunks.source), [codes, mass[0] if mass else None], known)


def block_sizes(chunks: Chunks, least: int = 1) -> tuple[int, ...]:
    rows = max(1, BLOCK_BYTES // (chunks.d * 8))
    rows = max(least, min(rows, max(LEAST_ROWS, -(-chunks.n // FEWEST))))
    return tuple(b.stop - b.start for b in cut_rows(chunks.n, rows))


def threads() -> int:
    """Threads that tasks are computed by: those of the active client, or of this machine."""
    try:
        from distributed import default_client

        return max(1, sum(default_client().nthreads().values()))
    except (ImportError, ValueError):
        return os.cpu_count() or 1


def say_cost(rows: Chunks, wants: list[Want]) -> None:
    """Warn before work that takes more than a minute: how many distances, how long, what else."""
    n, d = rows.shape
    passes = max(1, len({(w.get("metric", "euclidean"), w.name in SUMS) for w in wants}))
    distances = n * (n - 1) / 2
    at_once = threads()
    seconds = passes * distances * (2.5e-9 + 4e-11 * d) / at_once
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


def fold_pairs(blocks: Blocks, kernel: Callable[..., Any], *shared: Any) -> Any:
    """``kernel(left, right, starts, *shared)`` of every pair of blocks i ≤ j, added up."""
    graph, pairs, _ = _pairs(blocks, kernel, shared)
    return _compute(blocks, graph, add_tree(graph, list(pairs.values())))


def _pairs(
    blocks: Blocks, kernel: Callable[..., Any], shared: tuple[Any, ...]
) -> tuple[dict, dict[tuple[int, int], tuple], Names]:
    names = Names(f"wellsep-{kernel.__name__.strip('_')}-{uuid.uuid4().hex}")
    graph: dict = {names.shared: Constants(*shared), names.known: Constants(blocks.known)}
    rows = blocks.rows
    nothing: list[Any] = [None] * len(rows.sizes)
    keys = [nothing if a is None else row_keys(a) for a in (rows.array, *blocks.beside)]
    pairs = {}
    for i in range(len(rows.sizes)):
        graph[names.block(i)] = (_block, *(k[i] for k in keys), names.known)
    for i in range(len(rows.sizes)):
        for j in range(i, len(rows.sizes)):
            starts = [int(rows.starts[i]), int(rows.starts[j])]
            two = names.block(i), names.block(j)
            pairs[i, j] = (names.base, i, j)
            graph[pairs[i, j]] = (_visit, kernel, *two, starts, names.shared)
    return graph, pairs, names


class Names(NamedTuple):
    """Keys of one pass over pairs; each kind of task has a name of its own."""

    base: str

    @property
    def shared(self) -> tuple:
        return (f"{self.base}-shared",)

    @property
    def known(self) -> tuple:
        return (f"{self.base}-known",)

    def block(self, i: int) -> tuple:
        return (f"{self.base}-block", i)


def _compute(blocks: Blocks, graph: dict, key: Any) -> Any:
    name = str(key[0])
    return dask.compute(Delayed(key, _layer(blocks, name, graph), layer=name))[0]


def _layer(blocks: Blocks, name: str, graph: dict) -> HighLevelGraph:
    arrays = [blocks.rows.array, *(a for a in blocks.beside if a is not None)]
    return HighLevelGraph.from_collections(name, graph, dependencies=arrays)


def _block(X: np.ndarray, codes: np.ndarray, weights: Any, known: Constants) -> Task:
    return known.values[0].task(X, codes, weights)


def _visit(
    kernel: Callable[..., Any], left: Task, right: Task, starts: list[int], shared: Constants
) -> Any:
    with one_blas_thread():
        return kernel(left, right, starts, *shared.values)


def _sums(blocks: Blocks, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    names, graph, owners = _strips(blocks, metric)
    finished = []
    for i, sums in enumerate(owners):
        key = (f"{names.base}-reduced", i)
        graph[key] = (_reduce, names.block(i), sums, names.known, Constants(wants))
        finished.append(key)
    return _compute(blocks, graph, add_tree(graph, finished))


def lazy_widths(task: ChunkedTask, wanted: Want, known: FirstPass) -> da.Array:
    """Silhouette widths of all objects as a dask array cut like the rows."""
    chunks = task.space
    blocks = cut_blocks(task, known.clusters, lazily=True)
    say_cost(blocks.rows, [wanted])
    names, graph, owners = _strips(blocks, find(wanted.get("metric", "euclidean")))
    target = f"{names.base}-widths"
    for i, sums in enumerate(owners):
        graph[target, i] = (_widths, names.block(i), sums, names.known, Constants(wanted))
    layer = _layer(blocks, target, graph)
    widths = da.Array(layer, target, chunks=(blocks.rows.sizes,), dtype=np.float64)
    return widths.rechunk((chunks.sizes,))


def _strips(blocks: Blocks, metric: Metric) -> tuple[Names, dict, list[tuple]]:
    """A graph in which task i holds the (ΣK, b) distance sums of block i."""
    graph, pairs, names = _pairs(blocks, _pair_sums, (metric,))
    owners = []
    for i in range(len(blocks.rows.sizes)):
        told = [(key, int(j == i and a != i)) for (a, j), key in pairs.items() if i in (a, j)]
        parts = []
        for start in range(0, len(told), ARITY):
            some = told[start : start + ARITY]
            key = (f"{names.base}-strip{i}", start)
            graph[key] = (_add_sides, [k for k, _ in some], [side for _, side in some])
            parts.append(key)
        owners.append(add_tree(graph, parts))
    return names, graph, owners


def _add_sides(pairs: list[tuple[Any, Any]], sides: list[int]) -> np.ndarray:
    return merge([pair[side] for pair, side in zip(pairs, sides, strict=True)])


def _pair_sums(
    left: Task, right: Task, starts: list[int], metric: Metric
) -> tuple[np.ndarray, np.ndarray | None]:
    """(ΣK, b) distance sums of the left rows over the right ones, and the other way round."""
    own = starts[0] == starts[1]
    a = Sides(left, metric)
    b = a if own else Sides(right, metric)
    block, both = choose(pair_block, a.view, metric), metric.symmetric
    width = int(left.partitions.offsets[-1])
    sums_a = np.zeros((width, left.space.n))
    sums_b = sums_a if own else np.zeros((width, right.space.n))
    for i in range(len(a.blocks)):
        for j in range(i if own else 0, len(b.blocks)):
            one, two = _placed(a, i, starts[0]), _placed(b, j, starts[1])
            part = block(one, two, metric, np, both)
            sums_a[:, a.blocks[i]] += part.sums_i
            if own and i == j:
                continue
            back = part.sums_j if both else block(two, one, metric, np, False).sums_i
            sums_b[:, b.blocks[j]] += back
    return sums_a, None if own else sums_b


def _placed(sides: Sides, block: int, start: int) -> Rows:
    """Rows that know their place among all rows: equal places mean the same objects."""
    rows = sides.side(block)
    return replace(rows, at=slice(start + rows.at.start, start + rows.at.stop))


def _parts(task: Task, sums: np.ndarray, known: Constants) -> Iterator[tuple[Any, ...]]:
    weights = task.weights_or_ones()
    offsets = task.partitions.offsets
    for m, cluster in enumerate(known.values[0].clusters):
        yield sums[offsets[m] : offsets[m + 1]], task.partitions.codes[m], weights, cluster


def _reduce(
    task: Task, sums: np.ndarray, known: Constants, asked: Constants
) -> dict[Want, list[Any]]:
    """What one block adds to each wanted statistic."""
    found: dict[Want, list[Any]] = {w: [] for w in asked.values[0]}
    for part, codes, weights, cluster in _parts(task, sums, known):
        for w, values in found.items():
            if w.name == "widths":
                width = _widths_of(part, codes, weights, cluster, w)
                values.append(WidthTotals.of(width, codes, weights, len(cluster.mass)))
            else:
                values.append(sum_pairs(w, part, codes, weights))
    return found


def _widths(task: Task, sums: np.ndarray, known: Constants, asked: Constants) -> np.ndarray:
    part, codes, weights, cluster = next(_parts(task, sums, known))
    return _widths_of(part, codes, weights, cluster, asked.values[0])


def _widths_of(
    sums: np.ndarray, codes: np.ndarray, weights: np.ndarray, cluster: Clusters, w: Want
) -> np.ndarray:
    widths_of = choose(widths_from_sums, sums)
    got = widths_of(sums, codes, weights, cluster.mass, cluster.counts, w.get("singleton", 0), np)
    return np.where(codes >= 0, got, np.nan)


class Extremes(NamedTuple):
    """The nearest and farthest pairs met so far."""

    values: dict[Want, np.ndarray]  # (M,)

    @classmethod
    def merged(cls, parts: list[Extremes]) -> Extremes:
        found = {}
        for w in parts[0].values:
            best = np.max if w.name == "farthest_within" else np.min
            found[w] = best([p.values[w] for p in parts], axis=0)
        return cls(found)


def _extremes(left: Task, right: Task, starts: list[int], wants: list[Want]) -> Extremes:
    """Of both blocks together: pairs within a block are met more than once, which is harmless."""
    if starts[0] == starts[1]:
        X, codes = left.space.X, left.partitions.codes
    else:
        X = np.vstack([left.space.X, right.space.X])
        codes = np.hstack([left.partitions.codes, right.partitions.codes])
    found = {w: np.full(len(codes), 0.0 if "farthest" in w.name else np.inf) for w in wants}
    useful = np.flatnonzero((codes >= 0).sum(axis=1) >= 2)
    if len(useful):
        whole = left.partitions
        names = tuple(whole.names[m] for m in useful)
        part = Partitions(
            codes[useful], tuple(whole.classes[m] for m in useful), names, np.ones(len(useful))
        )
        space = Space(X, 1, origin=left.space.origin, unit=left.space.unit)
        for w, values in provide_extremes(Task(space, part, None), wants).items():
            found[w][useful] = values
    return Extremes(found)
