"""DC-distances by brute force, for tests."""

from __future__ import annotations

import numpy as np


def explicit(X, min_points=5):
    """(n, n) by n rounds of relaxation over the matrix of mutual reachabilities."""
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))
    core = np.sort(D, axis=1)[:, min_points - 1]
    D = np.maximum(D, np.maximum(core[:, None], core))
    np.fill_diagonal(D, 0)
    for k in range(len(X)):
        np.minimum(D, np.maximum(D[:, k : k + 1], D[k]), out=D)
    return D
