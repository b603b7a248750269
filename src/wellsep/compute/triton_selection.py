"""A histogram of all distances, counts and sums by their leading bits, in one pass on the chip."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from wellsep.compute.triton_pairs import _products, beside, padded_width, split_rows, stages

OCTAVES, BITS = 32, 14  # below the largest distance; bins of an octave, as a power of two
SPAN = OCTAVES << BITS
SIDE = 64  # of a tile
STRIP = 1 << 14  # rows of tiles in one launch; a card takes no more than 65,535


@triton.jit
def _histogram(
    high, low, square, count, total, base, first, n,
    D: tl.constexpr, BD: tl.constexpr, T: tl.constexpr, SHIFT: tl.constexpr, LAST: tl.constexpr,
    ROOT: tl.constexpr,
):  # fmt: skip
    """Pairs i < j; positive numbers sort as their bits do."""
    a, b = first + tl.program_id(1), first + tl.program_id(0)
    if b >= a:
        i, j = a * T + tl.arange(0, T), b * T + tl.arange(0, T)
        squared = tl.load(square + i)[:, None] + tl.load(square + j)[None, :]
        squared -= 2.0 * _products(high, low, i, j, D, BD, T, T)
        distance = tl.maximum(squared, 0.0)
        if ROOT:
            distance = tl.sqrt(distance)
        bin = (distance.to(tl.int32, bitcast=True) >> SHIFT) - base
        bin = tl.minimum(tl.maximum(bin, 0), LAST)
        once = (i[:, None] < j[None, :]) & (j < n)[None, :]
        one = tl.full([T, T], 1, dtype=tl.int64)
        tl.atomic_add(count + bin, one, mask=once, sem="relaxed")
        tl.atomic_add(total + bin, distance.to(tl.float64), mask=once, sem="relaxed")


def histogram(X: torch.Tensor, root: bool) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """(bins,) counts and sums of distances, or of squared ones, and the bins' lower edges."""
    n, width = len(X), padded_width(X.shape[1])
    rows = torch.zeros((-(-n // SIDE) * SIDE, X.shape[1]), dtype=X.dtype, device=X.device)
    rows[:n] = X
    split = split_rows(rows, width)
    reach = 4 * float(split.square.max()) * (1 + 1e-5)
    largest = np.float32(np.sqrt(reach) if root else reach)
    base = (int(largest.view(np.int32)) >> (23 - BITS)) - SPAN + 1
    count = torch.zeros(SPAN, dtype=torch.int64, device=X.device)
    total = torch.zeros(SPAN, dtype=torch.float64, device=X.device)
    tiles = len(rows) // SIDE
    with beside(X):
        for first in range(0, tiles, STRIP):
            _histogram[(tiles - first, min(STRIP, tiles - first))](
                split.high, split.low, split.square, count, total, base, first, n,
                D=width, BD=min(width, 64), T=SIDE, SHIFT=23 - BITS, LAST=SPAN - 1, ROOT=root,
                num_warps=8, num_stages=stages(width),
            )  # fmt: skip
    scale = split.scale if root else split.scale**2
    bits = (np.arange(SPAN + 1, dtype=np.int64) + base) << (23 - BITS)
    edges = np.maximum(bits, 0).astype(np.int32).view(np.float32).astype(np.float64) / scale
    edges[0] = 0.0  # what lies below is counted there
    return count, total / scale, edges
