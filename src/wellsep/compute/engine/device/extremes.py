"""Nearest and farthest pairs on the device: bounds for every object, then the pairs themselves.

A pass over all distances finds what each object's nearest and farthest are, up to rounding, in
every partition. The few objects that can still win are compared with all others by differences
in float64: the value is that of the pair, whatever the data's own precision.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep.compute.data.rows import Space, host
from wellsep.compute.engine.device.batches import codes_on_device, row_parts
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.row_preparation import Prepared, square_lengths
from wellsep.compute.metrics.table import Metric, Rows, squares
from wellsep.compute.requests import Task

CANDIDATES = 4096  # objects that are compared with all others; beyond, bounds in float64 are sought
BLOCK = 4096
# Squared distances by name: (M, n), inf where there is none; those of the farthest are negated.
Bounds = dict[str, torch.Tensor]
FARTHEST = "farthest_within"


def squares_on_device(task: Task, metric: Metric, names: set[str]) -> dict[str, np.ndarray]:
    """(M,) squared distances of the deciding pairs of prepared rows."""
    rows = task.space.prepared(metric, wide=True)
    codes = codes_on_device(task)
    found: dict[str, np.ndarray] = {}
    for bounds_of, eps in _ways(task.space, rows):
        left = names - set(found)
        if not left:
            break
        bounds = bounds_of(rows, codes, left)
        found.update(_decide(rows, codes, bounds, eps, last=eps < 1e-12))
    return found


def _ways(space: Space, rows: Prepared) -> list[tuple[Callable[..., Bounds], float]]:
    """From the fastest bounds to the tightest, with the rounding of their products."""
    ways: list[tuple[Callable[..., Bounds], float]] = []
    if fused_usable(space.X) and rows.zero is None:
        ways.append((_fused_bounds, 2.0**-21))
    return [*ways, (block_bounds, 2.0**-52)]


def _fused_bounds(rows: Prepared, codes: torch.Tensor, names: set[str]) -> Bounds:
    from wellsep.compute.kernels.triton_extremes import row_extremes

    return row_extremes(rows.X, codes, names)


def block_bounds(rows: Prepared, codes: torch.Tensor, names: set[str]) -> Bounds:
    """In blocks of plain products, one partition after the other."""
    X, n = rows.X, len(rows.X)
    square = _squares(rows)
    bounds = {
        name: torch.full(codes.shape, torch.inf, dtype=X.dtype, device=X.device) for name in names
    }
    blocks = [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]
    for a in blocks:
        for b in blocks:
            table = squares(Rows(X[a], square[a], at=a), Rows(X[b], square[b], at=b), xp)
            if a == b:
                table.fill_diagonal_(torch.nan)
            for m in range(len(codes)):
                left, right = codes[m, a, None], codes[m, b]
                same = left == right
                for name, best in bounds.items():
                    mask = same & (right >= 0) if "within" in name else ~same & (right >= 0)
                    signed = -table if name == FARTHEST else table
                    kept = torch.where(mask, signed, torch.inf).nan_to_num(torch.inf, torch.inf)
                    best[m, a] = torch.minimum(best[m, a], kept.amin(dim=1))
    for best in bounds.values():
        best[codes < 0] = torch.inf
    return bounds


def _squares(rows: Prepared) -> torch.Tensor:
    return square_lengths(rows.X, rows.zero, xp)


def _decide(
    rows: Prepared, codes: torch.Tensor, bounds: Bounds, eps: float, *, last: bool
) -> dict[str, np.ndarray]:
    """(M,) squared distances; names with too many candidates are left out unless ``last``."""
    reach = 2 * float(_squares(rows).max())
    slack = 2 * (rows.X.shape[1] ** 0.5 + 8) * eps * reach
    found = {}
    for name, best in bounds.items():
        best = best.to(torch.float64)
        lead = best.amin(dim=1, keepdim=True)
        near = (best <= lead + 2 * slack) & torch.isfinite(best)
        if last:
            near = _first_few(near, best)
        elif int(near.sum(dim=1).max()) > CANDIDATES:
            continue
        found[name] = _exact(rows, codes, near, name)
    return found


def _first_few(near: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    if int(near.sum(dim=1).max()) <= CANDIDATES:
        return near
    kept = torch.zeros_like(near)
    order = torch.where(near, best, torch.inf).topk(CANDIDATES, dim=1, largest=False).indices
    return kept.scatter_(1, order, True) & near


def _exact(rows: Prepared, codes: torch.Tensor, near: torch.Tensor, name: str) -> np.ndarray:
    """Candidates against all objects, by differences."""
    X, zero = rows
    m, row = near.nonzero(as_tuple=True)
    squares = torch.empty(len(m), dtype=torch.float64, device=X.device)
    for part in row_parts(len(m), 8.0 * 4 * len(X)):
        one, at = m[part], row[part]
        table = torch.cdist(X[at], X, compute_mode="donot_use_mm_for_euclid_dist").square_()
        if zero is not None:  # each has an axis of its own
            table += zero[at, None].to(table.dtype) + zero.to(table.dtype)
        theirs = codes[one]  # (p, n)
        own = theirs.gather(1, at[:, None])
        same = theirs == own
        same.scatter_(1, at[:, None], "within" not in name)  # no object is its own neighbour
        mask = (same if "within" in name else ~same) & (theirs >= 0)
        far = -torch.inf if name == FARTHEST else torch.inf
        table = torch.where(mask, table, far)
        squares[part] = table.amax(dim=1) if name == FARTHEST else table.amin(dim=1)
    values = np.full(len(codes), -np.inf if name == FARTHEST else np.inf)
    better = np.maximum if name == FARTHEST else np.minimum
    better.at(values, host(m), host(squares))
    return values
