"""The nearest of the planes that lie halfway between an object's centre and another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wellsep.compute.kmeans.nearest_centres import row_blocks
from wellsep.compute.metrics.table import numpy_squares, rows_of
from wellsep.compute.statistics.centre_distances import plane_distances
from wellsep.compute.statistics.centre_pairs import own_distances

BLOCK = 1 << 22  # entries of a table of distances to all planes


class NearestPlanes(NamedTuple):
    """Of each object the nearest plane; NaN and -1 where there is none."""

    distances: np.ndarray  # (n,) signed: negative where the rival's centre is nearer
    gaps: np.ndarray  # (n,) distance of the two centres
    rivals: np.ndarray  # (n,) code of the cluster behind the plane


def nearest_planes(X: np.ndarray, codes: np.ndarray, centers: np.ndarray) -> NearestPlanes:
    """Nearest plane between each object's own centre and another; code -1 is not counted.

    >>> X, centers = np.array([[0.0], [1.0], [4.0], [9.0]]), np.array([[0.5], [4.0], [9.0]])
    >>> nearest_planes(X, np.array([0, 0, 1, -1]), centers)
    NearestPlanes(distances=array([2.25, 1.25, 1.75,  nan]), gaps=array([3.5, 3.5, 3.5, nan]), \
rivals=array([ 1,  1,  0, -1]))
    """
    if len(centers) < 2:
        return _nowhere(len(X))
    origin = centers.mean(axis=0)
    centers = centers - origin

    def signed(rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        squares = numpy_squares(rows_of(X[rows] - origin), rows_of(centers))
        own_square = squares[np.arange(len(own)), own]
        return plane_distances(squares, own_square, own_distances(centers, own))

    def gap(own: np.ndarray, rival: np.ndarray) -> np.ndarray:
        return np.sqrt(((centers[own] - centers[rival]) ** 2).sum(axis=1))

    return _nearest(codes, len(centers), signed, gap)


def planes_of_squares(squares: np.ndarray, codes: np.ndarray, gaps: np.ndarray) -> NearestPlanes:
    """The same from squared distances to the centres (n, K) and distances of centres (K, K).

    >>> squares, gaps = np.array([[0.25, 16.0], [4.0, 2.25]]), np.array([[0.0, 3.5], [3.5, 0.0]])
    >>> planes_of_squares(squares, np.array([0, 0]), gaps).distances
    array([ 2.25, -0.25])
    """

    def signed(rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        return plane_distances(squares[rows], squares[rows, own], gaps[own])

    return _nearest(codes, len(gaps), signed, lambda own, rival: gaps[own, rival])


def _nearest(
    codes: np.ndarray,
    n_centers: int,
    signed: Callable[[np.ndarray, np.ndarray], np.ndarray],
    gap: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> NearestPlanes:
    """``signed(rows, own)`` gives (b, K) distances to planes, ``gap`` those of two centres."""
    distances, gaps, rivals = found = _nowhere(len(codes))
    counted = np.flatnonzero(codes >= 0)
    for at in row_blocks(len(counted), n_centers, BLOCK):
        rows, own = counted[at], codes[counted[at]]
        table = signed(rows, own)
        first = np.where(np.isnan(table), np.inf, table).argmin(axis=1)
        nearest = table[np.arange(len(rows)), first]
        some = ~np.isnan(nearest)
        distances[rows] = nearest
        gaps[rows[some]] = gap(own[some], first[some])
        rivals[rows[some]] = first[some]
    return found


def _nowhere(n: int) -> NearestPlanes:
    return NearestPlanes(np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1))
