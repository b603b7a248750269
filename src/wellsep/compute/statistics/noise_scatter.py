"""The objects that a partition calls noise: how much they weigh, and how far out they lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.requests import Task, Want, want
from wellsep.compute.statistics.centre_distances import Clusters, centre_pass, describe_clusters


class Noise(NamedTuple):
    """Noise beside the counted objects, by weight; those of parts of the objects add up.

    Of many samples: one entry for each of them.
    """

    mass: Any
    counted: Any
    scatter: Any = None  # Σ w‖x − mean of the counted objects‖² over the noise

    @property
    def coverage(self) -> Any:
        """Share of the weight that is counted."""
        return self.counted / (self.counted + self.mass)


def provide_noise(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Option ``scatter``: whether the rows are looked at, or only weights."""
    plain = noise_of(task, None)
    if not any(w.get("scatter") for w in wants):
        return {w: plain for w in wants}
    scattered = noise_of(task, [c.mean for c in describe_clusters(task)])
    return {w: scattered if w.get("scatter") else plain for w in wants}


def noise_of(task: Task, means: list[np.ndarray] | None) -> list[Noise]:
    """Noise of every partition of some rows; with its scatter if the ``means`` (d,) are given.

    The noise of a partition is looked at as one cluster whose centre is the mean of the others.
    """
    weights, codes = task.weights_or_ones(), task.partitions.codes
    mass = [float(weights[row < 0].sum()) for row in codes]
    counted = [float(weights[row >= 0].sum()) for row in codes]
    if means is None:
        return [Noise(m, c) for m, c in zip(mass, counted, strict=True)]
    apart = task._replace(partitions=task.partitions.noise_only(), centers=None, groups=None)
    one, shift = np.ones(1), task.space.shift
    centres = [Clusters(one, one, mean[None], mean, shift) for mean in means]
    within = want("within")
    scatter = centre_pass(apart, centres, [within])[within]
    return [Noise(m, c, float(s.sum())) for m, c, s in zip(mass, counted, scatter, strict=True)]
