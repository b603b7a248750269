"""A judgement whose best run has rivals, whatever rule ranks the runs."""

from dataclasses import replace

import numpy as np

import wellsep as ws
from wellsep.evaluate import Judgement
from wellsep.evaluate.clusters.judged import KeptCodes
from wellsep.partitions import Partitions


def contested_judgement(n_draws: int = 10) -> Judgement:
    """Four blobs; the best run comes first in six of ten draws, one that joins two in the rest."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2, 3], 40)
    centres = np.array([[0, 0], [0, 3], [12, 0], [12, 12]])[truth]
    spaces, labels, pairs = {}, {}, {}
    for i in range(4):
        spaces[f"s{i}"] = centres + rng.normal(0, 0.9, (160, 2))
        noisy = np.where(rng.random(160) < 0.03, rng.integers(0, 4, 160), truth)
        for name, codes in (("four", noisy), ("three", np.maximum(noisy, 1))):
            labels[f"{name} {i}"] = codes
            pairs[f"{name} {i}"] = f"s{i}"
    judgement = ws.judge(ws.Runs.from_parts(spaces, labels, pairs=pairs), n_draws=n_draws)
    best = judgement.ranking.best
    kind = "three" if best.startswith("four") else "four"
    rival = next(name for name in labels if name.startswith(kind))
    of = dict(zip(judgement.answer.classes.names, judgement.answer.classes.of, strict=True))
    first = np.repeat([of[best], of[rival]], [6, 4])
    distinct = Partitions.from_labels(labels)
    distinct = distinct.subset(judgement.answer.classes.first.tolist())
    codes = KeptCodes.keep(distinct, np.arange(10), sorted({of[best], of[rival]}))
    confidence = replace(judgement.confidence, first_in_draw=first)
    return replace(judgement, confidence=confidence, codes=codes)
