"""Distances from a few sampled objects to every cluster, in one pass over the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute import kernels
from wellsep.compute.blocks import Side
from wellsep.compute.engines import Space, one_blas_thread
from wellsep.compute.pairs import SYMMETRIC, Sides, unit_directions
from wellsep.compute.statistics import Task
from wellsep.partitions import Partitions


class Sample(NamedTuple):
    """Some objects."""

    X: np.ndarray  # (s, d)
    codes: np.ndarray  # (s,)
    weights: np.ndarray  # (s,)


def class_masses(codes: np.ndarray, weights: np.ndarray | None, k: int, start: int = 0) -> Any:
    """(2, K) summed weights and numbers of objects of every cluster."""
    kept = codes[codes >= 0]
    count = np.bincount(kept, minlength=k).astype(np.float64)
    mass = count if weights is None else np.bincount(kept, weights[codes >= 0], k)
    return np.stack([mass, count])


def masses(codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(b,) what each object weighs in a draw; 0 if it is not counted."""
    return np.where(codes >= 0, 1.0 if weights is None else weights, 0.0)


def locate(mass: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Rows in which running sums of ``mass`` pass the targets."""
    course = np.cumsum(mass)
    last = int(np.flatnonzero(mass)[-1])
    return np.minimum(np.searchsorted(course, targets, side="right"), last)


def sample_sums(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    sample: np.ndarray,
    k: int,
    metric: Any,
    origin: np.ndarray,
    start: int = 0,
) -> np.ndarray:
    """(K, s) distances from the sampled rows to the objects of a block, summed by cluster."""
    part = Partitions(codes[None], (np.arange(k),), ("labels",), np.ones(1))
    sides = Sides(Task(Space(X, np, "numpy", 1, origin=origin), part, weights), metric)
    rows = _side(sample, metric, origin)
    block = kernels.choose(metric, np)
    total = np.zeros((k, len(sample)))
    with one_blas_thread():
        for b in range(len(sides.blocks)):
            other = sides.side(b)
            missing = rows.X.shape[1] - other.X.shape[1]
            if missing:  # the sample has a row of zeros, this block has none, or the reverse
                rows, other = _padded(rows, -missing), _padded(other, missing)
            total += block(rows, other, metric, np, False).sums_i
    return total


def _side(sample: np.ndarray, metric: Any, origin: np.ndarray) -> Side:
    """The sampled rows; their place is none of the blocks'."""
    space = Space(sample, np, "numpy", 1, origin=origin)
    view = sample
    if metric == "cosine":
        view = unit_directions(space)
    elif metric in SYMMETRIC:
        view = space.centred
    square = np.einsum("ij,ij->i", view, view) if metric in SYMMETRIC else None
    return Side(view, square, None, slice(-len(sample), 0))


def _padded(side: Side, columns: int) -> Side:
    if columns <= 0:
        return side
    return side._replace(X=np.hstack([side.X, np.zeros((len(side.X), columns), side.X.dtype)]))
