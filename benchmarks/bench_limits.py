"""What share of the machine's own speed does the pass over all distances reach?

A silhouette of n objects needs each of n²/2 distances once: n²d operations for the products, n²/2
roots, and 2M additions per distance. The rates of matrix products and of roots are measured in the
same run on as many threads; the limit is products and roots at these rates, nothing else.
Data are read and written once per block (8nd bytes in, 8nΣK out), which is next to nothing.
"""

from __future__ import annotations

import sys
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


def root_rate(dtype: type, threads: int) -> float:
    """Square roots per second in blocks as large as the engine's, all threads together."""
    tables = [np.full((BLOCK, BLOCK), 2.0, dtype) for _ in range(threads)]

    def roots(table: np.ndarray) -> None:
        for _ in range(20):
            np.sqrt(table, out=table)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(roots, tables))
        best = min(seconds(lambda: list(pool.map(roots, tables))) for _ in range(5))
    return threads * 20 * BLOCK**2 / best


def main() -> int:
    threads = int(machine()["cores"])
    met = []
    for dtype in (np.float64, np.float32):
        products, roots = product_rate(dtype, threads), root_rate(dtype, threads)
        for m in PARTITIONS:
            for d in DIMENSIONS:
                met.append(_measure(dtype, d, m, products, roots))
    return 0 if all(met) else 1


def _measure(dtype: type, d: int, m: int, products: float, roots: float) -> bool:
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, K, N) for _ in range(m)]
    X = (rng.normal(size=(N, d)) + rng.normal(size=(K, d))[labels[0]]).astype(dtype)
    n = N if m == 1 else N // 4
    X, labels = X[:n], [y[:n] for y in labels]
    few = slice(0, 2_000)
    one = ws.silhouette_score(X[few].astype(np.float64), labels[0][few])
    if abs(ws.silhouette_score(X[few], labels[0][few]) - one) > 1e-5:
        raise SystemExit("the timed type must give the silhouette of float64")
    best = min(
        seconds(lambda: ws.score_partitions(X, labels, ["silhouette"])) for _ in range(REPEATS)
    )
    operations, distances = n**2 * d, n**2 / 2
    limit = operations / products + distances / roots
    return report(
        f"share of the limit: silhouette of {m} partition{'s' if m > 1 else ''}, "
        f"{n:,} × {d}, {dtype.__name__}",
        100 * limit / best,
        baseline="matrix products and roots alone, at the rates measured in this run",
        unit=" %",
        operations=operations,
        distances=distances,
        additions=2 * m * distances,
        seconds=best,
        limit_s=limit,
        gemm_gflops=products / 1e9,
        share_of_gemm=operations / best / products,
        roots_per_s=roots,
        headline=m == 1 and d == 64,
        seed=0,
    )


if __name__ == "__main__":
    sys.exit(main())
