"""Decision regions of a clustering of the plane, their borders, and a point's counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count, check_data, to_numpy
from wellsep.evaluate.clusters.objects import counterfactual
from wellsep.report.figures.records import Regions
from wellsep.report.sections.scatter import encoded


def regions_figure(
    X: Any,
    labels: Any,
    *,
    centers: Any = None,
    predict: Any = None,
    point: int | None = None,
    n_grid: int = 160,
) -> Regions:
    """Regions, separating lines, and where one object would have to go to change its cluster.

    Parameters
    ----------
    X : array-like of shape (n, 2)
        The objects.
    labels : array-like of shape (n,)
        The clustering: a label for each object. -1, -2 and -3 are noise.
    centers : array-like of shape (K, 2), optional
        In the order of the sorted labels; by default the means. Regions are those of the nearest
        centre, and the lines are pieces of the bisectors between neighbouring centres.
    predict : callable, optional
        Labels of any points, where regions are not those of nearest centres; lines are then the
        borders on the grid, and there is no counterfactual.
    point : int, optional
        The object whose counterfactual is shown: the foot of its shortest way out of its region.
    n_grid : int

    Examples
    --------
    >>> found = regions_figure([[0.0, 0], [0, 2], [4, 0], [4, 2]], [0, 0, 1, 1], point=0)
    >>> found.counterfactual.tolist(), found.margin
    ([2.0, 0.0], 2.0)
    """
    X = to_numpy(check_data(X)).astype(float)
    if X.shape[1] != 2:
        raise ValueError(f"X must have 2 columns to be drawn, got {X.shape[1]}.")
    n_grid = check_count("n_grid", n_grid, minimum=2)
    codes, clusters = encoded(labels)
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.06 * np.maximum(high - low, 1e-9)
    x, y = (np.linspace(low[j] - room[j], high[j] + room[j], n_grid) for j in (0, 1))
    mesh = np.column_stack([g.ravel() for g in np.meshgrid(x, y)])
    if predict is not None:
        names = [str(label) for label in to_numpy(predict(mesh)).tolist()]
        number = {name: i for i, name in enumerate(clusters)}
        grid = np.array([number.get(name, -1) for name in names]).reshape(n_grid, n_grid)
        return Regions(X, codes, clusters, None, x, y, grid, _grid_borders(x, y, grid))
    means = np.array([X[codes == k].mean(axis=0) for k in range(len(clusters))])
    centers = means if centers is None else to_numpy(centers).astype(float)
    if centers.shape != means.shape:
        raise ValueError(f"centers must have shape {means.shape}, got {centers.shape}.")
    grid = _squared(mesh, centers).argmin(axis=1).reshape(n_grid, n_grid)
    box = np.array([[x[0], y[0]], [x[-1], y[-1]]])
    found = Regions(X, codes, clusters, centers, x, y, grid, separating_lines(centers, box))
    if point is None:
        return found
    point = check_count("point", point, minimum=0, maximum=len(X) - 1)
    foot, margin = counterfactual(X[point], int(codes[point]), centers)
    return Regions(X, codes, clusters, centers, x, y, grid, found.lines, X[point], foot, margin)


def separating_lines(centers: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, ...]:
    """The pieces of the bisectors that border two regions, cut at a box ((2, 2): low, high)."""
    found = []
    k = len(centers)
    for i in range(k):
        for j in range(i + 1, k):
            normal = centers[j] - centers[i]
            if not (normal**2).sum() > 0:
                continue
            middle = (centers[i] + centers[j]) / 2
            along = np.array([-normal[1], normal[0]])
            low, high = -np.inf, np.inf
            # Points middle + t·along that are inside the box …
            for axis in (0, 1):
                low, high = _cut(low, high, along[axis], box[1][axis] - middle[axis])
                low, high = _cut(low, high, -along[axis], middle[axis] - box[0][axis])
            # … and nearer to i (and so to j) than to any other centre.
            for other in range(k):
                if other not in (i, j):
                    gap = centers[other] - centers[i]
                    offset = (centers[other] @ centers[other] - centers[i] @ centers[i]) / 2
                    low, high = _cut(low, high, along @ gap, offset - middle @ gap)
            if low < high:
                found.append(np.array([middle + low * along, middle + high * along]))
    return tuple(found)


def _cut(low: float, high: float, slope: float, limit: float) -> tuple[float, float]:
    """The part of [low, high] where slope·t ≤ limit."""
    if slope > 0:
        return low, min(high, limit / slope)
    if slope < 0:
        return max(low, limit / slope), high
    return (low, high) if limit >= 0 else (1.0, 0.0)


def _grid_borders(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, ...]:
    """Edges between grid cells of different clusters, as short pieces."""
    dx, dy = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    found = []
    for r, c in np.argwhere(grid[:, 1:] != grid[:, :-1]):
        found.append(np.array([[x[c] + dx, y[r] - dy], [x[c] + dx, y[r] + dy]]))
    for r, c in np.argwhere(grid[1:] != grid[:-1]):
        found.append(np.array([[x[c] - dx, y[r] + dy], [x[c] + dx, y[r] + dy]]))
    return tuple(found)


def _squared(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2)
