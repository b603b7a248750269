"""Figures of the agreement between runs."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from wellsep.evaluate import Consensus
from wellsep.evaluate.vote.answer import MEASURES
from wellsep.report.figures.records import RunAgreement

_MOST_SORTED = 200  # partitions whose neighbours are put in the best order; it takes their cube


def run_agreement(vote: Consensus) -> RunAgreement:
    """Agreement of the distinct partitions, similar ones next to each other.

    Examples
    --------
    >>> import wellsep as ws
    >>> vote = ws.consensus({"a": [0, 0, 0, 1, 1, 1], "b": [0, 1, 0, 1, 0, 1],
    ...                      "c": [0, 0, 0, 0, 1, 1], "copy of a": [1, 1, 1, 0, 0, 0]})
    >>> run_agreement(vote).labels
    ('b', 'a (×2)', 'c')
    """
    values, order = vote.agreement, np.arange(vote.n_distinct)
    if vote.n_distinct > 2:
        far = squareform(1 - values, checks=False)
        order = leaves_list(
            linkage(far, "average", optimal_ordering=vote.n_distinct <= _MOST_SORTED)
        )
    return RunAgreement(
        names=tuple(vote.classes.names[vote.classes.first[i]] for i in order),
        counts=vote.classes.sizes[order],
        values=values[np.ix_(order, order)],
        measure=MEASURES[vote.options.agreement],
    )
