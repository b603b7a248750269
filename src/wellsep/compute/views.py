"""Rows on the host in float64, ready for exact work: for what extremes, counts and trees decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellsep.compute.engines import Space, host
from wellsep.partitions import Partitions


class Rows(NamedTuple):
    """n rows with what one matrix product needs to give squared distances.

    ``left[i] · right[j]`` is ‖x_i‖² + ‖x_j‖² − 2 x_i·x_j.
    """

    X: np.ndarray  # (n, d) float64
    left: np.ndarray  # (n, d + 2): −2x, ‖x‖², 1
    right: np.ndarray  # (n, d + 2): x, 1, ‖x‖²

    def take(self, rows: np.ndarray | slice) -> Rows:
        return Rows(self.X[rows], self.left[rows], self.right[rows])

    def slack(self, other: Rows) -> float:
        """How far a squared distance from the product may lie off."""
        reach = float(self.right[:, -1].max(initial=0)) + float(other.right[:, -1].max(initial=0))
        return 2 * (self.X.shape[1] + 4) * np.finfo(np.float64).eps * reach


def rows_of(X: np.ndarray) -> Rows:
    square = np.einsum("ij,ij->i", X, X)[:, None]
    ones = np.ones_like(square)
    return Rows(X, np.hstack([-2 * X, square, ones]), np.hstack([X, ones, square]))


def wide(space: Space, metric: str = "euclidean") -> np.ndarray:
    """(n, d) float64 on the host: centred rows, or for "cosine" rows of length one.

    Squared Euclidean distances between the latter are twice the cosine distances; a zero row is
    given a direction of its own, which puts it at cosine distance 1 from all others.
    """
    key = ("wide", metric)
    if key not in space._views:
        if space.kind == "sparse":
            raise TypeError(
                "X must be dense where single distances decide, got a sparse matrix; "
                "pass X.toarray() if it fits in memory."
            )
        X = host(space.X).astype(np.float64, copy=False)
        space._views[key] = _directions(X) if metric == "cosine" else X - space.shift
    return space._views[key]


def _directions(X: np.ndarray) -> np.ndarray:
    largest = np.abs(X).max(axis=1, keepdims=True)
    zero = largest[:, 0] == 0
    scaled = X / np.where(largest > 0, largest, 1)  # squares of tiny rows would vanish
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    unit = scaled / np.where(lengths > 0, lengths, 1)
    return np.hstack([unit, zero[:, None].astype(np.float64)]) if zero.any() else unit


def by_counted(partitions: Partitions) -> list[tuple[np.ndarray, list[int]]]:
    """Partitions that count the same objects: (their rows, the partitions) for each such set."""
    groups: dict[bytes, list[int]] = {}
    for m, codes in enumerate(partitions.codes):
        groups.setdefault(np.packbits(codes >= 0).tobytes(), []).append(m)
    return [(np.flatnonzero(partitions.codes[ms[0]] >= 0), ms) for ms in groups.values()]
