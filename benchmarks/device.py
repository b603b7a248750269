"""What the graphics card can do, measured in the run that is judged by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

ROOTS_PER_CYCLE = 16  # of one multiprocessor, on NVIDIA cards since Volta


def require_cuda() -> Any:
    """torch, or an end that says why there is nothing to measure."""
    try:
        import torch
    except ImportError:
        raise SystemExit("this benchmark needs PyTorch, which is not installed") from None
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device, and PyTorch sees none")
    return torch


def device_seconds(function: Callable[[], Any], repeats: int = 3, *, warm: bool = True) -> float:
    """Best wall-clock time, everything on the device finished."""
    import torch

    if warm:
        function()
    best = float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def half_precision_rate(size: int = 8192) -> float:
    """Operations per second of a product of half-precision matrices."""
    import torch

    A = torch.randn(size, size, device="cuda").half()
    return 2 * size**3 / device_seconds(lambda: A @ A, 10)


def memory_rate(gigabytes: int = 4) -> float:
    """Bytes per second, read and written, of a copy."""
    import torch

    A = torch.empty(gigabytes << 28, device="cuda")
    B = torch.empty_like(A)
    return 2 * A.nbytes / device_seconds(lambda: B.copy_(A), 10)


def root_rate() -> float:
    """Square roots per second of the special-function units at the card's highest clock."""
    import torch

    card = torch.cuda.get_device_properties(0)
    clock = getattr(card, "clock_rate", 1_980_000) * 1e3
    return ROOTS_PER_CYCLE * card.multi_processor_count * clock
