"""Silhouette widths of a few sampled objects against all, in one pass over the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.pairs import Pairs
from wellsep.compute.data.rows import Space
from wellsep.compute.engine.kernel_choice import choose
from wellsep.compute.engine.pair_blocks import pair_block
from wellsep.compute.engine.threads import one_blas_thread
from wellsep.compute.metrics.table import Metric
from wellsep.compute.requests import Block, Pass, Task
from wellsep.compute.statistics.cluster_moments import Masses
from wellsep.compute.statistics.silhouette_widths import widths_from_sums


class Sample(NamedTuple):
    """Some objects."""

    X: np.ndarray  # (s, d)
    codes: np.ndarray  # (s,)
    weights: np.ndarray  # (s,)


def sampled_widths(
    task: Any, targets: np.ndarray, size: Masses, metric: Metric, singleton: float
) -> np.ndarray:
    """(s,) widths of the objects in which the running sum of weights passes the targets."""
    sample = task.either(_take, _take_from_chunks)(task, targets)
    sums = task.fold([Pass(sample_sums, (sample.X, metric))])[0]
    _clear_itself(sums, sample, metric)
    block = Block.of_codes(sample.codes[None], np.array([len(sums)]), sample.weights)
    widths: np.ndarray = widths_from_sums(block, sums, size.mass, size.counts, singleton)[0]
    return widths


def _take(task: Task, targets: np.ndarray) -> Sample:
    codes = task.partitions.codes[0]
    mass = _masses(codes, task.weights)
    at = _locate(mass, targets)
    return Sample(task.space.X[at], codes[at], mass[at])


def _take_from_chunks(task: Any, targets: np.ndarray) -> Sample:
    """The same; only the chunks of the rows are read."""
    codes, chunks = task.partitions.codes[0], task.space
    column = replace(chunks, array=codes)
    totals = np.array(column.each(_total, beside=[task.weights], whole=True))
    course = np.cumsum(totals)
    owner = np.searchsorted(course, targets, side="right")
    owner = np.minimum(owner, int(np.flatnonzero(totals)[-1]))
    which, before = np.unique(owner), course - totals
    wanted = {int(chunks.starts[c]): targets[owner == c] - before[c] for c in which}
    beside = [codes, task.weights]
    parts = chunks.each(_of_chunk, wanted, beside=beside, which=which.tolist(), whole=True)
    return Sample(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _total(codes: np.ndarray, weights: np.ndarray | None, start: int) -> float:
    return float(_masses(codes, weights).sum())


def _of_chunk(
    X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, wanted: dict[int, np.ndarray],
    start: int,
) -> Sample:  # fmt: skip
    mass = _masses(codes, weights)
    at = _locate(mass, wanted[start])
    return Sample(X[at], codes[at], mass[at])


def _masses(codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(b,) what each object weighs in a draw; 0 if it is not counted."""
    return np.where(codes >= 0, 1.0 if weights is None else weights, 0.0)


def _locate(mass: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Rows in which running sums of ``mass`` pass the targets."""
    course = np.cumsum(mass)
    last = int(np.flatnonzero(mass)[-1])
    return np.minimum(np.searchsorted(course, targets, side="right"), last)


def sample_sums(block: Block, sample: np.ndarray, metric: Metric) -> np.ndarray:
    """(K, s) distances from the sampled rows to the objects of a block, summed by cluster."""
    whole = block.space
    space = replace(whole, X=whole.X[block.rows, :], origin=whole.shift, _views={})
    sampled = Pairs(replace(space, X=sample, _views={}), metric).rows(slice(None))
    sampled = replace(sampled, at=slice(-len(sample), 0))  # a place that no block has
    pairs, sums_of = Pairs(space, metric), choose(pair_block, sampled.X, metric)
    total = np.zeros((int(block.n_clusters[0]), len(sample)))
    with one_blas_thread():
        for rows in pairs.blocks:
            weights = None if block.weights is None else block.weights[rows]
            members = space.memberships(
                block.codes[:, rows], block.n_clusters, weights, space.X.dtype,
                sums_of is not pair_block,
            )  # fmt: skip
            total += sums_of(sampled, pairs.rows(rows, members), metric, np, False).sums_i
    return total


def _clear_itself(sums: np.ndarray, sample: Sample, metric: Metric) -> None:
    """Take away what the sums count from a sampled object to itself.

    A sample does not know its place among the rows: its zero rows are at a distance from all.
    """
    zero = Space(sample.X, 1).prepared(metric).zero
    if zero is not None:
        at = np.flatnonzero(zero)
        sums[sample.codes[at], at] -= sample.weights[at] * metric.finish(2.0, np)  # type: ignore[misc]
