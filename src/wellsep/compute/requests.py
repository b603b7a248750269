"""What is asked for, and the engine that computes it from rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import budget_bytes, in_threads, merge
from wellsep.compute.data.rows import Space, host
from wellsep.partitions import Partitions, offsets_of

Strips = Callable[..., Iterator[tuple[slice, Any]]]
SHARES, LEAST_ROWS = 8, 1 << 14  # blocks that threads share, and rows that are worth one


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows of a space, with their clusters under every partition."""

    space: Space
    rows: slice
    codes: np.ndarray  # (M, b), -1 where not counted
    n_clusters: np.ndarray  # (M,)
    weights: np.ndarray | None = None  # (b,)
    groups: np.ndarray | None = None  # (b,) by which totals of widths are also kept apart
    n_groups: int = 0

    @cached_property
    def X(self) -> Any:
        """(b, d) float64 beside the data, about the mean of all rows."""
        return self.space.about_mean(self.rows)

    @cached_property
    def offsets(self) -> np.ndarray:
        """(M + 1,) where the clusters of each partition begin among all."""
        return offsets_of(self.n_clusters)

    @cached_property
    def weights_or_ones(self) -> np.ndarray:
        return np.ones(self.codes.shape[1]) if self.weights is None else self.weights

    @cached_property
    def code_index(self) -> Any:
        """(M, b) ``codes`` as an index beside X."""
        return self.space.index(self.codes)

    @cached_property
    def own_clusters(self) -> tuple[Any, Any]:
        """Where a table (ΣK, b) has the own clusters of the rows, as (M, b) and (1, b).

        A row that is not counted has the first cluster.
        """
        place = np.maximum(self.codes, 0) + self.offsets[:-1, None]
        return self.space.index(place), self.space.index(np.arange(place.shape[1]))[None, :]

    @classmethod
    def of_codes(
        cls, codes: np.ndarray, n_clusters: np.ndarray, weights: np.ndarray | None = None
    ) -> Block:
        """Objects without rows, on the host: their clusters and weights."""
        nothing = Space(np.empty((codes.shape[1], 0)), 1)
        return cls(nothing, slice(0, codes.shape[1]), codes, n_clusters, weights)

    def with_rows(self, X: Any) -> Block:
        """The same objects with other rows (b, e)."""
        block = replace(self)
        block.__dict__["X"] = X
        return block

    def cluster_sums(self, values: Any) -> np.ndarray:
        """(ΣK, e) ``values`` (b, e) summed over every cluster by weight, on the host."""
        sums = self.space.cluster_sums(values, self.code_index, self.n_clusters, self.weights)
        return host(sums)


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


class Pass(NamedTuple):
    """A function of one block, ``f(block, *given)``, whose results merge."""

    f: Callable[..., Any]
    given: tuple = ()
    width: int = 0  # columns of the tables that it makes beside those of the data


Steps = Generator[Pass, Any, Any]  # asks for passes, gets their results, returns what it found


def run(task: Any, steps: Steps) -> Any:
    """Make the passes that are asked for; return what is found in the end."""
    return run_together(task, [steps])[0]


def run_together(task: Any, steps: Sequence[Steps]) -> list[Any]:
    """The same for several: what they ask for at the same time is one pass over the rows."""
    found: list[Any] = [None] * len(steps)
    results: dict[int, Any] = dict.fromkeys(range(len(steps)))
    while results:
        asked: dict[int, Pass] = {}
        for number, result in results.items():
            try:
                asked[number] = steps[number].send(result)
            except StopIteration as end:
                found[number] = end.value
        made = task.fold(list(asked.values())) if asked else []
        results = dict(zip(asked, made, strict=True))
    return found


class Task(NamedTuple):
    """Rows in memory or on a device with their partitions: runs statistics block by block."""

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

    def block(self, rows: slice = slice(None)) -> Block:
        """Some consecutive rows; all by default."""
        weights = None if self.weights is None else self.weights[rows]
        groups, n_groups = None, 0
        if self.groups is not None:
            groups, n_groups = self.groups[rows], int(self.groups.max()) + 1
        codes, n_clusters = self.partitions.codes[:, rows], self.partitions.n_clusters
        return Block(self.space, rows, codes, n_clusters, weights, groups, n_groups)

    def fold(self, passes: Sequence[Pass], join: Callable[..., Any] = merge) -> list[Any]:
        """What each function returns for every block, merged in order; the rows are met once."""
        space, least = self.space, max(LEAST_ROWS, -(-self.space.n // SHARES))
        width = max(p.width for p in passes)
        if space.one_caller:  # partitions that are worked on together each have places of rows
            width += space.d * int(np.bincount(self.partitions.n_clusters).max(initial=0))
        blocks = list(space.row_blocks(width, 8, None if space.one_caller else least, beside=True))
        if len(blocks) == 1:
            block = self.block(blocks[0])
            return [p.f(block, *p.given) for p in passes]
        results: list[Any] = [None] * len(blocks)

        def visit(i: int) -> None:
            block = self.block(blocks[i])
            results[i] = [p.f(block, *p.given) for p in passes]
            if space.one_caller and join is merge and i:  # (K, K) tables are not piled up
                results[i] = [merge(pair) for pair in zip(results[i - 1], results[i], strict=True)]
                results[i - 1] = None

        in_threads(space.n_jobs, visit, range(len(blocks)))
        made = [result for result in results if result is not None]
        return [join(column) for column in zip(*made, strict=True)]

    def values(self, one: Pass) -> np.ndarray:
        """(n,) what a function says of each object."""
        return self.fold([one], np.concatenate)[0]

    @property
    def sums_fit(self) -> bool:
        """Whether sums of all objects over all clusters fit the memory budget."""
        return 8.0 * self.space.n * int(self.partitions.offsets[-1]) <= budget_bytes()

    def either(self, in_memory: Any, in_chunks: Any) -> Any:
        """The one of two things that suits rows that are at hand all together."""
        return in_memory

    def fold_strips(
        self, strips: Strips, pair: Callable[..., Any], finish: Callable[..., Any], metric: Any,
        *given: Any, each: bool = False,
    ) -> Any:  # fmt: skip
        """``finish(block, sums, metric, *given)`` of blocks with their distance sums, merged.

        ``strips(task, metric)`` gives rows with their sums over all objects. ``pair`` sums two
        blocks where they cannot be had together. With ``each``, (n,) what is said of each object.
        """
        blocks = ((self.block(rows), sums) for rows, sums in strips(self, metric))
        parts = [finish(block, sums, metric, *given) for block, sums in blocks]
        return np.concatenate(parts) if each else merge(parts)

    def alike(self) -> tuple[list[int], list[int]]:
        """Group partitions that leave out the same objects.

        Return one partition of each group, and for each partition the number of its group.
        """
        keys = [np.packbits(codes >= 0).tobytes() for codes in self.partitions.codes]
        groups = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return [keys.index(key) for key in groups], [groups[key] for key in keys]


def by_counted(task: Task) -> list[tuple[np.ndarray, list[int]]]:
    """Group partitions that leave out the same objects; return (rows, partitions) of each group."""
    chosen, numbers = task.alike()
    codes = task.partitions.codes
    return [
        (np.flatnonzero(codes[m] >= 0), np.flatnonzero(np.array(numbers) == group).tolist())
        for group, m in enumerate(chosen)
    ]
