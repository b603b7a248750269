"""Distance sums of one partition: rows in the order of their clusters, so that sums are products.

No block then holds objects of two clusters, and what a block of distances adds to the sums of both
its sides are its row and column sums: two products with a vector in place of two with a matrix of
memberships and a transposed copy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellsep.compute.engines import ROWS, cut, share_out, tournament
from wellsep.compute.metrics import Metric, Rows, square_lengths
from wellsep.compute.statistics import Task
from wellsep.compute.twins import numpy_distances, numpy_usable

SMALL = ROWS // 2  # clusters of fewer objects make blocks that cost more calls than they save


def usable(task: Task, metric: Metric) -> bool:
    """One partition of NumPy data into clusters that fill their blocks."""
    partitions, space = task.partitions, task.space
    return (
        len(partitions) == 1
        and numpy_usable(space.X, metric)
        and space.n >= SMALL * int(partitions.n_clusters[0])
    )


def sorted_strips(task: Task, metric: Metric) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, sums of those rows); rows come in the given order."""
    sums = sorted_sums(task, metric)
    for rows in task.space.row_blocks(sums.shape[0]):
        yield rows, sums[:, rows]


def sorted_sums(task: Task, metric: Metric) -> np.ndarray:
    """(K, n) float64, 0 for objects that are not counted."""
    view, zero = task.space.prepared(metric)
    codes = task.partitions.codes[0]
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    X, codes = view[order], codes[order]
    zero = None if zero is None else zero[order]
    weights = (
        np.ones(len(X), X.dtype) if task.weights is None else task.weights[order].astype(X.dtype)
    )
    square = square_lengths(X, zero, np)
    blocks = cut(len(X), ROWS, codes)
    sums = np.zeros((int(task.partitions.n_clusters[0]), len(X)))

    def block(rows: slice) -> Rows:
        return Rows(X[rows], square[rows], None if zero is None else zero[rows], rows)

    def visit(i: int, j: int) -> None:
        a, b = blocks[i], blocks[j]
        table = numpy_distances(block(a), block(b), metric)
        sums[codes[b.start], a] += table @ weights[b]
        if i != j:
            sums[codes[a.start], b] += weights[a] @ table

    share_out(task.space.n_jobs, visit, tournament(len(blocks)))
    found = np.zeros((len(sums), len(view)))
    found[:, order] = sums
    return found
