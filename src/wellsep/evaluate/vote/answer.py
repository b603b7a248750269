"""Consensus: what a vote comes to as a frozen record, the arithmetic of votes, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wellsep._files.records import freeze
from wellsep._text.sentences import count
from wellsep.evaluate.answer import TOGETHER, Answer
from wellsep.evaluate.options import VoteOptions
from wellsep.evaluate.vote.rule import mean_agreement, vote_shares, with_index

MEASURES = {
    "ari": "adjusted Rand index",
    "ami": "adjusted mutual information",
    "nmi": "normalised mutual information",
}
# Two camps: share of the smaller one, and its runs; ARI within the looser one, and between them as
# a share of that.
CAMP, CAMP_RUNS, WITHIN, BETWEEN = 0.15, 3, 0.08, 0.2


class Camps(NamedTuple):
    """Two families of runs; the first has the best run."""

    members: tuple[np.ndarray, np.ndarray]  # positions of the runs, best first
    within: float  # the lesser mean ARI within a camp
    between: float  # mean ARI between them

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        """The camps by name, for the record."""
        first, second = ([names[i] for i in camp] for camp in self.members)
        return {"first": first, "second": second, "within": self.within, "between": self.between}


@dataclass(frozen=True, eq=False, kw_only=True)
class Consensus(Answer):
    """Partitions ranked by agreement with others of like K, and an index. Larger is better.

    Equal partitions are one: they form a class, have one vote, and each run has the score of its
    class.

    Attributes
    ----------
    classes : Classes
        The M partitions by name (``partitions``), and which of the D distinct ones each is.
    scores : ndarray of shape (M,)
        Mean agreement with the partitions nearest in K, times 1 + 2 index; the index alone with
        ``by_index``.
    options : VoteOptions
    agreement : ndarray of shape (D, D)
        Agreement of every two distinct partitions; 1 on the diagonal.
    weights : ndarray of shape (D,)
        What the vote of each distinct partition weighs.
    index : str
        The index that counts beside agreement: its name, "given", or empty for none.
    index_scores : ndarray of shape (D,) or None
        Its mean over the embeddings, larger is better, as it counts.
    bounded : bool
        Whether the index counts as it is; else by half its rank.
    unscored : ndarray of shape (D,) of bool or None
        Partitions without a score by the index, which count as the worst.
    by_index : bool
        Whether the index decides alone, since there are too few embeddings or partitions.
    n_objects : int
    n_clusters : ndarray of shape (M,)
        Without noise.
    coverage : ndarray of shape (M,)
        Share of the objects that a partition does not call noise.
    reasons : dict of partition name to a sentence
        Why a partition cannot be supported.
    notes : sentences on what was unusual
    """

    in_draws: ClassVar[str] = "vote"
    _facts: ClassVar[tuple[str, ...]] = (
        "partitions", "scores", "n_clusters", "coverage", "agreement", "weights", "index",
        "by_index", "n_objects", "options"
    )  # fmt: skip

    options: VoteOptions
    agreement: np.ndarray
    weights: np.ndarray
    index: str = ""
    index_scores: np.ndarray | None = None
    bounded: bool = True
    unscored: np.ndarray | None = None
    by_index: bool = False
    n_objects: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_distinct(self) -> int:
        """Number of distinct partitions."""
        return len(self.classes)

    @property
    def judge(self) -> str:
        """Which decides: "consensus" or "index"."""
        return "index" if self.by_index else "consensus"

    @property
    def defined_scores(self) -> np.ndarray:
        """(M,) the scores; where the index decides, NaN of a partition that has none."""
        if not self.by_index or self.unscored is None:
            return self.scores
        return np.where(self.unscored[self.classes.of], np.nan, self.scores)

    @cached_property
    def shares(self) -> np.ndarray:
        """(D, D) what vote j weighs for partition i."""
        assert self.n_clusters is not None
        return vote_shares(self.n_clusters[self.classes.first], self.weights)

    @cached_property
    def agreed(self) -> np.ndarray:
        """(D,) mean agreement of each distinct partition with those nearest to it in K."""
        return mean_agreement(self.agreement, self.shares)

    def score_by(self, agreed: np.ndarray, index: np.ndarray | None) -> np.ndarray:
        """(D,) scores by this rule, of agreement and an index in the full sample or in a draw."""
        return index if self.by_index and index is not None else with_index(agreed, index)

    @cached_property
    def relative_agreement(self) -> np.ndarray:
        """(M,) mean agreement with partitions of like K, as a share of the largest.

        NaN if no partition agrees with the others more than chance would.
        """
        largest = self.agreed.max()
        share = self.agreed / largest if largest > 0 else np.full(len(self.agreed), np.nan)
        return freeze(share[self.classes.of])

    @cached_property
    def camps(self) -> Camps | None:
        """Two families of runs that have little in common, where there are such.

        The sign of the leading eigenvector of the doubly centred agreements splits the runs.
        """
        agreement, of = self.agreement, self.classes.of
        if len(agreement) < 2 * CAMP_RUNS:
            return None
        means = agreement.mean(axis=0)
        centred = agreement - means - means[:, None] + means.mean()
        side = np.linalg.eigh(centred)[1][:, -1] > 0
        sides = side, ~side
        if min(one.sum() for one in sides) < max(CAMP_RUNS, CAMP * len(side)):
            return None
        sums = [agreement[np.ix_(one, one)].sum() - one.sum() for one in sides]
        pairs = [one.sum() * (one.sum() - 1) for one in sides]
        within = min(total / n for total, n in zip(sums, pairs, strict=True))
        between = float(agreement[np.ix_(side, ~side)].mean())
        if within <= WITHIN or between >= BETWEEN * within:
            return None
        in_first = side[of[self.order]] == side[of[self.order[0]]]
        return Camps((self.order[in_first], self.order[~in_first]), float(within), between)

    def matrix(self) -> np.ndarray:
        """(M, M) agreement of every two runs."""
        of = self.classes.of
        agreement: np.ndarray = self.agreement[np.ix_(of, of)]
        return agreement

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking as named columns, best first."""
        order = self.order
        columns: dict[str, list[Any]] = {
            "rank": self.rank[order].tolist(),
            "partition": [self.partitions[i] for i in order],
            "score": self.scores[order].tolist(),
            "relative_agreement": self.relative_agreement[order].tolist(),
        }
        if self.n_clusters is not None:
            columns["clusters"] = self.n_clusters[order].tolist()
        if self.coverage is not None and (self.coverage < 1).any():
            columns["coverage"] = self.coverage[order].tolist()
        if self.n_distinct < len(self.partitions):
            columns["equal_runs"] = self.classes.sizes[self.classes.of[order]].tolist()
        return columns

    def sentences(self) -> Iterator[str]:
        """Say who voted with which weight, who is best, and what this cannot see."""
        if self.n_distinct == 1:
            yield (
                f"{count(len(self.partitions), 'run')} of {count(self.n_objects, 'object')} are "
                "the same clustering, whatever their clusters are called: no vote was needed."
            )
        else:
            yield " ".join(self._how_voted())
            if self.notes:
                yield " ".join(self.notes)
            yield " ".join(self.best_in_words())
            if self.reasons:
                reasons = list(self.reasons.items())[:8]
                yield " ".join(f"{name!r}: {why}" for name, why in reasons)
        yield from self.range_tried()
        yield TOGETHER

    def _how_voted(self) -> Iterator[str]:
        yield (
            f"{count(len(self.partitions), 'run')} "
            f"({count(self.n_distinct, 'different clustering')}) of "
            f"{count(self.n_objects, 'object')} voted for each other by agreement "
            f"({MEASURES[self.options.agreement]})."
        )
        if self.by_index:
            yield f"The votes are shown only: {self.index}, its mean over the embeddings, decides."
        else:
            yield "Runs with about as many clusters vote, without the quarter that agrees least."
            if self.index_scores is not None:
                name = "the given index" if self.index == "given" else self.index
                yield f"The score is this agreement times 1 + 2 {name}."
        if self.coverage is not None and (self.coverage < 1).any():
            single = self.options.noise == "singletons"
            meaning = "clusters of one object" if single else "one more cluster"
            yield f"Noise (-1) counts as {meaning}."

    def range_tried(self) -> Iterator[str]:
        """Say which numbers of clusters can be ranked, since agreement sees no others."""
        if self.n_clusters is not None and (self.n_clusters >= 2).any():
            ks = self.n_clusters[self.n_clusters >= 2]
            if ks.min() == ks.max():
                yield f"Only K = {ks.min()} was tried, so no other K can be ranked."
            else:
                tried = f"{ks.min()} to {ks.max()}"
                yield f"Only the numbers of clusters that were tried ({tried}) can be ranked."

    def _printed(self) -> tuple[str, ...]:
        steps = self.best_in_words() if self.n_distinct > 1 else self.sentences()
        return (" ".join(steps),)
