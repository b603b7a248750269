"""Is KMeans as fast as scikit-learn's at 100,000 × 32 with 50 clusters?"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

import wellsep as ws
from benchmarks.harness import report, time_ratio

N, D, K, SEED = 100_000, 32, 50, 0


def data(dtype: type) -> np.ndarray:
    """Overlapping Gaussians, so that the loop has work to do."""
    rng = np.random.default_rng(SEED)
    means = 1.5 * rng.normal(size=(80, D))
    return (rng.normal(size=(N, D)) + means[rng.integers(0, 80, N)]).astype(dtype)


def bench_loop(dtype: type) -> None:
    X = data(dtype)
    start = X[:K].copy()

    def theirs():
        return KMeans(K, init=start, n_init=1).fit(X)

    def ours():
        return ws.KMeans(K, init=start).fit(X)

    a, b = theirs(), ours()
    differing = float(np.mean(a.labels_ != b.labels_))
    if differing > (0.0 if dtype is np.float64 else 1e-3):
        raise SystemExit(f"labels must agree with scikit-learn's, got {differing:.2%} that differ")
    report(
        f"KMeans from given centres, {np.dtype(dtype).name}, {N:,} × {D}, k = {K}",
        time_ratio(theirs, ours, repeats=3),
        baseline="scikit-learn's KMeans (lloyd)",
        target=1 / 1.3,
        iterations=b.n_iter_,
        labels_that_differ=differing,
    )


def bench_seeding() -> None:
    X = data(np.float64)
    theirs = [KMeans(K, max_iter=1, random_state=s).fit(X) for s in range(3)]
    ours = [ws.KMeans(K, max_iter=1, random_state=s).fit(X) for s in range(3)]
    worse = np.mean([m.inertia_ for m in ours]) / np.mean([m.inertia_ for m in theirs])
    if worse > 1.05:
        raise SystemExit(f"k-means++ must seed as well as scikit-learn's, got {worse:.3f} times")
    report(
        f"greedy k-means++ and one iteration, {N:,} × {D}, k = {K}",
        time_ratio(
            lambda: KMeans(K, max_iter=1, random_state=0).fit(X),
            lambda: ws.KMeans(K, max_iter=1, random_state=0).fit(X),
            repeats=3,
        ),
        baseline="scikit-learn's KMeans",
        target=1 / 1.3,
        inertia_ratio=worse,
    )


def main() -> None:
    bench_loop(np.float64)
    bench_loop(np.float32)
    bench_seeding()


if __name__ == "__main__":
    main()
