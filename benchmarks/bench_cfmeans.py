"""What does one iteration of cf-means cost, counted in Lloyd iterations of the same code?"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import report

SIZES = (
    (100_000, 32, 50, np.float64),
    (100_000, 32, 50, np.float32),
    (10_000, 784, 20, np.float64),
    (20_000, 16, 10, np.float64),
)
FEW, MANY, REPEATS, SEED = 2, 10, 7, 0


def data(n: int, d: int, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    means = 1.5 * np.sqrt(32 / d) * rng.normal(size=(80, d))
    return (rng.normal(size=(n, d)) + means[rng.integers(0, 80, n)]).astype(dtype)


def processor_seconds(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def per_iteration(fit: Callable[[int], object]) -> float:
    """Least time of a long fit less that of a short one, over the iterations between them.

    Processor time of one thread: iterations of a millisecond drown in what else the machine does.
    """
    fit(FEW)
    pairs = [
        (processor_seconds(lambda: fit(FEW)), processor_seconds(lambda: fit(MANY)))
        for _ in range(REPEATS)
    ]
    gap = min(long for _, long in pairs) - min(short for short, _ in pairs)
    return max(gap / (MANY - FEW), 1e-9)


def bench(n: int, d: int, k: int, dtype: type) -> None:
    X = data(n, d, dtype)
    start = X[:k].copy()

    def lloyd(count: int) -> ws.KMeans:
        # The compiled loop is off: both sides are the same NumPy code.
        with patch.dict(os.environ, WELLSEP_KERNELS="0"):
            return ws.KMeans(k, init=start, max_iter=count, tol=0.0).fit(X)

    def counterfactual(count: int) -> ws.CFMeans:
        options = {
            "schedule": "oscillate",
            "max_moves": 0,
            "safeguard": False,
            "max_iter": 1,
            "tol": 0.0,
        }
        return ws.CFMeans(k, init=start, n_steps=count, weight=0.5, **options).fit(X)

    if lloyd(MANY).n_iter_ != MANY:
        raise SystemExit("the Lloyd loop must not end before the iterations it is timed for")
    plain, cf = per_iteration(lloyd), per_iteration(counterfactual)
    report(
        f"one cf-means iteration, {np.dtype(dtype).name}, {n:,} × {d}, k = {k}",
        cf / plain,
        baseline="one Lloyd iteration of the same code",
        target=1.6,
        smaller_is_better=True,
        lloyd_ms=1000 * plain,
        cfmeans_ms=1000 * cf,
    )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        for size in SIZES:
            bench(*size)


if __name__ == "__main__":
    main()
