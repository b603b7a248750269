"""Compiled ways to the nearest centres of rows; imported by ``nearest`` alone (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit

TILE_ROWS = 256  # of a tile: 16 features of them stay in the first-level cache
TILE_FEATURES = 16


def swept_labels(X, centers, blocks, bias, first):
    """See ``nearest.label_blocks``; one pass over a block of products finds the largest."""
    k, few = len(centers), np.ascontiguousarray(centers, dtype=X.dtype)
    memory, best, at = np.empty(0, X.dtype), np.empty(0, X.dtype), np.empty(0, np.int32)
    for rows in blocks:
        size = rows.stop - rows.start
        if len(best) < size:
            memory, best = np.empty(size * k, X.dtype), np.empty(size, X.dtype)
            at = np.empty(size, f"i{X.dtype.itemsize}")  # as wide as a product: both fill a vector
        table = np.matmul(few, X[rows].T, out=memory[: size * k].reshape(k, size))
        _sweep(table, bias, best, at)
        first[rows] = at[:size]


@njit(cache=True, nogil=True)
def _sweep(table, bias, best, at):
    """The largest of each column with ``bias`` added to its row; of equals the first.

    Four rows in one sweep, so that what is best so far is read and written a quarter as often.
    """
    k, b = table.shape
    for i in range(b):
        best[i] = table[0, i] + bias[0]
        at[i] = 0
    j = 1
    while j + 4 <= k:
        t0, t1, t2, t3 = table[j], table[j + 1], table[j + 2], table[j + 3]
        b0, b1, b2, b3 = bias[j], bias[j + 1], bias[j + 2], bias[j + 3]
        for i in range(b):
            v, a = best[i], at[i]
            w0, w1, w2, w3 = t0[i] + b0, t1[i] + b1, t2[i] + b2, t3[i] + b3
            a = j if w0 > v else a
            v = w0 if w0 > v else v
            a = j + 1 if w1 > v else a
            v = w1 if w1 > v else v
            a = j + 2 if w2 > v else a
            v = w2 if w2 > v else v
            a = j + 3 if w3 > v else a
            v = w3 if w3 > v else v
            best[i], at[i] = v, a
        j += 4
    while j < k:
        t0, b0 = table[j], bias[j]
        for i in range(b):
            v, a, w = best[i], at[i], t0[i] + b0
            at[i] = j if w > v else a
            best[i] = w if w > v else v
        j += 1


def tile_labels(X, centers, blocks, bias, first):
    """See ``nearest.label_blocks``; products stay in registers, no table is written.

    Centres are padded to fours, with a bias that never wins, and features to sixteen.
    """
    few, padded = _padded(centers, bias, TILE_FEATURES)
    part, best = np.zeros((TILE_FEATURES, TILE_ROWS), X.dtype), np.empty(TILE_ROWS, X.dtype)
    at = np.empty(TILE_ROWS, f"i{X.dtype.itemsize}")
    for rows in blocks:
        _tiles(X[rows], few, padded, part, best, at, first[rows])


def _padded(centers, bias, width):
    """Centres in fours; those that are added are never the nearest."""
    k, d = centers.shape
    few = np.zeros((-(-k // 4) * 4, width), bias.dtype)
    few[:k, :d] = centers
    padded = np.full(len(few), -np.inf, bias.dtype)
    padded[:k] = bias
    return few, padded


def dot_labels(X, centers, blocks, bias, first):
    """See ``nearest.label_blocks``; rows are read where they lie.

    A matrix product packs them first, which takes longer than the products of a few centres.
    """
    few, padded = _padded(centers, bias, centers.shape[1])
    for rows in blocks:
        _dots(X[rows], few, padded, first[rows])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dots(X, few, bias, first):
    """argmax_k xᵀμ_k + bias_k of two rows and four centres at a time; of equals the first."""
    n, d = X.shape
    zero = few[0, 0] - few[0, 0]  # of their float type
    for i in range(0, n, 2):
        other = min(i + 1, n - 1)
        x, y = X[i], X[other]
        v, a, w, b = bias[0], 0, bias[0], 0
        for c in range(0, len(few), 4):
            p, q, r, s = few[c], few[c + 1], few[c + 2], few[c + 3]
            v0, v1, v2, v3, w0, w1, w2, w3 = zero, zero, zero, zero, zero, zero, zero, zero
            for j in range(d):
                v0 += x[j] * p[j]
                v1 += x[j] * q[j]
                v2 += x[j] * r[j]
                v3 += x[j] * s[j]
                w0 += y[j] * p[j]
                w1 += y[j] * q[j]
                w2 += y[j] * r[j]
                w3 += y[j] * s[j]
            h0, h1, h2, h3 = bias[c], bias[c + 1], bias[c + 2], bias[c + 3]
            v0, v1, v2, v3 = v0 + h0, v1 + h1, v2 + h2, v3 + h3
            w0, w1, w2, w3 = w0 + h0, w1 + h1, w2 + h2, w3 + h3
            if c == 0:
                v, w = v0, w0
            a, v = (c, v0) if v0 > v else (a, v)
            a, v = (c + 1, v1) if v1 > v else (a, v)
            a, v = (c + 2, v2) if v2 > v else (a, v)
            a, v = (c + 3, v3) if v3 > v else (a, v)
            b, w = (c, w0) if w0 > w else (b, w)
            b, w = (c + 1, w1) if w1 > w else (b, w)
            b, w = (c + 2, w2) if w2 > w else (b, w)
            b, w = (c + 3, w3) if w3 > w else (b, w)
        first[i], first[other] = a, b


@njit(cache=True, nogil=True, fastmath={"contract"})
def _tiles(X, few, bias, part, best, at, first):
    """argmax_k xᵀμ_k + bias_k of 256 rows and four centres at a time; of equals the first.

    All 64 numbers of four centres have names: the loop over rows is the innermost one then, and
    becomes vector instructions.
    """
    n, d = X.shape
    size = part.shape[1]
    x0, x1, x2, x3, x4, x5, x6, x7 = (
        part[0], part[1], part[2], part[3], part[4], part[5], part[6], part[7],
    )  # fmt: skip
    x8, x9, xa, xb, xc, xd, xe, xf = (
        part[8], part[9], part[10], part[11], part[12], part[13], part[14], part[15],
    )  # fmt: skip
    for start in range(0, n, size):
        b = min(size, n - start)
        for i in range(b):
            for j in range(d):
                part[j, i] = X[start + i, j]
        for i in range(b):
            best[i], at[i] = -np.inf, 0
        for c in range(0, len(few), 4):
            p, q, r, s = few[c], few[c + 1], few[c + 2], few[c + 3]
            p0, p1, p2, p3, p4, p5, p6, p7 = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
            p8, p9, pa, pb, pc, pd, pe, pf = p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]
            q0, q1, q2, q3, q4, q5, q6, q7 = q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]
            q8, q9, qa, qb, qc, qd, qe, qf = q[8], q[9], q[10], q[11], q[12], q[13], q[14], q[15]
            r0, r1, r2, r3, r4, r5, r6, r7 = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]
            r8, r9, ra, rb, rc, rd, re, rf = r[8], r[9], r[10], r[11], r[12], r[13], r[14], r[15]
            s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
            s8, s9, sa, sb, sc, sd, se, sf = s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]
            h0, h1, h2, h3 = bias[c], bias[c + 1], bias[c + 2], bias[c + 3]
            for i in range(b):
                y0, y1, y2, y3, y4, y5, y6, y7 = (
                    x0[i], x1[i], x2[i], x3[i], x4[i], x5[i], x6[i], x7[i],
                )  # fmt: skip
                y8, y9, ya, yb, yc, yd, ye, yf = (
                    x8[i], x9[i], xa[i], xb[i], xc[i], xd[i], xe[i], xf[i],
                )  # fmt: skip
                w0 = (
                    h0 + y0 * p0 + y1 * p1 + y2 * p2 + y3 * p3 + y4 * p4 + y5 * p5 + y6 * p6
                    + y7 * p7 + y8 * p8 + y9 * p9 + ya * pa + yb * pb + yc * pc + yd * pd
                    + ye * pe + yf * pf
                )  # fmt: skip
                w1 = (
                    h1 + y0 * q0 + y1 * q1 + y2 * q2 + y3 * q3 + y4 * q4 + y5 * q5 + y6 * q6
                    + y7 * q7 + y8 * q8 + y9 * q9 + ya * qa + yb * qb + yc * qc + yd * qd
                    + ye * qe + yf * qf
                )  # fmt: skip
                w2 = (
                    h2 + y0 * r0 + y1 * r1 + y2 * r2 + y3 * r3 + y4 * r4 + y5 * r5 + y6 * r6
                    + y7 * r7 + y8 * r8 + y9 * r9 + ya * ra + yb * rb + yc * rc + yd * rd
                    + ye * re + yf * rf
                )  # fmt: skip
                w3 = (
                    h3 + y0 * s0 + y1 * s1 + y2 * s2 + y3 * s3 + y4 * s4 + y5 * s5 + y6 * s6
                    + y7 * s7 + y8 * s8 + y9 * s9 + ya * sa + yb * sb + yc * sc + yd * sd
                    + ye * se + yf * sf
                )  # fmt: skip
                v, a = best[i], at[i]
                a = c if w0 > v else a
                v = w0 if w0 > v else v
                a = c + 1 if w1 > v else a
                v = w1 if w1 > v else v
                a = c + 2 if w2 > v else a
                v = w2 if w2 > v else v
                a = c + 3 if w3 > v else a
                v = w3 if w3 > v else v
                best[i], at[i] = v, a
        for i in range(b):
            first[start + i] = at[i]
