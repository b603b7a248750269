"""Local connectivity (LCD): how well neighbours connect each object to its cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from wellsep._checks.arrays import check_choice, check_count, check_data
from wellsep._checks.labels import NOISE, in_order_of
from wellsep._checks.values import check_jobs
from wellsep._text.sentences import Views, count
from wellsep.compute.statistics.cluster_prototypes import Around, best_supported, open_around
from wellsep.distances.base import PairSpace
from wellsep.indices.registry import index
from wellsep.partitions import VALUE_POLICIES, Partitions, encode


@dataclass(frozen=True, eq=False)
class LocalConnectivity(Views):
    """Local connectivity disagreement of a partition; lower is better everywhere.

    Attributes
    ----------
    objects : ndarray of shape (n,)
        LCD of each object in its cluster, in [0, n_neighbors / 2); NaN for noise.
    clusters : ndarray of shape (K,)
        The highest LCD in each cluster.
    maximum, mean : float
        MaxLCD and AvgLCD: maximum and mean of `clusters`.
    n_witnesses : ndarray of shape (n,), int
        How many neighbours lie between the object and its prototype, at most `n_neighbors`.
    better_cluster : ndarray of shape (n,)
        The label of the cluster whose members among the object's nearest neighbours agree most;
        its own label where none is better, -1 for noise.
    labels : ndarray of shape (K,)
        The label of each entry of `clusters`.
    radii : ndarray of shape (n,)
        Distance of each object to its prototype.
    n_neighbors : int
    coverage : float
        Share of the objects that are counted.
    """

    objects: np.ndarray
    clusters: np.ndarray
    maximum: float
    mean: float
    n_witnesses: np.ndarray
    better_cluster: np.ndarray
    labels: np.ndarray
    radii: np.ndarray
    n_neighbors: int
    coverage: float

    def columns(self) -> dict[str, list[Any]]:
        """Return LCD, neighbours and better cluster of each object."""
        return {
            "lcd": self.objects.tolist(),
            "n_witnesses": self.n_witnesses.tolist(),
            "better_cluster": self.better_cluster.tolist(),
            "radius": self.radii.tolist(),
        }

    def sentences(self) -> Iterator[str]:
        """Say how far neighbours disagree with the clusters."""
        objects, clusters = count(len(self.objects), "object"), count(len(self.clusters), "cluster")
        yield (
            f"MaxLCD is {self.maximum:.4g} and AvgLCD {self.mean:.4g} ({objects}, {clusters}, "
            f"{count(self.n_neighbors, 'neighbour')}); lower is better."
        )


def local_connectivity(
    X: Any,
    labels: Any,
    *,
    centers: Any = None,
    n_neighbors: int = 5,
    noise: str = "exclude",
    n_jobs: int | None = None,
) -> LocalConnectivity:
    """Measure how far the neighbours of each object disagree with its cluster (LCD).

    Let c be the prototype of x's cluster C. A member s of C lies between x and c if
    dist(s, c) ≤ dist(x, c) and dist(x, s) < dist(x, c). N(x) are the up to t nearest of them. Then

        LCD(x) = Σ_{s ∈ N(x)} Dev(s) · ND(s)                         0 ≤ LCD(x) < t / 2
        Dev(s) = (dist(c, s) + dist(s, x)) / dist(x, c) − 1          aside from the line x – c
        ND(s)  = dist(x, s) / (dist(c, s) + dist(s, x))              away from x

    LCD(C) is the maximum over the objects of C, MaxLCD and AvgLCD are maximum and mean over the
    clusters. Lower is better. Of neighbours that tie at the t-th place the one with the smaller
    term counts, so the order of the objects plays no part. Distances that differ by less than one
    part in 10¹² are the same. An object on its prototype has LCD 0. Fewer than t neighbours mean a
    smaller sum, by design: compare clusters much larger than t. The index "lcd" of
    ``score_partitions`` is AvgLCD or, with ``aggregate="max"``, MaxLCD. No n × n matrix is made.

    Parameters
    ----------
    X : array-like of shape (n, d), Distances or MixedTable
        Objects; distances of rows are Euclidean.
    labels : array-like of shape (n,)
        Cluster of each object.
    centers : array-like of shape (K, d), or int of shape (K,), optional
        Prototypes, one per cluster in the order of the sorted labels, or indexed by the labels
        themselves where these are 0, 1, …; by default the means. Where X holds distances,
        positions of objects (``KMedoids.medoid_indices_``).
    n_neighbors : int
        t, the largest number of neighbours that count.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    n_jobs : int, optional
        Threads of the neighbour searches.

    Returns
    -------
    LocalConnectivity

    Notes
    -----
    A mean needs no coordinates: its squared distance to x is that of x to the members, on average,
    less half of that between two members. Unless distances are Euclidean it may fall below 0, and
    counts as 0; medoids are then the safer prototypes.

    References
    ----------
    .. [1] Deepak P, "Local connectivity in centroid clustering", IDEAS 2020, equations 1 to 9.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0, 0.0], [3.0, 0.0], [4.0, 3.0], [8.0, 0.0]]
    >>> lcd = ws.local_connectivity(X, [0, 0, 0, 0], centers=[[0.0, 0.0]], n_neighbors=3)
    >>> lcd.objects.round(4).tolist(), lcd.n_witnesses.tolist()
    ([0.0, 0.0, 0.1193, 0.125], [0, 0, 1, 2])
    """
    check_choice("noise", noise, VALUE_POLICIES)
    data = checked_objects(X)
    partition = encode(in_order_of(X, labels), n_objects=len(data), noise=noise)
    around, unit = open_around(data, partition.classes[0], partition.codes[0], centers)
    return measure(around, unit, partition, n_neighbors, n_jobs)


def checked_objects(X: Any) -> Any:
    """Dense rows, or a space of distances that are all known."""
    if not isinstance(X, PairSpace):
        return check_data(X)
    if not X.complete:
        raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
    return X


def measure(
    around: Around, unit: float, partition: Partitions, n_neighbors: int, n_jobs: int | None
) -> LocalConnectivity:
    """``local_connectivity`` of objects whose prototypes are known."""
    t, sizes = check_count("n_neighbors", n_neighbors), partition.sizes[0]
    if small := int((sizes <= t).sum()):
        warnings.warn(
            f"{small} of {len(sizes)} clusters have at most n_neighbors = {t} members (the "
            f"smallest has {sizes.min()}): fewer neighbours are summed there, so their LCD is "
            "lower by design.",
            UserWarning,
            stacklevel=3,
        )
    objects, support, radii, clusters = _measure(around, t, effective_n_jobs(check_jobs(n_jobs)))
    codes, classes = partition.codes[0], partition.classes[0]
    counted, best = np.flatnonzero(codes >= 0), codes.copy()
    every = len(counted) == len(codes)
    if len(counted) > 1 and len(classes) > 1:
        some = around if every else around.take(counted)
        best[counted] = best_supported(some, radii[counted], t, n_jobs=n_jobs)
    better = classes[np.maximum(best, 0)]
    return LocalConnectivity(
        objects=objects,
        clusters=clusters,
        maximum=float(clusters.max()),
        mean=float(clusters.mean()),
        n_witnesses=support,
        better_cluster=better if every else np.where(codes >= 0, better, NOISE),
        labels=classes,
        radii=radii * unit,
        n_neighbors=t,
        coverage=float(partition.coverage[0]),
    )


def _measure(around: Around, t: int, workers: int = 1) -> tuple[np.ndarray, ...]:
    """LCD, number of neighbours and radius of each object; the highest LCD of each cluster."""
    n, k = len(around.codes), around.n_clusters
    objects, radii, support = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=np.int32)
    clusters = np.empty(k)
    by_cluster = np.argsort(around.codes, kind="stable")
    ends = np.searchsorted(around.codes[by_cluster], np.arange(k + 1))
    for code in range(k):
        members = by_cluster[ends[code] : ends[code + 1]]
        objects[members], support[members] = around.witnesses(members, code, t, workers)
        radii[members] = around.own_radii(members, code)
        clusters[code] = objects[members].max()
    return objects, support, radii, clusters


@index(
    name="lcd",
    title="Local connectivity disagreement",
    words="For each object how far its nearest neighbours on the way to the cluster's "
    "centre lie aside from the line to it; the largest of each cluster, averaged.",
    direction=-1,
    range=(0, np.inf),
    cost="n²·d",
    weighted=False,
    citation="Deepak P, Local connectivity in centroid clustering, IDEAS (2020)",
    caution="Falls with the size of the clusters: compare clusterings of the same K.",
)
def _lcd(objects: Any, *, n_neighbors: int = 5, aggregate: str = "mean") -> float:
    t = check_count("n_neighbors", n_neighbors)
    check_choice("aggregate", aggregate, ("mean", "max"))
    around, _ = open_around(objects.X, np.arange(objects.n_clusters), objects.codes, None)
    clusters = _measure(around, t)[-1]
    return float(clusters.mean() if aggregate == "mean" else clusters.max())
