"""Random half-samples of the objects, and the values of one index on each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._checks import UndefinedIndex, check_data
from ..compute.clusters import Clusters
from ..compute.engines import open_space
from ..compute.half_moments import half_moments
from ..compute.half_sums import Halves, half_widths, sums_known
from ..compute.statistics import Averaged, Task, Want, gather
from ..indices import INDICES, score_partitions
from ..partitions import Partitions


def draw_halves(n: int, n_draws: int, n_groups: int, rng: np.random.Generator) -> Halves:
    """Random groups of equal size; draws come as halves and their complements."""
    group = rng.permutation(np.arange(n) % n_groups)
    chosen = np.zeros((n_draws, n_groups), dtype=bool)
    for draw in range(0, n_draws, 2):
        chosen[draw, rng.permutation(n_groups)[: n_groups // 2]] = True
        if draw + 1 < n_draws:
            chosen[draw + 1] = ~chosen[draw]
    return Halves(group, chosen)


def full_sample_want(index: str, params: dict[str, Any], halves: Halves) -> Want | None:
    """The statistic of the full sample that the values on half-samples begin with, if any."""
    widths = _widths(index, params)
    return widths if widths is not None and len(halves.seen) < len(halves.group) else None


def _widths(index: str, params: dict[str, Any]) -> Want | None:
    """The widths that an index averages, where they follow from sums kept apart by group."""
    wants = INDICES[index].wants(**params)
    if set(wants) == {"widths", "objects"} and sums_known(wants["widths"]):
        return wants["widths"]
    return None


def score_halves(
    X: Any,
    partitions: Partitions,
    index: str,
    params: dict[str, Any],
    halves: Halves,
    *,
    full: Sequence[np.ndarray | Averaged] | None = None,
    n_jobs: int | None = None,
    device: Any = None,
) -> np.ndarray:
    """(B, M) values of one index with its own sign; NaN where undefined on a half-sample.

    ``full`` is what :func:`full_sample_want` asks for, computed here if it is not given.
    """
    widths = _widths(index, params)
    wanted = {w.name for w in INDICES[index].wants(**params).values()}
    if widths is None and not wanted <= {"clusters", "within", "radii"}:
        objects = map(halves.objects, range(len(halves.chosen)))
        return np.stack([
            score_partitions(
                X[o], partitions.take(o), ((index, params),), n_jobs=n_jobs, device=device
            ).values[:, 0]
            for o in objects
        ])  # fmt: skip
    space = open_space(check_data(X), device=device, n_jobs=n_jobs)
    task = Task(space, partitions, None, groups=halves.group)
    if widths is None:
        return _centroid_values(task, index, params, halves)
    if full is None and full_sample_want(index, params, halves) is not None:
        full = gather(task, [widths])[widths]
    means, mass, _ = half_widths(task, widths, halves, full)
    values = np.full((len(mass), len(partitions)), np.nan)
    for m, (a, b) in enumerate(pairwise(partitions.offsets)):
        usable = _defined(mass[:, a:b])
        found = Averaged(means[usable, a:b], mass[usable, a:b])
        values[usable, m] = INDICES[index].formula(widths=found, objects=None, **params)
    return values


def _defined(counts: np.ndarray) -> np.ndarray:
    """(B,) whether a half-sample has at least two clusters, and one of several objects."""
    present = (counts > 0).sum(axis=1)
    return (present >= 2) & (present < counts.sum(axis=1))


def _centroid_values(task: Task, index: str, params: dict[str, Any], halves: Halves) -> np.ndarray:
    """Indices of cluster means and scatter around them, per half-sample."""
    wants = INDICES[index].wants(**params)
    power = next((w.get("q", 1) for w in wants.values() if w.name == "radii"), None)
    counts, sums, within, radii = half_moments(task, halves, power)
    values = np.full((len(counts), len(task.partitions)), np.nan)
    for m, (a, b) in enumerate(pairwise(task.partitions.offsets)):
        for draw in np.flatnonzero(_defined(counts[:, a:b])):
            keep = a + np.flatnonzero(counts[draw, a:b])
            mass, total = counts[draw, keep], sums[draw, keep]
            mean = total.sum(axis=0) / mass.sum()
            known: dict[str, Any] = {
                "clusters": Clusters(mass, mass, total / mass[:, None], mean, task.space.shift),
                "within": within[draw, keep],
                "radii": None if radii is None else radii[draw, keep],
            }
            statistics = {name: known[w.name] for name, w in wants.items()}
            with contextlib.suppress(UndefinedIndex):
                values[draw, m] = INDICES[index].formula(**statistics, **params)
    return values
