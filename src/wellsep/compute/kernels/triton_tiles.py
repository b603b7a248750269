"""Rows as the fused kernels take them, and the products of two tiles of them.

Rows are scaled to at most 2¹⁴ and split into two half-precision numbers, x = h + l; then
xy = hh' + hl' + lh' on the tensor cores is as good as single precision (ll' is below 2⁻²²).
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

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
