"""How a run is set up: the data, their scaling, where the centres start, how they settle."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import wellsep as ws
from experiments.datasets import load_dataset
from wellsep.cluster import lloyd

NEIGHBOURS = (3, 4, 5)
SCALINGS = ("raw", "min-max", "z")
STARTS = ("objects", "box", "partition")


class Protocol(NamedTuple):
    """Scaling of the features, and where the first centres come from."""

    scaling: str
    starts: str

    def __str__(self) -> str:
        return f"{self.scaling}, {self.starts}"


GRID = tuple(Protocol(scaling, starts) for scaling in SCALINGS for starts in STARTS)
# The features of the paper's three sets share a unit or come standardised.
PREFERRED = Protocol("raw", "objects")


@dataclass(frozen=True)
class Source:
    """A data set, which of its objects are used, and the scaling its units ask for."""

    name: str
    title: str
    scaling: str = "raw"
    most: int | None = None
    leave_out: tuple[int, ...] = ()


PAPER = (
    Source("yeast", "Yeast"),
    Source("wifi_localization", "Wireless"),
    Source("avila", "Avila"),
)
# One object of Avila lies at 386 in a standardised feature; LOF gives it a weight of hundreds.
CONTROL = (Source("avila", "Avila less one object", leave_out=(6619,)),)
# z where features have different units, raw where they share one; fixed before any run.
FURTHER = (
    Source("iris", "Iris"),
    Source("wine", "Wine", "z"),
    Source("breast_cancer", "Breast cancer", "z"),
    Source("ecoli", "E. coli"),
    Source("glass", "Glass", "z"),
    Source("vehicle", "Vehicle", "z"),
    Source("segment", "Segment", "z"),
    Source("uci/ionosphere", "Ionosphere"),
    Source("uci/sonar", "Sonar"),
    Source("optdigits", "Optdigits"),
    Source("pendigits", "Pendigits"),
    Source("usps_9298", "USPS", most=3000),
    Source("mnist_embeddings10", "MNIST embeddings", most=5000),
    Source("sipu/s3", "S3 (synthetic)"),
    Source("sipu/aggregation", "Aggregation (synthetic)"),
)
# Stand-ins that scikit-learn ships: they show the stages, not the paper's numbers.
EMBEDDED_PAPER = (
    Source("iris", "Yeast"),
    Source("wine", "Wireless"),
    Source("breast_cancer", "Avila"),
)
EMBEDDED_CONTROL = (Source("breast_cancer", "Avila less one object", leave_out=(6,)),)
EMBEDDED_FURTHER = (Source("wine", "Wine", "z"), Source("iris", "Iris"))


def load(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """Objects and classes; a fixed random sample where the set is larger than asked for."""
    data = load_dataset(source.name)
    kept = np.setdiff1d(np.arange(len(data.X)), source.leave_out)
    X, y = np.asarray(data.X, dtype=np.float64)[kept], data.y[kept]
    if source.most is not None and len(X) > source.most:
        rows = np.sort(np.random.default_rng(0).choice(len(X), source.most, replace=False))
        X, y = X[rows], y[rows]
    return X, y


def scale(X: np.ndarray, scaling: str) -> np.ndarray:
    """The features as they are, in [0, 1], or with mean 0 and variance 1."""
    if scaling == "raw":
        return X
    shift, width = (
        (X.min(axis=0), np.ptp(X, axis=0)) if scaling == "min-max" else (X.mean(0), X.std(0))
    )
    return (X - shift) / np.where(width > 0, width, 1.0)


def first_centers(X: np.ndarray, k: int, starts: str, seed: int) -> np.ndarray:
    """Centres on random objects, uniform in the bounding box, or means of a random partition."""
    rng = np.random.default_rng(seed)
    if starts == "objects":
        return X[rng.choice(len(X), k, replace=False)]
    if starts == "box":
        return rng.uniform(X.min(axis=0), X.max(axis=0), (k, X.shape[1]))
    labels = rng.permutation(np.arange(len(X)) % k)
    return np.stack([X[labels == code].mean(axis=0) for code in range(k)])


class Settled(NamedTuple):
    """A partition with the prototypes that made it."""

    labels: np.ndarray
    centers: np.ndarray


def settle(
    X: np.ndarray, centers: np.ndarray, weights: np.ndarray | None = None, *, drop: bool = False
) -> Settled:
    """k-means until no membership changes; `drop` leaves out empty clusters, else re-seeded."""
    if drop:
        centers = _without_empty(X, centers, weights)
    found = lloyd(X, centers, sample_weight=weights, max_iter=1000, tol=0.0)
    used, labels = np.unique(found.labels, return_inverse=True)
    return Settled(labels, np.asarray(found.centers)[used])


def _without_empty(X, centers, weights, steps=10):
    # The loop of the library re-seeds empty clusters, so the first steps, in which clusters of
    # such starts run empty, are taken one by one and without them.
    for _ in range(steps):
        _, labels = np.unique(_nearest(X, centers), return_inverse=True)
        mass = np.bincount(labels, weights)
        moved = [np.bincount(labels, f if weights is None else f * weights) / mass for f in X.T]
        centers = np.column_stack(moved)
    return centers[np.unique(_nearest(X, centers))]


def _nearest(X, centers):
    return ((centers**2).sum(axis=1) - 2.0 * X @ centers.T).argmin(axis=1)


def lof_weights(X: np.ndarray, k: int, t: int) -> np.ndarray:
    """max(1, LOF) as LOFKMeans makes it; searched once for all starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # coinciding objects, see REPORT.md
        model = ws.LOFKMeans(k, n_neighbors=t, n_init=1, max_iter=1, random_state=0)
        return model.fit(X).weights_
