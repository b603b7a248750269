"""Does the default ranking pick better than simple rules, in six stories with three seeds?

    python experiments/stories/run.py                 # all of them, about five minutes on one core
    python experiments/stories/run.py cells topics    # these two; the rows of the others stay

Each story makes runs without labels, ranks them with the defaults, and compares picks with the true
groups, which are used for nothing else. results.csv has a row for each story and seed: the adjusted
Rand index of the pick and of simple rules. The story "deep" needs PyTorch.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import Isomap
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler, normalize

import wellsep as ws
from wellsep.deep import IDEC

HERE = Path(__file__).parent
SEEDS = (1, 2, 3)


def digits(seed: int) -> tuple[dict, np.ndarray]:
    """1,000 digits drawn anew; three embeddings, one of them poor, and five K."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).choice(len(X), 1000, replace=False)
    pca = PCA(20, random_state=seed).fit_transform(X[rows])
    isomap = Isomap(n_neighbors=10, n_components=5).fit_transform(pca)
    spaces = {"PCA 1": pca[:, :1], "PCA 20": pca, "Isomap 5": isomap}
    made = {
        f"{name}, K={k}": (Z, KMeans(k, n_init=5, random_state=seed).fit_predict(Z))
        for name, Z in spaces.items()
        for k in (6, 8, 10, 12, 16)
    }
    return made, y[rows]


