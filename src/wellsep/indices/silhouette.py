"""Indices of distances between objects: the silhouette."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_number
from wellsep.compute.data.opening import TAKEN
from wellsep.compute.metrics.table import COSINE
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.silhouette_widths import WidthTotals
from wellsep.indices.registry import Score, index
from wellsep.indices.scoring import draw_objects, one_task_of_values, score_one, values_of_objects

_ROUSSEEUW = (
    "Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster "
    "analysis, Journal of Computational and Applied Mathematics 20 (1987)"
)


def average_widths(widths: WidthTotals, average: str) -> Score:
    """Mean over objects, or mean over clusters of the clusters' means; one for each sample."""
    check_choice("average", average, ("point", "cluster"))
    totals, mass, _ = widths
    if average == "point":
        counts = mass
    else:
        counts = mass > 0  # a cluster may be missing from a sample
        totals = np.divide(totals, mass, out=np.zeros_like(totals), where=counts)
    mean: Score = totals.sum(axis=-1) / counts.sum(axis=-1)
    return mean


def _wants_silhouette(
    metric: Any = "euclidean", average: str = "point", singleton: float = 0
) -> dict[str, Want]:
    check_number("singleton", singleton, -1, 1)
    return {"widths": want("widths", metric=metric, singleton=singleton)}


@index(
    name="silhouette",
    title="Silhouette",
    words="For each object b − a over the larger of both: a is the mean distance to its own "
    "cluster, b that to the nearest other cluster. The mean over objects.",
    wants=_wants_silhouette,
    direction=1,
    range=(-1, 1),
    cost="n²·d",
    metrics=TAKEN,
    distances=True,
    sparse_sums=True,
    price="zero",
    citation=_ROUSSEEUW,
    caution="Favours round clusters; comparable between clusterings of one embedding only.",
)
def _silhouette(
    widths: WidthTotals, *, metric: Any = "euclidean", average: str = "point", singleton: float = 0
) -> Score:
    return average_widths(widths, average)


@index(
    name="silhouette_cosine",
    title="Silhouette, cosine distance",
    words="For each object b − a over the larger of both: a is the mean cosine distance to "
    "its own cluster, b that to the nearest other cluster. The mean over objects.",
    wants=lambda average="point", singleton=0: _wants_silhouette(COSINE, average, singleton),
    direction=1,
    range=(-1, 1),
    cost="n·K·d",
    metrics=(COSINE,),
    laws=("labels", "order", "rotation", "scale"),
    sparse=True,
    price="zero",
    citation=_ROUSSEEUW,
    caution="Depends on where the origin is.",
)
def _silhouette_cosine(
    widths: WidthTotals, *, average: str = "point", singleton: float = 0
) -> Score:
    return average_widths(widths, average)


def silhouette_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_size: int | None = None,
    random_state: Any = None,
    average: str = "point",
    singleton: float = 0,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    undefined: str = "raise",
) -> float:
    r"""Return the silhouette: how much nearer objects are to their own cluster than to others.

    .. math:: s(x)=\frac{b(x)-a(x)}{\max(a(x),b(x))}

    with a the mean distance to the other members of the own cluster and b the smallest mean
    distance to the members of another. Range [-1, 1], greater is better. Undefined for one cluster,
    or where every object is its own. :func:`silhouette_samples` has the width of each object;
    :func:`simplified_silhouette_score` is cheaper, and a different number.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d), or (n, n) if ``metric="precomputed"``
        The objects.
    labels : array-like of shape (n,)
        The clustering: a label for each object. -1, -2 and -3 are noise.
    metric : str or callable, default "euclidean"
        "cosine" takes O(nKd) (and sparse X); "dc" is the distance over paths of high density (see
        `dc_metric`); all else of scikit-learn's ``pairwise_distances`` works block by block.
    sample_size : int, optional
        Number of objects that are drawn, all others left out. `silhouette_estimate` says how far
        its value can be off, and is nearer for the same work.
    random_state : int, RandomState instance or None
        Source of the draw.
    average : {"point", "cluster"}
        Mean over objects, or mean over clusters of cluster means.
    singleton : float, default 0
        Width of an object that is alone in its cluster.
    sample_weight : array-like of shape (n,), optional
        Weights enter the mean distances and the average. An object is no neighbour of itself,
        whatever its weight; equal weights change nothing; weight 0 removes.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is left out, lowers the value, is one cluster, a cluster per object, or refused.
        "penalize" multiplies a positive value by the coverage: the width of noise is then 0.
    device : str, optional
        Where to compute: "cuda" for the GPU.
    undefined : {"raise", "nan"}
        What to do where there is no value: raise ``UndefinedIndex``, or return NaN.

    References
    ----------
    Rousseeuw (1987), Journal of Computational and Applied Mathematics 20, 53–65.

    Examples
    --------
    >>> import wellsep as ws
    >>> round(ws.silhouette_score([[0.0], [1], [5], [6]], [0, 0, 1, 1]), 4)
    0.798
    """
    if sample_size is not None:
        X, labels, sample_weight, metric = draw_objects(
            X, labels, sample_weight, sample_size, random_state, metric
        )
    params = {"metric": metric, "average": average, "singleton": singleton}
    options = (sample_weight, noise, device)
    return score_one("silhouette", X, labels, params, *options, undefined=undefined)


def silhouette_samples(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    singleton: float = 0,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> np.ndarray:
    """Return the silhouette width of each object; NaN for objects that are not counted.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d), or (n, n) distances
        The objects; sparse with "euclidean" and "cosine". Widths of a dask collection are lazy.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    metric : str or callable
        What scikit-learn's ``pairwise_distances`` takes ("precomputed": X has distances), or "dc".
    singleton : float, default 0
        Width of an object that is alone in its cluster.
    sample_weight : array-like of shape (n,), optional
        Weights in the mean distances; an object of weight 0 is not counted.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise has NaN, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.silhouette_samples([[0.0], [1], [5], [6]], [0, 0, 1, 1]).round(3).tolist()
    [0.818, 0.778, 0.778, 0.818]
    """
    params = {"metric": metric, "singleton": singleton}
    options = (sample_weight, noise, device)
    task, entry, params = one_task_of_values("silhouette", X, labels, params, *options, minimum=2)
    return values_of_objects(task, entry.wants(**params)["widths"])
