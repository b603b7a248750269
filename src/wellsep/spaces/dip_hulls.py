"""The dip of a step function, found from its convex minorants and concave majorants.

A sample enters as its distinct values ``v`` and, for each, the number of objects below it
(``below``, the lower corner of the step) and up to it (``upto``, the upper corner). Everything
is counted in objects, so that the dip in probability is the result divided by 2n.

Both counts ascend, and so do the hulls. What the ends of a block of points say therefore holds
for all of it, and a large sample costs little more than reading each of its blocks once.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import NamedTuple

import numpy as np

BLOCK = 16  # points that are kept or dropped together
FEW = 64  # points that a scan in plain Python takes faster than NumPy's calls begin
MANY = 4096  # points from which sorting out blocks is faster than looking at every point
REACH = 960  # values are brought below 2**960: no difference, product or slope overflows there

Knots = tuple[np.ndarray, np.ndarray]  # places and heights of the vertices of a hull


class Dip(NamedTuple):
    """Twice the dip in objects, and the first and last distinct value of the modal interval."""

    height: float
    first: int
    last: int


def minorant(v: np.ndarray, y: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Indices of the vertices of the greatest convex minorant of the points sign·(v, y).

    Both coordinates ascend. The sign is taken late: few points of a large sample are looked at.
    """
    n = len(v)
    if n <= MANY and sign < 0:
        v, y = -v, -y
    if n <= FEW:
        return np.array(_scan(v.tolist(), y.tolist()))
    ends = np.arange(0, n + BLOCK - 1, BLOCK)
    ends[-1] = n - 1
    if n <= MANY:
        rough, knots = _rough(v[ends], y[ends], ends)
        under = y < np.interp(v, *knots)
        under[rough] = True
        points = np.flatnonzero(under)
        return _pare(points, v[points], y[points])
    v_ends, y_ends = sign * v[ends], sign * y[ends]
    rough, knots = _rough(v_ends, y_ends, ends)
    # A block that begins above the end of its piece of the rough minorant is above it throughout.
    inside = _members(ends[:-1][y_ends[:-1] < np.interp(v_ends[1:], *knots)], n)
    under = sign * y[inside] < np.interp(sign * v[inside], *knots)
    points = np.concatenate((rough, inside[under]))
    points.sort()
    return _pare(points, sign * v[points], sign * y[points])


