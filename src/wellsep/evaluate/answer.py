"""Answer: what one judge says of the distinct partitions. Ties, order and best are decided here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._files.records import Result, freeze
from wellsep.evaluate.ranks import ranks_with_gaps
from wellsep.partitions import Classes
from wellsep.runs.folder_names import best_first


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Result):
    """Scores of the distinct partitions by one judge; equal partitions share score and rank.

    Attributes
    ----------
    classes : Classes
        The M partitions by name, and which of them are equal.
    distinct_scores : ndarray of shape (D,)
        Larger is better.
    options : record with ``tie_tolerance``, the relative difference under which scores are equal
    n_clusters, coverage : ndarray of shape (M,) or None
        Number of clusters, and share of the objects that they hold, where known.
    notes : sentences on what was unusual
    """

    classes: Classes
    distinct_scores: np.ndarray
    options: Any
    n_clusters: np.ndarray | None = None
    coverage: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of the M partitions."""
        return self.classes.names

    @cached_property
    def scores(self) -> np.ndarray:
        """(M,) the score of each partition."""
        return freeze(self.distinct_scores[self.classes.of])

    @property
    def defined_scores(self) -> np.ndarray:
        """(M,) the scores; NaN where a partition has none, which is ranked last."""
        return self.scores

    def ranks_by(self, scores: np.ndarray) -> np.ndarray:
        """(M,) ranks among the distinct partitions by some scores; ties share the better rank."""
        places = ranks_with_gaps(scores[self.classes.first], self.options.tie_tolerance)
        return freeze(places[self.classes.of])

    @cached_property
    def rank(self) -> np.ndarray:
        """(M,) ranks among the distinct partitions, 1 = best; ties share the better rank."""
        return self.ranks_by(self.defined_scores)

    @cached_property
    def order(self) -> np.ndarray:
        """Positions, best first; ties by name."""
        return freeze(best_first(self.rank, self.partitions))

    @property
    def winners(self) -> tuple[str, ...]:
        """All partitions on rank 1, by name."""
        return tuple(self.partitions[i] for i in self.order if self.rank[i] == 1)

    @property
    def best(self) -> str:
        """The best partition; of several that tie, the first by name."""
        return self.partitions[int(self.order[0])]

    @property
    def first_of_each(self) -> np.ndarray:
        """(D,) positions of the distinct partitions, best first; of equal ones the first."""
        first = np.unique(self.classes.of[self.order], return_index=True)[1]
        return self.order[np.sort(first)]
