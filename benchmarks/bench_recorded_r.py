"""How long would the R tools behind the ACE paper take for its grid, by their recorded times?

One cell of the grid is one partition in one space by the paper's indices. Their times were taken
once, on one thread, at 10,000 × 16 with 10 clusters, together with scikit-learn's silhouette; here
they are scaled by what that silhouette takes now. Ours runs on one thread too; processor time.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import processor_seconds, report

N, D, K, M = 10_000, 16, 10, 42
YARDSTICK = 1.695  # seconds of scikit-learn's silhouette where the others were timed
RECORDED = {
    "dist()": 1.603,
    "NbClust dunn": 7.686,
    "NbClust cindex": 6.499,
    "NbClust sdbw": 9.306,
    "NbClust ccc": 0.088,
    "fpc cdbw": 0.719,
    "scikit-learn silhouette": 1.695,
    "scikit-learn silhouette, cosine": 4.475,
    "scikit-learn Calinski-Harabasz": 0.003,
    "scikit-learn Davies-Bouldin": 0.006,
}
NINE = ("silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin", "dunn",
        "c_index", "s_dbw", "ccc", "cdbw")  # fmt: skip


def main() -> int:
    warnings.filterwarnings("ignore", message=".*no object within the counting radius")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, N)
    X = rng.normal(size=(N, D)) + rng.normal(size=(K, D))[truth]
    labels = [np.where(rng.random(N) < m / M, rng.integers(0, K, N), truth) for m in range(M)]
    with threadpool_limits(1):
        yardstick = min(processor_seconds(lambda: silhouette_score(X, truth)) for _ in range(2))
        found = []
        ours = processor_seconds(
            lambda: found.append(
                ws.score_partitions(X, labels, NINE, convention="ace", n_jobs=1).values
            )
        )
    difference = abs(found[0][0, 0] - silhouette_score(X, labels[0]))
    if difference > 1e-10:
        raise SystemExit(f"the silhouette must equal scikit-learn's, off by {difference}")
    cell = sum(RECORDED.values()) * yardstick / YARDSTICK
    met = report(
        f"nine indices as the ACE paper computed them, {M} partitions of {N:,} × {D}, one thread",
        M * cell / ours,
        baseline="R's tools by recorded times",
        target=50,
        ours_s=ours,
        recorded_cell_s=sum(RECORDED.values()),
        scaled_cell_s=cell,
        hours_of_their_grid=M * M * cell / 3600,
        minutes_of_ours=M * ours / 60,
        difference=difference,
        seed=0,
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
