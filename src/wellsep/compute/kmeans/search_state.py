"""The state of a k-means search, kept exact while centres move.

For every point: the nearest and second nearest centre and both squared distances. For every
centre: the weighted sum and the weight of its points. With metric="cosine" rows have unit length,
so that squared distances are 2(1 − cos); centres then stand on normalised sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.kmeans.lloyd import means
from wellsep.compute.kmeans.nearest_centres import host_nearest
from wellsep.compute.kmeans.prepared_points import Points

LOCAL = 0.02  # a centre moves if it gains more than this share of the mean gain
SPLIT_STEPS = 2  # of 2-means in a cluster that is split, at most
SPLIT_GROWTH = 1e-4  # relative growth of a split's gain that is worth another step
TRANSFER_SLACK = 1e-9  # share of a point's distances that a transfer must gain


class Split(NamedTuple):
    """Two places for the points of one cluster, and what the cost falls by."""

    gain: float  # at most 0: the cluster cannot be parted
    one: np.ndarray
    other: np.ndarray


class CentreState:
    """The NumPy reference, which looks at all points after each move."""

    arrays: tuple[str, ...] = ("centers", "first", "second", "near", "far", "sums", "mass")

    def __init__(self, points: Points, centers: np.ndarray):
        n = points.n
        self.points = points
        self.weights = points.pull_or_ones
        self.norms = np.asarray(points.norms, dtype=np.float64)
        if points.zero is not None:  # no axis of their own here: they weigh nothing
            self.norms = self.norms - points.zero
        self.centers = np.array(centers, dtype=np.float64)
        self.k = len(centers)
        self.work = float(n * self.k)  # distances between points and centres that moved
        self.touched = np.zeros(self.k, bool)  # clusters whose points or centre changed
        self.first, self.second = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.near, self.far = np.empty(n), np.full(n, np.inf)
        self._look()
        self.recount()
        self.cost = float(self.near @ self.weights)

    def copy(self) -> CentreState:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in (*self.arrays, "touched"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def take(self, other: CentreState) -> None:
        """Become another state of the same points; work is not taken back."""
        for name in self.arrays:
            np.copyto(getattr(self, name), getattr(other, name))
        self.cost = other.cost

    def recount(self) -> None:
        """Sums and weights from the labels, without the rounding of many changes."""
        self.sums = self.points.space.code_sums(self.first, self.weights, self.k)
        self.mass = np.bincount(self.first, self.weights, self.k)

    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """(k,) what the cost rises by without each centre, and (k,) the cost of its points."""
        near = self.near * self.weights
        loss = np.bincount(self.first, self.far * self.weights - near, self.k)
        return loss, np.bincount(self.first, near, self.k)

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """(k,) what the cost falls by at least if each centre goes to its mean, and the means."""
        places = means(self.points, self.sums, self.mass, self.centers)
        if self.points.frame.directions:
            length = np.sqrt(np.einsum("ij,ij->i", self.sums, self.sums))
            gain = 2.0 * (length - np.einsum("ij,ij->i", self.sums, self.centers))
            return np.where(length > 0.0, np.maximum(gain, 0.0), 0.0), places
        gap = places - self.centers
        return self.mass * np.einsum("ij,ij->i", gap, gap), places

    def descend(
        self, *, floor: float, max_iter: int, target: float = np.inf, pace: float = np.inf
    ) -> None:
        """Lloyd steps of the centres that stand off their means.

        Ends when all gains together are at most ``floor`` times the cost, or when ``pace`` more
        steps like this one would not bring the cost below ``target``.
        """
        last, low = np.inf, floor * self.cost
        for _ in range(max_iter):
            gain, places = self.gains()
            total = float(gain.sum())
            hoped = pace * max(total, min(last, 2.0 * total))
            if total <= low or (self.cost >= target and self.cost - hoped >= target):
                break
            moved = np.flatnonzero(gain > (LOCAL * total + low) / self.k)
            if not len(moved):
                break
            before = self.cost
            self.move(moved, places[moved])
            last = before - self.cost

    def move(self, codes: np.ndarray, places: np.ndarray) -> None:
        """Put some centres elsewhere; everything else follows, exactly."""
        self.work += float(self.points.n * len(codes))
        before = self.first.copy()
        self.centers[codes] = places
        self._look()
        changed = before != self.first
        for touched in (codes, before[changed], self.first[changed]):
            self.touched[touched] = True
        self.recount()
        self.cost = float(self.near @ self.weights)

    def _look(self) -> None:
        """Find the two nearest of all centres; distances from differences where X is dense."""
        space, norms = self.points.space, self.norms
        codes, _ = host_nearest(space, self.centers, norms, min(self.k, 2))
        self.first[:] = codes[0]
        self.near[:] = space.own_squares(self.centers, codes[0], norms, None)
        if self.k > 1:
            self.second[:] = codes[1]
            self.far[:] = space.own_squares(self.centers, codes[1], norms, None)
            turned = self.far < self.near  # products round
            for one, other in ((self.first, self.second), (self.near, self.far)):
                one[turned], other[turned] = other[turned], one[turned]

    def split(self, code: int, share: float, steps: int = SPLIT_STEPS) -> Split:
        """Part a cluster by a plane through its centre, then by 2-means inside it.

        The plane lies across the way to a member that ``share`` of the cluster's cost points to.
        """
        center = self.centers[code]
        split = Split(-1.0, center, center)
        rows = np.flatnonzero(self.first == code)
        weights = self.weights[rows]
        course = np.cumsum(self.near[rows] * weights)
        if len(rows) < 2 or not course[-1] > 0.0:
            return split
        row = min(int(np.searchsorted(course, share * course[-1], side="right")), len(rows) - 1)
        across = self.points.take(rows[[row]])[0] - center
        level, X = float(across @ center), self.points.space.take(rows)
        for _ in range(steps + 1):
            side = X @ across > level
            both = np.stack([weights * side, weights * ~side])
            mass, sums = both.sum(axis=1), np.asarray(both @ X)
            if not mass.all():
                break
            places, gain = self._parted(sums, mass, center)
            grown = gain > split.gain * (1.0 + SPLIT_GROWTH)
            split = Split(gain, places[0], places[1])
            if not grown:
                break
            across = places[0] - places[1]
            level = 0.5 * float(places[0] @ places[0] - places[1] @ places[1])
        return split

    def _parted(
        self, sums: np.ndarray, mass: np.ndarray, center: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The means of both parts of a cluster, and what the cost falls by with both."""
        if self.points.frame.directions:
            length = np.sqrt((sums**2).sum(axis=1))
            places = means(self.points, sums, mass, np.stack([center, center]))
            return places, 2.0 * float(length.sum() - np.linalg.norm(sums.sum(axis=0)))
        places = sums / mass[:, None]
        gap = places[0] - places[1]
        return places, float(mass[0] * mass[1] / (mass[0] + mass[1]) * (gap @ gap))

    def transfers(self) -> int:
        """Hand points to their second nearest cluster where the exact cost falls (Hartigan).

        Of each cluster one point goes or comes, those with the greatest gains; the centres are
        then moved to the means. Returns how many points went over.
        """
        if self.k == 1:
            return 0
        w, p, q = self.weights, self.first, self.second
        rows = np.flatnonzero((w > 0.0) & (self.mass[p] > w * (1.0 + 1e-9)) & (self.mass[q] > 0.0))
        gain = self._transfer_gains(rows)
        pays = gain > TRANSFER_SLACK * (self.near[rows] + self.far[rows])
        rows, gain = rows[pays], gain[pays]
        free, gone = np.ones(self.k, bool), []
        for row in rows[np.argsort(-gain, kind="stable")]:
            pair = [self.first[row], self.second[row]]
            if free[pair].all():
                free[pair] = False
                gone.append(row)
        if gone:
            p, q, w = self.first[gone], self.second[gone], self.weights[gone]
            sums, mass = self.sums.copy(), self.mass.copy()
            weighted = w[:, None] * self.points.take(np.array(gone))
            sums[p] -= weighted
            sums[q] += weighted
            mass[p] -= w
            mass[q] += w
            codes = np.flatnonzero(~free)
            self.move(codes, means(self.points, sums, mass, self.centers)[codes])
        return len(gone)

    def _transfer_gains(self, rows: np.ndarray) -> np.ndarray:
        """What the cost falls by if each point goes to its second nearest cluster, all else fixed.

        Exact where centres stand on their means.
        """
        w, p, q = self.weights[rows], self.first[rows], self.second[rows]
        near, far = self.near[rows], self.far[rows]
        if not self.points.frame.directions:
            return w * (
                self.mass[p] / (self.mass[p] - w) * near - self.mass[q] / (self.mass[q] + w) * far
            )
        length = np.sqrt(np.einsum("ij,ij->i", self.sums, self.sums))
        own, other = (1.0 - 0.5 * near) * length[p], (1.0 - 0.5 * far) * length[q]  # xᵀS of both
        less = np.sqrt(np.maximum(length[p] ** 2 - 2.0 * w * own + w * w, 0.0))
        more = np.sqrt(np.maximum(length[q] ** 2 + 2.0 * w * other + w * w, 0.0))
        return 2.0 * (less + more - length[p] - length[q])
