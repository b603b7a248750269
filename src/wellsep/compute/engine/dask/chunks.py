"""Rows that lie in the chunks of a dask array: opened, checked, and gone through by kernels.

A kernel is a plain function of the rows of one portion; it knows nothing about Dask. ``fold`` adds
up what it returns, always in the same order; ``lazy`` makes a dask array of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.array.optimization import optimize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from sklearn import config_context

from wellsep._checks.arrays import check_weights, is_dask, largest_entry, safe_unit
from wellsep._threads import merge
from wellsep.compute.engine.dask.client import active_client, check_versions

ARITY = 8  # parts added at once
# Chunks smaller than this are looked at together: a task costs about a millisecond.
PORTION_BYTES = 4 << 20
PORTION_CHUNKS = 64
# What adds up is worked out piece by piece, so that a task needs little beside its chunk.
PIECE_BYTES, PIECE_ROWS = 8 << 20, 256  # at most and at least
WORKING_MB = 64


class Constants:
    """Values in a graph that Dask must not search for keys."""

    def __init__(self, *values: Any):
        self.values = values


@dataclass(frozen=True, eq=False)
class Chunks:
    """The n rows of a dask array or dataframe, in chunks of whole rows.

    Attributes
    ----------
    array : dask.array.Array of shape (n, d) or (n,)
        float32 or float64 where it is data; no chunk splits a row.
    source : what was given
    """

    array: da.Array
    source: Any
    unit: float = 1.0  # power of two that the rows were divided by
    _settled: dict = field(default_factory=dict)

    own_metric: ClassVar[None] = None  # rows of chunks are coordinates

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def n(self) -> int:
        return self.array.shape[0]

    @property
    def d(self) -> int:
        return self.array.shape[1]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.array.chunks[0]

    @cached_property
    def starts(self) -> np.ndarray:
        """First row of each chunk; 0 where sizes are unknown."""
        if np.isnan(self.sizes).any():
            return np.zeros(len(self.sizes), dtype=np.int64)
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @cached_property
    def shift(self) -> np.ndarray:
        """(d,) the mean of the first chunk: a point near the data to subtract from them."""
        mean = self._first_chunk[0]
        return np.where(np.isfinite(mean), mean, 0.0)

    @cached_property
    def _first_chunk(self) -> tuple[np.ndarray, float]:
        return Chunks(self.array.blocks[0], self.source).each(_mean_and_largest)[0]

    def in_safe_units(self) -> Chunks:
        """The rows divided by a power of two where squares of the first chunk ask for it."""
        unit = safe_unit(self._first_chunk[1], self.dtype)
        return self if unit == 1 else Chunks(self.array * (1 / unit), self.source, unit)

    def portions(self, whole: bool = False) -> list[tuple[int, int]]:
        """First and stop of the chunks that each task goes through: small ones together."""
        width = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        firsts, held = [0], 0
        for i, size in enumerate(self.sizes):
            full = held + size * width > PORTION_BYTES or i - firsts[-1] >= PORTION_CHUNKS
            if i > firsts[-1] and (full or whole):
                firsts.append(i)
                held = 0
            held += size * width
        return list(pairwise([*firsts, len(self.sizes)]))

    def fold(
        self,
        kernel: Callable[..., Any],
        *shared: Any,
        beside: Sequence[da.Array | None] = (),
        checked: bool = False,
    ) -> Any:
        """``kernel(X, *beside, *shared, start)`` of every portion, added up.

        ``beside`` are arrays chunked like the rows along their last axis, or None. With
        ``checked`` NaN and infinity are refused.
        """
        return self._compute(add_tree, kernel, shared, beside, checked=checked, added=True)

    def each(
        self,
        kernel: Callable[..., Any],
        *shared: Any,
        beside: Sequence[da.Array | None] = (),
        which: Sequence[int] | None = None,
        whole: bool = False,
    ) -> list[Any]:
        """What the kernel returns for every portion, or for every chunk (``whole``).

        ``which`` goes through some of them only.
        """
        return self._compute(_listed, kernel, shared, beside, which=which, whole=whole)

    def lazy(
        self,
        kernel: Callable[..., Any],
        *shared: Any,
        beside: Sequence[da.Array | None] = (),
        dtype: Any = np.float64,
        width: int | None = None,
        checked: bool = True,
    ) -> da.Array:
        """A dask array of what the kernel returns for every chunk: (n,), or (n, width)."""
        tail, widths = ((), ()) if width is None else ((0,), ((width,),))
        graph, parts = self._calls(kernel, shared, beside, whole=True, checked=checked, tail=tail)
        name, chunks = parts[0][0], (self.sizes, *widths)
        return da.Array(self.layer(name, graph, beside), name, chunks=chunks, dtype=dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows by number, in the order asked for; only their chunks are read."""
        rows = np.asarray(rows, dtype=np.int64)
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        chosen = np.unique(owner)
        wanted = {int(self.starts[c]): rows[owner == c] for c in chosen}
        parts = self.each(_take_rows, wanted, which=chosen.tolist(), whole=True)
        taken = np.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        for c, values in zip(chosen, parts, strict=True):
            taken[owner == c] = values
        return taken

    def weigh(self, sample_weight: Any) -> da.Array | None:
        """Weights beside the rows; those in memory are checked now, others when they are read."""
        if sample_weight is None:
            return None
        if not is_dask(sample_weight):
            return aligned(check_weights(sample_weight, self.n), self, "sample_weight")
        vector = aligned(sample_weight, self, "sample_weight")
        if vector.dtype.kind not in "fiub":
            kind = vector.dtype
            raise TypeError(f"sample_weight must be numeric, got a dask array of type {kind}.")
        vector = vector.map_blocks(_checked_weights, dtype=np.float64)
        if not float(vector.sum().compute()) > 0:
            raise ValueError("sample_weight must have at least one positive value, got zeros only.")
        return vector

    def _compute(
        self,
        join: Callable[[dict, list[tuple]], Any],
        kernel: Callable[..., Any],
        shared: tuple[Any, ...],
        beside: Sequence[da.Array | None],
        **options: Any,
    ) -> Any:
        """What ``join`` makes of the tasks (``_calls``), of arrays settled once for all passes.

        Reading a chunk and working on it become one task: no chunk is ever sent around.
        """
        arrays = []
        for array in (self.array, *beside):
            if array is not None and array.name not in self._settled:
                self._settled[array.name] = settled(array)
            arrays.append(None if array is None else self._settled[array.name])
        rows, beside = Chunks(arrays[0], self.source), arrays[1:]
        calls, parts = rows._calls(kernel, shared, beside, **options)
        graph = fused(rows.layer(parts[0][0], calls, beside), parts)
        return dask.compute(Delayed(join(graph, parts), graph))[0]

    def _calls(
        self,
        kernel: Callable[..., Any],
        shared: tuple[Any, ...],
        beside: Sequence[da.Array | None],
        which: Sequence[int] | None = None,
        whole: bool = False,
        checked: bool = False,
        added: bool = False,
        tail: tuple[int, ...] = (),
    ) -> tuple[dict, list[tuple]]:
        """A task for each portion, keyed as the chunks of an array are; ``tail`` ends the keys."""
        name = f"wellsep-{kernel.__name__.strip('_')}-{uuid.uuid4().hex}"
        common = (f"{name}-shared",)
        graph: dict = {common: Constants(*shared)}
        rows = row_keys(self.array)
        others = [None if array is None else row_keys(array) for array in beside]
        parts = []
        portions = self.portions(whole)
        for i in range(len(portions)) if which is None else which:
            first, stop = portions[i]
            with_them = [None if keys is None else keys[first:stop] for keys in others]
            place = (int(self.starts[first]), first, checked, added)
            parts.append((name, i, *tail))
            graph[parts[-1]] = (_call, kernel, rows[first:stop], with_them, common, *place)
        return graph, parts

    def layer(self, name: str, graph: dict, beside: Sequence[da.Array | None]) -> HighLevelGraph:
        """Tasks that take the rows and what stands beside them."""
        arrays = [self.array, *(array for array in beside if array is not None)]
        return HighLevelGraph.from_collections(name, graph, dependencies=arrays)


