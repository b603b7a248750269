"""Compiled dips.

The steps are those of dip_hulls.py, where the reasons stand; the sign is −1 for a majorant.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np
from numba import njit

from wellsep.spaces.dip_hulls import BLOCK, REACH


@njit(cache=True, error_model="numpy")
def _scan(
    v: np.ndarray, y: np.ndarray, sign: float, points: np.ndarray, n: int, out: np.ndarray
) -> int:
    """Vertices of the hull of the first n of the ascending ``points``, by a stack; their number."""
    out[0] = points[0]
    top = 0
    for k in range(1, n):
        i = points[k]
        while top > 0:
            a, b = out[top - 1], out[top]
            if sign * ((y[b] - y[a]) * (v[i] - v[b]) - (y[i] - y[b]) * (v[b] - v[a])) < 0:
                break
            top -= 1
        top += 1
        out[top] = i
    return top + 1


@njit(cache=True, error_model="numpy")
def _hull(
    v: np.ndarray, y: np.ndarray, sign: float, first: int, last: int, scratch: np.ndarray, row: int
) -> int:
    """Vertices of the hull of the points first … last into a row of ``scratch``; their number."""
    points, rough, out, n = scratch[0], scratch[1], scratch[row], 0
    step = BLOCK if last - first >= 4 * BLOCK else 1
    for i in range(first, last, step):
        points[n] = i
        n += 1
    points[n] = last
    if step == 1:
        return _scan(v, y, sign, points, n + 1, out)
    n_rough = _scan(v, y, sign, points, n + 1, rough)
    n = 0
    for k in range(n_rough - 1):
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
    return _scan(v, y, sign, points, n + 1, out)


@njit(cache=True, error_model="numpy")
def _widest(
    v: np.ndarray, y: np.ndarray, hull: np.ndarray, n: int, line: np.ndarray, knots: np.ndarray
) -> tuple[float, int, int]:
    """The largest distance of the n vertices of a hull of y to the line through the knots.

    With the place of the vertex in its hull, and that of the first knot not before it.
    """
    widest, vertex, knot = -1.0, 0, 0
    k = 0
    for j in range(n):
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
    g, m = scratch[2], scratch[3]
    first, last, height = 0, len(v) - 1, 1.0
    while first < last and upto[last] - below[first] > height:
        n_g = _hull(v, below, 1.0, first, last, scratch, 2)
        n_m = _hull(v, upto, -1.0, first, last, scratch, 3)
        apart_g, start, stop = _widest(v, below, g, n_g, upto, m)
        apart_m, stop_m, start_m = _widest(v, upto, m, n_m, below, g)
        if max(apart_g, apart_m) <= height:
            break
        if apart_g <= apart_m:
            start, stop = start_m - (g[start_m] > m[stop_m]), stop_m
        height = _excess(v, upto, below, g[: start + 1], 1.0, height)
        height = _excess(v, below, upto, m[stop:n_m], -1.0, height)
        first, last = g[start], m[stop]
    return height, first, last


@njit(cache=True, error_model="numpy", nogil=True)
def dips_of_rows(rows: np.ndarray) -> np.ndarray:
    """Of each row of ascending values: twice the dip, in objects, and the modal interval.

    The distinct values of a row are moved to its beginning, multiplied as in `steps_of`.
    """
    n = rows.shape[1]
    steps = np.empty(n + 1)
    scratch = np.empty((4, n), np.int32)
    dips = np.empty((rows.shape[0], 3))
    steps[0], steps[1] = 0.0, 1.0
    for r in range(rows.shape[0]):
        v = rows[r]
        factor = ldexp(1.0, min(REACH - frexp(max(-v[0], v[n - 1]))[1], REACH))
        k = 0
        before = v[0] = v[0] * factor
        for i in range(1, n):  # without a branch, which ties would make hard to foresee
            value = v[i] * factor
            k += value != before
            v[k], steps[k + 1], before = value, i + 1.0, value
        k += 1
        height, first, last = dip_of_steps(v[:k], steps[:k], steps[1 : k + 1], scratch)
        # One by one: a row from a tuple takes numba four seconds more to compile.
        dips[r, 0], dips[r, 1], dips[r, 2] = height, v[first] / factor, v[last] / factor
    return dips
