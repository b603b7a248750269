"""Each object's nearest and farthest, in all partitions, in one pass over the distances."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wellsep.compute.triton_pairs import TILE, _products, beside, padded_width, split_rows, stages

SIDE = 64  # of a tile, which stays in registers while all partitions look at it


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
