"""One space made ready for work: what X is, and its rows as a metric wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks import is_torch
from wellsep.compute.engine import budget_bytes, effective_jobs
from wellsep.compute.metrics import Prepared, find, unit_rows


@dataclass(frozen=True, eq=False)
class Space:
    """The n × d data of one space, in its own array library.

    Attributes
    ----------
    X : array of shape (n, d)
        As given, or moved to ``device``.
    xp : module
        Its array-API namespace; NumPy for sparse matrices.
    kind : {"numpy", "sparse", "tensor"}
    """

    X: Any
    xp: Any
    kind: str
    n_jobs: int
    _views: dict = field(default_factory=dict)
    origin: np.ndarray | None = None  # takes the place of the mean in ``shift``

    @property
    def host_jobs(self) -> int:
        """Threads for work that is done on the host whatever X is."""
        return effective_jobs(None) if self.kind == "tensor" else self.n_jobs

    @property
    def on_device(self) -> bool:
        """Whether X is a torch tensor on an accelerator: what follows from it stays there."""
        return on_device(self.X)

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def shift(self) -> np.ndarray:
        """What was subtracted before Euclidean work: the mean in float64; 0 for sparse data."""
        if self.origin is not None:
            return self.origin
        if self.kind == "sparse":
            return np.zeros(self.d)
        if self.kind == "numpy":
            return self.X.mean(axis=0, dtype=np.float64)
        xp = self.xp
        return host(xp.mean(xp.astype(self.X, xp.float64), axis=0))

    @cached_property
    def centred(self) -> Any:
        """X minus its mean: dot products of data far from the origin would cancel."""
        if self.kind == "sparse":
            return self.X
        if self.kind == "numpy":
            return (self.X - self.shift).astype(self.X.dtype, copy=False)
        shift = self.asarray(self.shift)
        wide = self.xp.astype(self.X, self.xp.float64) - shift
        return self.xp.astype(wide, self.X.dtype)

    def prepared(self, metric: Any, *, wide: bool = False) -> Prepared:
        """The rows as a metric wants them, made once; in float64 with ``wide``."""
        entry = find(metric)
        key = (entry.name, wide or self.X.dtype == self.xp.float64)
        if key not in self._views:
            self._views[key] = entry.prepare(self, wide)
        return self._views[key]

    def on_host(self, metric: Any = "euclidean") -> Prepared:
        """The prepared rows in float64 on the host, for exact work on single distances."""
        self.refuse_sparse()
        if self.kind == "numpy":
            return self.prepared(metric, wide=True)
        key = (find(metric).name, "host")
        if key not in self._views:
            copy = Space(host(self.X), np, "numpy", self.n_jobs, origin=self.shift)
            self._views[key] = copy.prepared(metric, wide=True)
        return self._views[key]

    def refuse_sparse(self) -> None:
        if self.kind == "sparse":
            raise TypeError(
                "X must be dense where single distances decide, got a sparse matrix; "
                "pass X.toarray() if it fits in memory."
            )

    def unit_rows(self, rows: slice) -> Any:
        """Some rows at length one, in float64: 1 − zz' of single-precision rows would cancel."""
        return unit_rows(self.X[rows, :], self.xp).X

    def asarray(self, values: np.ndarray, dtype: Any = None) -> Any:
        """Host values as an array beside X."""
        if self.kind != "tensor":
            return np.asarray(values, dtype=dtype)
        return self.xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    @property
    def device(self) -> Any:
        from array_api_compat import device

        return device(self.X)

    def row_blocks(self, width: int, copies: int = 3) -> Iterator[slice]:
        """Consecutive rows; ``copies`` float64 tables of ``width`` columns fit the budget."""
        rows = int(budget_bytes() / (8 * max(width, 1) * copies))
        most = 1 << 16 if self.kind != "tensor" else 1 << 20
        rows = max(256, min(rows, self.n, most))
        return (slice(i, min(i + rows, self.n)) for i in range(0, self.n, rows))


def on_device(X: Any) -> bool:
    """Whether X is a torch tensor on an accelerator."""
    return is_torch(X) and X.device.type != "cpu"


def open_space(X: Any, *, device: Any = None, n_jobs: int | None = None) -> Space:
    """Wrap checked data; the only place that asks what X is."""
    if (device is not None and str(device) != "cpu") or (device is not None and is_torch(X)):
        X = _to_torch(X, device)
    if sp.issparse(X):
        return Space(X, np, "sparse", effective_jobs(n_jobs))
    if isinstance(X, np.ndarray):
        return Space(X, np, "numpy", effective_jobs(n_jobs))
    from array_api_compat import array_namespace

    return Space(X, array_namespace(X), "tensor", 1)


def _to_torch(X: Any, device: Any) -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device must be None or 'cpu' without PyTorch, got {device!r}; "
            "install it with: pip install 'wellsep[deep]'."
        ) from None
    if str(device).startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device must be available, got {device!r} and PyTorch sees no CUDA GPU.")
    if sp.issparse(X):
        raise TypeError(f"X must be dense on device {device!r}, got a sparse matrix.")
    return torch.as_tensor(X, device=device)


def host(array: Any) -> np.ndarray:
    """A small result, back as NumPy."""
    from wellsep._checks import to_numpy

    return to_numpy(array)
