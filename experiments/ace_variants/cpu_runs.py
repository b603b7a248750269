"""Run sets made without a GPU, as further evidence on variants of ACE: k-means in many spaces.

Not the paper's experiments and never counted among them. Each set is seen through principal
components, random projections, kernel and neighbour-graph embeddings, with and without columns of
noise; k-means partitions every space, with the true number of clusters (tuning) or with ten others
(clusters). There the number goes up as the spaces go by, so that a judge of numbers is a judge of
spaces as well; `drawn` makes runs in which it does not.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold import SpectralEmbedding

import wellsep as ws
from experiments.ace.archive import names as scored
from experiments.ace.scoring import score_experiment
from experiments.bookkeeping import say
from experiments.datasets import load_dataset

FROM_FOLDER = (
    "optdigits", "pendigits", "segment", "vehicle", "yeast", "ecoli", "wifi_localization",
    "usps_9298", "coil20_32",
)  # fmt: skip
EMBEDDED = ("digits", "wine", "breast_cancer")
# Looked at by nobody before the one hypothesis of the README was written down.
FRESH = (
    "iris", "glass", "avila", "uci/ionosphere", "uci/sonar", "mnist_embeddings10", "mnist_umap3",
    "mnist_test", "fashion_mnist_test", "cmu_pie_pose27",
)  # fmt: skip
LARGEST = 1000


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most 1000 objects, columns standardised (pixels only centred), classes from 0."""
    data = load_dataset(name)
    X, y = data.X.astype(float), np.unique(data.y, return_inverse=True)[1]
    if len(X) > LARGEST:
        some = np.random.default_rng(0).choice(len(X), LARGEST, replace=False)
        X, y = X[some], y[some]
    X = X - X.mean(axis=0)
    spread = X.std(axis=0)
    if data.image_shape is None and data.X.ndim == 2 and X.shape[1] < 64:
        return X[:, spread > 0] / spread[spread > 0], y
    return X / spread.max(), y


def spaces_of(X: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Twenty spaces of one set, good and bad."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    X = X / np.sqrt((X**2).sum(axis=1).mean())
    full = PCA(min(n, d, 20), random_state=0).fit_transform(X)
    found = {"input": X if d <= 64 else full}
    for k in (2, 3, 5, 10):
        found[f"pca {k}"] = full[:, : min(k, full.shape[1])]
    for k in (2, 4, 8):
        found[f"projection {k}"] = X @ rng.normal(size=(d, k)) / np.sqrt(d)
    for level in (0.5, 1.0, 2.0):
        noise = rng.normal(size=(n, 10)) * level * full.std()
        found[f"noise {level:g}"] = np.hstack([full[:, :5], noise])
    near = np.quantile(((X[:50, None] - X[None]) ** 2).sum(-1), 0.1)
    for k, width in ((3, 1.0), (8, 1.0), (8, 0.25)):
        kernel = KernelPCA(k, kernel="rbf", gamma=width / near, random_state=0)
        found[f"kernel {k} {width:g}"] = kernel.fit_transform(X)
    for k, neighbours in ((3, 10), (8, 10), (15, 10), (8, 30)):
        graph = SpectralEmbedding(k, n_neighbors=neighbours, random_state=0)
        found[f"graph {k} {neighbours}"] = graph.fit_transform(X)
    found["squashed"] = np.tanh(3 * full[:, :5] / full.std())
    found["white"] = full[:, :8] / full[:, :8].std(axis=0)
    return {name: rotated(Z, rng) for name, Z in found.items()}


def rotated(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The space under a random rotation.

    Columns of most of these embeddings are uncorrelated, where the first scaled component, and
    with it ACE's dip test, is undefined; a network's columns are not.
    """
    return Z @ np.linalg.qr(rng.normal(size=(Z.shape[1],) * 2))[0]


def counts_around(k: int) -> list[int]:
    """Ten numbers of clusters that cover the true one."""
    top = max(2 * k, 11)
    return sorted(set(np.linspace(2, top, 10).round().astype(int).tolist()))


def made(name: str, task: str, seed: int = 0) -> tuple[ws.Runs, np.ndarray, np.ndarray]:
    """Runs of one set, its input and its classes."""
    X, y = load(name)
    k = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spaces = spaces_of(X, seed)
        if task == "clusters":
            names = [n for n in spaces if n.startswith(("graph", "pca", "kernel"))]
            counts = counts_around(k)
            pairs = [(f"K={c}", spaces[names[i % len(names)]], c) for i, c in enumerate(counts)]
        else:
            pairs = [(n, Z, k) for n, Z in spaces.items()]
        runs = [
            ws.Run(
                title,
                labels=ws.KMeans(c, n_init=3, random_state=seed).fit(Z).labels_,
                embedding=Z,
                params={"n_clusters": c, "random_state": seed},
            )
            for title, Z, c in pairs
        ]
    return ws.Runs(runs), X, y


def drawn(name: str, seed: int = 0, n_runs: int = 30) -> tuple[ws.Runs, np.ndarray, np.ndarray]:
    """Runs of one set whose space and number of clusters are drawn apart from each other."""
    X, y = load(name)
    spaces = spaces_of(X, seed)
    counts = counts_around(len(np.unique(y)))
    places = [(space, c) for space in spaces for c in counts]
    chosen = np.random.default_rng(seed).choice(len(places), n_runs, replace=False)
    holders: dict[str, str] = {}
    runs = []
    for space, c in (places[i] for i in np.sort(chosen)):
        title, first = f"{space} K={c}", space not in holders
        runs.append(
            ws.Run(
                title,
                labels=ws.KMeans(c, n_init=3, random_state=seed).fit(spaces[space]).labels_,
                embedding=spaces[space] if first else None,
                space=None if first else holders[space],
                params={"n_clusters": c, "random_state": seed},
            )
        )
        holders.setdefault(space, title)
    return ws.Runs(runs), X, y


def score_all(archive: Path, names: Any = None) -> None:
    """Score every set into an archive; finished ones are skipped."""
    names = (*EMBEDDED, *FROM_FOLDER) if names is None else names
    wanted = {
        f"cpu-{task}-{name.replace('/', '_')}": (name, task)
        for name in names
        for task in ("tuning", "clusters")
    }
    there = set(scored(archive))
    missing = {title: what for title, what in wanted.items() if title not in there}
    if missing:
        sets = {name for name, _ in missing.values()}
        say(f"k-means runs of {len(sets)} sets are missing; making them takes minutes")
    for title, (name, task) in missing.items():
        try:
            runs, X, y = made(name, task)
        except (FileNotFoundError, ValueError) as reason:
            say(f"{title}: left out, {reason}")
            continue
        score_experiment(runs, title, X, y, archive, whole=False)
