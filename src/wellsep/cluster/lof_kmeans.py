"""LOFKM: k-means whose centres lean towards sparsely surrounded points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import (
    check_count,
    check_number,
    to_numpy,
)
from wellsep._checks.values import check_random_state
from wellsep._sklearn_callbacks import with_callbacks
from wellsep.cluster.estimator import CentroidClusterer, FitProgress, check_clusters
from wellsep.cluster.kmeans import kmeans, restarts
from wellsep.compute.data.opening import device_of
from wellsep.compute.data.safe_units import in_safe_units
from wellsep.compute.engine.threads import own_threads
from wellsep.compute.kmeans.lloyd import publish
from wellsep.compute.kmeans.prepared_points import open_points
from wellsep.compute.kmeans.starts import check_init, start_centers
from wellsep.compute.statistics.neighbour_graph import (
    NeighbourGraph,
    local_outlier_factor,
    nearest_neighbours,
)


class LOFKMeans(CentroidClusterer):
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
        Where centres start: random points, greedy k-means++, the given centres, or
        ``init(X, n_clusters, random_state=...)``. LOF plays no part in it.
    n_init : int or "auto"
        Number of restarts; "auto" is 10 for random starts, else 1.
    max_iter : int
        Greatest number of iterations of one restart.
    tol : float
        A restart ends once the summed squared shift of the centres is at most ``tol`` times the
        mean variance of the features.
    n_jobs : int, optional
        Threads of the neighbour search.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, weighted means of their points.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        The weighted sum above.
    n_iter_ : int
        Iterations of the restart that was kept.
    lof_scores_ : ndarray of shape (n,)
        LOF of each point; NaN for points of weight 0, which are as good as absent.
    weights_ : ndarray of shape (n,)
        max(1, LOF) times ``sample_weight``.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (d,)
        Their names, where X had names.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 5,
        init: Any = "random",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @own_threads()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LOFKMeans:
        """Weigh the points by LOF and find the centres.

        Parameters
        ----------
        X : array of shape (n, d)
            Dense: NumPy, a dataframe, or a tensor (whose neighbours are searched where it lies).
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point, multiplied with its LOF weight.

        Returns
        -------
        LOFKMeans
            The fitted estimator.
        """
        X = self._validated(X)
        given = self._weights(sample_weight, X)
        k = check_count("n_clusters", self.n_clusters)
        check_clusters(k, X.shape[0])
        init = check_init(self.init)
        n_init = restarts(self.n_init, init)
        max_iter = check_count("max_iter", self.max_iter)
        tol = check_number("tol", self.tol, 0.0)
        t = check_count("n_neighbors", self.n_neighbors)

        # Starts are drawn as k-means draws them, so that both may be compared from the same start.
        plain = open_points(X, given)
        weigh_points = chunked_outlier_weights if plain.in_chunks else outlier_weights
        outliers = weigh_points(X, t, given, n_jobs=self.n_jobs)
        points = open_points(X, outliers.weights)

        def start(_: Any, n_clusters: int, random_state: Any) -> np.ndarray:
            return plain.frame.leave(start_centers(plain, n_clusters, init, random_state))

        progress = FitProgress(self, X, sample_weight, n_init)
        best = kmeans(
            points,
            k,
            init=start,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            random_state=check_random_state(self.random_state),
            progress=progress,
        )

        self.lof_scores_ = outliers.scores
        self.weights_ = outliers.weights
        self.cluster_centers_ = publish(points, best.centers)
        self.labels_ = points.publish(best.labels, np.int32)
        self.inertia_ = points.frame.squared(best.inertia)
        self.n_iter_ = best.n_iter
        self._warn_if_fewer(points, best.labels, k)
        progress.close()
        return self

    def _validated(self, X: Any, *, reset: bool = True, **options: Any) -> Any:
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


class OutlierWeights(NamedTuple):
    """LOF and the weights made of it."""

    scores: np.ndarray
    weights: np.ndarray


def outlier_weights(
    X: Any,
    n_neighbors: int,
    sample_weight: np.ndarray | None = None,
    *,
    n_jobs: int | None = None,
) -> OutlierWeights:
    """max(1, LOF) of every point that has weight, times that weight (equation 10)."""
    X = in_safe_units(to_numpy(X) if device_of(X) is None else X)[0]
    given = np.ones(len(X)) if sample_weight is None else sample_weight
    return weigh(
        given,
        n_neighbors,
        lambda counted, t: nearest_neighbours(X[counted], t, n_jobs=n_jobs),
    )


def chunked_outlier_weights(
    X: Any, n_neighbors: int, sample_weight: Any, *, n_jobs: int | None
) -> OutlierWeights:
    """The same on Dask; the graph, 16 bytes a neighbour, and the weights are gathered, X is not."""
    from wellsep.compute.engine.dask.neighbours import neighbours_of

    X = X.in_safe_units()
    given = np.ones(X.n) if sample_weight is None else np.asarray(sample_weight.compute())
    return weigh(given, n_neighbors, lambda counted, t: neighbours_of(X, given > 0, t))


def weigh(
    given: np.ndarray, n_neighbors: int, search: Callable[[np.ndarray, int], NeighbourGraph]
) -> OutlierWeights:
    """The weights, with ``search(counted, t)`` to find the t neighbours of the counted points."""
    counted = np.flatnonzero(given > 0)
    scores = np.full(len(given), np.nan)
    t = min(n_neighbors, len(counted) - 1)
    if t < n_neighbors:
        warnings.warn(
            f"n_neighbors must be less than the number of points ({len(counted)}), "
            f"got {n_neighbors}; {t} will be used.",
            UserWarning,
            stacklevel=5,
        )
    if t == 0:
        scores[counted] = 1.0
        return OutlierWeights(scores, given.copy())
    graph = search(counted, t)
    scores[counted] = local_outlier_factor(graph)
    buried = int((graph.distances[:, -1] == 0).sum())
    if buried:
        warnings.warn(
            f"{buried} points coincide with at least n_neighbors = {t} others, which makes the "
            "weights of points next to them huge; raise n_neighbors, or drop duplicates and pass "
            "their counts as sample_weight.",
            UserWarning,
            stacklevel=5,
        )
    weights = given.copy()
    weights[counted] *= np.maximum(scores[counted], 1.0)
    return OutlierWeights(scores, weights)
