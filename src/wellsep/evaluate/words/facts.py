"""The facts that a verdict rests on: who picks what, how alike, how often first, how supported."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from wellsep.runs.folder_names import natural_key

if TYPE_CHECKING:
    from wellsep.evaluate.judgement import Judgement
    from wellsep.evaluate.vote.answer import Consensus

# Thresholds, measured on open experiments; the guide says how.
NOTHING, LITTLE = 0.05, 0.12  # silhouette above that of a cloud without structure
APART, ASIDE = 0.5, 0.75  # ARI of the two judges' picks: they disagree; worth a word
SAME, ALIKE = 0.95, 0.75  # ARI from which on two partitions are one answer; much the same
SPREAD = 2.0  # standard deviations within which a gap between scores is no difference
ALONE = 0.75  # support under which a partition stands alone
CERTAIN, PROBABLE = 0.9, 0.6  # share of the draws in which the answer comes first
COVERED = 0.9  # share of the objects in clusters under which noise is pointed out
FEW_RUNS, FEW_SPACES, MANY_K = 5, 5, 3


class Facts:
    """The facts of one judgement."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement = judgement
        self.ranking = judgement.ranking
        self.vote: Consensus | None = judgement.vote
        self.best = self.ranking.best
        self.at = self.ranking.names.index(self.best)
        self.sure = self.ranking.confidence
        self.by_vote = judgement.judge == "consensus"
        self.n_distinct = len(self.ranking.classes)
        self.unanimous = self.n_distinct == 1

    @property
    def gain(self) -> float | None:
        """How much clearer the partitions are than k-means on a cloud; None if not tested."""
        found = self.judgement.structure
        return None if found is None else found.gain

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to cluster."""
        return self.gain is not None and self.gain < NOTHING

    @cached_property
    def picks(self) -> dict[str, tuple[int, ...]]:
        """Judge → the partitions it puts first."""
        found = {}
        ace = self.judgement.by_ace
        if ace is not None:
            found["ace"] = tuple(np.flatnonzero(ace.rank == 1).tolist())
        if self.vote is not None:
            found["consensus"] = tuple(np.flatnonzero(self.vote.rank == 1).tolist())
        return found

    @cached_property
    def between(self) -> float | None:
        """ARI of the two judges' picks; the largest where a judge has several."""
        if self.vote is None or len(self.picks) < 2:
            return None
        own = self.vote.classes.of
        rows, columns = own[list(self.picks["ace"])], own[list(self.picks["consensus"])]
        return float(self.vote.agreement[np.ix_(rows, columns)].max())

    @property
    def disagree(self) -> bool:
        """Whether ACE and the consensus pick different partitions."""
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
        """(M,) whether the draws move the score by more than its gap to the best."""
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
            if self.chance >= PROBABLE:
                return []
            often = self.sure.probability_best
            other = other | (often >= max(often[self.at], 1 / self.sure.n_draws))
        other = other & ~self.alike
        return [int(i) for i in self.ranking.first_of_each if other[i]]

    @cached_property
    def support(self) -> float | None:
        """The plain agreement of the others with the best, as a share of the largest."""
        if self.vote is None or self.n_distinct < 3:  # two support each other alike
            return None
        found = float(self.vote.support[self.at])
        return None if np.isnan(found) else found

    @property
    def alone(self) -> bool:
        """Whether few others agree with the best."""
        return self.support is not None and self.support < ALONE

    @cached_property
    def chance(self) -> float | None:
        """Share of the draws in which the best, or a partition much like it, comes first."""
        if self.sure is None:
            return None
        first = self.ranking.classes.first
        return float(min(1.0, self.sure.probability_best[first[self.alike[first]]].sum()))

    @property
    def ks(self) -> np.ndarray:
        """The numbers of clusters that were tried, two or more."""
        found = self.ranking.n_clusters
        return np.empty(0, dtype=np.intp) if found is None else np.unique(found[found >= 2])

    def pick_of(self, judge: str) -> int:
        """One of a judge's picks: the best itself, or the first by name."""
        own = self.picks[judge]
        return (
            self.at
            if self.at in own
            else min(own, key=lambda i: natural_key(self.ranking.names[i]))
        )

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
            "judge": self.judgement.judge,
            "best": self.best,
            "found_by": int(self.equal.sum()),
            "different_runs": self.n_distinct,
            "k_tried": [int(self.ks[0]), int(self.ks[-1])] if len(self.ks) else None,
            "picks": {judge: [names[i] for i in own] for judge, own in self.picks.items()},
            "ari_of_picks": self.between,
            "tied": [names[i] for i in self.tied],
            "support": self.support,
            "first_in": self.chance,
            "above_structureless": self.gain,
        }
