"""The verdict on a judgement in plain words: one function for terminal, page, explain and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from wellsep._files.records import Result
from wellsep._text.sentences import count, listing
from wellsep.evaluate.answer import describe_coverage
from wellsep.evaluate.clusters.agreed import AgreedGroups
from wellsep.evaluate.ranking import Ranking
from wellsep.evaluate.structure import NOTHING, Structure
from wellsep.evaluate.vote.answer import Camps, Consensus
from wellsep.evaluate.vote.rule import FEWEST

# Thresholds, measured on open experiments; the guide says how.
LITTLE = 0.12  # silhouette above that of clouds without clusters
APART, ASIDE = 0.5, 0.75  # ARI of the two judges' picks: they disagree; worth a word
SAME, ALIKE = 0.95, 0.75  # ARI from which on two partitions are one answer; much the same
SPREAD = 2.0  # standard deviations within which a gap between scores is no difference
ALONE = 0.75  # relative agreement under which a partition stands alone
SETTLED = 0.6  # share of the half-samples in which the best, or one much like it, comes first
COVERED = 0.9  # share of the objects in clusters under which noise is pointed out
FEW_SPACES, MANY_K = 5, 3

NEXT = {
    "nothing to cluster": (
        "Next: look for other features or embeddings before you use any of these clusterings."
    ),
    "two camps": "Next: look at the best of each camp, and find out what tells the two apart.",
    "judges disagree": "Next: look at both on the page, and choose by what the clusters are for.",
    "practically tied": "Next: choose among them by what the clusters are for, or add runs.",
    "stands alone": "Next: look at its clusters before you use it, and add runs like it.",
    "clear": "Next: look at its clusters and its borderline objects on the page.",
}
KINDS = tuple(NEXT)


@dataclass(frozen=True, eq=False)
class Verdict(Result):
    """What a judgement comes to, in words.

    Attributes
    ----------
    kind : str
        "nothing to cluster", "two camps", "judges disagree", "practically tied", "stands alone" or
        "clear", the first that holds.
    headline : str
    second : tuple of str
        Sentences on what else must be known: other kinds that hold, few runs, noise, K at the edge.
    next : str
        What to do next.
    facts : dict
        The numbers behind the words; None where unknown.
    groups : str
        How many groups every contender finds, and how many questions are open; empty where that
        cannot be told, and then the second line says why.
    """

    kind: str
    headline: str
    second: tuple[str, ...]
    next: str
    facts: dict[str, Any] = field(default_factory=dict)
    groups: str = ""

    def sentences(self) -> Iterator[str]:
        """Say what the groups are, which run is best, what else must be known, what to do next."""
        yield from filter(None, (self.groups, self.headline, *self.second, self.next))

    @property
    def label(self) -> str:
        """The kind; "questions open" where the best run is clear and its groups are not."""
        return "questions open" if self.kind == "clear" and self.facts["questions"] else self.kind

    @property
    def heading(self) -> str:
        """What stands above the sentences in a notebook."""
        return f"Verdict: {self.label}"

    def _tables(self) -> tuple[dict[str, Any], ...]:
        return ()


def verdict(
    ranking: Ranking,
    vote: Consensus | None,
    structure: Structure | None,
    agreed: AgreedGroups,
    made_in: Sequence[str] = (),
) -> Verdict:
    """Say what a judgement comes to: is there an answer, what is it worth, what to do next.

    Six kinds are asked for in this order, and the first that holds makes the headline: nothing to
    cluster; two camps; the judges disagree; practically tied; the best stands alone; clear. Others
    that hold are in the second line. All methods can be wrong in the same way.

    Parameters
    ----------
    ranking : Ranking
        Of a judgement.
    vote : Consensus, optional
        The vote of its partitions, whoever decides.
    structure : Structure, optional
        How much clearer clusterings of the input are than k-means in clouds without clusters.
    agreed : AgreedGroups
        The groups that every contender finds, and what is open.
    made_in : sequence of str
        The embedding of each run, where known.

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
    case = _Case(ranking, vote, structure, made_in)
    words = {
        "nothing to cluster": (case.nothing, case.say_nothing),
        "two camps": (case.camps is not None, case.say_camps),
        "judges disagree": (case.disagree, case.say_disagree),
        "practically tied": (bool(case.tied), case.say_tied),
        "stands alone": (case.alone, case.say_alone),
        "clear": (True, case.say_clear),
    }
    kind, *others = [kind for kind in KINDS if words[kind][0]]
    headline = words[kind][1]()
    also = [words[other][1]() for other in others if other != "clear"]
    if kind == "nothing to cluster":
        also.insert(0, case.say_first())
    elif kind != "clear":
        also.append(case.say_share())
    second = tuple(s for s in (*also, agreed.why, *case.remarks()) if s)
    shared = agreed.to_facts()
    silent = agreed.why or (case.too_few and len(shared["contenders"]) < 2)  # no word on shares
    groups = "" if silent else " ".join(agreed.sentences())
    facts = case.to_dict() | shared
    return Verdict(kind, headline, second, case.say_next(kind), facts, groups)


