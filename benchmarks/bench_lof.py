"""How fast are the outlier weights of LOFKMeans against scikit-learn's LOF?"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

import wellsep as ws
from benchmarks.harness import report, time_ratio


def theirs(X):
    return -LocalOutlierFactor(n_neighbors=5, n_jobs=1).fit(X).negative_outlier_factor_


def ours(X):
    """One cluster, one step: all but the weights costs next to nothing."""
    return ws.LOFKMeans(1, n_init=1, max_iter=1, random_state=0).fit(X)


def bench(n: int, d: int, target: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3, size=(20, d))[rng.integers(20, size=n)] + rng.normal(size=(n, d))
    difference = float(np.abs(ours(X).lof_scores_ - theirs(X)).max())
    if difference > 1e-6:
        raise SystemExit(f"LOF must equal scikit-learn's, got a difference of {difference}")
    ratio = time_ratio(lambda: theirs(X), lambda: ours(X), repeats=3)
    report(
        f"LOF of {n:,} × {d}",
        ratio,
        baseline="scikit-learn's LocalOutlierFactor",
        target=target,
        difference=difference,
    )


def bench_share_of_the_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3, size=(20, 10))[rng.integers(20, size=20_000)]
    X += rng.normal(size=X.shape)
    ratio = time_ratio(
        lambda: ws.LOFKMeans(12, random_state=0).fit(X),
        lambda: ws.KMeans(12, init="random", random_state=0).fit(X),
        repeats=3,
    )
    report(
        "k-means against LOFKMeans, ten restarts each, 20,000 × 10, K = 12: how many times faster",
        ratio,
        baseline="LOFKMeans",
    )


def main() -> None:
    bench(20_000, 8, target=1)
    bench(20_000, 64, target=0.8)
    bench_share_of_the_fit()


if __name__ == "__main__":
    main()
