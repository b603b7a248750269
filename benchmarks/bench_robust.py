"""What do outliers cost RobustKMeans, and what do small true clusters?

Ten sets with classes of about equal size and five whose smallest classes are as small as clumps of
outliers; at most 900 objects, K = number of classes. Outliers are added: "box" uniform in the
bounding box blown up three times, "clumps" of about 8 objects at 2 to 4 radii. The figure is the
ARI on the clean objects. Needs WELLSEP_DATA.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import wellsep as ws
from benchmarks.harness import report
from experiments.datasets import load_dataset

SEEDS, MOST = (0, 1), 900
KINDS = ("none", "box 5 %", "box 10 %", "clumps 5 %", "clumps 10 %")


def scaled(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def gaussians(sizes: list[int], d: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(len(sizes))
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), d)) + spread * rng.normal(size=(len(sizes), d))[y], y


def some(X: np.ndarray, y: np.ndarray, most: int = MOST) -> tuple[np.ndarray, np.ndarray]:
    at = np.sort(np.random.default_rng(0).permutation(len(X))[:most])
    return np.asarray(X[at], dtype=float), np.asarray(y)[at]


def stored(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset(name)
    return data.X, data.y


def sets() -> Iterator[tuple[str, bool, np.ndarray, np.ndarray]]:
    """Name, whether classes are even, objects and classes."""
    iris, wine, breast = load_iris(), load_wine(), load_breast_cancer()
    yield "iris", True, iris.data, iris.target
    yield "wine", True, scaled(wine.data), wine.target
    yield "breast", True, scaled(breast.data), breast.target
    for name in ("wifi_localization", "optdigits", "pendigits"):
        yield name, True, *some(*stored(name))
    for name in ("sipu/s2", "sipu/d31", "fcps/hepta"):
        yield name, True, *some(*stored(name))
    yield "6 Gaussians", True, *gaussians([100] * 6, 10, 1.5)
    X, y = stored("sipu/unbalance")
    yield "sipu/unbalance", False, *some(X, y, 1000)
    for name in ("ecoli", "glass", "yeast"):
        yield name, False, *some(*stored(name))
    yield "Gaussians, two tiny", False, *gaussians([300, 300, 150, 12, 12], 5, 4.0)


def outliers(X: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "none":
        return X
    size = round(float(kind.split()[1]) / 100 * len(X))
    low, high, middle = X.min(axis=0), X.max(axis=0), X.mean(axis=0)
    if kind.startswith("box"):
        reach = 1.5 * (high - low)
        centre = 0.5 * (high + low)
        return np.vstack([X, rng.uniform(centre - reach, centre + reach, (size, X.shape[1]))])
    radius = np.sqrt(((X - middle) ** 2).sum(axis=1).mean())
    groups = max(1, size // 8)
    way = rng.normal(size=(groups, X.shape[1]))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    places = middle + way * radius * rng.uniform(2, 4, (groups, 1))
    spread = 0.05 * radius / np.sqrt(X.shape[1])
    added = places[np.arange(size) % groups] + spread * rng.normal(size=(size, X.shape[1]))
    return np.vstack([X, added])


def main() -> None:
    if not os.environ.get("WELLSEP_DATA"):
        raise SystemExit("Set WELLSEP_DATA to the folder of data sets.")
    warnings.simplefilter("ignore")
    makes = {
        "k-means": lambda k, seed: ws.KMeans(k, n_init=10, random_state=seed),
        "LOFKMeans": lambda k, seed: ws.LOFKMeans(k, n_init=10, random_state=seed),
        "robust": lambda k, seed: ws.RobustKMeans(k, random_state=seed),
    }
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for name, even, X, y in sets():
        k = len(np.unique(y))
        line = []
        for kind in KINDS:
            for method, make in makes.items():
                values = []
                for seed in SEEDS:
                    spoiled = outliers(X, kind, np.random.default_rng(seed))
                    labels = make(k, seed).fit(spoiled).labels_[: len(X)]
                    values.append(ws.ari_score(y, labels))
                found.setdefault((method, kind), []).append((even, float(np.mean(values))))
                line.append(f"{method} {np.mean(values):.2f}")
        print(f"{name:20s} K = {k:2d}: {', '.join(line)}")

    def mean(method: str, kinds: list[str], even: bool | None = None) -> float:
        rows = [v for kind in kinds for e, v in found[method, kind] if even in (None, e)]
        return float(np.mean(rows))

    for share, target in (("0 %", 0.71), ("5 %", None), ("10 %", 0.70)):
        kinds = [kind for kind in KINDS if kind.endswith(f" {share}")] or ["none"]
        report(
            f"mean ARI of RobustKMeans on the clean objects of 15 sets, {share} outliers",
            mean("robust", kinds),
            baseline="k-means, ten starts",
            target=target,
            unit="",
            even_sets=mean("robust", kinds, True),
            sets_with_small_clusters=mean("robust", kinds, False),
            kmeans=mean("k-means", kinds),
            kmeans_small_clusters=mean("k-means", kinds, False),
            lofkmeans=mean("LOFKMeans", kinds),
        )
    for method in makes:
        row = ", ".join(
            f"{kind} {mean(method, [kind], True):.3f}/{mean(method, [kind], False):.3f}"
            for kind in KINDS
        )
        print(f"{method:10s} even/uneven: {row}")


if __name__ == "__main__":
    main()
