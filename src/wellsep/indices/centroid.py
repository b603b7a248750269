"""Indices of cluster centres: CFQ and CFQ of mixtures, Davies-Bouldin, simplified silhouette."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_number, check_numbers
from wellsep._text.sentences import shown
from wellsep.compute.data.opening import open_space
from wellsep.compute.plan import gather
from wellsep.compute.requests import Task, Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.gaussian_borders import Mixture
from wellsep.compute.statistics.silhouette_widths import WidthTotals
from wellsep.indices.registry import Score, index
from wellsep.indices.scoring import (
    drop_weightless,
    one_task_of_values,
    score_one,
    statistics_of_one,
    values_of_objects,
)
from wellsep.indices.silhouette import average_widths
from wellsep.partitions import Partitions

BORDERLINE = 0.1  # margin, as a share of half the distance of two prototypes, below which it is one
RULES = ("diagonal", "full", "authors")  # for the covariances of a mixture


@index(
    name="davies_bouldin",
    title="Davies-Bouldin",
    words="For each cluster the largest of (its spread + another's spread) over the "
    "distance of their centres; the mean of these.",
    wants=lambda q=1: {
        "clusters": want("clusters"),
        "radii": want("radii", q=check_number("q", q, 0, open_left=True)),
    },
    direction=-1,
    range=(0, np.inf),
    cost="n·d",
    sparse=True,
    price="inverse",
    citation="Davies & Bouldin, A cluster separation measure, IEEE PAMI 1 (1979)",
    caution="Only centres and radii count: it cannot see shape, and rewards clusters of one.",
)
def _davies_bouldin(clusters: Clusters, radii: np.ndarray, *, q: float = 1) -> float:
    ratios = clusters.worst_partners(radii ** (1 / q))
    if ratios is None:
        raise UndefinedIndex("all cluster centres coincide")
    return float(ratios.mean())


def davies_bouldin_score(
    X: Any,
    labels: Any,
    *,
    q: float = 1,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    undefined: str = "raise",
) -> float:
    r"""Return the Davies-Bouldin index: mean of each cluster's worst ratio of spread to distance.

    .. math:: \frac1K\sum_k\max_{l\ne k}\frac{S_k+S_l}{\lVert v_k-v_l\rVert},\qquad
              S_k=\Bigl(\tfrac1{n_k}\sum_{x\in C_k}\lVert x-v_k\rVert^q\Bigr)^{1/q}

    Range [0, ∞), smaller is better. Pairs of coinciding centres are left out. Undefined for one
    cluster, n clusters, or all centres in one place (scikit-learn returns 0.0, "perfect", there).

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d)
        The objects.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    q : float, default 1
        Power of the radius; 1 is scikit-learn's, 2 is NbClust's and clusterSim's.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is left out, lowers the value, is one cluster, a cluster per object, or refused.
        "penalize" makes (1 + v)/c − 1 of the value v at coverage c.
    device : str, optional
        "cuda" computes on the GPU.
    undefined : {"raise", "nan"}
        Where there is no value, raise ``UndefinedIndex`` or return NaN.

    References
    ----------
    Davies & Bouldin (1979), IEEE Transactions on Pattern Analysis and Machine Intelligence 1.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.davies_bouldin_score([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, 1])
    0.2
    """
    options = (sample_weight, noise, device)
    return score_one("davies_bouldin", X, labels, {"q": q}, *options, undefined=undefined)


_VARDAKAS = (
    "Vardakas, Karra, Pitoura & Likas, Evaluating clustering quality in centroid-based "
    "clustering using counterfactual distances, Discovery Science (2025)"
)


def _wants_cfq(wrong_side: str = "zero") -> dict[str, Want]:
    check_choice("wrong_side", wrong_side, ("zero", "squared"))
    separation = want("separation", wrong_side=wrong_side)
    return {"clusters": want("clusters"), "within": want("within"), "separation": separation}


@index(
    name="cfq",
    title="Counterfactual quality",
    words="For each cluster the squared distances of its objects to the plane halfway to "
    "the nearest rival's centre, summed over clusters; divided by squared distances "
    "of objects from their own centre.",
    wants=_wants_cfq,
    direction=1,
    range=(0, np.inf),
    cost="n·K·d",
    sparse=True,
    price="variance",
    citation=_VARDAKAS,
    caution="Made for centroid-based clusters: it cannot see other shapes.",
)
def _cfq(
    clusters: Clusters, within: np.ndarray, separation: np.ndarray, *, wrong_side: str = "zero"
) -> float:
    nearest, total = cfq_parts(clusters, within, separation)
    return float(nearest.sum() / total)


def cfq_parts(
    clusters: Clusters, within: np.ndarray, separation: np.ndarray
) -> tuple[np.ndarray, float]:
    """S(j), the separation of each cluster from its nearest rival, and TV."""
    total = float(within.sum())
    scale = float((clusters.mass * (clusters.centers**2).sum(axis=1)).sum())
    if total <= 1e-24 * (total + scale):
        raise UndefinedIndex("every object lies on its centre, so that the variance is zero")
    if np.isnan(separation).all():
        raise UndefinedIndex("no cluster has a rival: all centres coincide")
    return np.where(np.isnan(separation), 0, separation), total


def _wants_mixture(covariances: Any = "diagonal", wrong_side: str = "zero") -> dict[str, Want]:
    wanted = _wants_cfq(wrong_side)
    if not isinstance(covariances, Mixture):
        check_choice("covariances", covariances, RULES)
    separation = want("quadric_separation", mixture=covariances, wrong_side=wrong_side)
    return {**wanted, "separation": separation}


@index(
    name="cfq_mixture",
    title="Counterfactual quality of a Gaussian mixture",
    words="As cfq, with the probability of each component in place of the nearest centre: "
    "how far objects must move until another component is more probable, over their spread.",
    wants=_wants_mixture,
    direction=1,
    range=(0, np.inf),
    cost="n·K·d",
    laws=("labels", "order", "translation", "scale"),
    price="variance",
    citation=_VARDAKAS,
    caution="Variances of small clusters are guesses, and so are the boundaries drawn from them.",
)
def _cfq_mixture(
    clusters: Clusters,
    within: np.ndarray,
    separation: np.ndarray | str,
    *,
    covariances: Any = "diagonal",
    wrong_side: str = "zero",
) -> float:
    if isinstance(separation, str):
        raise UndefinedIndex(separation)
    return float(_cfq(clusters, within, separation))


def cfq_score(
    X: Any,
    labels: Any,
    *,
    centers: Any = None,
    wrong_side: str = "zero",
    covariances: Any = None,
    weights: Any = None,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return CFQ: how far points must move to change cluster, relative to their spread.

    .. math:: d_{jl}(x)=\frac{\lVert x-\mu_l\rVert^2-\lVert x-\mu_j\rVert^2}
              {2\lVert\mu_j-\mu_l\rVert},\qquad
              \mathrm{CFQ}=\frac{\sum_j\min_{l\ne j}\sum_{x\in C_j}d_{jl}(x)^2}
              {\sum_j\sum_{x\in C_j}\lVert x-\mu_j\rVert^2}

    Range [0, ∞), greater is better. :func:`margins` has the distance of each object by itself.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d)
        The objects; dense and in memory where ``covariances`` are given.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    centers : array-like of shape (K, d), optional
        In the order of the sorted labels; the means by default.
    wrong_side : {"zero", "squared"}
        A point nearer to a rival's centre counts 0, or as much as any other, as in the authors'
        evaluator, which rewards misplaced points. Both agree for nearest-centre labels.
    covariances : array-like of shape (K, d) or (K, d, d), or {"diagonal", "full", "authors"}
        Of Gaussian components, in the order of the sorted labels: points then move to where the
        densities of two components are equal instead of to the plane between the centres.
        "diagonal" and "full" are taken from the clusters; "authors" is what the authors' evaluator
        does: the clusters' diagonal variances (ones if one is zero), without mixing weights.
    weights : array-like of shape (K,), optional
        Mixing weights. Default: equal; the clusters' shares for "diagonal" and "full".
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is left out, lowers the value, is one cluster, a cluster per object, or refused.
        "penalize" multiplies by c · W/(W + N): c is the coverage, W and N the squared distances of
        counted objects to their centres and of noise to its mean.
    device : str, optional
        "cuda" computes on the GPU.

    References
    ----------
    Vardakas, Karra, Pitoura & Likas (2025), Discovery Science.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.cfq_score([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, 1])
    25.0
    """
    params: dict[str, Any] = {"wrong_side": wrong_side}
    options = (sample_weight, noise, device, centers)
    if covariances is not None:
        params["covariances"] = _check_mixture(covariances, weights)
        return score_one("cfq_mixture", X, labels, params, *options)
    if weights is not None:
        raise ValueError("weights must be None without covariances, got mixing weights.")
    return score_one("cfq", X, labels, params, *options)


