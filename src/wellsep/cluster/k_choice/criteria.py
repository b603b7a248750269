"""The criteria for a number of clusters that are no validity index, and how each picks K.

A validity index picks the K of its best score. A criterion here has a rule of its own, and may
pick 1: its value for one cluster is known. `evidence` computes the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.values import check_items
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN, PRECOMPUTED
from wellsep.indices.gap import one_error_rule
from wellsep.indices.index_names import IndexSpec, ParsedIndex, is_pair, parse_indices

VOTERS: tuple[str, ...] = ("silhouette", "prediction_strength", "mixture_bic")


class Curve(NamedTuple):
    """One criterion over K, without those K where it is undefined; K = 1 comes first if known."""

    k: np.ndarray
    values: np.ndarray
    error: np.ndarray


class Criterion(NamedTuple):
    """A criterion: its meaning in a few words, its direction, and how it picks K."""

    title: str
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
    "elbow": Criterion(
        "inertia, the sum of squares within clusters, and its knee",
        -1,
        lambda curve: knee(curve.k, curve.values),
    ),
    "log_elbow": Criterion("inertia, and the knee of its logarithm", -1, _log_knee),
    "gap": Criterion(
        "gap statistic, by the one-standard-error rule",
        1,
        lambda curve: one_error_rule(*curve)[0],
    ),
    "prediction_strength": Criterion(
        f"prediction strength: the largest K above {FOUND_AGAIN}", 1, _found_again
    ),
    "mixture_bic": Criterion(
        "Bayesian information criterion of a Gaussian mixture",
        -1,
        lambda curve: int(curve.k[curve.values.argmin()]),
    ),
}


class Voter(NamedTuple):
    """What was asked to vote: a validity index with its parameters, or a criterion by name."""

    name: str
    validity: ParsedIndex | None

    @property
    def direction(self) -> int:
        return (
            CRITERIA[self.name].direction if self.validity is None else self.validity[0].direction
        )

    @property
    def spec(self) -> IndexSpec:
        """The index as `score_partitions` takes it."""
        assert self.validity is not None
        return self.validity[0].name, self.validity[1]


def parse_voters(indices: Any, *, distances: bool = False) -> list[Voter]:
    """Names and (name, parameters) pairs; duplicates collapse.

    Where X holds distances, an index named without parameters is computed from them.
    """
    single = isinstance(indices, str) or is_pair(indices)
    specs = (
        [indices]
        if single
        else check_items("indices", indices, "names or (name, parameters) pairs")
    )
    found: dict[str, Voter] = {}
    for spec in specs:
        name, given = spec if is_pair(spec) else (spec, {})
        if isinstance(name, str) and name in CRITERIA:
            if given:
                raise ValueError(
                    f"parameters of {name!r} must be left out, got {next(iter(given))!r}."
                )
            found[name] = Voter(name, None)
            continue
        ((index, params),) = parse_indices([spec], besides=tuple(CRITERIA))
        if distances and not given and "metric" in params:
            params = index.with_params({"metric": PRECOMPUTED})
        found[index.label(params)] = Voter(index.label(params), (index, params))
    if not found:
        raise ValueError("indices must name at least one index, got none.")
    scored = [voter.spec for voter in found.values() if voter.validity is not None]
    if scored:
        parse_indices(scored)  # refuses distances for one index and coordinates for another
    return list(found.values())


def median_vote(votes: list[int]) -> int:
    """The median; of two in the middle the smaller.

    >>> median_vote([4, 1, 7]), median_vote([9, 8])
    (4, 8)
    """
    return sorted(votes)[(len(votes) - 1) // 2]
