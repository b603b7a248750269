"""Eigenvalues and column variances of a whole space, once for all that count the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engines import host
from wellsep.compute.statistics import Task, Want, by_counted, provides


class Spectrum(NamedTuple):
    """The matrix of sums of squares and products of the counted objects."""

    mass: float
    roots: np.ndarray  # (d,) eigenvalues, largest first; those that are rounding only are 0
    columns: np.ndarray  # (d,) diagonal, largest first


@provides("spectrum")
def provide_spectrum(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``centred``: about the mean of the counted objects, or about the origin."""
    found: dict[Want, list[Any]] = {}
    weights = task.weights_or_ones()
    for w in wants:
        look = _looker(task, w.get("centred", True))
        entries: list[Any] = [None] * len(task.partitions)
        for rows, group in by_counted(task.partitions):
            spectrum = look(rows, weights[rows])
            for m in group:
                entries[m] = spectrum
        found[w] = entries
    return found


def _looker(task: Task, centred: bool) -> Callable[[np.ndarray, np.ndarray], Spectrum]:
    """(rows, their weights) → their spectrum."""
    if task.space.on_card:
        from wellsep.compute.tensor_clusters import products

        return lambda rows, weights: spectrum_of(
            *products(task, rows, weights, centred), float(weights.sum())
        )
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
