"""The verdict on a judgement in plain words: one function for terminal, page, explain and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

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
# What picks that came first in a range of shares of the half-samples were worth: in `lost_less`
# trials the pick had an ARI less than `loss` below that of the best run.
WORTH = (
    "In {trials} trials on {sets} data sets with known classes a pick came first in {low:.0%} to "
    "{high:.0%} of the half-samples: it was in the best quarter of the runs in {best_quarter} of "
    "the {trials}, above the median run in {above_median}, and lost less than {loss:.2f} ARI to "
    "the best in {lost_less}."
)


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

    The first of six kinds that holds makes the headline; others that hold are in the second line.
    ``vote`` is that of the partitions, whoever decides; ``made_in`` has the embedding of each run.
    """
    case = _Case(ranking, vote, structure, made_in)
    (kind, headline), *others = case.kinds()
    also = [sentence for _, sentence in others[:-1]]  # the last one is "clear"
    if kind == "nothing to cluster":
        also.insert(0, case.say_first())
    elif kind != "clear":
        also.append(case.say_share(repr(case.best)))
    second = tuple(s for s in (*also, agreed.why, *case.remarks()) if s)
    shared = agreed.to_facts()
    silent = agreed.why or (case.too_few and len(shared["contenders"]) < 2)  # no word on shares
    groups = "" if silent else " ".join(agreed.sentences())
    facts = case.to_dict() | shared
    return Verdict(kind, headline, second, case.say_next(kind), facts, groups)


@cache
def worth_table() -> list[dict[str, Any]]:
    """The shipped table, the largest shares first; made by experiments/votes/worth.py."""
    text = files("wellsep.evaluate.words").joinpath("worth.json").read_text(encoding="utf-8")
    return json.loads(text)


