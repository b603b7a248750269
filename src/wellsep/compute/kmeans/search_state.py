"""The state of a k-means search: what follows from where the centres are, kept exact.

For every point: the nearest and second nearest centre, and both squared distances. For every
centre: the weighted sum and the weight of its points. With metric="cosine" rows have unit length,
so that squared distances are 2(1 − cos); centres then stand on normalised sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import kernels_wanted
from wellsep.compute.engine.kernel_choice import numba_works
from wellsep.compute.kernels import load
from wellsep.compute.kmeans.nearest_centres import host_nearest
from wellsep.compute.kmeans.prepared_points import Points

LOCAL = 0.02  # a centre moves if it gains more than this share of the mean gain
SPLIT_GROWTH = 1e-4  # relative growth of a split's gain that is worth another step
TRANSFER_SLACK = 1e-9  # relative gain that a transfer must exceed
COMPILED_FROM = 5e5  # n·k·d at which the reference takes about as long as loading numba (.8 s)


class Split(NamedTuple):
    """Two places for the points of one cluster, and what the cost falls by."""

    gain: float  # at most 0: the cluster cannot be parted
    one: np.ndarray
    other: np.ndarray


class CentreState:
    """The NumPy reference, in which every move is a pass over all points.

    All changes of centres go through ``move``.
    """

    arrays: tuple[str, ...] = (
        "centers", "first", "second", "near", "far", "sums", "mass", "count"
    )  # fmt: skip

    def __init__(self, points: Points, centers: np.ndarray):
        n, k = points.n, len(centers)
        self.points, self.k = points, k
        self.weights = points.pull_or_ones
        self.norms = np.asarray(points.norms, dtype=np.float64)
        if points.zero is not None:  # no axis of their own here: they weigh nothing
            self.norms = self.norms - points.zero
        self.work = 0.0  # distances computed so far
        self.touched = np.zeros(k, bool)  # clusters whose points or centre changed
        self.centers = np.array(centers, dtype=np.float64)
        self.first, self.second = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.near, self.far = np.empty(n), np.full(n, np.inf)
        self.sums, self.mass, self.count = np.zeros_like(self.centers), np.zeros(k), np.zeros(k)
        self.look()
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
        """Sums and weights anew from the labels."""
        self.sums[...] = self.points.space.code_sums(self.first, self.weights, self.k)
        self.mass[...] = np.bincount(self.first, self.weights, self.k)
        self.count[...] = np.bincount(self.first, self.weights > 0.0, self.k)
        empty = self.count < 0.5
        self.sums[empty], self.mass[empty] = 0.0, 0.0

    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """(k,) what the cost rises by without each centre, and (k,) the cost of its points."""
        near = self.near * self.weights
        loss = np.bincount(self.first, self.far * self.weights - near, self.k)
        return loss, np.bincount(self.first, near, self.k)

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """(k,) what the cost falls by at least if each centre goes to its mean, and the means."""
        places = self.points.frame.means(self.sums, self.mass, self.centers)
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
            hopeless = self.cost - pace * max(total, min(last, 2.0 * total)) >= target
            if total <= low or (self.cost >= target and hopeless):
                break
            moved = np.flatnonzero(gain > (LOCAL * total + low) / self.k)
            if not len(moved):
                break
            before = self.cost
            self.move(moved, places[moved])
            last = before - self.cost

    def move(self, codes: np.ndarray, places: np.ndarray) -> None:
        """Put some centres elsewhere; everything else follows, exactly."""
        self.centers[codes] = places
        before = self.first.copy()
        self.look()
        self.recount()
        changed = before != self.first
        self.touched[codes] = True
        self.touched[before[changed]] = self.touched[self.first[changed]] = True
        self.cost = float(self.near @ self.weights)

    def look(self) -> None:
        """The two nearest of all centres for every point; own distances come from differences."""
        space = self.points.space
        codes, squares = host_nearest(space, self.centers, self.norms, min(self.k, 2))
        self.work += float(space.n * self.k)
        self.first[...] = codes[0]
        self.near[...] = space.own_squares(self.centers, codes[0], self.norms, None)
        if self.k > 1:
            self.second[...], self.far[...] = codes[1], np.maximum(squares[1], self.near)

    def split(self, code: int, share: float, steps: int = 2) -> Split:
        """Part a cluster by a plane through its centre, then by 2-means inside it.

        The plane lies across the way to a member that ``share`` of the cluster's cost points to.
        """
        center = self.centers[code]
        none = Split(-1.0, center, center)
        rows = np.flatnonzero(self.first == code)
        weights, space = self.weights[rows], self.points.space
        if len(rows) < 2:
            return none
        place, total = self.points.rows_at_shares(self.near[rows] * weights, np.array([share]))
        if not total > 0.0:
            return none
        X = space.X[rows]
        across = self.points.take(rows[place])[0] - center
        level, best = float(across @ center), none
        for _ in range(steps + 1):
            side = np.asarray(X @ across) > level
            self.work += float(len(rows))
            both = np.stack([np.where(side, weights, 0.0), np.where(side, 0.0, weights)])
            sums = np.asarray(both @ X)
            mass = np.array([weights[side].sum(), weights[~side].sum()])
            if not (mass > 0.0).all():
                break
            places = self.points.frame.means(sums, mass, np.stack([center, center]))
            gain = self._split_gain(sums, mass, places)
            grown = gain > best.gain * (1.0 + SPLIT_GROWTH)
            best = Split(gain, places[0], places[1])
            if not grown:
                break
            across = places[0] - places[1]
            level = 0.5 * float(places[0] @ places[0] - places[1] @ places[1])
        return best

    def _split_gain(self, sums: np.ndarray, mass: np.ndarray, places: np.ndarray) -> float:
        if self.points.frame.directions:
            length = np.sqrt((sums**2).sum(axis=1)).sum()
            return 2.0 * float(length - np.sqrt((sums.sum(axis=0) ** 2).sum()))
        return float(mass.prod() / mass.sum() * ((places[0] - places[1]) ** 2).sum())

    def transfers(self) -> int:
        """Hand points to their second nearest cluster where the exact cost falls (Hartigan).

        Both means follow each transfer; the centres are then moved there. Returns how many points
        went over.
        """
        if self.k == 1:
            return 0
        sums, mass = self.sums.copy(), self.mass.copy()
        filled = self.count > 0.5
        w, p, q = self.weights, self.first, self.second
        rows = np.flatnonzero((w > 0.0) & (mass[p] > w * (1.0 + 1e-9)) & filled[q])
        if not self.points.frame.directions:
            w, p, q = w[rows], p[rows], q[rows]
            leave = mass[p] / (mass[p] - w) * self.near[rows]
            enter = mass[q] / (mass[q] + w) * self.far[rows]
            rows = rows[leave > enter * (1.0 + TRANSFER_SLACK)]
        else:
            rows = rows[self._crossing(rows)]
        gone = np.zeros(self.k, bool)
        n_gone = 0
        for row in rows:
            p, q, w = self.first[row], self.second[row], self.weights[row]
            if mass[p] > w * (1.0 + 1e-9):
                x = self.points.take(np.array([row]))[0]
                if self._pays(x, w, sums[p], mass[p], sums[q], mass[q]):
                    sums[p] -= w * x
                    sums[q] += w * x
                    mass[p] -= w
                    mass[q] += w
                    gone[p] = gone[q] = True
                    n_gone += 1
        self.work += 2.0 * len(rows)
        if n_gone:
            codes = np.flatnonzero(gone)
            self.move(codes, self.points.frame.means(sums, mass, self.centers)[codes])
        return n_gone

    def _crossing(self, rows: np.ndarray) -> np.ndarray:
        """Whether the sums of both clusters together get longer if a point goes over (cosine)."""
        w, p, q = self.weights[rows], self.first[rows], self.second[rows]
        length = np.einsum("ij,ij->i", self.sums, self.sums)
        root = np.sqrt(length)
        safe = np.where(root > 0.0, root, 1.0)
        # xᵀS of both from the distances: centres stand on normalised sums, or nearly.
        near, far = (1.0 - 0.5 * self.near[rows]) * safe[p], (1 - 0.5 * self.far[rows]) * safe[q]
        less = np.sqrt(np.maximum(length[p] - 2.0 * w * near + w * w, 0.0))
        more = np.sqrt(np.maximum(length[q] + 2.0 * w * far + w * w, 0.0))
        return less + more > (root[p] + root[q]) * (1.0 + TRANSFER_SLACK)

    def _pays(self, x: Any, w: float, from_: Any, mass: float, to: Any, other: float) -> bool:
        if self.points.frame.directions:
            gone, come = from_ - w * x, to + w * x
            lengths = [float(np.sqrt(s @ s)) for s in (gone, come, from_, to)]
            return lengths[0] + lengths[1] > (lengths[2] + lengths[3]) * (1.0 + TRANSFER_SLACK)
        near, far = ((x - from_ / mass) ** 2).sum(), ((x - to / other) ** 2).sum()
        enter = other / (other + w) * far
        return bool(mass / (mass - w) * near > enter * (1.0 + TRANSFER_SLACK))


def open_state(points: Points, centers: np.ndarray) -> CentreState:
    """The state at these centres, compiled where that pays."""
    kind: type[CentreState] = CentreState
    if compiled_usable(points.X, len(centers)):
        kind = load("wellsep.compute.kernels.numba_search").CompiledState
    return kind(points, centers)


def compiled_usable(X: Any, n_clusters: int) -> bool:
    # By size alone, never by what was imported before: the same call gives the same result.
    large = float(X.shape[0]) * X.shape[1] * n_clusters >= COMPILED_FROM
    return large and isinstance(X, np.ndarray) and kernels_wanted() and numba_works()