def majorant(v: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the vertices of the least concave majorant: the minorant, seen upside down."""
    return len(v) - 1 - minorant(v[::-1], y[::-1], -1.0)[::-1]


def _rough(v: np.ndarray, y: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, Knots]:
    """The minorant of the points ``ends``, at (v, y). That of all points lies nowhere above it."""
    vertices = minorant(v, y)
    return ends[vertices], (v[vertices], y[vertices])


def _members(starts: np.ndarray, n: int) -> np.ndarray:
    """Indices of the points, n in all, of the blocks with these starts."""
    inside = (starts[:, None] + np.arange(BLOCK)).ravel()
    return inside[: np.searchsorted(inside, n)]


def _pare(points: np.ndarray, v: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Those of the points, at (v, y), that are vertices of their convex minorant."""
    while len(points) > FEW:
        dv, dy = v[1:] - v[:-1], y[1:] - y[:-1]
        # A point on or above the chord of its neighbours is no vertex, whatever becomes of them,
        # so one pass may drop all such points together.
        vertex = np.ones(len(points), dtype=bool)
        np.less(dy[:-1] * dv[1:], dy[1:] * dv[:-1], out=vertex[1:-1])
        n_dropped = len(points) - int(np.count_nonzero(vertex))
        if n_dropped == 0:
            return points
        passes_pay = n_dropped * 8 >= len(points)  # else one linear scan ends it
        points, v, y = points[vertex], v[vertex], y[vertex]
        if not passes_pay:
            break
    return points[_scan(v.tolist(), y.tolist())]


def _scan(v: list[float], y: list[float]) -> list[int]:
    """Vertices of the convex minorant by one pass from left to right with a stack."""
    hull = [0]
    for i in range(1, len(v)):
        vi, yi = v[i], y[i]
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (vi - v[b]) < (yi - y[b]) * (v[b] - v[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


def _excess(v: np.ndarray, y: np.ndarray, knots: Knots, least: float, sign: float = 1.0) -> float:
    """The largest height of the points sign·(v, y) above the line through the knots, or least."""
    n = len(v)
    if n > MANY:
        starts = np.arange(0, n, BLOCK)
        ends = np.minimum(starts + (BLOCK - 1), n - 1)
        bound = sign * y[ends] - np.interp(sign * v[starts], *knots)
        best = int(starts[bound.argmax()])
        block = slice(best, best + BLOCK)
        least = _excess(v[block], y[block], knots, least, sign)
        inside = _members(starts[bound > least], n)
        v, y = v[inside], y[inside]
    return float((sign * y - np.interp(sign * v, *knots)).max(initial=least))


def dip_of_steps(v: np.ndarray, below: np.ndarray, upto: np.ndarray) -> Dip:
    """Hartigan & Hartigan (1985, section 4): shrink the modal interval until the hulls are close.

    Outside the modal interval a unimodal function is convex to the left and concave to the right,
    so 2n·dip is at least the height of the step function above its convex minorant on the left,
    and under its concave majorant on the right. Inside, the band between both hulls decides.
    """
    first, last = 0, len(v) - 1
    height = 1.0  # no continuous function is nearer than half a step to a step function
    while first < last and upto[last] - below[first] > height:
        x, low, high = v[first : last + 1], below[first : last + 1], upto[first : last + 1]
        g, m = minorant(x, low), majorant(x, high)
        (xg, low_g), (xm, high_m) = (x[g], low[g]), (x[m], high[m])
        apart_g = np.interp(xg, xm, high_m) - low_g
        apart_m = high_m - np.interp(xm, xg, low_g)
        widest_g, widest_m = int(apart_g.argmax()), int(apart_m.argmax())
        if max(apart_g[widest_g], apart_m[widest_m]) <= height:
            break
        if apart_g[widest_g] > apart_m[widest_m]:
            start = g[widest_g]
            stop = m[np.searchsorted(m, start)]
        else:
            stop = m[widest_m]
            start = g[np.searchsorted(g, stop, side="right") - 1]
        # The mode itself may carry a jump: the steps at start and stop are left to the next round.
        height = _excess(x[:start], high[:start], (xg, low_g), height)
        after = slice(None, stop, -1)  # upside down, as the majorant
        height = _excess(x[after], low[after], (-xm[::-1], -high_m[::-1]), height, -1.0)
        first, last = first + int(start), first + int(stop)
    return Dip(height, first, last)


def steps_of(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The distinct values of an ordered sample, and how many objects are below and up to each.

    The values come multiplied by a power of two, which is the last that is returned.
    """
    n, largest = len(ordered), max(-ordered.item(0), ordered.item(-1))
    factor = ldexp(1.0, min(REACH - frexp(largest)[1], REACH))
    v = ordered * factor
    new = v[1:] != v[:-1]
    if new.all():
        return v, np.arange(0.0, n), np.arange(1.0, n + 1.0), factor
    begins = np.concatenate(([0], np.flatnonzero(new) + 1))
    steps = np.append(begins, n).astype(np.float64)
    return v[begins], steps[:-1], steps[1:], factor


def dips_of_rows(rows: np.ndarray) -> np.ndarray:
    """Of each row of ascending values: twice the dip, in objects, and the modal interval."""
    dips = np.empty((len(rows), 3))
    for r, row in enumerate(rows):
        v, below, upto, factor = steps_of(row)
        height, first, last = dip_of_steps(v, below, upto)
        dips[r] = height, v[first] / factor, v[last] / factor
    return dips