def add_tree(graph: dict, parts: list[tuple]) -> tuple:
    """Tasks that add up the parts, a few at a time; the key of the last one.

    Under a name of their own: a scheduler spreads tasks of one name that wait for nothing large,
    and would put all of them on one worker if sums of them had the same name.
    """
    name, level = f"{parts[0][0]}-sum", 0
    while len(parts) > 1:
        keys = [(name, level, i) for i in range(0, len(parts), ARITY)]
        for i, key in enumerate(keys):
            graph[key] = (merge, parts[ARITY * i : ARITY * (i + 1)])
        parts, level = keys, level + 1
    return parts[0]


def _listed(graph: dict, parts: list[tuple]) -> str:
    """A task that lists the parts; its key."""
    name = f"{parts[0][0]}-all"
    graph[name] = (list, parts)
    return name


def _call(
    kernel: Callable[..., Any],
    rows: list[np.ndarray],
    beside: list[list[np.ndarray] | None],
    shared: Constants,
    start: int,
    chunk: int,
    checked: bool,
    added: bool,
) -> Any:
    if checked:
        for i, part in enumerate(rows):
            check_rows(part, chunk + i)
    X = rows[0] if len(rows) == 1 else np.concatenate(rows)
    with_them = [None if parts is None else np.concatenate(parts, axis=-1) for parts in beside]
    size = PIECE_BYTES // (8 * max(1, int(np.prod(X.shape[1:]))))
    step = max(PIECE_ROWS, size if added else len(X))
    results = []
    with config_context(working_memory=WORKING_MB):
        for i in range(0, max(1, len(X)), step):
            piece = slice(i, i + step)
            others = [None if part is None else part[..., piece] for part in with_them]
            results.append(kernel(X[piece], *others, *shared.values, start + i))
    return merge(results)


