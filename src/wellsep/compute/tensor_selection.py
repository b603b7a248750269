"""Sums of the smallest and of the largest distances, on the device where the objects lie.

Few distances are sorted. Many are counted in bins of their leading bits; those of the bin in
which a number of terms ends are taken as spread evenly over it, an error of one part in 2¹⁴ of the
few distances there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from wellsep.compute import kernels
from wellsep.compute.blocks import CLOSE
from wellsep.compute.engines import host

BLOCK = 4096
OCTAVES, BITS = 32, 16  # of the plain histogram: range below the largest distance; bins an octave


def select_there(
    X: torch.Tensor, counts: np.ndarray, *, root: bool, fused: bool, sortable: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest distances between the rows of X (float64).

    Distances are Euclidean, or with ``root=False`` their squares.
    """
    pairs = len(X) * (len(X) - 1) // 2
    if pairs <= sortable:
        values = torch.cat(list(_upper(X, root))).sort().values
        rising = np.concatenate([[0.0], host(values.cumsum(0))])
        falling = np.concatenate([[0.0], host(values.flip(0).cumsum(0))])
        return rising[counts], falling[counts]
    rows, reach = kernels.about_median(X) if fused else (X, np.inf)
    if reach <= kernels.FAR:
        from wellsep.compute.triton_selection import histogram

        count, total, edges = histogram(rows, root)
    else:
        count, total, edges = _histogram(X, root)
    ranks = np.concatenate([counts, pairs - counts])
    smallest, rest = np.split(_sums(host(count), host(total), edges, ranks), 2)
    return smallest, float(total.sum()) - rest


def _sums(count: np.ndarray, total: np.ndarray, edges: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The sum of the smallest ``ranks`` numbers of a histogram."""
    rising = np.concatenate([[0], np.cumsum(count)])
    below = np.concatenate([[0.0], np.cumsum(total)])
    ends = np.clip(np.searchsorted(rising, ranks, side="left") - 1, 0, len(count) - 1)
    terms, here = ranks - rising[ends], np.maximum(count[ends], 1)
    mean = total[ends] / here
    # The smallest t of c that lie evenly about their mean: t (mean − (1 − t/c) width/2).
    width = edges[ends + 1] - edges[ends]
    low = np.maximum(mean - (1 - terms / here) * width / 2, edges[ends])
    return below[ends] + terms * np.where(terms == here, mean, low)


def _upper(X: torch.Tensor, root: bool) -> Iterator[torch.Tensor]:
    """Each distance once, block by block."""
    square = (X * X).sum(dim=1)
    close = CLOSE[0] * 2 * float(square.max())
    for i in range(0, len(X), BLOCK):
        for j in range(i, len(X), BLOCK):
            a, b = slice(i, i + BLOCK), slice(j, j + BLOCK)
            table = square[a, None] + square[b] - 2 * X[a] @ X[b].T
            r, c = (table < close).nonzero(as_tuple=True)  # cancelled: again from differences
            for part in torch.arange(len(r), device=X.device).split(1 << 16):
                gap = X[a][r[part]] - X[b][c[part]]
                table[r[part], c[part]] = gap.square_().sum(dim=1)
            if i == j:
                at = torch.triu_indices(len(table), len(table), 1, device=X.device)
                table = table[at[0], at[1]]
            yield table.reshape(-1).sqrt() if root else table.reshape(-1)


def _histogram(X: torch.Tensor, root: bool) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    span = OCTAVES << BITS
    reach = 4 * float((X * X).sum(dim=1).max()) * (1 + 1e-9)
    largest = np.float64(np.sqrt(reach) if root else reach)
    base = (int(largest.view(np.int64)) >> (52 - BITS)) - span + 1
    count = torch.zeros(span, dtype=torch.int64, device=X.device)
    total = torch.zeros(span, dtype=torch.float64, device=X.device)
    for values in _upper(X, root):
        at = ((values.view(torch.int64) >> (52 - BITS)) - base).clamp(0, span - 1)
        count += torch.bincount(at, minlength=span)
        total += torch.bincount(at, weights=values, minlength=span)
    bits = (np.arange(span + 1, dtype=np.int64) + base) << (52 - BITS)
    edges = np.maximum(bits, 0).view(np.float64).copy()
    edges[0] = 0.0
    return count, total, edges
