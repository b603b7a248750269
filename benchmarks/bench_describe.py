"""How long does a description of clusters take, against what it is made of?

The baseline computes the same with scikit-learn and SciPy, one cluster after the other: silhouette,
medoids, effect sizes with Mann-Whitney's U, and for each rule the trees of its held-out scores.
DBCV, CFQ, margins and local connectivity have no part in the baseline.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances, silhouette_samples
from sklearn.tree import DecisionTreeClassifier

import wellsep as ws
from benchmarks.harness import report, time_ratio

N, D, K = 3_000, 20, 8


def plain(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    table = pairwise_distances(X)
    silhouette_samples(table, y, metric="precomputed")
    fold = np.random.default_rng(0).permutation(N) % 5
    found = []
    for k in range(K):
        inside = y == k
        table[np.ix_(inside, inside)].sum(axis=1).argmin()
        a, b = X[inside], X[~inside]
        found.append(mannwhitneyu(a, b, axis=0).statistic / (len(a) * len(b)))
        for held in (fold == one for one in range(6)):
            DecisionTreeClassifier(
                max_depth=2, min_samples_leaf=60, class_weight="balanced", random_state=0
            ).fit(X[~held], inside[~held])
    return np.array(found)


def main() -> int:
    X, y = make_blobs(N, D, centers=K, cluster_std=4.0, random_state=0)
    difference = float(np.abs(plain(X, y) - ws.describe_clusters(X, y).auc).max())
    if difference > 1e-9:
        raise SystemExit(f"auc must be Mann-Whitney's U over all pairs, got {difference} off")
    met = report(
        f"describe_clusters of {N:,} × {D} in {K} clusters",
        time_ratio(lambda: plain(X, y), lambda: ws.describe_clusters(X, y), 3),
        baseline="silhouette, medoids, U and trees of scikit-learn and SciPy, a part of it",
        target=0.5,
        difference=difference,
        seed=0,
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
