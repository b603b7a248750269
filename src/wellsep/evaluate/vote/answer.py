"""Consensus: partitions ranked by how far others with about as many clusters agree with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wellsep._checks.arrays import check_numbers, is_dask
from wellsep._files.records import freeze
from wellsep._text.sentences import count, listing, shown
from wellsep.compute.statistics.contingency import PairCounts
from wellsep.evaluate.answer import TOGETHER, Answer
from wellsep.evaluate.options import VoteOptions
from wellsep.evaluate.ranks import TIE
from wellsep.evaluate.scores import NothingToRank
from wellsep.evaluate.vote import rule
from wellsep.indices import INDICES
from wellsep.indices.external import AGREEMENTS
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs

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
    n_clusters: np.ndarray
    coverage: np.ndarray
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
        return rule.vote_shares(self.n_clusters[self.classes.first], self.weights)

    @cached_property
    def agreed(self) -> np.ndarray:
        """(D,) mean agreement of each distinct partition with those nearest to it in K."""
        return rule.mean_agreement(self.agreement, self.shares)

    def score_by(self, agreed: np.ndarray, index: np.ndarray | None) -> np.ndarray:
        """(D,) scores by this rule, of agreement and an index in the full sample or in a draw."""
        return index if self.by_index and index is not None else rule.with_index(agreed, index)

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
        return self.agreement[np.ix_(of, of)]

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking as named columns, best first."""
        order = self.order
        columns: dict[str, list[Any]] = {
            "rank": self.rank[order].tolist(),
            "partition": [self.partitions[i] for i in order],
            "score": self.scores[order].tolist(),
            "relative_agreement": self.relative_agreement[order].tolist(),
            "clusters": self.n_clusters[order].tolist(),
        }
        if (self.coverage < 1).any():
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
        if (self.coverage < 1).any():
            single = self.options.noise == "singletons"
            meaning = "clusters of one object" if single else "one more cluster"
            yield f"Noise (-1) counts as {meaning}."

    def range_tried(self) -> Iterator[str]:
        """Say which numbers of clusters can be ranked, since agreement sees no others."""
        ks = self.n_clusters[self.n_clusters >= 2]
        if len(set(ks)) > 1:
            tried = f"{ks.min()} to {ks.max()}"
            yield f"Only the numbers of clusters that were tried ({tried}) can be ranked."
        elif len(ks):
            yield f"Only K = {ks[0]} was tried, so no other K can be ranked."

    def _printed(self) -> tuple[str, ...]:
        steps = self.best_in_words() if self.n_distinct > 1 else self.sentences()
        return (" ".join(steps),)


def consensus(
    runs: Any,
    *,
    index: Any = None,
    agreement: str = "ari",
    noise: str = "cluster",
    tie_tolerance: float = TIE,
    n_jobs: int | None = None,
) -> Consensus:
    """Rank partitions by how far others with about as many clusters agree with them.

    Each distinct partition has one vote; near copies (an agreement of at least .9) have at most
    four together. The agreement of a partition is its mean agreement with those nearest to it in
    ln K, of whom 30 vote, without the quarter that agrees least. An index multiplies it: the score
    is the agreement times 1 + 2 ``index``. All can be wrong together, and agreement sees no number
    of clusters beyond those that were tried.

    Parameters
    ----------
    runs : Runs, mapping of names to label vectors, data frame, or array of shape (M, n)
        Each column of a frame and each row of an array is a partition. Vectors on a GPU or on Dask
        are brought into memory.
    index : mapping of names to scores, or array of shape (M,), optional
        What an index says of each partition, such as its mean silhouette over all embeddings.
        Larger is better; an array has them in the order of the runs. Below its median it counts
        as the median. Values outside -1 to 1 count by half their rank, as a share of the number of
        partitions. By default agreement alone decides.
    agreement : {"ari", "ami", "nmi"}
        How two partitions are compared. "nmi" favours many clusters: use it beside the others.
    noise : {"cluster", "singletons"}
        What the label -1 means: one more cluster, or each such object a cluster of its own (not
        with "nmi", which would reward it).
    tie_tolerance : float
        Relative difference under which two scores are equal.
    n_jobs : int, optional
        Threads that count; by default as many as BLAS would use. The result does not depend on it.

    Returns
    -------
    Consensus

    Raises
    ------
    NothingToRank
        With fewer than two distinct partitions.

    References
    ----------
    Hubert, Arabie (1985), "Comparing partitions", Journal of Classification 2.
    Vinh, Epps, Bailey (2010), "Information theoretic measures for clusterings comparison",
    Journal of Machine Learning Research 11. Strehl, Ghosh (2002), "Cluster ensembles", same
    journal 3, rank partitions by their mean NMI with the others. The rule and its constants were
    chosen on runs with known classes; the guide on the consensus says how.

    Examples
    --------
    >>> import wellsep as ws
    >>> found = ws.consensus({"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 2, 2],
    ...                       "c": [0, 0, 0, 0, 1, 1], "copy of a": [5, 5, 5, 2, 2, 2]})
    >>> found.best, found.scores.round(4).tolist()
    ('c', [0.297, 0.3771, 0.4044, 0.297])
    >>> found.classes.members
    (('a', 'copy of a'), ('b',), ('c',))
    """
    options = VoteOptions(agreement=agreement, noise=noise, tie_tolerance=tie_tolerance)
    partitions = Partitions.from_labels(labels_of(runs), noise=noise)
    if isinstance(runs, Partitions):  # encoded before, perhaps with noise left out
        partitions = partitions.noise_as_cluster()
    counts = PairCounts.of_codes(partitions.codes, n_jobs=n_jobs)
    classes = Classes.from_equal(partitions.names, counts.first_equal)
    refuse_too_few(classes)
    clusters = partitions.clusters_only()
    if index is None:
        return hold_vote(clusters, counts, classes, options)
    given = numbers_of_runs("index", index, classes.names, "score")
    means = (np.bincount(classes.of, given) / classes.sizes)[classes.of]
    return hold_vote(clusters, counts, classes, options, "given", means)


