"""Contingency tables of all pairs of partitions on a device, as products of one-hot columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from wellsep.compute.engine.threads import budget_bytes

WIDE = 4096  # a partition with more clusters is counted by sorting: its columns would be too many
EXACT = 1 << 24  # objects whose counts float32 adds up without rounding


def count_pairs_on(codes: np.ndarray, device: Any) -> tuple[Any, ...]:
    """The fields of `PairCounts`: blocks of tables are made, summed up, and forgotten."""
    placed = torch.as_tensor(np.ascontiguousarray(codes)).to(device).to(torch.int64)
    n_partitions, n = placed.shape
    sizes = [torch.bincount(one) for one in placed]
    clusters = [len(s) for s in sizes]
    squares = torch.zeros((n_partitions, n_partitions), dtype=torch.float64, device=placed.device)
    logs = torch.zeros_like(squares)
    wide = [m for m, k in enumerate(clusters) if k > WIDE]
    blocks = _blocks([m for m, k in enumerate(clusters) if k <= WIDE], clusters)
    for b, rows in enumerate(blocks):
        for columns in blocks[: b + 1]:
            found = _sums_of_block(placed, rows, columns, clusters)
            _put(squares, rows, columns, found[0])
            _put(logs, rows, columns, found[1])
    for i in wide:
        for j in range(n_partitions):
            _, counts = torch.unique(placed[i] * clusters[j] + placed[j], return_counts=True)
            table = counts.to(torch.float64)
            squares[i, j] = squares[j, i] = (table * table).sum()
            logs[i, j] = logs[j, i] = torch.xlogy(table, table).sum()
    return (
        n,
        np.rint(squares.cpu().numpy()).astype(np.int64),
        logs.cpu().numpy(),
        tuple(s.cpu().numpy() for s in sizes),
    )


def _blocks(which: list[int], clusters: list[int]) -> list[list[int]]:
    """Neighbouring partitions, so many that the table of two blocks fits the budget."""
    most = max(WIDE, int((budget_bytes() / 32) ** 0.5))  # tables, squares and logarithms in float64
    blocks: list[list[int]] = []
    held = most
    for m in which:
        if held + clusters[m] > most:
            blocks.append([])
            held = 0
        blocks[-1].append(m)
        held += clusters[m]
    return blocks


def _sums_of_block(
    codes: torch.Tensor, rows: list[int], columns: list[int], clusters: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, columns) Σ n² and Σ n ln n of the tables between two blocks of partitions."""
    n = codes.shape[1]
    width = max(sum(clusters[m] for m in rows), sum(clusters[m] for m in columns))
    step = max(1, min(EXACT, int(budget_bytes() / (8 * width))))
    tables: Any = 0.0
    for start in range(0, n, step):
        part = slice(start, start + step)
        left = _one_hot(codes[rows, part], [clusters[m] for m in rows])
        right = left if rows == columns else _one_hot(
            codes[columns, part], [clusters[m] for m in columns]
        )  # fmt: skip
        tables = tables + (left @ right.T).to(torch.float64)
    sums = tuple(
        _by_partition(_by_partition(cells, rows, clusters).T, columns, clusters).T
        for cells in (tables * tables, torch.xlogy(tables, tables))
    )
    return sums  # type: ignore[return-value]


def _one_hot(codes: torch.Tensor, clusters: list[int]) -> torch.Tensor:
    """(ΣK, n) one row per cluster of every partition."""
    found = torch.zeros((sum(clusters), codes.shape[1]), device=codes.device)
    starts = torch.as_tensor(np.cumsum([0, *clusters[:-1]]), device=codes.device)
    return found.scatter_(0, codes + starts[:, None], 1.0)


def _by_partition(cells: torch.Tensor, which: list[int], clusters: list[int]) -> torch.Tensor:
    """Sums of the rows that belong to one partition."""
    edges = np.cumsum([0, *(clusters[m] for m in which)]).tolist()
    return torch.stack([cells[a:b].sum(dim=0) for a, b in pairwise(edges)])


def _put(matrix: torch.Tensor, rows: list[int], columns: list[int], values: torch.Tensor) -> None:
    at = torch.as_tensor(rows, device=matrix.device)
    beside = torch.as_tensor(columns, device=matrix.device)
    matrix[at[:, None], beside] = values
    matrix[beside[:, None], at] = values.T
