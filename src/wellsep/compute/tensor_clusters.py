"""Row passes on the device: sums over clusters, distances to own centres, products of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from wellsep.compute.engines import host
from wellsep.compute.statistics import Task, Want
from wellsep.compute.tensor_batches import (
    batches,
    centred,
    codes_there,
    member_table,
    on_device,
    own_squares,
    row_parts,
    totals,
    weights_there,
)


def cluster_sums(task: Task, rows_of: Callable[[slice], Any]) -> torch.Tensor:
    """(ΣK, e) float64: weighted sums over every cluster of the rows that ``rows_of`` gives."""
    space, partitions = task.space, task.partitions
    codes, weights = codes_there(task).to(torch.int64), weights_there(task)
    width = int(partitions.offsets[-1])
    total: Any = 0.0
    for rows in row_parts(space.n, 16.0 * (width + space.d)):
        n = rows.stop - rows.start
        table = member_table(codes[:, rows], partitions.n_clusters, n, torch.float64)
        if task.weights is not None:
            table *= weights[rows]
        total = total + table @ rows_of(rows).to(torch.float64)
    return total


def spread_pass(task: Task, centers: list[np.ndarray], wants: list[Want]) -> dict[Want, list[Any]]:
    """``within`` and ``radii``: powers of the distances to the own centre, summed by cluster."""
    X, codes, weights = centred(task.space), codes_there(task), weights_there(task)
    found: dict[Want, list[Any]] = {w: [None] * len(task.partitions) for w in wants}
    for batch in batches(task.partitions, codes, 16.0 * task.space.n):
        points = on_device(np.stack([centers[m] for m in batch.which]), X)
        squares, members = own_squares(X, points, batch), batch.members()
        for w in wants:
            power = squares if w.name == "within" else squares ** (w.get("q", 1) / 2)
            sums = totals(weights * power, members)
            if w.name == "radii":
                sums /= totals(weights.expand(len(batch.which), -1), members)
            for m, values in zip(batch.which, host(sums), strict=True):
                found[w][m] = values
    return found


def products(
    task: Task, rows: np.ndarray, weights: np.ndarray, about_mean: bool
) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX (XXᵀ where that is smaller) of some rows, and its diagonal, on the host."""
    X = centred(task.space) if about_mean else task.space.X.to(torch.float64)
    if len(rows) < len(X):
        X = X[torch.as_tensor(rows, device=X.device)]
    given = on_device(weights, X)
    if about_mean:
        X = X - (given @ X) / given.sum()
    X = X * given.sqrt()[:, None]
    small = X.T @ X if X.shape[1] <= len(X) else X @ X.T
    return host(small), host((X * X).sum(dim=0))
