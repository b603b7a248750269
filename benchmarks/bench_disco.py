"""How long does DISCO take without the n × n table of dc-distances, and how much memory?

The baseline does what ClustPy does: mutual reachabilities of all pairs, single linkage, the matrix
of dc-distances, scikit-learn's silhouette of it; with SciPy's compiled single linkage in place of
ClustPy's tree in Python.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_moons
from sklearn.metrics import silhouette_samples

import wellsep as ws
from benchmarks.harness import report, run_child, time_ratio

N, MIN_POINTS = 4_000, 5
SHOWN = "from benchmarks.bench_disco import data, explicit\nimport wellsep as ws\nX, y = data()\n"


def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(N, noise=0.06, random_state=0)
    y[np.random.default_rng(0).random(N) < 0.02] = -1
    return X, y


def explicit(X: np.ndarray, y: np.ndarray) -> float:
    D = squareform(pdist(X))
    core = np.partition(D, MIN_POINTS - 1, axis=1)[:, MIN_POINTS - 1]
    np.maximum(D, np.maximum(core[:, None], core), out=D)
    np.fill_diagonal(D, 0)
    D = squareform(cophenet(linkage(squareform(D), "single")))
    noise = y < 0
    values = np.empty(len(X))
    values[~noise] = silhouette_samples(D[np.ix_(~noise, ~noise)], y[~noise], metric="precomputed")
    parts = []
    for k in np.unique(y[~noise]):
        top = core[y == k].max()
        for p in (core[noise], D[np.ix_(noise, y == k)].min(axis=1)):
            parts.append((p - top) / np.maximum(p, top))
    values[noise] = np.min(parts, axis=0)
    return float(values.mean())


def main() -> int:
    X, y = data()
    difference = abs(explicit(X, y) - ws.disco_score(X, y))
    if difference > 1e-9:
        raise SystemExit(f"DISCO must equal the explicit one, got a difference of {difference}")
    met = [
        report(
            f"DISCO of {N:,} objects in the plane",
            time_ratio(lambda: explicit(X, y), lambda: ws.disco_score(X, y), 3),
            baseline="n × n table, SciPy's single linkage, scikit-learn's silhouette",
            target=1,
            difference=difference,
            seed=0,
        )
    ]
    ours, theirs = (
        run_child(SHOWN + f"print({call}(X, y))") for call in ("ws.disco_score", "explicit")
    )
    met.append(
        report(
            f"peak memory of DISCO of {N:,} objects, whole program",
            theirs.peak_mb / ours.peak_mb,
            baseline="the same",
            target=1.5,
            seed=0,
        )
    )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
