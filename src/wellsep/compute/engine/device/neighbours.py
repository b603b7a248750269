"""The nearest neighbours of objects on the device where they lie, never an n × n matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep.compute.data.device_rows import row_parts, to_device
from wellsep.compute.data.rows import host
from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.metrics.squares import Rows, squares

SPARE = 2  # groups beyond k: what the last of them holds bounds all that was not looked at


class NearestObjects(NamedTuple):
    """The k nearest of some objects; inf where there are fewer."""

    distance: torch.Tensor  # (b, k) float64, rising, from differences
    position: torch.Tensor  # (b, k)
    unseen: torch.Tensor  # (b,) nothing that was not looked at is nearer than this


class Search:
    """Searches among n objects; ``fused`` where the card has a kernel for their type."""

    def __init__(self, X: torch.Tensor, fused: bool) -> None:
        self.X, self.fused = X, fused  # (n, d) float64, near the origin
        self.square = (X * X).sum(dim=1)
        self.reach = 2 * float(self.square.max())
        if fused:
            self.split = load("wellsep.compute.kernels.triton_nearest").prepare(X)

    def nearest(
        self, rows: torch.Tensor, k: int, reach: torch.Tensor | None = None
    ) -> NearestObjects:
        """Of the objects before each row's ``reach`` (b,), all by default, itself left out."""
        limits = torch.full_like(rows, len(self.X)) if reach is None else reach
        # bytes a row: a few copies of the minima of groups of 64, or of the whole table
        n = len(self.X)
        look, width = (self._groups, 4 * 3 * (n // 64 + 1)) if self.fused else (self._table, 32 * n)
        width = max(width, 8 * 4 * (k + SPARE) * 64 * self.X.shape[1])
        parts = [look(rows[some], k, limits[some]) for some in row_parts(len(rows), width, least=1)]
        return NearestObjects(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _slack(self, eps: float) -> float:
        return 2 * (self.X.shape[1] ** 0.5 + 8) * eps * self.reach

    def _groups(self, rows: torch.Tensor, k: int, limits: torch.Tensor) -> NearestObjects:
        """The groups that come nearest, and the nearest of their members."""
        kernels = load("wellsep.compute.kernels.triton_nearest")
        minima = kernels.group_minima(self.split, rows, limits, len(self.X))
        g = min(k + SPARE, minima.shape[1])
        values, groups = minima.topk(g, dim=1, largest=False)
        groups = groups.sort(dim=1).values
        candidates = groups[:, :, None] * kernels.GROUP
        candidates = candidates + torch.arange(kernels.GROUP, device=rows.device)
        bound = values[:, -1].to(torch.float64) - self._slack(2.0**-21)
        if g == minima.shape[1]:
            bound = torch.full_like(bound, torch.inf)
        return self._closest(rows, k, limits, candidates.reshape(len(rows), -1), bound)

    def _table(self, rows: torch.Tensor, k: int, limits: torch.Tensor) -> NearestObjects:
        """A block of plain products; one more than asked for bounds the others."""
        table = squares(Rows(self.X[rows], self.square[rows]), Rows(self.X, self.square), xp)
        table[torch.arange(len(self.X), device=rows.device) >= limits[:, None]] = torch.inf
        table.scatter_(1, rows[:, None], torch.inf)
        values, candidates = table.topk(min(k + 1, len(self.X)), dim=1, largest=False)
        bound = values[:, -1] - self._slack(2.0**-52)
        if k + 1 > len(self.X):
            bound = torch.full_like(bound, torch.inf)
        return self._closest(rows, k, limits, candidates.sort(dim=1).values, bound)

    def _closest(
        self,
        rows: torch.Tensor,
        k: int,
        limits: torch.Tensor,
        candidates: torch.Tensor,
        bound: torch.Tensor,
    ) -> NearestObjects:
        """The k nearest of ``candidates`` (b, c), which rise in every row: of equals the first.

        No square of what was not looked at lies below ``bound`` (b,).
        """
        positions = candidates.clamp(max=len(self.X) - 1)
        gap = self.X[positions]  # (b, c, d)
        gap -= self.X[rows][:, None]
        distance = gap.square_().sum(dim=-1).sqrt_()
        distance[(candidates >= limits[:, None]) | (candidates == rows[:, None])] = torch.inf
        k = min(k, candidates.shape[1])
        order = distance.argsort(dim=1, stable=True)[:, :k]
        unseen = bound.clamp(min=0).sqrt()
        return NearestObjects(distance.gather(1, order), positions.gather(1, order), unseen)


def neighbours_on_device(X: Any, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(m, k) indices and float64 distances on the host, of the given rows of a tensor."""
    wide = X.to(torch.float64)
    search = Search(wide - wide.mean(dim=0), fused_usable(X))
    wanted = to_device(rows, X, torch.int64)
    distance, position, unseen = search.nearest(wanted, k)
    # Where rounding might have hidden a neighbour, the tight search decides.
    doubtful = (distance[:, -1] > unseen).nonzero()[:, 0] if search.fused else wanted[:0]
    if len(doubtful):
        search.fused = False
        distance[doubtful], position[doubtful], _ = search.nearest(wanted[doubtful], k)
    return host(position).astype(np.intp), host(distance)


def prefix_search(
    members: torch.Tensor, center: np.ndarray, reach: np.ndarray, fused: bool
) -> Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, k) → distances, positions and a bound, as ``support`` asks for them: among the
    members of a cluster before each one's reach."""
    wide = members.to(torch.float64) - to_device(center, members)
    search = Search(wide, fused)
    limits = to_device(reach, members, torch.int64)

    def nearest(rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        objects = to_device(rows, members, torch.int64)
        distance, position, unseen = search.nearest(objects, k, limits[objects])
        if distance.shape[1] == k:
            unseen = torch.minimum(unseen, distance[:, -1])
        position = torch.where(torch.isinf(distance), len(members), position)
        return host(distance), host(position).astype(np.intp), host(unseen)

    return nearest
