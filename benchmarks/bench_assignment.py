"""How fast are nearest centres against faiss and scikit-learn's predict?

First one thread, least processor time of interleaved calls: ``predict`` of both libraries with
their checks, and faiss's flat index, which takes float32 only. Labels are compared first. The
limit is 2·n·K·d operations at the rate of a large matrix product of the same run; a product of few
features or few centres does not reach it, because packing its operands and writing n·K numbers
takes longer.

"Compiled" is with numba (extra ``fast``) already loaded, as after a ``CFMeans``; a program that
only predicts loads it once it has computed 10¹⁰ products. "NumPy" is without it.

Then all cores, 20,000 rows, least time on the clock: calls of a few milliseconds, where starting
threads counts. Each library is called 15 times in a row, because OpenMP's threads go on spinning
for a while after a call and would take a core from the other one. The machine must be idle.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import report

REPEATS = 25


def least(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least processor seconds of each way, called in turn."""
    found = dict.fromkeys(ways, np.inf)
    for _ in range(REPEATS):
        for name, function in ways.items():
            begin = time.process_time()
            function()
            found[name] = min(found[name], time.process_time() - begin)
    return found


def product_rate(dtype: type) -> float:
    """Operations a second of a large matrix product."""
    table = np.random.default_rng(0).normal(size=(1024, 1024)).astype(dtype)
    taken = min(least({"product": lambda: table @ table}).values())
    return 2 * 1024**3 / taken


def plain(function: Callable[[], object]) -> Callable[[], object]:
    """The same without compiled kernels."""

    def call() -> object:
        os.environ["WELLSEP_KERNELS"] = "0"
        try:
            return function()
        finally:
            del os.environ["WELLSEP_KERNELS"]

    return call


def in_batches(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least seconds on the clock of each way, called many times in a row."""
    found = dict.fromkeys(ways, np.inf)
    for _ in range(4):
        for name, function in ways.items():
            function(), function()
            for _ in range(15):
                begin = time.perf_counter()
                function()
                found[name] = min(found[name], time.perf_counter() - begin)
    return found


def fitted(dtype: type, n: int, d: int, k: int) -> tuple[np.ndarray, ws.KMeans, KMeans]:
    """Rows, and our model and scikit-learn's with the same centres."""
    rng = np.random.default_rng(k + d)
    places = 2 * rng.normal(size=(k, d))
    X = (rng.normal(size=(n, d)) + places[rng.integers(0, k, n)]).astype(dtype)
    start = X[rng.choice(n, k, replace=False)]
    theirs = KMeans(k, init=start, n_init=1, max_iter=1).fit(X)
    model = ws.KMeans(k, init=theirs.cluster_centers_, max_iter=1).fit(X)
    model.cluster_centers_ = theirs.cluster_centers_
    return X, model, theirs


def bench_cores(dtype: type, d: int, k: int) -> list[bool]:
    X, model, theirs = fitted(dtype, 20_000, d, k)
    ways = predictions(X, model, theirs)
    taken = in_batches(ways)
    facts = {f"{way}_ms": 1000 * seconds for way, seconds in taken.items()}
    cores, name = f" on {os.cpu_count()} cores", f"{np.dtype(dtype).name}, 20,000 × {d}, K = {k}"
    return against_sklearn(cores, name, taken, facts)


def predictions(X: np.ndarray, model: ws.KMeans, theirs: KMeans) -> dict[str, Callable[[], object]]:
    return {
        "compiled": lambda: model.predict(X),
        "numpy": plain(lambda: model.predict(X)),
        "sklearn": lambda: theirs.predict(X),
    }


def against_sklearn(
    cores: str, name: str, taken: dict[str, float], facts: dict[str, float]
) -> list[bool]:
    return [
        report(
            f"predict{cores}, {way}, {name}: time over scikit-learn's",
            taken[way] / taken["sklearn"],
            baseline="scikit-learn's KMeans.predict",
            target=1.0,
            smaller_is_better=True,
            **facts,
        )
        for way in ("compiled", "numpy")
    ]


def bench(dtype: type, d: int, k: int, rate: float) -> list[bool]:
    n = 20_000 if k < 1000 else 8_000
    X, model, theirs = fitted(dtype, n, d, k)
    ways = predictions(X, model, theirs)
    agreed = min(float(np.mean(ways[way]() == theirs.predict(X))) for way in ("compiled", "numpy"))
    if agreed < 0.999:
        raise SystemExit(f"labels must agree but for ties, got {agreed:.4f}")
    faiss = open_faiss(theirs.cluster_centers_) if dtype is np.float32 and k >= 100 else None
    if faiss is not None:
        ways["faiss"] = lambda: faiss.search(X, 1)
    taken = least(ways)
    name = f"{np.dtype(dtype).name}, {n:,} × {d}, K = {k}"
    facts = {f"{way}_ms": 1000 * seconds for way, seconds in taken.items()}
    facts |= {"agreed": agreed, "limit_ms": 1000 * 2 * n * k * d / rate}
    met = against_sklearn("", name, taken, facts)
    if faiss is not None:
        met.append(
            report(
                f"predict, checks included, {name}: time over faiss",
                taken["compiled"] / taken["faiss"],
                baseline="faiss, flat index",
                target=1.0 if k == 100 else 1.3,
                smaller_is_better=True,
                headline=True,
                **facts,
            )
        )
    return met


def open_faiss(centers: np.ndarray) -> object | None:
    try:
        import faiss
    except ImportError:
        print("Skipped faiss: it is not installed (pip install faiss-cpu).")
        return None
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(centers.shape[1])
    index.add(np.ascontiguousarray(centers))
    return index


def main() -> None:
    import numba  # noqa: F401

    warnings.simplefilter("ignore", ConvergenceWarning)
    met = []
    with threadpool_limits(1):
        for dtype in (np.float32, np.float64):
            rate = product_rate(dtype)
            print(f"{np.dtype(dtype).name}: a large product has {rate / 1e9:.0f} Gflop/s.")
            for d in (16, 32, 128):
                for k in (10, 100, 1000):
                    met += bench(dtype, d, k, rate)
    for dtype in (np.float32, np.float64):
        for d in (16, 128):
            for k in (10, 100, 1000):
                met += bench_cores(dtype, d, k)
    print(f"{sum(met)} of {len(met)} targets met.")


if __name__ == "__main__":
    main()
