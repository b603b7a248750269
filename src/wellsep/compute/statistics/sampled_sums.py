"""Distances from a few sampled objects to every cluster, in one pass over the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.data.pairs import Pairs
from wellsep.compute.engine.kernel_choice import choose
from wellsep.compute.engine.pair_blocks import pair_block
from wellsep.compute.engine.threads import one_blas_thread
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.requests import Task
from wellsep.compute.statistics.distance_sums import Sides
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
    metric: Metric,
    origin: np.ndarray,
    start: int = 0,
) -> np.ndarray:
    """(K, s) distances from the sampled rows to the objects of a block, summed by cluster."""
    part = Partitions(codes[None], (np.arange(k),), ("labels",), np.ones(1))
    sides = Sides(Task(Space(X, 1, origin=origin), part, weights), metric)
    sampled = Pairs(Space(sample, 1, origin=origin), metric).rows(slice(None))
    rows = replace(sampled, at=slice(-len(sample), 0))  # a place that no block has
    block = choose(pair_block, rows.X, metric)
    total = np.zeros((k, len(sample)))
    with one_blas_thread():
        for b in range(len(sides.blocks)):
            total += block(rows, sides.side(b), metric, np, False).sums_i
    return total


def clear_itself(sums: np.ndarray, sample: Sample, metric: Any) -> np.ndarray:
    """Take away what the sums count from a sampled object to itself.

    A sample does not know its place among the rows: its zero rows are at a distance from all.
    """
    entry = find(metric)
    zero = Space(sample.X, 1).prepared(entry).zero
    if zero is not None:
        at = np.flatnonzero(zero)
        sums[sample.codes[at], at] -= sample.weights[at] * entry.finish(2.0, np)  # type: ignore[misc]
    return sums
