"""The nearest of many centres in one compiled sweep over their products (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit


def swept_labels(X, centers, blocks, bias, first):
    """See ``nearest_centres.label_blocks``; one pass over a block of products finds the largest."""
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
