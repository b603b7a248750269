"""Consensus: what a vote comes to as a frozen record, the arithmetic of votes, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from wellsep._files.records import freeze
from wellsep._text.sentences import count, listing
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.options import VoteOptions
from wellsep.evaluate.ranks import average_ranks

NEAR = 0.9  # partitions that agree by at least this share one vote
DIFFERENT_K, K_RATIO = 3, 1.5  # from when on the number of clusters varies
MEASURES = {
    "ari": "adjusted Rand index",
    "ami": "adjusted mutual information",
    "nmi": "normalised mutual information",
}


def vote_weights(
    liked: np.ndarray | None, agreement: np.ndarray, tie_tolerance: float
) -> np.ndarray:
    """(D,) what each vote weighs: its squared rank by the first judge's scores, or 1.

    Near copies share one vote.
    """
    n = len(agreement)
    weights = np.ones(n)
    if liked is not None:
        weights = (average_ranks(liked, tolerance=tie_tolerance) / n) ** 2
    shared: np.ndarray = weights / (agreement >= NEAR).sum(axis=1)
    return shared


def mean_agreement(agreement: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(D,) weighted mean agreement with the others; 0 where no other has a vote.

    Examples
    --------
    >>> import numpy as np
    >>> mean_agreement(np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 0.0], [0.6, 0.0, 1.0]]), np.ones(3))
    array([0.4, 0.1, 0.3])
    """
    shares = np.tile(weights, (len(weights), 1))
    np.fill_diagonal(shares, 0.0)  # nobody votes for itself
    total = shares.sum(axis=1)
    found: np.ndarray = (shares * agreement).sum(axis=1) / np.where(total > 0, total, 1.0)
    return found


def k_varies(n_clusters: np.ndarray) -> bool:
    """Whether the numbers of clusters of the distinct partitions vary enough for a vote to decide.

    Of those with two clusters or more there are at least three different K, and their 90 % quantile
    is at least 1.5 times their 10 % quantile.

    Examples
    --------
    >>> import numpy as np
    >>> k_varies(np.array([5, 10, 20])), k_varies(np.array([9, 10, 10, 10, 11]))
    (True, False)
    """
    ks = n_clusters[n_clusters >= 2]
    if len(np.unique(ks)) < DIFFERENT_K:
        return False
    low, high = np.quantile(ks, [0.1, 0.9])
    return bool(high >= K_RATIO * low)


@dataclass(frozen=True, eq=False, kw_only=True)
class Consensus(Answer):
    """Partitions ranked by their agreement with the others. Larger scores are better.

    Equal partitions are one: they form a class, have one vote, and each run has the score of its
    class.

    Attributes
    ----------
    classes : Classes
        The M partitions by name (``partitions``), and which of the D distinct ones each is.
    scores : ndarray of shape (M,)
        Weighted mean agreement with the other distinct partitions.
    options : VoteOptions
    agreement : ndarray of shape (D, D)
        Agreement of every two distinct partitions; 1 on the diagonal.
    weights : ndarray of shape (D,)
        What the vote of each distinct partition weighs.
    first_judge : str
        Who weighed them first: "none", "ace" or "given".
    first_scores : ndarray of shape (M,) or None
        The first judge's scores.
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
        "partitions", "scores", "n_clusters", "coverage", "agreement", "weights", "first_judge",
        "n_objects", "options"
    )  # fmt: skip

    options: VoteOptions
    agreement: np.ndarray
    weights: np.ndarray
    first_judge: str = "none"
    first_scores: np.ndarray | None = None
    n_objects: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_distinct(self) -> int:
        """Number of distinct partitions."""
        return len(self.classes)

    @cached_property
    def relative_agreement(self) -> np.ndarray:
        """(M,) mean agreement with the others, all weighed alike, as a share of the largest.

        Near copies share a vote here too. NaN if no partition agrees with the others more than
        chance would.
        """
        alike = vote_weights(None, self.agreement, self.options.tie_tolerance)
        plain = mean_agreement(self.agreement, alike)
        largest = plain.max()
        share = plain / largest if largest > 0 else np.full(len(plain), np.nan)
        return freeze(share[self.classes.of])

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
        return (" ".join(step) for step in map(list, _explained(self)) if step)

    def _printed(self) -> tuple[str, ...]:
        steps = _answer(self) if self.n_distinct > 1 else self.sentences()
        return (" ".join(steps),)


def _explained(found: Consensus) -> Iterator[Iterator[str] | tuple[str, ...]]:
    if found.n_distinct == 1:
        yield (
            f"{count(len(found.partitions), 'run')} of {count(found.n_objects, 'object')} are the "
            "same partition, whatever their clusters are called: no vote was needed.",
        )
        yield _limits(found)
        return
    yield _question(found)
    yield found.notes
    yield _answer(found)
    yield tuple(f"{name!r}: {why}" for name, why in list(found.reasons.items())[:8])
    yield _limits(found)


def _question(found: Consensus) -> Iterator[str]:
    options = found.options
    yield (
        f"{count(len(found.partitions), 'run')} ({count(found.n_distinct, 'different partition')}) "
        f"of {count(found.n_objects, 'object')} voted for each other by agreement "
        f"({MEASURES[options.agreement]})."
    )
    if found.first_judge != "none":
        judge = "ACE" if found.first_judge == "ace" else "the given scores"
        yield f"A vote weighs by the square of its rank by {judge}."
    else:
        yield "All votes weigh the same."
    if found.coverage is not None and (found.coverage < 1).any():
        meaning = "one more cluster" if options.noise == "cluster" else "clusters of one object"
        yield f"Noise (-1) counts as {meaning}."


def _answer(found: Consensus) -> Iterator[str]:
    place, own = found.rank, found.classes.first
    best = [i for i in own if place[i] == 1]
    score = float(found.scores[best[0]])
    if len(best) > 1:
        yield f"Best, tied: {listing(repr(found.partitions[i]) for i in best)} (score {score:.4g})."
    else:
        equal = found.classes.members[found.classes.of[best[0]]]
        copies = [name for name in equal if name != found.best]
        same = f"; the same partition: {listing(map(repr, copies))}" if copies else ""
        yield f"Best: {found.best!r} (score {score:.4g}{same})."
    if len(best) < len(own):
        second = [i for i in own if place[i] == place[place > 1].min()]
        names = listing(repr(found.partitions[i]) for i in second)
        yield f"Next: {names} ({found.scores[second[0]]:.4g})."


def _limits(found: Consensus) -> Iterator[str]:
    if found.n_clusters is not None and (found.n_clusters >= 2).any():
        ks = found.n_clusters[found.n_clusters >= 2]
        tried = f"{ks.min()}" if ks.min() == ks.max() else f"{ks.min()} to {ks.max()}"
        yield f"Agreement sees no number of clusters beyond those that were tried ({tried})."
    yield "Partitions that share a mistake support each other: all judges can be wrong together."