def hold_vote(
    partitions: Partitions,
    counts: PairCounts,
    classes: Classes,
    options: VoteOptions,
    index: str = "",
    index_scores: np.ndarray | None = None,
    *,
    by_index: bool = False,
) -> Consensus:
    """Let partitions vote; with ``by_index`` the index decides, and the votes are shown.

    Noise is in no cluster of the ``partitions``, and counted as one cluster in the ``counts``.
    ``index_scores`` (M,) are the same for equal partitions, and NaN where there are none.
    """
    agreement = AGREEMENTS[options.agreement](counts.subset(classes.first))
    scaled, bounded, unscored = None, True, None
    if index_scores is not None:
        means = index_scores[classes.first]
        unscored = freeze(np.isnan(means))
        means = np.where(unscored, np.nanmin(means), means)
        in_range = np.abs(means).max() <= 1
        if index in INDICES:
            in_range = INDICES[index].range == (-1, 1)
        bounded = by_index or bool(in_range)
        scaled = freeze(rule.on_one_scale(means, bounded=bounded, tolerance=options.tie_tolerance))
    vote = Consensus(
        classes=classes,
        distinct_scores=freeze(np.ones(1)),
        options=options,
        agreement=freeze(agreement),
        weights=freeze(rule.vote_weights(agreement)),
        index=index,
        index_scores=scaled,
        bounded=bounded,
        unscored=unscored,
        by_index=by_index,
        n_objects=counts.n,
        n_clusters=freeze(partitions.n_clusters),
        coverage=freeze(partitions.coverage),
    )
    if len(classes) == 1:
        return vote
    return replace(
        vote,
        distinct_scores=freeze(vote.score_by(vote.agreed, scaled)),
        reasons=_reasons(partitions, counts),
        notes=tuple(_notes(classes, agreement)),
    )


def labels_of(runs: Any) -> Any:
    """Labels of runs, or what holds labels already; refuses arrays that lie the wrong way."""
    if isinstance(runs, Runs):
        labels = dict(runs.partitions)
        if not labels:
            raise NothingToRank("There must be at least 2 clusterings (labels), got none.")
        return labels
    runs = runs.compute() if is_dask(runs) else runs
    shape = getattr(runs, "shape", ())
    shape = shape if isinstance(shape, tuple) else ()
    frame = hasattr(runs, "columns")
    if not isinstance(runs, Mapping | list | tuple | Partitions) and len(shape) != 2:
        raise TypeError(
            "runs must be Runs, label vectors by name, a data frame, or an array with a row per "
            f"clustering, got {shown(runs)}."
        )
    if len(shape) == 2 and not frame and shape[0] > 1000 and shape[0] > shape[1]:
        raise ValueError(
            f"runs must have one row per clustering, got {shape[0]:,} rows of {shape[1]:,} "
            "objects; transpose the array, or pass a data frame with a column per clustering."
        )
    return dict(runs) if isinstance(runs, Mapping) else runs


def refuse_too_few(classes: Classes) -> None:
    """Refuse one partition, also if there are copies of it."""
    n = len(classes.names)
    if n == 1:
        raise NothingToRank(
            "There must be at least 2 clusterings to compare, got 1 "
            f"({classes.names[0]!r}); add runs."
        )
    if len(classes) == 1:
        raise NothingToRank(
            f"The clusterings are identical: all {n} runs are the same clustering, "
            "whatever their clusters are called; add runs that differ."
        )


def numbers_of_runs(name: str, given: Any, runs: tuple[str, ...], what: str) -> np.ndarray:
    """(M,) finite scores or weights, given by name or in the order of the runs."""
    if isinstance(given, Mapping):
        missing = [run for run in runs if run not in given]
        if missing:
            raise ValueError(
                f"{name} must have a {what} for every clustering, got none for "
                f"{listing(map(repr, missing[:3]))}."
            )
        given = [given[run] for run in runs]
    numbers = check_numbers(name, given)
    if numbers.shape != (len(runs),):
        raise ValueError(
            f"{name} must have one {what} per clustering ({len(runs)}), got shape {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        where = runs[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise ValueError(f"{name} must have finite {what}s, got none for {where!r}.")
    return freeze(numbers, float)


def _reasons(partitions: Partitions, counts: PairCounts) -> dict[str, str]:
    noise, one = "It calls every object noise", "It has one cluster"
    return {
        name: f"{noise if covered == 0 else one}, so it tells no objects apart."
        for name, covered, sizes in zip(
            partitions.names, partitions.coverage, counts.sizes, strict=True
        )
        if covered == 0 or len(sizes) == 1
    }


def _notes(classes: Classes, agreement: np.ndarray) -> Iterator[str]:
    n, distinct = len(classes.names), len(classes)
    if distinct < n:
        yield (
            f"{count(n - distinct, 'run')} of {n} "
            f"{'equals' if n - distinct == 1 else 'equal'} another one; equal clusterings "
            f"have one vote, so {distinct} vote."
        )
    if distinct == 2:
        yield (
            "There are two different clusterings only. Each is compared with the other, "
            "so both have the same agreement: it ranks neither first."
        )
    close = int((agreement >= rule.NEAR).sum(axis=1).max())
    if close > rule.COPIES:
        yield (
            f"Up to {close} of {distinct} clusterings are near copies (agreement of at least "
            f"{rule.NEAR:g}); such copies have {rule.COPIES:g} votes together."
        )
