"""The engine for rows in chunks: statistics run where the chunks lie, and their results are merged.

A task goes through its chunks as the engine in memory goes through its rows. Nothing as long as the
data ever leaves the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from wellsep.compute.data.rows import Space
from wellsep.compute.engine.dask import pairs
from wellsep.compute.engine.dask.chunks import Chunks, open_chunks
from wellsep.compute.engine.dask.labels import ChunkedPartitions, encode_chunks
from wellsep.compute.requests import Pass, Task
from wellsep.partitions import Partitions


class Frame(NamedTuple):
    """What it takes to make a task in memory of some of the rows."""

    classes: tuple[np.ndarray, ...]
    origin: np.ndarray  # (d,) what every portion subtracts
    unit: float  # that the rows were divided by

    def task(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> Task:
        """Some of the rows, as a space in memory."""
        space = Space(X, 1, origin=self.origin, unit=self.unit)
        names = tuple(map(str, range(len(codes))))
        partitions = Partitions(codes, self.classes, names, np.ones(len(codes)))
        return Task(space, partitions, weights)


class OnDask(NamedTuple):
    """Rows, codes and weights in chunks: runs the statistics that ``Task`` runs in memory."""

    space: Chunks
    partitions: ChunkedPartitions
    weights: da.Array | None
    centers: tuple[np.ndarray, ...] | None = None  # given centres instead of the means

    @property
    def beside(self) -> list[da.Array | None]:
        """Codes (M, n) and weights (n,), cut as the rows are."""
        return [self.partitions.codes, self.weights]

    @property
    def frame(self) -> Frame:
        """The frame of these rows and partitions."""
        return Frame(self.partitions.classes, self.space.shift, self.space.unit)

    def subset(self, which: Sequence[int]) -> OnDask:
        """The same with some of the partitions."""
        return self._replace(partitions=self.partitions.subset(which))

    def alike(self) -> tuple[list[int], list[int]]:
        """See ``Task.alike``."""
        # Where objects are left out, finding which ones would take a pass over the labels.
        whole = self.partitions.n_counted == self.space.n
        first = int(whole.argmax())
        chosen = [m for m, every in enumerate(whole) if not every or m == first]
        number = [chosen.index(first if every else m) for m, every in enumerate(whole)]
        return chosen, number

    def fold(self, passes: Sequence[Pass]) -> list[Any]:
        """What each function returns for every block, merged in order; the rows are met once."""
        shared = (Task.fold, list(passes), self.frame)
        return self.space.fold(_on_rows, *shared, beside=self.beside, checked=True)

    def values(self, one: Pass) -> da.Array:
        """(n,) what a function says of each object, as a lazy array."""
        return self.space.lazy(_on_rows, Task.values, one, self.frame, beside=self.beside)

    def either(self, in_memory: Any, in_chunks: Any) -> Any:
        """Return ``in_chunks``, which does not need all rows in one memory."""
        return in_chunks

    def fold_pairs(self, f: Callable[..., Any], *given: Any) -> Any:
        """``f(left, right, places, *given)`` of every two blocks i ≤ j, merged.

        Blocks are tasks in memory, ``places`` the numbers of their first rows.
        """
        return pairs.cut_blocks(self).fold_pairs(f, given)

    def fold_strips(
        self, strips: Any, pair: Callable[..., Any], finish: Callable[..., Any], metric: Any,
        *given: Any, each: bool = False,
    ) -> Any:  # fmt: skip
        """``finish(block, sums, metric, *given)`` of every block, merged; lazy with ``each``.

        ``pair(left, right, places, metric)`` gives the distance sums of both over each other.
        """
        blocks = pairs.cut_blocks(self, lazily=each)
        result = blocks.fold_strips(pair, finish, metric, given, each)
        return result.rechunk((self.space.sizes,)) if each else result


def open_task(X: Any, labels: Any, sample_weight: Any = None, noise: str = "exclude") -> OnDask:
    """A dask collection with partitions of its rows; labels on Dask are not gathered."""
    chunks = open_chunks(X).in_safe_units()
    weights = chunks.weigh(sample_weight)
    return OnDask(chunks, encode_chunks(labels, weights, chunks, noise), weights)


def _on_rows(
    X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, run: Callable[..., Any],
    asked: Any, frame: Frame, start: int,
) -> Any:  # fmt: skip
    return run(frame.task(X, codes, weights), asked)
