"""Order statistics fused on the GPU: extremes of every object, a histogram of all distances."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from wellsep.compute.kernels.triton_tiles import (
    TILE,
    _products,
    beside,
    padded_width,
    split_rows,
    stages,
)

SIDE = 64  # of a tile, which stays in registers while all partitions look at it
OCTAVES, BITS = 32, 14  # below the largest distance; bins of an octave, as a power of two
SPAN = OCTAVES << BITS
STRIP = 1 << 14  # rows of tiles in one launch; a card takes no more than 65,535


@triton.jit
def _row_extremes(
    high, low, square, codes, across, nearest, farthest, n, n_blocks, M,
    D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ACROSS: tl.constexpr, NEAREST: tl.constexpr, FARTHEST: tl.constexpr,
):  # fmt: skip
    """Squared distances; a program owns its rows, so nobody else writes their extremes."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    square_i = tl.load(square + i)
    for b in range(n_blocks):
        j = b * BN + tl.arange(0, BN)
        squared = square_i[:, None] + tl.load(square + j)[None, :]
        squared -= 2.0 * _products(high, low, i, j, D, BD, BM, BN)
        itself = i[:, None] == j[None, :]
        near = tl.where(itself, float("inf"), squared)
        far = tl.where(itself, float("inf"), -squared)
        at, out = codes, i.to(tl.int64)
        for _ in range(M):
            mine, theirs = tl.load(at + i), tl.load(at + j)
            same = mine[:, None] == theirs[None, :]
            if ACROSS:
                kept = tl.min(tl.where(same | (theirs < 0)[None, :], float("inf"), near), axis=1)
                tl.store(across + out, tl.minimum(tl.load(across + out), kept))
            if NEAREST:
                kept = tl.min(tl.where(same, near, float("inf")), axis=1)
                tl.store(nearest + out, tl.minimum(tl.load(nearest + out), kept))
            if FARTHEST:
                kept = tl.min(tl.where(same, far, float("inf")), axis=1)
                tl.store(farthest + out, tl.minimum(tl.load(farthest + out), kept))
            at += n
            out += n
        tl.debug_barrier()  # what one thread stored another may load next


def row_extremes(X: torch.Tensor, codes: torch.Tensor, names: set[str]) -> dict[str, torch.Tensor]:
    """(M, n) squared distances by name, inf where there is no pair; farthest: negated."""
    n, n_padded = len(X), -(-len(X) // TILE) * TILE
    width = padded_width(X.shape[1])
    rows = torch.zeros((n_padded, X.shape[1]), dtype=X.dtype, device=X.device)
    rows[:n] = X
    split = split_rows(rows, width)
    table = torch.full((len(codes), n_padded), -1, dtype=torch.int32, device=X.device)
    table[:, :n] = codes
    order = ("nearest_between", "nearest_within", "farthest_within")
    outs = [
        torch.full(table.shape if name in names else (1,), torch.inf, device=X.device)
        for name in order
    ]
    with beside(X):
        _row_extremes[(n_padded // SIDE,)](
            split.high, split.low, split.square, table, *outs, n_padded, n_padded // SIDE,
            len(codes), D=width, BD=min(width, 64), BM=SIDE, BN=SIDE,
            ACROSS=order[0] in names, NEAREST=order[1] in names, FARTHEST=order[2] in names,
            num_warps=4, num_stages=stages(width),
        )  # fmt: skip
    found = {}
    for name, out in zip(order, outs, strict=True):
        if name in names:
            out[table < 0] = torch.inf
            # in double precision: squares of very small or large data leave single's range
            found[name] = out[:, :n].to(torch.float64) / split.scale**2
    return found


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
