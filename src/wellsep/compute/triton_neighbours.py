"""How near each object comes to every group of consecutive objects: where its neighbours are.

The k nearest objects lie in the k groups that come nearest, so a table of n × n/64 is all that a
search for neighbours needs to look at; products and minima stay on the chip.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wellsep.compute.triton_pairs import (
    TILE,
    Split,
    _products,
    beside,
    padded_width,
    split_rows,
    stages,
)

GROUP = 64
SPAN = 16  # groups that a program writes at once


@triton.jit
def _group_minima(
    high, low, square, index, reach, out, n_groups,
    D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """out[row, group]: smallest squared distance to those of the group that lie before the reach
    of the row, itself left out."""
    row = tl.program_id(1) * BM + tl.arange(0, BM)
    i = tl.load(index + row)
    limit = tl.load(reach + row)
    square_i = tl.load(square + i)
    first = tl.program_id(0) * SPAN
    column = tl.arange(0, SPAN)
    found = tl.full([BM, SPAN], float("inf"), dtype=tl.float32)
    furthest = tl.max(limit, axis=0)
    for s in range(tl.minimum(SPAN, tl.maximum(tl.cdiv(furthest, BN) - first, 0))):
        j = (first + s) * BN + tl.arange(0, BN)
        squared = square_i[:, None] + tl.load(square + j)[None, :]
        squared -= 2.0 * _products(high, low, i, j, D, BD, BM, BN)
        hidden = (j[None, :] >= limit[:, None]) | (i[:, None] == j[None, :])
        kept = tl.min(tl.where(hidden, float("inf"), squared), axis=1)
        found = tl.where(column[None, :] == s, kept[:, None], found)
    at = row.to(tl.int64)[:, None] * n_groups + (first + column)[None, :]
    tl.store(out + at, found, mask=(first + column < n_groups)[None, :])


def prepare(X: torch.Tensor) -> Split:
    """Rows split for the products, padded to whole tiles."""
    rows = torch.zeros((-(-len(X) // TILE) * TILE, X.shape[1]), dtype=X.dtype, device=X.device)
    rows[: len(X)] = X
    return split_rows(rows, padded_width(X.shape[1]))


def group_minima(split: Split, index: torch.Tensor, reach: torch.Tensor, n: int) -> torch.Tensor:
    """(b, groups) float32 squared distances of the objects ``index`` (b,) to groups of 64 of n."""
    b, width = len(index), split.high.shape[1]
    padded = -(-b // TILE) * TILE
    rows = torch.zeros(padded, dtype=torch.int32, device=index.device)
    rows[:b] = index
    limits = torch.zeros_like(rows)
    limits[:b] = reach
    n_groups = -(-n // GROUP)
    out = torch.empty((padded, n_groups), dtype=torch.float32, device=index.device)
    with beside(out):
        _group_minima[(triton.cdiv(n_groups, SPAN), padded // TILE)](
            split.high, split.low, split.square, rows, limits, out, n_groups,
            D=width, BD=min(width, 64), BM=TILE, BN=GROUP, SPAN=SPAN,
            num_warps=8, num_stages=stages(width),
        )  # fmt: skip
    out /= split.scale
    out /= split.scale  # its square may leave single precision's range
    return out[:b]
