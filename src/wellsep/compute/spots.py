"""Objects that coincide: found once, so that no search wades through thousands of copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Crowd(NamedTuple):
    """Objects on spots with more than so many objects, sorted by spot."""

    rows: np.ndarray  # (c,) objects, in their own order within a spot
    spot: np.ndarray  # (c,) 0, 1, … rising
    place: np.ndarray  # (c,) position within the spot, from 0
    size: np.ndarray  # (c,) objects on the spot


def distances_to(points: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Euclidean distance of each row to one point, equal for equal rows wherever they stand."""
    squares = np.zeros(len(points))
    # Feature by feature: a row-wise reduction may sum in another order at another address.
    for feature, value in enumerate(center):
        difference = points[:, feature] - value
        squares += difference * difference
    return np.sqrt(squares)


def crowded(X: np.ndarray, least: int) -> Crowd:
    """The objects of every spot that holds more than `least` of them."""
    empty = Crowd(*np.zeros((4, 0), dtype=np.intp))
    if len(X) <= least:
        return empty
    # Equal rows have equal distances to any point: only rows that share one need a closer look.
    key = distances_to(X, X[0])
    rows = np.flatnonzero(_often(key, least))
    if not len(rows):
        return empty
    spot = np.unique(X[rows], axis=0, return_inverse=True)[1].reshape(-1)
    kept = _often(spot, least)
    rows, spot = rows[kept], spot[kept]
    order = np.argsort(spot, kind="stable")
    rows, spot = rows[order], spot[order]
    _, first, spot, size = np.unique(
        spot, return_index=True, return_inverse=True, return_counts=True
    )
    return Crowd(rows, spot, np.arange(len(rows)) - first[spot], size[spot])


def _often(values: np.ndarray, least: int) -> np.ndarray:
    """Whether each value occurs more than `least` times."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(values)])
    often = np.empty(len(values), dtype=bool)
    often[order] = np.repeat(counts > least, counts)
    return often
