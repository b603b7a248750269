"""How much faster is one silhouette than scikit-learn's (and than peers the user has installed)?"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.metrics import pairwise_distances, silhouette_score

import wellsep as ws
from benchmarks.harness import report, time_ratio

SIZES = {(20_000, 16): 4.0, (20_000, 256): 2.0}  # n, d → ratio to reach
K = 20


def peers():
    """Peers beside scikit-learn; copyleft ones are never installed by this project."""
    try:
        from genieclust.cluster_validity import silhouette_index

        yield "genieclust", silhouette_index
    except ImportError:
        pass
    try:
        from permetrics import ClusteringMetric

        yield "permetrics", lambda X, y: ClusteringMetric(X=X, y_pred=y).silhouette_index()
    except ImportError:
        pass


def bench_matrix(n: int) -> bool:
    """Ours also reads every pair twice, to see that the matrix is symmetric and has no signs."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    D = pairwise_distances(rng.normal(size=(n, 8)))
    options = {"metric": "precomputed"}
    ours, theirs = (f(D, y, **options) for f in (ws.silhouette_score, silhouette_score))
    assert abs(ours - theirs) < 1e-10
    ratio = time_ratio(
        lambda: silhouette_score(D, y, **options),
        lambda: ws.silhouette_score(D, y, **options),
        repeats=15,
    )
    question = f"one silhouette of a matrix of {n:,} objects, checked"
    return report(question, ratio, baseline="scikit-learn", target=1 / 1.6, seed=0)


def main() -> int:
    met = []
    for (n, d), target in SIZES.items():
        rng = np.random.default_rng(0)
        y = rng.integers(0, K, n)
        X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(K, d))[y]
        difference = abs(ws.silhouette_score(X, y) - silhouette_score(X, y))
        assert difference < 1e-10, difference
        others = [("scikit-learn", silhouette_score, target), *((*p, None) for p in peers())]
        for name, theirs, goal in others:
            ratio = time_ratio(
                lambda f=theirs, X=X, y=y: f(X, y),
                lambda X=X, y=y: ws.silhouette_score(X, y),
                repeats=3,
            )
            question = f"one Euclidean silhouette, {n:,}×{d}, K={K}, float64"
            met.append(
                report(question, ratio, baseline=name, target=goal, difference=difference, seed=0)
            )
    for n in (1_000, 3_000):
        met.append(bench_matrix(n))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
