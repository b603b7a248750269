"""Blobs as a new user would make them: how often each rule puts the right K first.

    python -m experiments.votes.blobs

k-means over a grid of K on blobs in four dimensions, in their own coordinates or in two embeddings
(two and three principal components). With fewer than five different clusterings the index decides.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

import wellsep as ws
from experiments.votes.rules import Case, before, declared

# Blobs, numbers of clusters tried, embeddings, seeds.
ROWS = (
    (3, (2, 3, 4), 2, 15),
    (3, (2, 3, 4, 5, 6), 2, 15),
    (5, (2, 4, 5, 6, 8), 2, 15),
    (10, (6, 10, 14), 2, 15),
    (3, tuple(range(2, 11)), 2, 15),
    (5, tuple(range(2, 11)), 2, 15),
    (7, tuple(range(3, 13)), 2, 15),
    *((3, tuple(range(2, k + 1)), 1, 10) for k in (4, 6, 10, 15)),
    *((5, tuple(range(2, k + 1)), 1, 10) for k in (6, 10, 15)),
)
FEWEST = 5


def case(centers: int, ks: tuple[int, ...], n_spaces: int, seed: int) -> Case:
    """The distinct clusterings of one draw."""
    X, _ = make_blobs(300, 4, centers=centers, random_state=seed)
    spaces = {"X": X}
    if n_spaces == 2:
        spaces = {f"PCA {p}": PCA(p, random_state=0).fit_transform(X) for p in (2, 3)}
    labels, pairs = {}, {}
    for space, Z in spaces.items():
        for k in ks:
            name = f"{space} K={k}"
            labels[name] = KMeans(k, n_init=10, random_state=0).fit_predict(Z)
            pairs[name] = space
    scores = ws.score_runs(ws.Runs.from_parts(spaces, labels, pairs=pairs), details=False)
    vote = ws.consensus(labels)
    first = vote.classes.first
    ace = np.asarray(ws.ace(scores).scores)[first]
    clusters = np.array([len(np.unique(row)) for row in labels.values()])[first]
    mean = scores.values["silhouette"].mean(axis=0)[first]
    return Case(np.asarray(vote.agreement), clusters, mean, ace)


def hits(centers: int, ks: tuple[int, ...], n_spaces: int, seeds: int) -> list[int]:
    """How often the silhouette, the rule before and the declared rule find the blobs."""
    found = np.zeros(3, int)
    for seed in range(seeds):
        one = case(centers, ks, n_spaces, seed)
        scores = [one.mean, before(one), one.mean if len(one.A) < FEWEST else declared(one)]
        found += [int(one.K[np.argmax(score)] == centers) for score in scores]
    return found.tolist()


def main() -> None:
    print(
        "| blobs | K | embeddings | draws | silhouette | before | declared |\n" + "|---" * 7 + "|"
    )
    for centers, ks, n_spaces, seeds in ROWS:
        tried = f"{ks[0]}–{ks[-1]}" if len(ks) == ks[-1] - ks[0] + 1 else " ".join(map(str, ks))
        cells = (centers, tried, n_spaces, seeds, *hits(centers, ks, n_spaces, seeds))
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
