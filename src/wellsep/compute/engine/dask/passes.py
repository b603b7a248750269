"""Statistics of partitions of rows on Dask, from one or two passes over the chunks.

The first pass merges moments of clusters; the second runs the in-memory row pass on each portion,
with the centres of all rows given, and adds up what it finds. Nothing as long as the data ever
leaves the workers: widths of objects come back as totals by cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.compute.engine.dask.labels import ChunkedTask
from wellsep.compute.metrics.table import Metric, find
from wellsep.compute.plan import make_passes, make_values
from wellsep.compute.requests import Task, Want, want
from wellsep.compute.statistics.ball_counts import (
    Spread,
    _Members,
    ball_counts,
    balls_from,
    warn_of_empty,
)
from wellsep.compute.statistics.centre_distances import (
    Clusters,
    centre_pass,
    finish_separation,
    width_pass,
)
from wellsep.compute.statistics.cluster_moments import (
    RowOptions,
    RowStatistics,
    Spectrum,
    describe_rows,
    spectrum_of,
    square_moments,
    within_squares,
)
from wellsep.compute.statistics.distance_sums import without_pairs
from wellsep.compute.statistics.noise_scatter import Noise, noise_of
from wellsep.partitions import Partitions

CENTRES = ("within", "radii", "separation", "to_centres", "simplified")
ROW_WISE = ("clusters", "spread", "balls", "spectrum", "noise", *CENTRES)


class FirstPass(NamedTuple):
    """What the tasks of a later pass know of all rows."""

    classes: tuple[np.ndarray, ...]
    clusters: list[Clusters]
    spreads: list[Spread]
    sums: dict[Metric, np.ndarray]  # (ΣK, e)
    origin: np.ndarray  # (d,) what every portion subtracts
    unit: float = 1.0  # that the rows were divided by

    def task(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> Task:
        """Some of the rows, as a space in memory."""
        space = Space(X, 1, origin=self.origin, unit=self.unit)
        names = tuple(map(str, range(len(codes))))
        partitions = Partitions(codes, self.classes, names, np.ones(len(codes)))
        return Task(space, partitions, weights)


def gather_chunks(task: ChunkedTask, wants: list[Want]) -> dict[Want, list[Any]]:
    """Every wanted statistic, as a list with one entry per partition."""
    from wellsep.compute.engine.dask.pairs import gather_pairs

    rows = [w for w in wants if w.name in ROW_WISE or without_pairs(w)]
    pairs = [w for w in wants if w not in rows]
    needed = [*rows, want("clusters")] if pairs else rows
    statistics = first_pass(task, needed)
    known = _known(task, statistics)
    found = _from_first(task, rows, statistics, known)
    late = [w for w in rows if w not in found]
    if late:
        found.update(_second_pass(task, late, known))
    if pairs:
        found.update(gather_pairs(task, pairs, known.clusters))
    return found


def lazy_values(task: ChunkedTask, wanted: Want) -> Any:
    """A lazy dask array (n,) of one value per object, for the only partition."""
    if wanted.name == "widths" and not without_pairs(wanted):
        from wellsep.compute.engine.dask.pairs import lazy_widths

        return lazy_widths(task, wanted, _known(task, first_pass(task, [want("clusters")])))
    known = _known(task, first_pass(task, [wanted]))
    chunks = task.space
    each = wanted.each()
    return chunks.lazy(_object_values, known, each, beside=task.beside)


def first_pass(task: ChunkedTask, wants: list[Want]) -> RowStatistics:
    names = {w.name for w in wants}
    chunks = task.space
    partitions = task.partitions
    asked = RowOptions(
        squares=bool(names & {"spread", "balls"}) or ("within" in names and task.centers is None),
        sums=tuple(dict.fromkeys(_metric(w) for w in wants if _is_summed(w))),
        scatter=counted_alike(partitions, chunks.n)[0] if "spectrum" in names else (),
    )
    return chunks.fold(
        describe_rows,
        partitions.n_clusters,
        chunks.reference,
        asked,
        beside=task.beside,
        checked=True,
    )


def counted_alike(partitions: Partitions, n: int) -> tuple[tuple[int, ...], list[int]]:
    """Group the partitions that leave out the same rows.

    Return one partition per group, and for each partition the place of its group.
    """
    chosen: list[int] = []
    place = []
    whole = None
    for m, counted in enumerate(partitions.n_counted):
        if counted < n:
            chosen.append(m)
            place.append(len(chosen) - 1)
            continue
        if whole is None:  # all that count every row share one
            whole = len(chosen)
            chosen.append(m)
        place.append(whole)
    return tuple(chosen), place


def _known(task: ChunkedTask, statistics: RowStatistics) -> FirstPass:
    chunks = task.space
    partitions, shift = task.partitions, chunks.reference
    clusters, spreads = [], []
    moments: Any = statistics.clusters
    for m in range(len(partitions)):
        part = slice(int(partitions.offsets[m]), int(partitions.offsets[m + 1]))
        mass, means = moments.mass[part], moments.mean[part]
        mean = (mass[:, None] * means).sum(axis=0) / mass.sum()
        centers = means if task.centers is None else task.centers[m] - shift
        clusters.append(Clusters(statistics.counts[part], mass, centers, mean, shift))  # type: ignore[index]
        if moments.square is not None:
            square = moments.square[part]
            between = (mass[:, None] * (means - mean) ** 2).sum(axis=0)
            total = (square.sum(axis=0) + between) / mass.sum()
            spreads.append(Spread(means, square / mass[:, None], total))
    return FirstPass(partitions.classes, clusters, spreads, statistics.sums, shift, chunks.unit)


def _from_first(
    task: ChunkedTask, wants: list[Want], statistics: RowStatistics, known: FirstPass
) -> dict[Want, list[Any]]:
    """What needs no second pass with the centres known."""
    found: dict[Want, list[Any]] = {}
    for w in wants:
        if w.name == "clusters":
            found[w] = known.clusters
        elif w.name == "spread":
            found[w] = known.spreads
        elif w.name == "within" and task.centers is None:
            found[w] = [
                (s.variances.sum(axis=1) * c.mass)
                for s, c in zip(known.spreads, known.clusters, strict=True)
            ]
        elif w.name == "spectrum":
            found[w] = _spectra(task, statistics, w.get("centred", True))
        elif w.name == "within_distances":
            found[w] = _within_squares(task, _metric(w))
        elif w.name == "noise" and not w.get("scatter") and task.weights is None:
            n = float(task.space.n)
            found[w] = [Noise(n - c, float(c)) for c in task.partitions.n_counted]
    return found


def _metric(w: Want) -> Metric:
    return find(w.get("metric", "euclidean"))


def _is_summed(w: Want) -> bool:
    return w.name == "widths" and without_pairs(w)


def _within_squares(task: ChunkedTask, metric: Metric) -> list[float]:
    chunks = task.space
    partitions = task.partitions
    shared = (partitions.n_clusters, metric, chunks.reference)
    moments = chunks.fold(square_moments, *shared, beside=task.beside)
    return within_squares(moments, partitions.offsets, metric)


def _spectra(task: ChunkedTask, statistics: RowStatistics, centred: bool) -> list[Spectrum]:
    chunks = task.space
    scatter: Any = statistics.scatter
    found = []
    for mass, mean, products in zip(*scatter, strict=True):
        if not centred:
            origin = mean + chunks.reference
            products = products + mass * np.outer(origin, origin)
        found.append(spectrum_of(products, np.diagonal(products).copy(), float(mass)))
    return [found[i] for i in counted_alike(task.partitions, chunks.n)[1]]


def _second_pass(task: ChunkedTask, wants: list[Want], known: FirstPass) -> dict[Want, list[Any]]:
    chunks = task.space
    sums = chunks.fold(_row_sums, known, wants, beside=task.beside)
    found: dict[Want, list[Any]] = {}
    for w in wants:
        if w.name == "balls":
            found[w] = [balls_from(near, between, w) for near, between in sums[w]]
        else:
            found[w] = sums[w]
    warn_of_empty(found)
    return finish_separation(found)


def _row_sums(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    known: FirstPass,
    wants: list[Want],
    start: int,
) -> dict[Want, list[Any]]:
    """The second pass over one portion."""
    task = known.task(X, codes, weights)
    found = _from_centres(task, known, [w for w in wants if w.name not in ("balls", "noise")])
    for w in wants:
        if w.name == "noise":
            means = [c.mean for c in known.clusters] if w.get("scatter") else None
            found[w] = noise_of(task, means)
        if w.name == "balls":
            members = [_Members(task, task.space.on_host().X, m) for m in range(len(codes))]
            found[w] = [ball_counts(x, s, w) for x, s in zip(members, known.spreads, strict=True)]
    return found


def _from_centres(task: Task, known: FirstPass, wants: list[Want]) -> dict[Want, list[Any]]:
    """What a portion adds, or tells of each object, with the centres of all rows known."""
    found: dict[Want, list[Any]] = {}
    for metric in dict.fromkeys(_metric(w) for w in wants if w.name == "widths"):
        mass = np.concatenate([c.mass for c in known.clusters])
        count = np.concatenate([c.counts for c in known.clusters])
        mine = [w for w in wants if w.name == "widths" and _metric(w) == metric]
        summed: Any = metric.sums
        found.update(width_pass(task, summed, known.sums[metric], mass, count, mine))
    rest = [w for w in wants if w.name != "widths"]
    if rest:
        found.update(centre_pass(task, known.clusters, rest))
    return found


def _object_values(
    X: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    known: FirstPass,
    wanted: Want,
    start: int,
) -> np.ndarray:
    return _from_centres(known.task(X, codes, weights), known, [wanted])[wanted][0]


PASSES: dict[Callable[..., Any], Callable[..., Any]] = {
    make_passes: gather_chunks,
    make_values: lazy_values,
}
