"""Which cluster the nearest objects of an object, of whatever cluster, pull it towards."""

from __future__ import annotations

import numpy as np

from wellsep.compute.neighbours import NeighbourGraph
from wellsep.compute.support import TIE, disagreement

_ROWS = 1 << 15


def best_supported(
    X: np.ndarray,
    codes: np.ndarray,
    centers: np.ndarray,
    radii: np.ndarray,
    graph: NeighbourGraph,
    n_neighbors: int,
) -> np.ndarray:
    """The cluster of each object's best support; its own where none is better.

    Each of the t nearest objects s stands up for its own cluster, with prototype c, by
    1/2 - LCD(x, c, s) if it lies between x and c (equation 2), else by nothing. Objects that tie
    at the t-th place share what places are left. Beyond the columns of `graph` ties are not seen.

    A vote of the nearest, not LCD(x, c) against every other cluster: that falls towards 0 for a
    cluster far away, since all its members then lie almost on the line to its prototype.
    """
    best = np.empty(len(X), dtype=codes.dtype)
    for start in range(0, len(X), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(X)))
        best[rows] = _vote(X, codes, centers, radii, graph, n_neighbors, rows)
    return best


def _vote(X, codes, centers, radii, graph, t, rows):
    neighbour, distance = graph.indices[rows], graph.distances[rows]
    theirs, own = codes[neighbour], codes[rows]
    to_center = np.broadcast_to(radii[rows][:, None], theirs.shape).copy()
    row, column = np.nonzero(theirs != own[:, None])
    difference = X[rows[row]] - centers[theirs[row, column]]
    to_center[row, column] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    between = (radii[neighbour] <= to_center * (1 + TIE)) & (distance < to_center * (1 - TIE))
    safe = np.where(between, to_center, 1.0)
    terms = disagreement(np.where(between, distance, 0.0), np.where(between, radii[neighbour], 1.0), safe)
    voice = np.where(between, 0.5 - terms, 0.0) * _places(distance, t)
    # Total voice of each neighbour's cluster, at that neighbour's column.
    total = np.einsum("ijk,ik->ij", theirs[:, :, None] == theirs[:, None, :], voice)
    at_home = np.where(theirs == own[:, None], total, 0.0).max(axis=1)
    # Of clusters that tie the first in code order, so that the row order plays no part.
    top = total.max(axis=1)
    rival = np.where(total >= top[:, None] * (1 - TIE), theirs, len(centers)).min(axis=1)
    return np.where(top > at_home * (1 + TIE), rival, own)


def _places(distance, t):
    """Weight of each column: 1 inside the t-th distance, a share of the rest at it, 0 beyond."""
    last = distance[:, min(t, distance.shape[1]) - 1][:, None]
    inside = distance < last * (1 - TIE)
    edge = ~inside & (distance <= last * (1 + TIE))
    share = (t - inside.sum(axis=1)) / np.maximum(edge.sum(axis=1), 1)
    return inside + edge * np.minimum(share, 1.0)[:, None]
