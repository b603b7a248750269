"""AceResult: ACE's answer as one frozen record, and its sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from wellsep._files.records import Record
from wellsep._text.sentences import count, listing
from wellsep.evaluate.answer import TOGETHER, Answer, describe_coverage, named
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

    in_draws: ClassVar[str] = "choose the embeddings"
    _facts: ClassVar[tuple[str, ...]] = (
        "index", "partitions", "scores", "n_clusters", "coverage", "spaces", "winner.won_by",
        "winner.spaces", "options"
    )  # fmt: skip

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

    judge: ClassVar[str] = "ace"

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
        return np.array([gaps[p] >= len(names) > 0 for p in self.partitions])

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
        missing = "How often each run comes first was not computed (rank_confidence, --draws)."
        yield from explain_ace(self, self.baselines, (missing,))

    def _printed(self) -> tuple[str, ...]:
        return (" ".join(_best(self)),)

    @property
    def heading(self) -> str:
        """What stands above the table in a notebook."""
        return f"ACE by {self.index}"

    @property
    def mean_correlation(self) -> float | None:
        """Mean rank correlation of the winning spaces; None if a single space won."""
        if self.winner.won_by != "group" or len(self.winner.spaces) < 2:
            return None
        between = _among_winners(self, self.groups.agreement)
        return float(between[np.triu_indices(len(between), 1)].mean())


def _among_winners(result: AceResult, matrix: Any) -> np.ndarray:
    """The part of an (R, R) matrix that the winning spaces have."""
    local = [result.screen.retained.index(i) for i in result.winner.spaces]
    return matrix[np.ix_(local, local)]


def explain_ace(
    result: AceResult, shown: Mapping[str, np.ndarray], how_sure: Iterable[str]
) -> Iterator[str]:
    """Explain the answer, one paragraph per step; ``how_sure`` ends the last one."""
    baselines = [*result.compare(shown, "ACE")]
    steps: tuple[Iterable[str], ...] = (
        _question(result),
        _multimodality(result),
        result.notes,
        explain_undefined(result),
        _agreement(result),
        _groups(result),
        _winner(result),
        _best(result),
        [*baselines, TOGETHER] if "consensus" in shown else baselines,
        (*_agreement_of_winners(result), *how_sure),
    )
    return filter(None, map(" ".join, steps))


def _question(result: AceResult) -> Iterator[str]:
    turned = "" if result.direction > 0 else ", negated because smaller is better"
    different = ""
    if len(result.classes) < len(result.partitions):
        different = f" ({len(result.classes)} different ones, equal ones count once)"
    yield (
        f"{count(len(result.partitions), 'clustering')}{different} were judged in "
        f"{count(len(result.spaces), 'embedding')} by {result.index}{turned}."
    )


def _multimodality(result: AceResult) -> Iterator[str]:
    if not result.dip:
        yield "The dip test was left out (dip=False), so every embedding is used."
    elif len(result.untested) == len(result.spaces):
        yield "The dip test is undefined in every embedding, so every embedding is used."
    elif result.screen.none_passed:
        yield (
            "No embedding passes the dip test for more than one mode "
            f"(Holm, level {result.options.dip_alpha:g}): either there are no clusters, or they "
            "do not show along the tested direction. All embeddings are kept; read the answer with "
            "care, next to the mean scores."
        )
    else:
        dropped, untested = (d.space for d in result.dropped if d.step == "dip"), result.untested
        gone = sorted(dropped, key=natural_key)
        passed = len(result.spaces) - len(gone) - len(untested)
        yield (
            f"{passed} of {count(len(result.spaces), 'embedding')} "
            f"{'passes' if passed == 1 else 'pass'} the dip test for more than one "
            f"mode (Holm, level {result.options.dip_alpha:g})."
        )
        if untested:
            yield f"The test is undefined in {listing(map(repr, untested))}; they stay."
        if gone:
            adjusted = dict(zip(result.spaces, np.asarray(result.screen.adjusted), strict=True))
            names = listing(f"{name!r} (adjusted p = {adjusted[name]:.3g})" for name in gone)
            yield f"Left out, because the test cannot rule out a single mode there: {names}."
    constant = [d.space for d in result.dropped if d.step == "constant"]
    if constant:
        yield (
            f"Left out, because every clustering scores the same there: "
            f"{listing(map(repr, sorted(constant, key=natural_key)))}."
        )


def explain_undefined(result: AceResult) -> Iterator[str]:
    """Say how many scores are undefined, and why the first of them is."""
    if not result.undefined:
        return
    space, partition, reason = min(result.undefined)
    yield (
        f"{count(len(result.undefined), 'score')} of {len(result.spaces) * len(result.partitions)} "
        f"{'is' if len(result.undefined) == 1 else 'are'} undefined and count as the worst score "
        f"({result.undefined_value:.4g}) in means; a clustering without any score is ranked last. "
        f"For instance {partition!r} in {space!r}: "
        f"{reason.rstrip('.')}."
    )


def _agreement(result: AceResult) -> Iterator[str]:
    if result.groups.agreement is None or result.groups.edges is None:
        last = result.spaces[result.screen.retained[0]]
        yield f"Only {last!r} is left, so ACE ranks by its scores alone."
        return
    n = len(result.screen.retained)
    edges = int(np.count_nonzero(np.triu(result.groups.edges, 1)))
    name = result.options.correlation.capitalize()
    if result.groups.adjusted is None:
        rule = "no test" if result.options.alpha is None else "two clusterings allow no test"
    else:
        rule = f"one-sided, Holm, level {result.options.alpha:g}"
    yield (
        f"{edges} of {count(n * (n - 1) // 2, 'pair')} of the {n} embeddings left "
        f"{'ranks' if edges == 1 else 'rank'} the clusterings alike ({name}, {rule})."
    )


def _groups(result: AceResult) -> Iterator[str]:
    if result.groups.agreement is None:
        return
    if not result.groups.members:
        yield "No two embeddings form a group."
        return
    sizes = sorted((len(group) for group in result.groups.members), reverse=True)
    spaces = f"{listing(map(str, sizes))} {'space' if sizes == [1] else 'spaces'}"
    how = "by the outlier rule, because density alone shows none" if result.groups.fallback else ""
    yield f"They form {count(len(sizes), 'group')} of {spaces}{', ' if how else ''}{how}."
    if len(result.groups.subgroups) > len(result.groups.members):
        fine = listing(
            map(str, sorted((len(s.members) for s in result.groups.subgroups), reverse=True))
        )
        yield f"The scores themselves split large groups further: {fine}."
    if result.groups.outliers:
        yield f"In no group: {named(result.spaces, result.groups.outliers)}."


def _winner(result: AceResult) -> Iterator[str]:
    if result.winner.won_by == "single space":
        return
    names, weights = result.heaviest_spaces
    shown = [f"{n!r} (weight {w:.2g})" for n, w in zip(names, weights, strict=True)]
    if result.winner.won_by == "outlier":
        yield f"Space {listing(map(repr, names))} outside the groups gives the answer:"
        if result.winner.test:
            yield (
                "its mean score is larger than the best group's "
                f"(paired t-test, p = {result.winner.test['pvalue']:.3g})."
            )
        else:
            yield "there is no group, and its mean score is the largest."
        return
    mean = result.groups.subgroups[result.winner.subgroups[0]].mean
    if (n := len(result.winner.subgroups)) > 1:
        yield f"{n} groups tie with the largest mean score ({mean:.4g}) and share"
        yield f"the answer: {listing(shown)}."
    elif len(result.groups.subgroups) == 1:
        yield f"ACE's scores are the weighted mean of those in {listing(shown)}."
    else:
        (won,) = result.winner.subgroups
        following = max(s.mean for i, s in enumerate(result.groups.subgroups) if i != won)
        yield (
            f"The group with the largest mean score ({mean:.4g}; next {following:.4g}) wins: "
            f"{listing(shown)}."
        )
    if result.winner.test:
        yield (
            "An embedding outside has a larger mean, but not significantly "
            f"(paired t-test, p = {result.winner.test['pvalue']:.3g})."
        )


def _best(result: AceResult) -> Iterator[str]:
    yield from result.best_in_words()
    if result.coverage is not None and (lowest := result.coverage[result.rank == 1].min()) < 1:
        yield describe_coverage(lowest, result.noise)


def _agreement_of_winners(result: AceResult) -> Iterator[str]:
    mean = result.mean_correlation
    if mean is None:
        yield "Confidence: one embedding alone gives the answer, and no other confirms it."
        return
    if mean < 0:
        yield (
            "Confidence: the winning embeddings rank the clusterings in opposite ways (mean "
            f"correlation {mean:.2f}); the answer is an average of them."
        )
        return
    linked = int(np.count_nonzero(np.triu(_among_winners(result, result.groups.edges), 1)))
    n = len(result.winner.spaces)
    pairs = count(n * (n - 1) // 2, "pair")
    tested = "" if result.groups.adjusted is None else f", {linked} of their {pairs} significantly"
    yield f"Confidence: the winning embeddings agree (mean correlation {mean:.2f}{tested})."
    if not linked:
        yield "So they count alike, and their agreement may be chance."
