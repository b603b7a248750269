"""Torch tensors on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from array_api_compat import array_namespace, device

from wellsep._threads import TENSOR_ROWS, budget_bytes, cut_rows, effective_jobs, row_blocks
from wellsep.compute.data.rows import Space, host
from wellsep.compute.kernels import load
from wellsep.compute.kernels.triton_use import fused_usable
from wellsep.compute.kmeans.nearest_centres import DEVICE_BLOCK, Nearest, NearestTwo
from wellsep.compute.metrics.row_preparation import Prepared
from wellsep.compute.metrics.squares import rows_of, squares
from wellsep.compute.metrics.table import find


class DeviceSpace(Space):
    """A torch tensor on an accelerator, with the passes of ``compute/engine/device``."""

    on_device = True
    one_caller = True
    block_rows = TENSOR_ROWS
    most_rows = 1 << 20
    table_bytes = np.inf

    @cached_property
    def xp(self) -> Any:
        return array_namespace(self.X)

    @property
    def device(self) -> Any:
        return device(self.X)

    @property
    def host_jobs(self) -> int:
        return effective_jobs(None)

    @cached_property
    def budget_factor(self) -> float:
        """1 for 32 GiB: with the default working_memory a block takes a 32nd of the card."""
        if self.device.type != "cuda":
            return 1.0
        return torch.cuda.get_device_properties(self.device).total_memory / 2**35

    @cached_property
    def shift(self) -> np.ndarray:
        if self.origin is not None:
            return self.origin
        total = np.zeros(self.d)
        for rows in row_blocks(self.n, self.d, DEVICE_BLOCK):
            total += host(self.xp.sum(self.xp.astype(self.X[rows, :], self.xp.float64), axis=0))
        return total / self.n

    @cached_property
    def centred(self) -> Any:
        xp, shift, parts = self.xp, self.asarray(self.shift), []
        for rows in row_blocks(self.n, self.d, DEVICE_BLOCK):
            wide = xp.astype(self.X[rows, :], xp.float64) - shift
            parts.append(xp.astype(wide, self.X.dtype))
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def centred_rows(self, rows: slice) -> Any:
        return self.centred[rows, :]

    def on_host(self, metric: Any = "euclidean", *, sparse: bool = False) -> Prepared:
        key = (find(metric).name, "host")
        if key not in self._views:
            copy = Space(host(self.X), self.n_jobs, origin=self.shift, unit=self.unit)
            self._views[key] = copy.prepared(metric, wide=True)
        return self._views[key]

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        if torch.is_tensor(values):
            return values.to(device=self.device, dtype=dtype)
        return self.xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def cluster_sums(
        self, values: Any, codes: Any, n_clusters: np.ndarray, weights: Any = None
    ) -> Any:
        """Also of ``values`` (M, b, e): (M, K, e), for partitions of equally many clusters."""
        # A product adds in the same order every time, as atomic additions would not. Memberships
        # are dense: they are made for some of the rows at a time.
        codes, total = self.index(codes), None
        weights = None if weights is None else self.asarray(weights)
        rows_of_budget = self.budget_factor * budget_bytes() / (16 * int(n_clusters.sum()))
        for rows in cut_rows(codes.shape[1], max(256, int(rows_of_budget))):
            weight = None if weights is None else weights[rows]
            members = self.memberships(codes[:, rows], n_clusters, weight, torch.float64, False)
            if values.ndim == 3:
                members = members.unflatten(0, (len(codes), -1))
            added = summed_members(members, values[..., rows, :].to(torch.float64))
            total = added if total is None else total + added
        return total

    def partition_sums(
        self,
        values: Any,
        codes: Any,
        n_clusters: np.ndarray,
        weights: Any = None,
        groups: np.ndarray | None = None,
        n_groups: int = 1,
    ) -> Any:
        if values.ndim == 3:
            return self.cluster_sums(values, codes, n_clusters, weights).flatten(0, 1)
        values = values if weights is None else values * self.asarray(weights)
        codes = self.index(codes)
        table = member_table(codes, n_clusters, codes.shape[1], torch.float64, values)
        if groups is None:
            return table.sum(dim=1)
        one_hot = torch.nn.functional.one_hot(self.index(groups), n_groups).to(torch.float64)
        return (table @ one_hot).T

    def memberships(
        self, codes: Any, n_clusters: np.ndarray, weights: Any, dtype: Any, sparse: bool
    ) -> Any:
        table = member_table(self.index(codes), n_clusters, codes.shape[1], dtype)
        return table if weights is None else table * self.asarray(weights, dtype=dtype)

    def partition_batches(self, n_clusters: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        starts = np.cumsum(n_clusters) - n_clusters
        for k in np.unique(n_clusters):
            which = np.flatnonzero(n_clusters == k)
            every = len(which) == len(n_clusters)
            clusters = (starts[which][:, None] + np.arange(k)).reshape(-1)
            yield which, slice(None) if every else clusters

    def index(self, numbers: np.ndarray) -> Any:
        return self.asarray(numbers).to(torch.int64)

    def squares_to(self, rows: Any, points: np.ndarray) -> Any:
        near = rows_of(self.asarray(points), xp=self.xp)
        return squares(rows_of(rows, xp=self.xp), near, self.xp)

    def beside(self, values: np.ndarray) -> Any:
        return self.asarray(values, dtype=self.X.dtype)

    def narrow(self, values: Any) -> Any:
        return self.xp.astype(values, self.X.dtype)

    def norms(self) -> Any:
        xp, X = self.xp, self.X
        blocks = row_blocks(self.n, self.d, DEVICE_BLOCK)
        return xp.concat([xp.sum(X[rows, :] * X[rows, :], axis=1) for rows in blocks])

    def nearest(self, centers: np.ndarray, norms: Any = None) -> Nearest:
        if len(centers) > 1 and fused_usable(self.X):
            nearest = self.nearest_two(centers)
            return Nearest(nearest.first, nearest.near)
        xp, norms = self.xp, self.norms() if norms is None else norms
        parts = [
            (xp.argmax(products, axis=1), xp.max(products, axis=1))
            for products in self._products(centers)
        ]
        first, best = (xp.concat(column) for column in zip(*parts, strict=True))
        return Nearest(first, positive(norms - 2.0 * best, xp))

    def nearest_two(self, centers: np.ndarray, norms: Any = None) -> NearestTwo:
        if fused_usable(self.X):
            kernels = load("wellsep.compute.kernels.triton_nearest")
            return NearestTwo(*kernels.nearest_two(self.X, self.beside(centers)))
        xp, norms = self.xp, self.norms() if norms is None else norms
        codes = xp.arange(len(centers), device=self.device)[None, :]
        parts: list[tuple[Any, ...]] = []
        for products in self._products(centers):
            index = xp.argmax(products, axis=1)
            best = xp.max(products, axis=1)
            struck = xp.full_like(products, -float("inf"))
            rest = xp.where(codes == index[:, None], struck, products)
            parts.append((index, xp.argmax(rest, axis=1), best, xp.max(rest, axis=1)))
        first, second, *both = (xp.concat(column) for column in zip(*parts, strict=True))
        near, far = (positive(norms - 2.0 * best, xp) for best in both)
        return NearestTwo(first, second, near, far)

    def _products(self, centers: np.ndarray) -> Iterator[Any]:
        """Blocks of xᵀμ_k − ½‖μ_k‖², greatest for the nearest centre."""
        columns = self.beside(np.ascontiguousarray(centers.T))
        half = self.beside(0.5 * np.einsum("ij,ij->i", centers, centers))
        for rows in row_blocks(self.n, len(centers), DEVICE_BLOCK):
            yield self.X[rows, :] @ columns - half

    def center_squares(self, centers: np.ndarray, norms: Any) -> Any:
        lengths = self.beside(np.einsum("ij,ij->i", centers, centers)[:, None])
        return positive(norms[None, :] - 2.0 * (self.beside(centers) @ self.X.T) + lengths, self.xp)

    def own_squares(self, centers: np.ndarray, codes: Any, norms: Any, zero: Any) -> Any:
        xp, near, parts = self.xp, self.beside(centers), []
        for rows in row_blocks(self.n, self.d, DEVICE_BLOCK):
            gap = self.X[rows, :] - xp.take(near, codes[rows], axis=0)
            parts.append(xp.astype(xp.sum(gap * gap, axis=1), xp.float64))
        squares = xp.concat(parts)
        return squares if zero is None else squares + xp.astype(zero, xp.float64)

    def code_sums(self, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
        fused, total = fused_usable(self.X), 0.0
        for m, labels in enumerate(codes.reshape(self.n, -1).T):
            weight = None if weights is None else weights.reshape(self.n, -1)[:, m]
            if fused:
                kernels = load("wellsep.compute.kernels.triton_nearest")
                total = total + kernels.code_sums(self.X, labels, weight, n_codes)
            else:
                total = total + self.cluster_sums(self.X, labels[None], np.array([n_codes]), weight)
        return host(total)


def positive(squares: Any, xp: Any) -> Any:
    """Squares that rounding left below zero as zeros."""
    return xp.where(squares > 0.0, squares, xp.zeros_like(squares))


def member_table(
    codes: torch.Tensor, n_clusters: np.ndarray, width: int, dtype: Any, values: Any = 1.0
) -> torch.Tensor:
    """(ΣK, width) memberships of all partitions side by side; ``codes`` (M, n), n ≤ width.

    An object that is not counted goes to a row that is cut off.
    """
    clusters = int(n_clusters.sum())
    first = torch.as_tensor(np.cumsum(n_clusters) - n_clusters, device=codes.device)
    place = torch.where(codes >= 0, codes + first[:, None], clusters)
    table = torch.zeros((clusters + 1, width), dtype=dtype, device=codes.device)
    table.scatter_(0, place, values)
    return table[:clusters]


def summed_members(members: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """(..., K, e) ``members`` (..., K, b) @ ``values`` (..., b, e); 0 · NaN adds nothing."""
    sums = members @ values
    if bool(sums.isnan().any()):
        unknown = values.isnan()
        sums = members @ values.masked_fill(unknown, 0.0)
        sums[members @ unknown.to(members.dtype) > 0] = torch.nan
    return sums


def to_device(values: Any, X: torch.Tensor, dtype: Any = torch.float64) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values)).to(X.device).to(dtype)


def row_parts(n: int, bytes_per_row: float, *, least: int = 256) -> Iterator[slice]:
    """Consecutive rows that fit the budget."""
    return row_blocks(n, bytes_per_row, budget_bytes(), least)
