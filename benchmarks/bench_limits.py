"""What share of the machine's own speed does the pass over all distances reach?

A silhouette of n objects needs each of n²/2 distances once: n²d operations for the products, n²/2
roots, and for M partitions 2M additions per distance. The rates of matrix products, of roots, and
of additions from the cache (a product with a vector) are measured in the same run; the limit is
all three at these rates, nothing else. Memory outside the caches hardly counts: a block of
500 × 500 distances needs 1000d numbers and leaves 1000ΣK. One core, processor time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import processor_seconds, report

N, K, REPEATS = 16_000, 20, 3
DIMENSIONS = (4, 16, 64, 256)
PARTITIONS = (1, 42)
BLOCK = 500  # as the engine cuts


def rate(work: Callable[[], object], amount: float, repeats: int = 20) -> float:
    """Amount per second at the best of a few tries of several calls each."""

    def often() -> None:
        for _ in range(repeats):
            work()

    often()
    return amount * repeats / min(processor_seconds(often) for _ in range(5))


def rates(dtype: type) -> dict[str, float]:
    """What this core does in a second, in blocks as large as the engine's or larger."""
    table, ones = np.full((BLOCK, BLOCK), 2.0, dtype), np.ones(BLOCK, dtype)
    squares = [np.ones((size, size), dtype) for size in (BLOCK, 2 * BLOCK)]
    return {
        "products": max(rate(lambda A=A: A @ A, 2 * len(A) ** 3, 4) for A in squares),
        "roots": rate(lambda: np.sqrt(table, out=table), table.size),
        "additions": rate(lambda: ones @ table, table.size),
    }


def main() -> int:
    met = []
    with threadpool_limits(1):
        for dtype in (np.float64, np.float32):
            best = rates(dtype)
            met += [_measure(dtype, d, m, best) for m in PARTITIONS for d in DIMENSIONS]
    return 0 if all(met) else 1


def _measure(dtype: type, d: int, m: int, speed: dict[str, float]) -> bool:
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, K, N) for _ in range(m)]
    X = (rng.normal(size=(N, d)) + rng.normal(size=(K, d))[labels[0]]).astype(dtype)
    n = N if m == 1 else N // 2
    X, labels = X[:n], [y[:n] for y in labels]
    few = slice(0, 2_000)
    one = ws.silhouette_score(X[few].astype(np.float64), labels[0][few])
    if abs(ws.silhouette_score(X[few], labels[0][few]) - one) > 1e-5:
        raise SystemExit("the timed type must give the silhouette of float64")

    def score() -> object:
        return ws.score_partitions(X, labels, ["silhouette"], n_jobs=1)

    if m > 1:  # so much work that the compiled additions are loaded
        for _ in range(4):
            score()
    best = min(processor_seconds(score) for _ in range(REPEATS))
    operations, distances = n**2 * d, n**2 / 2
    parts = {
        "products": operations / speed["products"],
        "roots": distances / speed["roots"],
        "additions": 2 * m * distances / speed["additions"],
    }
    limit = sum(parts.values())
    return report(
        f"share of the limit: silhouette of {m} partition{'s' if m > 1 else ''}, "
        f"{n:,} × {d}, {dtype.__name__}",
        100 * limit / best,
        baseline="products, roots and additions at the rates measured in this run",
        unit=" %",
        operations=operations,
        distances=distances,
        additions=2 * m * distances,
        seconds=best,
        limit_s=limit,
        limit_parts_s=parts,
        gemm_gflops=speed["products"] / 1e9,
        share_of_gemm=operations / best / speed["products"],
        seed=0,
    )


if __name__ == "__main__":
    sys.exit(main())
