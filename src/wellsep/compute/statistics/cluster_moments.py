"""Moments of one block of rows and of the clusters in it, which merge into those of all blocks.

Everything is relative to a reference point near the data and in float64, so that neither an
offset of the data nor the number of blocks costs digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space, host
from wellsep.compute.metrics.table import Metric
from wellsep.compute.requests import Task, Want, by_counted, want
from wellsep.compute.statistics.centre_distances import (
    centre_pass,
    cluster_sums,
    describe_clusters,
    one_hot,
)
from wellsep.partitions import Partitions


class Moments(NamedTuple):
    """Mass, mean and summed squared deviations from the mean, of g groups of rows."""

    mass: np.ndarray  # (g,)
    mean: np.ndarray  # (g, d) relative to the reference; 0 where there is no mass
    square: np.ndarray | None  # (g, d) by column, (g, d, d) all products, or None

    @classmethod
    def merged(cls, parts: Sequence[Moments]) -> Moments:
        """The moments of all parts together: Σ squares + Σ mass·(mean − common mean)²."""
        masses = np.stack([p.mass for p in parts])  # (parts, g)
        means = np.stack([p.mean for p in parts])
        mass = masses.sum(axis=0)
        mean = _over((masses[:, :, None] * means).sum(axis=0), mass)
        if parts[0].square is None:
            return cls(mass, mean, None)
        square = np.sum([p.square for p in parts], axis=0)  # type: ignore[arg-type]
        gap = means - mean
        if square.ndim == 2:
            square += (masses[:, :, None] * gap**2).sum(axis=0)
        else:
            square += np.einsum("pg,pgi,pgj->gij", masses, gap, gap)
        return cls(mass, mean, square)


class RowStatistics(NamedTuple):
    """Statistics of one block of rows, with labels or without; they merge."""

    rows: Moments  # of all rows, each counting once
    weighted: Moments | None  # of all rows by weight
    clusters: Moments | None  # (ΣK,) by weight
    counts: np.ndarray | None  # (ΣK,) objects
    sums: dict[Metric, np.ndarray]  # (ΣK, e) of the rows that a metric sums over clusters
    scatter: Moments | None  # with all products, of the rows that some partitions count


class RowOptions(NamedTuple):
    """Which of the statistics are computed."""

    weighted: bool = False
    squares: bool = False  # squared deviations within clusters, by column
    sums: tuple[Metric, ...] = ()  # metrics that sum distances without pairs
    scatter: tuple[int, ...] = ()  # partitions whose counted rows are wanted


def describe_rows(
    X: np.ndarray,
    codes: np.ndarray | None,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    reference: np.ndarray,
    asked: RowOptions,
    start: int = 0,
) -> RowStatistics:
    """RowStatistics of one block; ``codes`` is (M, b) with -1 for rows that do not count."""
    wide = X.astype(np.float64) - reference
    rows = _moments(wide, np.ones((1, len(X))), squares=True)
    weighted = None
    if asked.weighted:
        given = np.ones(len(X)) if weights is None else weights
        weighted = _moments(wide, given[None], squares=True)
    if codes is None:
        return RowStatistics(rows, weighted, None, None, {}, None)
    table = one_hot(codes, n_clusters, weights)
    mass = np.asarray(table.sum(axis=0)).reshape(-1)
    mean = _over(np.asarray(table.T @ wide), mass)
    squares = _squares_within(wide, codes, weights, n_clusters, mean) if asked.squares else None
    counts = mass if weights is None else np.asarray((table > 0).sum(axis=0), dtype=np.float64)
    scatter = _scatter(wide, codes[list(asked.scatter)], weights) if asked.scatter else None
    sums = {w: _metric_sums(X, codes, weights, n_clusters, w, reference) for w in asked.sums}
    return RowStatistics(rows, weighted, Moments(mass, mean, squares), counts, sums, scatter)


def _over(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return sums / np.where(mass > 0, mass, 1)[:, None]


def _moments(wide: np.ndarray, weights: np.ndarray, *, squares: bool) -> Moments:
    """``weights`` (g, b)."""
    mass = weights.sum(axis=1)
    mean = _over(weights @ wide, mass)
    if not squares:
        return Moments(mass, mean, None)
    return Moments(
        mass, mean, np.stack([w @ (wide - m) ** 2 for w, m in zip(weights, mean, strict=True)])
    )


def _squares_within(
    wide: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    mean: np.ndarray,
) -> np.ndarray:
    offsets = np.concatenate([[0], np.cumsum(n_clusters)])
    found = np.zeros_like(mean)
    for m, row in enumerate(codes):
        keep = row >= 0
        gap = wide[keep] - mean[offsets[m] + row[keep]]
        part = one_hot(
            row[keep][None], n_clusters[m : m + 1], None if weights is None else weights[keep]
        )
        found[offsets[m] : offsets[m + 1]] = part.T @ gap**2
    return found


def _scatter(wide: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> Moments:
    """All products of the rows that each partition counts."""
    counted = codes >= 0
    given = np.ones(wide.shape[0]) if weights is None else weights
    table = counted * given  # (M, b)
    mean = _over(table @ wide, table.sum(axis=1))
    squares = []
    for w, centre in zip(table, mean, strict=True):
        gap = wide - centre
        squares.append((gap * w[:, None]).T @ gap)
    return Moments(table.sum(axis=1), mean, np.stack(squares))


def _metric_sums(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    metric: Metric,
    origin: np.ndarray,
) -> np.ndarray:
    space, summed = Space(X, 1, origin=origin), metric.sums
    classes = tuple(np.arange(k) for k in n_clusters)
    names = tuple(map(str, range(len(codes))))
    partitions = Partitions(codes, classes, names, np.ones(len(codes)))
    rows_of = partial(summed.rows, space)  # type: ignore[union-attr]
    return cluster_sums(space, rows_of, Task(space, partitions, weights))


class Spectrum(NamedTuple):
    """The matrix of sums of squares and products of the counted objects."""

    mass: float
    roots: np.ndarray  # (d,) eigenvalues, largest first; those that are rounding only are 0
    columns: np.ndarray  # (d,) diagonal, largest first


SpectrumOf = Callable[[np.ndarray, np.ndarray], Spectrum]  # rows and their weights


def provide_spectrum(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``centred``: about the mean of the counted objects, or about the origin."""
    return spectra(task, wants, partial(_host_rows, task))


