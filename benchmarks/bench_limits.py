"""What share of the machine's own speed does the pass over all distances reach?

A silhouette of n objects needs each of n²/2 distances once: n²d operations for the products, n²/2
roots, and for M partitions 2M additions per distance. The rates of matrix products, of roots, and
of additions from the cache (a product with a vector) are measured in the same run on as many
threads; the limit is all three at these rates, nothing else. Memory outside the caches hardly
counts: a block of 500 × 500 distances needs 1000d numbers and leaves 1000ΣK.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import machine, report, seconds

N, K, REPEATS = 16_000, 20, 3
DIMENSIONS = (4, 16, 64, 256)
PARTITIONS = (1, 42)
BLOCK = 500  # as the engine cuts


def product_rate(dtype: type, threads: int) -> float:
    """Operations per second of BLAS on products that fit the caches, all threads together."""
    rng = np.random.default_rng(0)
    A = rng.random((1_000, 1_000)).astype(dtype)
    with threadpool_limits(threads):
        A @ A
        best = min(seconds(lambda: A @ A) for _ in range(10))
    return 2 * 1_000**3 / best


def block_rate(work: Callable[[np.ndarray], object], dtype: type, threads: int) -> float:
    """Entries per second that ``work`` gets through in blocks as large as the engine's."""
    tables = [np.full((BLOCK, BLOCK), 2.0, dtype) for _ in range(threads)]

    def often(table: np.ndarray) -> None:
        for _ in range(20):
            work(table)

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(often, tables))
        best = min(seconds(lambda: list(pool.map(often, tables))) for _ in range(5))
    return threads * 20 * BLOCK**2 / best


def rates(dtype: type, threads: int) -> dict[str, float]:
    ones = np.ones(BLOCK, dtype)
    return {
        "products": product_rate(dtype, threads),
        "roots": block_rate(lambda table: np.sqrt(table, out=table), dtype, threads),
        "additions": block_rate(lambda table: ones @ table, dtype, threads),
    }


def main() -> int:
    threads = int(machine()["cores"])
    met = []
    for dtype in (np.float64, np.float32):
        rate = rates(dtype, threads)
        met += [_measure(dtype, d, m, rate) for m in PARTITIONS for d in DIMENSIONS]
    return 0 if all(met) else 1


def _measure(dtype: type, d: int, m: int, rate: dict[str, float]) -> bool:
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, K, N) for _ in range(m)]
    X = (rng.normal(size=(N, d)) + rng.normal(size=(K, d))[labels[0]]).astype(dtype)
    n = N if m == 1 else N // 2
    X, labels = X[:n], [y[:n] for y in labels]
    few = slice(0, 2_000)
    one = ws.silhouette_score(X[few].astype(np.float64), labels[0][few])
    if abs(ws.silhouette_score(X[few], labels[0][few]) - one) > 1e-5:
        raise SystemExit("the timed type must give the silhouette of float64")
    if m > 1:  # so much work that the compiled additions are loaded
        for _ in range(4):
            ws.score_partitions(X, labels, ["silhouette"])
    best = min(
        seconds(lambda: ws.score_partitions(X, labels, ["silhouette"])) for _ in range(REPEATS)
    )
    operations, distances = n**2 * d, n**2 / 2
    parts = {
        "products": operations / rate["products"],
        "roots": distances / rate["roots"],
        "additions": 2 * m * distances / rate["additions"],
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
        gemm_gflops=rate["products"] / 1e9,
        share_of_gemm=operations / best / rate["products"],
        headline=m == 1 and d == 64,
        seed=0,
    )


if __name__ == "__main__":
    sys.exit(main())
