"""Means and scatter of clusters on many half-samples, from moments kept apart by group."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.rows import host, one_hot
from wellsep.compute.engine.threads import in_threads
from wellsep.compute.metrics.table import CLOSE
from wellsep.compute.requests import Task
from wellsep.compute.statistics.half_samples import AT_ONCE, Halves, sums_by_group


class HalfMoments(NamedTuple):
    """Every cluster of every partition in every half-sample; centres about ``Space.shift``."""

    counts: np.ndarray  # (B, ΣK)
    sums: np.ndarray  # (B, ΣK, d)
    within: np.ndarray  # (B, ΣK) squared distances to the mean, summed
    radii: np.ndarray | None  # (B, ΣK) mean of ‖x − v‖^q


def half_moments(task: Task, halves: Halves, power: float | None) -> HalfMoments:
    """Moments of the half-samples; radii with this power, if one is given."""
    space, partitions = task.space, task.partitions
    chosen = halves.chosen.astype(float)
    order = np.argsort(halves.group, kind="stable")
    X = host(space.about_mean(slice(None)))[order]
    square = np.einsum("ij,ij->i", X, X)
    codes = partitions.codes[:, order]
    edges = np.searchsorted(halves.group[order], np.arange(chosen.shape[1] + 1))
    pieces = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    members = [one_hot(codes[:, rows], partitions.n_clusters, None) for rows in pieces]
    sums = np.stack([t.T @ X[r] for t, r in zip(members, pieces, strict=True)])  # (G, ΣK, d)
    sizes = sums_by_group(partitions, halves.group, chosen.shape[1])
    own = partitions.offsets[:-1, None] + np.maximum(codes, 0)  # (M, n)
    # Scatter about the centres of all objects: about the mean of all, squares of a cluster far
    # away would cancel.
    centers = sums.sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)[:, None]  # (ΣK, d)
    squares = np.zeros(sizes.shape)
    for row, at in zip(codes, own, strict=True):
        kept = np.flatnonzero(row >= 0)
        gap = X[kept] - centers[at[kept]]
        place = (halves.group[order[kept]], at[kept])
        np.add.at(squares, place, np.einsum("ij,ij->i", gap, gap))
    counts = chosen @ sizes
    total = np.tensordot(chosen, sums, axes=1)  # (B, ΣK, d)
    safe = np.maximum(counts, 1)
    moved = [
        ((t - n[:, None] * centers) ** 2).sum(axis=1) for t, n in zip(total, counts, strict=True)
    ]
    within = np.maximum(chosen @ squares - np.stack(moved) / safe, 0)
    if power is None:
        return HalfMoments(counts, total, within, None)

    lengths = np.einsum("bkd,bkd->bk", total, total) / safe**2
    found: list[Any] = [None] * len(pieces)

    def work(g: int) -> None:
        """‖x − v‖^q summed over the members of a group: x·v is a sum over groups, as v is."""
        draws = np.flatnonzero(halves.chosen[:, g])
        found[g] = (draws, np.zeros((len(draws), counts.shape[1])))
        step = max(8, AT_ONCE // max(1, len(draws) * len(partitions)))
        for start in range(pieces[g].start, pieces[g].stop, step):
            rows = slice(start, min(start + step, pieces[g].stop))
            mine, at = own[:, rows], np.arange(rows.stop - rows.start)
            products = np.stack([(table @ X[rows].T)[mine, at] for table in sums])  # (G, M, b)
            dot = np.tensordot(chosen[draws], products, axes=1)  # (draws, M, b)
            gap = square[rows] - 2 * dot / safe[draws][:, mine] + lengths[draws][:, mine]
            counted = codes[:, rows] >= 0
            close = counted & (gap < CLOSE[0] * (square[rows] + lengths[draws][:, mine]))
            for i in np.array_split(np.argwhere(close), 1 + close.sum() * X.shape[1] // AT_ONCE):
                draw, k, row = draws[i[:, 0]], mine[i[:, 1], i[:, 2]], rows.start + i[:, 2]
                difference = X[row] - total[draw, k] / counts[draw, k][:, None]
                gap[tuple(i.T)] = np.einsum("ij,ij->i", difference, difference)
            away = np.where(counted, np.maximum(gap, 0) ** (power / 2), 0.0)
            table = one_hot(codes[:, rows], partitions.n_clusters, None).toarray()
            for m, (a, b) in enumerate(pairwise(partitions.offsets)):
                found[g][1][:, a:b] += away[:, m] @ table[:, a:b]

    in_threads(space.n_jobs, work, iter([[(g,) for g in range(len(pieces))]]))
    radii = np.zeros(counts.shape)
    for draws, part in found:
        radii[draws] += part
    # one object lies on its own mean
    return HalfMoments(counts, total, within, np.where(counts > 1, radii / safe, 0.0))
