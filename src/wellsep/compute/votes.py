"""Which cluster the nearest objects of an object, of whatever cluster, pull it towards."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.compute.neighbours import nearest_neighbours
from wellsep.compute.spots import crowded
from wellsep.compute.support import TIE, disagreement

_ROWS = 1 << 15
_SPARE = 1  # neighbours looked at beyond t, to see whether the t-th ties
# Where more objects than this tie at the t-th place, these many are heard; fewer where so many
# rows tie that their neighbours would fill more than half a gigabyte.
_MOST, _TABLE = 1 << 10, 1 << 25


def best_supported(
    X: np.ndarray,
    codes: np.ndarray,
    centers: np.ndarray,
    radii: np.ndarray,
    n_neighbors: int,
    *,
    n_jobs: int | None = None,
    there: Any = None,
) -> np.ndarray:
    """The cluster that backs each object best; its own where none is better.

    Each of the t nearest objects s stands up for its own cluster, with prototype c, by
    1/2 - LCD(x, c, s), which is 1/2 where s does not lie between x and c (equation 2): x is then
    nearer to c than s is. Objects that tie at the t-th place share what places are left, so the
    row order plays no part. No more neighbours are asked than x's own cluster could provide.
    Where more than t objects coincide the most frequent cluster among them is best.

    A vote of the nearest, not LCD(x, c) against every other cluster: that falls towards 0 for a
    cluster far away, since all its members then lie almost on the line to its prototype.
    """
    best = codes.copy()
    asked = np.minimum(n_neighbors, np.bincount(codes)[codes] - 1)
    crowd = crowded(X, n_neighbors)
    best[crowd.rows] = _most_frequent(crowd.spot, codes[crowd.rows])
    rows, k = np.setdiff1d(np.arange(len(X)), crowd.rows), n_neighbors + _SPARE
    while len(rows):
        k = min(k, len(X) - 1)
        most = min(_MOST, len(X) - 1, _TABLE // len(rows))
        graph = nearest_neighbours(X if there is None else there, k, rows=rows, n_jobs=n_jobs)
        place = graph.distances[np.arange(len(rows)), np.maximum(asked[rows], 1) - 1]
        cut = (graph.distances[:, -1] <= place * (1 + TIE)) & (k < most)
        seen = np.flatnonzero(~cut)
        for part in np.array_split(seen, len(seen) * k // (_ROWS * 16) + 1):
            best[rows[part]] = _vote(
                X, codes, centers, radii, rows[part],
                graph.indices[part], graph.distances[part], asked[rows[part]],
            )  # fmt: skip
        rows, k = rows[cut], min(4 * k, most)
    return best


def _vote(X, codes, centers, radii, rows, neighbour, distance, asked):
    theirs, own = codes[neighbour], codes[rows]
    to_center = np.broadcast_to(radii[rows][:, None], theirs.shape).copy()
    row, column = np.nonzero(theirs != own[:, None])
    difference = X[rows[row]] - centers[theirs[row, column]]
    to_center[row, column] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    between = (radii[neighbour] <= to_center * (1 + TIE)) & (distance < to_center * (1 - TIE))
    safe = np.where(between, to_center, 1.0)
    terms = disagreement(
        np.where(between, distance, 0.0), np.where(between, radii[neighbour], 1.0), safe
    )
    voice = (0.5 - np.where(between, terms, 0.0)) * _places(distance, asked)
    total = _voice_of_cluster(theirs, voice)
    at_home = np.where(theirs == own[:, None], total, 0.0).max(axis=1)
    # Of clusters that tie the first in code order, so that the row order plays no part.
    top = total.max(axis=1)
    rival = np.where(total >= top[:, None] * (1 - TIE), theirs, len(centers)).min(axis=1)
    return np.where(top > at_home * (1 + TIE), rival, own)


def _most_frequent(spot, codes):
    """Of objects with at least t others on their spot: the cluster most of them belong to."""
    if not len(codes):
        return codes
    pairs, pair, counts = np.unique(
        np.stack([spot, codes]), axis=1, return_inverse=True, return_counts=True
    )
    order = np.lexsort((-counts, pairs[0]))
    first = order[np.unique(pairs[0][order], return_index=True)[1]]
    lead, most = pairs[1][first][spot], counts[first][spot]
    return np.where(most > counts[pair.reshape(-1)], lead, codes).astype(codes.dtype)


def _voice_of_cluster(theirs, voice):
    """Total voice of each neighbour's cluster, at that neighbour's column."""
    order = np.argsort(theirs, axis=1, kind="stable")
    sorted_codes = np.take_along_axis(theirs, order, axis=1)
    running = np.cumsum(np.take_along_axis(voice, order, axis=1), axis=1)
    columns = np.arange(theirs.shape[1])
    last = np.ones(theirs.shape, dtype=bool)  # column where a cluster's run ends
    last[:, :-1] = sorted_codes[:, 1:] != sorted_codes[:, :-1]
    end = np.where(last, columns, theirs.shape[1])
    end = np.minimum.accumulate(end[:, ::-1], axis=1)[:, ::-1]
    start = np.zeros_like(end)
    start[:, 1:] = np.maximum.accumulate(np.where(last[:, :-1], columns[1:], 0), axis=1)
    before = np.where(start > 0, np.take_along_axis(running, np.maximum(start - 1, 0), axis=1), 0.0)
    total = np.empty_like(voice)
    np.put_along_axis(total, order, np.take_along_axis(running, end, axis=1) - before, axis=1)
    return total


def _places(distance, asked):
    """Weight of each column: 1 inside the t-th distance, a share of the rest at it, 0 beyond."""
    last = distance[np.arange(len(distance)), np.maximum(asked, 1) - 1][:, None]
    inside = distance < last * (1 - TIE)
    edge = ~inside & (distance <= last * (1 + TIE))
    share = (asked - inside.sum(axis=1)) / np.maximum(edge.sum(axis=1), 1)
    return inside * (asked > 0)[:, None] + edge * np.maximum(share, 0.0)[:, None]
