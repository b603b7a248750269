"""k-means that outlying points hardly move: weights that fall with the local outlier factor."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import check_count, check_number, is_dask, to_numpy
from wellsep._checks.values import check_random_state
from wellsep._sklearn_callbacks import with_callbacks
from wellsep.cluster.cf_means.estimator import SEARCH, cfmeans
from wellsep.cluster.estimator import CentroidClusterer, FitProgress, check_clusters
from wellsep.cluster.kmeans import restarts
from wellsep.compute.data.opening import device_of
from wellsep.compute.data.safe_units import in_safe_units
from wellsep.compute.engine.threads import own_threads
from wellsep.compute.kmeans.lloyd import lower, means, publish
from wellsep.compute.kmeans.prepared_points import (
    PointSet,
    RowValues,
    assign,
    label_sums,
    open_points,
    prepare,
)
from wellsep.compute.kmeans.starts import check_init
from wellsep.compute.statistics.neighbour_graph import (
    NeighbourGraph,
    local_outlier_factor,
    nearest_neighbours,
)

POWER = 4  # of the falling weights: 1/LOF is too soft, a far point's pull grows with its square
# Up to here a factor is ordinary, as at the edge of a cluster, and costs no weight: the limit of
# scikit-learn's LocalOutlierFactor.
ORDINARY = 1.5
OUTLYING = 2.0  # factor above which a point counts as an outlier
LARGEST = 1e4  # factor that is not exceeded, next to spots of many equal points


class RobustKMeans(CentroidClusterer):
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
        their centres. "auto" takes the share with M > 2. None trims nothing.
    max_moves : int, optional
        Greatest number of trials from one start. Without ``max_moves`` and ``max_seconds`` it is
        max(100, 5k), and the search also ends after three rounds that bring nothing.
    max_seconds : float, optional
        Processor time after which no trial begins, for all starts together. Results are then not
        repeatable; with ``max_moves`` they are.
    init : {"k-means++", "random"}, array of shape (k, d) or function
        Where centres start: greedy k-means++, random points, the given centres, or
        ``init(X, n_clusters, random_state=...)``. Draws follow the weights.
    n_init : int
        Number of starts; the lowest inertia is kept.
    max_iter : int
        Greatest number of Lloyd iterations of a refinement.
    tol : float
        A refinement ends once the summed squared shift of the centres is at most ``tol`` times
        the mean variance of the features.
    n_jobs : int, optional
        Threads of the neighbour search.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, weighted means of their points.
    labels_ : array of shape (n,)
        Nearest centre of each point, outliers too.
    inertia_ : float
        Σ_i weights_i ‖x_i − μ_{c_i}‖²; without the trimmed points.
    n_iter_ : int
        Passes over the data.
    lof_scores_ : ndarray of shape (n,)
        M of each point; NaN for points of weight 0, which are as good as absent.
    weights_ : ndarray of shape (n,)
        ``sample_weight`` / max(1, M/1.5)⁴; 0 for trimmed points.
    outlier_ : ndarray of shape (n,), bool
        Whether M > 2.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (d,)
        Their names, where X had names.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        min_cluster_size: int = 40,
        trim: float | str | None = None,
        max_moves: int | None = None,
        max_seconds: float | None = None,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.min_cluster_size = min_cluster_size
        self.trim = trim
        self.max_moves = max_moves
        self.max_seconds = max_seconds
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @own_threads()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RobustKMeans:
        """Weigh the points and find the centres.

        Parameters
        ----------
        X : array of shape (n, d)
            Dense, in memory: NumPy, a dataframe, or a tensor.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point, divided by max(1, M/1.5)⁴.

        Returns
        -------
        RobustKMeans
            The fitted estimator.
        """
        X = self._validated(X)
        given = self._weights(sample_weight, X)
        k = check_count("n_clusters", self.n_clusters)
        check_clusters(k, X.shape[0])
        init = check_init(self.init)
        size = check_count("min_cluster_size", self.min_cluster_size)
        trim = check_trim(self.trim)
        moves, seconds = self.max_moves, self.max_seconds
        n_init = restarts(self.n_init, init)
        options: dict[str, Any] = {
            "schedule": SEARCH,
            "weight": 1.0,
            "n_steps": 0,
            "safeguard": True,
            "max_moves": None if moves is None else check_count("max_moves", moves, 0),
            "max_seconds": seconds
            if seconds is None
            else check_number("max_seconds", seconds, 0.0) / n_init,
            "max_iter": check_count("max_iter", self.max_iter),
            "tol": check_number("tol", self.tol, 0.0),
            "random_state": check_random_state(self.random_state),
        }
        found = robust_weights(X, size, given, n_jobs=self.n_jobs)
        points = open_points(X, found.weights)
        progress = FitProgress(self, X, sample_weight, None)
        best: Any = None
        for _ in range(n_init):
            result = cfmeans(points, k, init, progress=progress, **options)
            if best is None or lower(result.inertia, best.inertia):
                best = result
            if progress.stopped:
                break
        self.lof_scores_ = found.scores
        self.outlier_ = found.scores > OUTLYING
        self.weights_ = found.weights
        centers, labels, inertia, n_iter = best[:4]
        share = float(np.mean(self.outlier_)) if trim == "auto" else trim
        if share:
            ended = trimmed(points, X, given, centers, float(share), options["max_iter"])
            centers, labels, inertia, self.weights_ = ended
        self.cluster_centers_ = publish(points, centers)
        self.labels_ = points.publish(labels, np.int32)
        self.inertia_ = points.frame.squared(inertia)
        self.n_iter_ = n_iter
        self._warn_if_fewer(points, labels, k)
        progress.close()
        return self

    def _validated(self, X: Any, *, reset: bool = True, **options: Any) -> Any:
        if sp.issparse(X):
            raise TypeError(
                "X must be dense here, got a sparse matrix; "
                "pass X.toarray() if it fits in memory, or use KMeans."
            )
        if is_dask(X) and reset:
            raise TypeError(
                "X must be in memory here, got a dask collection; pass X.compute() if it fits."
            )
        return super()._validated(X, reset=reset, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def check_trim(trim: Any) -> float | str | None:
    """A share below one half, "auto" or None."""
    if trim is None or (isinstance(trim, str) and trim == "auto"):
        return trim
    if isinstance(trim, str) or not 0.0 <= check_number("trim", trim, 0.0) < 0.5:
        raise ValueError(f"trim must be None, 'auto' or a share from 0 to below 0.5, got {trim!r}.")
    return float(trim)


class RobustWeights(NamedTuple):
    """Outlier factors and the weights made of them."""

    scores: np.ndarray
    weights: np.ndarray


def robust_weights(
    X: Any, size: int, sample_weight: np.ndarray | None = None, *, n_jobs: int | None = None
) -> RobustWeights:
    """The greatest LOF of each point over three numbers of neighbours, and w / max(1, M/1.5)⁴."""
    X = in_safe_units(to_numpy(X) if device_of(X) is None else X)[0]
    given = np.ones(len(X)) if sample_weight is None else sample_weight
    counted = np.flatnonzero(given > 0)
    scores = np.full(len(given), np.nan)
    most = min(size, len(counted) - 1)
    if most < size:
        warnings.warn(
            f"min_cluster_size must be less than the number of points ({len(counted)}), "
            f"got {size}; {most} will be used.",
            UserWarning,
            stacklevel=5,
        )
    if most < 1:
        scores[counted] = 1.0
        return RobustWeights(scores, given.copy())
    graph = nearest_neighbours(X[counted], most, n_jobs=n_jobs)
    factor = np.maximum.reduce(
        [local_outlier_factor(_first(graph, t)) for t in {max(1, most // 4), most // 2 or 1, most}]
    )
    if (factor > LARGEST).any():
        warnings.warn(
            f"{int((factor > LARGEST).sum())} points lie next to spots where many points "
            "coincide, and got almost no weight. Drop duplicates and pass their counts as "
            "sample_weight if these points should count.",
            UserWarning,
            stacklevel=5,
        )
    scores[counted] = np.minimum(factor, LARGEST)
    weights = np.zeros(len(given))
    weights[counted] = given[counted] / np.maximum(scores[counted] / ORDINARY, 1.0) ** POWER
    return RobustWeights(scores, weights)


def _first(graph: NeighbourGraph, t: int) -> NeighbourGraph:
    return replace(graph, indices=graph.indices[:, :t], distances=graph.distances[:, :t])


def trimmed(
    points: PointSet,
    X: Any,
    sample_weight: np.ndarray | None,
    centers: np.ndarray,
    share: float,
    max_iter: int,
) -> tuple[np.ndarray, RowValues, float, np.ndarray]:
    """Lloyd steps without the farthest points, decided anew in every step.

    Starts from centres that outliers did not move: trimming alone keeps centres on outliers.
    """
    whole = prepare(X, sample_weight, "euclidean", points.frame)
    weights = np.ones(whole.n) if sample_weight is None else sample_weight
    n_out = round(share * whole.n)
    inside = weights
    for _ in range(max_iter):
        near = to_numpy(assign(whole, centers).near)
        kept = weights.copy()
        if n_out:
            kept[np.argsort(-near, kind="stable")[:n_out]] = 0.0
        some = prepare(X, kept, "euclidean", points.frame)
        moved = means(some, *label_sums(some, assign(some, centers), len(centers)), centers)
        still = np.array_equal(moved, centers)
        inside, centers = kept, moved
        if still:
            break
    found = assign(whole, centers)
    return centers, RowValues(found.first), float(to_numpy(found.near) @ inside), inside
