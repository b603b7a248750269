"""Runs from data alone, over a wide grid of K or round the classes: embeddings x methods x K.

    python -m experiments.votes.wide_runs OUT SET.npz|NAME ...            one file a set, K 2 to 20
    python -m experiments.votes.wide_runs --round OUT SET.npz|NAME ...    four files a set

A set is an npz file with X and y, or a name that experiments.datasets reads. Needs umap-learn.
`--round` takes K from .3 to 3 times the number of classes in six embeddings, and writes those runs
(varying), those with K up to 1.2 times (low), from .85 times (high), and with K as the classes
(fixed). The files are those that `compare.py` reads; SEED in the environment draws anew.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import umap
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from experiments.datasets import load_dataset
from experiments.votes.arrays import UNITS

KS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
SIZES = (5, 15, 40)
RANGES = {"varying": (0, np.inf), "low": (0, 1.21), "high": (0.84, np.inf)}
MOST_OBJECTS = 500
SEED = int(os.environ.get("SEED", "0"))


def read(source: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """At most 500 objects of a set, scaled, and their classes; no constant columns."""
    if source.endswith(".npz"):
        with np.load(source) as file:
            X, y = file["X"], file["y"]
    else:
        data = load_dataset(source)
        X, y = data.X, data.y
    if X.ndim > 2 and X.shape[1] > 50:  # large pictures: every fourth pixel
        X = X[:, ::4, ::4]
    X = np.asarray(X, float).reshape(len(X), -1)
    if len(X) > MOST_OBJECTS:
        rows = np.sort(np.random.default_rng(1 + seed).permutation(len(X))[:MOST_OBJECTS])
        X, y = X[rows], y[rows]
    X = X[:, X.std(0) > 0]
    X = StandardScaler().fit_transform(X) if X.shape[1] <= 200 else X / np.abs(X).max()
    return X, np.unique(y, return_inverse=True)[1]


def embeddings(X: np.ndarray, seed: int, more: bool = False) -> dict[str, np.ndarray]:
    """The features, principal components of 90 % of the variance, and UMAP in five dimensions.

    With `more` also three principal components, and UMAP of 5 and of 40 neighbours.
    """
    spaces = {"features": X}
    if X.shape[1] > 3:
        pca = PCA(min(X.shape[1], 50, len(X) - 1), random_state=seed).fit(X)
        n_components = int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), 0.9)) + 1
        spaces["pca"] = pca.transform(X)[:, : max(2, n_components)]
    base = spaces.get("pca", X) if X.shape[1] > 50 else X
    neighbours = {"umap": 15} | ({"umap 5": 5, "umap 40": 40} if more else {})
    for name, n_neighbors in neighbours.items():
        layout = umap.UMAP(
            n_components=min(5, max(2, X.shape[1])),
            n_neighbors=n_neighbors,
            min_dist=0.0,
            random_state=seed,
        )
        spaces[name] = layout.fit_transform(base).astype(float)
    if more and X.shape[1] > 3:
        spaces["pca 3"] = pca.transform(X)[:, :3]
    return spaces


def candidates(spaces: dict[str, np.ndarray], seed: int, ks=KS, sizes=SIZES):
    """(name, embedding, labels) of k-means, mixtures, Ward and HDBSCAN in every embedding."""
    for space, Z in spaces.items():
        for k in ks:
            kmeans = KMeans(k, n_init=4, random_state=seed)
            yield f"{space} kmeans {k}", space, kmeans.fit_predict(Z)
            if Z.shape[1] <= 50:
                shape = "full" if Z.shape[1] <= 10 else "diag"
                mixture = GaussianMixture(
                    k, covariance_type=shape, reg_covar=1e-4, random_state=seed
                )
                yield f"{space} gmm {k}", space, mixture.fit_predict(Z)
            yield f"{space} ward {k}", space, AgglomerativeClustering(k).fit_predict(Z)
        for size in sizes:
            density = HDBSCAN(min_cluster_size=size, min_samples=min(size, 10), copy=True)
            yield f"{space} hdbscan {size}", space, density.fit_predict(Z)


def scored(spaces: dict[str, np.ndarray], made: list, y: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of one file: see the README of this folder."""
    made = [row for row in made if len(np.unique(row[2][row[2] >= 0])) > 1]
    labels = {name: partition for name, _, partition in made}
    pairs = {name: space for name, space, _ in made}
    runs = ws.Runs.from_parts(spaces, labels, pairs=pairs)
    scores = ws.score_runs(runs, details=False, n_jobs=1)
    silhouettes = scores.values["silhouette"]
    ace = np.asarray(ws.ace(scores).scores)
    number = {space: i for i, space in enumerate(spaces)}
    space = np.array([number[pairs[name]] for name in labels])
    return {
        "labels": np.array(list(labels.values()), np.int16),
        "names": np.array(list(labels)),
        "K": np.array([len(np.unique(p[p >= 0])) for p in labels.values()]),
        "space": space,
        "spaces": np.array(list(spaces)),
        "S": silhouettes,
        "own": silhouettes[space, np.arange(len(space))],
        "mean_score": silhouettes.mean(0),
        "ace": ace,
        "truth": y,
        "ari": np.array([adjusted_rand_score(y, p) for p in labels.values()]),
        **{f"Z_{name}": Z.astype(np.float32) for name, Z in spaces.items()},
    }


def wide(source: str, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Runs over a wide grid of K."""
    X, y = read(source, seed)
    spaces = embeddings(X, seed)
    return {"": scored(spaces, list(candidates(spaces, seed)), y)}


def round_classes(source: str, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Runs round the number of classes, all, low, high and fixed; no density methods."""
    X, y = read(source, seed)
    spaces = embeddings(X, seed, more=True)
    classes = len(np.unique(y))
    ks = np.unique(np.maximum(2, np.round(classes * np.geomspace(0.3, 3, 10)))).astype(int)
    ks = ks[ks <= len(X) // 3]
    made = list(candidates(spaces, seed, ks.tolist(), ()))
    asked = np.array([int(name.rsplit(" ", 1)[1]) for name, _, _ in made]) / classes
    found = {}
    for kind, (low, high) in {**RANGES, "fixed": (1, 1)}.items():
        rows = [row for row, share in zip(made, asked, strict=True) if low <= share <= high]
        if kind == "fixed":
            rows = list(candidates(spaces, seed, (classes,), ()))
        arrays = scored(spaces, rows, y)
        found[f"-{kind}"] = arrays | {"kind": np.array(kind)}
    return found


def main(folder: Path, sources: list[str], make=wide) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        name = Path(source).stem if source.endswith(".npz") else source.replace("/", "-")
        start = time.perf_counter()
        if list(folder.glob(f"{name}.npz")) or list(folder.glob(f"{name}-fixed.npz")):
            continue
        for ending, arrays in make(source, SEED).items():
            unit = np.array(UNITS.get(name, name))
            np.savez_compressed(folder / f".{name}{ending}.npz", unit=unit, **arrays)
            os.replace(folder / f".{name}{ending}.npz", folder / f"{name}{ending}.npz")
        print(name, f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    arguments = [argument for argument in sys.argv[1:] if argument != "--round"]
    make = round_classes if "--round" in sys.argv else wide
    main(Path(arguments[0]), arguments[1:], make)
