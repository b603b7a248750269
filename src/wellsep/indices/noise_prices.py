"""What noise costs under ``noise="penalize"``: one rule for each kind of index.

A price leaves a partition without noise alone, never makes a value better, and does not let a few
dense objects win. A multiple of the coverage alone would: the value of an index without an upper
bound grows faster than the coverage falls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.cluster_moments import Noise


@dataclass(frozen=True)
class Price:
    """How noise changes the value of an index, or those of many samples."""

    formula: Callable[..., Any]  # of the value and the statistics
    wants: Mapping[str, Want]  # parameter of the formula → the statistic it needs; empty: no price
    suits: Callable[[int, tuple[float, float]], bool]  # whether direction and range allow it
    rule: str  # what such an index must be

    def apply(self, value: Any, statistics: Mapping[str, Any]) -> Any:
        """The value with the noise paid for; without noise to the last bit the value itself."""
        priced = self.formula(value, **statistics)
        return np.where(np.asarray(statistics["noise"].mass) > 0, priced, value)[()]


def _variance(value: Any, noise: Noise, within: np.ndarray) -> Any:
    """c · W/(W + N): noise is variance that the clusters do not explain."""
    inside = within.sum(axis=-1)
    return value * noise.coverage * inside / (inside + noise.scatter)


_NOISE = want("noise", scatter=False)

PRICES: dict[str, Price] = {
    # Every noise object counts 0; below 0 it does not count, or noise would help.
    "zero": Price(
        lambda value, noise: np.where(value >= 0, noise.coverage * value, value),
        {"noise": _NOISE},
        lambda direction, ends: direction == 1 and bool(np.isfinite(ends[1])),
        "greater is better, with an upper bound",
    ),
    "variance": Price(
        _variance,
        {"noise": want("noise", scatter=True), "within": want("within")},
        lambda direction, ends: direction == 1 and ends[0] >= 0,
        "greater is better, never negative",
    ),
    # 1/(1 + v) lies in (0, 1]; it is multiplied by the coverage and turned back.
    "inverse": Price(
        lambda value, noise: (1 + value) / noise.coverage - 1,
        {"noise": _NOISE},
        lambda direction, ends: direction == -1 and ends[0] >= 0,
        "smaller is better, never negative",
    ),
    "included": Price(lambda value: value, {}, lambda direction, ends: True, "any"),
}
