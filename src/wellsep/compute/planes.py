"""The nearest of the planes that lie halfway between an object's centre and another one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellsep.compute.clusters import plane_distances
from wellsep.compute.nearest import row_blocks

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
    n = len(X)
    distances, gaps, rivals = np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1)
    if len(centers) < 2:
        return NearestPlanes(distances, gaps, rivals)
    origin = centers.mean(axis=0)
    centers = centers - origin
    counted = np.flatnonzero(codes >= 0)
    for at in row_blocks(len(counted), len(centers), BLOCK):
        rows, own = counted[at], codes[counted[at]]
        signed = plane_distances((X[rows] - origin) @ centers.T, own, centers)
        found = np.where(np.isnan(signed), np.inf, signed).argmin(axis=1)
        nearest = signed[np.arange(len(rows)), found]
        some = ~np.isnan(nearest)
        distances[rows] = nearest
        between = centers[own[some]] - centers[found[some]]
        gaps[rows[some]] = np.sqrt((between**2).sum(axis=1))
        rivals[rows[some]] = found[some]
    return NearestPlanes(distances, gaps, rivals)
