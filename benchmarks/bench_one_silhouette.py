"""How much faster is one silhouette than scikit-learn's (and than peers the user has installed)?"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.metrics import silhouette_score

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
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