class Worth(NamedTuple):
    """What picks that came first in a range of shares of the half-samples were worth."""

    low: float
    high: float
    trials: int
    sets: int
    best_quarter: int  # trials whose pick was in the best quarter of its runs
    above_median: int
    lost_less: int  # trials whose pick had an ARI less than `loss` below the best run's
    loss: float

    def sentence(self) -> str:
        """Say it."""
        return (
            f"In {self.trials} trials on {self.sets} data sets with known classes a pick came "
            f"first in {self.low:.0%} to {self.high:.0%} of the half-samples: it was in the best "
            f"quarter of the runs in {self.best_quarter} of the {self.trials}, above the median "
            f"run in {self.above_median}, and lost less than {self.loss:.2f} ARI to the best in "
            f"{self.lost_less}."
        )


@cache
def worth_table() -> tuple[Worth, ...]:
    """The shipped table, the largest shares first; made by experiments/votes/worth.py."""
    text = files("wellsep.evaluate.words").joinpath("worth.json").read_text(encoding="utf-8")
    rows, high = [], 1.0
    for row in json.loads(text):
        low = row.pop("from")
        rows.append(Worth(low, high, **row))
        high = low
    return tuple(rows)


def worth_of(share: float) -> Worth:
    """The row of the table that a share belongs to."""
    return next(row for row in worth_table() if share >= row.low)


