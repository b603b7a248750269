"""ChosenK: what every index says on every number of clusters, and the answer that follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep._files.records import Result
from wellsep.cluster.k_choice import sentences as choice_words
from wellsep.cluster.k_choice.criteria import CRITERIA, Curve, median_vote
from wellsep.indices.gap import gain_over_one

GATE = 3.0  # standard errors of the gap statistic by which some K must beat one cluster


@dataclass(frozen=True, eq=False)
class ChosenK(Result, row_names="k"):
    """What `choose_k` found; R repeats, nK numbers of clusters, I indices that vote.

    ``save(folder)`` writes it like every other record: ``record.json`` and one archive of arrays.
    ``load(folder)`` reads it back. Folders with ``chosen-k.json``, written before, are refused.

    Attributes
    ----------
    k : ndarray of shape (nK,)
        The numbers of clusters tried, without those that could not be fitted.
    indices : tuple of str
        The indices, with their parameters.
    directions : ndarray of shape (I,)
        1 where greater is better, -1 where smaller is.
    values : ndarray of shape (R, nK, I)
        Scores as computed; NaN where undefined (`reasons` says why). Prediction strength, gap and
        the mixture's BIC are computed once and stand in the first repeat.
    at_one : ndarray of shape (I,)
        The value for one cluster, where an index has one, else NaN.
    n_clusters, coverage, seconds : ndarray of shape (R, nK)
        Clusters found, share of objects counted, time of the fit.
    stability : ndarray of shape (nK,)
        Mean adjusted Rand index between the partitions of any two repeats; NaN without repeats.
    labels : ndarray of shape (nK, n)
        The partitions of the first repeat.
    objects : ndarray of shape (n,)
        The rows of X these labels belong to; all of them unless subsampled.
    estimator, parameter : str
        What was fitted, and its parameter that holds K.
    gap_k, gap, gap_error : ndarray of shape (nG,)
        The gap statistic with K = 1 first, and its standard errors; empty if it was not computed.
    not_tested : str
        Why it was not tested whether there is more than one cluster; empty if it was.
    first_end : int
        The largest K of the range before it was extended.
    n_sampled : int
        Objects that gap statistic, prediction strength and mixture were computed on.
    skewness : float
        The largest skewness of a column, without its sign; of sparse X that of a principal axis; 0
        where X has no columns.
    all_equal : bool
        Whether all objects are equal.
    reasons : mapping (K, index) -> str
        Why a score is undefined.
    failures : mapping K -> str
        The numbers of clusters that could not be fitted, and why.
    """

    k: np.ndarray
    indices: tuple[str, ...]
    directions: np.ndarray
    values: np.ndarray
    at_one: np.ndarray
    n_clusters: np.ndarray
    coverage: np.ndarray
    seconds: np.ndarray
    stability: np.ndarray
    labels: np.ndarray
    objects: np.ndarray
    estimator: str
    parameter: str
    gap_k: np.ndarray
    gap: np.ndarray
    gap_error: np.ndarray
    not_tested: str
    first_end: int
    n_sampled: int
    skewness: float = 0.0
    all_equal: bool = False
    reasons: Mapping[tuple[int, str], str] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)

    @property
    def mean(self) -> np.ndarray:
        """(nK, I): mean over the repeats in which a score is defined."""
        defined = ~np.isnan(self.values)
        total = np.where(defined, self.values, 0.0).sum(axis=0)
        counts = defined.sum(axis=0)
        return np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)

    @property
    def spread(self) -> np.ndarray:
        """(nK, I): standard deviation over the repeats; NaN with fewer than two."""
        defined = ~np.isnan(self.values)
        counts = defined.sum(axis=0)
        squares = np.where(defined, (self.values - self.mean) ** 2, 0.0).sum(axis=0)
        variance = np.divide(
            squares, counts - 1, out=np.full(squares.shape, np.nan), where=counts > 1
        )
        return np.sqrt(variance)

    @property
    def gain(self) -> tuple[float, int] | None:
        """The largest (Gap(K) − Gap(1)) / s(K), and its K; None if it was not tested."""
        gains = gain_over_one(self.gap, self.gap_error) if len(self.gap) else np.empty(0)
        if self.not_tested or np.isnan(gains).all():
            return None
        at = int(np.nanargmax(gains))
        return float(gains[at]), int(self.gap_k[1 + at])

    @property
    def structure(self) -> bool | None:
        """Whether some K beats one cluster by more than 3 standard errors; None if not tested."""
        if self.all_equal:
            return False
        return None if self.gain is None else self.gain[0] > GATE

    @property
    def picks(self) -> dict[str, int | None]:
        """The K each index likes best by its mean; None where it is undefined for every K."""
        return {name: self._pick(i, name) for i, name in enumerate(self.indices)}

    @property
    def picks_by_repeat(self) -> np.ndarray:
        """(R, I): the K of each index's best value in each repeat; 0 where there is none."""
        found = np.stack([_best(values * self.directions) for values in self.values])
        return np.where(found >= 0, self.k[found], 0)

    @property
    def wants_more(self) -> tuple[str, ...]:
        """Indices whose pick is the largest K tried: they have no vote, but want more."""
        if len(self.k) < 2:
            return ()
        return tuple(name for name, k in self.picks.items() if k == self.k[-1])

    @property
    def voters(self) -> dict[str, int]:
        """The K that each index votes for; indices that want more have no vote."""
        more = self.wants_more
        return {n: k for n, k in self.picks.items() if k is not None and n not in more}

    @property
    def votes(self) -> dict[int, int]:
        """K -> number of indices that vote for it; 1 is there if an index votes for it."""
        votes = list(self.voters.values())
        tried = [*({1} & set(votes) - set(self.k.tolist())), *self.k.tolist()]
        return {int(k): votes.count(k) for k in tried}

    @property
    def voted(self) -> int:
        """The median of the votes, of two in the middle the smaller.

        Indices that want more stand above all votes; if one of them is in the middle, it is the
        largest K tried.
        """
        if not (self.voters or self.wants_more):
            raise ValueError(
                f"indices must be defined for some K of k_range, got none; "
                f"{'; '.join(sorted(set(self.reasons.values())))}."
            )
        return median_vote([*self.voters.values(), *[int(self.k[-1])] * len(self.wants_more)])

    @property
    def best(self) -> int:
        """1 if no K beats one cluster by more than 3 standard errors, else `voted`."""
        return 1 if self.structure is False else self.voted

    @property
    def best_above_one(self) -> int:
        """The K to look at if one cluster is no answer for you: the vote without votes for 1."""
        above = [k for k in self.voters.values() if k > 1]
        if above:
            return median_vote(above)
        if self.wants_more:
            return int(self.k[-1])
        return int(self.k[self.k > 1][0]) if (self.k > 1).any() else int(self.k[0])

    def labels_for(self, k: int | None = None) -> np.ndarray:
        """The partition of the first repeat with k clusters, of the best K by default."""
        k = self.best if k is None else check_count("k", k, 0)
        where = np.flatnonzero(self.k == k)
        if len(where):
            found: np.ndarray = self.labels[where[0]]
            return found
        if k == 1:
            return np.zeros(self.labels.shape[1], dtype=self.labels.dtype)
        raise ValueError(f"k must be among {self.k.tolist()}, got {k}.")

    def columns(self) -> dict[str, list[Any]]:
        """Return the mean of each index for each K, with repeats its spread."""
        columns: dict[str, list[Any]] = {"k": self.k.tolist()}
        repeated = len(self.values) > 1
        for position, name in enumerate(self.indices):
            columns[name] = self.mean[:, position].tolist()
            if repeated:
                columns[f"{name} ±"] = self.spread[:, position].tolist()
        if repeated:
            columns["stability"] = self.stability.tolist()
        votes = self.votes
        columns["votes"] = [votes[k] for k in self.k.tolist()]
        columns["n_clusters"] = self.n_clusters.mean(axis=0).tolist()
        columns["coverage"] = self.coverage.mean(axis=0).tolist()
        columns["seconds"] = self.seconds.mean(axis=0).tolist()
        return columns

    def curves(self) -> dict[str, dict[str, Any]]:
        """What a plot of scores over K needs, index by index."""
        spread = np.nan_to_num(self.spread)
        return {
            name: {
                "direction": int(self.directions[i]),
                "k": self.k.tolist(),
                "mean": self.mean[:, i].tolist(),
                "low": (self.mean - spread)[:, i].tolist(),
                "high": (self.mean + spread)[:, i].tolist(),
                "pick": self.picks[name],
            }
            for i, name in enumerate(self.indices)
        }

    def sentences(self) -> Iterator[str]:
        """Say whether there is more than one cluster, who votes for what, what to be wary of."""
        return iter(choice_words.explanation(self))

    def answer(self) -> tuple[str, ...]:
        """Return the answer in one or two sentences, the first lines of `explain`."""
        return tuple(choice_words.answer(self))

    def cautions(self) -> tuple[str, ...]:
        """Return what to be wary of, the last lines of `explain`."""
        return tuple(choice_words.cautions(self))

    _printed = answer

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, the votes and the curves, as ``--json`` prints them."""
        gain, curves = self.gain, self.curves()
        return {
            "best": self.best,
            "structure": self.structure,
            "gain": None if gain is None else {"value": gain[0], "k": gain[1]},
            "not_tested": self.not_tested or None,
            "best_above_one": self.best_above_one,
            "picks": self.picks,
            "votes": self.votes,
            "wants_more": self.wants_more,
            "failures": self.failures,
            "indices": [{"name": name, **curves[name]} for name in self.indices],
            "stability": self.stability,
            "n_clusters": self.n_clusters,
            "coverage": self.coverage,
            "undefined": [
                {"k": k, "index": name, "reason": why} for (k, name), why in self.reasons.items()
            ],
            "explanation": list(self.sentences()),
        }

    def _pick(self, position: int, name: str) -> int | None:
        values = self.mean[:, position]
        if name not in CRITERIA:
            (at,) = _best((values * self.directions[position])[:, None])
            return int(self.k[at]) if at >= 0 else None
        curve = self.curve_of(name)
        return CRITERIA[name].pick(curve) if len(curve.k) else None

    def curve_of(self, name: str) -> Curve:
        """The values of a criterion where it is defined, with those for one cluster first."""
        position = self.indices.index(name)
        above = self.k > 1
        k = np.concatenate([[1], self.k[above]])
        values = np.concatenate([[self.at_one[position]], self.mean[above, position]])
        errors = dict(zip(self.gap_k.tolist(), self.gap_error.tolist(), strict=True))
        error = np.array([errors.get(int(one), 0.0) for one in k])
        defined = ~np.isnan(values)
        if not defined[1:].any():
            defined[:] = False
        return Curve(k[defined], values[defined], error[defined])


def _best(signed: np.ndarray) -> np.ndarray:
    """Per column the row of the greatest value, -1 where all are NaN."""
    none = np.isnan(signed).all(axis=0)
    return np.where(none, -1, np.where(np.isnan(signed), -np.inf, signed).argmax(axis=0))
