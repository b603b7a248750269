"""cf-means: k-means that searches for lower costs by moving centres, and the paper's steps."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from sklearn.callback import with_callbacks

from wellsep._arguments import check_random_state
from wellsep._checks import (
    UndefinedIndex,
    check_choice,
    check_count,
    check_number,
    to_numpy,
)
from wellsep.cluster.base import CentroidClusterer, FitProgress, NoProgress, check_clusters
from wellsep.cluster.counterfactual import SCHEDULES, step, weights_of
from wellsep.cluster.kmeans import restarts
from wellsep.cluster.local_search import Budget, History, open_budget
from wellsep.cluster.moves import relocate
from wellsep.cluster.sketch import search_from
from wellsep.compute.engine import own_threads
from wellsep.compute.loop import Ended, lower, publish, run
from wellsep.compute.points import (
    METRICS,
    Points,
    PointSet,
    RowValues,
    assign,
    inertia,
    labels_of,
    open_points,
)
from wellsep.compute.seeding import check_init, start_centers
from wellsep.compute.space import is_host

SEARCH = "search"
RELOCATIONS = 100  # most moves where each costs passes over all points


class CFMeansResult(NamedTuple):
    """Where cf-means ended; centres in the frame of the points."""

    centers: np.ndarray
    labels: RowValues
    inertia: float
    n_iter: int  # passes over the data, or as many distances as they take
    n_moves: int  # moves that were kept
    safeguarded: bool  # whether plain k-means from the same start was lower, and taken
    steps: dict[str, np.ndarray]
    history: dict[str, np.ndarray]


class CFMeans(CentroidClusterer):
    r"""k-means that looks for lower costs by moving badly placed centres.

    k-means from a start is computed first; a search then lowers its cost. A trial of the search
    takes a centre that is hardly missed, because its points are nearly as close to their second
    nearest centres, and puts it on a far point or into a cluster that two centres share with
    gain. Lloyd steps of the centres concerned decide whether the trial is kept. When trials fail
    in a row, single points go to their second nearest cluster where that pays (transfers), and
    the next round begins from a kick of the best centres (at most 15 clusters: from a fresh
    start). With 96 features or more a search on leading directions comes first. The inertia is
    never above that of k-means from the same start.

    What is the paper's: the counterfactual distance
    :math:`\sqrt q = (‖x−μ_a‖² − ‖x−μ_c‖²) / (2‖μ_c−μ_a‖)` of a point x with nearest centre μ_c
    and second nearest μ_a, and gradient steps on SSE + λ_t Σ_i w_i q_i before k-means. They are
    taken if ``schedule`` names them: "attract" (λ > 0) draws each point's second nearest centre
    to it, "repel" (λ < 0) drives it away, "oscillate" swings between the two. Departs from the
    poster: its printed signs, its b, and its gradients do not agree with each other; the formulas
    here are checked by finite differences. The search is ours; ``max_moves=0`` leaves it out.

    Points in memory are followed as their centres move, so that a trial costs a fraction of a
    pass. With Dask, and for arrays of other libraries than NumPy, SciPy and PyTorch, the search
    is a simpler one whose trials cost passes over all points: 100 relocations at most.

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
        Where centres start, as in ``KMeans``.
    n_init : int
        Number of starts; the lowest inertia is kept.
    max_iter : int
        Greatest number of Lloyd iterations of a refinement.
    tol : float
        A refinement ends once the summed squared shift of the centres is at most ``tol`` times
        the mean variance of the features.
    metric : {"euclidean", "cosine"}
        Distance, as in ``KMeans``; gradient steps are for "euclidean" alone.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        Σ_i w_i ‖x_i − μ_{c_i}‖², or Σ_i w_i (1 − cos(x_i, μ_{c_i})).
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
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (d,)
        Their names, where X had names.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        schedule: str = SEARCH,
        max_moves: int | None = None,
        max_seconds: float | None = None,
        weight: float = 1.0,
        n_steps: int = 8,
        safeguard: bool = True,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.schedule = schedule
        self.max_moves = max_moves
        self.max_seconds = max_seconds
        self.weight = weight
        self.n_steps = n_steps
        self.safeguard = safeguard
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.random_state = random_state

    @with_callbacks
    @own_threads()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CFMeans:
        """Find the centres.

        Parameters
        ----------
        X : array of shape (n, d)
            NumPy, CSR, a dataframe, a tensor of torch or another array-API library, or a dask
            collection, whose ``labels_`` are lazy then.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point.

        Returns
        -------
        CFMeans
            The fitted estimator.
        """
        X = self._validated(X)
        weights = self._weights(sample_weight, X)
        k = check_count("n_clusters", self.n_clusters)
        check_clusters(k, X.shape[0])
        init = check_init(self.init)
        n_init = restarts(self.n_init, init)
        schedule = check_choice("schedule", self.schedule, (SEARCH, *SCHEDULES))
        metric = check_choice("metric", self.metric, METRICS)
        if schedule != SEARCH and metric != METRICS[0]:
            raise ValueError(
                f"metric must be 'euclidean' for gradient steps, got {metric!r} with "
                f"schedule={schedule!r}; leave schedule={SEARCH!r}."
            )
        seconds = self.max_seconds
        if seconds is not None:
            seconds = check_number("max_seconds", seconds, 0.0) / n_init
        moves = self.max_moves
        options = {
            "schedule": schedule,
            "weight": check_number("weight", self.weight, 0.0),
            "n_steps": check_count("n_steps", self.n_steps, 0),
            "max_moves": None if moves is None else check_count("max_moves", moves, 0),
            "max_seconds": seconds,
            "safeguard": check_choice("safeguard", self.safeguard, (True, False)),
            "max_iter": check_count("max_iter", self.max_iter),
            "tol": check_number("tol", self.tol, 0.0),
            "random_state": check_random_state(self.random_state),
        }
        if k == 1:
            warnings.warn(
                "n_clusters=1 leaves no second centre to be told apart from; "
                "CFMeans falls back to k-means.",
                UserWarning,
                stacklevel=3,
            )
        points = open_points(X, weights, metric)

        progress = FitProgress(self, X, sample_weight, None)
        best: Any = None
        for _ in range(n_init):
            result = cfmeans(points, k, init, progress=progress, **options)
            if best is None or lower(result.inertia, best.inertia):
                best = result
            if progress.stopped:
                break
        self._publish(X, points, best, weights)
        self._warn_if_fewer(points, best.labels, k)
        progress.close()
        return self

    def _publish(self, X: Any, points: PointSet, best: Any, weights: Any) -> None:
        self.cluster_centers_ = publish(points, best.centers)
        self.labels_ = points.publish(best.labels, np.int32)
        self.inertia_ = points.frame.squared(best.inertia)
        self.n_iter_ = best.n_iter
        self.n_moves_ = best.n_moves
        self.safeguarded_ = best.safeguarded
        self.steps_ = _in_user_units(best.steps, points)
        self.history_ = _in_user_units(best.history, points)
        measure: Any = separation_in_chunks if points.in_chunks else separation
        self.margins_, self.cfq_ = measure(X, self.labels_, points, best.centers, weights)


