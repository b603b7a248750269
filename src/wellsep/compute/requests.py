"""What a pass is asked for, and what it works on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.data.opening import Space
from wellsep.partitions import Partitions


class Want(NamedTuple):
    """One statistic asked for, with the options that make it a different number."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.options).get(key, default)

    def each(self) -> Want:
        """The same with one value per object instead of totals."""
        return want(self.name, **dict(self.options), each=True)


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

    def subset(self, which: Sequence[int]) -> Task:
        """The same with some of the partitions."""
        return self._replace(partitions=self.partitions.subset(which))


class Objects(NamedTuple):
    """The objects themselves, with their clusters under one partition."""

    X: Any
    codes: np.ndarray  # (n,), -1 where not counted
    weights: np.ndarray  # (n,)
    n_clusters: int


def by_counted(partitions: Partitions) -> list[tuple[np.ndarray, list[int]]]:
    """Partitions that count the same objects: (their rows, the partitions) for each such set."""
    groups: dict[bytes, list[int]] = {}
    for m, codes in enumerate(partitions.codes):
        groups.setdefault(np.packbits(codes >= 0).tobytes(), []).append(m)
    return [(np.flatnonzero(partitions.codes[ms[0]] >= 0), ms) for ms in groups.values()]


Provider = Callable[[Task, list[Want]], dict[Want, list[Any]]]  # serves statistics in one go
