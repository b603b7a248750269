"""Variances of clusters by column, and how many objects lie near their centres and between them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep.compute.engine.threads import in_threads
from wellsep.compute.metrics.table import Rows, numpy_squares, pair_squares, rows_of
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import one_hot


class Spread(NamedTuple):
    """Means and variances by column; divisor: the mass."""

    centers: np.ndarray  # (K, d) relative to ``Space.shift``
    variances: np.ndarray  # (K, d)
    total: np.ndarray  # (d,) variance of all counted objects


class Balls(NamedTuple):
    """Mass of a pair of clusters within the radius of three points."""

    midpoint: np.ndarray  # (K, K) around the midpoint of the two centres
    denser: np.ndarray  # (K, K) around that one of the two centres that has more


def provide_density(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    X, n_partitions = task.space.on_host().X, len(task.partitions)
    found: dict[Want, list[Any]] = {w: [None] * n_partitions for w in wants}

    def visit(m: int) -> None:
        members = _Members(task, X, m)
        spread = _spread(members)
        for w in wants:
            found[w][m] = spread if w.name == "spread" else _balls(members, spread, w)

    in_threads(task.space.host_jobs, visit, iter([[(m,) for m in range(n_partitions)]]))
    warn_of_empty(found)
    return found


class _Members:
    """The counted rows of one partition, in blocks."""

    def __init__(self, task: Task, X: np.ndarray, m: int) -> None:
        self.X, self.space = X, task.space
        self.codes = task.partitions.codes[m]
        self.weights = task.weights_or_ones()
        self.k = len(task.partitions.classes[m])

    def __iter__(self) -> Any:
        """(rows, codes, (K, b) memberships) of each block."""
        for rows in self.space.row_blocks(3 * self.space.d + 4 * self.k):
            codes = self.codes[rows]
            keep = codes >= 0
            every = bool(keep.all())
            codes = codes if every else codes[keep]
            weights = self.weights[rows] if every else self.weights[rows][keep]
            table = one_hot(codes[None], np.array([self.k]), weights)
            yield (self.X[rows] if every else self.X[rows][keep]), codes, sp.csr_array(table.T)


def _spread(members: _Members) -> Spread:
    d = members.X.shape[1]
    mass, sums = np.zeros(members.k), np.zeros((members.k, d))
    for X, _, table in members:
        mass += table.sum(axis=1)
        sums += table @ X
    centers = sums / mass[:, None]
    mean = sums.sum(axis=0) / mass.sum()
    squares = np.zeros((members.k, d))
    for X, codes, table in members:
        gap = X - centers[codes]
        squares += table @ (gap * gap)
    between = (mass[:, None] * (centers - mean) ** 2).sum(axis=0)
    total = (squares.sum(axis=0) + between) / mass.sum()
    return Spread(centers, squares / mass[:, None], total)


def radius(spread: Spread) -> float:
    """(1/K)·√Σ‖σ_k‖ with σ_k the variances of cluster k (equation 25 of the ACE paper)."""
    return float(np.sqrt(np.linalg.norm(spread.variances, axis=1).sum()) / len(spread.variances))


def _balls(members: _Members, spread: Spread, w: Want) -> Balls:
    return balls_from(*ball_counts(members, spread, w), w)


def ball_counts(members: _Members, spread: Spread, w: Want) -> tuple[np.ndarray, np.ndarray]:
    """(K, K) mass of each cluster near each centre, and near each midpoint; both add up."""
    centers, k = spread.centers, members.k
    limit = radius(spread) ** 2
    inside = np.less if w.get("strict") else np.less_equal
    places, every = rows_of(centers), slice(None)
    apart = numpy_squares(places, places)
    near, between = np.zeros((k, k)), np.zeros((k, k))  # [cluster of the object, centre]
    for X, codes, table in members:
        squares = numpy_squares(rows_of(X), places)
        own = pair_squares(Rows(X), every, places, codes)
        squares[np.arange(len(codes)), codes] = own
        near += table @ inside(squares, limit).astype(np.float64)
        # ‖x − ½(v + v')‖² = ½‖x − v‖² + ½‖x − v'‖² − ¼‖v − v'‖²
        squares += own[:, None] - apart[codes] / 2
        between += table @ inside(squares, 2 * limit).astype(np.float64)
    return near, between


def balls_from(near: np.ndarray, between: np.ndarray, w: Want) -> Balls:
    around = np.diagonal(near)[:, None] + (near.T if w.get("density") == "union" else 0.0)
    return Balls(between + between.T, np.maximum(around, around.T) + np.zeros(near.shape))


def warn_of_empty(found: dict[Want, list[Any]]) -> None:
    """Warn of clusters without an object near their centres, once for each kind of balls."""
    for w, balls in found.items():
        if w.name == "balls":
            _warn_of_empty(balls)


def _warn_of_empty(balls: list[Balls]) -> None:
    empty = [int((b.denser[np.triu_indices(len(b.denser), 1)] == 0).sum()) for b in balls]
    if not any(empty):
        return
    pairs = sum(len(b.denser) * (len(b.denser) - 1) // 2 for b in balls)
    where = f" in {sum(e > 0 for e in empty)} of {len(balls)} partitions" if len(balls) > 1 else ""
    warnings.warn(
        f"{sum(empty)} of {pairs} pairs of clusters{where} have no object within the counting "
        "radius of either centre; their density counts as 0 (S_Dbw is then little more than the "
        "scatter, which is the rule in more than a few dimensions).",
        UserWarning,
        stacklevel=2,
    )