class _Case:
    """The facts of one judgement, and the sentences that they call for."""

    def __init__(
        self,
        ranking: Ranking,
        vote: Consensus | None,
        structure: Structure | None,
        made_in: Sequence[str] = (),
    ) -> None:
        self.ranking, self.vote, self.structure = ranking, vote, structure
        self.made_in = made_in
        self.ace = ranking.by_ace
        self.best = ranking.best
        self.at = ranking.names.index(self.best)
        self.sure = ranking.confidence
        self.by_vote = ranking.judge == "consensus"
        self.by_index = ranking.judge == "index"
        self.n_distinct = len(self.ranking.classes)
        self.unanimous = self.n_distinct == 1

    @property
    def gain(self) -> float | None:
        """How much clearer clusterings of the input are than k-means in clouds; None if unknown."""
        if self.structure is None or np.isnan(self.structure.gain):
            return None
        return self.structure.gain

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to cluster."""
        return self.structure is not None and self.structure.is_nothing

    @cached_property
    def picks(self) -> dict[str, tuple[int, ...]]:
        """Judge → the partitions it puts first."""
        found = {}
        if self.ace is not None:
            found["ace"] = tuple(np.flatnonzero(self.ace.rank == 1).tolist())
        if self.vote is not None:
            found["consensus"] = tuple(np.flatnonzero(self.vote.rank == 1).tolist())
        return found

    @cached_property
    def between(self) -> float | None:
        """ARI of the two judges' picks; the largest where a judge has several."""
        if self.vote is None or len(self.picks) < 2 or self.by_index:
            return None
        own = self.vote.classes.of
        rows, columns = own[list(self.picks["ace"])], own[list(self.picks["consensus"])]
        return float(self.vote.agreement[np.ix_(rows, columns)].max())

    @property
    def disagree(self) -> bool:
        """Whether ACE and the consensus pick different clusterings."""
        return self.between is not None and self.between < APART

    @cached_property
    def likeness(self) -> np.ndarray:
        """(M,) ARI of each partition with the best one."""
        if self.vote is None:
            return np.ones(len(self.ranking.names))
        own = self.vote.classes.of
        found: np.ndarray = self.vote.agreement[own[self.at], own]
        return found

    @property
    def same(self) -> np.ndarray:
        """(M,) whether a partition is the answer or nearly so."""
        found: np.ndarray = self.likeness >= SAME
        return found

    @property
    def equal(self) -> np.ndarray:
        """(M,) whether a partition is the answer itself, whatever its clusters are called."""
        return self.ranking.classes.equal_to(self.at)

    @cached_property
    def close(self) -> np.ndarray:
        """(M,) whether the half-samples move the score by more than its gap to the best."""
        gap = self.ranking.score[self.at] - self.ranking.score
        spread = 0.0 if self.sure is None or self.sure.gap_sd is None else self.sure.gap_sd
        near = (gap <= SPREAD * spread) | (self.ranking.rank == 1)
        found: np.ndarray = near & ~self.same
        return found

    @property
    def alike(self) -> np.ndarray:
        """(M,) whether a partition is much the same as the best."""
        found: np.ndarray = self.likeness >= ALIKE
        return found

    @cached_property
    def tied(self) -> list[int]:
        """Other answers that may as well be the best, best first; none if it is probable.

        They are close by score, or come first as often. One of each class of equal partitions.
        """
        other = self.close
        if self.sure is not None and self.chance is not None:
            if self.chance >= SETTLED:
                return []
            often = self.sure.first_in
            other = other | (often >= max(often[self.at], 1 / self.sure.n_draws))
        other = other & ~self.alike
        return [int(i) for i in self.ranking.first_of_each if other[i]]

    @cached_property
    def relative_agreement(self) -> float | None:
        """The plain agreement of the others with the best, as a share of the largest."""
        if self.vote is None or self.n_distinct < 3:  # two support each other alike
            return None
        found = float(self.vote.relative_agreement[self.at])
        return None if np.isnan(found) else found

    @property
    def alone(self) -> bool:
        """Whether few others agree with the best."""
        return self.relative_agreement is not None and self.relative_agreement < ALONE

    @cached_property
    def chance(self) -> float | None:
        """Share of the half-samples in which the best, or a partition much like it, comes first."""
        if self.sure is None:
            return None
        first = self.ranking.classes.first
        return float(min(1.0, self.sure.first_in[first[self.alike[first]]].sum()))

    @property
    def first_in(self) -> float | None:
        """Share of the half-samples in which the best run itself comes first."""
        return None if self.sure is None else float(self.sure.first_in[self.at])

    @cached_property
    def k_first_in(self) -> dict[int, float]:
        """K to the share of the half-samples in which a run with K clusters comes first."""
        if self.sure is None or self.ranking.n_clusters is None:
            return {}
        return self.sure.share_of_k(self.ranking.n_clusters)

    @property
    def too_few(self) -> bool:
        """Whether there is too little for any word on how stable the pick is."""
        return self.by_index or self.n_distinct < FEWEST

    @cached_property
    def worth(self) -> Worth | None:
        """What picks with such a share were worth in trials; None where it was not measured."""
        if self.too_few or self.first_in is None or not self.by_vote or self.ace is None:
            return None
        return worth_of(self.first_in)

    @cached_property
    def camps(self) -> Camps | None:
        """Two families of runs that have little in common, where there are such."""
        return None if self.vote is None else self.vote.camps

    @property
    def ks(self) -> np.ndarray:
        """The numbers of clusters that were tried, two or more."""
        found = self.ranking.n_clusters
        return np.empty(0, dtype=np.intp) if found is None else np.unique(found[found >= 2])

    def pick_of(self, judge: str) -> int:
        """One of a judge's picks: the best itself, or the first by name."""
        answer = self.ace if judge == "ace" else self.vote
        assert answer is not None
        return self.at if self.at in self.picks[judge] else int(answer.order[0])

    @property
    def edge(self) -> int:
        """1 if the best has the largest K tried, -1 if the smallest (2 is no edge), else 0."""
        if len(self.ks) < MANY_K or self.ranking.n_clusters is None:
            return 0
        k = int(self.ranking.n_clusters[self.at])
        return 1 if k == self.ks[-1] else -1 if k == self.ks[0] > 2 else 0

    def to_dict(self) -> dict[str, Any]:
        """The numbers behind the words."""
        names = self.ranking.names
        return {
            "judge": self.ranking.judge,
            "best": self.best,
            "found_by": int(self.equal.sum()),
            "different_runs": self.n_distinct,
            "k_tried": [int(self.ks[0]), int(self.ks[-1])] if len(self.ks) else None,
            "picks": {judge: [names[i] for i in own] for judge, own in self.picks.items()},
            "ari_of_picks": self.between,
            "tied": [names[i] for i in self.tied],
            "relative_agreement": self.relative_agreement,
            "first_in": self.first_in,
            "first_in_with_its_like": self.chance,
            "first_in_by_k": self.k_first_in,
            "worth": None if self.worth is None else self.worth._asdict(),
            "camps": None if self.camps is None else self.camps.to_dict(names),
            "above_structureless": self.gain,
        }

    @property
    def opposed(self) -> bool:
        """Whether ACE decides by embeddings that contradict each other."""
        together = None if self.by_vote or self.ace is None else self.ace.mean_correlation
        return together is not None and together < 0

    def named(self, i: int) -> str:
        k = self.ranking.n_clusters
        return repr(self.ranking.names[i]) + ("" if k is None else f" (K = {k[i]})")

    def say_nothing(self) -> str:
        return (
            "Nothing to cluster: no clustering of the input is clearer than those that k-means "
            f"finds in clouds without clusters (difference in silhouette {self.gain:z.2f}, at "
            f"least {NOTHING:g} needed)."
        )

    def say_disagree(self) -> str:
        vote, ace = (self.named(self.pick_of(judge)) for judge in ("consensus", "ace"))
        return (
            f"The judges disagree: the consensus picks {vote}, ACE picks {ace}, and the two have "
            f"little in common (ARI {self.between:z.2f})."
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
            "by less than the variation between half-samples."
        )

    def say_alone(self) -> str:
        assert self.relative_agreement is not None
        praised = not self.by_vote
        few = self._few_resemble(praised, self.relative_agreement)
        return f"{self.best!r} is ranked first and stands alone: {few}"

    def _few_resemble(self, praised: bool, agreement: float) -> str:
        but = "it scores well in the selected embeddings, but " if praised else ""
        return f"{but}few other runs resemble it (mean agreement {agreement:z.2f} of the largest)."

    def say_first(self) -> str:
        """Who is first where there is nothing to cluster."""
        if self.unanimous:
            return self.say_unanimous()
        return f"{self.best!r} still ranks first."

    def say_unanimous(self) -> str:
        n = len(self.ranking.names)
        who = "Both runs" if n == 2 else f"All {n} runs"
        return (
            f"{who} found the same clustering, {self.named(self.at)}, so there is nothing to "
            "choose between."
        )

    def say_camps(self) -> str:
        assert self.camps is not None
        names, (first, second) = self.ranking.names, self.camps.members
        return (
            f"The runs fall into two camps that have little in common ({len(first)} and "
            f"{len(second)} runs, ARI {self.camps.between:z.2f} between them, at least "
            f"{self.camps.within:z.2f} within). Each may describe something real, a batch for "
            "instance; no judge can tell which you want. Best of each: "
            f"{names[first[0]]!r} and {names[second[0]]!r}. {self._what_tells_camps_apart()}"
        )

    def _what_tells_camps_apart(self) -> str:
        """Embeddings, numbers of clusters or parameters that only one camp has."""
        assert self.camps is not None
        names, params = self.ranking.names, self.ranking.params
        facts: dict[str, list[set[str]]] = {"embedding": [], "K": []}
        for camp in self.camps.members:
            facts["embedding"].append({self.made_in[i] for i in camp if self.made_in} - {""})
            ks = () if self.ranking.n_clusters is None else self.ranking.n_clusters[camp]
            facts["K"].append({str(k) for k in ks})
            for key in dict.fromkeys(k for i in camp for k in params.get(names[i], {})):
                values = {str(params.get(names[i], {}).get(key)) for i in camp}
                facts.setdefault(key, []).append(values)
        for what, sides in facts.items():
            if len(sides) == 2 and all(sides) and not sides[0] & sides[1]:
                first, second = (listing(sorted(side), most=3) for side in sides)
                return f"They differ in {what}: {first} against {second}."
        return "Neither embedding, K nor a parameter tells them apart."

    def say_clear(self) -> str:
        if self.unanimous:
            return self.say_unanimous()
        n = count(len(self.ranking.names), "run")
        if self.by_index:
            return f"{self.named(self.at)} is ranked first of {n}. {self.ranking.why_index}"
        return f"{self.named(self.at)} is ranked first of {n}. {self.say_share('It')}".rstrip()

    def say_share(self, who: str = "") -> str:
        """How often the best run comes first, and its K; nothing where there is too little."""
        n = int(self.same.sum())
        nearly = "" if self.equal.sum() == n else " or nearly so"
        by = f" {n} runs found it{nearly}." if n > 1 and not self.tied else ""
        if self.too_few:
            return by.strip()
        if self.sure is None or self.first_in is None:
            return f"How stable this is was not computed.{by}"
        n_draws = self.sure.n_draws
        times = f"{round(self.first_in * n_draws)} of {n_draws} half-samples"
        share = f"{who or repr(self.best)} comes first in {times}"
        return f"{share}{self._share_of_k(n_draws)}.{self._comes_first_more_often()}{by}"

    def _share_of_k(self, n_draws: int) -> str:
        """The share of K, and the least range round it that has most half-samples."""
        if self.ranking.n_clusters is None or len(self.ks) < 2:
            return ""
        k = int(self.ranking.n_clusters[self.at])
        own = self.k_first_in.get(k, 0.0)
        words = f", K = {k} in {round(own * n_draws)}"
        if own >= SETTLED:
            return words
        ks = sorted(self.k_first_in)
        spans = [
            (high - low, low, high, total)
            for low in ks
            for high in ks
            if low <= k <= high
            and (total := sum(v for x, v in self.k_first_in.items() if low <= x <= high)) >= SETTLED
        ]
        if not spans:
            return words
        _, low, high, total = min(spans)
        return f"{words}, K = {low} to {high} in {round(total * n_draws)}"

    def _comes_first_more_often(self) -> str:
        """Other runs that come first more often, and baselines that all pick another run."""
        assert self.sure is not None
        words, share = "", self.sure.first_in
        rival = max(self.ranking.order, key=lambda i: share[i])
        if share[rival] > share[self.at]:
            name = self.ranking.names[rival]
            words += f" {name!r} does more often, in {round(share[rival] * self.sure.n_draws)}."
        others = self.ranking.shown_baselines
        if others and all(self.ranking.ranks_by(name)[self.at] > 1 for name in others):
            words += " Every judge and baseline beside it picks another run."
        return words

    def remarks(self) -> Iterator[str]:
        """Sentences of the second line that do not depend on the headline."""
        yield from self._on_structure()
        yield from self._on_judges()
        yield from self._on_spaces()
        yield from self._on_runs()
        yield from self._on_certainty()
        if isinstance(self.ranking.result, Consensus) and not self.unanimous:
            yield from self.ranking.result.range_tried()

    def _on_structure(self) -> Iterator[str]:
        if self.gain is None:
            why = "that needs the input (X)"
            if self.structure is not None:
                why = "no clustering of the input has two clusters with 5 % of the objects or more"
            yield f"Whether there is anything to cluster was not tested: {why}."
        elif NOTHING <= self.gain < LITTLE:
            yield (
                "The clusterings of the input are little clearer than those that k-means finds in "
                f"clouds without clusters (difference in silhouette {self.gain:z.2f})."
            )

    def _on_judges(self) -> Iterator[str]:
        if self.between is not None and APART <= self.between < ASIDE:
            other = "ace" if self.by_vote else "consensus"
            who = "ACE" if other == "ace" else "The consensus"
            name = self.ranking.names[self.pick_of(other)]
            yield f"{who} picks {name!r}, which resembles it in part (ARI {self.between:z.2f})."
        if self.by_vote and self.vote is not None and "ace" in self.picks:
            pick = self.pick_of("ace")
            agreement = float(self.vote.relative_agreement[pick])
            if pick != self.at and agreement < ALONE:
                few = self._few_resemble(True, agreement)
                yield f"ACE's pick {self.ranking.names[pick]!r} stands alone: {few}"

    def _on_spaces(self) -> Iterator[str]:
        ace = self.ace
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
                f"correlation {ace.mean_correlation:z.2f})."
            )
        if self.by_vote and 1 < n < FEW_SPACES and runs > n:
            yield (
                f"The {self.n_distinct} different clusterings come from only {n} embeddings. Those "
                "made in the same one tend to agree, so their agreement is weaker evidence."
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
                "That equal runs agree does not make them right, and no other clustering was tried."
            )
        elif self.n_distinct == 2:
            yield "With only two different clusterings a ranking means little."
        elif self.n_distinct < FEWEST:
            yield (
                f"There are only {self.n_distinct} different clusterings; agreement on so few can "
                "be chance."
            )
        if self.ranking.coverage is not None:
            covered = float(self.ranking.coverage[self.at])
            if covered < COVERED:
                yield describe_coverage(covered, None if self.ace is None else self.ace.noise)
        edge = self.edge
        if edge:
            word, more = ("largest", "more") if edge > 0 else ("smallest", "fewer")
            k = int(self.ks[-1 if edge > 0 else 0])
            yield f"The best has the {word} K tried ({k}): try {more}."

    def _on_certainty(self) -> Iterator[str]:
        if self.worth is not None:
            yield self.worth.sentence()
        if self.sure is None or self.too_few:
            return
        low, high = self.sure.interval[self.at]
        if low > 1:
            yield (
                f"{self.best!r} has rank 1, but ranks {low:g} to {high:g} in "
                f"{self.sure.level:.0%} of the half-samples."
            )

    def say_next(self, kind: str) -> str:
        """One thing to do next."""
        if kind != "clear":
            return NEXT[kind]
        if self.unanimous:
            return "Next: look at its clusters, and add runs with other settings to compare."
        if self.edge:
            return f"Next: add runs with {'more' if self.edge > 0 else 'fewer'} clusters."
        if self.n_distinct < FEWEST:
            return "Next: add more runs; this is too few to be reliable."
        if self.ace is None:
            return "Next: rank again with embeddings, to see whether there is anything to cluster."
        if self.sure is None:
            return "Next: rank again with 100 half-samples, to see how stable this is."
        return NEXT[kind]
