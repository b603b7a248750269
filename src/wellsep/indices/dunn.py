"""The Dunn index and its generalisations: separation of the worst pair over the worst diameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice
from wellsep._threads import check_square
from wellsep.compute.data.opening import TAKEN
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.centre_pairs import centre_distances
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one

SEPARATIONS = (
    *("single", "complete", "average", "centroid"),
    *("to-centroids", "own-centroids", "hausdorff"),
)
DIAMETERS = ("complete", "average", "half-average", "centroid")


def _ratio(separation: float, diameter: float) -> float:
    if diameter <= 1e-14 * separation:  # a diameter as small as rounding errors is 0
        raise UndefinedIndex("every cluster is a single location, so that all diameters are zero")
    return float(separation / diameter)


@index(
    name="dunn",
    title="Dunn",
    words="The smallest distance between objects of two clusters, over the largest distance "
    "within a cluster.",
    wants=lambda metric="euclidean": {
        "nearest": want("nearest_between", metric=metric),
        "farthest": want("farthest_within", metric=metric),
    },
    direction=1,
    range=(0, np.inf),
    cost="n²·d",
    metrics=TAKEN,
    distances=True,
    citation="Dunn, Well-separated clusters and optimal fuzzy partitions, "
    "Journal of Cybernetics 4 (1974)",
    caution="Two pairs of objects decide: one outlier or one bridge between clusters rules it.",
)
def _dunn(nearest: float, farthest: float, *, metric: Any = "euclidean") -> float:
    return _ratio(nearest, farthest)


def dunn_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return the Dunn index: smallest distance between clusters over the largest within one.

    .. math:: \frac{\min_{k\ne l}\min_{x\in C_k,\,y\in C_l} d(x,y)}
              {\max_k\max_{x,y\in C_k} d(x,y)}

    Range [0, ∞), greater is better. Both pairs are evaluated in float64 whatever the type of X.
    Undefined for one cluster, n clusters, or no cluster of positive diameter. Separations and
    diameters of :func:`generalized_dunn_score` are less at the mercy of one outlier.

    Parameters
    ----------
    X : array-like, tensor or dask collection of shape (n, d), or (n, n) distances
        The objects, dense.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    metric : str or callable, default "euclidean"
        "cosine" is computed as half the squared distance of the directions, which keeps what
        1 − cos loses for almost parallel rows. Other metrics of
        ``sklearn.metrics.pairwise_distances`` work block by block.
    sample_weight : array-like of shape (n,), optional
        Only whether a weight is positive matters.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    References
    ----------
    Dunn (1974), Journal of Cybernetics 4, 95–104.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.dunn_score([[0.0, 0], [0, 1], [5, 0], [5, 2]], [0, 0, 1, 1])
    2.5
    """
    return score_one("dunn", X, labels, {"metric": metric}, sample_weight, noise, device)


def _wants_generalized(
    separation: str = "average", diameter: str = "average", metric: Any = "euclidean"
) -> dict[str, Want]:
    check_choice("separation", separation, SEPARATIONS)
    check_choice("diameter", diameter, DIAMETERS)
    for name, kind in (("separation", separation), ("diameter", diameter)):
        if "centroid" in kind and find(metric) != find("euclidean"):
            raise ValueError(
                f"{name} must need no centroids with metric={metric!r}, got {kind!r}; choose "
                "'average' or 'complete'."
            )
    wanted = {"clusters": want("clusters")}
    if separation == "single":
        wanted["nearest"] = want("nearest_between", metric=metric)
    if separation in ("complete", "hausdorff"):
        wanted["linkage"] = want("linkage", metric=metric, of=separation)
    if separation == "average" or diameter in ("average", "half-average"):
        wanted["sums"] = want("between_distances", metric=metric)
    if separation == "to-centroids":
        wanted["to_centres"] = want("to_centres")
    if diameter == "complete":
        wanted["farthest"] = want("farthest_within", metric=metric)
    if diameter == "centroid" or separation == "own-centroids":
        wanted["radii"] = want("radii", q=1.0)
    return wanted


