"""How fast are nearest centres against faiss and scikit-learn's predict?

One thread, one run: ``predict`` of both libraries with their checks, and faiss's flat index, which
takes float32 only. Labels are compared first.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import processor_seconds, report

REPEATS = 9


def least(function: object, repeats: int = REPEATS) -> float:
    return min(processor_seconds(function) for _ in range(repeats))  # type: ignore[arg-type]


def bench(dtype: type, d: int, k: int) -> None:
    rng = np.random.default_rng(k + d)
    n = 20_000 if k < 1000 else 8_000
    places = 2 * rng.normal(size=(k, d))
    X = (rng.normal(size=(n, d)) + places[rng.integers(0, k, n)]).astype(dtype)
    start = X[rng.choice(n, k, replace=False)]
    theirs = KMeans(k, init=start, n_init=1, max_iter=1).fit(X)
    model = ws.KMeans(k, init=theirs.cluster_centers_, max_iter=1).fit(X)
    model.cluster_centers_ = theirs.cluster_centers_
    agreed = float(np.mean(model.predict(X) == theirs.predict(X)))
    if agreed < 0.999:
        raise SystemExit(f"labels must agree but for ties, got {agreed:.4f}")
    name = f"{np.dtype(dtype).name}, {n:,} × {d}, K = {k}"
    ours, other = least(lambda: model.predict(X)), least(lambda: theirs.predict(X))
    report(
        f"predict, {name}: time over scikit-learn's",
        ours / other,
        baseline="scikit-learn's KMeans.predict",
        target=1.0,
        smaller_is_better=True,
        agreed=agreed,
        ours_ms=1000 * ours,
        sklearn_ms=1000 * other,
    )
    if dtype is not np.float32 or k < 100:
        return
    try:
        import faiss
    except ImportError:
        print("Skipped faiss: it is not installed (pip install faiss-cpu).")
        return
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(d)
    index.add(np.ascontiguousarray(theirs.cluster_centers_))
    other = least(lambda: index.search(X, 1))
    report(
        f"predict, checks included, {name}: time over faiss",
        ours / other,
        baseline="faiss, flat index",
        target=1.0 if k == 100 else 1.3,
        smaller_is_better=True,
        headline=True,
        ours_ms=1000 * ours,
        faiss_ms=1000 * other,
    )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        for dtype in (np.float32, np.float64):
            for d in (16, 32, 128):
                for k in (10, 100, 1000):
                    bench(dtype, d, k)


if __name__ == "__main__":
    main()
