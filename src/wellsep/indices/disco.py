"""DISCO: a silhouette for clusters of any shape that judges noise, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_count
from wellsep.compute.metrics.dc_distance import MinimaxParts
from wellsep.compute.plan import gather
from wellsep.compute.requests import Want, want
from wellsep.indices.registry import index
from wellsep.indices.scoring import one_task_of_values, score_one


def _wants_disco(min_points: int = 5) -> dict[str, Want]:
    check_count("min_points", min_points, 1)
    return {"parts": want("minimax", min_points=min_points)}


@index(
    name="disco",
    title="DISCO",
    words="The mean silhouette with the distance over paths of high density. A noise object "
    "counts by how sparse its place is and how far from every cluster.",
    wants=_wants_disco,
    direction=1,
    range=(-1, 1),
    cost="n²·d",
    weighted=False,
    minimum_clusters=0,
    price="included",
    citation="Beer, Krieger, Weber, Ritzert, Assent & Plant, Internal evaluation of density-based "
    "clusterings with noise, arXiv:2503.00127 (2025)",
    caution="One cluster with a few far noise objects can score above the right clustering: "
    "compare clusterings of two clusters or more.",
)
def _disco(parts: MinimaxParts | None, *, min_points: int = 5) -> float:
    return float(_values(parts, min_points).mean())


def _values(parts: MinimaxParts | None, min_points: int) -> np.ndarray:
    """(n,) the width of an object of a cluster, the smaller of two ratios of a noise object."""
    if parts is None:
        raise UndefinedIndex(f"disco needs at least min_points = {min_points} objects")
    noise = np.isnan(parts.widths)
    if noise.all():
        return np.full(len(noise), -1.0)
    values = parts.widths.copy()
    ratio = np.minimum(parts.sparse, parts.far)  # p/q, of which (p − q)/max(p, q) rises with it
    values[noise] = np.where(ratio > 1, 1 - 1 / np.maximum(ratio, 1), ratio - 1)
    return values


def disco_score(
    X: Any, labels: Any, *, min_points: int = 5, noise: str = "exclude", device: Any = None
) -> float:
    r"""Return DISCO: a silhouette with distances along dense paths, which scores noise, too.

    Distances are dc-distances. The length of a path along objects is its longest step, measured as
    mutual reachability max(core(x), core(y), ‖x−y‖). The dc-distance of two objects is the length
    of the shortest path between them. The core distance of x reaches its ``min_points``-th nearest
    object, x being the first. An object of a cluster counts its silhouette width. A noise object x
    counts

    .. math:: \min_k\min\left(
              \frac{\mathrm{core}(x)-c_k}{\max(\mathrm{core}(x),\,c_k)},\
              \frac{\mathrm{dc}(x,C_k)-c_k}{\max(\mathrm{dc}(x,C_k),\,c_k)}\right)

    with c_k the largest core distance in cluster k and dc(x, C_k) the smallest distance to it.
    Noise is right where it is sparse and far from every cluster. The value is the mean over all
    objects; :func:`disco_samples` has that of each. Range [-1, 1], greater is better. Undefined
    for fewer than ``min_points`` objects. The part of the clusters alone is
    :func:`silhouette_score` with ``metric="dc"``.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Computed on the host in float64.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    min_points : int, default 5
        How many objects a core distance reaches, the object itself counted.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is judged as above ("exclude", "penalize"), one cluster, one per object, or refused.
    device : str, optional
        Where X is placed, such as "cuda"; the value is computed on the host.

    Notes
    -----
    One cluster without noise has the value 0, noise alone -1. The rivals of a single cluster are
    its noise objects, so that with a few far ones it can score above the right partition.

    References
    ----------
    Beer, Krieger, Weber, Ritzert, Assent & Plant (2025), arXiv:2503.00127.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [2], [10], [11], [13]]
    >>> round(ws.disco_score(X, [0, 0, 0, 1, 1, -1], min_points=2), 4)
    0.8125
    """
    return score_one("disco", X, labels, {"min_points": min_points}, None, noise, device)


def disco_samples(
    X: Any, labels: Any, *, min_points: int = 5, noise: str = "exclude", device: Any = None
) -> np.ndarray:
    """Return the DISCO value of each object, noise included; their mean is `disco_score`.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Computed on the host in float64.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    min_points : int, default 5
        How many objects a core distance reaches, the object itself counted.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is judged as such, is one cluster, is a cluster per object, or is refused.
    device : str, optional
        Where X is placed, such as "cuda"; the value is computed on the host.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [2], [10], [11], [13]]
    >>> ws.disco_samples(X, [0, 0, 0, 1, 1, -1], min_points=2).tolist()
    [0.875, 0.875, 0.875, 0.875, 0.875, 0.5]
    """
    params = {"min_points": min_points}
    task, entry, params = one_task_of_values("disco", X, labels, params, None, noise, device)
    wanted = entry.wants(**params)["parts"]
    return _values(gather(task, [wanted])[wanted][0], min_points)
