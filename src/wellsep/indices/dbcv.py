"""DBCV: validity of clusters of any shape, from densities; noise is part of the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.compute.density_trees import DensityTrees
from wellsep.compute.gather import gather
from wellsep.compute.wants import Want, want
from wellsep.indices.record import index
from wellsep.indices.scoring import one_task, score_one


def _wants_dbcv() -> dict[str, Want]:
    return {"trees": want("density_trees")}


@index(
    name="dbcv",
    title="Density-based clustering validation",
    wants=_wants_dbcv,
    direction=1,
    range=(-1, 1),
    cost="n²·d",
    weighted=False,
    price="included",
    citation="Moulavi, Jaskowiak, Campello, Zimek & Sander, Density-based clustering validation, "
    "SDM (2014)",
    caution="Core distances are powers of distances to the d: in many dimensions the nearest "
    "neighbour alone decides. Ties of reachability are broken by distance.",
)
def _dbcv(trees: DensityTrees) -> float:
    return float((trees.sizes / trees.n_objects * _validities(trees)).sum())


def _validities(trees: DensityTrees) -> np.ndarray:
    """(nearest separation − sparseness) / the larger of the two; 0 for a cluster of one object."""
    apart, inside = trees.separation, trees.sparseness
    top = np.where(np.isinf(apart), 1, np.maximum(apart, inside))
    # all others are single objects: nothing is near, and the cluster is as separate as can be
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(np.isinf(apart), 1.0, (apart - inside) / top)
    return np.where(np.isnan(inside) | np.isnan(value), 0.0, value)


def dbcv_score(X: Any, labels: Any, *, noise: str = "exclude", device: Any = None) -> float:
    r"""Density-based clustering validation: dense within against sparse between, for any shape.

    .. math:: \sum_k\frac{n_k}{n}\cdot
              \frac{\min_{l\ne k}\mathrm{DSPC}(k,l)-\mathrm{DSC}(k)}
              {\max(\min_{l\ne k}\mathrm{DSPC}(k,l),\ \mathrm{DSC}(k))}

    On the minimum spanning tree of each cluster under mutual reachability max(core(x), core(y),
    ‖x−y‖), DSC is the longest edge between inner objects (those with two or more edges), and
    DSPC the smallest reachability between inner objects of two clusters. The core distance of x
    in its cluster is :math:`\bigl(\frac{1}{n_k-1}\sum_{y\ne x}\lVert x-y\rVert^{-d}\bigr)^{-1/d}`.
    Range [-1, 1], greater is better.

    n counts all objects: those labelled -1 belong to no cluster and lower the value.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Computed on the host in float64.
    labels : array-like of shape (n,)
    noise : {"exclude", "priced", "cluster", "singletons", "error"}
        What the label -1 means. "exclude" leaves such objects out of the clusters and in n;
        "priced" is the same here.
    device : str, optional

    Returns
    -------
    float

    Raises
    ------
    UndefinedIndex
        One cluster, or every object its own.

    See Also
    --------
    dbcv_clusters : the validity of each cluster.

    Notes
    -----
    A cluster of one object has no density: it counts 0. Where several trees are equally short,
    the one of the shortest plain distances is taken, so that neither the order of the objects
    nor of the labels matters. Distances are Euclidean, as in the paper; the authors' own program
    squares them.

    References
    ----------
    Moulavi, Jaskowiak, Campello, Zimek & Sander (2014), SIAM Data Mining, 839–847.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_moons
    >>> X, moons = make_moons(200, noise=0.05, random_state=0)
    >>> halves = (X[:, 0] > 0.5).astype(int)
    >>> round(ws.dbcv_score(X, moons), 2), round(ws.dbcv_score(X, halves), 2)
    (0.18, -0.54)
    """
    return score_one("dbcv", X, labels, noise=noise, device=device)


def dbcv_clusters(X: Any, labels: Any, *, noise: str = "exclude", device: Any = None) -> np.ndarray:
    """Validity of each cluster by DBCV, in the order of the sorted labels; each in [-1, 1].

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [2], [10], [11], [12]]
    >>> ws.dbcv_clusters(X, [0, 0, 0, 1, 1, 1]).round(2).tolist()
    [0.87, 0.87]
    """
    task, entry, _ = one_task("dbcv", X, labels, None, noise, device)
    wanted = entry.wants()["trees"]
    return _validities(gather(task, [wanted])[wanted][0])
