"""How fast are the outlier weights of LOFKMeans against scikit-learn's LOF?"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

import wellsep as ws
from benchmarks.harness import report, time_ratio


def theirs(X):
    return -LocalOutlierFactor(n_neighbors=5, n_jobs=1).fit(X).negative_outlier_factor_


def ours(X, method):
    """One cluster, one step: all but the weights costs next to nothing."""
    return ws.LOFKMeans(1, neighbors=method, n_init=1, max_iter=1, random_state=0).fit(X)


def bench(n: int, d: int, method: str, target: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3, size=(20, d))[rng.integers(20, size=n)] + rng.normal(size=(n, d))
    found = ours(X, method)
    difference = float(np.abs(found.lof_scores_ - theirs(X)).max())
    if method == "exact" and difference > 1e-6:
        raise SystemExit(f"LOF must equal scikit-learn's, got a difference of {difference}")
    ratio = time_ratio(lambda: theirs(X), lambda: ours(X, method), repeats=3)
    report(
        f"LOF of {n:,} × {d}, {method}",
        ratio,
        baseline="scikit-learn's LocalOutlierFactor",
        target=target,
        difference=difference,
        recall=found.neighbors_recall_,
        search=found.neighbors_method_,
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
    bench(20_000, 8, "exact", target=1)
    bench(20_000, 64, "exact", target=0.8)
    bench(50_000, 8, "approximate", target=1.5)
    bench(30_000, 64, "approximate", target=1.5)
    bench_share_of_the_fit()


if __name__ == "__main__":
    main()
