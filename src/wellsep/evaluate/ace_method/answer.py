"""AceResult: ACE's answer as one frozen record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from wellsep._files.records import Record
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.options import Ace
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
    scores: np.ndarray  # (D,) weighted mean of its rows


@dataclass(frozen=True, eq=False)
class Screen(Record):
    """Which spaces take part: the dip test, and whether a space tells partitions apart."""

    retained: tuple[int, ...]  # positions of the spaces whose rank agreement is compared
    pvalue: np.ndarray | None = None  # (L,) of the dip test, NaN where undefined; None without it
    adjusted: np.ndarray | None = None  # (L,) the same after Holm
    none_passed: bool = False  # no test finds more than one mode, so all spaces stay


@dataclass(frozen=True, eq=False)
class Groups(Record):
    """How the R retained spaces agree, and the groups they form; empty where R is 1."""

    agreement: np.ndarray | None = None  # (R, R) rank correlation
    pvalue: np.ndarray | None = None  # (R, R) one-sided
    adjusted: np.ndarray | None = None  # (R, R) after Holm; None without a test
    edges: np.ndarray | None = None  # (R, R) weights, 0 = no edge
    members: tuple[tuple[int, ...], ...] = ()  # of each group, as positions among all spaces
    outliers: tuple[int, ...] = ()  # retained spaces in no group
    subgroups: tuple[Subgroup, ...] = ()  # after phase 2
    fallback: bool = False  # groups by the outlier rule, since density alone shows none


@dataclass(frozen=True, eq=False)
class Winner(Record):
    """The spaces that give the answer."""

    won_by: str  # "group", "outlier" or "single space"
    spaces: tuple[int, ...]  # positions among all spaces
    weights: np.ndarray  # of these spaces
    subgroups: tuple[int, ...] = ()  # positions of the winning subgroups; several if they tie
    test: Mapping[str, float] | None = None  # paired t-test of the best outlying space


@dataclass(frozen=True, eq=False, kw_only=True)
class AceResult(Answer, row_names="partition"):
    """ACE's answer and how it came about. Scores are turned so that larger is better.

    Attributes
    ----------
    index, direction : the index used, and -1 if its values were negated
    options : Ace, the switches of :func:`ace`
    dip : bool, whether spaces were left out by the dip test
    spaces : names
    screen : Screen, which spaces take part
    groups : Groups, how they agree
    winner : Winner, the spaces that give the answer, and their weights
    dropped : tuple of Dropped, spaces that take no part in the answer
    partitions : names; equal partitions were judged as one
    scores : ndarray of shape (M,), ACE's answer
    baselines : dict of str to (M,) scores: "own_space" (if every partition has one),
        "mean_admitted", "mean_all"
    n_clusters, coverage : per partition, where known
    noise : str or None, how the scores treat the label -1, where known
    undefined : tuple of (space, partition, reason)
    undefined_value : float or None, what took the place of undefined scores
    notes : sentences on what was unusual
    """

    _facts: ClassVar[tuple[str, ...]] = (
        "index",
        "partitions",
        "scores",
        "n_clusters",
        "coverage",
        "spaces",
        "winner.won_by",
        "winner.spaces",
        "options",
    )

    options: Ace
    index: str
    direction: int
    dip: bool
    spaces: tuple[str, ...]
    screen: Screen
    groups: Groups
    winner: Winner
    dropped: tuple[Dropped, ...]
    baselines: Mapping[str, np.ndarray]
    noise: str | None = None
    undefined: tuple[tuple[str, str, str], ...] = ()
    undefined_value: float | None = None

    @cached_property
    def defined_scores(self) -> np.ndarray:
        """(M,) scores; NaN for a partition that has none in any space of the answer."""
        return np.where(self._without(self.winner.spaces), np.nan, self.scores)

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

    @property
    def group_of(self) -> np.ndarray:
        """(L,) number of each space's group, from 1, the best mean score first; 0 for none."""
        means = [-np.inf] * len(self.groups.members)
        for subgroup in self.groups.subgroups:
            means[subgroup.group] = max(means[subgroup.group], subgroup.mean)
        found = np.zeros(len(self.spaces), dtype=np.intp)
        for number, group in enumerate(np.argsort(np.negative(means), kind="stable"), 1):
            found[list(self.groups.members[group])] = number
        return found

    @property
    def untested(self) -> tuple[str, ...]:
        """Spaces that stay because their dip test is undefined, by name."""
        if self.screen.adjusted is None:
            return ()
        names = (self.spaces[i] for i in np.flatnonzero(np.isnan(self.screen.adjusted)))
        return tuple(sorted(names, key=natural_key))

    @property
    def heaviest_spaces(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Spaces that give the answer and their weights, heaviest first; equal ones by name."""
        names = [self.spaces[i] for i in self.winner.spaces]
        weights = np.round(self.winner.weights, 9)
        order = best_first(-weights, names)
        return tuple(names[i] for i in order), self.winner.weights[order]

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
