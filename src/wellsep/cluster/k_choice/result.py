"""ChosenK: what every index says on every number of clusters, the answer, and its sentences.

A validity index picks the K of its best score. A criterion of the table below has a rule of its
own, and may pick 1: its value for one cluster is known. `evidence` computes the values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN
from wellsep.indices.gap import gain_over_one, one_error_rule

GATE = 3.0  # standard errors of the gap statistic by which some K must beat one cluster
UNTESTED = "gate=False"  # why one cluster was not tested, where that is what the user wants
FEW = 500  # objects below which weak clusters are not seen by the gap statistic
SKEWED = 1.5  # skewness from which a column alone may look like structure


# ------------------------------------------------------------------- how each criterion picks K


class Curve(NamedTuple):
    """One criterion over K, without those K where it is undefined; K = 1 comes first if known."""

    k: np.ndarray
    values: np.ndarray
    error: np.ndarray


class Criterion(NamedTuple):
    """A criterion: its direction, and how it picks K."""

    direction: int
    pick: Callable[[Curve], int]


def knee(k: np.ndarray, values: np.ndarray) -> int:
    """The k whose value lies farthest below the line from the first to the last (the elbow).

    Both axes are scaled to [0, 1] first; of equals the smallest k.

    >>> knee(np.arange(1, 6), np.array([100.0, 40, 20, 15, 12]))
    2
    """
    across = (k - k[0]) / max(k[-1] - k[0], 1)
    fall = values[0] - values[-1]
    down = (values - values[-1]) / (fall if fall > 0 else 1.0)
    return int(k[np.argmax(1 - across - down)])


def _log_knee(curve: Curve) -> int:
    positive = curve.values > 0  # no cluster has a spread left where it is 0
    return knee(curve.k[positive], np.log(curve.values[positive]))


def _found_again(curve: Curve) -> int:
    """The largest K whose partition is found again, 1 if there is none."""
    return int(curve.k[curve.values > FOUND_AGAIN].max(initial=1))


CRITERIA: dict[str, Criterion] = {
    "elbow": Criterion(-1, lambda curve: knee(curve.k, curve.values)),  # of the inertia
    "log_elbow": Criterion(-1, _log_knee),
    "gap": Criterion(1, lambda curve: one_error_rule(*curve)[0]),
    "prediction_strength": Criterion(1, _found_again),
    "mixture_bic": Criterion(-1, lambda curve: int(curve.k[curve.values.argmin()])),
}


def median_vote(votes: list[int]) -> int:
    """The median; of two in the middle the smaller.

    >>> median_vote([4, 1, 7]), median_vote([9, 8])
    (4, 8)
    """
    return sorted(votes)[(len(votes) - 1) // 2]


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
        Unless it votes, one K is enough where that one beats one cluster.
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
    clusterers : mapping K -> estimator
        The fits of the first repeat; not saved, and empty for an agglomerative clustering.
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
    clusterers: Mapping[int, Any] = field(
        default_factory=dict, repr=False, metadata={"saved": False}
    )

    @property
    def clusterer(self) -> Any:
        """The fitted clusterer with `best` clusters; None for one cluster, and once loaded."""
        return self.clusterers.get(self.best)

    @property
    def mean(self) -> np.ndarray:
        """(nK, I): mean over the repeats in which a score is defined."""
        with warnings.catch_warnings(action="ignore"):  # of scores that no repeat has
            return np.nanmean(self.values, axis=0)

    @property
    def spread(self) -> np.ndarray:
        """(nK, I): standard deviation over the repeats; NaN with fewer than two."""
        with warnings.catch_warnings(action="ignore"):
            return np.nanstd(self.values, axis=0, ddof=1)

    @property
    def gain(self) -> tuple[float, int] | None:
        """The largest (Gap(K) − Gap(1)) / s(K), and its K; None if it was not tested."""
        gains = gain_over_one(self.gap, self.gap_error) if len(self.gap) else np.empty(0)
        if self.not_tested or np.isnan(gains).all():
            return None
        largest = int(np.nanargmax(gains))
        return float(gains[largest]), int(self.gap_k[1 + largest])

    @property
    def structure(self) -> bool | None:
        """Whether some K beats one cluster by more than 3 standard errors; None if not tested."""
        if self.all_equal:
            return False
        return None if self.gain is None else self.gain[0] > GATE

    @property
    def picks(self) -> dict[str, int | None]:
        """The K at which the mean of each index is best; None where it is undefined for every K."""
        return {name: self._pick(i, name) for i, name in enumerate(self.indices)}

    @property
    def picks_by_repeat(self) -> np.ndarray:
        """(R, I): the K of each index's best value in each repeat; 0 where there is none."""
        signed = self.values * self.directions
        best = np.where(np.isnan(signed), -np.inf, signed).argmax(axis=1)
        return np.where(np.isnan(signed).all(axis=1), 0, self.k[best])

    @property
    def wants_more(self) -> tuple[str, ...]:
        """Indices that pick the largest K tried: they do not vote, since more may be better."""
        if len(self.k) < 2:
            return ()
        return tuple(name for name, k in self.picks.items() if k == self.k[-1])

    @property
    def voters(self) -> dict[str, int]:
        """The K that each index votes for; those that pick the largest K do not vote."""
        more = self.wants_more
        return {n: k for n, k in self.picks.items() if k is not None and n not in more}

    @property
    def votes(self) -> dict[int, int]:
        """K -> number of indices that vote for it; K = 1 is included if it has a vote."""
        votes = list(self.voters.values())
        tried = [*({1} & set(votes) - set(self.k.tolist())), *self.k.tolist()]
        return {int(k): votes.count(k) for k in tried}

    @property
    def voted(self) -> int:
        """The median of the votes, of two in the middle the smaller.

        Indices that pick the largest K tried count as larger than all votes; if one of them is in
        the middle, the median is the largest K tried.
        """
        if not (self.voters or self.wants_more):
            raise ValueError(
                f"indices must be defined for some K of k_range, got none; "
                f"{'; '.join(sorted(set(self.reasons.values())))}."
            )
        return median_vote([*self.voters.values(), *[int(self.k[-1])] * len(self.wants_more)])

    @property
    def best(self) -> int:
        """1 if no K beats one cluster by more than 3 standard errors, else `voted`.

        Where that cannot be tested, two indices are too few to say one cluster: it is then
        `best_above_one`.
        """
        if self.structure is False:
            return 1
        tested = self.structure is not None or self.not_tested in ("", UNTESTED)
        too_few_for_one = not tested and len(self.voters) < 3
        return self.best_above_one if self.voted == 1 and too_few_for_one else self.voted

    @property
    def best_above_one(self) -> int:
        """The K to look at if you need more than one cluster: the vote without votes for 1."""
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
            return self.labels[where[0]]
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
        """Say whether there is more than one cluster, what each index votes for, and cautions."""
        yield from self.answer()
        if self.k[-1] > self.first_end:
            yield (
                f"The range was extended from {self.first_end} to {self.k[-1]}, because an index "
                f"picked {self.first_end}."
            )
        yield from (f"K = {k} could not be fitted: {why}" for k, why in self.failures.items())
        if self.failures:
            yield "The other K are not affected."
        yield from (self._sentence(i, name) for i, name in enumerate(self.indices))
        yield from self.cautions()

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
        if name in CRITERIA:
            curve = self.curve_of(name)
            return CRITERIA[name].pick(curve) if len(curve.k) else None
        signed = self.mean[:, position] * self.directions[position]
        return None if np.isnan(signed).all() else int(self.k[np.nanargmax(signed)])

    def curve_of(self, name: str) -> Curve:
        """The values of a criterion where it is defined, with those for one cluster first."""
        position = self.indices.index(name)
        above = self.k > 1
        k = np.concatenate([[1], self.k[above]])
        values = np.concatenate([[self.at_one[position]], self.mean[above, position]])
        errors = dict(zip(self.gap_k.tolist(), self.gap_error.tolist(), strict=True))
        error = np.array([errors.get(number, 0.0) for number in k.tolist()])
        defined = ~np.isnan(values)
        defined &= defined[1:].any()
        return Curve(k[defined], values[defined], error[defined])

    # ------------------------------------------------------------------- sentences

    def answer(self) -> tuple[str, ...]:
        """Return how many clusters there are, and whether more than one: the first sentences."""
        if self.all_equal:
            return ("One cluster: all objects are equal.",)
        anyway = f"If you want more than one cluster anyway, look at K = {self.best_above_one}."
        if self.structure is False:
            return (self._gate(), anyway)
        tried = f"{_numbers(self.k)} tried" if len(self.k) > 1 else "no other K tried"
        tried += f", {count(len(self.values), 'repeat')}"
        n, more = len(self.voters), len(self.wants_more)
        ones = list(self.voters.values()).count(1)
        of_votes = f"{ones} of {n} votes {'is' if ones == 1 else 'are'} for K = 1"
        if n == 1:
            of_votes = "the only vote is for K = 1"
        if self.best == 1:
            first = f"One cluster: {of_votes}."
            return (first, anyway) if self.structure else (first, self._gate(), anyway)
        if self.voted == 1:
            first = f"K = {self.best} is the answer of the votes above one cluster ({tried})."
            few = f"{of_votes[0].upper()}{of_votes[1:]}, too few to say so without that test."
            return (first, self._gate(), few)
        if more > n:
            who = "every index" if not n else f"{more} of {len(self.indices)} indices"
            first = (
                f"There may be more than {self.k[-1]} clusters: {who} picked the end of the range, "
                f"K = {self.best}."
            )
        else:
            held = "the only vote" if n == 1 else f"the median of {n} votes"
            if more:
                held += f" and {count(more, 'index', 'indices')} with the largest K tried"
            first = f"K = {self.best} is {held} ({tried})."
        return (first, self._gate())

    _printed = answer

    def _gate(self) -> str:
        """Whether some K beats one cluster, or why that was not tested."""
        if self.gain is None:
            why = self.not_tested or "the gap statistic is undefined for every K"
            return f"Whether there is more than one cluster was not tested: {why}."
        gain, k = self.gain
        if np.isposinf(gain):
            return f"There is more than one cluster: {k} clusters leave no spread within them."
        if gain > GATE:
            return (
                f"There is more than one cluster: K = {k} beats one cluster by {gain:.1f} "
                "standard errors of the gap statistic (3 are enough)."
            )
        clusterer = self.estimator.partition("(")[0]
        none, by = f"no K of {_numbers(self.gap_k[1:])} beats", f"largest {gain:.1f}, at K = {k}"
        if len(self.gap_k) == 2:
            none, by = f"K = {k} does not beat", f"{gain:.1f}"
        return (
            f"No structure beyond one cluster that {clusterer} could find: {none} one cluster by "
            f"more than 3 standard errors of the gap statistic ({by})."
        )

    def _sentence(self, position: int, name: str) -> str:
        pick = self.picks[name]
        if pick is None:
            reasons = [why for (_, index), why in self.reasons.items() if index == name]
            why = reasons[0] if reasons else "no reason given"
            return f"{name} is undefined for every K: {why.rstrip('.')}."
        if name == "prediction_strength":
            return self._strength(position, pick)
        if pick == 1:
            return f"{name} votes for 1 (at {self.at_one[position]:.4g})."
        row = int(np.flatnonzero(self.k == pick)[0])
        value = f"{self.mean[row, position]:.4g}"
        if name in self.wants_more:
            text = f"{name} picks {pick}, the largest K tried, at {value}"
        else:
            text = f"{name} votes for {pick} at {value}"
        if len(self.values) > 1 and name not in CRITERIA:
            often = int((self.picks_by_repeat[:, position] == pick).sum())
            text += f" ± {self.spread[row, position]:.2g}, in {often} of {len(self.values)} repeats"
        if name not in CRITERIA or name == "mixture_bic":
            signed = self.mean[:, position] * self.directions[position]
            signed[row] = np.nan
            if not np.isnan(signed).all():
                second = int(np.nanargmax(signed))
                text += f"; next is {self.k[second]} at {self.mean[second, position]:.4g}"
        return text + "."

    def _strength(self, position: int, pick: int) -> str:
        values = self.mean[:, position]
        if pick == 1:
            row = int(np.nanargmax(values))
            return (
                f"prediction_strength votes for 1: no K has more than {FOUND_AGAIN} (largest "
                f"{values[row]:.2f}, at K = {self.k[row]})."
            )
        value = values[int(np.flatnonzero(self.k == pick)[0])]
        if "prediction_strength" in self.wants_more:
            return (
                f"prediction_strength picks {pick}, the largest K tried ({value:.2f}, more than "
                f"{FOUND_AGAIN} is needed)."
            )
        return (
            f"prediction_strength votes for {pick}, the largest K with more than {FOUND_AGAIN} "
            f"({value:.2f})."
        )

    def cautions(self) -> tuple[str, ...]:
        """Return what to be wary of, the last sentences."""
        if self.all_equal:
            return ()
        best = self.best_above_one if self.best == 1 else self.best
        row = int(np.flatnonzero(self.k == best)[0])
        n = self.labels.shape[1]
        texts = []
        more = self.wants_more
        if more and self.best != 1:
            texts.append(
                f"{listing(more)} picked the largest K tried, {self.k[-1]}: try a wider range."
            )
        if len(self.k) == 2 and self.k[1] - self.k[0] > 1 and not self.failures:
            low, high = self.k.tolist()
            texts.append(
                f"Nothing between {low} and {high} was tried: pass range({low}, {high + 1}) for "
                "all."
            )
        if self.structure is False and self.n_sampled < FEW:
            texts.append(
                f"With so few objects ({self.n_sampled}) the gap statistic misses weak clusters."
            )
        if self.structure and self.skewness > SKEWED:
            texts.append(
                f"A skewed column alone can look like structure (largest skewness "
                f"{self.skewness:.1f}): try the logarithm of skewed columns."
            )
        if self.n_sampled < n:
            texts.append(
                "Gap statistic, prediction strength and mixtures were computed on "
                f"{self.n_sampled:,} of {n:,} objects."
            )
        if self.stability[row] < 0.8:
            texts.append(
                f"The repeats agree little at K = {best} (adjusted Rand index "
                f"{self.stability[row]:.2f}): its clusters depend on the start or the sample."
            )
        covered = float(self.coverage[:, row].mean())
        if covered < 0.5:
            texts.append(
                f"K = {best} is judged on {covered:.0%} of the objects; the others are noise."
            )
        if (self.n_clusters[:, row] != best).any():
            texts.append(f"Asked for {best}, some fits found another number of clusters.")
        return tuple(texts)


def _numbers(ks: np.ndarray) -> str:
    """ "2 to 15" where no number between them is missing, else the numbers."""
    tried = sorted(ks.tolist())
    whole = len(tried) > 1 and tried[-1] - tried[0] == len(tried) - 1
    return f"{tried[0]} to {tried[-1]}" if whole else listing(list(map(str, tried)), len(tried))
