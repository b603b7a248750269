"""Partitions with equally many clusters stand side by side on the device: a few calls serve all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from wellsep.compute.engine.threads import budget_bytes
from wellsep.compute.requests import Task
from wellsep.partitions import Partitions


class Batch(NamedTuple):
    """g partitions of the same n objects into k clusters each."""

    which: list[int]  # (g,) their places among all partitions
    k: int
    codes: torch.Tensor  # (g, n) int64, -1 where not counted

    def members(self, rows: slice = slice(None)) -> torch.Tensor:
        """(g, K, n) whether an object belongs to a cluster."""
        clusters = torch.arange(self.k, device=self.codes.device)
        return self.codes[:, None, rows] == clusters[:, None]

    def part(self, rows: slice) -> Batch:
        """The same partitions of some of the objects."""
        return self._replace(codes=self.codes[:, rows])

    def safe(self, rows: slice = slice(None)) -> torch.Tensor:
        """(g, n) codes to index with: an object that is not counted gets the first cluster."""
        return self.codes[:, rows].clamp(min=0)


def to_device(values: Any, X: torch.Tensor, dtype: Any = torch.float64) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values)).to(X.device).to(dtype)


def batches(
    partitions: Partitions, codes: torch.Tensor, bytes_per_cluster: float
) -> Iterator[Batch]:
    """Partitions grouped by their number of clusters, as many at once as the budget allows.

    ``codes`` are those of all partitions (M, n), on the device.
    """
    counts = partitions.n_clusters
    for k in np.unique(counts).tolist():
        group = np.flatnonzero(counts == k)
        at_once = max(1, int(budget_bytes() / max(k * bytes_per_cluster, 1.0)))
        for start in range(0, len(group), at_once):
            which = group[start : start + at_once]
            whole = len(which) == len(codes)
            chosen = codes if whole else codes[torch.as_tensor(which, device=codes.device)]
            yield Batch(which.tolist(), k, chosen.to(torch.int64))


def codes_on_device(task: Task) -> torch.Tensor:
    """(M, n) int32 beside X."""
    return torch.as_tensor(task.partitions.codes).to(task.space.X.device)


def totals(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """(g, K) sums over clusters of ``values`` (g, n); always added in the same order.

    With a thousand clusters a table of (g, K, n) would be far larger than the data.
    """
    shape, kind = (len(batch.which), batch.k), {"dtype": values.dtype, "device": values.device}
    sums, zero = torch.zeros(shape, **kind), torch.zeros((), **kind)
    for rows in row_parts(values.shape[1], 16.0 * shape[0] * shape[1]):
        sums += torch.where(batch.members(rows), values[:, None, rows], zero).sum(dim=-1)
    return sums


def own_squares(X: torch.Tensor, points: torch.Tensor, batch: Batch) -> torch.Tensor:
    """(g, n) squared distances of rows to their cluster's point (g, K, d), from differences."""
    (n, d), g = X.shape, len(batch.which)
    found = torch.empty((g, n), dtype=X.dtype, device=X.device)
    first = torch.arange(g, device=X.device)[:, None] * batch.k
    flat = points.reshape(g * batch.k, d)
    for rows in row_parts(n, 8 * g * d * 4):
        gap = flat[first + batch.safe(rows)]  # (g, b, d)
        gap -= X[rows]
        found[:, rows] = gap.square_().sum(dim=-1)
    return found


def row_parts(n: int, bytes_per_row: float, *, least: int = 256) -> Iterator[slice]:
    """Consecutive rows that fit the budget."""
    rows = max(least, min(n, int(budget_bytes() / max(bytes_per_row, 1.0))))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


def cluster_sums(
    X: torch.Tensor, batch: Batch, weights: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, K, d) sums of rows and (g, K) masses."""
    g, k = len(batch.which), batch.k
    sums = torch.zeros((g * k, X.shape[1]), dtype=X.dtype, device=X.device)
    mass = torch.zeros(g * k, dtype=X.dtype, device=X.device)
    for rows in row_parts(len(X), 8 * g * k * 2):
        table = batch.members(rows).reshape(g * k, -1).to(X.dtype)
        if weights is not None:
            table *= weights[rows]
        sums += table @ X[rows]
        mass += table.sum(dim=1)
    return sums.reshape(g, k, -1), mass.reshape(g, k)
