"""The labelled sets of the study: at most 500 objects each, in the units they come in."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn import datasets

from experiments.datasets import load_dataset

MOST_OBJECTS = 500
OF_SKLEARN = ("iris", "wine", "breast_cancer", "digits")
REAL = (
    *("avila", "cmu_pie_pose27", "coil100_32", "coil20_32", "ecoli", "fashion_mnist_test", "glass"),
    *("mnist_embeddings10", "mnist_test", "optdigits", "orl_32", "pendigits", "segment"),
    *("umist_112x92", "usps_9298", "vehicle", "wifi_localization", "yeast"),
    *("uci/ionosphere", "uci/sonar"),
    *("authorship", "cells_kidney", "crop", "dermatology", "gas_batch6", "isolet", "leaves100"),
    *("notmnist", "r8", "telugu", "texture", "vowel", "wisdm"),
)
DRAWN = (
    *("fcps/hepta", "fcps/lsun", "sipu/a1", "sipu/aggregation", "sipu/compound", "sipu/d31"),
    *("sipu/r15", "sipu/s2", "sipu/unbalance"),
)
OPEN = (*OF_SKLEARN, *REAL, *DRAWN)


def second() -> list[str]:
    """Names of the sets that nobody looked at before the declaration."""
    folder = Path(os.environ.get("WELLSEP_DATA", ""), "fresh2")
    return [f"fresh2/{path.stem}" for path in sorted(folder.glob("*.npz"))]


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Objects and classes of a set; of more than 500 objects a sample drawn with seed 1."""
    X, y = _whole(name)
    if X.ndim > 2 and X.shape[1] > 50:  # large pictures: every fourth pixel
        X = X[:, ::4, ::4]
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    if len(X) > MOST_OBJECTS:
        rows = np.sort(np.random.default_rng(1).permutation(len(X))[:MOST_OBJECTS])
        X, y = X[rows], y[rows]
    return X, np.unique(y, return_inverse=True)[1]


def _whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in OF_SKLEARN:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    folder = Path(os.environ.get("WELLSEP_DATA", ""))
    for path in (folder / f"{name}.npz", folder / "fresh" / f"{name}.npz"):
        if path.is_file():
            with np.load(path, allow_pickle=False) as arrays:
                return arrays["X"], arrays["y"]
    found = load_dataset(name)
    return found.X, found.y
