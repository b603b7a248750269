"""How much faster are many partitions of one space than a loop over scikit-learn?"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score

import wellsep as ws
from benchmarks.harness import report, time_ratio

N, D, M = 10_000, 64, 20
TARGETS = {np.float64: 25.0, np.float32: 50.0}
INDICES = ["silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin"]


def loop(X: np.ndarray, partitions: list[np.ndarray]) -> np.ndarray:
    return np.array(
        [
            [
                silhouette_score(X, y),
                silhouette_score(X, y, metric="cosine"),
                calinski_harabasz_score(X, y),
                davies_bouldin_score(X, y),
            ]
            for y in partitions
        ]
    )


def main() -> int:
    met = []
    for dtype, target in TARGETS.items():
        rng = np.random.default_rng(0)
        partitions = [rng.integers(0, k, N) for k in np.linspace(5, 50, M).astype(int)]
        X = (rng.normal(size=(N, D)) + rng.normal(size=(50, D))[partitions[-1]]).astype(dtype)
        ours = ws.score_partitions(X, partitions[:2], INDICES).values
        theirs = loop(X.astype(np.float64), partitions[:2])
        difference = float(np.abs(ours / theirs - 1).max())
        assert difference < (1e-9 if dtype is np.float64 else 1e-4), difference
        ratio = time_ratio(
            lambda X=X, p=partitions: loop(X, p),
            lambda X=X, p=partitions: ws.score_partitions(X, p, INDICES),
            repeats=1,
        )
        question = (
            f"{M} partitions (K 5…50) of {N:,}×{D} by {len(INDICES)} indices, {dtype.__name__}"
        )
        met.append(
            report(
                question,
                ratio,
                baseline="scikit-learn loop",
                target=target,
                largest_relative_difference=difference,
                seed=0,
            )
        )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