def _in_user_units(table: dict[str, np.ndarray], points: PointSet) -> dict[str, np.ndarray]:
    squares = ("objective", "inertia")
    return {n: points.frame.squared(c) if n in squares else c for n, c in table.items()}


def cfmeans(
    points: PointSet,
    n_clusters: int,
    init: Any,
    *,
    schedule: str,
    weight: float,
    n_steps: int,
    max_moves: int | None,
    max_seconds: float | None,
    safeguard: bool,
    max_iter: int,
    tol: float,
    random_state: np.random.RandomState,
    progress: NoProgress | None = None,
) -> CFMeansResult:
    """cf-means from one start: k-means, the paper's steps if they are named, the search."""
    progress = NoProgress() if progress is None else progress
    budget, history = open_budget(n_clusters, max_moves, max_seconds), History()
    start = start_centers(points, n_clusters, init, random_state)
    alone = weight == 0.0 or n_clusters == 1 or (schedule == SEARCH and max_moves == 0)
    plain = None
    if safeguard or alone:
        plain = _refine(points, start, max_iter, tol, progress)
        if alone:
            return CFMeansResult(*plain, 0, False, _course([]), history.columns())
    centers, course = start if plain is None else plain.centers, []
    if schedule != SEARCH:
        centers, course = _gradient_steps(
            points, start, weights_of(schedule, weight, n_steps), progress
        )
    n_iter = len(course)
    if plain is not None and schedule == SEARCH:
        n_iter += plain.n_iter
    refined, passes, kept = _moved(
        points, centers, init, budget, max_iter, tol, random_state, progress, history
    )
    columns = history.columns()
    if points.frame.directions:
        columns["inertia"] = 0.5 * columns["inertia"]  # 1 − cos of squared distances
    if plain is not None and lower(plain.inertia, refined.inertia):
        return CFMeansResult(*plain, 0, True, _course(course), columns)
    return CFMeansResult(
        refined.centers,
        refined.labels,
        refined.inertia,
        n_iter + passes,
        kept,
        False,
        _course(course),
        columns,
    )


