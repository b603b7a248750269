"""Which clusters objects belong to, as matrices: all partitions side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def one_hot(codes: np.ndarray, n_clusters: np.ndarray, weights: np.ndarray | None) -> sp.csr_array:
    """(n, ΣK) memberships of all partitions side by side; ``codes`` (M, n)."""
    n = codes.shape[1]
    offsets = np.concatenate([[0], np.cumsum(n_clusters)])
    columns = (codes + offsets[:-1, None]).T  # (n, M)
    counted = (codes >= 0).T
    values = np.ones(n) if weights is None else weights
    data = np.broadcast_to(values[:, None], counted.shape)[counted]
    pointer = np.concatenate([[0], np.cumsum(counted.sum(axis=1))])
    return sp.csr_array((data, columns[counted], pointer), shape=(n, int(offsets[-1])))


def sparse_members(
    codes: np.ndarray, n_clusters: np.ndarray, weights: np.ndarray | None, dtype: Any
) -> sp.csr_array:
    """(ΣK, n) the same with a row per cluster; members in ascending order."""
    if weights is not None:
        return sp.csr_array(one_hot(codes, n_clusters, weights).T).astype(dtype)
    # Without the detour over objects × clusters.
    b, offsets = codes.shape[1], np.concatenate([[0], np.cumsum(n_clusters)])
    small = codes.astype(np.int16) if offsets.max() < 1 << 15 else codes  # sorts by digits
    order = np.argsort(small, axis=1, kind="stable").astype(np.int32)
    places = codes + offsets[:-1, None]
    if codes.min(initial=0) < 0:  # those that are not counted come first
        order = order[np.arange(b) >= (codes < 0).sum(axis=1)[:, None]]
        places = places[codes >= 0]
    sizes = np.bincount(places.ravel(), minlength=int(offsets[-1]))
    pointer = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    entries = (np.ones(order.size, dtype), order.ravel(), pointer)
    return sp.csr_array(entries, shape=(int(offsets[-1]), b))
