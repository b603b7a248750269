"""Answer: what one judge says of the distinct partitions. Ties, order and best are decided here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from wellsep._files.records import Result, freeze
from wellsep._text.sentences import cell, listing
from wellsep.evaluate.ranks import ranks_with_gaps
from wellsep.partitions import Classes
from wellsep.runs.folder_names import best_first, natural_key

BASELINES = {
    "own_space": "Own-space scores (each clustering in the embedding it was made in)",
    "mean_all": "Mean scores over all embeddings",
    "input": "Input scores (the data that the runs were made from)",
    "ace": "ACE",
    "consensus": "The vote (runs with about as many clusters, and the index)",
}
SCORED = ("own_space", "mean_all", "input")
TOGETHER = "Every method here can be wrong in the same way: runs that share a mistake agree on it."


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Result):
    """Scores of the distinct partitions by one judge; equal partitions share score and rank."""

    in_draws: ClassVar[str] = ""  # what half of the runs do in each draw

    classes: Classes
    distinct_scores: np.ndarray  # (D,) larger is better
    options: Any  # has `tie_tolerance`, the relative difference under which scores are equal
    n_clusters: np.ndarray | None = None  # (M,) where known
    coverage: np.ndarray | None = None  # (M,) share of the objects in clusters, where known
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

    def best_in_words(self) -> Iterator[str]:
        """Say which partition is best, and which is next; of equal ones the first by name."""
        first, scores = self.first_of_each, self.defined_scores
        place = self.rank[first]
        best, after = first[place == 1], place[place > 1]
        names = listing(repr(self.partitions[i]) for i in best)
        equal = set(self.classes.members[self.classes.of[best[0]]]) - {self.best}
        if len(best) > 1:
            yield f"Best, tied: {names} (score {scores[best[0]]:.4g})."
        else:
            copies = listing(map(repr, sorted(equal, key=natural_key)))
            same = f"; the same clustering: {copies}" if copies else ""
            yield f"Best: {names} (score {scores[best[0]]:.4g}{same})."
        if len(after):
            second = first[place == after.min()]
            names = listing(repr(self.partitions[i]) for i in second)
            yield f"Next: {names} ({cell(scores[second[0]])})."

    def compare(self, baselines: Mapping[str, np.ndarray], judge: str) -> Iterator[str]:
        """Say what each baseline that has words picks, next to the answer."""
        place = self.rank
        for name, scores in baselines.items():
            if name not in BASELINES:
                continue
            pick = np.flatnonzero(self.ranks_by(scores) == 1)
            verb = "pick" if name in SCORED else "picks"
            if (place[pick] == 1).any():
                yield f"{BASELINES[name]} {verb} the same."
            else:
                chosen = named(self.partitions, pick)
                yield f"{BASELINES[name]} {verb} {chosen}, which {judge} ranks {place[pick].min()}."


def named(names: Sequence[str], which: Iterable[int]) -> str:
    """Quoted names, sorted naturally."""
    return listing(map(repr, sorted((names[i] for i in which), key=natural_key)))


def describe_coverage(share: float, noise: str | None) -> str:
    """Say how much of the data the best partition puts into clusters, and what the rest costs."""
    cost = "which lowers its scores" if noise == "penalize" else "which is not scored"
    return (
        f"It puts {share:.0%} of the objects into clusters and calls the other {1 - share:.0%} "
        f"noise, {cost}."
    )
