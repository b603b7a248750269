"""The objects that a partition calls noise: how much they weigh, and how far out they lie."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.statistics.centre_distances import View
from wellsep.compute.statistics.cluster_moments import Masses


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


def noise_scatter(view: View) -> Any:
    """Σ w‖x − centre‖² over the rows that a partition does not count."""
    return view.sums(view.own_square).sum()


def noise_of(size: Masses, offsets: np.ndarray, scatter: list[float] | None = None) -> list[Noise]:
    """Noise of every partition, with its scatter if that is known."""
    counted = [float(size.mass[a:b].sum()) for a, b in pairwise(offsets)]
    scattered = [None] * len(counted) if scatter is None else scatter
    return [Noise(*one) for one in zip(size.noise.tolist(), counted, scattered, strict=True)]
