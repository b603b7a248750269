"""What do all nine indices of the ACE paper cost for 42 partitions, and each of them alone?"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.harness import report, time_ratio

N, D, K, M = 10_000, 160, 10, 42
TARGET = 8.0
NINE = [
    "silhouette",
    "silhouette_cosine",
    "calinski_harabasz",
    "davies_bouldin",
    "dunn",
    "c_index",
    "s_dbw",
    "ccc",
    "cdbw",
]
# The fastest peer's time over scikit-learn's silhouette on the same machine, as measured once on
# 10,000×16, K = 10, one thread (distances included where the peer needs them given).
PEERS = {
    "dunn": ("permetrics", 0.407 / 1.695),
    "c_index": ("NbClust on R's dist", (1.603 + 6.499) / 1.695),
    "s_dbw": ("s-dbw", 0.662 / 1.695),
    "cdbw": ("fpc", 0.719 / 1.695),
    "ccc": ("NbClust", 0.088 / 1.695),
}


def partitions_of(X: np.ndarray, truth: np.ndarray, count: int) -> list[np.ndarray]:
    """The true clusters, increasingly corrupted: good, middling and bad partitions."""
    rng = np.random.default_rng(1)
    found = []
    for m in range(count):
        y = truth.copy()
        moved = rng.random(len(y)) < m / (2 * count)
        y[moved] = rng.integers(0, K, int(moved.sum()))
        found.append(y)
    return found


def blobs(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, n)
    return rng.normal(size=(n, d)) + rng.normal(size=(K, d))[truth], truth


def brute(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Silhouette, Dunn and C index from the full matrix of distances."""
    D_ = cdist(X, X)
    upper = np.triu_indices(len(X), 1)
    distances, within = D_[upper], (y[:, None] == y)[upper]
    ordered, n_within = np.sort(distances), int(within.sum())
    low, high = ordered[:n_within].sum(), ordered[-n_within:].sum()
    return {
        "silhouette": float(silhouette_score(X, y)),
        "dunn": float(distances[~within].min() / distances[within].max()),
        "c_index": float((distances[within].sum() - low) / (high - low)),
    }


def check() -> float:
    """Largest relative difference to brute force on a small case, with the tree in use."""
    X, truth = blobs(2_000, D)
    many = partitions_of(X, truth, 8)
    scores = ws.score_partitions(X, many, NINE)
    worst = 0.0
    for m in (0, 7):
        for name, value in brute(X, many[m]).items():
            worst = max(worst, abs(scores.column(name)[m] / value - 1))
    assert worst < 1e-9, worst
    return worst


def all_nine(X: np.ndarray, many: list[np.ndarray], convention: str | None, worst: float) -> bool:
    timed = time_ratio(
        lambda: silhouette_score(X, many[0]),
        lambda: ws.score_partitions(X, many, NINE, convention=convention),
        repeats=2,
        warm=False,
    )
    named = "as defined" if convention is None else "as the ACE authors computed them"
    return report(
        f"nine indices {named}, {M} partitions (K = {K}) of {N:,}×{D}, "
        "over one scikit-learn silhouette",
        timed.ours_s / timed.baseline_s,
        baseline="scikit-learn silhouette_score",
        target=TARGET,
        smaller_is_better=True,
        baseline_s=timed.baseline_s,
        ours_s=timed.ours_s,
        largest_relative_difference=worst,
        seed=0,
    )


def each_alone(n: int = 10_000, d: int = 16) -> list[bool]:
    """One partition, one thread, in units of scikit-learn's silhouette."""
    X, y = blobs(n, d)
    met = []
    with threadpool_limits(1):
        for name, (peer, share) in PEERS.items():
            timed = time_ratio(
                lambda: silhouette_score(X, y),
                lambda name=name: ws.score_partitions(X, y, name, n_jobs=1),
                repeats=3,
            )
            met.append(
                report(
                    f"{name} alone, one partition (K = {K}) of {n:,}×{d}, one thread, over one "
                    f"scikit-learn silhouette; {peer} took {share:.3g} of it",
                    timed.ours_s / timed.baseline_s,
                    baseline="scikit-learn silhouette_score",
                    target=share,
                    smaller_is_better=True,
                    baseline_s=timed.baseline_s,
                    ours_s=timed.ours_s,
                    seed=0,
                )
            )
        met += installed_peers(X, y)
    return met


def installed_peers(X: np.ndarray, y: np.ndarray) -> list[bool]:
    """The same against peers in this run, as far as they are installed."""
    calls: dict[str, tuple[str, Callable[[Any], Any], str]] = {
        "genieclust": (
            "genieclust.cluster_validity",
            lambda module: module.generalised_dunn_index(X, y, 1, 1),
            "dunn",
        ),
        "permetrics": (
            "permetrics",
            lambda module: module.ClusteringMetric(X=X, y_pred=y).dunn_index(use_modified=False),
            "dunn",
        ),
        "s-dbw": ("s_dbw", lambda module: module.S_Dbw(X, y, method="Halkidi"), "s_dbw"),
    }
    met = []
    for peer, (module_name, call, name) in calls.items():
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        timed = time_ratio(
            lambda call=call, module=module: call(module),
            lambda name=name: ws.score_partitions(X, y, name, n_jobs=1),
            repeats=2,
        )
        met.append(report(f"{name} alone", timed, baseline=peer, target=1.0, seed=0))
    return met


def main() -> int:
    warnings.filterwarnings("ignore", message=".*no object within the counting radius")
    worst = check()
    X, truth = blobs(N, D)
    many = partitions_of(X, truth, M)
    met = [all_nine(X, many, convention, worst) for convention in (None, "ace")]
    met += each_alone()
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
