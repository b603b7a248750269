"""Nearest-neighbour graphs of feature matrices: what both agglomerations start from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from wellsep._checks import check_count

_BLOCK = 2**24  # entries of a distance block


class Neighbours(NamedTuple):
    """Each object's nearest others, nearest first."""

    indices: np.ndarray  # (n, k) int64
    squared: np.ndarray  # (n, k) float64, squared distances


def nearest_neighbours(X: Any, n_neighbors: int) -> Neighbours:
    """The exact nearest neighbours of every row among the other rows.

    Distances come from one matrix product per block on X's own device; those that are kept are
    taken again as sums of squared differences, so that near duplicates keep their digits.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
        Points; a tensor stays on its device.
    n_neighbors : int
        How many neighbours, below n.

    Returns
    -------
    Neighbours
        Indices and squared distances, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_neighbours(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel().tolist()
    [1, 0, 1]
    """
    points = torch.as_tensor(X)
    if not points.is_floating_point():
        points = points.to(torch.float32)
    n = len(points)
    k = check_count("n_neighbors", n_neighbors, 1, n - 1)
    points = points - points.mean(dim=0)
    norms = (points * points).sum(dim=1)
    indices = np.empty((n, k), dtype=np.int64)
    squared = np.empty((n, k))
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        rows = points[start : start + step]
        block = norms[None, :] - 2.0 * (rows @ points.T)  # the row's own norm orders nothing
        own = torch.arange(len(rows), device=points.device)
        block[own, own + start] = torch.inf
        near = torch.topk(block, k, dim=1, largest=False).indices
        exact = torch.stack([_squared(rows, points[near[:, j]]) for j in range(k)], dim=1)
        order = torch.argsort(exact, dim=1, stable=True)
        indices[start : start + step] = near.gather(1, order).cpu().numpy()
        squared[start : start + step] = exact.gather(1, order).cpu().numpy()
    return Neighbours(indices, squared)


def _squared(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a - b) ** 2).sum(dim=1, dtype=torch.float64)


def gaussian_weights(neighbours: Neighbours, scale: float = 1.0) -> sp.csr_array:
    """Directed graph W_ij = exp(−d_ij²/σ²) over each row's neighbours, σ² = scale · mean(d²).

    Examples
    --------
    >>> near = Neighbours(np.array([[1], [0]]), np.array([[4.0], [4.0]]))
    >>> gaussian_weights(near).toarray().round(4).tolist()
    [[0.0, 0.3679], [0.3679, 0.0]]
    """
    n, k = neighbours.indices.shape
    sigma = scale * float(neighbours.squared.mean())
    # All neighbours are duplicates: every weight is exp(0).
    weights = np.exp(-neighbours.squared / (sigma if sigma > 0 else 1.0))
    pointers = np.arange(0, n * k + 1, k)
    return sp.csr_array((weights.ravel(), neighbours.indices.ravel(), pointers), shape=(n, n))


def chains(neighbours: Neighbours) -> np.ndarray:
    """Clusters that join every object to its nearest neighbour, numbered by first member.

    Examples
    --------
    >>> near = Neighbours(np.array([[1], [0], [3], [2], [3]]), np.ones((5, 1)))
    >>> chains(near).tolist()
    [0, 0, 1, 1, 1]
    """
    n = len(neighbours.indices)
    edges = sp.csr_array((np.ones(n), (np.arange(n), neighbours.indices[:, 0])), shape=(n, n))
    return renumbered(connected_components(edges, directed=False)[1])


def renumbered(labels: np.ndarray) -> np.ndarray:
    """Labels as 0, 1, 2 … in order of first appearance."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[codes]
