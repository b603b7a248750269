"""Sums of the smallest and of the largest distances, on the device where the objects lie.

Few distances are sorted. Many are counted in bins of their leading bits; those of the bin in
which a number of terms ends are taken as spread evenly over it, an error of one part in 2¹⁴ of the
few distances there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep.compute.data.rows import host
from wellsep.compute.kernels.triton_use import FAR, about_median
from wellsep.compute.metrics.row_preparation import Prepared, square_lengths
from wellsep.compute.metrics.table import Rows, half, root, squares, whole

BLOCK = 4096
OCTAVES, BITS = 32, 16  # of the plain histogram: range below the largest distance; bins an octave

_FUSED = (root, whole, half)


def select_on_device(
    prepared: Prepared,
    counts: np.ndarray,
    *,
    finish: Callable[..., Any],
    fused: bool,
    sortable: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest distances between prepared rows (float64).

    Distances are what ``finish`` makes of squared ones.
    """
    X = prepared.X
    pairs = len(X) * (len(X) - 1) // 2
    if pairs <= sortable:
        values = torch.cat(list(_upper(prepared, finish))).sort().values
        rising = np.concatenate([[0.0], host(values.cumsum(0))])
        falling = np.concatenate([[0.0], host(values.flip(0).cumsum(0))])
        return rising[counts], falling[counts]
    # The fused histogram knows squared distances and their roots, and no zero rows.
    fused = fused and finish in _FUSED and prepared.zero is None
    rows, reach = about_median(X) if fused else (X, np.inf)
    if reach <= FAR:
        from wellsep.compute.kernels.triton_extremes import histogram

        count, total, edges = histogram(rows, finish is root)
    else:
        count, total, edges = _histogram(prepared, finish)
    ranks = np.concatenate([counts, pairs - counts])
    smallest, rest = np.split(_sums(host(count), host(total), edges, ranks), 2)
    largest = float(total.sum()) - rest
    if reach <= FAR and finish is not root:
        return finish(smallest, np), finish(largest, np)
    return smallest, largest


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


def _upper(prepared: Prepared, finish: Callable[..., Any]) -> Iterator[torch.Tensor]:
    """Each distance once, block by block."""
    X, square = prepared.X, square_lengths(*prepared, xp)
    for i in range(0, len(X), BLOCK):
        for j in range(i, len(X), BLOCK):
            a, b = slice(i, i + BLOCK), slice(j, j + BLOCK)
            table = squares(Rows(X[a], square[a], at=a), Rows(X[b], square[b], at=b), xp)
            if i == j:
                at = torch.triu_indices(len(table), len(table), 1, device=X.device)
                table = table[at[0], at[1]]
            yield finish(table.reshape(-1), xp)


def _histogram(
    prepared: Prepared, finish: Callable[..., Any]
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    span, X = OCTAVES << BITS, prepared.X
    reach = 4 * float(square_lengths(*prepared, xp).max()) * (1 + 1e-9)
    largest = np.float64(finish(np.float64(reach), np))
    base = (int(largest.view(np.int64)) >> (52 - BITS)) - span + 1
    count = torch.zeros(span, dtype=torch.int64, device=X.device)
    total = torch.zeros(span, dtype=torch.float64, device=X.device)
    for values in _upper(prepared, finish):
        at = ((values.view(torch.int64) >> (52 - BITS)) - base).clamp(0, span - 1)
        count += torch.bincount(at, minlength=span)
        total += torch.bincount(at, weights=values, minlength=span)
    bits = (np.arange(span + 1, dtype=np.int64) + base) << (52 - BITS)
    edges = np.maximum(bits, 0).view(np.float64).copy()
    edges[0] = 0.0
    return count, total, edges
