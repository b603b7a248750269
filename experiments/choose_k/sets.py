"""The sets of the study: a battery of known sets, sets generated anew, sets without clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

OBJECTS, PLANAR = 700, 1000  # of a set at most; of one with two or three columns
WIDE, KEPT = 60, 50  # more columns than this are replaced by this many principal components
LARGEST = 15  # classes of a set of the battery at most
SCALED = ("uci/", "avila", "vehicle", "wifi_localization")  # columns of different units
OTHERS = (
    "avila",
    "fashion_mnist_test",
    "mnist_embeddings10",
    "mnist_umap3",
    "optdigits",
    "pendigits",
    "usps_9298",
    "vehicle",
    "wifi_localization",
)


class Set(NamedTuple):
    """Objects, their classes (0: noise, in no class) and the number of classes."""

    name: str
    X: np.ndarray
    classes: np.ndarray

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(np.unique(self.classes[self.classes > 0]))


def battery(folder: Path) -> Iterator[Set]:
    """The sets of `clustering_data_v1` with at most 15 classes, and nine others."""
    stored = np.load(folder / "clustering_data_v1.npz")
    for name in sorted(key.removesuffix("/X") for key in stored if key.endswith("/X")):
        classes = stored[f"{name}/labels0"].astype(int)
        if classes.max() <= LARGEST:
            yield _made(name, stored[f"{name}/X"], classes)
    for name in OTHERS:
        with np.load(folder / f"{name}.npz") as one:
            yield _made(name, one["X"].reshape(len(one["X"]), -1), one["y"].astype(int) + 1)


def _made(name: str, X: np.ndarray, classes: np.ndarray) -> Set:
    most = PLANAR if X.shape[1] <= 3 else OBJECTS
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:most])
    X, classes = X[rows].astype(np.float64), classes[rows]
    if name.startswith(SCALED):
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if X.shape[1] > WIDE:
        centred = X - X.mean(axis=0)
        X = centred @ np.linalg.svd(centred, full_matrices=False)[2][:KEPT].T
    return Set(name, X, classes)


# --------------------------------------------------------------------------- generated anew


def fresh(*draw: int) -> Iterator[Set]:
    """46 sets: mixtures of many kinds, and shapes that k-means cannot find; new for each draw."""
    for at in range(36):
        yield mixture(at, *draw)
    for at in range(10):
        yield shape(at, *draw)


def mixture(at: int, *draw: int) -> Set:
    """Clusters of unequal sizes and shapes; how far apart, tails and noise vary with the number."""
    rng = np.random.default_rng([2026, 19, at, *draw])
    k, d = int(rng.integers(2, 13)), int(rng.choice([2, 2, 3, 5, 10, 20]))
    n = int(rng.integers(250, OBJECTS - 50))
    apart = float(rng.uniform(2.0, 6.0))
    sizes = np.maximum(rng.dirichlet(np.full(k, 4.0)) * n, 12).astype(int)
    centres = np.empty((0, d))
    reach = apart * k ** (1 / min(d, 3))
    while len(centres) < k:
        one = rng.uniform(-reach / 2, reach / 2, d)
        near = np.linalg.norm(centres - one, axis=1).min(initial=np.inf)
        centres = np.vstack([centres, one]) if near >= apart else centres
        reach *= 1.002
    parts = []
    for centre, size in zip(centres, sizes, strict=True):
        turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
        scale = rng.uniform(0.5, 1.3, d)
        drawn = rng.normal(size=(size, d))
        if at % 4 == 3:  # heavy tails
            drawn /= np.sqrt(rng.chisquare(4, (size, 1)) / 4)
        parts.append(centre + drawn * scale @ turned)
    X, classes = np.concatenate(parts), np.repeat(np.arange(k) + 1, sizes)
    if at % 9 == 8:  # noise
        more = int(0.03 * len(X))
        X = np.concatenate([X, rng.uniform(X.min(axis=0), X.max(axis=0), (more, d))])
        classes = np.concatenate([classes, np.zeros(more, dtype=int)])
    return Set(f"mixture {at:02d}", X, classes)


def shape(at: int, *draw: int) -> Set:
    """Moons, rings, crescents of unequal density, sticks, and a blob inside a ring."""
    rng = np.random.default_rng([2026, 20, at, *draw])
    n = int(rng.integers(300, 600))
    kind = ("moons", "rings", "sticks", "blob in ring", "unequal density")[at % 5]
    angle, classes = rng.uniform(0, np.pi, n), 1 + np.arange(n) % 2
    if kind == "moons":
        flip = np.where(classes == 1, 1, -1)
        X = np.stack([flip * np.cos(angle) + (classes == 2), flip * np.sin(angle)], axis=1)
        X += rng.normal(scale=0.08, size=X.shape)
    elif kind == "rings":
        radius = np.where(classes == 1, 1.0, 2.5) + rng.normal(scale=0.1, size=n)
        X = radius[:, None] * np.stack([np.cos(2 * angle), np.sin(2 * angle)], axis=1)
    elif kind == "sticks":
        classes = 1 + np.arange(n) % 3
        X = rng.normal(size=(n, 2)) * [5, 0.3] + np.stack([np.zeros(n), 2.0 * classes], axis=1)
    elif kind == "blob in ring":
        radius = np.where(classes == 1, 0.0, 4.0)
        X = radius[:, None] * np.stack([np.cos(2 * angle), np.sin(2 * angle)], axis=1)
        X += rng.normal(scale=0.4, size=X.shape)
    else:
        spread = np.where(classes == 1, 0.2, 1.5)[:, None]
        X = rng.normal(size=(n, 2)) * spread + 2.2 * (classes == 2)[:, None]
    return Set(f"{kind} {at:02d}", X, classes)


# --------------------------------------------------------------------------- without clusters


def empty(folder: Path | None, draws: int = 2) -> Iterator[Set]:
    """Seven kinds of sets without clusters, some draws of each; and four that cutting improves."""
    vehicle = None
    if folder is not None:
        with np.load(folder / "vehicle.npz") as one:
            vehicle = one["X"].astype(np.float64)
            vehicle = (vehicle - vehicle.mean(axis=0)) / vehicle.std(axis=0)
    for draw in range(draws):
        rng = np.random.default_rng([2026, 21, draw])
        n = 600
        made = {
            "Gaussian, d = 2": rng.normal(size=(n, 2)),
            "Gaussian, d = 50": rng.normal(size=(n, 50)),
            "uniform square": rng.uniform(size=(n, 2)),
            "Student t, d = 5": rng.standard_t(3, size=(n, 5)),
            "long Gaussian": rng.normal(size=(n, 5)) * [10, 1, 1, 1, 1],
            "uniform box, d = 10": rng.uniform(size=(n, 10)),
        }
        if vehicle is not None:
            permuted = rng.permuted(vehicle, axis=0)[:n]
            made["vehicle, columns permuted"] = permuted
        made |= {
            "exponential, d = 3 *": rng.exponential(size=(n, 3)),
            "log-normal, d = 2 *": rng.lognormal(size=(n, 2)),
            "triangle *": _triangle(rng, n),
            "banana *": _banana(rng, n),
        }
        for name, X in made.items():
            yield Set(f"{name}, draw {draw}", X, np.ones(n, dtype=int))


def _triangle(rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.uniform(size=(n, 2))
    return np.where(X.sum(axis=1, keepdims=True) > 1, 1 - X, X)


def _banana(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=n)
    return np.stack([x, x**2 + rng.normal(scale=0.5, size=n)], axis=1)
