"""Torch tensors on an accelerator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep.compute.data.opening import Space, code_columns, host
from wellsep.compute.engine.kernel_choice import choose
from wellsep.compute.engine.threads import TENSOR_ROWS, effective_jobs
from wellsep.compute.kmeans.nearest_centres import (
    DEVICE_BLOCK,
    Nearest,
    NearestTwo,
    positive,
    row_blocks,
    tensor_code_sums,
    tensor_nearest,
    tensor_nearest_two,
)
from wellsep.compute.metrics.table import Prepared, find, rows_of, squares


class DeviceSpace(Space):
    """A torch tensor on an accelerator, with the passes of ``compute/engine/device``."""

    on_device = True
    one_caller = True
    block_rows = TENSOR_ROWS
    most_rows = 1 << 20

    @cached_property
    def xp(self) -> Any:
        from array_api_compat import array_namespace

        return array_namespace(self.X)

    @property
    def device(self) -> Any:
        from array_api_compat import device

        return device(self.X)

    @property
    def host_jobs(self) -> int:
        return effective_jobs(None)

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

    def on_host(self, metric: Any = "euclidean") -> Prepared:
        key = (find(metric).name, "host")
        if key not in self._views:
            copy = Space(host(self.X), self.n_jobs, origin=self.shift, unit=self.unit)
            self._views[key] = copy.prepared(metric, wide=True)
        return self._views[key]

    def asarray(self, values: np.ndarray, dtype: Any = None) -> Any:
        return self.xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def add(self, total: Any, part: Any) -> None:
        total += self.xp.astype(part, self.xp.float64)

    def member_sums(self, members: sp.csr_array, rows: Any) -> np.ndarray:
        xp = self.xp
        dense = self.asarray(members.toarray(), dtype=xp.float64)
        return host(dense.T @ xp.astype(rows, xp.float64))

    def squares_to(self, rows: Any, points: np.ndarray) -> np.ndarray:
        near = rows_of(self.asarray(points), xp=self.xp)
        return host(squares(rows_of(rows, xp=self.xp), near, self.xp))

    def squares_to_own(
        self, rows: Any, keep: Any, points: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        xp = self.xp
        if not isinstance(keep, slice):
            rows = xp.take(rows, self.asarray(np.flatnonzero(keep)), axis=0)
        gap = rows - xp.take(self.asarray(points), self.asarray(codes.astype(np.int64)), axis=0)
        return host(xp.sum(gap * gap, axis=1))

    def beside(self, values: np.ndarray) -> Any:
        return self.asarray(values, dtype=self.X.dtype)

    def narrow(self, values: Any) -> Any:
        return self.xp.astype(values, self.X.dtype)

    def take(self, rows: np.ndarray) -> Any:
        return self.xp.take(self.X, self.asarray(rows.astype(np.int64)), axis=0)

    def dense(self, rows: np.ndarray) -> np.ndarray:
        return host(self.take(rows)).astype(np.float64)

    def norms(self) -> Any:
        xp, X = self.xp, self.X
        blocks = row_blocks(self.n, self.d, DEVICE_BLOCK)
        return xp.concat([xp.sum(X[rows, :] * X[rows, :], axis=1) for rows in blocks])

    def nearest(self, centers: np.ndarray, norms: Any = None) -> Nearest:
        norms = self.norms() if norms is None else norms
        return choose(tensor_nearest, self.X, len(centers))(self, centers, norms)

    def nearest_two(self, centers: np.ndarray, norms: Any = None) -> NearestTwo:
        norms = self.norms() if norms is None else norms
        return choose(tensor_nearest_two, self.X)(self, centers, norms)

    def center_squares(self, centers: np.ndarray, norms: Any) -> Any:
        own = self.beside(np.einsum("ij,ij->i", centers, centers)[:, None])
        return positive(norms[None, :] - 2.0 * (self.beside(centers) @ self.X.T) + own, self.xp)

    def own_squares(self, centers: np.ndarray, codes: Any, norms: Any, zero: Any) -> Any:
        xp, near, parts = self.xp, self.beside(centers), []
        for rows in row_blocks(self.n, self.d, DEVICE_BLOCK):
            gap = self.X[rows, :] - xp.take(near, codes[rows], axis=0)
            parts.append(xp.astype(xp.sum(gap * gap, axis=1), xp.float64))
        squares = xp.concat(parts)
        return squares if zero is None else squares + xp.astype(zero, xp.float64)

    def code_sums(self, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
        return choose(tensor_code_sums, self.X)(self, *code_columns(codes, weights), n_codes)

    def running_sum(self, values: Any) -> Any:
        return self.xp.cumulative_sum(values)

    def own_pass(self, reference: Callable[..., Any]) -> Callable[..., Any]:
        from wellsep.compute.engine.device.passes import PASSES

        return PASSES.get(reference, reference)

    def code_masses(self, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
        given = None if weights is None else self.xp.astype(weights, self.xp.float64)
        return host(self.xp.bincount(codes, given, n_codes)).astype(np.float64)
