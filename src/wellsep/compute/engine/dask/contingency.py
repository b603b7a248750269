"""Contingency tables of labels in chunks: counted where they lie and added up, never gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from wellsep._checks.arrays import is_dask
from wellsep.compute.engine.dask.chunks import Chunks, with_sizes
from wellsep.compute.engine.dask.labels import ChunkedPartitions, encode_chunks

CELLS = 1 << 21  # of the tables that are counted in one go


class Cells(NamedTuple):
    """Cells of some tables that stand one after the other, and the objects in each."""

    keys: np.ndarray  # sorted
    counts: np.ndarray

    @classmethod
    def merged(cls, parts: list[Cells]) -> Cells:
        """The tables of all objects from those of some."""
        keys, place = np.unique(np.concatenate([p.keys for p in parts]), return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, place.reshape(-1), np.concatenate([p.counts for p in parts]))
        return cls(keys, counts)


def count_chunks(
    labels: Any, noise: str, table_cells: Callable[..., Any]
) -> tuple[ChunkedPartitions, tuple[Any, ...]]:
    """Labels on Dask, encoded, and the fields of `PairCounts` of all their pairs."""
    column = Chunks(_one_vector(labels), None)
    partitions = encode_chunks(labels, None, column, noise)
    clusters = partitions.n_clusters.tolist()
    every = column.fold(_sizes, clusters, beside=[partitions.codes])
    sizes = tuple(np.split(every, np.cumsum(clusters)[:-1]))
    squares = np.diag([int(np.dot(s, s)) for s in sizes]).astype(np.int64)
    logs = np.diag([float(xlogy(s, s).sum()) for s in sizes])
    for pairs in _batches(clusters, column.n):
        cells = column.fold(_tables, table_cells, clusters, pairs, beside=[partitions.codes])
        edges = [0, *accumulate(clusters[i] * clusters[j] for i, j in pairs)]
        first = np.searchsorted(cells.keys, edges[:-1])
        weights = cells.counts * cells.counts, xlogy(cells.counts, cells.counts)
        i, j = np.array(pairs).T
        for matrix, values in zip((squares, logs), weights, strict=True):
            # No table is empty, so every sum has a first cell of its own.
            matrix[i, j] = matrix[j, i] = np.add.reduceat(values, first)
    return partitions, (column.n, squares, logs, sizes)


def _one_vector(labels: Any) -> Any:
    """One of the label vectors that is on Dask: its chunks are those of the objects."""
    if isinstance(labels, Mapping | list | tuple):
        values = labels.values() if isinstance(labels, Mapping) else labels
        vector = next(v for v in values if is_dask(v))
    else:
        vector = labels[labels.columns[0]] if hasattr(labels, "columns") else labels[0]
    if hasattr(vector, "to_dask_array"):
        vector = vector.to_dask_array(lengths=True)
    return with_sizes(vector)


def _batches(clusters: list[int], n: int) -> list[list[tuple[int, int]]]:
    """All pairs i > j, cut so that the tables of each batch stay small."""
    batches: list[list[tuple[int, int]]] = []
    held = CELLS
    for i in range(1, len(clusters)):
        for j in range(i):
            cells = min(clusters[i] * clusters[j], n)
            if held + cells > CELLS:
                batches.append([])
                held = 0
            batches[-1].append((i, j))
            held += cells
    return batches


def _sizes(_: np.ndarray, codes: np.ndarray, clusters: list[int], start: int) -> np.ndarray:
    counted = [np.bincount(c, minlength=k) for c, k in zip(codes, clusters, strict=True)]
    return np.concatenate(counted)


def _tables(
    _: np.ndarray,
    codes: np.ndarray,
    table_cells: Callable[..., Any],
    clusters: list[int],
    pairs: list[tuple[int, int]],
    start: int,
) -> Cells:
    keys, counts, before = [], [], 0
    for i, j in pairs:
        cells, filled = table_cells(codes[i], codes[j], clusters[i], clusters[j])
        keys.append(cells + before)
        counts.append(filled)
        before += clusters[i] * clusters[j]
    return Cells(np.concatenate(keys), np.concatenate(counts).astype(np.int64))
