"""The twin of ``search_state.CentreState`` in numba, for dense rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from wellsep.compute.kmeans.search_state import LOCAL, CentreState

# Infinity is a bound here, so "no NaN" and "no infinity" must not be promised.
FAST = {"reassoc", "contract", "arcp", "nsz"}
BLOCK = 256  # rows of one product


class CompiledState(CentreState):
    """Gives what its reference gives, but for the rounding of sums, with fewer distances.

    For every point it also keeps a lower bound on the distance (not squared) to every centre but
    its own two. A move costs what the points near the moved centres cost; most others are passed
    over after one comparison.
    """

    arrays = (*CentreState.arrays, "third")

    def descend(self, *, floor, max_iter, target=np.inf, pace=np.inf):
        if self.k == 1:
            super().descend(floor=floor, max_iter=max_iter, target=target, pace=pace)
            return
        self.cost, work = _descend(
            *self._state(), self.cost, target, floor * self.cost, max_iter, min(pace, 1e300)
        )
        self.work += work

    def move(self, codes, places):
        if self.k == 1:
            super().move(codes, places)
            return
        way = np.zeros(self.k)
        way[codes] = np.sqrt(((self.centers[codes] - places) ** 2).sum(axis=1))
        self.centers[codes] = places
        self.touched[codes] = True
        self.cost, work = _move(*self._state(), np.asarray(codes, dtype=np.int64), way)
        self.work += work

    def look(self):
        X, n = self.points.X, self.points.n
        self.third = np.full(n, np.inf)
        # Products of rows are exact to this share of the squared lengths.
        self.slack = 4.0 * float(np.finfo(X.dtype).eps)
        _scan(
            X, self.norms, self.centers, np.arange(n), self.first, self.second, self.near,
            self.far, self.third, self.slack,
        )  # fmt: skip
        self.work += float(n * self.k)

    def _state(self):
        return (
            self.points.X, self.norms, self.weights, self.centers, self.first, self.second,
            self.near, self.far, self.third, self.sums, self.mass, self.count, self.touched,
            self.slack, self.points.frame.directions,
        )  # fmt: skip


@njit(fastmath=FAST, inline="always")
def _square(x, c):
    total = 0.0
    for t in range(c.shape[0]):
        gap = x[t] - c[t]
        total += gap * gap
    return total


@njit(fastmath=FAST, cache=True, nogil=True)
def _scan(X, norms, centers, rows, first, second, near, far, third, slack):
    """One product for each block of rows; the winners' distances from differences."""
    k, d = centers.shape
    columns = np.empty((d, k), X.dtype)
    length = np.zeros(k)
    longest = 0.0
    for j in range(k):
        for t in range(d):
            columns[t, j] = centers[j, t]
            length[j] += centers[j, t] * centers[j, t]
        longest = max(longest, length[j])
    some = np.empty((BLOCK, d), X.dtype)
    table = np.empty((BLOCK, k), X.dtype)
    for begin in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - begin)
        for u in range(size):
            row, into = X[rows[begin + u]], some[u]
            for t in range(d):  # into[:] = row takes numba three seconds more to compile
                into[t] = row[t]
        np.dot(some[:size], columns, table[:size])
        for u in range(size):
            i = rows[begin + u]
            v1, v2, v3 = np.inf, np.inf, np.inf
            p, q = 0, 0
            for j in range(k):
                v = length[j] - 2.0 * table[u, j]
                if v < v3:
                    if v < v2:
                        v3 = v2
                        if v < v1:
                            v2, q = v1, p
                            v1, p = v, j
                        else:
                            v2, q = v, j
                    else:
                        v3 = v
            first[i] = p
            near[i] = _square(X[i], centers[p])
            if k > 1:
                second[i] = q
                far[i] = _square(X[i], centers[q])
                if far[i] < near[i]:
                    first[i], second[i] = q, p
                    near[i], far[i] = far[i], near[i]
            if k > 2:
                square = v3 + norms[i] - slack * (norms[i] + longest)
                third[i] = np.sqrt(max(square, 0.0))


@njit(fastmath=FAST, cache=True, nogil=True)
def _hand_over(x, w, p, q, sums, mass, count, touched):
    for t in range(sums.shape[1]):
        sums[p, t] -= w * x[t]
        sums[q, t] += w * x[t]
    mass[p] -= w
    mass[q] += w
    if w > 0.0:
        count[p] -= 1.0
        count[q] += 1.0
    touched[p] = True
    touched[q] = True


