"""Passes over a space: named statistics of all partitions at once.

``gather`` takes what the asked-for indices want and makes each pass once. A provider is
registered for the names it serves; pairwise providers share one pass over the distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engines import Space
from wellsep.partitions import Partitions


class Want(NamedTuple):
    """One statistic asked for, with the options that make it a different number."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.options).get(key, default)


def want(name: str, **options: Any) -> Want:
    return Want(name, tuple(sorted(options.items())))


class Task(NamedTuple):
    """What every provider works on."""

    space: Space
    partitions: Partitions
    weights: np.ndarray | None  # (n,) float64, all positive where counted
    centers: tuple[np.ndarray, ...] | None = None  # given centres instead of the means
    groups: np.ndarray | None = None  # (n,) by which totals of widths are also kept apart

    def weights_or_ones(self) -> np.ndarray:
        return np.ones(self.space.n) if self.weights is None else self.weights


Provider = Callable[[Task, list[Want]], dict[Want, list[Any]]]
_PROVIDERS: dict[str, Provider] = {}


def provides(*names: str) -> Callable[[Provider], Provider]:
    """Register a function that serves these statistics, for all partitions, in one go."""

    def keep(function: Provider) -> Provider:
        for name in names:
            _PROVIDERS[name] = function
        return function

    return keep


def gather(task: Task, wants: Iterable[Want]) -> dict[Want, list[Any]]:
    """Every wanted statistic, as a list with one entry per partition."""
    if task.space.kind == "dask":
        from wellsep.compute.dask_passes import gather_chunks

        return gather_chunks(task, list(dict.fromkeys(wants)))
    import wellsep.compute.clusters
    import wellsep.compute.density
    import wellsep.compute.extremes
    import wellsep.compute.linkage
    import wellsep.compute.pairs
    import wellsep.compute.quadrics
    import wellsep.compute.reachability
    import wellsep.compute.representatives
    import wellsep.compute.selection
    import wellsep.compute.spectrum  # noqa: F401  (all register their providers)

    by_provider: dict[Provider, list[Want]] = {}
    for one in dict.fromkeys(wants):
        by_provider.setdefault(_PROVIDERS[one.name], []).append(one)
    found: dict[Want, list[Any]] = {}
    for provider, asked in by_provider.items():
        found.update(provider(task, asked))
    return found


def values_of_objects(task: Task, wanted: Want) -> Any:
    """(n,) one value per object of the only partition; a lazy dask array where X is one."""
    if task.space.kind == "dask":
        from wellsep.compute import dask_passes

        return dask_passes.values_of_objects(task, wanted)
    each = Want(wanted.name, (*wanted.options, ("each", True)))
    return gather(task, [each])[each][0]


@provides("objects")
def provide_objects(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """The data, codes and weights themselves, for formulas that reduce per-object values."""
    weights = task.weights_or_ones()
    entries = [Objects(task.space.X, c, weights, len(k)) for c, k in _each(task.partitions)]
    return {one: entries for one in wants}


class Objects(NamedTuple):
    """The objects themselves, with their clusters under one partition."""

    X: Any
    codes: np.ndarray  # (n,), -1 where not counted
    weights: np.ndarray  # (n,)
    n_clusters: int


class Averaged(NamedTuple):
    """Where one value per object stays where it was computed: the mean of every cluster.

    Means and masses of many samples stand above each other, (..., K).
    """

    means: np.ndarray  # (K,)
    mass: np.ndarray  # (K,)
    by_group: np.ndarray | None = None  # (G, K) totals, where the task names groups


def by_counted(partitions: Partitions) -> list[tuple[np.ndarray, list[int]]]:
    """Partitions that count the same objects: (their rows, the partitions) for each such set."""
    groups: dict[bytes, list[int]] = {}
    for m, codes in enumerate(partitions.codes):
        groups.setdefault(np.packbits(codes >= 0).tobytes(), []).append(m)
    return [(np.flatnonzero(partitions.codes[ms[0]] >= 0), ms) for ms in groups.values()]


def _each(partitions: Partitions) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    return zip(partitions.codes, partitions.classes, strict=True)
