"""How long does explore take from a table to an answer, beside the same fits in a loop?"""

from __future__ import annotations

import time

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture

import wellsep as ws
from benchmarks.harness import report

JOBS = 2
TARGETS = {1_000: 60.0, 10_000: 300.0}  # seconds on two idle cores


def loop(runs: ws.Runs) -> int:
    """Every candidate fitted anew by scikit-learn, in the same embeddings, nothing judged."""
    made = 0
    for run in runs:
        if not run.has_labels:
            continue
        Z, method = runs.spaces[run.space], run.params["method"]
        if method == "hdbscan":
            size = run.params["min_cluster_size"]
            model = HDBSCAN(min_cluster_size=size, min_samples=min(size, 10), copy=True)
        elif method == "mixture":
            form = "full" if Z.shape[1] <= 10 else "diag"
            model = GaussianMixture(run.params["n_components"], covariance_type=form)
        elif method == "ward":
            model = AgglomerativeClustering(run.params["n_clusters"])
        else:
            model = KMeans(run.params["n_clusters"], n_init=10)
        model.fit_predict(Z)
        made += 1
    return made


def bench(n: int, d: int = 50, n_clusters: int = 12) -> None:
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(n_clusters, d))[rng.integers(n_clusters, size=n)]
    X += rng.normal(size=X.shape)
    began, worked = time.perf_counter(), time.process_time()
    found = ws.explore(X, n_jobs=JOBS)
    ours, worked = time.perf_counter() - began, time.process_time() - worked
    if found.n_clusters != n_clusters:
        raise SystemExit(f"explore must find {n_clusters} clusters, got {found.n_clusters}.")
    began = time.perf_counter()
    made = loop(found.runs)
    theirs = time.perf_counter() - began
    report(
        f"explore of {n:,} × {d}, {made} candidates",
        ours,
        baseline="the same fits in a loop of scikit-learn, nothing embedded or judged: "
        f"{theirs:.3g}s",
        target=TARGETS[n],
        unit="s",
        smaller_is_better=True,
        loop_seconds=theirs,
        processor_seconds_here=worked,
        embeddings=list(found.runs.spaces),
        jobs=JOBS,
    )


def main() -> None:
    for n in TARGETS:
        bench(n)


if __name__ == "__main__":
    main()