def spectra(
    task: Task, wants: list[Want], rows_of: Callable[[bool], SpectrumOf]
) -> dict[Want, list[Any]]:
    """One spectrum for all partitions that count the same objects."""
    found: dict[Want, list[Any]] = {}
    weights = task.weights_or_ones()
    for w in wants:
        look = rows_of(w.get("centred", True))
        entries: list[Any] = [None] * len(task.partitions)
        for rows, group in by_counted(task.partitions):
            spectrum = look(rows, weights[rows])
            for m in group:
                entries[m] = spectrum
        found[w] = entries
    return found


def _host_rows(task: Task, centred: bool) -> SpectrumOf:
    X = task.space.on_host().X if centred else host(task.space.X).astype(np.float64)
    return lambda rows, weights: _spectrum(X[rows], weights, centred)


def _spectrum(X: np.ndarray, weights: np.ndarray, centred: bool) -> Spectrum:
    if centred:
        X = X - np.average(X, axis=0, weights=weights)
    if not (weights == 1).all():
        X = X * np.sqrt(weights)[:, None]
    columns = np.einsum("ij,ij->j", X, X)
    small = X.T @ X if X.shape[1] <= len(X) else X @ X.T
    return spectrum_of(small, columns, float(weights.sum()))


def spectrum_of(products: np.ndarray, columns: np.ndarray, mass: float) -> Spectrum:
    """``products`` is XᵀX, or XXᵀ where that is smaller: both have the same roots."""
    roots = np.zeros(len(columns))
    found = np.linalg.eigvalsh(products)[::-1][: len(roots)]
    roots[: len(found)] = np.where(found > 4e-16 * len(columns) * found[0], found, 0)
    return Spectrum(mass, roots, np.sort(columns)[::-1])


def provide_within_squares(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    """‖x − y‖² of the pairs of a cluster of mass W add up to W Σ‖x − mean‖², here in float64.

    A zero row, whose axis of its own is in none of the columns, adds 1 for each pair it is in.
    """
    space, partitions = task.space, task.partitions
    X, zero = space.prepared(metric, wide=True)
    rows = task._replace(space=space.with_rows(X), centers=None)
    clusters, within = describe_clusters(rows), want("within")
    spread = centre_pass(rows, clusters, [within])[within]
    sums = []
    for codes, c, s in zip(partitions.codes, clusters, spread, strict=True):
        total = float(c.mass @ s)
        if zero is not None:
            at = np.flatnonzero(host(zero) & (codes >= 0))
            weight = task.weights_or_ones()[at]
            total += float(weight @ c.mass[codes[at]] - weight @ weight)
        sums.append(float(metric.finish(total, np)))  # type: ignore[misc]
    return {w: sums for w in wants}


def square_moments(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    n_clusters: np.ndarray,
    metric: Metric,
    origin: np.ndarray,
    start: int = 0,
) -> Moments:
    """Moments of the prepared rows in every cluster, from one block of rows; they merge.

    Two columns more mark zero rows, by 1 and by their weight.
    """
    rows, zero = Space(X, 1, origin=origin).prepared(metric, wide=True)
    mark = np.zeros(len(X)) if zero is None else zero.astype(np.float64)
    marks = np.column_stack([mark, mark if weights is None else mark * weights])
    table = np.hstack([rows, marks])
    asked = RowOptions(squares=True)
    statistics = describe_rows(table, codes, weights, n_clusters, np.zeros(table.shape[1]), asked)
    return statistics.clusters  # type: ignore[return-value]


def within_squares(moments: Moments, offsets: np.ndarray, metric: Metric) -> list[float]:
    """One sum per partition; ``offsets`` are those of their clusters side by side."""
    mass, square = moments.mass, moments.square[:, :-2]  # type: ignore[index]
    zero, twice = (mass[:, None] * moments.mean[:, -2:]).T  # Σ w and Σ w² of zero rows
    each = mass * square.sum(axis=1) + mass * zero - twice
    return [float(metric.finish(each[a:b].sum(), np)) for a, b in pairwise(offsets)]  # type: ignore[misc]
