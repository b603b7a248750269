"""AceResult: ACE's answer as one frozen record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._files.records import Record, Result
from wellsep.evaluate.options import Ace
from wellsep.evaluate.ranks import ranks_with_gaps
from wellsep.runs.folder_names import best_first, natural_key


@dataclass(frozen=True, eq=False)
class Dropped(Record):
    """A space that takes no part in the answer."""

    space: str
    step: str  # "dip", "constant" or "grouping"
    reason: str


@dataclass(frozen=True, eq=False)
class Subgroup(Record):
    """Spaces whose weighted mean ranks the partitions."""

    members: tuple[int, ...]  # positions among all spaces
    group: int  # phase-1 group it belongs to
    weights: np.ndarray  # (members,)
    n_edges: int
    mean: float  # weighted mean score over all partitions
    scores: np.ndarray  # (M,) weighted mean of its rows


@dataclass(frozen=True, eq=False)
class AceResult(Result, row_names="partition"):
    """ACE's answer and how it came about. Scores are turned so that larger is better.

    Attributes
    ----------
    index, direction : the index used, and -1 if its values were negated
    options : Ace, the switches of :func:`ace`
    dip : bool, whether spaces were left out by the dip test
    spaces, partitions : names
    retained : positions of the spaces whose rank agreement was compared
    dropped : tuple of Dropped
    dip_pvalue, dip_adjusted : per space, NaN where the test is undefined; None without the test
    agreement, pvalue, adjusted, edges : (R, R) over the retained spaces: rank correlation,
        one-sided p, Holm-adjusted p, edge weights (0 = no edge)
    groups : phase-1 groups, as positions among all spaces
    outliers : retained spaces in no group
    subgroups : tuple of Subgroup, after phase 2
    winners : positions in `subgroups` of the winner; several if they tie, none if a space alone won
    winning_spaces : positions of the spaces that give the answer, with `weights`
    won_by : {"group", "outlier", "single space"}
    scores : ndarray of shape (M,), ACE's answer
    baselines : dict of str to (M,) scores: "own_space" (if every partition has one),
        "mean_admitted", "mean_all"
    n_clusters, coverage : per partition, where known
    noise : str or None, how the scores treat the label -1, where known
    undefined : tuple of (space, partition, reason)
    notes : sentences on what was unusual
    class_of : (M,) which distinct partition each one is, None where all differ: equal partitions
        were judged as one
    """

    index: str
    direction: int
    options: Ace
    spaces: tuple[str, ...]
    partitions: tuple[str, ...]
    retained: tuple[int, ...]
    dropped: tuple[Dropped, ...]
    scores: np.ndarray
    won_by: str
    winning_spaces: tuple[int, ...]
    weights: np.ndarray
    baselines: Mapping[str, np.ndarray]
    dip_pvalue: np.ndarray | None = None
    dip_adjusted: np.ndarray | None = None
    no_space_admitted: bool = False
    agreement: np.ndarray | None = None
    pvalue: np.ndarray | None = None
    adjusted: np.ndarray | None = None
    edges: np.ndarray | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    outliers: tuple[int, ...] = ()
    subgroups: tuple[Subgroup, ...] = ()
    winners: tuple[int, ...] = ()
    fallback: bool = False
    outlier_test: Mapping[str, float] | None = None
    n_clusters: np.ndarray | None = None
    coverage: np.ndarray | None = None
    noise: str | None = None
    undefined: tuple[tuple[str, str, str], ...] = ()
    undefined_value: float | None = None
    notes: tuple[str, ...] = field(default=())
    dip: bool = True
    class_of: np.ndarray | None = None

    def ranks_by(self, scores: np.ndarray) -> np.ndarray:
        """(M,) ranks among the distinct partitions, 1 = best; ties share the better rank."""
        tolerance = self.options.tie_tolerance
        if self.class_of is None:
            return ranks_with_gaps(scores, tolerance)
        first = np.unique(self.class_of, return_index=True)[1]
        places: np.ndarray = ranks_with_gaps(scores[first], tolerance)[self.class_of]
        return places

    @property
    def defined_scores(self) -> np.ndarray:
        """(M,) scores; NaN for a partition that has none in any space of the answer."""
        return np.where(self._without(self.winning_spaces), np.nan, self.scores)

    @property
    def defined_baselines(self) -> dict[str, np.ndarray]:
        """The baselines; NaN for a partition that has a score in no space at all."""
        nowhere = self._without(range(len(self.spaces)))
        return {name: np.where(nowhere, np.nan, one) for name, one in self.baselines.items()}

    def _without(self, spaces: Iterable[int]) -> np.ndarray:
        """(M,) which partitions have a defined score in none of these spaces."""
        names = {self.spaces[i] for i in spaces}
        gaps = Counter(partition for space, partition, _ in self.undefined if space in names)
        found: np.ndarray = np.array([gaps[p] >= len(names) > 0 for p in self.partitions])
        return found

    def equals(self, m: int) -> np.ndarray:
        """(M,) which partitions equal the m-th, itself included."""
        if self.class_of is None:
            alone: np.ndarray = np.arange(len(self.partitions)) == m
            return alone
        found: np.ndarray = self.class_of == self.class_of[m]
        return found

    @property
    def group_of(self) -> np.ndarray:
        """(L,) number of each space's group, from 1, the best mean score first; 0 for none."""
        means = [-np.inf] * len(self.groups)
        for subgroup in self.subgroups:
            means[subgroup.group] = max(means[subgroup.group], subgroup.mean)
        found = np.zeros(len(self.spaces), dtype=np.intp)
        for number, group in enumerate(np.argsort(np.negative(means), kind="stable"), 1):
            found[list(self.groups[group])] = number
        return found

    @property
    def untested(self) -> tuple[str, ...]:
        """Spaces that stay because their dip test is undefined, by name."""
        if self.dip_adjusted is None:
            return ()
        names = (self.spaces[i] for i in np.flatnonzero(np.isnan(self.dip_adjusted)))
        return tuple(sorted(names, key=natural_key))

    @property
    def heaviest_spaces(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Spaces that give the answer and their weights, heaviest first; equal ones by name."""
        names = [self.spaces[i] for i in self.winning_spaces]
        weights = np.round(self.weights, 9)
        order = best_first(-weights, names)
        return tuple(names[i] for i in order), self.weights[order]

    def columns(self) -> dict[str, list[Any]]:
        """Return ACE's score and the baselines of each partition; coverage where some has noise."""
        table = {"partition": list(self.partitions), "ace": self.scores.tolist()}
        if self.coverage is not None and (self.coverage < 1).any():
            table["coverage"] = self.coverage.tolist()
        return table | {name: scores.tolist() for name, scores in self.baselines.items()}

    def sentences(self) -> Iterator[str]:
        """Say which spaces were left out and why, and which group decided."""
        from wellsep.evaluate.words.explanation import explain_ace

        yield from explain_ace(self)

    def _printed(self) -> tuple[str, ...]:
        from wellsep.evaluate.words.explanation import best_in_words

        return (" ".join(best_in_words(self)),)

    @property
    def heading(self) -> str:
        """What stands above the table in a notebook."""
        return f"ACE by {self.index}"
