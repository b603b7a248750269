"""How fast, and in how much memory, is exact local connectivity?"""

from __future__ import annotations

import sys

import numpy as np

import wellsep as ws
from benchmarks.harness import report, run_child, seconds, time_ratio

LARGE = """
import numpy as np, time, wellsep as ws
rng = np.random.default_rng(0)
labels = rng.integers(10, size={n})
X = rng.normal(scale=3, size=(10, 8))[labels] + rng.normal(size=({n}, 8))
start = time.process_time()
found = ws.local_connectivity(X, labels)
print(time.process_time() - start, found.maximum)
"""


def blobs(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(scale=2, size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def all_pairs(X, labels, t=5):
    """The definition with one table of all pairs per cluster."""
    values = np.zeros(len(X))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        members = X[rows] - X[rows].mean(axis=0)
        radii = np.sqrt((members**2).sum(axis=1))
        squares = radii**2
        table = np.sqrt(np.maximum(squares[:, None] + squares - 2 * members @ members.T, 0))
        np.fill_diagonal(table, np.inf)
        table[(radii > radii[:, None]) | (table >= radii[:, None])] = np.inf
        nearest = np.argpartition(table, min(t, len(rows) - 1), axis=1)[:, :t]
        distance = np.take_along_axis(table, nearest, axis=1)
        with np.errstate(invalid="ignore"):
            path = radii[nearest] + distance
            terms = np.maximum(path / radii[:, None] - 1, 0) * distance / path
        values[rows] = np.where(np.isinf(distance), 0, terms).sum(axis=1)
    return values


def bench_ratio(n: int, d: int, k: int, target: float) -> None:
    X, labels = blobs(n, d, k)
    difference = float(
        np.abs(all_pairs(X, labels) - ws.local_connectivity(X, labels).objects).max()
    )
    if difference > 1e-6:
        raise SystemExit(f"LCD must equal its definition, got a difference of {difference}")
    # The index alone: the baseline does not look for better clusters either.
    ratio = time_ratio(
        lambda: all_pairs(X, labels),
        lambda: ws.score_partitions(X, labels, ["lcd"]),
        repeats=3,
    )
    report(
        f"the index lcd, {n:,} × {d}, {k} clusters",
        ratio,
        baseline="all pairs of each cluster in NumPy",
        target=target,
        difference=difference,
    )


def bench_size_of_avila() -> None:
    X, labels = blobs(20_867, 10, 12)
    report(
        "local connectivity of 20,867 × 10 in 12 clusters",
        seconds(lambda: ws.local_connectivity(X, labels)),
        baseline="none",
        target=5,
        unit=" s",
        smaller_is_better=True,
    )


def bench_large(n: int) -> None:
    child = run_child(LARGE.format(n=n), OMP_NUM_THREADS="1")
    taken, _ = child.output.split()
    name = f"local connectivity of {n:,} × 8"
    # Processor time of one thread: a million objects are judged in minutes on a busy machine too.
    report(name, float(taken), baseline="none", target=n / 1e6 * 300, unit=" s",
           smaller_is_better=True)  # fmt: skip
    report(f"{name}: peak memory", child.peak_mb, baseline="none", target=2048, unit=" MiB",
           smaller_is_better=True)  # fmt: skip


def main() -> None:
    # First: a child begins with the peak memory of the process that starts it.
    bench_large(1_000_000 if "--large" in sys.argv else 100_000)
    bench_size_of_avila()
    bench_ratio(20_000, 8, 4, target=5)
    bench_ratio(10_000, 64, 4, target=1)


if __name__ == "__main__":
    main()
