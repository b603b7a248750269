"""Compiled dips; imported by kernels.py alone, because it imports numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def dip_of_steps(v, below, upto, before, after, g, m):
    """Twice the dip in objects; ``before``, ``after``, ``g`` and ``m`` (n,) are scratch."""
    n = len(v)
    # before[i]: vertex preceding i on the convex minorant of the points 0..i;
    # after[i]: vertex following i on the concave majorant of the points i..n-1.
    # The minorant on first..last is then the chain last, before[last], … down to first: first is a
    # vertex of the round before, and the supporting line there keeps the chain from passing it.
    before[0] = 0
    for i in range(1, n):
        b = i - 1
        while b > 0:
            a = before[b]
            if (below[b] - below[a]) * (v[i] - v[b]) < (below[i] - below[b]) * (v[b] - v[a]):
                break
            b = a
        before[i] = b
    after[n - 1] = n - 1
    for i in range(n - 2, -1, -1):
        b = i + 1
        while b < n - 1:
            c = after[b]
            if (upto[b] - upto[i]) * (v[c] - v[b]) > (upto[c] - upto[b]) * (v[b] - v[i]):
                break
            b = c
        after[i] = b

    first, last, height = 0, n - 1, 1.0
    while first < last:
        n_g, i = 0, last  # g runs from right to left, m from left to right
        while i > first:
            g[n_g] = i
            n_g += 1
            i = before[i]
        g[n_g] = first
        n_g += 1
        n_m, i = 0, first
        while i < last:
            m[n_m] = i
            n_m += 1
            i = after[i]
        m[n_m] = last
        n_m += 1

        apart_g, start_g, stop_g = -1.0, first, last
        k = 0
        for j in range(n_g - 1, -1, -1):
            i = g[j]
            while m[k] < i:
                k += 1
            if m[k] == i:
                majorant = upto[i]
            else:
                a, c = m[k - 1], m[k]
                majorant = upto[a] + (upto[c] - upto[a]) / (v[c] - v[a]) * (v[i] - v[a])
            if majorant - below[i] > apart_g:
                apart_g, start_g, stop_g = majorant - below[i], i, m[k]
        apart_m, start_m, stop_m = -1.0, first, last
        k = n_g - 1
        for j in range(n_m):
            i = m[j]
            while k > 0 and g[k - 1] <= i:
                k -= 1
            a = g[k]
            minorant = below[a]
            if a < i:
                c = g[k - 1]
                minorant += (below[c] - below[a]) / (v[c] - v[a]) * (v[i] - v[a])
            if upto[i] - minorant > apart_m:
                apart_m, start_m, stop_m = upto[i] - minorant, a, i
        if max(apart_g, apart_m) <= height:
            break
        if apart_g > apart_m:
            start, stop = start_g, stop_g
        else:
            start, stop = start_m, stop_m

        for j in range(n_g - 1, 0, -1):
            a, c = g[j], g[j - 1]
            if a >= start:
                break
            slope = (below[c] - below[a]) / (v[c] - v[a])
            for i in range(a, c):
                height = max(height, upto[i] - below[a] - slope * (v[i] - v[a]))
        for j in range(n_m - 1, 0, -1):
            a, c = m[j - 1], m[j]
            if c <= stop:
                break
            slope = (upto[c] - upto[a]) / (v[c] - v[a])
            for i in range(a + 1, c + 1):
                height = max(height, upto[a] + slope * (v[i] - v[a]) - below[i])
        first, last = start, stop
    return height


@njit(cache=True, error_model="numpy")
def dips_of_rows(rows):
    """Twice the dip, in objects, of each row of strictly ascending values."""
    n = rows.shape[1]
    upto = np.arange(1.0, n + 1.0)
    below = upto - 1.0
    before, after = np.empty(n, np.int32), np.empty(n, np.int32)
    g, m = np.empty(n, np.int32), np.empty(n, np.int32)
    heights = np.empty(rows.shape[0])
    for r in range(rows.shape[0]):
        heights[r] = dip_of_steps(rows[r], below, upto, before, after, g, m)
    return heights
