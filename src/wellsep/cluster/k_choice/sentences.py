"""The sentences of a chosen K: the answer, the vote of each index, and what to be wary of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wellsep._text.sentences import count, listing
from wellsep.cluster.k_choice.criteria import CRITERIA
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN

if TYPE_CHECKING:
    from wellsep.cluster.k_choice.result import ChosenK

FEW = 500  # objects below which weak clusters are not seen by the gap statistic
SKEWED = 1.5  # skewness from which a column alone may look like structure


def explanation(chosen: ChosenK) -> list[str]:
    """All sentences, the answer first."""
    return [
        *answer(chosen),
        *_voting(chosen),
        *(_sentence(chosen, i, name) for i, name in enumerate(chosen.indices)),
        *cautions(chosen),
    ]


def answer(chosen: ChosenK) -> list[str]:
    """How many clusters, and whether there is more than one at all."""
    structure = chosen.structure
    if chosen.all_equal:
        return ["One cluster: all objects are equal."]
    if structure is False:
        return [_no_structure(chosen), _anyway(chosen)]
    if chosen.voted == 1:
        ones = list(chosen.voters.values()).count(1)
        return [
            f"One cluster: {ones} of {count(len(chosen.voters), 'vote')} are for K = 1.",
            _anyway(chosen),
        ]
    n, more = len(chosen.voters), len(chosen.wants_more)
    if more > n:
        who = "every index" if not n else f"{more} of {len(chosen.indices)} indices"
        first = (
            f"More than {chosen.k[-1]} clusters are wanted by {who}; K = {chosen.best} is the end "
            "of the range."
        )
    else:
        held = "the only vote" if n == 1 else f"the median of {n} votes"
        if more:
            wants = "wants" if more == 1 else "want"
            held += f" and {count(more, 'index', 'indices')} that {wants} more"
        first = f"K = {chosen.best} is {held} ({_tried(chosen)})."
    if structure is None:
        why = chosen.not_tested or "the gap statistic is undefined for every K"
        return [first, f"Whether there is more than one cluster was not tested: {why}."]
    return [first, _structure(chosen)]


def _no_structure(chosen: ChosenK) -> str:
    assert chosen.gain is not None
    gain, at = chosen.gain
    return (
        f"No structure beyond one cluster that {_clusterer(chosen)} could find: no K of "
        f"{chosen.gap_k[1]} to {chosen.gap_k[-1]} beats one cluster by more than 3 standard errors "
        f"of the gap statistic (largest {gain:.1f}, at K = {at})."
    )


def _structure(chosen: ChosenK) -> str:
    assert chosen.gain is not None
    gain, at = chosen.gain
    if np.isinf(gain):
        return f"There is more than one cluster: {at} clusters leave no spread within them."
    return (
        f"There is more than one cluster: K = {at} beats one cluster by {gain:.1f} standard errors "
        "of the gap statistic (3 are enough)."
    )


def _anyway(chosen: ChosenK) -> str:
    return f"If you want more than one cluster anyway, look at K = {chosen.best_above_one}."


def _clusterer(chosen: ChosenK) -> str:
    return chosen.estimator.partition("(")[0]


def _tried(chosen: ChosenK) -> str:
    return f"{chosen.k[0]} to {chosen.k[-1]} tried, {count(len(chosen.values), 'repeat')}"


def _voting(chosen: ChosenK) -> list[str]:
    found = []
    if chosen.k[-1] > chosen.first_end:
        found.append(
            f"The range was extended from {chosen.first_end} to {chosen.k[-1]}, because an index "
            f"wanted more than {chosen.first_end}."
        )
    if chosen.failures:
        found += [f"K = {k} could not be fitted: {why}" for k, why in chosen.failures.items()]
        found.append("The other K are not affected.")
    return found


def _sentence(chosen: ChosenK, position: int, name: str) -> str:
    pick = chosen.picks[name]
    if pick is None:
        reasons = [why for (_, index), why in chosen.reasons.items() if index == name]
        return f"{name} is undefined for every K: {reasons[0] if reasons else 'no reason given'}."
    if name == "prediction_strength":
        return _strength(chosen, position, pick)
    if pick == 1:
        return f"{name} votes for 1 (at {chosen.at_one[position]:.4g})."
    at = int(np.flatnonzero(chosen.k == pick)[0])
    value = f"{chosen.mean[at, position]:.4g}"
    if name in chosen.wants_more:
        text = f"{name} wants more than {pick}: it picks the largest K tried, at {value}"
    else:
        text = f"{name} votes for {pick} at {value}"
    if len(chosen.values) > 1 and name not in CRITERIA:
        often = int((chosen.picks_by_repeat[:, position] == pick).sum())
        text += f" ± {chosen.spread[at, position]:.2g}, in {often} of {len(chosen.values)} repeats"
    if name not in CRITERIA or name == "mixture_bic":
        signed = chosen.mean[:, position] * chosen.directions[position]
        signed[at] = np.nan
        if not np.isnan(signed).all():
            second = int(np.nanargmax(signed))
            text += f"; next is {chosen.k[second]} at {chosen.mean[second, position]:.4g}"
    return text + "."


def _strength(chosen: ChosenK, position: int, pick: int) -> str:
    values = chosen.mean[:, position]
    if pick == 1:
        at = int(np.nanargmax(values))
        return (
            f"prediction_strength votes for 1: no K has more than {FOUND_AGAIN} (largest "
            f"{values[at]:.2f}, at K = {chosen.k[at]})."
        )
    value = values[int(np.flatnonzero(chosen.k == pick)[0])]
    if "prediction_strength" in chosen.wants_more:
        return (
            f"prediction_strength wants more than {pick}: the largest K tried is found again "
            f"({value:.2f}, more than {FOUND_AGAIN} is needed)."
        )
    return (
        f"prediction_strength votes for {pick}, the largest K with more than {FOUND_AGAIN} "
        f"({value:.2f})."
    )


def cautions(chosen: ChosenK) -> list[str]:
    """What to be wary of."""
    if chosen.all_equal:
        return []
    best = chosen.best_above_one if chosen.best == 1 else chosen.best
    at = int(np.flatnonzero(chosen.k == best)[0])
    n = chosen.labels.shape[1]
    found = []
    more = chosen.wants_more
    if more and chosen.best != 1:
        found.append(f"{listing(more)} wanted more than {chosen.k[-1]}: try a wider range.")
    if chosen.structure is False and chosen.n_sampled < FEW:
        found.append(
            f"With so few objects ({chosen.n_sampled}) the gap statistic does not see weak "
            "clusters."
        )
    if chosen.structure and chosen.skewness > SKEWED:
        found.append(
            f"A skewed column alone can look like structure (largest skewness "
            f"{chosen.skewness:.1f}): try the logarithm of skewed columns."
        )
    if chosen.n_sampled < n:
        found.append(
            "Gap statistic, prediction strength and mixtures were computed on "
            f"{chosen.n_sampled:,} of {n:,} objects."
        )
    if chosen.stability[at] < 0.8:
        found.append(
            f"The repeats agree little at K = {best} (adjusted Rand index "
            f"{chosen.stability[at]:.2f}): its clusters depend on the start or the sample."
        )
    covered = float(chosen.coverage[:, at].mean())
    if covered < 0.5:
        found.append(f"K = {best} is judged on {covered:.0%} of the objects; the others are noise.")
    if (chosen.n_clusters[:, at] != best).any():
        found.append(f"Asked for {best}, some fits found another number of clusters.")
    return found