@njit(fastmath=FAST, cache=True, nogil=True)
def _move(
    X, norms, weights, centers, first, second, near, far, third, sums, mass, count, touched,
    slack, directions, codes, way,
):  # fmt: skip
    """``CentreState.move`` after the centres took their places; returns cost and distances."""
    n, k = X.shape[0], centers.shape[0]
    moved = np.zeros(k, np.bool_)
    g1, g2, g3 = -1, -1, -1  # the three longest ways
    for u in range(len(codes)):
        j = codes[u]
        moved[j] = True
        if g1 < 0 or way[j] > way[g1]:
            g1, g2, g3 = j, g1, g2
        elif g2 < 0 or way[j] > way[g2]:
            g2, g3 = j, g2
        elif g3 < 0 or way[j] > way[g3]:
            g3 = j
    few = len(codes) <= max(3, k // 3)
    apart = np.empty((len(codes) if few else 0, k))
    if few:
        for u in range(len(codes)):
            for j in range(k):
                apart[u, j] = np.sqrt(_square(centers[codes[u]], centers[j]))
    rows, before = np.empty(n, np.int64), np.empty(n, np.int32)
    left, work = 0, 0.0
    for i in range(n):
        p, q = first[i], second[i]
        longest = 0.0
        if g1 >= 0 and g1 != p and g1 != q:
            longest = way[g1]
        elif g2 >= 0 and g2 != p and g2 != q:
            longest = way[g2]
        elif g3 >= 0 and g3 != p and g3 != q:
            longest = way[g3]
        low = third[i] - longest
        own, other = moved[p], moved[q]
        if not own and not other and low > 0.0 and far[i] <= low * low:
            third[i] = low
            continue
        e1, e2 = near[i], far[i]
        if own:
            e1 = _square(X[i], centers[p])
            work += 1.0
        if other:
            e2 = _square(X[i], centers[q])
            work += 1.0
        reach = np.sqrt(e1)
        a, b = p, q
        if e2 < e1:
            e1, e2 = e2, e1
            a, b = q, p
        exact, bound = False, low
        if low > 0.0 and e2 <= low * low:
            exact = True
        elif few:
            bound = third[i]
            for u in range(len(codes)):
                j = codes[u]
                if j in (p, q):
                    continue
                t = apart[u, p] - reach
                if t >= bound:
                    continue
                if t > 0.0 and t * t >= e2:
                    bound = t
                    continue
                e = _square(X[i], centers[j])
                work += 1.0
                bound = min(bound, np.sqrt(max(e, e2)))
                if e < e1:
                    e2, b = e1, a
                    e1, a = e, j
                elif e < e2:
                    e2, b = e, j
            exact = e2 <= third[i] * third[i]
        if exact:
            if a != p:
                _hand_over(X[i], weights[i], p, a, sums, mass, count, touched)
            first[i], second[i], near[i], far[i], third[i] = a, b, e1, e2, bound
        else:
            rows[left], before[left] = i, p
            left += 1
    if left:
        _scan(X, norms, centers, rows[:left], first, second, near, far, third, slack)
        work += float(left) * k
        for u in range(left):
            i = rows[u]
            if first[i] != before[u]:
                _hand_over(X[i], weights[i], before[u], first[i], sums, mass, count, touched)
    for j in range(k):
        if count[j] < 0.5:
            mass[j] = 0.0
            for t in range(centers.shape[1]):
                sums[j, t] = 0.0
    cost = 0.0
    for i in range(n):
        cost += weights[i] * near[i]
    return cost, work


@njit(fastmath=FAST, cache=True, nogil=True)
def _gains(centers, sums, mass, directions, gain, places):
    k, d = centers.shape
    total = 0.0
    for j in range(k):
        gain[j] = 0.0
        if directions:
            square, along = 0.0, 0.0
            for t in range(d):
                square += sums[j, t] * sums[j, t]
                along += sums[j, t] * centers[j, t]
            length = np.sqrt(square)
            if length > 0.0:
                for t in range(d):
                    places[j, t] = sums[j, t] / length
                gain[j] = max(2.0 * (length - along), 0.0)
        elif mass[j] > 0.0:
            square = 0.0
            for t in range(d):
                places[j, t] = sums[j, t] / mass[j]
                square += (places[j, t] - centers[j, t]) ** 2
            gain[j] = mass[j] * square
        total += gain[j]
    return total


@njit(fastmath=FAST, cache=True, nogil=True)
def _descend(
    X, norms, weights, centers, first, second, near, far, third, sums, mass, count, touched,
    slack, directions, cost, target, low, max_iter, pace,
):  # fmt: skip
    k, d = centers.shape
    gain, places, way = np.empty(k), np.empty((k, d)), np.zeros(k)
    codes = np.empty(k, np.int64)
    last, work = np.inf, 0.0
    for _ in range(max_iter):
        total = _gains(centers, sums, mass, directions, gain, places)
        if total <= low:
            break
        if cost >= target and cost - pace * max(total, min(last, 2.0 * total)) >= target:
            break
        least = (LOCAL * total + low) / k
        size = 0
        for j in range(k):
            way[j] = 0.0
            if gain[j] > least:
                way[j] = np.sqrt(_square(places[j], centers[j]))
                for t in range(d):
                    centers[j, t] = places[j, t]
                touched[j] = True
                codes[size] = j
                size += 1
        if size == 0:
            break
        before = cost
        cost, more = _move(
            X, norms, weights, centers, first, second, near, far, third, sums, mass, count,
            touched, slack, directions, codes[:size], way,
        )  # fmt: skip
        work += more
        last = before - cost
    return cost, work
