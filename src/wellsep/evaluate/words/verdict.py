"""The verdict on a judgement in plain words: one function for terminal, page, explain and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wellsep._files.records import Result
from wellsep._text.sentences import count, listing
from wellsep.evaluate.words.explanation import describe_coverage, mean_correlation
from wellsep.evaluate.words.facts import (
    ALONE,
    APART,
    ASIDE,
    CERTAIN,
    COVERED,
    FEW_RUNS,
    FEW_SPACES,
    LITTLE,
    NOTHING,
    Facts,
)

if TYPE_CHECKING:
    from wellsep.evaluate.judgement import Judgement

KINDS = ("nothing to cluster", "judges disagree", "practically tied", "stands alone", "clear")

NEXT = {
    "nothing to cluster": (
        "Next: look for other features or embeddings before you use any of these clusterings."
    ),
    "judges disagree": "Next: look at both on the page, and choose by what the clusters are for.",
    "practically tied": "Next: choose among them by what the clusters are for, or add runs.",
    "stands alone": "Next: look at its clusters before you use it, and add runs like it.",
    "clear": "Next: look at its clusters and its borderline objects on the page.",
}


@dataclass(frozen=True, eq=False)
class Verdict(Result):
    """What a judgement comes to, in words.

    Attributes
    ----------
    kind : str
        "nothing to cluster", "judges disagree", "practically tied", "stands alone" or "clear", the
        first that holds.
    headline : str
    second : tuple of str
        Sentences on what else must be known: other kinds that hold, few runs, noise, K at the edge.
    next : str
        What to do next.
    facts : dict
        The numbers behind the words; None where unknown.
    """

    kind: str
    headline: str
    second: tuple[str, ...]
    next: str
    facts: dict[str, Any] = field(default_factory=dict)

    def sentences(self) -> Iterator[str]:
        """Say the headline, what else must be known, and what to do next."""
        yield from (self.headline, *self.second, self.next)


def verdict(judgement: Judgement) -> Verdict:
    """Say what a judgement comes to: is there an answer, how certain is it, what to do next.

    Five kinds are asked for in this order, and the first that holds makes the headline: nothing to
    cluster; the judges disagree; practically tied; the best stands alone; clear. Others that hold
    are in the second line. All judges can be wrong together, and nothing here sees it.

    Parameters
    ----------
    judgement : Judgement
        From :func:`wellsep.judge`.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import wellsep as ws
    >>> labels = {"two": [0, 0, 0, 0, 1, 1, 1, 1], "again": [3, 3, 3, 3, 7, 7, 7, 7]}
    >>> found = ws.judge(ws.Runs.from_parts(None, labels)).verdict
    >>> found.kind
    'clear'
    >>> found.headline
    "Both runs found the same clustering, 'again' (K = 2), so there is nothing to choose between."
    """
    case = _Words(judgement)
    holds = {
        "nothing to cluster": case.nothing,
        "judges disagree": case.disagree,
        "practically tied": bool(case.tied),
        "stands alone": case.alone,
        "clear": True,
    }
    kind = next(kind for kind in KINDS if holds[kind])
    words = {
        "nothing to cluster": case.say_nothing,
        "judges disagree": case.say_disagree,
        "practically tied": case.say_tied,
        "stands alone": case.say_alone,
        "clear": case.say_clear,
    }
    headline = words[kind]() + case.range_tried
    also = [words[k]() for k in KINDS[1:-1] if k != kind and holds[k]]
    if kind == "nothing to cluster":
        also.insert(0, case.say_first())
    elif kind != "clear":
        also.append(case.say_certainty(by_one_judge=kind != "practically tied"))
    second = tuple(s for s in (*also, *case.remarks()) if s)
    return Verdict(kind, headline, second, case.say_next(kind), case.to_dict())


class _Words(Facts):
    """The sentences that the facts of a judgement call for."""

    @property
    def range_tried(self) -> str:
        """What a headline by agreement must say, since agreement sees no other K."""
        if not self.by_vote or self.unanimous or not len(self.ks):
            return ""
        return f" Tried: {_tried(self.ks)}."

    @property
    def opposed(self) -> bool:
        """Whether ACE decides by embeddings that contradict each other."""
        ace = self.judgement.by_ace
        together = None if self.by_vote or ace is None else mean_correlation(ace)
        return together is not None and together < 0

    def named(self, i: int) -> str:
        k = self.ranking.n_clusters
        return repr(self.ranking.names[i]) + ("" if k is None else f" (K = {k[i]})")

    def say_nothing(self) -> str:
        return (
            "Nothing to cluster: the clusterings are no clearer than those that k-means finds in a "
            f"cloud without structure (difference in silhouette {self.gain:+.2f}, at least "
            f"+{NOTHING:g} needed)."
        )

    def say_disagree(self) -> str:
        vote, ace = (self.named(self.pick_of(judge)) for judge in ("consensus", "ace"))
        return (
            f"The judges disagree: the consensus picks {vote}, ACE picks {ace}, and the two have "
            f"little in common (ARI {self.between:.2f})."
        )

    def say_tied(self) -> str:
        n = int(self.equal.sum())
        found = f" (found by {n} runs)" if n > 1 else ""
        tied = (repr(self.ranking.names[i]) for i in self.tied)
        names = listing((f"{self.best!r}{found}", *tied), most=4)
        if self.sure is None:
            return f"Practically tied: {names} have the same score."
        return (
            f"Practically tied: {names}. These are different clusterings, and their scores differ "
            "by less than the draws move them."
        )

    def say_alone(self) -> str:
        praised = "its embeddings praise it, and few" if not self.by_vote else "few"
        return (
            f"{self.best!r} is ranked first and stands alone: {praised} other runs agree with it "
            f"(mean agreement {self.support:.2f} of the largest)."
        )

    def say_first(self) -> str:
        """Who is first where there is nothing to cluster."""
        if self.unanimous:
            return self.say_unanimous()
        return f"The ranking puts {self.best!r} first all the same."

    def say_unanimous(self) -> str:
        n = len(self.ranking.names)
        who = "Both runs" if n == 2 else f"All {n} runs"
        return (
            f"{who} found the same clustering, {self.named(self.at)}, so there is nothing to "
            "choose between."
        )

    def say_clear(self) -> str:
        if self.unanimous:
            return self.say_unanimous()
        names = self.ranking.names
        return f"{self.best!r} is the best of {count(len(names), 'run')}. {self.say_certainty()}"

    def say_certainty(self, *, by_one_judge: bool = False) -> str:
        """How often the answer comes first; `by_one_judge`: others do not share it."""
        n = int(self.same.sum())
        nearly = "" if self.equal.sum() == n else " or nearly so"
        by = f" {n} runs found it{nearly}." if n > 1 and not self.tied else ""
        if self.sure is None or self.chance is None:
            return f"How certain this is was not computed.{by}"
        unsettled = self.tied or self.opposed
        word = "Open" if unsettled else "Certain" if self.chance >= CERTAIN else "Probable"
        often_first = f"{self.chance:.0%} of {self.sure.n_draws} draws"
        often = self.alike & ((self.sure.probability_best > 0) | self.equal)
        who = repr(self.best)
        if (often & ~self.equal).any():  # then the share is not that of the best alone
            ks = (
                None
                if self.ranking.n_clusters is None
                else np.unique(self.ranking.n_clusters[often])
            )
            span = "" if ks is None or len(ks) < 2 else f" ({_tried(ks)})"
            who += f" or a clustering much like it{span}"
        if by_one_judge:  # "certain" would contradict the headline
            judge = "The consensus" if self.by_vote else "ACE"
            return f"{judge} puts {who} first in {often_first}.{by}"
        return f"{word}: {who} comes first in {often_first}.{by}"

    def remarks(self) -> Iterator[str]:
        """Sentences of the second line that do not depend on the headline."""
        yield from self._on_structure()
        yield from self._on_judges()
        yield from self._on_spaces()
        yield from self._on_runs()
        yield from self._on_certainty()
        if self.by_vote and not self.unanimous and len(self.ks) and not self.edge:
            yield "Agreement sees no K beyond those tried."

    def _on_structure(self) -> Iterator[str]:
        if self.judgement.structure is None:
            why = "there is no embedding" if self.judgement.by_ace is None else "no silhouette"
            yield f"Whether there is anything to cluster was not tested: {why}."
        elif self.gain is not None and NOTHING <= self.gain < LITTLE:
            yield (
                "The clusterings are little clearer than those that k-means finds in a cloud "
                f"without structure (difference in silhouette {self.gain:+.2f})."
            )

    def _on_judges(self) -> Iterator[str]:
        if self.between is not None and APART <= self.between < ASIDE:
            other = "ace" if self.by_vote else "consensus"
            who = "ACE" if other == "ace" else "The consensus"
            name = self.ranking.names[self.pick_of(other)]
            yield f"{who} picks {name!r}, which resembles it in part (ARI {self.between:.2f})."
        if self.by_vote and self.vote is not None and "ace" in self.picks:
            pick = self.pick_of("ace")
            if pick != self.at and self.vote.support[pick] < ALONE:
                yield (
                    f"ACE's pick {self.ranking.names[pick]!r} stands alone: its embeddings praise "
                    "it, and few other runs agree with it (mean agreement "
                    f"{self.vote.support[pick]:.2f} of the largest)."
                )

    def _on_spaces(self) -> Iterator[str]:
        ace = self.judgement.by_ace
        if ace is None:
            return
        n, runs = len(ace.spaces), len(ace.partitions)
        if n == 1:
            yield "There is one embedding only, and no other can confirm it."
        elif not self.by_vote and len(ace.winner.spaces) == 1:
            yield "One embedding alone gives the answer, and no other confirms it."
        if self.opposed:
            yield (
                "The embeddings that give the answer rank the runs in opposite ways (mean "
                f"correlation {mean_correlation(ace):.2f})."
            )
        if self.by_vote and 1 < n < FEW_SPACES and runs > n:
            yield (
                f"The {runs} runs come from {n} distinct embeddings; runs that share one agree "
                "for that reason."
            )
        if ace.untested:
            yield (
                f"The dip test is undefined in {listing(map(repr, ace.untested), most=3)}; no "
                "embedding was left out for that."
            )
        if ace.screen.none_passed:
            yield "No embedding passes the dip test for more than one mode."

    def _on_runs(self) -> Iterator[str]:
        if self.unanimous:
            yield (
                "That equal runs agree does not make them right, and whether another clustering "
                "is better was not seen."
            )
        elif self.n_distinct == 2:
            yield "There are two different clusterings: they can be compared, not ranked."
        elif self.n_distinct < FEW_RUNS:
            yield (
                f"There are only {self.n_distinct} different clusterings; agreement on so few can "
                "be chance."
            )
        if self.ranking.coverage is not None:
            covered = float(self.ranking.coverage[self.at])
            if covered < COVERED:
                ace = self.judgement.by_ace
                yield describe_coverage(covered, None if ace is None else ace.noise)
        edge = self.edge
        if edge:
            word, more = ("largest", "more") if edge > 0 else ("smallest", "fewer")
            k = int(self.ks[-1 if edge > 0 else 0])
            blind = "; agreement sees none beyond" if self.by_vote else ""
            yield f"The best has the {word} K tried ({k}){blind}: try {more}."

    def _on_certainty(self) -> Iterator[str]:
        if self.sure is None:
            return
        low, high = self.sure.interval[self.at]
        if low > 1:
            yield (
                f"{self.best!r} has rank 1, but ranks {low:g} to {high:g} in "
                f"{self.sure.level:.0%} of the draws."
            )
        if not self.alike.all():
            chance = self.sure.probability_best
            names, order = self.ranking.names, self.ranking.order
            rival = max(order[~self.alike[order]], key=chance.__getitem__)
            if chance[rival] > chance[self.at]:
                yield (
                    f"{names[rival]!r} comes first in more draws "
                    f"({chance[rival]:.0%}, {self.best!r} {chance[self.at]:.0%})."
                )

    def say_next(self, kind: str) -> str:
        """One thing to do next."""
        if kind != "clear":
            return NEXT[kind]
        if self.unanimous:
            return "Next: look at its clusters, and add runs with other settings to compare."
        if self.edge:
            return f"Next: add runs with {'more' if self.edge > 0 else 'fewer'} clusters."
        if self.n_distinct < FEW_RUNS:
            return "Next: add runs; so few say little."
        if self.judgement.by_ace is None:
            return "Next: rank again with embeddings, to see whether there is anything to cluster."
        if self.sure is None:
            return "Next: rank again with 100 draws, to see how certain this is."
        return NEXT[kind]


def _tried(ks: np.ndarray) -> str:
    low, high = int(ks[0]), int(ks[-1])
    return f"{low} clusters" if low == high else f"{low} to {high} clusters"
