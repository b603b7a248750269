"""The dip of a step function, found from its convex minorants and concave majorants.

A sample enters as its distinct values ``v`` and, for each, the number of objects below it
(``below``, the lower corner of the step) and up to it (``upto``, the upper corner). Everything
is counted in objects, so that the dip in probability is the result divided by 2n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Dip(NamedTuple):
    """Twice the dip in objects, and the first and last distinct value of the modal interval."""

    height: float
    first: int
    last: int


def minorant(v: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the vertices of the greatest convex minorant of the points (v, y)."""
    kept = np.arange(len(v))
    while len(kept) > 2:
        dv, dy = np.diff(v[kept]), np.diff(y[kept])
        # A point on or above the chord of its neighbours is no vertex, whatever becomes of them,
        # so one pass may drop all such points together.
        vertex = dy[:-1] * dv[1:] < dy[1:] * dv[:-1]
        n_dropped = len(vertex) - int(np.count_nonzero(vertex))
        if n_dropped == 0:
            break
        kept = kept[np.concatenate(([True], vertex, [True]))]
        if n_dropped * 8 < len(vertex):  # passes no longer pay: one scan keeps the whole linear
            return kept[_scan(v[kept].tolist(), y[kept].tolist())]
    return kept


def _scan(v: list, y: list) -> list:
    """Vertices of the convex minorant by one pass from left to right with a stack."""
    hull = [0]
    for i in range(1, len(v)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (v[i] - v[b]) < (y[i] - y[b]) * (v[b] - v[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


def dip_of_steps(v: np.ndarray, below: np.ndarray, upto: np.ndarray) -> Dip:
    """Hartigan & Hartigan (1985, section 4): shrink the modal interval until the hulls are close.

    Outside the modal interval a unimodal function is convex to the left and concave to the right,
    so 2n·dip is at least the height of the step function above its convex minorant on the left,
    and under its concave majorant on the right. Inside, the band between both hulls decides.
    """
    first, last = 0, len(v) - 1
    height = 1.0  # no continuous function is nearer than half a step to a step function
    while first < last:
        x, low, high = v[first : last + 1], below[first : last + 1], upto[first : last + 1]
        g, m = minorant(x, low), minorant(x, -high)
        apart_g = np.interp(x[g], x[m], high[m]) - low[g]
        apart_m = high[m] - np.interp(x[m], x[g], low[g])
        at_g, at_m = int(apart_g.argmax()), int(apart_m.argmax())
        if max(apart_g[at_g], apart_m[at_m]) <= height:
            break
        if apart_g[at_g] > apart_m[at_m]:
            start = g[at_g]
            stop = m[np.searchsorted(m, start)]
        else:
            stop = m[at_m]
            start = g[np.searchsorted(g, stop, side="right") - 1]
        # The mode itself may carry a jump: the steps at start and stop are left to the next round.
        if start > 0:
            left = high[:start] - np.interp(x[:start], x[g], low[g])
            height = max(height, float(left.max()))
        if stop < last - first:
            right = np.interp(x[stop + 1 :], x[m], high[m]) - low[stop + 1 :]
            height = max(height, float(right.max()))
        first, last = first + int(start), first + int(stop)
    return Dip(height, first, last)
