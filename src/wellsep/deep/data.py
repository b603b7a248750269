"""Input of the networks: a device, and one tensor on it, scaled batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from wellsep._checks.arrays import is_torch
from wellsep._checks.values import check_device

_MAPPED = 2048  # objects that are mapped at once


def choose_device(device: str | torch.device) -> torch.device:
    """The device by name; "auto" is CUDA where there is one."""
    name = check_device(device, auto=True)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = torch.device(name)
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device must be available, got {str(chosen)!r} and no CUDA device was found; "
            "use device='auto' or device='cpu'."
        )
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device must be one of {torch.cuda.device_count()} CUDA device(s), "
            f"got {str(chosen)!r}."
        )
    return chosen


class Scaling(NamedTuple):
    """How raw values become network inputs: (x − shift)·factor.

    Images are mapped to [0, 1] or [−1, 1]. Vectors are centred and divided by one number, so that
    distances keep their proportions.
    """

    shift: np.ndarray  # scalar for images, one per feature for vectors
    factor: float

    @classmethod
    def fitted(cls, X: np.ndarray, *, signed: bool) -> Scaling:
        """The scaling for images of shape (n, channels, height, width) or vectors (n, d)."""
        if X.ndim == 2:
            shift = X.mean(axis=0, dtype=np.float64)
            spread = float(np.sqrt(np.mean((X - shift) ** 2, dtype=np.float64)))
            return cls(shift, 1.0 / spread if spread > 0 else 1.0)
        low, high = (0.0, 255.0) if X.dtype == np.uint8 else (float(X.min()), float(X.max()))
        width = high - low if high > low else 1.0
        if signed:
            return cls(np.array((low + high) / 2), 2.0 / width)
        return cls(np.array(low), 1.0 / width)

    def undo(self, x: np.ndarray) -> np.ndarray:
        return (x / self.factor + self.shift).astype(x.dtype)


class Data:
    """Objects on the device; `data[rows]` is a scaled float32 batch. Bytes stay bytes till then."""

    def __init__(self, X: np.ndarray, scaling: Scaling, device: torch.device) -> None:
        if X.dtype == np.uint8:
            raw = torch.tensor(np.ascontiguousarray(X))  # a copy: X may be read-only
            shift = torch.from_numpy(np.asarray(scaling.shift, dtype=np.float32))
        else:
            raw = torch.from_numpy(np.ascontiguousarray((X - scaling.shift).astype(np.float32)))
            shift = torch.zeros(())
        self.raw = raw.to(device)
        self.shift = shift.to(device)
        self.factor = scaling.factor
        self.device = device

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.raw.shape[1:])

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        return (self.raw[rows].to(torch.float32) - self.shift) * self.factor

    def map(self, function: Callable[[Tensor], Tensor], rows: Tensor | None = None) -> Tensor:
        """`function` of objects, batch by batch in order, without gradients and as float32."""
        count = len(self) if rows is None else len(rows)
        parts = []
        with torch.no_grad():
            for start in range(0, count, _MAPPED):
                part = slice(start, start + _MAPPED)
                parts.append(function(self[part if rows is None else rows[part]]).float())
        return torch.cat(parts)


def to_layout(X: Any) -> np.ndarray:
    """X as (n, d) vectors or (n, channels, height, width) images, bytes or float32/float64."""
    if is_torch(X):
        X = X.detach().cpu().numpy()
    X = np.asarray(X)
    if X.dtype.kind in "biu" and X.dtype != np.uint8:
        X = X.astype(np.float32)
    if X.ndim == 3:
        return X[:, None]
    if X.ndim == 4:
        if X.shape[3] > 4:
            raise ValueError(
                "X must have its channels last, (n, height, width, channels) with at most 4, "
                f"got shape {X.shape}; use X.transpose(0, 2, 3, 1) if they come second."
            )
        return np.moveaxis(X, 3, 1)
    if X.ndim != 2:
        raise ValueError(
            "X must have shape (n, features), (n, height, width) or (n, height, width, channels), "
            f"got {X.ndim} dimension(s)."
        )
    return X


def from_layout(x: np.ndarray, n_dimensions: int) -> np.ndarray:
    """Back from the network's layout to the caller's."""
    if n_dimensions == 3:
        return x[:, 0]
    if n_dimensions == 4:
        return np.moveaxis(x, 1, 3)
    return x


# cuDNN's settings are the process's; while any thread trains they stay deterministic.
_lock = threading.Lock()
_before: list[tuple[bool, bool]] = []  # settings that each thread which trains has found


@contextmanager
def reproducible(device: torch.device, *, one_thread: bool = False) -> Iterator[None]:
    """Settings under which the same seed gives the same result on the same device.

    PyTorch cuts products differently for each number of threads.
    """
    backend = torch.backends.cudnn
    with _lock:
        _before.append((backend.deterministic, backend.benchmark))
        backend.deterministic, backend.benchmark = True, False
    threads = torch.get_num_threads()
    try:
        if not one_thread:
            yield
            return
        torch.set_num_threads(1)
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)
        with _lock:
            found = _before.pop()  # the last to leave takes what the first has found
            if not _before:
                backend.deterministic, backend.benchmark = found
