"""The state of a k-means search, kept exact while only some centres move.

For every point: the nearest and second nearest centre, both squared distances, and a lower bound
on the distance (not squared) to every other centre. For every centre: the weighted sum and the
weight of its points. A move costs what the points near the moved centres cost; most others are
passed over after one comparison. With metric="cosine" rows have unit length, so that squared
distances are 2(1 − cos) and the same bounds hold; centres then stand on normalised sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

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
    """The NumPy reference; see the module for what is kept.

    All changes of centres go through ``move``: the bounds are a promise about every centre.
    """

    arrays = ("centers", "first", "second", "near", "far", "third", "sums", "mass", "count")

    def __init__(self, points: Points, centers: np.ndarray, *, local: bool = True):
        n, k = points.n, len(centers)
        self.points, self.k = points, k
        self.local = local  # False: every move is a pass over all points, for comparison
        self.weights = points.pull_or_ones
        # Products of rows are exact to this share of the squared lengths.
        self.slack = 4.0 * float(np.finfo(points.space.X.dtype).eps)
        self.norms = np.asarray(points.norms, dtype=np.float64)
        if points.zero is not None:  # no axis of their own here: they weigh nothing
            self.norms = self.norms - points.zero
        self.work = 0.0  # distances computed so far
        self.touched = np.zeros(k, bool)  # clusters whose points or centre changed
        self.centers = np.array(centers, dtype=np.float64)
        self.first, self.second = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.near, self.far = np.empty(n), np.full(n, np.inf)
        self.third = np.full(n, np.inf)
        self.sums, self.mass, self.count = np.zeros_like(self.centers), np.zeros(k), np.zeros(k)
        self._scan(np.arange(n))
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
        """Sums and weights anew from the labels: each label change adds one rounding."""
        space = self.points.space
        self.sums[...] = space.code_sums(self.first, self.weights, self.k)
        self.mass[...] = np.bincount(self.first, self.weights, self.k)
        self.count[...] = np.bincount(self.first, self.weights > 0.0, self.k)
        self._clear_empty()

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
            least = (LOCAL * total + low) / self.k if self.local else 0.0
            moved = np.flatnonzero(gain > least)
            if not len(moved):
                break
            before = self.cost
            self.move(moved, places[moved])
            last = before - self.cost

    def move(self, codes: np.ndarray, places: np.ndarray) -> None:
        """Put some centres elsewhere; everything else follows, exactly."""
        way = np.zeros(self.k)
        way[codes] = np.sqrt(((self.centers[codes] - places) ** 2).sum(axis=1))
        self.centers[codes] = places
        self.touched[codes] = True
        before = self.first.copy()
        if self.local and self.k > 1:
            self._scan(self._update(codes, way))
        else:
            self._scan(np.arange(self.points.n))
        self._relabel(before)
        self.cost = float(self.near @ self.weights)

    def _update(self, codes: np.ndarray, way: np.ndarray) -> np.ndarray:
        """Bring all points up to date but those that are returned."""
        moved = np.zeros(self.k, bool)
        moved[codes] = True
        low = self.third - self._longest_other_way(codes, way)
        own, other = moved[self.first], moved[self.second]
        still = ~own & ~other & (low > 0.0) & (self.far <= low * low)
        self.third[still] = low[still]
        rows = np.flatnonzero(~still)
        own, other, low = own[rows], other[rows], low[rows]
        p, q = self.first[rows].copy(), self.second[rows].copy()
        near, far = self.near[rows].copy(), self.far[rows].copy()
        near[own] = self._squares(rows[own], p[own])
        far[other] = self._squares(rows[other], q[other])
        self.work += float(own.sum() + other.sum())
        reach = np.sqrt(near)  # to the centre p at its new place
        first, second = p.copy(), q.copy()
        _swap(far < near, first, second, near, far)
        bound = self.third[rows]
        third = np.where((low > 0.0) & (far <= low * low), low, np.nan)
        if len(codes) <= max(3, self.k // 3):
            at = np.flatnonzero(np.isnan(third))
            part = [c[at] for c in (rows, p, q, reach, first, second, near, far, bound)]
            seen = self._look_at(codes, *part)
            first[at], second[at], near[at], far[at] = part[4:8]
            third[at] = np.where(far[at] <= bound[at] ** 2, seen, np.nan)
        done = ~np.isnan(third)
        ready = rows[done]
        self.first[ready], self.second[ready] = first[done], second[done]
        self.near[ready], self.far[ready] = near[done], far[done]
        self.third[ready] = third[done]
        return rows[~done]

    def _longest_other_way(self, codes: np.ndarray, way: np.ndarray) -> np.ndarray:
        """(n,) the longest way of a moved centre that is neither of a point's own two."""
        order = codes[np.argsort(-way[codes], kind="stable")[:3]]
        longest = np.zeros(self.points.n)
        open_ = np.ones(self.points.n, bool)
        for code in order:
            here = open_ & (self.first != code) & (self.second != code)
            longest[here] = way[code]
            open_ &= ~here
        return longest

    def _look_at(
        self, codes: np.ndarray, rows: np.ndarray, p: Any, q: Any, reach: Any, *found: Any
    ) -> np.ndarray:
        """Insert the moved centres among the two nearest; returns the bound on the rest."""
        first, second, near, far, bound = found
        third = bound.copy()
        for code, apart in zip(codes, cdist(self.centers[codes], self.centers), strict=True):
            low = apart[p] - reach
            open_ = (code != p) & (code != q) & (low < third)
            beyond = open_ & (low > 0.0) & (low * low >= far)
            third[beyond] = low[beyond]
            at = np.flatnonzero(open_ & ~beyond)
            if not len(at):
                continue
            new = self._squares(rows[at], np.full(len(at), code))
            self.work += float(len(at))
            third[at] = np.minimum(third[at], np.sqrt(np.maximum(new, far[at])))
            nearer, nearest = at[new < far[at]], at[new < near[at]]
            values = np.full(len(rows), np.inf)
            values[at] = new
            second[nearer], far[nearer] = code, values[nearer]
            second[nearest], far[nearest] = first[nearest], near[nearest]
            first[nearest], near[nearest] = code, values[nearest]
        return third

    def _scan(self, rows: np.ndarray) -> None:
        """The two nearest of all centres for some points, and a bound on the third."""
        if not len(rows):
            return
        space = self.points.space
        part = space if len(rows) == space.n else space.with_rows(space.take(rows))
        k, norms = self.k, self.norms[rows]
        codes, squares = host_nearest(part, self.centers, norms, min(k, 3))
        first = codes[0]
        near = self._squares(rows, first)
        self.work += float(len(rows) * k)
        if k > 1:
            second = codes[1]
            far = self._squares(rows, second)
            _swap(far < near, first, second, near, far)
            self.second[rows], self.far[rows] = second, far
        if k > 2:
            length = np.einsum("ij,ij->i", self.centers, self.centers).max()
            square = squares[2] - self.slack * (norms + length)
            self.third[rows] = np.sqrt(np.maximum(square, 0.0))
        self.first[rows], self.near[rows] = first, near

    def _squares(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Squared distances of some points from centres, by differences where X is dense."""
        space = self.points.space
        part = space.with_rows(space.take(rows))
        return np.asarray(part.own_squares(self.centers, codes, self.norms[rows], None))

    def _relabel(self, before: np.ndarray) -> None:
        changed = np.flatnonzero(before != self.first)
        if not len(changed):
            return
        space, weights = self.points.space, self.weights[changed]
        codes = np.stack([self.first[changed], before[changed]], axis=1)
        signs = np.array([1.0, -1.0])
        rows = space.with_rows(space.take(changed))
        self.sums += rows.code_sums(codes, weights[:, None] * signs, self.k)
        flat = codes.reshape(-1)
        self.mass += np.bincount(flat, (weights[:, None] * signs).reshape(-1), self.k)
        counted = ((weights > 0.0)[:, None] * signs).reshape(-1)
        self.count += np.bincount(flat, counted, self.k)
        self.touched[flat] = True
        self._clear_empty()

    def _clear_empty(self) -> None:
        empty = self.count < 0.5
        self.sums[empty], self.mass[empty] = 0.0, 0.0

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
        at, total = self.points.rows_at_shares(self.near[rows] * weights, np.array([share]))
        if not total > 0.0:
            return none
        X = space.take(rows)
        across = self.points.take(rows[at])[0] - center
        level, found = float(across @ center), none
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
            grown = gain > found.gain * (1.0 + SPLIT_GROWTH)
            found = Split(gain, places[0], places[1])
            if not grown:
                break
            across = places[0] - places[1]
            level = 0.5 * float(places[0] @ places[0] - places[1] @ places[1])
        return found

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
        own, other = (1.0 - 0.5 * self.near[rows]) * safe[p], (1 - 0.5 * self.far[rows]) * safe[q]
        less = np.sqrt(np.maximum(length[p] - 2.0 * w * own + w * w, 0.0))
        more = np.sqrt(np.maximum(length[q] + 2.0 * w * other + w * w, 0.0))
        return less + more > (root[p] + root[q]) * (1.0 + TRANSFER_SLACK)

    def _pays(self, x: Any, w: float, from_: Any, mass: float, to: Any, other: float) -> bool:
        if self.points.frame.directions:
            gone, come = from_ - w * x, to + w * x
            lengths = [float(np.sqrt(s @ s)) for s in (gone, come, from_, to)]
            return lengths[0] + lengths[1] > (lengths[2] + lengths[3]) * (1.0 + TRANSFER_SLACK)
        near, far = ((x - from_ / mass) ** 2).sum(), ((x - to / other) ** 2).sum()
        enter = other / (other + w) * far
        return bool(mass / (mass - w) * near > enter * (1.0 + TRANSFER_SLACK))


def open_state(points: Points, centers: np.ndarray, *, local: bool = True) -> CentreState:
    """The state at these centres, compiled where that pays."""
    if compiled_usable(points.X, len(centers)):
        state: type[CentreState] = load("wellsep.compute.kernels.numba_search").CompiledState
        return state(points, centers, local=local)
    return CentreState(points, centers, local=local)


def compiled_usable(X: Any, n_clusters: int) -> bool:
    # By size alone, never by what was imported before: the same call gives the same result.
    large = float(X.shape[0]) * X.shape[1] * n_clusters >= COMPILED_FROM
    return large and isinstance(X, np.ndarray) and kernels_wanted() and numba_works()


def _swap(where: np.ndarray, first: Any, second: Any, near: Any, far: Any) -> None:
    first[where], second[where] = second[where], first[where]
    near[where], far[where] = far[where], near[where]
