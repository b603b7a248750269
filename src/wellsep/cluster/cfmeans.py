"""cf-means: k-means whose centres first feel, and then are moved by, counterfactual distances."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from wellsep._arguments import check_random_state
from wellsep._callbacks import with_callbacks
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
from wellsep.cluster.moves import relocate
from wellsep.compute.engine import own_threads
from wellsep.compute.loop import Ended, lower, publish, run
from wellsep.compute.points import Points, PointSet, RowValues, assign, open_points
from wellsep.compute.seeding import check_init, start_centers


class CFMeansResult(NamedTuple):
    """Where cf-means ended; centres in the frame of the points."""

    centers: np.ndarray
    labels: RowValues
    inertia: float
    n_iter: int  # passes over the data: steps, trials of moves, refinement
    n_moves: int  # relocations that were kept
    safeguarded: bool  # whether plain k-means from the same start was lower, and taken
    history: dict[str, np.ndarray]


class CFMeans(CentroidClusterer):
    r"""cf-means: k-means guided by how far points are from changing sides.

    The counterfactual distance of a point x with nearest centre μ_c and second nearest μ_a is the
    way to their bisecting plane, :math:`\sqrt q = (‖x−μ_a‖² − ‖x−μ_c‖²) / (2‖μ_c−μ_a‖)`. From a
    start, cf-means

    1. takes ``n_steps`` scale-free gradient steps on SSE + λ_t Σ_i w_i q_i with a weight λ_t that
       dies away: "attract" (λ > 0) draws each point's second nearest centre to it, "repel"
       (λ < 0) drives it away, "oscillate" swings between the two;
    2. relocates centres: the one whose points are the cheapest to hand over to their second
       nearest centres goes where a far point shows that a centre is missing; a move is kept only
       if the SSE falls, and eight failures in a row end the search;
    3. refines by Lloyd's k-means.

    Plain k-means from the same start is run too and kept if lower (the safeguard), so the
    inertia is never above that of k-means. With ``weight=0`` everything counterfactual is off
    and the result is that of k-means, step for step; so it is for one cluster, with a warning.

    Departs from the poster: its printed signs, its b, and its gradients do not agree with each
    other; the formulas here are checked by finite differences. The relocations are ours.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    schedule : {"oscillate", "attract", "repel"}
        Course of λ_t: λ(1−t/T)cos(4πt/T), λγᵗ or −λγᵗ, with T = ``n_steps`` and γ = 0.02^(1/T).
    weight : float
        λ, the weight at the start.
    n_steps : int
        T, the number of gradient steps.
    n_moves : int
        Greatest number of relocations tried; 0 leaves the gradient steps alone.
    safeguard : bool
        Whether to compare with k-means from the same start.
    init : {"k-means++", "random"}, array of shape (k, d) or function
        Where centres start, as in ``KMeans``.
    n_init : int
        Number of starts; the lowest inertia is kept.
    max_iter : int
        Greatest number of Lloyd iterations of a refinement.
    tol : float
        A refinement ends once the summed squared shift of the centres is at most ``tol`` times
        the mean variance of the features.
    random_state : int, RandomState instance or None
        Source of all randomness.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres, in the library and float type of X.
    labels_ : array of shape (n,)
        Nearest centre of each point.
    inertia_ : float
        Σ_i w_i ‖x_i − μ_{c_i}‖².
    n_iter_ : int
        Passes over the data of the start that was kept.
    n_moves_ : int
        Relocations that were kept.
    safeguarded_ : bool
        Whether k-means from the same start was lower and is what was kept.
    history_ : dict of arrays of shape (n_steps,)
        "weight" λ_t, "objective" SSE + λ_tΣwq and "inertia" SSE before each gradient step.
    margins_ : ndarray of shape (n,)
        Distance of each point to the nearest plane between its centre and another
        (see ``margins``); NaN where there is no other.
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
    Lattanzi and Sohler (2019), A better k-means++ algorithm via local search, ICML (swaps of
    sampled points for centres, of which the relocations are a kind).

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
        schedule: str = "oscillate",
        weight: float = 1.0,
        n_steps: int = 8,
        n_moves: int = 100,
        safeguard: bool = True,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.schedule = schedule
        self.weight = weight
        self.n_steps = n_steps
        self.n_moves = n_moves
        self.safeguard = safeguard
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
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
        options = {
            "schedule": check_choice("schedule", self.schedule, SCHEDULES),
            "weight": check_number("weight", self.weight, 0.0),
            "n_steps": check_count("n_steps", self.n_steps, 0),
            "n_moves": check_count("n_moves", self.n_moves, 0),
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
        points = open_points(X, weights)

        progress = FitProgress(self, X, sample_weight, None)
        best: Any = None
        for _ in range(n_init):
            start = start_centers(points, k, init, options["random_state"])
            result = cfmeans(points, start, progress=progress, **options)
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
        self.history_ = {
            name: column if name == "weight" else points.frame.squared(column)
            for name, column in best.history.items()
        }
        measure: Any = separation_in_chunks if points.in_chunks else separation
        self.margins_, self.cfq_ = measure(X, self.labels_, points, best.centers, weights)


def cfmeans(
    points: PointSet,
    start: np.ndarray,
    *,
    schedule: str,
    weight: float,
    n_steps: int,
    n_moves: int,
    safeguard: bool,
    max_iter: int,
    tol: float,
    random_state: np.random.RandomState,
    progress: NoProgress | None = None,
) -> CFMeansResult:
    """cf-means from one start: steps, moves, refinement, safeguard."""
    progress = NoProgress() if progress is None else progress
    if weight == 0.0 or len(start) == 1:
        plain = _refine(points, start, max_iter, tol, progress)
        return CFMeansResult(*plain, 0, False, _course([]))
    centers, course = start, []
    for current in weights_of(schedule, weight, n_steps):
        progress.begin("step")
        moved, force = step(points, centers, float(current))
        course.append((float(current), force.objective, force.inertia))
        centers = moved
        progress.end(points, centers)
        if progress.stopped:
            break
    n_iter, kept = len(course), 0
    if n_moves and not progress.stopped:
        search = relocate(
            points, centers, n_moves=n_moves, random_state=random_state, progress=progress
        )
        centers, kept, n_iter = search.centers, search.n_moves, n_iter + search.n_iter
    refined = _refine(points, centers, max_iter, tol, progress)
    n_iter += refined.n_iter
    if safeguard:
        plain = _refine(points, start, max_iter, tol, progress)
        if lower(plain.inertia, refined.inertia):
            return CFMeansResult(*plain, 0, True, _course(course))
    return CFMeansResult(
        refined.centers, refined.labels, refined.inertia, n_iter, kept, False, _course(course)
    )


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
    X: Any, labels: Any, points: PointSet, centers: np.ndarray, weights: Any
) -> tuple[np.ndarray, float]:
    """Margins, and CFQ, NaN where they are undefined."""
    from wellsep.indices.centroid import margins_and_cfq

    labels = to_numpy(labels)
    present = np.flatnonzero(np.bincount(labels, minlength=len(centers)))
    if len(present) < 2:
        return np.full(len(labels), np.nan), np.nan
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
