"""What cost do batches reach in the processor time of scikit-learn's MiniBatchKMeans?

T is the time of one ``MiniBatchKMeans(n_init=3)`` fit with its default batches. ``CFMeans`` with
``batch_size`` gets three quarters of it for its sample and passes: the last pass may end late.
"Seen once" is ``partial_fit``, which takes the time it takes. Costs are on all rows.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.bench_kmeans_search import cost, gaussians
from benchmarks.harness import report

SEEDS = (0, 1, 2)


def sets() -> Iterator[tuple[str, np.ndarray]]:
    yield "150 Gaussians", gaussians(60_000, 16, 150, 2.0)
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    yield "grid of 100", grid[rng.integers(0, 100, 80_000)] + 0.2 * rng.normal(size=(80_000, 2))
    if os.environ.get("WELLSEP_DATA"):
        for name in ("mnist_embeddings10", "mnist_umap3"):
            yield name, ws.load_dataset(name, download=False).X.astype(float)


def bench(name: str, X: np.ndarray, k: int) -> bool:
    theirs, ours, once, times = [], [], [], []
    for seed in SEEDS:
        begin = time.process_time()
        model = MiniBatchKMeans(k, n_init=3, random_state=seed).fit(X)
        seconds = time.process_time() - begin
        theirs.append(cost(X, model.cluster_centers_))
        begin = time.process_time()
        mine = ws.CFMeans(k, batch_size=4096, max_seconds=0.75 * seconds, random_state=seed)
        ours.append(cost(X, mine.fit(X).cluster_centers_))
        times.append((time.process_time() - begin) / seconds)
        stream = ws.CFMeans(k, max_moves=20, random_state=seed)
        for start in range(0, len(X), 10_000):
            stream.partial_fit(X[start : start + 10_000])
        once.append(cost(X, stream.cluster_centers_))
    best = min(*theirs, *ours, *once)
    return report(
        f"cost in batches, {name} ({len(X):,} × {X.shape[1]}), K = {k}",
        float(np.mean(ours) / np.mean(theirs)),
        baseline="MiniBatchKMeans",
        target=1.0,
        smaller_is_better=True,
        excess_ours=1000 * (float(np.mean(ours)) / best - 1),
        excess_theirs=1000 * (float(np.mean(theirs)) / best - 1),
        excess_seen_once=1000 * (float(np.mean(once)) / best - 1),
        time_over_theirs=float(np.mean(times)),
    )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        warm = gaussians(3000, 16, 20, 2.0)
        ws.CFMeans(25, batch_size=1000, max_seconds=0.5).fit(warm)
        for name, X in sets():
            for k in (25, 100):
                bench(name, X, k)


if __name__ == "__main__":
    main()
