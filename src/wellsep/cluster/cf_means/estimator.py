"""cf-means: k-means that searches for lower costs by moving centres, and the paper's steps."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_count, check_number, to_numpy
from wellsep.cluster.batches import StreamedClusterer
from wellsep.cluster.cf_means.centre_search import History, columns_of
from wellsep.cluster.cf_means.fit import SEARCH, STEPS, CFMeansResult, CFOptions, cfmeans
from wellsep.cluster.cf_means.gradient_steps import SCHEDULES
from wellsep.cluster.estimator import FitInput, Starts
from wellsep.compute.kmeans.lloyd import Ended
from wellsep.compute.kmeans.prepared_points import Frame, Points
from wellsep.indices import cfq_score, margins
from wellsep.indices.centroid import margins_and_cfq
from wellsep.partitions import Partitions


@dataclass(eq=False, repr=False)
class CFMeans(StreamedClusterer):
    r"""k-means that looks for lower costs by moving badly placed centres.

    k-means from a start is computed first; a search then lowers its cost. A trial of the search
    takes a centre whose points are nearly as close to their second nearest centres. It puts this
    centre on a far point, or into a cluster that gains most from two centres. Lloyd steps of the
    centres concerned decide whether the trial is kept. When trials fail in a row, single points
    go to their second nearest cluster where that lowers the cost (transfers). The next round
    begins with several of the best centres moved, or with at most 15 clusters from a fresh start.
    With 96 features or more a search on leading directions comes first. The inertia is never
    above that of k-means from the same start.

    The paper has the counterfactual distance
    :math:`\sqrt q = (‖x−μ_a‖² − ‖x−μ_c‖²) / (2‖μ_c−μ_a‖)`
    of a point x with nearest centre μ_c and second nearest μ_a. It also has gradient steps on
    SSE + λ_t Σ_i w_i q_i before k-means, which are taken if ``schedule`` names them. With
    "attract", λ > 0, each point draws its second nearest centre to it. With "repel", λ < 0, it
    drives that centre away. "oscillate" does both in turn. Departs from the poster: its printed
    signs, its b, and its gradients do not agree with each other. The formulas here are checked by
    finite differences. The search is ours; ``max_moves=0`` leaves it out.

    With numba, and n·k·d of 500,000 or more, points are followed as their centres move, so that a
    trial costs a fraction of a pass; else a move is a pass. Tensors on a GPU stay there: a trial
    there is a batch of 64 proposals, of which those that touch different clusters are made
    together. With Dask a sample is searched, of 20,000 points or 1,000 for each cluster; passes of
    k-means over all points follow.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    schedule : {"search", "oscillate", "attract", "repel"}
        "search" takes no gradient steps. Others are the course of λ_t: λ(1−t/T)cos(4πt/T), λγᵗ or
        −λγᵗ, with T = ``n_steps`` and γ = 0.02^(1/T); the search begins where they end.
    max_moves : int, optional
        Greatest number of trials from one start. Without ``max_moves`` and ``max_seconds`` it is
        max(100, 5k), and the search also ends after three rounds that bring nothing.
    max_seconds : float, optional
        Processor time after which no trial begins, for all starts together. Results are then not
        repeatable; with ``max_moves`` they are.
    weight : float
        λ, the weight of the gradient steps at their start; 0 turns steps and search off.
    n_steps : int
        T, the number of gradient steps.
    safeguard : bool
        Whether the result may not be above that of k-means from the same start.
    init : {"k-means++", "random"}, array of shape (k, d) or function
        Where centres start: greedy k-means++, random points, given centres, or
        ``init(X, n_clusters, random_state=...)``.
    n_init : int or "auto"
        Number of starts, 1 by default; the lowest result is kept. "auto" is 1, or 10 where ``init``
        is "random" or a function.
    max_iter : int
        Greatest number of Lloyd iterations of one start.
    tol : float
        Squared shift of all centres, over the mean variance of the features, at which a start ends.
    metric : {"euclidean", "cosine"}
        Distance; gradient steps take "euclidean" alone.
    batch_size : int, optional
        Rows read at a time, of an array, memory map or sparse matrix. A sample is searched for up
        to half of ``max_seconds``; passes over all rows follow. ``history_`` is that of the passes;
        ``margins_`` and ``cfq_`` are not made.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        Σ w‖x − μ‖² of points and their centres; Σ w(1 − cos(x, μ)) for "cosine".
    n_iter_ : int
        Passes over the data of the start that was kept; the distances of a search are counted
        as the passes that have as many.
    n_moves_ : int
        Trials that were kept.
    safeguarded_ : bool
        Whether k-means from the same start was lower and is what was kept.
    history_ : dict of arrays
        "inertia", the lowest so far, against "work", the distances computed between points and
        centres, and "seconds" of processor time, during the search; in the sketch of many
        features the inertia is that of the sketch, and not reported.
    steps_ : dict of arrays of shape (n_steps,)
        "weight" λ_t, "objective" SSE + λ_tΣwq and "inertia" SSE before each gradient step.
    margins_ : ndarray of shape (n,)
        Distance of each point to the nearest plane between its centre and another
        (see ``margins``), of rows of length one for "cosine"; NaN where there is no other.
    cfq_ : float
        Counterfactual quality of the result (see ``cfq_score``); NaN where undefined.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names where X had names.

    References
    ----------
    Vardakas, Karra, Pitoura and Likas (2025), Evaluating clustering quality in centroid-based
    clustering using counterfactual distances, Discovery Science.
    Lattanzi and Sohler (2019), A better k-means++ algorithm via local search, ICML.
    Telgarsky and Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS
    (transfers).

    Examples
    --------
    >>> import wellsep as ws
    >>> model = ws.CFMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 9.5], 1.0)
    >>> model.margins_.tolist()
    [5.0, 4.0, 4.0, 5.0]
    """

    _find = staticmethod(cfmeans)
    _n_tasks_known = False
    n_clusters: int = 8
    _: KW_ONLY
    schedule: str = SEARCH
    max_moves: int | None = None
    max_seconds: float | None = None
    weight: float = 1.0
    n_steps: int = 8
    safeguard: bool = True
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    metric: str = "euclidean"
    batch_size: int | None = None
    random_state: Any = None

    def _prepared(self, given: FitInput) -> FitInput:
        if given.starts.n_clusters == 1:
            warnings.warn(
                "n_clusters=1 leaves no second centre to be told apart from; "
                "CFMeans falls back to k-means.",
                UserWarning,
                stacklevel=5,
            )
        return given._replace(options=self._cf_options(given.starts))

    def _cf_options(self, starts: Starts) -> CFOptions:
        schedule = check_choice("schedule", self.schedule, (SEARCH, *SCHEDULES))
        if schedule != SEARCH and self.metric != "euclidean":
            raise ValueError(
                f"metric must be 'euclidean' for gradient steps, got {self.metric!r} with "
                f"schedule={schedule!r}; leave schedule={SEARCH!r}."
            )
        return CFOptions(
            schedule,
            check_number("weight", self.weight, 0.0),
            check_count("n_steps", self.n_steps, 0),
            *check_limits(self.max_moves, self.max_seconds, starts.n_init),
            check_choice("safeguard", self.safeguard, (True, False)),
        )

    def _solve(self, points: Points, starts: Starts, max_seconds: float | None) -> np.ndarray:
        options = self._cf_options(starts)._replace(max_seconds=max_seconds)
        given = FitInput(None, None, starts._replace(n_init=1), options=options)
        return cfmeans(points, given).centers

    def _publish(self, points: Points, ended: CFMeansResult, given: FitInput) -> None:
        super()._publish(points, ended, given)
        self.n_moves_, self.safeguarded_ = ended.n_moves, ended.safeguarded
        self.steps_ = _in_user_units(ended.steps, points.frame)
        self.history_ = _in_user_units(ended.history, points.frame)
        measure: Any = separation_in_chunks if points.in_chunks else separation
        self.margins_, self.cfq_ = measure(
            given.X, self.labels_, points, ended.centers, given.weights
        )

    def _publish_batches(
        self, sample: Points, ended: Ended, history: History, given: FitInput
    ) -> None:
        super()._publish_batches(sample, ended, history, given)
        self.n_moves_, self.safeguarded_, self.steps_ = 0, False, columns_of(STEPS, [])
        self.history_ = _in_user_units(history.columns(), sample.frame)


def check_limits(max_moves: Any, max_seconds: Any, n_init: int) -> tuple[int | None, float | None]:
    """Greatest number of trials, and of seconds, from one start."""
    moves = None if max_moves is None else check_count("max_moves", max_moves, 0)
    if max_seconds is None:
        return moves, None
    return moves, check_number("max_seconds", max_seconds, 0.0) / n_init


def _in_user_units(table: dict[str, np.ndarray], frame: Frame) -> dict[str, np.ndarray]:
    squares = ("objective", "inertia")
    return {n: frame.squared(c) if n in squares else c for n, c in table.items()}


def separation(
    X: Any, labels: Any, points: Points, centers: np.ndarray, weights: Any
) -> tuple[np.ndarray, float]:
    """Margins, and CFQ, NaN where they are undefined."""
    present, codes = np.unique(to_numpy(labels), return_inverse=True)
    if len(present) < 2:
        return np.full(len(codes), np.nan), np.nan
    partition = Partitions(codes.astype(np.int32)[None], (present,), ("labels",), np.ones(1))
    if points.frame.directions:  # planes between directions lie among rows of length one
        return margins_and_cfq(points.X, partition, centers[present], weights)
    # The centres of the user, in the float type of X.
    published = to_numpy(points.publish_centers(centers[present])).astype(np.float64)
    return margins_and_cfq(X, partition, published, weights)


def separation_in_chunks(
    X: Any, labels: Any, points: Any, centers: np.ndarray, weights: Any
) -> tuple[Any, float]:
    """Lazy margins, and CFQ."""
    count, mass = points.fold(_members, centers)
    if (count > 0).sum() < 2:
        return labels * np.nan, np.nan
    weighed = points.publish_centers(centers[mass > 0])
    try:
        quality = cfq_score(X.array, labels, centers=weighed, sample_weight=weights)
    except UndefinedIndex:
        quality = np.nan
    present = points.publish_centers(centers[count > 0])
    return margins(X.array, labels, centers=present), float(quality)


def _members(points: Points, centers: np.ndarray) -> np.ndarray:
    """(2, k) number and mass of the points of each centre."""
    first, k = points.assign(centers).first, len(centers)
    return np.stack([np.bincount(first, w, k) for w in (None, points.weights)]).astype(float)
