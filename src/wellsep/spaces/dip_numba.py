"""Compiled dips.

The steps are those of dip_hulls.py, where the reasons stand; the sign is −1 for a majorant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from wellsep.spaces.dip_hulls import BLOCK, HUGE


@njit(cache=True, error_model="numpy")
def _scan(
    v: np.ndarray, y: np.ndarray, sign: float, points: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """Vertices of the hull of the ascending ``points``, by a stack, in the beginning of ``out``."""
    out[0] = points[0]
    top = 0
    for i in points[1:]:
        while top > 0:
            a, b = out[top - 1], out[top]
            if sign * ((y[b] - y[a]) * (v[i] - v[b]) - (y[i] - y[b]) * (v[b] - v[a])) < 0:
                break
            top -= 1
        top += 1
        out[top] = i
    return out[: top + 1]


@njit(cache=True, error_model="numpy")
def _hull(
    v: np.ndarray, y: np.ndarray, sign: float, first: int, last: int, scratch: np.ndarray, row: int
) -> np.ndarray:
    """Vertices of the hull of the points first … last, in this row of ``scratch``."""
    points, n = scratch[0], 0
    step = BLOCK if last - first >= 4 * BLOCK else 1
    for i in range(first, last, step):
        points[n] = i
        n += 1
    points[n] = last
    rough = _scan(v, y, sign, points[: n + 1], scratch[row if step == 1 else 1])
    if step == 1:
        return rough
    n = 0
    for k in range(len(rough) - 1):
        p, q = rough[k], rough[k + 1]
        slope = (y[q] - y[p]) / (v[q] - v[p])
        points[n] = p
        n += 1
        for a in range(p, q, BLOCK):
            b = min(a + BLOCK, q)
            near, far = (a, b) if sign > 0 else (b, a)
            if sign * (y[near] - y[p] - slope * (v[far] - v[p])) < 0:
                for i in range(a + 1, b):
                    if sign * (y[i] - y[p] - slope * (v[i] - v[p])) < 0:
                        points[n] = i
                        n += 1
    points[n] = last
    return _scan(v, y, sign, points[: n + 1], scratch[row])


@njit(cache=True, error_model="numpy")
def _widest(
    v: np.ndarray, y: np.ndarray, hull: np.ndarray, line: np.ndarray, knots: np.ndarray
) -> tuple[float, int, int]:
    """The largest distance of the vertices of a hull of y to the line through the knots.

    With the place of the vertex in its hull, and that of the first knot not before it.
    """
    widest, vertex, knot = -1.0, 0, 0
    k = 0
    for j in range(len(hull)):
        i = hull[j]
        while knots[k] < i:
            k += 1
        c = knots[k]
        across = line[c]
        if c > i:
            a = knots[k - 1]
            across = line[a] + (line[c] - line[a]) / (v[c] - v[a]) * (v[i] - v[a])
        if abs(across - y[i]) > widest:
            widest, vertex, knot = abs(across - y[i]), j, k
    return widest, vertex, knot


@njit(cache=True, error_model="numpy")
def _excess(
    v: np.ndarray, y: np.ndarray, line: np.ndarray, knots: np.ndarray, sign: float, least: float
) -> float:
    """The largest height of y above (sign 1) or below (-1) the line through the knots, or least."""
    for k in range(len(knots) - 1):
        a, c = knots[k], knots[k + 1]
        outer = a if sign > 0 else c  # the other end may carry the mode
        least = max(least, sign * (y[outer] - line[outer]))
        slope = (line[c] - line[a]) / (v[c] - v[a])
        for p in range(a + 1, c, BLOCK):
            q = min(p + BLOCK, c)
            near, far = (q - 1, p) if sign > 0 else (p, q - 1)
            if sign * (y[near] - (line[a] + slope * (v[far] - v[a]))) > least:
                for i in range(p, q):
                    least = max(least, sign * (y[i] - (line[a] + slope * (v[i] - v[a]))))
    return least


@njit(cache=True, error_model="numpy", nogil=True)
def dip_of_steps(
    v: np.ndarray, below: np.ndarray, upto: np.ndarray, scratch: np.ndarray
) -> tuple[float, int, int]:
    """Twice the dip in objects, and the ends of the modal interval; ``scratch`` is (4, n)."""
    first, last, height = 0, len(v) - 1, 1.0
    while first < last and upto[last] - below[first] > height:
        g = _hull(v, below, 1.0, first, last, scratch, 2)
        m = _hull(v, upto, -1.0, first, last, scratch, 3)
        apart_g, start, stop = _widest(v, below, g, upto, m)
        apart_m, stop_m, start_m = _widest(v, upto, m, below, g)
        if max(apart_g, apart_m) <= height:
            break
        if apart_g <= apart_m:
            start, stop = start_m - (g[start_m] > m[stop_m]), stop_m
        height = _excess(v, upto, below, g[: start + 1], 1.0, height)
        height = _excess(v, below, upto, m[stop:], -1.0, height)
        first, last = g[start], m[stop]
    return height, first, last


@njit(cache=True, error_model="numpy", nogil=True)
def dips_of_rows(rows: np.ndarray) -> np.ndarray:
    """Of each row of ascending values: twice the dip, in objects, and the modal interval.

    The distinct values of a row are moved to its beginning.
    """
    n = rows.shape[1]
    steps = np.empty(n + 1)
    scratch = np.empty((4, n), np.int32)
    dips = np.empty((rows.shape[0], 3))
    for r in range(rows.shape[0]):
        v, k, unit = rows[r], n, 1.0
        if max(-v[0], v[n - 1]) > HUGE:
            unit = 0.25
            v *= unit
        steps[0], steps[n], n_tied = 0.0, n, 0
        for i in range(1, n):
            steps[i] = i
            n_tied += v[i] == v[i - 1]
        if n_tied > 0:
            k, before = 1, v[0]
            for i in range(1, n):  # without a branch, which ties would make hard to foresee
                value = v[i]
                k += value != before
                v[k - 1], steps[k], before = value, i + 1.0, value
        height, first, last = dip_of_steps(v[:k], steps[:k], steps[1 : k + 1], scratch)
        # One by one: a row from a tuple takes numba four seconds more to compile.
        dips[r, 0], dips[r, 1], dips[r, 2] = height, v[first] / unit, v[last] / unit
    return dips
