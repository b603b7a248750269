"""Sizes, means and scatter of clusters, of noise and of all rows, block by block; they merge.

Everything is relative to a point near the data and in float64, so that neither an offset of the
data nor the number of blocks costs digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.rows import host
from wellsep.compute.metrics.table import Metric
from wellsep.compute.requests import Block, Pass, Steps, Task, Want, by_counted
from wellsep.compute.statistics.centre_distances import View


class Moments(NamedTuple):
    """Mass, mean and summed squared deviations from the mean, of g groups of rows."""

    mass: np.ndarray  # (g,)
    mean: np.ndarray  # (g, d) relative to the reference; 0 where there is no mass
    square: np.ndarray | None  # (g,) all columns, (g, d) by column, (g, d, d) products, or None

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
        gap, terms = means - mean, ("pg,pgi,pgi->g", "pg,pgi,pgi->gi", "pg,pgi,pgj->gij")
        square += np.einsum(terms[square.ndim - 1], masses, gap, gap)
        return cls(mass, mean, square)

    @classmethod
    def of_rows(cls, X: np.ndarray, weights: np.ndarray | None) -> Moments:
        """Of all rows of a block together, by column."""
        mass = float(len(X)) if weights is None else float(weights.sum())
        sums = X.sum(axis=0) if weights is None else weights @ X
        mean = sums / mass if mass > 0 else np.zeros_like(sums)
        square = (X - mean) ** 2
        total = square.sum(axis=0) if weights is None else weights @ square
        return cls(np.array([mass]), mean[None], total[None])


def _over(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return sums / np.where(mass > 0, mass, 1)[:, None]


class Masses(NamedTuple):
    """How many objects clusters have and what these weigh; those of blocks add up."""

    mass: np.ndarray  # (ΣK,) summed weights
    counts: np.ndarray  # (ΣK,) objects
    noise: np.ndarray  # (M,) weight of the objects that are not counted


def masses(block: Block) -> Masses:
    """Of one block."""
    mass, count, noise = [], [], []
    for codes, k in zip(block.codes, block.n_clusters, strict=True):
        counted = codes >= 0
        every = bool(counted.all())
        kept = codes if every else codes[counted]
        count.append(np.bincount(kept, minlength=k).astype(np.float64))
        noise.append(0.0 if every else float(block.weights_or_ones[~counted].sum()))
        if block.weights is not None:
            mass.append(np.bincount(kept, block.weights[counted], k))
    return Masses(np.concatenate(mass or count), np.concatenate(count), np.array(noise))


class ClusterMoments(NamedTuple):
    """Sizes of clusters, sums of their rows and, where asked for, their scatter; they merge."""

    size: Masses
    sums: np.ndarray  # (ΣK, d) about the reference, by weight
    scatter: Moments | None


def cluster_moments(block: Block, squares: str | None = None) -> ClusterMoments:
    """Of one block; squared deviations summed over the "columns" or "by column", or none."""
    size, sums = masses(block), block.cluster_sums(block.X)
    if squares is None:
        return ClusterMoments(size, sums, None)
    mean = _over(sums, size.mass)
    total = np.empty(sums.shape[: 1 if squares == "columns" else 2])
    for which, clusters in block.space.partition_batches(block.n_clusters):
        centers = mean[clusters].reshape(len(which), -1, mean.shape[1])
        view = View(block, block.code_index[which], centers)
        square = view.own_square if squares == "columns" else view.gap**2
        total[clusters] = host(view.sums(square)).reshape(-1, *total.shape[1:])
    return ClusterMoments(size, sums, Moments(size.mass, mean, total))


def square_moments(block: Block, metric: Metric) -> tuple[Any, np.ndarray, np.ndarray]:
    """Moments of the rows that a metric prepares, and Σ w and Σ w² of zero rows by cluster."""
    X, zero = block.space.prepared(metric, wide=True)
    block = block.with_rows(X[block.rows, :])
    size, _, moments = cluster_moments(block, "columns")
    alone = np.zeros((2, len(size.mass)))
    if zero is not None:
        weight = np.where(host(zero)[block.rows], block.weights_or_ones, 0.0)
        marks = block.space.asarray(np.stack([weight, weight**2], axis=1))
        alone = host(block.space.cluster_sums(marks, block.code_index, block.n_clusters)).T
    return moments, alone[0], alone[1]


def provide_within_squares(task: Any, metric: Metric, wants: list[Want]) -> Steps:
    """‖x − y‖² of the pairs of a cluster of mass W add up to W Σ‖x − mean‖², here in float64.

    A zero row, whose axis of its own is in none of the columns, adds 1 for each pair it is in.
    """
    (mass, _, square), zero, twice = yield Pass(square_moments, (metric,))
    each = mass * square + mass * zero - twice
    edges = pairwise(task.partitions.offsets)
    sums = [float(metric.finish(each[a:b].sum(), np)) for a, b in edges]  # type: ignore[misc]
    return {w: sums for w in wants}


class Spectrum(NamedTuple):
    """The matrix of sums of squares and products of the counted objects."""

    mass: float
    roots: np.ndarray  # (d,) eigenvalues, largest first; those that are rounding only are 0
    columns: np.ndarray  # (d,) diagonal, largest first


def provide_spectrum(task: Any, wants: list[Want]) -> Steps:
    """Option ``centred``: about the mean of the counted objects, or about the origin.

    One spectrum serves all partitions that count the same objects.
    """
    chosen, number = task.alike()
    found: dict[Want, list[Any]] = {}
    wide = task.either(task.space.n < task.space.d, False)
    scatter = None if wide else (yield Pass(products_of_counted, (chosen,)))
    for w in wants:
        centred = w.get("centred", True)
        spectra = (
            _of_few_rows(task, centred) if wide else _spectra(scatter, task.space.shift, centred)
        )
        found[w] = [spectra[g] for g in number]
    return found


def products_of_counted(block: Block, chosen: list[int]) -> Moments:
    """All products of the rows that some partitions count."""
    X, space, parts = block.X, block.space, []
    space.refuse_sparse()
    for codes in block.codes[chosen]:
        weight = space.asarray(np.where(codes >= 0, block.weights_or_ones, 0.0))
        mass = float(weight.sum())
        mean = weight @ X / (mass if mass > 0 else 1.0)
        gap = X - mean
        parts.append((mass, host(mean), host((gap * weight[:, None]).T @ gap)))
    return Moments(*(np.stack(column) for column in zip(*parts, strict=True)))


def _spectra(scatter: Any, shift: np.ndarray, centred: bool) -> list[Spectrum]:
    found = []
    for mass, mean, products in zip(*scatter, strict=True):
        if not centred:
            products = products + mass * np.outer(mean + shift, mean + shift)
        found.append(spectrum_of(products, np.diagonal(products).copy(), float(mass)))
    return found


def _of_few_rows(task: Task, centred: bool) -> list[Spectrum]:
    """Fewer rows than columns: their products with each other have the same roots."""
    X = task.space.on_host().X if centred else host(task.space.X).astype(np.float64)
    found = []
    for rows, _ in by_counted(task):
        some, weights = X[rows], task.weights_or_ones()[rows]
        if centred:
            some = some - np.average(some, axis=0, weights=weights)
        some = some * np.sqrt(weights)[:, None]
        columns = np.einsum("ij,ij->j", some, some)
        found.append(spectrum_of(some @ some.T, columns, float(weights.sum())))
    return found


def spectrum_of(products: np.ndarray, columns: np.ndarray, mass: float) -> Spectrum:
    """``products`` is XᵀX, or XXᵀ where that is smaller: both have the same roots."""
    roots = np.zeros(len(columns))
    found = np.linalg.eigvalsh(products)[::-1][: len(roots)]
    roots[: len(found)] = np.where(found > 4e-16 * len(columns) * found[0], found, 0)
    return Spectrum(mass, roots, np.sort(columns)[::-1])


class Noise(NamedTuple):
    """Noise beside the counted objects, by weight; those of parts of the objects add up.

    Of many samples: one entry for each of them.
    """

    mass: Any
    counted: Any
    scatter: Any = None  # Σ w‖x − mean of the counted objects‖² over the noise

    @property
    def coverage(self) -> Any:
        """Share of the weight that is counted."""
        return self.counted / (self.counted + self.mass)


def noise_of(size: Masses, offsets: np.ndarray, scatter: list[float] | None = None) -> list[Noise]:
    """Noise of every partition, with its scatter if that is known."""
    counted = [float(size.mass[a:b].sum()) for a, b in pairwise(offsets)]
    scattered = [None] * len(counted) if scatter is None else scatter
    return [Noise(*one) for one in zip(size.noise.tolist(), counted, scattered, strict=True)]
