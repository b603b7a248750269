"""Compiled sums over members; imported by twins.py alone, because it imports numba."""

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
