"""Agreement of two partitions, or of many with each other: ARI, AMI, NMI, accuracy, purity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from wellsep._checks.arrays import check_choice
from wellsep._checks.labels import as_labels
from wellsep.compute.statistics.contingency import PairCounts
from wellsep.partitions import Partitions, shared_cells


def _codes(labels_true: Any, labels_pred: Any) -> np.ndarray:
    """(2, n) codes of both; -1 is a name like any other here."""
    truth = as_labels(labels_true, "labels_true")
    predicted = as_labels(labels_pred, "labels_pred")
    if len(truth) != len(predicted):
        raise ValueError(
            f"labels_pred must have one entry per object ({len(truth)}), got {len(predicted)}. "
            "Found input variables with inconsistent numbers of samples: "
            f"[{len(truth)}, {len(predicted)}]"  # scikit-learn's sentence, which programs look for
        )
    if not len(truth):
        return np.empty((2, 0), np.int32)
    both = {"labels_true": truth, "labels_pred": predicted}
    return Partitions.from_labels(both, noise="cluster").codes


def contingency(labels_true: Any, labels_pred: Any) -> Any:
    """(classes, clusters) counts as a sparse table: at most n of its cells are filled."""
    truth, predicted = _codes(labels_true, labels_pred)
    if not len(truth):
        raise ValueError("labels_true must hold at least one label, got none.")
    shape = int(truth.max()) + 1, int(predicted.max()) + 1
    cells, counts = shared_cells(truth, predicted, *shape)
    return sp.csr_array((counts, np.divmod(cells, shape[1])), shape=shape)


def adjusted_rand(counts: PairCounts) -> np.ndarray:
    """(M, M) adjusted Rand index: pairs together in both, above chance, over what each has."""
    pairs = (counts.squares - counts.n) / 2.0
    each = np.diag(pairs)  # (M,) pairs that are together in a partition
    chance = np.multiply.outer(each, each) / max(counts.n * (counts.n - 1) / 2.0, 1.0)
    above = (each[:, None] + each) / 2 - chance
    trivial = above == 0  # both consist of singletons, or of one cluster
    index = np.where(trivial, 1.0, (pairs - chance) / np.where(trivial, 1.0, above))
    return _one_where_equal(index, counts)


def normalized_information(counts: PairCounts, *, average: str = "arithmetic") -> np.ndarray:
    """(M, M) mutual information of all pairs divided by an average of their entropies."""
    entropy = counts.entropies()
    mean = AVERAGES[average](entropy[:, None], entropy)
    share = np.where(mean > 0, counts.information() / np.where(mean > 0, mean, 1.0), 0.0)
    return _one_where_equal(np.minimum(share, 1.0), counts)


def adjusted_information(counts: PairCounts, *, average: str = "arithmetic") -> np.ndarray:
    """(M, M) adjusted mutual information of all pairs: (MI − E) / (mean entropy − E)."""
    entropy, chance = counts.entropies(), counts.chance_information()
    above = AVERAGES[average](entropy[:, None], entropy) - chance
    trivial = np.abs(above) < 1e-12
    index = np.where(trivial, 1.0, (counts.information() - chance) / np.where(trivial, 1.0, above))
    single = entropy == 0  # one cluster tells nothing of any other partition
    return _one_where_equal(np.where(single[:, None] | single, 0.0, index), counts)


def _one_where_equal(agreement: np.ndarray, counts: PairCounts) -> np.ndarray:
    """Exactly 1 for equal partitions, without rounding."""
    first = counts.first_equal
    return np.where(first[:, None] == first, 1.0, agreement)


AVERAGES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: np.sqrt(a * b),
    "min": np.minimum,
    "max": np.maximum,
}
# Agreement of two partitions: name → function of the counts of all pairs.
AGREEMENTS: dict[str, Callable[[PairCounts], np.ndarray]] = {
    "ari": adjusted_rand,
    "ami": adjusted_information,
    "nmi": normalized_information,
}


def _agreement(
    of_counts: Callable[..., np.ndarray], labels_true: Any, labels_pred: Any, **options: Any
) -> float:
    """One of the functions above for two labellings; 1 for two of no objects."""
    codes = _codes(labels_true, labels_pred)
    if not codes.size:
        return 1.0
    return float(of_counts(PairCounts.of_codes(codes, n_jobs=1), **options)[0, 1])


def nmi_score(labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic") -> float:
    """Return the normalised mutual information of two labellings; in [0, 1], greater is better.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Two clusterings, or true classes and a clustering.
    average_method : {"arithmetic", "geometric", "min", "max"}
        Of the two entropies, in the denominator.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.nmi_score(["a", "a", "b"], [1, 1, 0])
    1.0
    """
    check_choice("average_method", average_method, AVERAGES)
    return _agreement(normalized_information, labels_true, labels_pred, average=average_method)


def ari_score(labels_true: Any, labels_pred: Any) -> float:
    """Return the adjusted Rand index: agreement on pairs, 0 by chance, 1 at best.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        True classes, or another clustering; and the clustering.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.ari_score([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    return _agreement(adjusted_rand, labels_true, labels_pred)


def ami_score(labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic") -> float:
    """Return the adjusted mutual information of two labellings: 0 by chance, 1 at best.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Two clusterings, or true classes and a clustering.
    average_method : {"arithmetic", "geometric", "min", "max"}
        Of the two entropies, in the denominator.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.ami_score([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    check_choice("average_method", average_method, AVERAGES)
    return _agreement(adjusted_information, labels_true, labels_pred, average=average_method)


def purity_score(labels_true: Any, labels_pred: Any) -> float:
    """Return the share of objects in the commonest class of their cluster.

    Range [0, 1]. It grows with the number of clusters: n clusters are always pure.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        True classes, or another clustering; and the clustering.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.purity_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels_pred)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Return the share of objects that is right under the best match of clusters to classes.

    Numbers of clusters and classes may differ, and what stays unmatched counts as wrong. The time
    grows with the square of the smaller number: 50,000 of both take a few seconds.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        True classes, or another clustering; and the clustering.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.clustering_accuracy([0, 0, 1, 1], [2, 2, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels_pred)
    table = table if table.shape[0] <= table.shape[1] else table.T.tocsr()
    # A column of its own for every row, worth nothing, stands for no match; it makes a full
    # matching possible. All weights are raised by 1, since a weight of 0 would be no cell.
    n, unmatched = table.sum(), sp.eye_array(table.shape[0])
    table.data += 1
    weights = sp.hstack([table, unmatched], format="csr")
    match = min_weight_full_bipartite_matching(weights, maximize=True)
    return float((weights[match].sum() - len(match[0])) / n)
