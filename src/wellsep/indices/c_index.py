"""The C index: are the distances within clusters the smallest there are?"""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice
from wellsep.compute.data.opening import TAKEN
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one

VARIANTS = ("hubert-levin", "nbclust")


def _wants_c_index(variant: str = "hubert-levin", metric: Any = "euclidean") -> dict[str, Want]:
    check_choice("variant", variant, VARIANTS)
    within = want("within_distances", metric=metric)
    if variant == "hubert-levin":
        return {"within": within, "selected": want("selected_sums", metric=metric)}
    return {
        "within": within,
        "clusters": want("clusters"),
        "nearest": want("nearest_within", metric=metric),
        "farthest": want("farthest_within", metric=metric),
    }


@index(
    name="c_index",
    title="C index",
    words="The sum of all distances within clusters, placed between the sum of as many of "
    "the smallest and the sum of as many of the largest distances: 0 is the smallest, "
    "1 the largest.",
    wants=_wants_c_index,
    direction=-1,
    range=(0, 1),
    cost="n²·d",
    metrics=TAKEN,
    distances=True,
    weighted=False,
    citation="Hubert & Levin, A general statistical framework for assessing categorical "
    "clustering in free recall, Psychological Bulletin 83 (1976)",
    caution="Large clusters hold most of the pairs and decide; the NbClust variant is another "
    "index and may prefer corrupted labels.",
)
def _c_index(
    within: float, *, variant: str = "hubert-levin", metric: Any = "euclidean", **statistics: Any
) -> float:
    """The other statistics are those that `_wants_c_index` names for this variant."""
    if variant == "nbclust":
        return _nbclust(within, **statistics)
    count, total, smallest, largest = statistics["selected"]
    if not largest - smallest > 1e-14 * largest:
        raise UndefinedIndex(
            "all distances are equal" if count < total else "all pairs lie within clusters"
        )
    # Sums of the same distances by two ways: a perfect partition misses 0 by their rounding.
    return float(np.clip((within - smallest) / (largest - smallest), 0, 1))


def _nbclust(within: float, clusters: Clusters, nearest: float, farthest: float) -> float:
    """(S_W − N_W a)/(N_W (b − a)) with the extremes of the distances within clusters."""
    size = clusters.counts
    pairs = float((size * (size - 1) // 2).sum())
    if (size == 1).any():  # NbClust puts the constant 1 into both for a cluster of one object
        nearest, farthest = min(nearest, 1.0), max(farthest, 1.0)
    if not farthest > nearest:
        raise UndefinedIndex("all distances within clusters are equal")
    return float((within - pairs * nearest) / (pairs * (farthest - nearest)))


def c_index_score(
    X: Any,
    labels: Any,
    *,
    variant: str = "hubert-levin",
    metric: Any = "euclidean",
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return the C index: the sum of distances within clusters, scaled to its possible range.

    .. math:: \frac{S_W-S_{\min}}{S_{\max}-S_{\min}}

    with :math:`S_W` the sum of the :math:`N_W` distances within clusters, and :math:`S_{\min}`,
    :math:`S_{\max}` the sums of the :math:`N_W` smallest and largest of all distances.
    Range [0, 1], smaller is better. Undefined for one cluster, n clusters, or equal distances.

    Parameters
    ----------
    X : array-like, tensor or dask collection of shape (n, d), or (n, n) distances
        The objects, dense.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    variant : {"hubert-levin", "nbclust"}
        "nbclust" is what NbClust calls ``cindex`` (clusterSim's G3):
        :math:`(S_W-N_Wa)/(N_W(b-a))` with a and b the smallest and largest distance *within*
        clusters. It is unrelated to Hubert and Levin's (rank correlation −0.25 over 41 cases),
        and is here to repeat what was published with it.
    metric : str or callable
        What scikit-learn's ``pairwise_distances`` takes ("precomputed": X has distances), or "dc".
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    References
    ----------
    Hubert & Levin (1976), Psychological Bulletin 83, 1072–1080.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [5], [7]]
    >>> round(ws.c_index_score(X, [0, 0, 1, 1]), 12)
    0.0
    >>> round(ws.c_index_score(X, [0, 1, 0, 1]), 12)  # (5 + 6 - 3) / (13 - 3)
    0.8
    """
    params = {"variant": variant, "metric": metric}
    return score_one("c_index", X, labels, params, None, noise, device)
