"""Does a tensor in host memory cost more than the same NumPy array?"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch

import wellsep as ws
from benchmarks.harness import report, time_ratio

N, D, K = 4_000, 16, 10


def calls(X: object, y: np.ndarray) -> dict[str, Callable[[], float]]:
    return {
        "silhouette": lambda: ws.silhouette_score(X, y),
        "Dunn": lambda: ws.dunn_score(X, y),
        "C index": lambda: ws.c_index_score(X, y),
        "KMeans": lambda: ws.KMeans(K, random_state=0).fit(X).inertia_,
        "CFMeans": lambda: ws.CFMeans(K, random_state=0).fit(X).inertia_,
    }


def main() -> int:
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    X = rng.normal(size=(N, D)) + rng.normal(scale=3, size=(K, D))[y]
    met = []
    arrays, tensors = calls(X, y), calls(torch.from_numpy(X), y)
    for name, numpy in arrays.items():
        tensor = tensors[name]
        difference = abs(numpy() - tensor())
        if difference:
            raise SystemExit(f"{name} of a tensor must equal that of the array, not {difference}")
        met.append(
            report(
                f"{name} of a tensor in host memory, {N:,} × {D}",
                time_ratio(numpy, tensor, 9),
                baseline="the same call with the NumPy array",
                target=1 / 1.2,
                difference=difference,
                seed=0,
            )
        )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
