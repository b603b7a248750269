"""Nearest and farthest pairs on the device, and sums of the smallest and largest distances.

A fused pass over all distances finds how near and far each object's nearest and farthest are, up
to rounding, in every partition. The few objects that can still win are compared with all others by
differences in float64: the value is that of the pair, whatever the data's own precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep.compute.data.device_rows import row_parts
from wellsep.compute.data.rows import host
from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import FAR, about_median, fused_usable
from wellsep.compute.metrics.row_preparation import Prepared, square_lengths
from wellsep.compute.metrics.squares import Rows, squares
from wellsep.compute.metrics.table import Metric, half, root, whole
from wellsep.compute.requests import Task

CANDIDATES = 4096  # objects that are compared with all others; where there are more, all pairs are
ROUNDING = 2.0**-21  # of the fused products
BLOCK = 4096
OCTAVES, BITS = 32, 16  # of the plain histogram: range below the largest distance; bins an octave
FARTHEST = "farthest_within"


def squares_on_device(task: Task, metric: Metric, names: set[str]) -> dict[str, np.ndarray]:
    """(M,) squared distances of the deciding pairs of prepared rows, by name.

    Names with too many candidates are left out, and all where the card has no kernel for the rows.
    """
    rows = task.space.prepared(metric, wide=True)
    if not fused_usable(task.space.X) or rows.zero is not None:
        return {}
    X, codes = rows.X, task.space.asarray(task.partitions.codes)
    bounds = load("wellsep.compute.kernels.triton_extremes").row_extremes(X, codes, names)
    slack = 2 * (X.shape[1] ** 0.5 + 8) * ROUNDING * 2 * float(square_lengths(X, None, xp).max())
    deciding = {}
    for name, best in bounds.items():
        best = best.to(torch.float64)
        near = (best <= best.amin(dim=1, keepdim=True) + 2 * slack) & torch.isfinite(best)
        if int(near.sum(dim=1).max()) <= CANDIDATES:
            deciding[name] = _exact(X, codes, near, name)
    return deciding


def _exact(X: torch.Tensor, codes: torch.Tensor, near: torch.Tensor, name: str) -> np.ndarray:
    """Candidates against all objects, by differences."""
    m, row = near.nonzero(as_tuple=True)
    squares = torch.empty(len(m), dtype=torch.float64, device=X.device)
    for some in row_parts(len(m), 8.0 * 4 * len(X)):
        partition, objects = m[some], row[some]
        table = torch.cdist(X[objects], X, compute_mode="donot_use_mm_for_euclid_dist").square_()
        clusters = codes[partition]  # (p, n)
        cluster = clusters.gather(1, objects[:, None])
        same = clusters == cluster
        same.scatter_(1, objects[:, None], "within" not in name)  # no object is its own neighbour
        mask = (same if "within" in name else ~same) & (clusters >= 0)
        far = -torch.inf if name == FARTHEST else torch.inf
        table = torch.where(mask, table, far)
        squares[some] = table.amax(dim=1) if name == FARTHEST else table.amin(dim=1)
    values = np.full(len(codes), -np.inf if name == FARTHEST else np.inf)
    better = np.maximum if name == FARTHEST else np.minimum
    better.at(values, host(m), host(squares))
    return values


def select_on_device(
    prepared: Prepared,
    counts: np.ndarray,
    *,
    finish: Callable[..., Any],
    fused: bool,
    sortable: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ``counts`` smallest and largest distances between prepared rows (float64).

    Distances are what ``finish`` makes of squared ones. Few of them are sorted. Many are counted in
    bins of their leading bits; those of the bin in which a number of terms ends are taken as spread
    evenly over it, an error of one part in 2¹⁴ of the few distances there.
    """
    X = prepared.X
    pairs = len(X) * (len(X) - 1) // 2
    if pairs <= sortable:
        values = torch.cat(list(_upper(prepared, finish))).sort().values
        rising = np.concatenate([[0.0], host(values.cumsum(0))])
        falling = np.concatenate([[0.0], host(values.flip(0).cumsum(0))])
        return rising[counts], falling[counts]
    # The fused histogram knows squared distances and their roots, and no zero rows.
    fused = fused and finish in (root, whole, half) and prepared.zero is None
    rows, reach = about_median(X) if fused else (X, np.inf)
    if reach <= FAR:
        histogram = load("wellsep.compute.kernels.triton_extremes").histogram
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
                above = torch.triu_indices(len(table), len(table), 1, device=X.device)
                table = table[above[0], above[1]]
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
        bins = ((values.view(torch.int64) >> (52 - BITS)) - base).clamp(0, span - 1)
        count += torch.bincount(bins, minlength=span)
        total += torch.bincount(bins, weights=values, minlength=span)
    bits = (np.arange(span + 1, dtype=np.int64) + base) << (52 - BITS)
    edges = np.maximum(bits, 0).view(np.float64).copy()
    edges[0] = 0.0
    return count, total, edges