def _check_mixture(covariances: Any, weights: Any) -> Mixture:
    """Rule or tables of the components, and their mixing weights."""
    shares = None if weights is None else check_numbers("weights", weights)
    if shares is not None and (shares.ndim != 1 or not ((shares > 0) & (shares < np.inf)).all()):
        raise ValueError(f"weights must be a vector of positive numbers, got {shown(weights)}.")
    if isinstance(covariances, str):
        return Mixture(check_choice("covariances", covariances, RULES), shares)
    tables = check_numbers("covariances", covariances)
    square = tables.ndim == 3 and tables.shape[1] == tables.shape[2]
    if not (tables.ndim == 2 or square):
        raise ValueError(
            "covariances must have shape (K, d) for variances or (K, d, d) for matrices, "
            f"got {tables.shape}."
        )
    if not np.isfinite(tables).all():
        raise ValueError("covariances must be finite, got NaN or infinity.")
    if square and not np.allclose(tables, tables.transpose(0, 2, 1), rtol=1e-8, atol=0):
        raise ValueError("covariances must be symmetric matrices, got some that are not.")
    if shares is not None and len(shares) != len(tables):
        raise ValueError(
            f"weights must have one value per component ({len(tables)}), got {len(shares)}."
        )
    return Mixture(tables, shares)


