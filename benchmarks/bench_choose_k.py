"""How long does choose_k take by default, against the fits and silhouettes of its range alone?"""

from __future__ import annotations

import time

import numpy as np

import wellsep as ws
from benchmarks.harness import report


def fits_and_scores(X: np.ndarray) -> None:
    """What a loop over K does that neither tests for one cluster nor takes other votes."""
    labels = [ws.KMeans(k, n_init=10, random_state=0).fit_predict(X) for k in range(2, 16)]
    ws.score_partitions(X, labels, ["silhouette"])


def bench(n: int, d: int, n_clusters: int) -> None:
    rng = np.random.default_rng(0)
    X = 12 * rng.normal(size=(n_clusters, d))[rng.integers(n_clusters, size=n)]
    X += rng.normal(size=X.shape)
    parts: dict[str, float] = {}
    began = last = time.perf_counter()
    worked = time.process_time()

    def told(done: int, total: int, what: str) -> None:
        nonlocal last
        now = time.perf_counter()
        parts[what] = parts.get(what, 0.0) + now - last
        last = now

    chosen = ws.choose_k(X, random_state=0, progress=told)
    ours, worked = time.perf_counter() - began, time.process_time() - worked
    if chosen.best != n_clusters:
        raise SystemExit(f"choose_k must find {n_clusters} clusters, got {chosen.best}.")
    began = time.perf_counter()
    fits_and_scores(X)
    theirs = time.perf_counter() - began
    report(
        f"choose_k of {n:,} × {d}, {n_clusters} clusters",
        theirs / ours,
        baseline="k-means with ten starts and silhouettes for K = 2 to 15",
        seconds=ours,
        processor_seconds=worked,
        **{f"seconds, {what}": spent for what, spent in parts.items()},
    )


def main() -> None:
    bench(1_000, 4, 8)
    bench(10_000, 16, 8)


if __name__ == "__main__":
    main()
