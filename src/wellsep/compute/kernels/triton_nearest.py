"""The nearest centres and the nearest objects fused on the GPU, and sums by code.

The k nearest objects lie in the k groups that come nearest, so a table of n × n/64 is all that a
search for neighbours needs to look at; products and minima stay on the chip.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wellsep.compute.kernels.triton_tiles import (
    TILE,
    Split,
    _products,
    beside,
    largest,
    padded_width,
    safe_scale,
    split_rows,
    stages,
)

GROUP = 64
SPAN = 16  # groups that a program writes at once


@triton.jit
def _nearest_two(
    X, high, low, half, centers, first, second, near, far, n, k, d, scale,
    D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """argmax_k xμ_k − ½‖μ_k‖² and the runner-up; rows are split on the fly, centres beforehand."""
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    inside = i < n
    best = tl.full([BM], -float("inf"), dtype=tl.float32)
    runner = tl.full([BM], -float("inf"), dtype=tl.float32)
    best_at = tl.zeros([BM], dtype=tl.int32)
    runner_at = tl.zeros([BM], dtype=tl.int32)
    for b in range(0, tl.cdiv(k, BN)):
        j = b * BN + tl.arange(0, BN)
        total = tl.zeros([BM, BN], dtype=tl.float32)
        for c in tl.static_range(D // BD):
            column = c * BD + tl.arange(0, BD)
            x = (
                tl.load(
                    X + i[:, None] * d + column[None, :],
                    mask=inside[:, None] & (column < d)[None, :],
                    other=0.0,
                )
                * scale
            )
            h = x.to(tl.float16)
            rest = (x - h.to(tl.float32)).to(tl.float16)
            h_j = tl.load(high + j[:, None] * D + column[None, :])
            l_j = tl.load(low + j[:, None] * D + column[None, :])
            total = tl.dot(h, tl.trans(h_j), total)
            total = tl.dot(h, tl.trans(l_j), total)
            total = tl.dot(rest, tl.trans(h_j), total)
        score = total - tl.load(half + j)[None, :]  # padded centres have infinite half
        top, at = tl.max(score, axis=1, return_indices=True)
        score = tl.where(tl.arange(0, BN)[None, :] == at[:, None], -float("inf"), score)
        next_top, next_at = tl.max(score, axis=1, return_indices=True)
        at += b * BN
        next_at += b * BN
        wins = top > best
        # the loser of the two tops competes with the winner's own runner-up
        lost, lost_at = tl.where(wins, best, top), tl.where(wins, best_at, at)
        kept, kept_at = tl.where(wins, next_top, runner), tl.where(wins, next_at, runner_at)
        ahead = kept > lost
        runner, runner_at = tl.where(ahead, kept, lost), tl.where(ahead, kept_at, lost_at)
        best, best_at = tl.where(wins, top, best), tl.where(wins, at, best_at)
    # products chose the two; their distances are taken anew from differences
    near_square = tl.zeros([BM], dtype=tl.float32)
    far_square = tl.zeros([BM], dtype=tl.float32)
    for c in tl.static_range(D // BD):
        column = c * BD + tl.arange(0, BD)
        mask = inside[:, None] & (column < d)[None, :]
        x = tl.load(X + i[:, None] * d + column[None, :], mask=mask, other=0.0)
        to_best = x - tl.load(
            centers + best_at[:, None] * d + column[None, :], mask=mask, other=0.0
        )
        to_next = x - tl.load(
            centers + runner_at[:, None] * d + column[None, :], mask=mask, other=0.0
        )
        near_square += tl.sum(to_best * to_best, axis=1)
        far_square += tl.sum(to_next * to_next, axis=1)
    tl.store(first + i, best_at, mask=inside)
    tl.store(second + i, runner_at, mask=inside)
    tl.store(near + i, near_square, mask=inside)
    tl.store(far + i, far_square, mask=inside)


def nearest_two(X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """First, second (int32) and both squared distances (float32); at least two centres."""
    n, d = X.shape
    k = len(centers)
    width = padded_width(d)
    k_padded = -(-k // TILE) * TILE
    scale = safe_scale(max(largest(X), largest(centers)))
    table = torch.zeros((k_padded, width), dtype=torch.float64, device=X.device)
    table[:k, :d] = centers.to(torch.float64) * scale
    high = table.to(torch.float16)
    low = (table - high).to(torch.float16)
    half = torch.full((k_padded,), float("inf"), dtype=torch.float32, device=X.device)
    half[:k] = (0.5 * (table[:k] ** 2).sum(dim=1)).to(torch.float32)
    codes = [torch.empty(n, dtype=torch.int32, device=X.device) for _ in range(2)]
    squares = [torch.empty(n, dtype=torch.float32, device=X.device) for _ in range(2)]
    with beside(X):
        _nearest_two[(triton.cdiv(n, TILE),)](
            X.contiguous(), high, low, half, centers.to(X.dtype).contiguous(), *codes, *squares,
            n, k, d, scale,
            D=width, BD=min(width, 64), BM=TILE, BN=TILE, num_warps=8, num_stages=stages(width),
        )  # fmt: skip
    return (*codes, *squares)


@triton.jit
def _code_sums(
    X, order, weight, start, out, d, splits,
    D: tl.constexpr, ROWS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """One program sums a share of one code's rows; nobody else writes there."""
    code, part = tl.program_id(0), tl.program_id(1)
    a, b = tl.load(start + code), tl.load(start + code + 1)
    share = tl.cdiv(b - a, splits)
    lo = a + part * share
    hi = tl.minimum(lo + share, b)
    column = tl.arange(0, D)
    total = tl.zeros([D], dtype=tl.float64)
    for r in range(lo, hi, ROWS):
        at = r + tl.arange(0, ROWS)
        row = tl.load(order + at, mask=at < hi, other=0)
        x = tl.load(
            X + row[:, None] * d + column[None, :],
            mask=(at < hi)[:, None] & (column < d)[None, :],
            other=0.0,
        )
        if WEIGHTED:
            x = x * tl.load(weight + row, mask=at < hi, other=0.0)[:, None]
        total += tl.sum(x, axis=0).to(tl.float64)
    tl.store(out + (code * splits + part).to(tl.int64) * D + column, total)


def code_sums(
    X: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor | None, n_codes: int
) -> torch.Tensor:
    """(n_codes, d) float64: sums of rows by code, weighted if asked.

    Rows are brought into the order of their codes by index alone, so no two programs add to the
    same place.
    """
    d = X.shape[1]
    codes = codes.to(torch.int16 if n_codes <= 1 << 15 else torch.int32)  # sorted by their bits
    order = torch.argsort(codes)
    counts = torch.bincount(codes, minlength=n_codes)
    start = torch.zeros(n_codes + 1, dtype=torch.int64, device=X.device)
    start[1:] = torch.cumsum(counts, 0)
    width = triton.next_power_of_2(d)
    splits = max(1, min(64, 4096 // max(1, n_codes)))
    out = torch.empty((n_codes, splits, width), dtype=torch.float64, device=X.device)
    given = X if weights is None else weights.to(X.dtype).contiguous()
    with beside(X):
        _code_sums[(n_codes, splits)](
            X.contiguous(), order, given, start, out, d, splits,
            D=width, ROWS=32, WEIGHTED=weights is not None,
        )  # fmt: skip
    return out.sum(dim=1)[:, :d]


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
