"""Representatives of clusters, farthest first, and the densities around and between them.

Objects often tie. Rows are therefore taken about the mean rounded to whole numbers: squared
distances of whole numbers are exact, ties are ties, and of equals the first object is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import in_threads
from wellsep.compute.data.rows import host
from wellsep.compute.engine.kernel_choice import device_usable
from wellsep.compute.kernels import load
from wellsep.compute.metrics.squares import numpy_squares, rows_of
from wellsep.compute.requests import Task, Want

SHRINK = np.arange(1, 9) / 10  # how far representatives are drawn towards their centre


class Representatives(NamedTuple):
    """What the representatives of one partition see."""

    deviations: np.ndarray  # (K,) root of Σ‖x − v‖²/(n − 1); 0 for a single object
    distance: np.ndarray  # (K, K) mean distance of the mutually nearest ones of two clusters
    density: np.ndarray  # (K, K) mean distance × share of both near the midpoint / (2 radius)
    shares: np.ndarray  # (S, K) mean share of the cluster near them, for each shrinkage


def provide_represented(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Options: ``count`` of representatives; ``rule`` of the radii, "mean" or "first" (of the two
    clusters' deviations, for midpoints; see ``_near``); ``order`` of the clusters."""
    found: dict[Want, list[Any]] = {}
    for w in wants:
        codes = np.stack([ordered_codes(own, w.get("order")) for own in task.partitions.codes])
        if device_usable(task.space.X):
            device = load("wellsep.compute.engine.device.representatives")
            made = device.represented_on_device(task, codes, w, SHRINK)
            found[w] = [Representatives(*each) for each in made]
        else:
            found[w] = _represented_on_host(task, codes, w)
    return found


def _represented_on_host(task: Task, codes: np.ndarray, w: Want) -> list[Any]:
    """One partition after the other."""
    task.space.refuse_sparse()
    X = host(task.space.X).astype(np.float64)
    X -= np.round(task.space.shift)
    found: list[Any] = [None] * len(codes)

    def visit(m: int) -> None:
        found[m] = _represent(X, codes[m], w, task.space.unit)

    in_threads(task.space.host_jobs, visit, range(len(codes)))
    return found


def ordered_codes(codes: np.ndarray, order: str) -> np.ndarray:
    """Clusters numbered as sorted labels, or by first appearance."""
    if order == "sorted":
        return codes
    first = np.zeros(int(codes.max()) + 1, dtype=np.intp)
    counted = np.flatnonzero(codes >= 0)[::-1]
    first[codes[counted]] = counted  # of a cluster's objects the first is written last
    rank = np.empty(len(first) + 1, dtype=codes.dtype)
    rank[np.argsort(first)] = np.arange(len(first))
    rank[-1] = -1
    return rank[codes]


class _Cluster(NamedTuple):
    """The rows of one cluster, also about its own centre."""

    rows: np.ndarray  # (n_k, d)
    X: np.ndarray  # (n_k, d) about the centre
    square: np.ndarray  # (n_k,) squared distance to the centre
    chosen: np.ndarray  # (r,) representatives among the rows

    def within(self, points: np.ndarray, radius: float) -> np.ndarray:
        """(p,) members nearer than the radius to each point."""
        squares = numpy_squares(rows_of(points), rows_of(self.rows))
        return (np.sqrt(squares) < radius).sum(axis=1)


def _represent(X: np.ndarray, codes: np.ndarray, w: Want, unit: float) -> Representatives:
    """Lengths come back in the unit of the user."""
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    reach = float(np.einsum("ij,ij->i", X, X).max())
    clusters = [_cluster(X[rows], w.get("count"), reach) for rows in np.split(order, starts[1:])]
    sizes = np.array([len(c.X) for c in clusters])
    scatter = np.array([c.square.sum() for c in clusters])
    deviations = np.sqrt(scatter / np.maximum(sizes - 1, 1))
    distance, density = _between(clusters, deviations, w.get("rule"))
    shares = [
        _near(c, s, deviations, w.get("rule"), unit)
        for c, s in zip(clusters, deviations, strict=True)
    ]
    return Representatives(deviations * unit, distance * unit, density, np.stack(shares, axis=1))


def _cluster(rows: np.ndarray, count: int, reach: float) -> _Cluster:
    n = len(rows)
    gap = n * rows - rows.sum(axis=0)  # n(x − v): exact for whole numbers, as x − v is not
    square = np.einsum("ij,ij->i", gap, gap) / n**2
    if square.max() <= 1e-24 * reach:  # the rounding of the sum is no extent
        rows = np.broadcast_to(rows[0], rows.shape)
        gap, square = np.zeros_like(gap), np.zeros_like(square)
    return _Cluster(rows, gap / n, square, farthest_first(rows, square, count))


def farthest_first(X: np.ndarray, square: np.ndarray, count: int) -> np.ndarray:
    """Farthest from the centre, then from those chosen, while any row is apart from these."""
    chosen = [int(square.argmax())]
    nearest = np.full(len(X), np.inf)
    while len(chosen) < min(count, len(X)):
        gap = X - X[chosen[-1]]
        np.minimum(nearest, np.einsum("ij,ij->i", gap, gap), out=nearest)
        far = int(nearest.argmax())
        if nearest[far] == 0:
            break
        chosen.append(far)
    return np.array(chosen)


def _between(
    clusters: list[_Cluster], deviations: np.ndarray, rule: str
) -> tuple[np.ndarray, np.ndarray]:
    k = len(clusters)
    distance, density = np.zeros((k, k)), np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1, k):
            a, b = clusters[i], clusters[j]
            radius = deviations[i] if rule == "first" else (deviations[i] + deviations[j]) / 2
            starts, ends, apart = _closest(a, b)
            middle = (starts + ends) / 2
            inside = a.within(middle, radius) + b.within(middle, radius)
            distance[i, j] = distance[j, i] = apart.mean()
            with np.errstate(invalid="ignore"):  # radius 0: undefined under "first"
                share = apart * inside / (2 * radius * (len(a.X) + len(b.X)))
            dense = share.mean() if radius > 0 or rule == "first" else 0.0
            density[i, j] = density[j, i] = dense
    return distance, density


def _closest(a: _Cluster, b: _Cluster) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mutually nearest representatives of two clusters, and their distances."""
    left, right = a.rows[a.chosen], b.rows[b.chosen]
    gap = left[:, None] - right
    table = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
    nearest_right, nearest_left = table.argmin(axis=1), table.argmin(axis=0)
    mutual = np.flatnonzero(nearest_left[nearest_right] == np.arange(len(left)))
    partner = nearest_right[mutual]
    return left[mutual], right[partner], table[mutual, partner]


def _near(
    cluster: _Cluster, deviation: float, deviations: np.ndarray, rule: str, unit: float
) -> np.ndarray:
    """(S,) mean share of the members within the radius of the shrunk representatives."""
    # The mean deviation; under "first" the *squared* distance is held against the own deviation.
    limit = deviation / unit if rule == "first" else deviations.mean() ** 2
    points = cluster.X[cluster.chosen]
    products = points @ cluster.X.T
    lengths = np.einsum("ij,ij->i", points, points)[:, None]
    shares = []
    for keep in 1 - SHRINK:  # about the centre a shrunk representative is a multiple of itself
        squares = cluster.square - 2 * keep * products + keep**2 * lengths
        shares.append((np.maximum(squares, 0) < limit).mean())
    return np.array(shares)
