"""One space made ready for work: what X is, how it is cut into blocks, who computes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks import is_torch
from wellsep.compute.metrics import Prepared, find, unit_rows

ROWS = 500  # 2 MB of float64 stay in a core's cache; a power of two would transpose 6× slower
TENSOR_ROWS = 4096  # tensors are worked on by one caller, so fewer and larger blocks


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
    def on_card(self) -> bool:
        """Whether X is a torch tensor on an accelerator: what follows from it stays there."""
        return on_card(self.X)

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
            there = Space(host(self.X), np, "numpy", self.n_jobs, origin=self.shift)
            self._views[key] = there.prepared(metric, wide=True)
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


def on_card(X: Any) -> bool:
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


def budget_bytes() -> float:
    """scikit-learn's ``working_memory``, in bytes."""
    from sklearn import get_config

    return get_config()["working_memory"] * 2**20


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, our own threads share out the blocks, so BLAS must not start its own."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def effective_jobs(n_jobs: int | None) -> int:
    """Threads to use: None asks what BLAS would use (OMP_NUM_THREADS and the like hold)."""
    from joblib import effective_n_jobs

    if n_jobs is not None:
        return effective_n_jobs(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
    return max(1, min([cores or 1, *blas]))


def share_out(jobs: int, task: Callable[..., Any], rounds: Iterator[list]) -> None:
    """Run every round's items at once, one round after the other.

    Items of one round touch different rows, so sums do not depend on the number of threads.
    """
    if jobs == 1:
        with one_blas_thread():
            for items in rounds:
                for item in items:
                    task(*item)
        return
    with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
        for items in rounds:
            for done in [pool.submit(task, *item) for item in items]:
                done.result()


def tournament(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair i < j of blocks once, in rounds of disjoint pairs; first the blocks themselves."""
    yield [(i, i) for i in range(n_blocks)]
    players = list(range(n_blocks + n_blocks % 2))
    for _ in range(len(players) - 1):
        pairs = zip(players[: len(players) // 2], reversed(players), strict=False)
        yield [(min(p), max(p)) for p in pairs if max(p) < n_blocks]
        players = [players[0], players[-1], *players[1:-1]]


def cut(n: int, rows: int, groups: np.ndarray | None = None) -> list[slice]:
    """Consecutive blocks of at most ``rows``; none straddles two of the (sorted) groups."""
    edges = [0, n] if groups is None else [0, *(np.flatnonzero(np.diff(groups)) + 1), n]
    blocks = []
    for a, b in pairwise(edges):
        pieces = -(-(b - a) // rows)
        marks = np.linspace(a, b, pieces + 1).astype(int)
        blocks += [slice(int(i), int(j)) for i, j in pairwise(marks)]
    return blocks
