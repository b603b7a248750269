"""Distance sums fused on the GPU: products, root and per-cluster sums stay on the chip.

``sorted_sums`` serves one partition, ``member_sums`` many at once: it writes a chunk of distances
in half precision and multiplies it with the memberships of all clusters by the vendor's library,
which no kernel of ours comes near. What is written is the distance minus a typical one: so rounding
errs by a share of the spread, and sums of thousands do not drift. Never more than a chunk is in
memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from wellsep._threads import budget_bytes
from wellsep.compute.data.device_rows import member_table
from wellsep.compute.kernels.triton_tiles import (
    TILE,
    Split,
    _products,
    beside,
    padded_width,
    split_rows,
    stages,
)

MANY = 500
SAMPLE = 512  # objects whose distances tell the typical one
SHRINK = 2.0**-10  # distances reach 2¹⁵·√D in the scale of the split; so they fit half precision


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


@triton.jit
def _gaps(
    high, low, square, out, rest, first_i, first_j, width, typical,
    D: tl.constexpr, BD: tl.constexpr, T: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    """out[i, j] = distance − typical in half precision, and what that left over."""
    here = tl.program_id(1) * T + tl.arange(0, T)
    column = tl.program_id(0) * T + tl.arange(0, T)
    i, j = first_i + here, first_j + column
    squared = tl.load(square + i)[:, None] + tl.load(square + j)[None, :]
    squared -= 2.0 * _products(high, low, i, j, D, BD, T, T)
    gap = tl.sqrt(tl.maximum(squared, 0.0)) - typical
    gap = tl.where(i[:, None] == j[None, :], -typical, gap)
    at = here.to(tl.int64)[:, None] * width + column[None, :]
    h = gap.to(tl.float16)
    tl.store(out + at, h)
    if LOW:
        tl.store(rest + at, (gap - h.to(tl.float32)).to(tl.float16))


def member_sums(
    X: torch.Tensor, codes: torch.Tensor, n_clusters: np.ndarray, rows_at_once: int
) -> Iterator[tuple[slice, torch.Tensor]]:
    """(rows, (ΣK, b) float64 distance sums) of all partitions; ``codes`` (M, n) int64, -1 where
    not counted.

    Half-precision rounding errs by less than 2⁻¹² of the gap without bias, so the mean over a
    cluster of ``MANY`` errs by less than 6e-6 of a distance; smaller clusters get the rest too.
    """
    n, device = len(X), X.device
    width = padded_width(X.shape[1])
    n_padded = -(-n // TILE) * TILE
    rows = torch.zeros((n_padded, X.shape[1]), dtype=X.dtype, device=device)
    rows[:n] = X
    split = _shrunk(split_rows(rows, width))
    members = member_table(codes, n_clusters, n_padded, torch.float16)
    count = members.sum(dim=1, dtype=torch.float32).to(torch.float64)
    typical = _typical(X, split.scale)
    with_rest = bool(count.min() < MANY)
    side = _side(n_padded, with_rest)
    chunk = torch.empty(side * side, dtype=torch.float16, device=device)
    rest = torch.empty_like(chunk) if with_rest else chunk
    for start in range(0, n_padded, max(TILE, rows_at_once // TILE * TILE)):
        stop = min(start + max(TILE, rows_at_once // TILE * TILE), n_padded)
        total = torch.zeros((len(members), stop - start), dtype=torch.float32, device=device)
        for a in range(start, stop, side):
            b = min(a + side, stop)
            for c in range(0, n_padded, side):
                e = min(c + side, n_padded)
                with beside(X):
                    _gaps[((b - a) // TILE, (e - c) // TILE)](
                        split.high, split.low, split.square, chunk, rest, c, a, b - a, typical,
                        D=width, BD=min(width, 64), T=TILE, LOW=with_rest,
                        num_warps=8, num_stages=stages(width),
                    )  # fmt: skip
                for part in (chunk, rest) if with_rest else (chunk,):
                    table = part[: (e - c) * (b - a)].view(e - c, b - a)
                    total[:, a - start : b - start] += product(members[:, c:e], table)
        sums = total[:, : min(stop, n) - start].to(torch.float64)
        sums += typical * count[:, None]
        sums /= split.scale
        yield slice(start, min(stop, n)), sums


def fused_strips(
    X: Any, codes: Any, n_clusters: np.ndarray, weights: Any, rows_at_once: int, way: str
) -> Iterator[tuple[slice, Any]]:
    """(rows, (ΣK, b) float64 sums) of centred rows, all partitions together or apart.

    ``codes`` (M, n) lie beside X.
    """
    wide_codes = codes.to(torch.int64)
    if way == "together":
        yield from member_sums(X, wide_codes, n_clusters, rows_at_once)
        return
    mass = None if weights is None else torch.as_tensor(weights, device=X.device)
    sums = torch.cat(
        [sorted_sums(X, c, mass, int(k)) for c, k in zip(wide_codes, n_clusters, strict=True)]
    )
    for start in range(0, len(X), rows_at_once):
        rows = slice(start, min(start + rows_at_once, len(X)))
        yield rows, sums[:, rows]


def product(left: torch.Tensor, right: torch.Tensor) -> Any:
    """Half-precision matrices, single-precision sums."""
    return torch.mm(left, right, out_dtype=torch.float32)


def _shrunk(split: Split) -> Split:
    return Split(
        split.high * SHRINK, split.low * SHRINK, split.square * SHRINK**2, split.scale * SHRINK
    )


def _side(n_padded: int, with_rest: bool) -> int:
    """Rows and columns of a chunk: equal pieces of n that fit half the budget."""
    most = math.sqrt(budget_bytes() / (8 if with_rest else 4))
    pieces = math.ceil(n_padded / max(TILE, most))
    return -(-n_padded // (pieces * TILE)) * TILE


def _typical(X: torch.Tensor, scale: float) -> float:
    """The mean distance in a sample, in the split's scale; exact in half precision."""
    some = X[:: max(1, len(X) // SAMPLE)].to(torch.float64)
    return float((torch.cdist(some, some).mean() * scale).to(torch.float16))