def cfq_clusters(
    X: Any,
    labels: Any,
    *,
    centers: Any = None,
    wrong_side: str = "zero",
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> np.ndarray:
    """Return the CFQ of each cluster, in the order of the sorted labels: S(j) over its variance.

    A cluster whose objects all lie on the centre has no variance: infinite.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d)
        The objects.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    centers : array-like of shape (K, d), optional
        Centres in the order of the sorted labels; the means by default.
    wrong_side : {"zero", "squared"}
        What a point nearer to a rival's centre counts: 0, or its squared distance all the same.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.cfq_clusters([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, 1]).tolist()
    [25.0, 25.0]
    """
    options = (sample_weight, noise, device, centers)
    opened = one_task_of_values("cfq", X, labels, {"wrong_side": wrong_side}, *options, minimum=2)
    statistics = statistics_of_one(*opened)
    separation, _ = cfq_parts(**statistics)
    within = statistics["within"]
    undefined = np.full_like(separation, np.inf)
    return np.divide(separation, within, out=undefined, where=within > 0)


def margins(
    X: Any, labels: Any, *, centers: Any = None, noise: str = "exclude", device: Any = None
) -> np.ndarray:
    """Return the distance of each object to the nearest plane between its centre and another.

    A small margin means that the object is near the border, a negative one that it is nearer to
    another centre. NaN for noise, and where there is no other centre or all coincide.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d)
        The objects; margins of a dask collection are lazy.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    centers : array-like of shape (K, d), optional
        Centres in the order of the sorted labels; the means by default.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise has NaN, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.margins([[0.0, 0], [0, 1], [5, 0], [4, 1]], [0, 0, 1, 1]).round(3).tolist()
    [2.25, 2.25, 2.75, 1.75]
    """
    options = (None, noise, device, centers)
    task, _, _ = one_task_of_values("cfq", X, labels, {}, *options, minimum=2)
    values: np.ndarray = values_of_objects(task, want("margins"))
    return np.where(np.isinf(values), np.nan, values) * task.space.unit


def margins_and_cfq(
    X: Any, partition: Partitions, centers: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """The margin of every object, and CFQ, NaN where undefined, of what a fit has checked."""
    counted = partition if weights is None else drop_weightless(partition, weights)
    centers = centers[np.isin(partition.classes[0], counted.classes[0])]
    space, wanted, each = open_space(X), _wants_cfq(), want("margins", each=True)
    task = Task(space, counted, weights, (centers / space.unit,))
    statistics = gather(task, [*wanted.values(), each])
    quality, values = np.nan, statistics[each][0]
    with suppress(UndefinedIndex):
        quality = float(_cfq(**{name: statistics[w][0] for name, w in wanted.items()}))
    return np.where(np.isinf(values), np.nan, values) * space.unit, quality


@index(
    name="simplified_silhouette",
    title="Simplified silhouette (distances to centres)",
    words="For each object b − a over the larger of both: a is the distance to its own "
    "centre, b that to the nearest other centre. The mean over objects.",
    wants=lambda average="point": {"widths": want("simplified")},
    direction=1,
    range=(-1, 1),
    cost="n·K·d",
    sparse=True,
    price="zero",
    citation="Hruschka, de Castro & Campello, Evolutionary algorithms for clustering "
    "gene-expression data, ICDM (2004)",
    caution="Not the silhouette: distances to centres stand in for mean distances to members.",
)
def _simplified(widths: WidthTotals, *, average: str = "point") -> Score:
    return average_widths(widths, average)


def simplified_silhouette_score(
    X: Any,
    labels: Any,
    *,
    average: str = "point",
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return the simplified silhouette: distances to centres in place of those to members.

    .. math:: s(x)=\frac{b-a}{\max(a,b)},\quad a=\lVert x-v_{own}\rVert,\quad
              b=\min_{l}\lVert x-v_l\rVert

    Range [-1, 1], greater is better. It takes O(nKd) and is another number than the silhouette.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or dask collection of shape (n, d)
        The objects.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    average : {"point", "cluster"}
        Mean over objects, or mean over clusters of cluster means.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise is left out, lowers the value, is one cluster, a cluster per object, or refused.
        "penalize" multiplies a positive value by the coverage.
    device : str, optional
        "cuda" computes on the GPU.

    Examples
    --------
    >>> import wellsep as ws
    >>> round(ws.simplified_silhouette_score([[0.0], [1], [5], [6]], [0, 0, 1, 1]), 4)
    0.899
    """
    params = {"average": average}
    return score_one("simplified_silhouette", X, labels, params, sample_weight, noise, device)
