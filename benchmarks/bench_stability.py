"""What does stability cost beyond its fits, against loops over scikit-learn's clusterer?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import jaccard_score
from sklearn.metrics.cluster import contingency_matrix

import wellsep as ws
from benchmarks.harness import Ratio, processor_seconds, report

DRAWS = 20


def rows_of(n: int, seed: int) -> list[np.ndarray]:
    """The draws that `stability` makes with this seed."""
    rng = np.random.RandomState(seed)
    rng.randint(2**31 - 1, size=1 + DRAWS)
    return [np.unique(rng.randint(n, size=n)) for _ in range(DRAWS)]


def loop_of_scores(model: object, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The loop that is usually posted: a score for each pair of clusters."""
    found = []
    for rows in rows_of(len(X), 0):
        given = model.fit(X[rows]).labels_
        old = labels[rows]
        found.append(
            [
                max(jaccard_score(old == a, given == b) for b in np.unique(given))
                for a in np.unique(labels)
            ]
        )
    return np.array(found).T


def loop_of_tables(model: object, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A careful loop: one table of common objects per draw."""
    found = []
    for rows in rows_of(len(X), 0):
        given = model.fit(X[rows]).labels_
        common = contingency_matrix(labels[rows], given)
        union = common.sum(axis=1)[:, None] + common.sum(axis=0) - common
        found.append((common / union).max(axis=1))
    return np.array(found).T


def in_turns(baseline: Callable[[], object], ours: Callable[[], object], turns: int = 3) -> Ratio:
    """Best processor times: the two differ by little, and other programs would hide it."""
    pairs = [(processor_seconds(baseline), processor_seconds(ours)) for _ in range(turns)]
    return Ratio(min(b for b, _ in pairs), min(o for _, o in pairs), turns)


def bench(n: int, k: int, model: object, loop: Callable[..., np.ndarray], name: str) -> None:
    X, _ = make_blobs(n, 8, centers=k, cluster_std=3, random_state=0)
    labels = KMeans(k, n_init=1, random_state=0).fit(X).labels_

    def ours() -> np.ndarray:
        return ws.stability(model, X, labels, n_draws=DRAWS, n_splits=0, random_state=0).values

    difference = float(np.abs(ours() - loop(model, X, labels)).max())
    if difference > 1e-12:
        raise SystemExit(f"values must be those of the loop, got a difference of {difference}")
    report(
        f"stability of {k} clusters of {n:,} objects, {DRAWS} bootstraps, against {name}",
        in_turns(lambda: loop(model, X, labels), ours),
        baseline=f"a loop over scikit-learn's {name}, same clusterer",
        target=0.8,
        difference=difference,
    )


def main() -> None:
    small, large = (
        KMeans(5, n_init=1, random_state=0),
        MiniBatchKMeans(50, n_init=1, random_state=0),
    )
    bench(2_000, 5, small, loop_of_scores, "jaccard_score")
    bench(2_000, 5, small, loop_of_tables, "contingency_matrix")
    bench(50_000, 50, large, loop_of_tables, "contingency_matrix")


if __name__ == "__main__":
    main()
