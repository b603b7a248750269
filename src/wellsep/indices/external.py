"""Agreement with known classes: NMI, accuracy, purity, ARI, AMI."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from wellsep._checks import check_choice
from wellsep.partitions import encode


def _pair(labels_true: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes of both; -1 is a name like any other here."""
    truth = encode(labels_true, noise="cluster", name="labels_true").codes[0]
    found = encode(labels, noise="cluster", n_objects=len(truth)).codes[0]
    return truth, found


AVERAGES = ("arithmetic", "geometric", "min", "max")


def contingency(labels_true: Any, labels: Any) -> np.ndarray:
    """(classes, clusters) counts."""
    truth, found = _pair(labels_true, labels)
    width = int(found.max()) + 1
    counts = np.bincount(truth.astype(np.int64) * width + found)
    return np.resize(np.pad(counts, (0, (-len(counts)) % width)), (int(truth.max()) + 1, width))


def nmi_score(labels_true: Any, labels: Any, *, average: str = "arithmetic") -> float:
    """Normalised mutual information of two labellings; in [0, 1], greater is better.

    Parameters
    ----------
    labels_true, labels : array-like of shape (n,)
    average : {"arithmetic", "geometric", "min", "max"}
        Of the two entropies, in the denominator.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.nmi_score(["a", "a", "b"], [1, 1, 0])
    1.0
    """
    from sklearn.metrics import normalized_mutual_info_score

    check_choice("average", average, AVERAGES)
    return float(normalized_mutual_info_score(*_pair(labels_true, labels), average_method=average))


def ari_score(labels_true: Any, labels: Any) -> float:
    """Adjusted Rand index: agreement on pairs, 0 by chance, 1 at best.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.ari_score([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*_pair(labels_true, labels)))


def ami_score(labels_true: Any, labels: Any) -> float:
    """Adjusted mutual information: 0 by chance, 1 at best.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.ami_score([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(*_pair(labels_true, labels)))


def purity_score(labels_true: Any, labels: Any) -> float:
    """Share of objects that belong to the commonest class of their cluster; in (0, 1].

    Grows with the number of clusters: n clusters are always pure.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.purity_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_accuracy(labels_true: Any, labels: Any) -> float:
    """Share of objects on the diagonal under the best one-to-one match of clusters to classes.

    The match is the Hungarian method's; numbers of clusters and classes may differ, and what
    stays unmatched counts as wrong.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.clustering_accuracy([0, 0, 1, 1], [2, 2, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())