def _checked_weights(weights: np.ndarray) -> np.ndarray:
    if not len(weights) or not weights.any():
        return weights.astype(np.float64)
    return check_weights(weights, len(weights))  # type: ignore[return-value]


def row_keys(array: da.Array) -> list[tuple]:
    """Keys of the chunks along the one axis that has several."""
    return list(dask.core.flatten(array.__dask_keys__()))


def _take_rows(X: np.ndarray, wanted: dict[int, np.ndarray], start: int) -> np.ndarray:
    return X[wanted[start] - start]


def _mean_and_largest(X: np.ndarray, start: int) -> tuple[np.ndarray, float]:
    return X.mean(axis=0, dtype=np.float64), largest_entry(X)


def open_chunks(X: Any, *, name: str = "X", sized: bool = True) -> Chunks:
    """Wrap a dask array or dataframe; its values are looked at by the first kernel.

    With ``sized`` unknown chunk sizes are worked out, which goes through the data once.
    """
    array = _as_array(X, name)
    if array.ndim != 2:
        remedy = f"; a single feature is {name}.reshape(-1, 1)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must be two-dimensional, got {array.ndim} dimension(s){remedy}.")
    if sp.issparse(array._meta):
        raise TypeError(
            f"{name} must have dense chunks, got sparse ones; "
            f"use {name}.map_blocks(lambda b: b.toarray())."
        )
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got a dask array of type {array.dtype}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if np.isnan(array.shape[1]):
        raise ValueError(
            f"{name} must have a known number of columns, got unknown chunk sizes; "
            f"call {name}.compute_chunk_sizes() first."
        )
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least 1 column, got none.")
    if len(array.chunks[1]) > 1:
        array = array.rechunk({1: -1})
    if sized:
        client = active_client()
        if client is not None:
            check_versions(client)
        array = with_sizes(array)
        if array.shape[0] == 0:
            raise ValueError(f"{name} must have at least 1 row(s), got 0.")
        if not all(array.chunks[0]):
            filled = [array.blocks[i] for i, size in enumerate(array.chunks[0]) if size]
            array = da.concatenate(filled)
    return Chunks(array, X)


