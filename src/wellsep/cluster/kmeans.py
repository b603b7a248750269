"""k-means, the baseline of the family: starts, restarts, and the one Lloyd loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, to_numpy
from wellsep._checks.values import check_flag
from wellsep._threads import own_threads
from wellsep.cluster.batches import StreamedClusterer
from wellsep.cluster.estimator import UNWATCHED, FitInput, NoProgress
from wellsep.compute.kmeans.lloyd import Ended, lower, run, start_centers
from wellsep.compute.kmeans.prepared_points import Points, prepare


def kmeans(points: Points, given: FitInput, progress: NoProgress = UNWATCHED) -> Ended:
    """The lowest inertia of several Lloyd runs; centres in the frame of the points."""
    starts = given.starts
    best: Any = None
    for _ in range(starts.n_init):
        progress.begin("restart")
        start = start_centers(points, starts.n_clusters, starts.init, starts.random_state)
        result = run(points, start, max_iter=starts.max_iter, tol=starts.tol)
        if best is None or lower(result.inertia, best.inertia):
            best = result
        progress.end(points, best.centers)
        if progress.stopped:
            break
    return best


@dataclass(eq=False, repr=False)
class KMeans(StreamedClusterer):
    """k-means: k centres that minimise the summed squared distance of points to them.

    The inertia Σ_i w_i ‖x_i − μ_{c_i}‖² falls with every Lloyd iteration. The lowest of
    ``n_init`` restarts is kept. ``metric="cosine"`` is spherical k-means: rows and centres have
    unit length, and the inertia is Σ_i w_i (1 − cos(x_i, μ_{c_i})). A row of zeros is at distance
    1 from every centre, moves none and gets the first label.

    scikit-learn's own ``KMeans`` is the better choice for plain fits of dense rows in memory. With
    20 clusters or more its iterations take up to a fifth less time. All of an iteration runs on
    several cores there; here the sums run on one. Take this one for cosine, tensors, Dask and
    memory maps, and for results that do not depend on the number of threads. Its ``predict`` with
    the extra ``fast`` is as fast or faster. Take ``CFMeans`` where the lowest cost matters.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    init : {"k-means++", "random"}, array of shape (k, d) or function
        Where centres start: greedy k-means++, random points, the given centres, or
        ``init(X, n_clusters, random_state=...)``.
    n_init : int or "auto"
        Number of restarts. "auto", the default, is a single start by k-means++, which may end in a
        poor optimum: pass 10 where the result matters, or take ``CFMeans``. Where ``init`` is
        "random" or a function, "auto" is 10. Given centres have one start.
    max_iter : int
        Greatest number of Lloyd iterations of one restart.
    tol : float
        Squared shift of all centres, over the mean variance of the features, at which a start ends.
    metric : {"euclidean", "cosine"}
        Distance.
    batch_size : int, optional
        Rows that are read at a time. Centres are then found on a sample of max(40k, 2000) rows,
        and passes over all rows in batches move each centre to the mean of the rows assigned to it.
        Only the sample and a batch are copied, so that X may be a memory map larger than memory.
    random_state : int, RandomState instance or None
        Source of all randomness.
    copy_x : bool
        Taken as scikit-learn takes it. X is never changed, whatever it is.
    algorithm : {"lloyd", "elkan"}
        Taken as scikit-learn takes it. Both end in the same place, and one loop serves both.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        The inertia above.
    n_iter_ : int
        Lloyd iterations of the restart that was kept.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names where X had names.

    References
    ----------
    Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28, 129-137.
    Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    Dhillon and Modha (2001), Concept decompositions for large sparse text data using clustering,
    Machine Learning 42, 143-175 (metric="cosine").

    Examples
    --------
    >>> import wellsep as ws
    >>> model = ws.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 9.5], 1.0)
    """

    _find = staticmethod(kmeans)
    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float = 1e-4
    metric: str = "euclidean"
    batch_size: int | None = None
    random_state: Any = None
    copy_x: bool = True
    algorithm: str = "lloyd"

    def _prepared(self, given: FitInput) -> FitInput:
        check_choice("algorithm", self.algorithm, ("lloyd", "elkan"))
        check_flag("copy_x", self.copy_x)
        return given


@own_threads()
def kmeans_labels(
    model: KMeans, ks: Sequence[int], X: Any, weights: Any, seed: int
) -> list[np.ndarray]:
    """Labels of a k-means with each number of clusters; the points are made ready once."""
    points = prepare(X, weights, check_choice("metric", model.metric, Points.METRICS))
    starts, labels = model._starts()._replace(random_state=np.random.RandomState()), []
    for k in ks:
        starts.random_state.seed(seed)  # a new generator takes .1 ms
        ended = kmeans(points, FitInput(X, weights, starts._replace(n_clusters=k)))
        labels.append(to_numpy(points.publish(ended.labels, np.int32)))
    return labels
