"""Distance sums fused on the GPU: products, root and per-cluster sums stay on the chip.

Rows are scaled to at most 2¹⁴ and split into two half-precision numbers, x = h + l; then
xy = hh' + hl' + lh' on the tensor cores is as good as single precision (ll' is below 2⁻²²).
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

TILE = 128
LARGEST = 2.0**14  # well inside half precision; the low part's underflow is then 2⁻³⁸ of it


class Split(NamedTuple):
    """Rows as two half-precision parts, their squared lengths, and the scale that was applied."""

    high: torch.Tensor  # (n, D) float16, D padded
    low: torch.Tensor  # (n, D) float16
    square: torch.Tensor  # (n,) float32, of high + low
    scale: float


def padded_width(d: int) -> int:
    """Columns as the kernels want them: a power of two up to 64, then multiples of 64."""
    return max(16, triton.next_power_of_2(d)) if d <= 64 else -(-d // 64) * 64


def largest(X: torch.Tensor) -> float:
    """The largest absolute entry, in one reading."""
    low, high = torch.aminmax(X)
    return max(-float(low), float(high))


def safe_scale(entry: float) -> float:
    """The power of two that brings the largest entry just below ``LARGEST``."""
    return 2.0 ** math.floor(math.log2(LARGEST / entry)) if entry > 0 else 1.0


def beside(tensor: torch.Tensor) -> AbstractContextManager:
    """Where kernels are to be launched: Triton takes the current device, not the data's."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def stages(width: int) -> int:
    return 2 if width <= 64 else 1  # wider rows fill the shared memory by themselves


def split_rows(X: torch.Tensor, width: int) -> Split:
    scale = safe_scale(largest(X))
    high = torch.zeros((X.shape[0], width), dtype=torch.float16, device=X.device)
    low = torch.zeros_like(high)
    square = torch.empty(X.shape[0], dtype=torch.float32, device=X.device)
    for rows in torch.arange(X.shape[0]).split(1 << 20):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        scaled = X[part].to(torch.float64) * scale
        high[part, : X.shape[1]] = scaled.to(torch.float16)
        low[part, : X.shape[1]] = (scaled - high[part, : X.shape[1]]).to(torch.float16)
        both = high[part].to(torch.float64) + low[part].to(torch.float64)
        square[part] = (both * both).sum(dim=1).to(torch.float32)
    return Split(high, low, square, scale)


@triton.jit
def _products(
    high, low, i, j,
    D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """(BM, BN) inner products of rows i with rows j."""
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for c in tl.static_range(D // BD):
        column = c * BD + tl.arange(0, BD)
        at_i = i.to(tl.int64)[:, None] * D + column[None, :]
        at_j = j.to(tl.int64)[:, None] * D + column[None, :]
        h_i, l_i = tl.load(high + at_i), tl.load(low + at_i)
        h_j, l_j = tl.load(high + at_j), tl.load(low + at_j)
        total = tl.dot(h_i, tl.trans(h_j), total)
        total = tl.dot(h_i, tl.trans(l_j), total)
        total = tl.dot(l_i, tl.trans(h_j), total)
    return total


@triton.jit
def _sorted_sums(
    high, low, square, weight, first_block, own, out, n, K,
    D: tl.constexpr, BD: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Rows are sorted by cluster and padded, so that each tile of columns is of one cluster."""
    block = tl.program_id(0)
    i = block * T + tl.arange(0, T)
    square_i = tl.load(square + i)
    for k in range(K):
        total = tl.zeros([T], dtype=tl.float64)
        for b in range(tl.load(first_block + k), tl.load(first_block + k + 1)):
            j = b * T + tl.arange(0, T)
            squared = square_i[:, None] + tl.load(square + j)[None, :]
            squared -= 2.0 * _products(high, low, i, j, D, BD, T, T)
            distance = tl.sqrt(tl.maximum(squared, 0.0))
            total += tl.sum(distance * tl.load(weight + j)[None, :], axis=1).to(tl.float64)
        tl.store(out + k.to(tl.int64) * n + i, total)
    # What rounding left between an object and itself is found again and taken off.
    squared = square_i[:, None] + square_i[None, :] - 2.0 * _products(high, low, i, i, D, BD, T, T)
    distance = tl.sqrt(tl.maximum(squared, 0.0)) * tl.load(weight + i)[None, :]
    itself = tl.sum(tl.where(i[:, None] == i[None, :], distance, 0.0), axis=1).to(tl.float64)
    at = out + tl.load(own + block).to(tl.int64) * n + i
    tl.store(at, tl.load(at) - itself)


def sorted_sums(X: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor | None, k: int) -> Any:
    """(K, n) float64 distance sums of one partition; ``codes`` (n,), -1 where not counted."""
    n, device = X.shape[0], X.device
    width = padded_width(X.shape[1])
    counted = codes >= 0
    shown = torch.where(counted, codes, torch.full_like(codes, k))  # uncounted rows come last
    order = torch.argsort(shown, stable=True)
    counts = torch.bincount(shown, minlength=k + 1)
    blocks = (counts + TILE - 1) // TILE
    first_block = torch.zeros(k + 2, dtype=torch.int64, device=device)
    first_block[1:] = torch.cumsum(blocks, 0)
    n_padded = int(first_block[-1]) * TILE
    start = torch.cumsum(counts, 0) - counts
    cluster = shown[order]
    place = first_block[cluster] * TILE + torch.arange(n, device=device) - start[cluster]
    rows = torch.zeros((n_padded, X.shape[1]), dtype=X.dtype, device=device)
    rows[place] = X[order]
    weight = torch.zeros(n_padded, dtype=torch.float32, device=device)
    given = torch.ones(n, device=device) if weights is None else weights.to(torch.float32)
    weight[place] = torch.where(counted[order], given[order], torch.zeros_like(given))
    split = split_rows(rows, width)
    own = torch.repeat_interleave(torch.arange(k + 1, device=device), blocks).to(torch.int32)
    out = torch.zeros((k + 1, n_padded), dtype=torch.float64, device=device)
    with beside(X):
        _sorted_sums[(n_padded // TILE,)](
            split.high, split.low, split.square, weight, first_block.to(torch.int32), own, out,
            n_padded, k, D=width, BD=min(width, 64), T=TILE, num_warps=4, num_stages=stages(width),
        )  # fmt: skip
    sums = torch.empty((k, n), dtype=torch.float64, device=device)
    sums[:, order] = out[:k, place] / split.scale
    return sums
