"""How much slower than a peer that does the same work are small calls? Ours over theirs.

Peers that are not installed are skipped, and said so: kmedoids, genieclust, diptest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import metrics
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances, silhouette_score

import wellsep as ws
from benchmarks.harness import processor_seconds, report
from wellsep.spaces import dip_statistic

WORTH = 0.05  # seconds that one measurement takes at least
MOST = 1.3  # times the peer's processor time


def peer(name: str) -> Any:
    """The package, or None with a line that says so."""
    try:
        return import_module(name)
    except ImportError:
        print(f"[skipped] {name} is not installed")
        return None


def per_call(function: Callable[[], Any]) -> float:
    """Least processor time of a call, over five measurements of as many calls as are worth it."""
    function()
    calls = max(1, int(WORTH / max(processor_seconds(function), 1e-6)))
    taken = [
        processor_seconds(lambda: [function() for _ in range(calls)]) / calls for _ in range(5)
    ]
    return min(taken)


def compare(
    question: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    baseline: str,
    target: float | None = MOST,
    tolerance: float = 1e-9,
) -> bool:
    """Report ours over theirs, after a check that both say the same."""
    difference = 0.0
    if tolerance < np.inf:
        difference = abs(ours() - theirs()) / abs(theirs())
        if not difference <= tolerance:
            raise SystemExit(f"{question}: {baseline} says something else, by {difference:.1e}.")
    mine, others = per_call(ours), per_call(theirs)
    return report(
        question,
        mine / others,
        baseline=baseline,
        target=target,
        smaller_is_better=True,
        difference=difference,
        ours_s=mine,
        baseline_s=others,
        seed=0,
    )


def bench_medoids(package: Any) -> Iterator[bool]:
    for n, k in ((500, 8), (2000, 8), (2000, 30)):
        D = pairwise_distances(make_blobs(n, 8, centers=12, cluster_std=3, random_state=0)[0])
        draws = np.random.RandomState(0)
        starts = [draws.choice(n, k, replace=False).astype(np.uint64) for _ in range(10)]
        model = ws.KMedoids(k, metric="precomputed", random_state=0)
        yield compare(
            f"KMedoids of {n:,} × {n:,} distances, k = {k}, ten starts",
            lambda model=model, D=D: model.fit(D).inertia_,
            lambda starts=starts, D=D: min(
                package.fasterpam(D, start, max_iter=300, init="first", n_cpu=1).loss
                for start in starts
            ),
            baseline="kmedoids, unchecked distances",
        )


def bench_indices() -> Iterator[bool]:
    """scikit-learn checks its input as we do; genieclust does not, and has no target."""
    X, y = make_blobs(1000, 8, centers=5, random_state=0)
    unchecked, codes = peer("genieclust.cluster_validity"), y.astype(np.int64)
    names = {
        "calinski_harabasz": ("calinski_harabasz_index", 1),
        "davies_bouldin": ("negated_davies_bouldin_index", -1),
    }
    for name, (theirs, sign) in names.items():
        question = f"{name.replace('_', '-').title()} of 1,000 × 8"
        ours, checked = getattr(ws, f"{name}_score"), getattr(metrics, f"{name}_score")
        yield compare(
            question,
            lambda ours=ours: ours(X, y),
            lambda checked=checked: checked(X, y),
            baseline="scikit-learn",
        )
        if unchecked is not None:
            index = getattr(unchecked, theirs)
            yield compare(
                question,
                lambda ours=ours: ours(X, y),
                lambda index=index, sign=sign: sign * index(X, codes),
                baseline="genieclust, unchecked input",
                target=None,
            )


def bench_dips(package: Any) -> Iterator[bool]:
    try:
        import numba  # noqa: F401
    except ImportError:
        print("[skipped] compiled dips: numba is not installed")
    for n in (100, 1000, 10_000):
        x = np.random.default_rng(0).normal(size=n)
        yield compare(
            f"dip of {n:,} values, numba loaded",
            lambda x=x: dip_statistic(x),
            lambda x=x: package.dipstat(x),
            baseline="diptest",
        )


def bench_sparse() -> bool:
    X = sp.random(2000, 500, density=0.02, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 8, 2000)
    return compare(
        "silhouette of sparse 2,000 × 500, 2 % filled",
        lambda: ws.silhouette_score(X, y),
        lambda: silhouette_score(X, y),
        baseline="scikit-learn",
    )


def bench_given() -> bool:
    X, y = make_blobs(2000, 8, centers=5, random_state=0)
    D = pairwise_distances(X)
    return compare(
        "silhouette of 2,000 × 2,000 distances",
        lambda: ws.silhouette_score(D, y, metric="precomputed"),
        lambda: silhouette_score(D, y, metric="precomputed"),
        baseline="scikit-learn",
    )


def bench_dbcv() -> bool:
    """Up to 2,048 objects of a cluster share a table; more are worked on by blocks."""

    def score(n: int) -> Callable[[], float]:
        X, y = make_blobs([n, 50], 8, centers=[[0.0] * 8, [30.0] * 8], random_state=0)
        return lambda: ws.dbcv_score(X, y)

    return compare(
        "DBCV with a cluster of 2,040 objects, of 8 features",
        score(2040),
        score(2060),
        baseline="ours with a cluster of 2,060",
        tolerance=np.inf,
    )


def bench_choose_k() -> bool:
    X, _ = make_blobs(1000, 8, centers=5, random_state=0)

    def loop() -> None:
        for k in range(2, 16):
            silhouette_score(X, KMeans(k, n_init=10, random_state=0).fit_predict(X))

    return compare(
        "choose_k of 1,000 × 8",
        lambda: ws.choose_k(X, random_state=0),
        loop,
        baseline="ten starts of scikit-learn's k-means and a silhouette for K = 2 to 15",
        target=4.0,
        tolerance=np.inf,
    )


def main() -> int:
    met = []
    for name, bench in (("kmedoids", bench_medoids), ("diptest", bench_dips)):
        package = peer(name)
        met += [] if package is None else list(bench(package))
    met += [*bench_indices(), bench_sparse(), bench_given(), bench_dbcv(), bench_choose_k()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
