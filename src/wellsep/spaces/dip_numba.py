"""Compiled dips.

The steps are those of dip_hulls.py, where the reasons stand; ``sign`` is 1 for a convex minorant
and −1 for a concave majorant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from wellsep.spaces.dip_hulls import BLOCK


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
    v: np.ndarray,
    y: np.ndarray,
    sign: float,
    first: int,
    last: int,
    points: np.ndarray,
    rough: np.ndarray,
    out: np.ndarray,
) -> int:
    """Vertices of the hull of the points first … last into ``out``; their number."""
    n = 0
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
def dip_of_steps(
    v: np.ndarray, below: np.ndarray, upto: np.ndarray, scratch: np.ndarray
) -> tuple[float, int, int]:
    """Twice the dip in objects, and the ends of the modal interval; ``scratch`` is (4, n)."""
    points, rough, g, m = scratch[0], scratch[1], scratch[2], scratch[3]
    first, last, height = 0, len(v) - 1, 1.0
    while first < last and upto[last] - below[first] > height:
        n_g = _hull(v, below, 1.0, first, last, points, rough, g)
        n_m = _hull(v, upto, -1.0, first, last, points, rough, m)

        apart_g, start_g, stop_g = -1.0, first, last
        k = 0
        for j in range(n_g):
            i = g[j]
            while m[k] < i:
                k += 1
            majorant = upto[i]
            if m[k] > i:
                a, c = m[k - 1], m[k]
                majorant = upto[a] + (upto[c] - upto[a]) / (v[c] - v[a]) * (v[i] - v[a])
            if majorant - below[i] > apart_g:
                apart_g, start_g, stop_g = majorant - below[i], i, m[k]
        apart_m, start_m, stop_m = -1.0, first, last
        k = 0
        for j in range(n_m):
            i = m[j]
            while k < n_g - 1 and g[k + 1] <= i:
                k += 1
            a = g[k]
            minorant = below[a]
            if a < i:
                c = g[k + 1]
                minorant += (below[c] - below[a]) / (v[c] - v[a]) * (v[i] - v[a])
            if upto[i] - minorant > apart_m:
                apart_m, start_m, stop_m = upto[i] - minorant, a, i
        if max(apart_g, apart_m) <= height:
            break
        if apart_g > apart_m:
            start, stop = start_g, stop_g
        else:
            start, stop = start_m, stop_m

        for j in range(n_g - 1):
            a, c = g[j], g[j + 1]
            if a >= start:
                break
            height = max(height, upto[a] - below[a])
            slope = (below[c] - below[a]) / (v[c] - v[a])
            for p in range(a + 1, c, BLOCK):
                q = min(p + BLOCK, c)
                if upto[q - 1] - below[a] - slope * (v[p] - v[a]) > height:
                    for i in range(p, q):
                        height = max(height, upto[i] - below[a] - slope * (v[i] - v[a]))
        for j in range(n_m - 1, 0, -1):
            a, c = m[j - 1], m[j]
            if c <= stop:
                break
            height = max(height, upto[c] - below[c])
            slope = (upto[c] - upto[a]) / (v[c] - v[a])
            for p in range(a + 1, c, BLOCK):
                q = min(p + BLOCK, c)
                if upto[a] + slope * (v[q - 1] - v[a]) - below[p] > height:
                    for i in range(p, q):
                        height = max(height, upto[a] + slope * (v[i] - v[a]) - below[i])
        first, last = start, stop
    return height, first, last


@njit(cache=True, error_model="numpy", nogil=True)
def dips_of_rows(rows: np.ndarray) -> np.ndarray:
    """Of each row of ascending values: twice the dip, in objects, and the modal interval.

    The distinct values of a row are moved to its beginning.
    """
    n = rows.shape[1]
    steps = np.empty(n + 1)
    scratch = np.empty((4, n), np.int32)
    found = np.empty((rows.shape[0], 3))
    steps[0], steps[1] = 0.0, 1.0
    for r in range(rows.shape[0]):
        v = rows[r]
        k = 0
        before = v[0]
        for i in range(1, n):  # without a branch, which ties would make hard to foresee
            value = v[i]
            k += value != before
            v[k], steps[k + 1], before = value, i + 1.0, value
        k += 1
        height, first, last = dip_of_steps(v[:k], steps[:k], steps[1 : k + 1], scratch)
        # One by one: a row from a tuple takes numba four seconds more to compile.
        found[r, 0], found[r, 1], found[r, 2] = height, v[first], v[last]
    return found
