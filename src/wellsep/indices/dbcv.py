"""DBCV: validity of clusters of any shape, from densities; noise is part of the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_number
from wellsep.compute.data.opening import TAKEN
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.density_trees import DensityTrees
from wellsep.indices.registry import index
from wellsep.indices.scoring import one_task_of_values, score_one, statistics_of_one


def _wants_dbcv(
    ties: str = "core", metric: Any = "euclidean", d: float | None = None
) -> dict[str, Want]:
    check_choice("ties", ties, ("core", "hdbscan"))
    entry = find(metric)
    if d is None and not entry.coordinates:
        raise ValueError(
            "d must be given where X holds distances, got None: core distances are powers to the "
            "number of columns; pass d=1 for strings or series, or the dimension of the data."
        )
    if d is not None:
        check_number("d", d, 0.0, open_left=True)
    return {"trees": want("density_trees", ties=ties, metric=metric, d=d)}


@index(
    name="dbcv",
    title="Density-based clustering validation",
    words="For each cluster (least density separation from others − longest inner edge of "
    "its density tree) over the larger of the two; the mean, weighted by size.",
    wants=_wants_dbcv,
    direction=1,
    range=(-1, 1),
    cost="n²·d",
    metrics=TAKEN,
    distances=True,
    weighted=False,
    price="included",
    citation="Moulavi, Jaskowiak, Campello, Zimek & Sander, Density-based clustering validation, "
    "SDM (2014)",
    caution="Core distances are powers of distances to the d: in many dimensions the nearest "
    "neighbour alone decides. Objects at the rim of a cluster count in no distance, so that two or "
    "three of them set apart can score high.",
)
def _dbcv(
    trees: DensityTrees, *, ties: str = "core", metric: Any = "euclidean", d: float | None = None
) -> float:
    return float((trees.sizes / trees.n_objects * _validities(trees)).sum())


def _validities(trees: DensityTrees) -> np.ndarray:
    """(nearest separation − sparseness) / the larger of the two; 0 where there is no tree."""
    apart, inside = trees.separation, trees.sparseness
    with np.errstate(invalid="ignore"):  # 0/0: all objects of both clusters in one place
        value = (apart - inside) / np.maximum(apart, inside)
    return np.where(np.isnan(value), 0.0, value)


def dbcv_score(
    X: Any,
    labels: Any,
    *,
    ties: str = "core",
    metric: Any = "euclidean",
    d: float | None = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return DBCV: density within clusters against density between them, for any shape.

    .. math:: \sum_k\frac{n_k}{n}\cdot
              \frac{\min_{l\ne k}\mathrm{DSPC}(k,l)-\mathrm{DSC}(k)}
              {\max(\min_{l\ne k}\mathrm{DSPC}(k,l),\ \mathrm{DSC}(k))}

    Mutual reachability is max(core(x), core(y), ‖x−y‖). Each cluster has a minimum spanning tree
    under it, whose inner objects are those with two or more edges. DSC is the longest edge between
    inner objects, DSPC the smallest reachability between those of two clusters. The core distance
    of x in its cluster is
    :math:`\bigl(\frac{1}{n_k-1}\sum_{y\ne x}\lVert x-y\rVert^{-d}\bigr)^{-1/d}`. Range [-1, 1],
    greater is better. Undefined for one cluster, or where every object is its own. n counts all
    objects: noise belongs to no cluster and lowers the value (by cluster: :func:`dbcv_clusters`).

    Parameters
    ----------
    X : array-like, tensor or Distances of shape (n, d)
        Computed on the host in float64.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    ties : {"core", "hdbscan"}
        Of equally short trees the one whose edges end at objects with small core distances, or the
        one of ``hdbscan.validity.validity_index``, which depends on the order of the objects.
    metric : str or callable
        What scikit-learn's ``pairwise_distances`` takes ("precomputed": X has distances), or "dc".
    d : float, optional
        The power in core distances, by default the number of columns; needed where X holds
        distances. It changes the value, and may change which of two partitions is better.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise counts in n alone ("exclude", "penalize"), is one cluster, one per object, or refused.
    device : str, optional
        Where X is placed, such as "cuda"; the value is computed on the host.

    Notes
    -----
    A cluster of one object has no density. As in the authors' program it is noise, and the value
    is 0 where fewer than two clusters are left. Of a cluster of two objects both count as inner.

    Reachability has many ties: all that an object with a large core distance can reach lies at
    that distance. They decide which objects are inner. Of edges with equal reachability the one is
    taken whose denser end has the smaller core distance; then the one whose other end has. Of
    objects with equal core distances the one is first that has the smaller sum of squared distances
    to its cluster. All edges that are still equal count, as one where they join the same two parts
    of the tree. Numbers that differ by less than one part in 10⁹ are equal. Of objects in one
    place, one has all edges to other places. So no order of objects or columns matters.

    In the authors' program the first object decides: over ten orders of their second data set its
    value is .72 to .81. It squares distances: ``metric="sqeuclidean"`` gives their values of their
    four data sets to .0015.

    ``ties="hdbscan"`` gives the value of ``hdbscan.validity.validity_index`` (hdbscan 0.8) with
    its two other rules: duplicates do not count in core distances, and of a cluster of two objects
    the first alone is inner. Distances are those of scikit-learn where it has the metric, as the
    rounding of duplicates decides there too. On cosine distances far from the origin hdbscan loses
    digits in the separation. It takes ``d`` for matrices only, and fails on clusters of one object.
    The matrix of distances of a cluster is held in memory.

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
    (0.6, -0.39)
    """
    params = {"ties": ties, "metric": metric, "d": d}
    return score_one("dbcv", X, labels, params, None, noise, device)


def dbcv_clusters(
    X: Any,
    labels: Any,
    *,
    ties: str = "core",
    metric: Any = "euclidean",
    d: float | None = None,
    noise: str = "exclude",
    device: Any = None,
) -> np.ndarray:
    """Return the DBCV of each cluster, in the order of the sorted labels; each in [-1, 1].

    Parameters
    ----------
    X : array-like, tensor or Distances of shape (n, d)
        Computed on the host in float64.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    ties : {"core", "hdbscan"}
        Of equally short trees the one whose edges end at objects with small core distances, or
        hdbscan's, which depends on the order of the objects.
    metric : str or callable
        What scikit-learn's ``pairwise_distances`` takes ("precomputed": X has distances), or "dc".
    d : float, optional
        The power in core distances, by default the number of columns; needed where X holds
        distances.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        Where X is placed, such as "cuda"; the value is computed on the host.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1], [2], [10], [11], [12]]
    >>> ws.dbcv_clusters(X, [0, 0, 0, 1, 1, 1]).round(2).tolist()
    [0.87, 0.87]
    """
    params = {"ties": ties, "metric": metric, "d": d}
    opened = one_task_of_values("dbcv", X, labels, params, None, noise, device)
    return _validities(statistics_of_one(*opened)["trees"])