def settled(array: da.Array) -> da.Array:
    """The same array under keys of our own, put together by Dask as if it were computed.

    Under its own keys the caller's computations would show the scheduler other tasks than ours,
    of which it warns. Never for what is given back: Dask puts that together when it is computed.
    """
    name = f"wellsep-{array.name.split('-')[0]}-{uuid.uuid4().hex}"
    aliases: dict = {(name, *key[1:]): key for key in row_keys(array)}
    layer = HighLevelGraph.from_collections(name, aliases, dependencies=[array])
    graph = HighLevelGraph.from_collections(name, fused(layer, list(aliases)))
    return da.Array(graph, name, chunks=array.chunks, dtype=array.dtype, meta=array._meta)


def fused(layer: HighLevelGraph, keys: list) -> dict:
    """Each key's task joined with all that is made for it alone; futures are kept."""
    held = {k: task for k, task in dict(layer).items() if type(task).__name__ == "Future"}
    graph = dict(optimize(layer, keys))  # joins only tasks in a row
    if not all(hasattr(task, "dependencies") and hasattr(task, "fuse") for task in graph.values()):
        return {**graph, **held}  # tasks of older versions
    users: dict = {}
    for key, task in graph.items():
        for needed in task.dependencies:
            users.setdefault(needed, set()).add(key)
    for key in keys:
        members, waiting = {key}, list(graph[key].dependencies)
        while waiting:
            needed = waiting.pop()
            if needed in graph and needed not in held and users[needed] <= members:
                members.add(needed)
                waiting += graph[needed].dependencies
        tasks = [graph.pop(member) for member in members]
        graph[key] = tasks[0].fuse(*tasks, key=key)
    return {**graph, **held}


def _as_array(X: Any, name: str) -> da.Array:
    if isinstance(X, da.Array):
        return X
    if hasattr(X, "to_dask_array"):
        columns = X._meta.dtypes if getattr(X._meta, "ndim", 0) == 2 else {}  # a series has none
        for column, dtype in dict(columns).items():
            if getattr(dtype, "kind", "O") not in "fiub":
                raise TypeError(
                    f"{name} must have numeric columns, got column {column!r} of type "
                    f"{dtype}; drop or encode it first."
                )
        return X.to_dask_array()
    raise TypeError(
        f"{name} must be a dask array or dataframe here, got {type(X).__name__}; "
        "make one with dask.array.from_delayed or to_dask_array."
    )


def with_sizes(array: da.Array) -> da.Array:
    """The same array with known chunk sizes."""
    if not any(np.isnan(size) for axis in array.chunks for size in axis):
        return array
    return array.copy().compute_chunk_sizes()  # which changes what it is called on


def check_rows(X: np.ndarray, chunk: int) -> None:
    """Refuse NaN and infinity, naming chunk and place."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        raise ValueError(
            f"X must be finite, got {X[row, column]} in chunk {chunk} (row {row} of it, column "
            f"{column}); drop or impute such rows first."
        )


def aligned(values: Any, chunks: Chunks, name: str) -> da.Array:
    """A vector in memory or on Dask, cut as the rows are."""
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if isinstance(values, da.Array):
        values = with_sizes(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
    else:
        values = np.asarray(values)
    if values.ndim != 1 or values.shape[0] != chunks.n:
        raise ValueError(
            f"{name} must have one value per object ({chunks.n}), got shape {values.shape}."
        )
    if isinstance(values, da.Array):
        return values.rechunk((chunks.sizes,))
    return da.from_array(values, chunks=(chunks.sizes,))