def _gradient_steps(
    points: PointSet, centers: np.ndarray, weights: np.ndarray, progress: NoProgress
) -> tuple[np.ndarray, list[tuple[float, float, float]]]:
    """The paper's part: steps on SSE + λΣq."""
    course: list[tuple[float, float, float]] = []
    for current in weights:
        progress.begin("step")
        moved, force = step(points, centers, float(current))
        course.append((float(current), force.objective, force.inertia))
        centers = moved
        progress.end(points, centers)
        if progress.stopped:
            break
    return centers, course


def _moved(
    points: PointSet,
    centers: np.ndarray,
    init: Any,
    budget: Budget,
    max_iter: int,
    tol: float,
    random_state: np.random.RandomState,
    progress: NoProgress,
    history: History,
) -> tuple[Ended, int, int]:
    """Where the search from these centres ends, its passes, and how many moves it kept."""
    if budget.max_moves == 0 or progress.stopped:
        refined = _refine(points, centers, max_iter, tol, progress)
        return refined, refined.n_iter, 0
    if searchable(points):
        again = init if isinstance(init, str) else "k-means++"

        def restart() -> np.ndarray:
            return start_centers(points, len(centers), again, random_state)

        found = search_from(
            points,
            centers,
            restart=restart,
            budget=budget,
            random_state=random_state,
            progress=progress,
            history=history,
        )
        passes = int(np.ceil(found.work / (points.n * len(centers))))
        return _ended(points, found.centers, passes), passes, found.n_moves
    search = relocate(
        points,
        centers,
        n_moves=int(min(budget.max_moves, RELOCATIONS)),
        random_state=random_state,
        progress=progress,
        budget=budget,
        history=history,
    )
    refined = _refine(points, search.centers, max_iter, tol, progress)
    return refined, search.n_iter + refined.n_iter, search.n_moves


def searchable(points: PointSet) -> TypeGuard[Points]:
    """Whether the state of a search can follow the centres as they move."""
    return isinstance(points, Points) and is_host(points.X)


def _ended(points: PointSet, centers: np.ndarray, n_iter: int) -> Ended:
    """Labels and inertia of centres that need no refinement."""
    labels = points.values(labels_of, beside=[points.values(assign, centers)])
    return Ended(centers, labels, float(points.fold(inertia, centers, beside=[labels])), n_iter)


def _refine(
    points: PointSet, centers: np.ndarray, max_iter: int, tol: float, progress: NoProgress
) -> Ended:
    progress.begin("refine")
    result = run(points, centers, max_iter=max_iter, tol=tol)
    progress.end(points, result.centers)
    return result


def _course(course: list[tuple[float, float, float]]) -> dict[str, np.ndarray]:
    table = np.array(course, dtype=np.float64).reshape(len(course), 3)
    return {"weight": table[:, 0], "objective": table[:, 1], "inertia": table[:, 2]}


def separation(
    X: Any, labels: Any, points: Any, centers: np.ndarray, weights: Any
) -> tuple[np.ndarray, float]:
    """Margins, and CFQ, NaN where they are undefined."""
    from wellsep.indices.centroid import margins_and_cfq

    labels = to_numpy(labels)
    present = np.flatnonzero(np.bincount(labels, minlength=len(centers)))
    if len(present) < 2:
        return np.full(len(labels), np.nan), np.nan
    if points.frame.directions:  # planes between directions lie among rows of length one
        return margins_and_cfq(points.X, labels, points.space.asarray(centers[present]), weights)
    return margins_and_cfq(X, labels, publish(points, centers[present]), weights)


def separation_in_chunks(
    X: Any, labels: Any, points: PointSet, centers: np.ndarray, weights: Any
) -> tuple[Any, float]:
    """Lazy margins, and CFQ."""
    from wellsep.indices import cfq_score, margins

    count, mass = points.fold(_members, centers)
    if (count > 0).sum() < 2:
        return points.publish(points.values(_undefined), np.float64), np.nan
    weighed = publish(points, centers[mass > 0])
    try:
        quality = cfq_score(X.array, labels, centers=weighed, sample_weight=weights)
    except UndefinedIndex:
        quality = np.nan
    return margins(X.array, labels, centers=publish(points, centers[count > 0])), float(quality)


def _members(points: Points, centers: np.ndarray) -> np.ndarray:
    """(2, k) number and mass of the points of each centre."""
    first, k = assign(points, centers).first, len(centers)
    return np.stack([np.bincount(first, w, k) for w in (None, points.weights)]).astype(float)


def _undefined(points: Points) -> np.ndarray:
    return np.full(points.n, np.nan)