def customers(seed: int) -> tuple[dict, np.ndarray]:
    """700 customers in five segments with skewed money columns; four preparations, two methods."""
    rng = np.random.default_rng(seed)
    segment = rng.choice(5, 700, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    logs = [
        ([3.0, 4.6, 2.0, 3.5, 5.2], 0.45),
        ([1.6, 0.7, 2.8, 1.2, 0.3], 0.35),
        ([3.5, 3.2, 4.2, 5.8, 3.0], 0.4),
    ]
    money = [np.exp(np.array(m)[segment] + rng.normal(0, s, 700)) for m, s in logs]
    age = np.array([35, 48, 42, 55, 27])[segment] + rng.normal(0, 9, 700)
    tenure = np.clip(np.array([24, 40, 60, 30, 6])[segment] + rng.normal(0, 14, 700), 0, None)
    raw = np.column_stack([*money, age, tenure])
    scaled = StandardScaler().fit_transform(raw)
    logged = StandardScaler().fit_transform(np.column_stack([np.log1p(raw[:, :3]), raw[:, 3:]]))
    spaces = {"raw": raw, "scaled": scaled, "log": logged, "pca2": PCA(2).fit_transform(scaled)}
    made = {}
    for name, Z in spaces.items():
        for k in (2, 3, 4, 5, 6, 8):
            made[f"{name} kmeans {k}"] = Z, KMeans(k, n_init=3, random_state=seed).fit_predict(Z)
            made[f"{name} gmm {k}"] = Z, GaussianMixture(k, random_state=seed).fit_predict(Z)
    return made, segment


def shapes(seed: int) -> tuple[dict, np.ndarray]:
    """Three long clusters with noise; HDBSCAN with five sizes in the data and in components."""
    rng = np.random.default_rng(seed)
    group = np.arange(600) % 3
    X = rng.normal(size=(600, 4)) * [4, 1, 1, 1] + 6 * np.eye(4)[1 + group]
    X[:60], group[:60] = rng.uniform(-10, 12, size=(60, 4)), 3
    spaces = {"data": X, "PCA 2": PCA(2).fit_transform(X), "PCA 3": PCA(3).fit_transform(X)}
    made = {
        f"{name}, {size}": (Z, HDBSCAN(min_cluster_size=size, copy=True).fit_predict(Z))
        for name, Z in spaces.items()
        for size in (5, 10, 20, 40, 80)
    }
    return {name: pair for name, pair in made.items() if len(set(pair[1])) > 1}, group


def cells(seed: int) -> tuple[dict, np.ndarray]:
    """Counts of 800 genes in 900 cells of seven types, three of them in one lineage."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(7, 900, p=[0.3, 0.2, 0.15, 0.13, 0.1, 0.07, 0.05])
    lineage = np.array([0, 0, 0, 1, 1, 2, 3])
    log_rate = np.tile(np.log(rng.gamma(0.4, size=800) + 1e-3), (7, 1))
    genes = rng.permutation(800)
    for group in range(4):
        log_rate[np.ix_(lineage == group, genes[40 * group : 40 * group + 40])] += 1.7
    for kind in range(7):
        log_rate[kind, genes[160 + 20 * kind : 180 + 20 * kind]] += 1.3
    depth = rng.lognormal(np.log(700), 0.4, (900, 1))
    rates = np.exp(log_rate[kinds])
    counts = rng.poisson(rng.gamma(2, depth * rates / rates.sum(axis=1, keepdims=True) / 2))
    counts = counts[:, counts.sum(axis=0) > 4].astype(float)
    expected = counts.sum(1, keepdims=True) @ counts.sum(0, keepdims=True) / counts.sum()
    residuals = (counts - expected) / np.sqrt(expected + expected**2 / 100)
    logs = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    spaces = {
        "PCA": PCA(20, random_state=seed).fit_transform(logs),
        "residuals": PCA(20, random_state=seed).fit_transform(residuals),
        "NMF": NMF(15, init="nndsvda", random_state=seed).fit_transform(logs),
    }
    made = {}
    for name, Z in spaces.items():
        for k in (4, 6, 8, 10, 14):
            made[f"{name} k-means {k}"] = Z, KMeans(k, n_init=3, random_state=seed).fit_predict(Z)
            made[f"{name} ward {k}"] = Z, AgglomerativeClustering(k).fit_predict(Z)
    return made, kinds


MODULES = (
    "scipy.stats", "scipy.signal", "scipy.ndimage", "scipy.linalg", "scipy.sparse",
    "scipy.optimize", "scipy.special", "scipy.interpolate", "numpy.random", "sklearn.metrics",
)  # fmt: skip


def topics(seed: int) -> tuple[dict, np.ndarray]:
    """The descriptions of functions of ten modules, without their names; HDBSCAN with noise."""
    texts, module = [], []
    for number, name in enumerate(MODULES):
        home = importlib.import_module(name)
        members = [getattr(home, member) for member in sorted(dir(home)) if member[0] != "_"]
        described = {(inspect.getdoc(one) or "").split("Parameters\n")[0] for one in members}
        words = [re.sub(r"`[^`]*`|[^A-Za-z]+", " ", text) for text in sorted(described)]
        long = [text for text in words if len(text.split()) >= 12]
        texts += long
        module += [number] * len(long)
    rows = np.random.default_rng(seed).choice(len(texts), 700, replace=False)
    tfidf = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True)
    weights = tfidf.fit_transform([texts[i] for i in rows])
    made = {}
    for d in (3, 5, 10, 20, 50):
        Z = normalize(TruncatedSVD(d, random_state=seed).fit_transform(weights))
        for size in (5, 8, 12, 20, 40):
            made[f"LSA {d}, {size}"] = Z, HDBSCAN(min_cluster_size=size, copy=True).fit_predict(Z)
    clustered = {name: pair for name, pair in made.items() if len(set(pair[1])) > 2}
    return clustered, np.array(module)[rows]


def deep(seed: int) -> tuple[dict, np.ndarray]:
    """1,000 digits drawn anew; IDEC with six settings, none of which is known to be right."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).choice(len(X), 1000, replace=False)
    made = {}
    for gamma in (0.01, 0.1, 1.0):
        for rate in (0.001, 0.01):
            settings = {"gamma": gamma, "learning_rate": rate, "random_state": seed}
            model = IDEC(10, device="cpu", deterministic=True, **settings).fit(X[rows])
            made[f"gamma={gamma}, rate={rate}"] = model.embedding_, model.labels_
    return made, y[rows]


STORIES = {
    "digits": digits,
    "customers": customers,
    "shapes": shapes,
    "cells": cells,
    "topics": topics,
    "deep": deep,
}


def own_silhouette(made: dict) -> str:
    """The run with the best silhouette in its own embedding, noise left out."""
    scores = {
        name: ws.silhouette_score(Z, labels, undefined="nan", noise="exclude")
        for name, (Z, labels) in made.items()
    }
    return max(scores, key=lambda name: np.nan_to_num(scores[name], nan=-1))


def measure(story: str, seed: int) -> dict[str, object]:
    made, truth = STORIES[story](seed)
    aris = {name: ws.ari_score(truth, labels) for name, (_, labels) in made.items()}
    judgement = ws.judge(made, random_state=0)
    count = {name: len(set(labels.tolist()) - {-1}) for name, (_, labels) in made.items()}
    middle = sorted(made, key=lambda name: (count[name], name))[len(made) // 2]
    agreed = ws.consensus({name: labels for name, (_, labels) in made.items()}).best
    pick = judgement.ranking.best
    return {
        "story": story,
        "seed": seed,
        "runs": len(made),
        "pick": pick,
        "verdict": judgement.verdict.kind,
        "ari_of_pick": aris[pick],
        "own_silhouette": aris[own_silhouette(made)],
        "agreement": aris[agreed],
        "middle_k": aris[middle],
        "median": float(np.median(list(aris.values()))),
        "best": max(aris.values()),
    }


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    path = HERE / "results.csv"
    with path.open(newline="") as stream:
        kept = [row for row in csv.DictReader(stream) if names and row["story"] not in names]
    rows = [measure(story, seed) for story in names or STORIES for seed in SEEDS]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(kept)
        for row in rows:
            writer.writerow({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
