"""The door to fitting on Dask: importing it teaches the loops over centres about chunks."""

from __future__ import annotations

from wellsep.cluster import dask_moves, dask_neighbours, dask_starts  # noqa: F401  (they register)
from wellsep.cluster.dask_points import (
    n_distinct,
    open_fit,
    predict_chunks,
    score_chunks,
    transform_chunks,
)
from wellsep.compute.dask.labels import weigh_chunks

__all__ = [
    "n_distinct",
    "open_fit",
    "predict_chunks",
    "score_chunks",
    "transform_chunks",
    "weigh_chunks",
]
