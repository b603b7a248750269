"""The objects of a space under one metric: rows made ready once, distances block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._threads import cut_rows
from wellsep.compute.data.rows import Space
from wellsep.compute.metrics.row_preparation import Prepared, centred_rows, square_lengths
from wellsep.compute.metrics.squares import Rows
from wellsep.compute.metrics.table import find


class Pairs:
    """Distances of any two blocks of objects: of rows, of a table, or given.

    With ``wide`` rows are prepared in float64 on the host, for exact work on single distances. The
    rows of a file are prepared when they are asked for, which costs little next to distances.
    """

    def __init__(self, space: Space, metric: Any, *, wide: bool = False) -> None:
        self.space, self.metric = space, find(metric)
        self.on_the_host = wide and space.own_metric is None
        self.xp = np if wide else space.xp
        self.by_blocks = space.in_file and self.metric.coordinates and not wide
        # A shift rounds: near objects far from the mean differ by what these rows differ.
        shifted = not wide and self.metric.prepare is centred_rows
        self.given = space.X if shifted else None
        self.prepared, self.square = Prepared(space.X), None
        if not self.by_blocks:
            if self.on_the_host:
                self.prepared = space.on_host(self.metric, sparse=True)
            else:
                self.prepared = space.prepared(self.metric)
            if self.metric.finish is not None:
                self.square = square_lengths(*self.prepared, self.xp)

    def in_single_precision(self, scaled: bool) -> None:
        """Hold float32 rows; divided by a power of two that no number exceeds with ``scaled``."""
        X, zero = self.prepared
        largest = max(float(X.max()), -float(X.min()))
        unit = float(2.0 ** np.frexp(largest)[1]) if scaled else 1.0
        self.given = (X if self.given is None else self.given) / unit
        self.prepared = Prepared((X / unit).astype(np.float32), zero)
        self.square = square_lengths(*self.prepared, self.xp)

    @property
    def blocks(self) -> list[slice]:
        """All objects, cut as pairs of blocks are visited."""
        return cut_rows(self.space.n, self.space.block_rows)

    def rows(self, objects: Any, members: Any = None) -> Rows:
        """Some objects by slice or number, placed by it."""
        if not self.metric.coordinates:  # a table of distances is cut by the places of both sides
            return Rows(self.prepared.X, at=objects, members=members)
        if self.by_blocks:
            prepared = self.space.prepared_rows(self.metric, objects)
            square = None if self.metric.finish is None else square_lengths(*prepared, np)
        else:
            prepared = self.prepared.take(objects)
            square = None if self.square is None else self.square[objects]
        given = None if self.given is None else self.given[objects, :]
        return Rows(prepared.X, square, prepared.zero, objects, members, given)

    def block(self, i: Any, j: Any) -> Any:
        """(b_i, b_j) distances of some objects to some others; 0 from an object to itself."""
        return self.metric.distances(self.rows(i), self.rows(j), self.xp)

    def host_block(self, i: Any, j: Any) -> np.ndarray:
        """The same as a new float64 array on the host."""
        return np.ascontiguousarray(self.block(i, j), dtype=np.float64)
