"""Small data sets that find wrong code: zero rows, duplicates, noise, lone objects, far offsets.

Every set has the same partitions, so that a test may run over all sets alike. Objects lie around
three centres away from the origin; all values are multiples of 1/8, so that float32 holds them
exactly. The recorded results rest on `DATA`: change it only together with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N, D = 48, 4
FAR = 1e4


class Ugly(NamedTuple):
    """A data set with several partitions of its objects and a weight for each."""

    name: str
    X: np.ndarray  # (n, D)
    partitions: dict[str, np.ndarray]
    weights: np.ndarray  # (n,), some of them 0


def _plain(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(15)
    truth = np.arange(n) % 3
    centres = np.array([[4.0, 1, 1, 0], [1, 5, 0, 2], [-3, 1, 4, 1]])
    X = centres[truth] + rng.normal(0, 1, (n, D))
    return np.round(X * 8) / 8, truth


def _partitions(truth: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(16)
    lone = truth.copy()
    lone[7] = 3
    noisy = truth.copy()
    noisy[[3, 10, 20, 33, 41]] = -1
    both = noisy.copy()
    both[7] = 3
    return {
        "three": truth,
        "two": (truth > 0).astype(int),
        "random": rng.integers(0, 4, len(truth)),
        "lone": lone,
        "noisy": noisy,
        "noisy and lone": both,
    }


def _zeros(X: np.ndarray) -> None:
    X[[6, len(X) - 23]] = 0.0  # of two clusters of "three", not noise


def _duplicates(X: np.ndarray) -> None:
    X[[12, 15, 18]] = X[9]  # one cluster
    X[[1, 4]] = X[2]  # across clusters
    if len(X) > N:  # in another block
        X[[-6, -3]] = X[9]
        X[-4] = X[1]


def data_sets(n: int = N) -> dict[str, Ugly]:
    """All sets of n objects by name; those of 600 and more need more than one block."""
    base, truth = _plain(n)
    partitions = _partitions(truth)
    weights = np.random.default_rng(17).integers(0, 5, n) / 4.0
    made = {name: base.copy() for name in ("plain", "zeros", "duplicates", "far", "all", "all far")}
    for name in ("zeros", "all"):
        _zeros(made[name])
    for name in ("duplicates", "all", "all far"):
        _duplicates(made[name])
    for name in ("far", "all far"):
        made[name] += FAR
    return {name: Ugly(name, X, partitions, weights) for name, X in made.items()}


def with_a_far_cluster(plain: Ugly, far: float) -> Ugly:
    """The same with one of the three clusters, and the first object of another, far away."""
    X, truth = plain.X.copy(), plain.partitions["three"]
    X[truth == 2] += far
    X[np.flatnonzero(truth == 0)[0]] += far
    return plain._replace(name="two scales", X=X)


DATA = data_sets()
