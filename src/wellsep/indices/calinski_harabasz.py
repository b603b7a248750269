"""The Calinski-Harabasz index: variance between clusters over variance within."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.distances.base import PRECOMPUTED
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one


def _wants_calinski(metric: Any = "euclidean") -> dict[str, Want]:
    entry = find(metric)
    if not entry.coordinates:
        squares = want("between_distances", metric=entry.squared())
        return {"clusters": want("clusters"), "squares": squares}
    if entry != find("euclidean"):
        raise ValueError(
            f"metric must be 'euclidean' for coordinates here, got {metric!r}; pass "
            "wellsep.Distances of other distances."
        )
    return {"clusters": want("clusters"), "within": want("within")}


@index(
    name="calinski_harabasz",
    title="Calinski-Harabasz (variance ratio)",
    words="Squared distances of cluster means from the overall mean, weighted by size, over "
    "K − 1; divided by squared distances of objects from their cluster mean over n − K.",
    wants=_wants_calinski,
    direction=1,
    range=(0, np.inf),
    cost="n·d",
    sparse=True,
    metrics=("euclidean", PRECOMPUTED),
    distances=True,
    price="variance",
    citation="Caliński & Harabasz, A dendrite method for cluster analysis, "
    "Communications in Statistics 3 (1974)",
    caution="Grows with n and favours round clusters of equal size.",
)
def _calinski_harabasz(
    clusters: Clusters,
    within: np.ndarray | None = None,
    squares: np.ndarray | None = None,
    *,
    metric: Any = "euclidean",
) -> float:
    n, k = float(clusters.mass.sum()), len(clusters.mass)
    if squares is not None:  # every pair twice: scatter is Σ d² of the pairs i < j over n
        inside = float((np.diagonal(squares) / (2 * clusters.mass)).sum())
        between = float(squares.sum()) / (2 * n) - inside
    else:
        spread = ((clusters.centers - clusters.mean) ** 2).sum(axis=1)
        between = float((clusters.mass * spread).sum())
        inside = float(np.asarray(within).sum())
    if inside <= 1e-24 * (inside + between):
        reason = "all objects coincide" if between == 0 else "every cluster is a single location"
        raise UndefinedIndex(f"{reason}, so that the variance within clusters is zero")
    if n <= k:
        raise UndefinedIndex("the total weight does not exceed the number of clusters")
    return between / inside * (n - k) / (k - 1)


def calinski_harabasz_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    undefined: str = "raise",
) -> float:
    r"""Return the Calinski-Harabasz index: variance between clusters over variance within.

    .. math:: \frac{\sum_k n_k \lVert v_k - m\rVert^2 / (K-1)}
              {\sum_k\sum_{x\in C_k}\lVert x - v_k\rVert^2 / (n-K)}

    Range [0, ∞), greater is better. Undefined for one cluster, n clusters, or no variance within
    (scikit-learn returns 1.0 for the last). From distances alone it is computed exactly: the
    denominator is :math:`W=\sum_k\frac{1}{n_k}\sum_{i<j\in C_k}d_{ij}^2` over n − K, and the
    numerator :math:`\frac1n\sum_{i<j}d_{ij}^2-W` over K − 1. For Euclidean distances both are
    the same; for others it is Anderson's pseudo-F, which can be negative.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d), or (n, n) distances
        The objects.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    metric : {"euclidean", "precomputed", "gower"}
        "precomputed": X is a matrix of distances. "gower": X is a table of mixed columns.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is left out, lowers the value, is one cluster, a cluster per object, or refused.
        "penalize" multiplies by c · W/(W + N): c is the coverage, W and N the squared distances of
        counted objects to their centres and of noise to its mean.
    device : str, optional
        "cuda" computes on the GPU.
    undefined : {"raise", "nan"}
        Where there is no value, raise ``UndefinedIndex`` or return NaN.

    References
    ----------
    Caliński & Harabasz (1974), Communications in Statistics 3, 1–27. From distances: Anderson
    (2001), Austral Ecology 26, 32–46; Hennig & Liao (2013), Applied Statistics 62, 309–369.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.calinski_harabasz_score([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, 1])
    50.0
    """
    options = (sample_weight, noise, device)
    params = {"metric": metric}
    return score_one("calinski_harabasz", X, labels, params, *options, undefined=undefined)
