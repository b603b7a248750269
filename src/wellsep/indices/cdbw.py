"""CDbw: compactness and separation as densities around representatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_count
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.cluster_representatives import Representatives
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one


def _wants_cdbw(
    flavour: str = "paper", n_representatives: int = 10, order: str = "sorted"
) -> dict[str, Want]:
    check_choice("flavour", flavour, ("paper", "fpc"))
    check_choice("order", order, ("sorted", "first"))
    count = check_count("n_representatives", n_representatives)
    rule = "first" if flavour == "fpc" else "mean"
    return {"represented": want("represented", count=count, rule=rule, order=order)}


@index(
    name="cdbw",
    title="CDbw",
    words="The product of cohesion, separation and compactness: density around "
    "representatives of each cluster, how little it changes inward, and how far the "
    "nearest clusters lie apart.",
    wants=_wants_cdbw,
    direction=1,
    range=(0, np.inf),
    cost="n·K·d",
    laws=("labels", "order", "translation", "rotation"),
    weighted=False,
    citation="Halkidi & Vazirgiannis, A density-based cluster validity approach using "
    "multi-representatives, Pattern Recognition Letters 29 (2008)",
    caution="Has the unit 1/length: never compare it between embeddings of different scale.",
)
def _cdbw(
    represented: Representatives,
    *,
    flavour: str = "paper",
    n_representatives: int = 10,
    order: str = "sorted",
) -> float:
    deviations, distance, density, shares = represented
    if not deviations.any():
        raise UndefinedIndex("every cluster is a single location, so that all deviations are zero")
    if np.isnan(density).any():
        raise UndefinedIndex(
            "fpc's radius is zero for a pair whose first cluster is a single location"
        )
    others = ~np.eye(len(deviations), dtype=bool)
    inter = np.where(others, density, -np.inf).max(axis=1).mean()  # (38)
    nearest = np.where(others, distance, np.inf).min(axis=1).mean()
    separation = nearest / (1 + inter)  # (39)
    intra = shares.mean(axis=1) / deviations.mean()  # (40)
    compactness = intra.mean()  # (41)
    steps = np.diff(intra)
    change = (steps if flavour == "fpc" else np.abs(steps)).sum() / len(steps)  # (42)
    cohesion = compactness / (1 + change)  # (43)
    return float(cohesion * separation * compactness)  # (44), (45)


def cdbw_score(
    X: Any,
    labels: Any,
    *,
    flavour: str = "paper",
    n_representatives: int = 10,
    order: str = "sorted",
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return CDbw: large if clusters are far apart, and dense and evenly dense inside.

    .. math:: \mathrm{CDbw}=\mathrm{Cohesion}\cdot\mathrm{Separation}\cdot\mathrm{Compactness}

    Each cluster is represented by objects chosen farthest first. Compactness is the density around
    representatives drawn towards the centre by 0.1 … 0.8. Cohesion is lower the more that density
    changes on the way. Separation is the distance of the mutually nearest representatives of the
    nearest two clusters, lower the higher the density at their midpoints.

    Range [0, ∞), greater is better. The unit is 1/length (iris in millimetres has a tenth of its
    value in centimetres): compare partitions of one space only. Undefined for one cluster, n
    clusters, or none with any extent.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Computed in float64, on the host or where an accelerator holds the tensor.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    flavour : {"paper", "fpc"}
        "fpc" departs from the paper as ``fpc::cdbw`` does: the radius at midpoints is the
        deviation of the first of the two clusters (so that the value depends on how clusters are
        numbered, and is undefined if a cluster of one object is not the last), squared distances
        are held against a deviation inside clusters, and changes of density cancel.
    n_representatives : int, default 10
        At most so many in each cluster.
    order : {"sorted", "first"}
        How clusters are numbered for "fpc": by their sorted labels, or by first appearance.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    Notes
    -----
    Where representatives tie, the first object wins: with many equal distances the value depends
    on the order of the objects. On whole numbers rounding decides nothing; in ``fpc::cdbw`` it
    does, and a translation may change the value.

    References
    ----------
    Halkidi & Vazirgiannis (2008), Pattern Recognition Letters 29, 773–786.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0, 0], [1, 0], [0, 1.1], [9, 0], [10, 0], [9, 1.2]]
    >>> tight = ws.cdbw_score(X, [0, 0, 0, 1, 1, 1])
    >>> loose = ws.cdbw_score(X, [0, 1, 0, 1, 0, 1])
    >>> tight > loose
    True
    """
    params = {"flavour": flavour, "n_representatives": n_representatives, "order": order}
    return score_one("cdbw", X, labels, params, None, noise, device)
