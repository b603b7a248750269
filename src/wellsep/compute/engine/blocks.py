"""One block of rows as a statistic sees it, wherever the rows lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wellsep.compute.data.opening import Space, host


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
        return np.concatenate([[0], np.cumsum(self.n_clusters)])

    @cached_property
    def weights_or_ones(self) -> np.ndarray:
        return np.ones(self.codes.shape[1]) if self.weights is None else self.weights

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
        sums = self.space.cluster_sums(values, self.codes, self.n_clusters, self.weights)
        return host(sums)
