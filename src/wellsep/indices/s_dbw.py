"""S_Dbw: scatter within clusters plus the density between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.ball_counts import Balls
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one


def _wants_s_dbw(
    density: str = "union", strict: bool = False, normalise: bool = True
) -> dict[str, Want]:
    check_choice("density", density, ("union", "own"))
    check_choice("strict", strict, (True, False))
    check_choice("normalise", normalise, (True, False))
    return {"balls": want("balls", density=density, strict=bool(strict))}


@index(
    name="s_dbw",
    title="S_Dbw",
    words="The mean scatter of the clusters over that of all objects, plus the mean density "
    "halfway between two centres over the density at the denser centre.",
    wants=_wants_s_dbw,
    direction=-1,
    range=(0, np.inf),
    cost="n·K·d",
    laws=("labels", "order", "translation", "scale"),
    citation="Halkidi & Vazirgiannis, Clustering validity assessment: finding the optimal "
    "partitioning of a data set, ICDM (2001)",
    caution="Counts objects in a ball whose radius shrinks with K: from about 8 dimensions on the "
    "balls are empty and only the scatter is left.",
)
def _s_dbw(
    balls: Balls, *, density: str = "union", strict: bool = False, normalise: bool = True
) -> float:
    spread = balls.spread
    norms, whole = np.linalg.norm(spread.variances, axis=1), np.linalg.norm(spread.total)
    if whole == 0:
        raise UndefinedIndex("all objects coincide, so that the variance is zero")
    pairs = np.triu_indices(len(norms), 1)
    midpoint, denser = balls.midpoint[pairs], balls.denser[pairs]
    if not normalise and (denser == 0).any():
        raise UndefinedIndex(
            f"{int((denser == 0).sum())} of {len(denser)} pairs of clusters have no object near "
            "either centre, which clusterCrit's sum leaves undefined"
        )
    terms = np.divide(midpoint, denser, out=np.zeros(len(denser)), where=denser > 0)
    return float(norms.mean() / whole + (terms.mean() if normalise else terms.sum()))


def s_dbw_score(
    X: Any,
    labels: Any,
    *,
    density: str = "union",
    strict: bool = False,
    normalise: bool = True,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return S_Dbw: the scatter within clusters plus the density between them.

    .. math:: \frac1K\sum_k\frac{\lVert\sigma_k\rVert}{\lVert\sigma\rVert}
              + \frac{2}{K(K-1)}\sum_{k<l}\frac{\gamma(h_{kl})}{\max(\gamma(v_k),\gamma(v_l))}

    with :math:`\sigma_k` the variances of cluster k by column, :math:`h_{kl}` the midpoint of two
    centroids, and γ(u) the number of objects of the two clusters within
    :math:`\frac1K\sqrt{\sum_k\lVert\sigma_k\rVert}` of u. Range [0, ∞), smaller is better.
    Undefined for one cluster, n clusters, or all objects in one place.

    Where no object lies near either centre the term counts 0, and a warning says for how many
    pairs. The radius shrinks with K, so this is the rule from about 8 dimensions on.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Computed in float64, on the host or where an accelerator holds the tensor.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    density : {"union", "own"}
        Around a centroid count both clusters (Halkidi and Vazirgiannis), or its own cluster only
        (NbClust).
    strict : bool, default False
        Count distances below the radius only, not those equal to it.
    normalise : bool, default True
        Average over the pairs. False sums them and is undefined where a centre has no object
        near it; with ``strict=True`` that is clusterCrit's value.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    References
    ----------
    Halkidi & Vazirgiannis (2001), ICDM, 187–194.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [2], [10], [11], [12]]
    >>> round(ws.s_dbw_score(X, [0, 0, 0, 1, 1, 1]), 4)  # nothing between: 2/3 over 77/3
    0.026
    """
    params = {"density": density, "strict": strict, "normalise": normalise}
    return score_one("s_dbw", X, labels, params, sample_weight, noise, device)
