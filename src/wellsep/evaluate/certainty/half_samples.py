"""The values of one index on every half-sample of the objects."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, to_numpy
from wellsep.compute.data.opening import open_space
from wellsep.compute.metrics.table import find
from wellsep.compute.plan import gather
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.cluster_moments import Noise
from wellsep.compute.statistics.half_samples import Halves
from wellsep.compute.statistics.silhouette_widths import WidthTotals
from wellsep.evaluate.certainty.draws import Draws, widths_before, widths_of
from wellsep.evaluate.options import Computing
from wellsep.indices import INDICES, PartitionScores, score_partitions
from wellsep.indices.index_names import ParsedIndex
from wellsep.indices.scoring import as_distances, evaluate_and_keep, open_data
from wellsep.partitions import Partitions
from wellsep.spaces.dip_half_samples import half_dips


class Resampled(NamedTuple):
    """One space on all half-samples."""

    values: np.ndarray  # (draws, M)
    pvalues: np.ndarray | None  # (draws,) of the dip tests


def resample(
    X: Any, computing: Computing, partitions: Partitions, draws: Draws, space: str
) -> Resampled:
    """The half-samples of one space by themselves, with a pass of their own."""
    X = as_distances(X, [(INDICES[draws.index], dict(draws.params))])
    by = {"n_jobs": computing.n_jobs, "device": computing.device}
    halves = draws.halves_of(space)
    values = score_halves(X, partitions, draws.index, draws.params, halves, **by)
    return Resampled(values, _dips(X, draws, space, computing))


def score_and_resample(
    X: Any,
    computing: Computing,
    partitions: Partitions,
    asked: list[ParsedIndex],
    draws: Draws,
    space: str,
) -> tuple[PartitionScores, Resampled]:
    """Scores of one space, and its half-samples from what the same pass found."""
    task = _open(X, asked, partitions, draws.halves, computing)
    params = INDICES[draws.index].in_space(draws.params, task.space.own_metric)
    keep = widths_before(draws.index, params, draws.halves)
    scores, full = evaluate_and_keep(task, asked, keep)
    values = _half_values(task, draws.index, params, draws.halves_of(space), full)
    return scores, Resampled(values, _dips(X, draws, space, computing))


def _dips(X: Any, draws: Draws, space: str, computing: Computing) -> np.ndarray | None:
    if not draws.test:
        return None
    return half_dips(X, draws.halves, draws.of(space), draws.projection, computing.n_jobs)


def _open(
    X: Any, asked: list[ParsedIndex], partitions: Partitions, halves: Halves, computing: Computing
) -> Task:
    data = open_data(X, asked)
    space = open_space(data, device=computing.device, n_jobs=computing.n_jobs)
    return Task(space, partitions, None, groups=halves.group)


def score_halves(
    X: Any,
    partitions: Partitions,
    index: str,
    params: Mapping[str, Any],
    halves: Halves,
    *,
    n_jobs: int | None = None,
    device: Any = None,
) -> np.ndarray:
    """(B, M) values of one index with its own sign; NaN where undefined on a half-sample."""
    computing = Computing(n_jobs=n_jobs, device=device)
    task = _open(X, [(INDICES[index], dict(params))], partitions, halves, computing)
    params = INDICES[index].in_space(params, task.space.own_metric)
    keep = widths_before(index, params, halves)
    full = [None] * len(partitions) if keep is None else gather(task, [keep])[keep]
    return _half_values(task, index, params, halves, full)


def _half_values(
    task: Task, index: str, params: Mapping[str, Any], halves: Halves, full: list[Any]
) -> np.ndarray:
    """(B, M) values, given the widths in the full sample where not all objects are looked at."""
    values = np.full((len(halves.chosen), len(task.partitions)), np.nan)
    some = np.flatnonzero(task.partitions.n_clusters).tolist()  # of noise only nothing follows
    if len(halves.chosen) and some:
        part = task if len(some) == len(task.partitions) else task.subset(some)
        wanted = {want.name for want in INDICES[index].wants(**params).values()}
        way = "moments" if wanted <= {"clusters", "within", "radii"} else "again"
        if widths_of(index, params) is not None:
            way = "widths"
        values[:, some] = WAYS[way](part, index, params, halves, [full[m] for m in some])
    return values


def _values_again(
    task: Task, index: str, params: Mapping[str, Any], halves: Halves, full: list[Any]
) -> np.ndarray:
    """The index computed anew on every half-sample."""
    space = task.space
    if "metric" in params and find(params["metric"]).whole and find(params["metric"]).finish:
        # The matrix of all objects is in the prepared rows; that of a half would be another.
        space = open_space(to_numpy(space.prepared(params["metric"], wide=True).X))
        params = {**params, "metric": "euclidean"}
    spec = ((index, params),)
    values = []
    for objects in map(halves.objects, range(len(halves.chosen))):
        part, X = task.partitions.take(objects), space.some(objects)
        values.append(score_partitions(X, part, spec, n_jobs=space.n_jobs).values[:, 0])
    return np.stack(values)


def _width_values(
    task: Task, index: str, params: Mapping[str, Any], halves: Halves, full: list[Any]
) -> np.ndarray:
    """Means of widths that follow from sums kept apart by group."""
    widths = cast(Want, widths_of(index, params))
    every = len(halves.seen) == len(halves.group)
    which = [m for m, known in enumerate(full) if every or known is not None]
    values = np.full((len(halves.chosen), len(task.partitions)), np.nan)
    if not which:
        return values
    part = task._replace(partitions=task.partitions.subset(which))
    totals, mass, _ = halves.widths(part, widths, [full[m] for m in which])
    size = halves.chosen @ np.bincount(halves.group, minlength=halves.chosen.shape[1])  # (B,)
    for m, (a, b) in zip(which, pairwise(part.partitions.offsets), strict=True):
        usable = _defined(mass[:, a:b])
        if usable.any():
            found = WidthTotals(totals[usable, a:b], mass[usable, a:b])
            value = INDICES[index].formula(widths=found, **params)
            price = INDICES[index].price_for(task.partitions, m)
            if price is not None:
                counted = found.mass.sum(axis=1)
                value = price.apply(value, {"noise": Noise(size[usable] - counted, counted)})
            values[usable, m] = value
    return values


def _defined(counts: np.ndarray) -> np.ndarray:
    """(B,) whether a half-sample has at least two clusters, and one of several objects."""
    present = (counts > 0).sum(axis=1)
    defined: np.ndarray = (present >= 2) & (present < counts.sum(axis=1))
    return defined


def _moment_values(
    task: Task, index: str, params: Mapping[str, Any], halves: Halves, full: list[Any]
) -> np.ndarray:
    """Indices of cluster means and scatter around them, per half-sample."""
    wants = INDICES[index].wants(**params)
    power = next((w.get("q", 1) for w in wants.values() if w.name == "radii"), None)
    counts, sums, within, radii = halves.moments(task, power)
    values = np.full((len(counts), len(task.partitions)), np.nan)
    prices = [INDICES[index].price_for(task.partitions, m) for m in range(len(task.partitions))]
    apart = None
    if any(price is not None for price in prices):  # the noise of each partition, as one cluster
        apart = halves.moments(task._replace(partitions=task.partitions.noise_only()))
    for m, (a, b) in enumerate(pairwise(task.partitions.offsets)):
        for draw in np.flatnonzero(_defined(counts[:, a:b])).tolist():
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
                value = INDICES[index].formula(**statistics, **params)
                price = prices[m]
                if price is not None and apart is not None:
                    known["noise"] = apart.noise(draw, m, mean, float(mass.sum()))
                    value = price.apply(value, {name: known[name] for name in price.wants})
                values[draw, m] = value
    return values


WAYS = {"widths": _width_values, "moments": _moment_values, "again": _values_again}