@index(
    name="generalized_dunn",
    title="Generalised Dunn",
    words="The least separation of two clusters over the largest diameter of a cluster; "
    "what separation and diameter are is chosen by parameters.",
    wants=_wants_generalized,
    direction=1,
    range=(0, np.inf),
    cost="n²·d",
    metrics=TAKEN,
    distances=True,
    weighted=False,
    citation="Bezdek & Pal, Some new indexes of cluster validity, "
    "IEEE Transactions on Systems, Man, and Cybernetics B 28 (1998)",
    caution="Several indices under one name: say which separation and which diameter.",
)
def _generalized_dunn(
    clusters: Clusters,
    *,
    separation: str = "average",
    diameter: str = "average",
    metric: Any = "euclidean",
    **statistics: Any,
) -> float:
    """The other statistics are those that this separation and this diameter need."""
    if separation == "single":  # the numbers are Bezdek and Pal's: δ1
        apart = statistics["nearest"]
    elif separation in ("complete", "hausdorff"):  # δ2, δ6
        apart = statistics["linkage"]
    else:
        table = _separations(separation, clusters, statistics)
        apart = float(table[~np.eye(len(table), dtype=bool)].min())
    if diameter == "complete":
        return _ratio(apart, statistics["farthest"])
    return _ratio(apart, float(_diameters(diameter, clusters, statistics).max()))


def _separations(name: str, clusters: Clusters, statistics: dict[str, Any]) -> np.ndarray:
    """(K, K) distances of clusters."""
    mass = clusters.mass
    check_square(len(mass))
    if name == "average":  # δ3
        return statistics["sums"] / np.outer(mass, mass)
    if name == "centroid":  # δ4
        return centre_distances(clusters.centers)
    if name == "own-centroids":  # GDI5j of clusterCrit and genieclust
        totals = np.broadcast_to(mass * statistics["radii"], (len(mass),) * 2)
    else:  # δ5: to the centroid of the other
        totals = statistics["to_centres"]
    return (totals + totals.T) / (mass[:, None] + mass)


def _diameters(name: str, clusters: Clusters, statistics: dict[str, Any]) -> np.ndarray:
    """(K,); 0 for a cluster of one object."""
    if name == "centroid":  # Δ3
        return 2 * statistics["radii"]
    ordered_pairs = clusters.mass * (clusters.mass - 1)
    total = np.diagonal(statistics["sums"])  # every pair twice
    mean = np.divide(total, ordered_pairs, out=np.zeros_like(total), where=ordered_pairs > 0)
    return mean / 2 if name == "half-average" else mean  # Δ2


def generalized_dunn_score(
    X: Any,
    labels: Any,
    *,
    separation: str = "average",
    diameter: str = "average",
    metric: Any = "euclidean",
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return the generalised Dunn index: least separation of clusters over largest diameter.

    .. math:: \frac{\min_{k\ne l}\delta(C_k,C_l)}{\max_k\Delta(C_k)}

    Range [0, ∞), greater is better. ``separation="single", diameter="complete"`` is Dunn's index.
    Undefined where Dunn's index is.

    Parameters
    ----------
    X : array-like, tensor or dask collection of shape (n, d), or (n, n) distances
        The objects, dense.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    separation : str
        δ, "average" by default: mean distance of the pairs (δ3). "single": nearest pair (δ1).
        "complete": farthest pair (δ2). "centroid": distance of the centroids (δ4).
        "to-centroids": mean distance of the members of either to the centroid of the other (δ5).
        "own-centroids": the same to the centroid of their own cluster (not Bezdek and Pal's).
        "hausdorff": Hausdorff distance (δ6).
    diameter : {"average", "complete", "half-average", "centroid"}
        Δ: mean distance of the pairs (Δ2), farthest pair (Δ1), half the mean, or twice the mean
        distance to the centroid (Δ3).
    metric : str or callable
        What scikit-learn's ``pairwise_distances`` takes ("precomputed": X has distances), or "dc".
        With any but "euclidean", centroids are refused.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    Notes
    -----
    clusterCrit's and genieclust's GDI*ij* is δ*i* over Δ*j*, but with "half-average" for Δ2 (they
    divide the sum over i < j by n(n − 1)) and "own-centroids" for δ5, which says nothing about the
    other cluster. R's package clv has "to-centroids". The default is fpc's ``dunn2``.

    References
    ----------
    Bezdek & Pal (1998), IEEE Transactions on Systems, Man, and Cybernetics B 28, 301–315.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0, 0], [0, 1], [5, 0], [5, 1]]
    >>> ws.generalized_dunn_score(X, [0, 0, 1, 1], separation="centroid", diameter="complete")
    5.0
    """
    params = {"separation": separation, "diameter": diameter, "metric": metric}
    return score_one("generalized_dunn", X, labels, params, None, noise, device)
