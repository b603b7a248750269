"""How long do DBCV and Dunn's index take where there are many partitions, or many clusters?

Processor time of one thread, so that what else the machine does matters little.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import wellsep as ws
from benchmarks.harness import Ratio, processor_seconds, report

SPACES, DIMS = 41, (10, 32, 2, 64)
CLUSTERS = (5, 10, 15, 20)
N, MOST = 2_500, 1_250


def bench_dbcv() -> bool:
    """Scores of 41 partitions of the digits in 41 embeddings."""
    X = load_digits().data
    ks = [CLUSTERS[i % len(CLUSTERS)] for i in range(SPACES)]
    labels = [ws.KMeans(k, n_init=1, random_state=i).fit_predict(X) for i, k in enumerate(ks)]
    rng = np.random.default_rng(0)
    flat = [PCA(DIMS[i % len(DIMS)], random_state=0).fit_transform(X) for i in range(SPACES)]
    spaces = [Z + 0.01 * rng.normal(size=Z.shape) for Z in flat]
    alone = ws.dbcv_score(spaces[0], labels[0])
    among = ws.score_partitions(spaces[0], labels, ["dbcv"], n_jobs=1).values[0, 0]
    if abs(alone - among) > 1e-12:
        raise SystemExit(f"one partition must score alike alone and among others: {alone}, {among}")

    def call() -> None:
        for Z in spaces:
            ws.score_partitions(Z, labels, ["dbcv"], n_jobs=1)

    return report(
        f"DBCV of {SPACES} partitions of {len(X):,} objects in {SPACES} embeddings",
        processor_seconds(call),
        baseline="one thread",
        target=30,
        unit=" s",
        smaller_is_better=True,
        seed=0,
    )


def bench_dunn() -> bool:
    """Half as many clusters as objects, against SciPy's distances and a mask."""
    X = np.random.default_rng(0).normal(size=(N, 8))
    y = np.arange(N) % MOST

    def plain() -> float:
        D, same = cdist(X, X), y[:, None] == y
        return float(D[~same].min() / D[same].max())

    difference = abs(plain() - ws.dunn_score(X, y))
    if difference > 1e-12:
        raise SystemExit(f"Dunn's index must equal brute force, got a difference of {difference}")
    ours = min(processor_seconds(lambda: ws.dunn_score(X, y)) for _ in range(5))
    theirs = min(processor_seconds(plain) for _ in range(5))
    return report(
        f"Dunn's index of {N:,} objects in {MOST:,} clusters",
        Ratio(theirs, ours, 5),
        baseline="SciPy's cdist and a mask",
        target=1,
        difference=difference,
        seed=0,
    )


def main() -> int:
    met = [bench_dunn(), bench_dbcv()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