class _Case:
    """The facts of one judgement, and the sentences that they call for."""

    def __init__(
        self,
        ranking: Ranking,
        vote: Consensus | None,
        structure: Structure | None,
        made_in: Sequence[str] = (),
    ) -> None:
        self.ranking, self.vote, self.structure, self.made_in = ranking, vote, structure, made_in
        self.names, self.best, self.ace = ranking.names, ranking.best, ranking.by_ace
        self.at, n_clusters, sure = int(ranking.order[0]), ranking.n_clusters, ranking.confidence
        self.sure = sure
        self.by_vote, self.by_index = ranking.judge == "consensus", ranking.judge == "index"
        self.n_distinct = len(ranking.classes)
        self.unanimous = self.n_distinct == 1
        # Too few for any word on how stable the pick is.
        self.too_few = self.by_index or self.n_distinct < FEWEST
        known = structure is not None and not np.isnan(structure.gain)
        self.gain = structure.gain if structure is not None and known else None
        self.picks = {
            judge: np.flatnonzero(answer.rank == 1).tolist()
            for judge, answer in (("ace", self.ace), ("consensus", vote))
            if answer is not None
        }
        self.camps = None if vote is None else vote.camps
        # ARI of the two judges' picks, and (M,) of each partition with the best one.
        self.between: float | None = None
        likeness = np.ones(len(self.names))
        if vote is not None:
            of = vote.classes.of
            likeness = vote.agreement[of[self.at], of]
            if len(self.picks) == 2 and not self.by_index:
                pairs = np.ix_(of[self.picks["ace"]], of[self.picks["consensus"]])
                self.between = float(vote.agreement[pairs].max())
        self.alike = likeness >= ALIKE
        self.n_same = int((likeness >= SAME).sum())
        self.n_equal = int(ranking.classes.equal_to(self.at).sum())
        # Shares of the half-samples in which the best, one much like it, or its K comes first.
        self.first_in = self.chance = None
        self.worth: dict[str, Any] | None = None
        self.k_first_in: dict[int, float] = {}
        if sure is not None:
            first = ranking.classes.first
            self.first_in = float(sure.first_in[self.at])
            self.chance = float(min(1.0, sure.first_in[first[self.alike[first]]].sum()))
            self.k_first_in = {} if n_clusters is None else sure.share_of_k(n_clusters)
            if not self.too_few and self.by_vote and self.ace is not None:
                self.worth = next(row for row in worth_table() if self.first_in >= row["low"])
        self.tied = self._tied()
        # The plain agreement of the others with the best, as a share of the largest.
        self.relative_agreement: float | None = None
        if vote is not None and self.n_distinct > 2:  # two support each other alike
            share = float(vote.relative_agreement[self.at])
            self.relative_agreement = None if np.isnan(share) else share
        self.k = None if n_clusters is None else int(n_clusters[self.at])
        self.ks = [] if n_clusters is None else np.unique(n_clusters[n_clusters >= 2]).tolist()
        # 1 if the best has the largest K tried, -1 if the smallest; 2 is no edge.
        self.edge = 0
        if len(self.ks) >= MANY_K:
            self.edge = int(self.k == self.ks[-1]) - int(self.k == self.ks[0] > 2)

    def _tied(self) -> list[int]:
        """Other answers that may as well be the best: close by score, or as often first."""
        if self.chance is not None and self.chance >= SETTLED:
            return []
        score, sure = self.ranking.score, self.sure
        spread = 0.0 if sure is None or sure.gap_sd is None else sure.gap_sd
        other = (score[self.at] - score <= SPREAD * spread) | (self.ranking.rank == 1)
        if sure is not None:
            other |= sure.first_in >= max(sure.first_in[self.at], 1 / sure.n_draws)
        other &= ~self.alike
        return [int(i) for i in self.ranking.first_of_each if other[i]]

    def to_dict(self) -> dict[str, Any]:
        """The numbers behind the words."""
        return {
            "judge": self.ranking.judge,
            "best": self.best,
            "found_by": self.n_equal,
            "different_runs": self.n_distinct,
            "k_tried": [self.ks[0], self.ks[-1]] if self.ks else None,
            "picks": {judge: [self.names[i] for i in own] for judge, own in self.picks.items()},
            "ari_of_picks": self.between,
            "tied": [self.names[i] for i in self.tied],
            "relative_agreement": self.relative_agreement,
            "first_in": self.first_in,
            "first_in_with_its_like": self.chance,
            "first_in_by_k": self.k_first_in,
            "worth": self.worth,
            "camps": None if self.camps is None else self.camps.to_dict(self.names),
            "above_structureless": self.gain,
        }

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Each kind that holds, in their order, and the sentence that says so."""
        if self.structure is not None and self.structure.is_nothing:
            text = (
                "Nothing to cluster: no clustering of the input is clearer than those that k-means "
                f"finds in clouds without clusters (difference in silhouette {self.gain:z.2f}, at "
                f"least {NOTHING:g} needed)."
            )
            yield "nothing to cluster", text
        if self.camps is not None:
            yield "two camps", self._say_camps(self.camps)
        if self.between is not None and self.between < APART:
            vote, ace = (self._named(self._pick_of(judge)) for judge in ("consensus", "ace"))
            text = (
                f"The judges disagree: the consensus picks {vote}, ACE picks {ace}, and the two "
                f"have little in common (ARI {self.between:z.2f})."
            )
            yield "judges disagree", text
        if self.tied:
            yield "practically tied", self._say_tied()
        if self.relative_agreement is not None and self.relative_agreement < ALONE:
            few = _few_resemble(self.relative_agreement, praised=not self.by_vote)
            yield "stands alone", f"{self.best!r} is ranked first and stands alone: {few}"
        yield "clear", self._say_clear()

    def _pick_of(self, judge: str) -> int:
        """One of a judge's picks: the best itself, or the first by name."""
        answer = self.ace if judge == "ace" else self.vote
        assert answer is not None
        return self.at if self.at in self.picks[judge] else int(answer.order[0])

    def _named(self, i: int) -> str:
        k = self.ranking.n_clusters
        return repr(self.names[i]) + ("" if k is None else f" (K = {k[i]})")

    def _say_camps(self, camps: Camps) -> str:
        first, second = camps.members
        return (
            f"The runs fall into two camps that have little in common ({len(first)} and "
            f"{len(second)} runs, ARI {camps.between:z.2f} between them, at least "
            f"{camps.within:z.2f} within). Each may describe something real, a batch for "
            "instance; no judge can tell which you want. Best of each: "
            f"{self.names[first[0]]!r} and {self.names[second[0]]!r}. "
            f"{self._what_tells_apart(camps)}"
        )

    def _what_tells_apart(self, camps: Camps) -> str:
        """Embeddings, numbers of clusters or parameters that only one camp has."""
        facts: dict[str, list[set[str]]] = {"embedding": [], "K": []}
        for camp in camps.members:
            facts["embedding"].append({self.made_in[i] for i in camp if self.made_in} - {""})
            ks = () if self.ranking.n_clusters is None else self.ranking.n_clusters[camp]
            facts["K"].append({str(k) for k in ks})
            params = [self.ranking.params.get(self.names[i], {}) for i in camp]
            for key in dict.fromkeys(key for one in params for key in one):
                facts.setdefault(key, []).append({str(one.get(key)) for one in params})
        for what, sides in facts.items():
            if len(sides) == 2 and all(sides) and not sides[0] & sides[1]:
                first, second = (listing(sorted(side), most=3) for side in sides)
                return f"They differ in {what}: {first} against {second}."
        return "Neither embedding, K nor a parameter tells them apart."

    def _say_tied(self) -> str:
        found = f" (found by {self.n_equal} runs)" if self.n_equal > 1 else ""
        tied = (repr(self.names[i]) for i in self.tied)
        names = listing((f"{self.best!r}{found}", *tied), most=4)
        if self.sure is None:
            return f"Practically tied: {names} have the same score."
        return (
            f"Practically tied: {names}. These are different clusterings, and their scores differ "
            "by less than the variation between half-samples."
        )

    def _say_clear(self) -> str:
        if self.unanimous:
            return self._say_unanimous()
        why = self.ranking.why_index or self.say_share("It")
        n = count(len(self.names), "run")
        return f"{self._named(self.at)} is ranked first of {n}. {why}".rstrip()

    def _say_unanimous(self) -> str:
        n = len(self.names)
        return (
            f"{'Both' if n == 2 else f'All {n}'} runs found the same clustering, "
            f"{self._named(self.at)}, so there is nothing to choose between."
        )

    def say_first(self) -> str:
        """Who is first where there is nothing to cluster."""
        return self._say_unanimous() if self.unanimous else f"{self.best!r} still ranks first."

    def say_share(self, who: str) -> str:
        """How often the best run comes first, and its K; nothing where there is too little."""
        n, sure = self.n_same, self.sure
        nearly = "" if self.n_equal == n else " or nearly so"
        by = f" {n} runs found it{nearly}." if n > 1 and not self.tied else ""
        if self.too_few:
            return by.strip()
        if sure is None or self.first_in is None:
            return f"How stable this is was not computed.{by}"
        times = f"{round(self.first_in * sure.n_draws)} of {sure.n_draws} half-samples"
        if self.k is not None and len(self.ks) > 1:
            times += f", K = {self.k} in {round(self.k_first_in.get(self.k, 0.0) * sure.n_draws)}"
        words = f"{who} comes first in {times}."
        rival = max(self.ranking.order, key=lambda i: sure.first_in[i])
        if sure.first_in[rival] > self.first_in:
            often = round(sure.first_in[rival] * sure.n_draws)
            words += f" {self.names[rival]!r} does more often, in {often}."
        others = self.ranking.shown_baselines
        if others and all(self.ranking.ranks_by(name)[self.at] > 1 for name in others):
            words += " Every judge and baseline beside it picks another run."
        return words + by

    def remarks(self) -> Iterator[str]:
        """Sentences of the second line that do not depend on the headline."""
        yield from self._on_structure()
        yield from self._on_judges()
        yield from self._on_spaces()
        yield from self._on_runs()
        if self.worth is not None:
            yield WORTH.format(**self.worth)
        if self.sure is not None and not self.too_few:
            low, high = self.sure.interval[self.at]
            if low > 1:
                yield (
                    f"{self.best!r} has rank 1, but ranks {low:g} to {high:g} in "
                    f"{self.sure.level:.0%} of the half-samples."
                )
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
            who, judge = ("ACE", "ace") if self.by_vote else ("The consensus", "consensus")
            name = self.names[self._pick_of(judge)]
            yield f"{who} picks {name!r}, which resembles it in part (ARI {self.between:z.2f})."
        if self.by_vote and self.vote is not None and self.ace is not None:
            pick = self._pick_of("ace")
            agreement = float(self.vote.relative_agreement[pick])
            if pick != self.at and agreement < ALONE:
                few = _few_resemble(agreement, praised=True)
                yield f"ACE's pick {self.names[pick]!r} stands alone: {few}"

    def _on_spaces(self) -> Iterator[str]:
        ace = self.ace
        if ace is None:
            return
        n = len(ace.spaces)
        if n == 1:
            yield "There is one embedding only, and no other can confirm it."
        elif not self.by_vote and len(ace.winner.spaces) == 1:
            yield "One embedding alone gives the answer, and no other confirms it."
        together = None if self.by_vote else ace.mean_correlation
        if together is not None and together < 0:
            yield (
                "The embeddings that give the answer rank the runs in opposite ways (mean "
                f"correlation {together:z.2f})."
            )
        if self.by_vote and 1 < n < FEW_SPACES and len(self.names) > n:
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
        if self.edge:
            word, more = ("largest", "more") if self.edge > 0 else ("smallest", "fewer")
            yield f"The best has the {word} K tried ({self.k}): try {more}."

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


def _few_resemble(agreement: float, *, praised: bool) -> str:
    but = "it scores well in the selected embeddings, but " if praised else ""
    return f"{but}few other runs resemble it (mean agreement {agreement:z.2f} of the largest)."
