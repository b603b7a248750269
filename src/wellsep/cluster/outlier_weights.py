"""k-means with weights from the local outlier factor (LOF): outliers count more, or hardly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import (
    check_count,
    check_number,
    device_of,
    in_safe_units,
    is_dask,
    to_numpy,
)
from wellsep.cluster.cf_means.estimator import check_limits
from wellsep.cluster.cf_means.fit import CFOptions, cfmeans
from wellsep.cluster.estimator import CentroidClusterer, FitInput, NoProgress
from wellsep.cluster.kmeans import kmeans
from wellsep.compute.kmeans.lloyd import Ended, start_centers
from wellsep.compute.kmeans.prepared_points import Points, prepare
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph

POWER = 4  # of the falling weights: 1/LOF is too soft, a far point's pull grows with its square
# Up to here a factor is ordinary, as at the edge of a cluster, and costs no weight: the limit of
# scikit-learn's LocalOutlierFactor.
ORDINARY = 1.5
OUTLYING = 2.0  # factor above which a point counts as an outlier
LARGEST = 1e4  # factor that is not exceeded, next to spots of many equal points


class OutlierWeights(NamedTuple):
    """Outlier factors, NaN for points of weight 0, and the weights made of them."""

    scores: np.ndarray
    weights: np.ndarray


class _WeightedByOutliers(CentroidClusterer):
    """k-means of dense points with weights from their outlier factors."""

    def _validated(self, X: Any, *, reset: bool = True, **options: Any) -> Any:
        if is_dask(X) and reset:
            raise TypeError(
                "X must be in memory here, got a dask collection; pass X.compute() if it fits."
            )
        if sp.issparse(X):
            raise TypeError(
                "X must be dense here, got a sparse matrix; "
                "pass X.toarray() if it fits in memory, or use KMeans."
            )
        return super()._validated(X, reset=reset, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@dataclass(eq=False, repr=False)
class LOFKMeans(_WeightedByOutliers):
    """k-means in which outlying points count *more*, the opposite of robust. Also called LOFKM.

    Every point is weighted by its local outlier factor. This is the paper's idea: sparsely
    surrounded points draw a centre near, and their neighbours support their place in its cluster.
    Take it where every object must be close to its prototype, such as a facility or an example
    shown for it. Take ``RobustKMeans`` where outliers should not move the centres. The paper's
    measure, AvgLCD, is 0 for a cluster of one object, which has no neighbours to disagree. 0 is
    its best value, so a centre on a lone outlier lowers the average for that reason alone.

    The weights are W(x) = max(1, LOF_t(x)). k-means then minimises Σ_i W(x_i) w_i ‖x_i − μ_{c_i}‖².
    Points go to their nearest centre, centres to the weighted mean of their points. Nothing but
    the weights differs from k-means, starts included.

    LOF counts exactly t neighbours, as scikit-learn's does; the authors of LOF take all that tie
    at the t-th place. Where more than t points coincide, points next to them get weights of up to
    1e10, and a warning says so. Raise ``n_neighbors`` above the multiplicity, or drop duplicates
    and pass their counts as ``sample_weight``.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    n_neighbors : int
        t, the neighbours of LOF; cut to n - 1 with a warning.
    init : {"random", "k-means++"}, array of shape (k, d) or function
        Where centres start: random points, greedy k-means++, given centres, or
        ``init(X, n_clusters, random_state=...)``. LOF plays no part in it.
    n_init : int or "auto"
        Number of starts; the lowest result is kept. "auto" is 10, or 1 with k-means++ or given
        centres.
    max_iter : int
        Greatest number of Lloyd iterations of one start.
    tol : float
        Squared shift of all centres, over the mean variance of the features, at which a start ends.
    n_jobs : int, optional
        Threads of the neighbour search.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Weighted means of the points, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        The weighted sum above.
    n_iter_ : int
        Lloyd iterations of the start that was kept.
    lof_scores_ : ndarray of shape (n,)
        LOF of each point; NaN for points of weight 0, which are as good as absent.
    weights_ : ndarray of shape (n,)
        max(1, LOF) times ``sample_weight``.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names where X had names.

    References
    ----------
    Deepak P (2020), Local connectivity in centroid clustering, IDEAS, equations 10 to 13.
    Breunig, Kriegel, Ng and Sander (2000), LOF: identifying density-based local outliers, SIGMOD.

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1.0], [2.0], [3.0], [9.0], [20.0], [21.0], [22.0], [23.0]]
    >>> model = ws.LOFKMeans(2, n_neighbors=2, random_state=0).fit(X)
    >>> model.weights_.round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 4.33, 1.0, 1.0, 1.0, 1.0]
    >>> sorted(model.cluster_centers_.ravel().round(2).tolist())  # k-means: 3.0 and 21.5
    [5.4, 21.5]
    """

    _find = staticmethod(kmeans)
    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int = 5
    init: Any = "random"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float = 1e-4
    n_jobs: int | None = None
    random_state: Any = None

    def _prepared(self, given: FitInput) -> FitInput:
        t, init = check_count("n_neighbors", self.n_neighbors), given.starts.init
        outliers = outlier_weights(given.X, t, given.weights, n_jobs=self.n_jobs)
        self.lof_scores_, self.weights_ = outliers
        # Starts are drawn as k-means draws them, so that both may be compared from the same start.
        plain = prepare(given.X, given.weights)

        def start(_: Any, n_clusters: int, random_state: Any) -> np.ndarray:
            return plain.frame.leave(start_centers(plain, n_clusters, init, random_state))

        starts = given.starts._replace(init=start)
        return given._replace(starts=starts, point_weights=outliers.weights)


@dataclass(eq=False, repr=False)
class RobustKMeans(_WeightedByOutliers):
    """k-means with little weight for outlying points, which then hardly move the centres.

    M(x) is the greatest local outlier factor of x over t = s/4, s/2 and s neighbours, where s is
    ``min_cluster_size``. It is about 1 inside a cluster, and greater for outliers and for groups
    of fewer than t points. Starts and the search of ``CFMeans`` then use the weights
    w / max(1, M/1.5)⁴. Every point gets the label of its nearest centre; ``outlier_`` marks those
    with M > 2.

    No rule tells a clump of outliers from a true cluster of the same size: groups smaller than
    ``min_cluster_size`` lose weight, and may lose their centre. Lower it where small clusters
    matter; where there are no outliers, ``KMeans`` and ``CFMeans`` keep small clusters better.
    ``LOFKMeans`` is the opposite: it gives outlying points *more* weight.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    min_cluster_size : int
        s, the size from which a group of points counts as a cluster and not as outliers; cut to
        n - 1 with a warning.
    trim : float or "auto", optional
        Share of the points that count nowhere: in every further Lloyd step those farthest from
        their centres. "auto" takes the share with M > 2. None takes no further steps; 0.0 takes
        them with all points at ``sample_weight``, which gives outliers their weight back.
    max_moves : int, optional
        Greatest number of trials of the search from one start; without it and ``max_seconds``,
        max(100, 5k).
    max_seconds : float, optional
        Processor time after which no trial begins, for all starts together; results are then not
        repeatable.
    init : {"k-means++", "random"}, array of shape (k, d) or function
        Where centres start: greedy k-means++, random points, given centres, or
        ``init(X, n_clusters, random_state=...)``. Draws follow the weights.
    n_init : int or "auto"
        Number of starts, 1 by default; the lowest result is kept. "auto" is 1, or 10 where ``init``
        is "random" or a function.
    max_iter : int
        Greatest number of Lloyd iterations of one start.
    tol : float
        Squared shift of all centres, over the mean variance of the features, at which a start ends.
    n_jobs : int, optional
        Threads of the neighbour search.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point, of outliers and trimmed points too.
    inertia_ : float
        Summed squared distances to the centres, weighted by ``weights_``.
    n_iter_ : int
        Passes over the data of the start that was kept, without the steps of ``trim``.
    lof_scores_ : ndarray of shape (n,)
        M of each point; NaN for points of weight 0, which are as good as absent.
    weights_ : ndarray of shape (n,)
        ``sample_weight`` / max(1, M/1.5)⁴. With ``trim``: ``sample_weight``, 0 for trimmed points.
    outlier_ : ndarray of shape (n,), bool
        Whether M > 2.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names where X had names.

    References
    ----------
    Breunig, Kriegel, Ng and Sander (2000), LOF: identifying density-based local outliers, SIGMOD.
    Cuesta-Albertos, Gordaliza and Matrán (1997), Trimmed k-means: an attempt to robustify
    quantizers, Annals of Statistics 25 (``trim``).

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1.0], [2.0], [3.0], [60.0], [20.0], [21.0], [22.0], [23.0]]
    >>> model = ws.RobustKMeans(2, min_cluster_size=4, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().round(1).tolist())  # k-means: 11.5 and 60.0
    [1.5, 21.5]
    >>> model.outlier_.tolist().index(True)
    4
    """

    _n_tasks_known = False
    n_clusters: int = 8
    _: KW_ONLY
    min_cluster_size: int = 40
    trim: float | str | None = None
    max_moves: int | None = None
    max_seconds: float | None = None
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    n_jobs: int | None = None
    random_state: Any = None

    def _prepared(self, given: FitInput) -> FitInput:
        limits = check_limits(self.max_moves, self.max_seconds, given.starts.n_init)
        size, trim = check_count("min_cluster_size", self.min_cluster_size), check_trim(self.trim)
        outliers = robust_weights(given.X, size, given.weights, n_jobs=self.n_jobs)
        self.lof_scores_, self.weights_ = outliers
        self.outlier_ = outliers.scores > OUTLYING
        share = float(np.mean(self.outlier_)) if trim == "auto" else trim
        options = CFOptions(max_moves=limits[0], max_seconds=limits[1]), share
        return given._replace(point_weights=outliers.weights, options=options)

    def _find(self, points: Points, given: FitInput, progress: NoProgress) -> Any:
        """cf-means, then Lloyd steps without the farthest points, decided anew in every step."""
        # Trimming alone keeps centres on outliers: it starts from centres that these did not move.
        search, share = given.options
        ended = cfmeans(points, given._replace(options=search), progress)
        if share is None:
            return ended
        whole, centers = prepare(given.X, given.weights, "euclidean", points.frame), ended.centers
        weights = np.ones(whole.n) if given.weights is None else given.weights
        n_out, inside = round(share * whole.n), weights
        for _ in range(given.starts.max_iter):
            nearest, before = whole.assign(centers), centers
            inside = weights.copy()
            inside[np.argsort(-to_numpy(nearest.near), kind="stable")[:n_out]] = 0.0
            sums, mass = replace(whole, weights=inside).label_sums(nearest.first, len(centers))
            centers = whole.frame.means(sums, mass, before)
            if np.array_equal(centers, before):
                break
        nearest, self.weights_ = whole.assign(centers), inside
        cost = float(to_numpy(nearest.near) @ inside)
        return Ended(centers, nearest.first, cost, ended.n_iter)


def check_trim(trim: Any) -> float | str | None:
    """A share below one half, "auto" or None."""
    if trim is None or (isinstance(trim, str) and trim == "auto"):
        return trim
    if isinstance(trim, str) or not 0.0 <= check_number("trim", trim, 0.0) < 0.5:
        raise ValueError(f"trim must be None, 'auto' or a share from 0 to below 0.5, got {trim!r}.")
    return float(trim)


def outlier_weights(
    X: Any, n_neighbors: int, sample_weight: Any = None, *, n_jobs: int | None = None
) -> OutlierWeights:
    """max(1, LOF) of every point that has weight, times that weight (equation 10)."""
    given, scores = _scores("n_neighbors", X, n_neighbors, sample_weight, n_jobs, _factor)
    return OutlierWeights(scores, given * np.fmax(scores, 1.0))


def robust_weights(
    X: Any, size: int, sample_weight: np.ndarray | None = None, *, n_jobs: int | None = None
) -> OutlierWeights:
    """The greatest LOF of each point over three numbers of neighbours, and w / max(1, M/1.5)⁴."""
    given, scores = _scores("min_cluster_size", X, size, sample_weight, n_jobs, _greatest_factor)
    return OutlierWeights(scores, given / np.fmax(scores / ORDINARY, 1.0) ** POWER)


def _scores(
    name: str,
    X: Any,
    size: int,
    sample_weight: Any,
    n_jobs: int | None,
    factor: Callable[[NeighbourGraph], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the points and their factors: NaN without weight, 1 where there is no other."""
    given = np.ones(len(X)) if sample_weight is None else sample_weight
    counted = np.flatnonzero(given > 0)
    t = min(size, len(counted) - 1)
    if t < size:
        warnings.warn(
            f"{name} must be less than the number of points ({len(counted)}), "
            f"got {size}; {t} will be used.",
            UserWarning,
            stacklevel=7,
        )
    scores = np.full(len(given), np.nan)
    scores[counted] = 1.0
    if t > 0:
        X = in_safe_units(to_numpy(X) if device_of(X) is None else X)[0]
        scores[counted] = factor(NeighbourGraph.of(X[counted], t, n_jobs=n_jobs))
    return given, scores


def _factor(graph: NeighbourGraph) -> np.ndarray:
    buried = int((graph.distances[:, -1] == 0).sum())
    if buried:
        warnings.warn(
            f"{buried} points coincide with at least n_neighbors = {graph.indices.shape[1]} "
            "others, which makes the weights of points next to them huge; raise n_neighbors, or "
            "drop duplicates and pass their counts as sample_weight.",
            UserWarning,
            stacklevel=8,
        )
    return graph.outlier_factor()


def _greatest_factor(graph: NeighbourGraph) -> np.ndarray:
    most = graph.indices.shape[1]
    factors = []
    for t in {max(1, most // 4), most // 2 or 1, most}:
        near = replace(graph, indices=graph.indices[:, :t], distances=graph.distances[:, :t])
        factors.append(near.outlier_factor())
    factor = np.maximum.reduce(factors)
    beside_equals = int((factor > LARGEST).sum())
    if beside_equals:
        warnings.warn(
            f"{beside_equals} points lie next to spots where many points coincide, and got almost "
            "no weight. Drop duplicates and pass their counts as sample_weight if these points "
            "should count.",
            UserWarning,
            stacklevel=8,
        )
    return np.minimum(factor, LARGEST)
