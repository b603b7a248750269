"""Compiled sums over members and totals of half-samples."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def member_sums(indptr, indices, weight, table):
    """(rows of a CSR matrix, b) = CSR @ table, bit for bit what SciPy gives.

    Four rows of the table are added in one sweep over a row of the result, which is then read and
    written a quarter as often; each entry still adds its members one after the other.
    """
    width = table.shape[1]
    out = np.zeros((len(indptr) - 1, width), table.dtype)
    for k in range(len(indptr) - 1):
        row = out[k]
        at, end = indptr[k], indptr[k + 1]
        while at + 4 <= end:
            a, b = table[indices[at]], table[indices[at + 1]]
            c, d = table[indices[at + 2]], table[indices[at + 3]]
            v, w, x, y = weight[at], weight[at + 1], weight[at + 2], weight[at + 3]
            for j in range(width):
                row[j] = (((row[j] + v * a[j]) + w * b[j]) + x * c[j]) + y * d[j]
            at += 4
        while at < end:
            a, v = table[indices[at]], weight[at]
            for j in range(width):
                row[j] += v * a[j]
            at += 1
    return out


FOUR = 4  # groups whose 16 possible sums are made once for all draws


@njit(cache=True, nogil=True, error_model="numpy")
def add_widths(sums, start, stop, chosen, codes, counts, offsets, singleton):
    """(D, ΣK) totals of (b − a)/max(a, b) over objects start to stop; see half_samples.add_widths.

    A draw's sums are one row of each table of four groups, added up. The sum of the own cluster is
    set aside and its place made infinite, so that the search for the nearest asks nothing.
    """
    n_groups, b = sums.shape[0], stop - start
    n_fours = max(3, (n_groups + FOUR - 1) // FOUR)
    masks = np.zeros((len(chosen), n_fours), np.int64)
    for d in range(len(chosen)):
        for g in range(n_groups):
            if chosen[d, g]:
                masks[d, g // FOUR] |= 1 << (g % FOUR)
    out = np.zeros(counts.shape)
    kind = sums.dtype
    other, rest, share = np.empty(b, kind), np.empty(b, kind), np.empty(1, kind)
    most = (np.diff(offsets).max() + 1) * b
    tables, total = np.zeros((n_fours, 1 << FOUR, most), kind), np.empty(most, kind)
    for m in range(len(codes)):
        first, n_clusters = offsets[m], offsets[m + 1] - offsets[m]
        width = (n_clusters + 1) * b  # the last b: distances to the own cluster
        for g in range(n_groups):
            row = tables[g // FOUR, 1 << (g % FOUR)]
            for k in range(n_clusters):
                row[k * b : (k + 1) * b] = sums[g, first + k, start:stop]
            for i in range(b):
                at = max(codes[m, start + i], 0) * b + i
                row[n_clusters * b + i] = row[at]
                row[at] = np.inf
        for four in range(n_fours):
            for mask in range(1, 1 << FOUR):
                less = mask & (mask - 1)
                if less:
                    row, p, q = tables[four, mask], tables[four, less], tables[four, mask - less]
                    for i in range(width):
                        row[i] = p[i] + q[i]
        for d in range(len(chosen)):
            p, q = tables[0, masks[d, 0]], tables[1, masks[d, 1]]
            for i in range(width):
                total[i] = p[i] + q[i]
            for four in range(2, n_fours - 1):
                p = tables[four, masks[d, four]]
                for i in range(width):
                    total[i] += p[i]
            last = tables[n_fours - 1, masks[d, n_fours - 1]]
            other[:] = np.inf
            for k in range(n_clusters):
                if counts[d, first + k] == 0:
                    continue
                share[0] = 1.0 / counts[d, first + k]
                scale = share[0]
                p, q = total[k * b : (k + 1) * b], last[k * b : (k + 1) * b]
                for i in range(b):
                    mean = (p[i] + q[i]) * scale
                    other[i] = mean if mean < other[i] else other[i]
            for i in range(b):
                rest[i] = max(counts[d, first + max(codes[m, start + i], 0)] - 1, 1)
            p, q = total[n_clusters * b : width], last[n_clusters * b : width]
            for i in range(b):
                a = (p[i] + q[i]) / rest[i]
                top = a if a > other[i] else other[i]
                other[i] = (other[i] - a) / top
                if top <= 0 or top == np.inf:
                    other[i] = 0
            for i in range(b):
                k = codes[m, start + i]
                if k >= 0:
                    alone = counts[d, first + k] <= 1
                    out[d, first + k] += singleton if alone else other[i]
    return out
