"""How does the cost of a silhouette grow with n, d, K and the number of partitions M?

Each is doubled several times, the others fixed; the slope of log time over log size is the
exponent. Processor time of one thread, so that what else the machine does matters little.
"""

from __future__ import annotations

import sys

import numpy as np
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import processor_seconds, report

LEAST, MOST = 3, 10  # repeats: more for short calls
# name → sizes, and the exponent that is allowed: what the algorithm has, and a little for caches
SWEEPS = {
    "n": ((5_000, 10_000, 20_000, 40_000), 2.1),
    "d": ((16, 32, 64, 128, 256), 1.1),
    "K": ((5, 10, 20, 40, 80, 160), 0.5),
    "M": ((1, 2, 4, 8, 16, 32), 1.1),
}
FIXED = {"n": 6_000, "d": 32, "K": 20, "M": 1}
COSINE = (25_000, 50_000, 100_000, 200_000)


def cost(index: str, n: int, d: int, K: int, M: int) -> float:
    """Least processor time of a few calls."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, K, n) for _ in range(M)]
    X = rng.normal(size=(n, d)) + rng.normal(size=(K, d))[labels[0]]

    def call():
        return ws.score_partitions(X, labels, [index], n_jobs=1)

    times = [processor_seconds(call) for _ in range(LEAST)]
    more = int(min(MOST, 1.0 / max(times)))
    return min([*times, *(processor_seconds(call) for _ in range(more))])


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def check() -> None:
    """Grown data must still be scored right: twice the same objects score the same."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 400)
    X = rng.normal(size=(400, 3)) + 4 * rng.normal(size=(5, 3))[y]
    weights = np.full(400, 2.0)
    twice = ws.silhouette_score(np.vstack([X, X]), np.hstack([y, y]))
    weighted = ws.silhouette_score(X, y, sample_weight=weights)
    if abs(twice - weighted) > 0.05:
        raise SystemExit(f"doubled data must score about the same, got {twice} and {weighted}")


def main() -> int:
    check()
    met = []
    with threadpool_limits(1):
        cost("silhouette", 1_000, 8, 4, 1)
        for name, (sizes, limit) in SWEEPS.items():
            times = [cost("silhouette", **(FIXED | {name: size})) for size in sizes]
            others = ", ".join(f"{k} = {v:,}" for k, v in FIXED.items() if k != name)
            met.append(_report(f"silhouette: exponent of {name} ({others})", sizes, times, limit))
        times = [cost("silhouette_cosine", n, 32, 20, 1) for n in COSINE]
        met.append(_report("cosine silhouette: exponent of n (d = 32, K = 20)", COSINE, times, 1.2))
    return 0 if all(met) else 1


def _report(question: str, sizes: tuple[int, ...], times: list[float], limit: float) -> bool:
    return report(
        question,
        exponent(sizes, times),
        baseline="the same at half the size",
        target=limit,
        unit="",
        smaller_is_better=True,
        sizes=sizes,
        seconds=times,
        last_doubling=float(np.log2(times[-1] / times[-2])),
        seed=0,
    )


if __name__ == "__main__":
    sys.exit(main())
