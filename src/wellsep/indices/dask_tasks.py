"""Checked input of an index where X is on Dask."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_data, to_numpy
from wellsep.compute.engine.dask.chunks import open_chunks
from wellsep.compute.engine.dask.labels import ChunkedTask, encode_chunks, weigh_chunks
from wellsep.compute.engine.dask.pairs import PAIRWISE, refuse_metric
from wellsep.compute.engine.dask.passes import ROW_WISE
from wellsep.indices.registry import INDICES, Index

ParsedIndex = tuple[Index, dict[str, Any]]


def chunked_task(
    X: Any,
    labels: Any,
    sample_weight: Any,
    noise: str,
    device: Any,
    asked: list[ParsedIndex],
    centers: Any = None,
) -> ChunkedTask:
    """Rows, codes and weights in chunks; nothing but the distinct labels is gathered."""
    for index, params in asked:
        _refuse_unserved(index, params)
    if device is not None and str(device) != "cpu":
        raise ValueError(f"device must be None for a dask array, got {device!r}.")
    chunks = open_chunks(X).in_safe_units()
    weights = weigh_chunks(sample_weight, chunks)
    for index, _ in asked:
        if weights is not None and not index.weighted:
            raise ValueError(
                f"sample_weight must be None for {index.name!r}: its definition knows no weights."
            )
    partitions = encode_chunks(labels, weights, chunks, noise)
    given = None
    if centers is not None:
        given = (_check_centers(centers, len(partitions.classes[0]), chunks.d) / chunks.unit,)
    return ChunkedTask(chunks, partitions, weights, given)


def on_dask(index: Index, params: dict[str, Any] | None = None) -> bool:
    """Whether an index can be computed without gathering X."""
    wanted = index.wants(**(index.params if params is None else params)).values()
    names = {w.name for w in wanted}
    return names <= {*ROW_WISE, *PAIRWISE}


def _refuse_unserved(index: Index, params: dict[str, Any]) -> None:
    if not on_dask(index, params):
        usable = ", ".join(name for name in INDICES if on_dask(INDICES[name]))
        raise TypeError(
            f"X must be in memory for {index.label(params)!r}, got a dask collection; "
            f"pass X.compute() if it fits, or choose among: {usable}."
        )
    for wanted in index.wants(**params).values():
        refuse_metric(wanted)


def _check_centers(centers: Any, k: int, d: int) -> np.ndarray:
    table: np.ndarray = check_data(to_numpy(centers, "centers"), name="centers").astype(np.float64)
    if table.shape != (k, d):
        raise ValueError(
            f"centers must have one row per cluster and X's columns, ({k}, {d}), "
            f"got {table.shape}; rows follow the sorted labels."
        )
    return table
