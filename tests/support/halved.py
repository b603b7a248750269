"""The values of one index on half-samples of one space."""

from __future__ import annotations

import numpy as np

from wellsep.evaluate.certainty.half_samples import Draws, resample
from wellsep.evaluate.options import Computing


def score_halves(X, partitions, index, params, halves, *, n_jobs=None):
    kept = np.zeros((len(halves.chosen), 1), dtype=int)
    draws = Draws(halves, ("space",), kept, 0, 0, index, dict(params))
    return resample(X, Computing(n_jobs=n_jobs), partitions, draws, "space")[1].values
