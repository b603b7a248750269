"""What clusterers with centres share: checks, predict, transform, score, and callbacks."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_data,
    check_number,
    check_weights,
    is_dask,
    is_frame,
    largest_entry,
    name_x,
    narrow_indices,
    safe_unit,
    to_numpy,
    to_table,
)
from wellsep._checks.values import check_random_state
from wellsep._sklearn_callbacks import CallbackSupportMixin, with_callbacks
from wellsep._threads import own_threads
from wellsep.compute.kernels import load
from wellsep.compute.kmeans.lloyd import STARTS
from wellsep.compute.kmeans.prepared_points import Frame, Points, prepare


class Starts(NamedTuple):
    """How many clusters, where centres start, how often and for how long; checked."""

    n_clusters: int
    init: Any
    n_init: int
    max_iter: int
    tol: float
    random_state: np.random.RandomState


class FitInput(NamedTuple):
    """What a fit was asked for, checked."""

    X: Any
    weights: Any  # as given; None where all are one
    starts: Starts
    point_weights: Any = None  # that the points are fitted with
    options: Any = None  # parameters that the estimator alone has


def _valid_as_it_is(X: Any, estimator: Any) -> bool:
    """Whether scikit-learn's checks, which take 0.1 ms, would give back X as it is."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float32, np.float64)
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


class CentroidClusterer(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    """A clusterer whose fitted state is ``cluster_centers_``."""

    cluster_centers_: Any
    labels_: Any
    n_clusters: int
    init: Any
    n_init: int | str
    max_iter: int
    tol: float
    random_state: Any
    metric: str = "euclidean"
    batch_size: int | None = None
    _find: Any  # function of points, FitInput and progress; returns at least what `Ended` has
    _n_tasks_known = True  # to callbacks: as many as there are starts

    @with_callbacks
    @own_threads()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the centres.

        Parameters
        ----------
        X : array of shape (n, d)
            NumPy, a memory map, CSR, a dataframe, a tensor of torch or another array-API
            library, or a dask collection, whose ``labels_`` are lazy then.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point.

        Returns
        -------
        self
            The fitted estimator.
        """
        X = self._validated(X)
        self.__dict__.pop("_stream", None)  # a later partial_fit begins anew
        weights = self._weights(sample_weight, X)
        starts = self._starts()
        n_clusters = starts.n_clusters
        check_choice("metric", self.metric, Points.METRICS)
        check_clusters(n_clusters, X.shape[0])
        given = self._prepared(FitInput(X, weights, starts, weights))
        if self.batch_size is not None:
            n_found = self._fit_batches(given)
        else:
            points = prepare(X, given.point_weights, self.metric)
            n_tasks = starts.n_init if self._n_tasks_known else None
            progress = FitProgress(self, X, sample_weight, n_tasks)
            ended = self._find(points, given, progress)
            self._publish(points, ended, given)
            counts = points.label_counts(ended.labels, n_clusters)
            n_found = int((counts > 0).sum())
            progress.close()
        if n_found < n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_found}) found smaller than n_clusters "
                f"({n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _starts(self) -> Starts:
        init, n_init = self.init, self.n_init
        given = not isinstance(init, str) and not callable(init)  # the centres; judged with X
        if isinstance(init, str):
            check_choice("init", init, STARTS)
        if isinstance(n_init, str):
            check_choice("n_init", n_init, ("auto",))
            n_init = 1 if given or init == "k-means++" else 10
        elif check_count("n_init", n_init) > 1 and given:
            warnings.warn(
                f"n_init = {n_init} is not used: init gives the centres, and one start is made "
                "from them. Leave n_init at 1.",
                RuntimeWarning,
                stacklevel=5,
            )
            n_init = 1
        return Starts(
            check_count("n_clusters", self.n_clusters),
            init,
            n_init,
            check_count("max_iter", self.max_iter),
            check_number("tol", self.tol, 0.0),
            check_random_state(self.random_state),
        )

    def _prepared(self, given: FitInput) -> FitInput:
        """Add the parameters that this estimator alone has, checked, and weights of its own."""
        return given

    def _fit_batches(self, given: FitInput) -> int:
        """Fit by batches of rows; return the number of clusters that have rows."""
        raise TypeError(f"{type(self).__name__} reads no batches.")

    def _publish(self, points: Points, ended: Any, given: FitInput) -> None:
        self.cluster_centers_ = points.publish_centers(ended.centers)
        self.labels_ = points.publish(ended.labels, np.int32)
        self.inertia_ = points.frame.squared(ended.inertia)
        self.n_iter_ = ended.n_iter

    @own_threads()
    def predict(self, X: Any) -> Any:
        """Return the code of the nearest centre of each row, for a dask collection lazily."""
        if not hasattr(self, "cluster_centers_"):
            check_is_fitted(self)
        # Sums of squares, which are taken anyway, say whether all entries are finite.
        quick = isinstance(X, np.ndarray) and self.metric == "euclidean"
        table = self._validated(X, reset=False, sized=False, finite=not quick)
        if isinstance(table, np.ndarray) and self.metric == "euclidean":
            centers = to_numpy(self.cluster_centers_).astype(np.float64)
            labels = Points.labels_of_rows(table, centers)
            if labels is not None:
                return labels
        if quick:
            table = self._validated(X, reset=False, sized=False)
        points, centers = self._framed(table)
        return points.publish(points.assign(centers).first, np.int32)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, then return ``labels_``; parameters as in `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    @own_threads()
    def transform(self, X: Any) -> Any:
        """Return the (n, k) distances of rows to centres, 1 − cos for metric="cosine"."""
        check_is_fitted(self)
        points, centers = self._framed(self._validated(X, reset=False, sized=False))
        distances = points.distances(centers)
        return points.publish(distances, points.like.dtype, width=len(centers))

    @own_threads()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of X under the fitted centres, −Σ w‖x − μ‖²."""
        check_is_fitted(self)
        points, centers = self._framed(self._validated(X, reset=False), sample_weight)
        labels = points.assign(centers).first
        return -points.frame.squared(points.inertia(labels, centers))

    def _framed(self, X: Any, sample_weight: Any = None) -> tuple[Points, np.ndarray]:
        """New points of validated X and the fitted centres, in one frame."""
        centers = to_numpy(self.cluster_centers_).astype(np.float64)
        # The same offset at every call, so that a row's distances do not depend on its company.
        offset = centers.mean(axis=0) if self.metric == "euclidean" else None
        in_chunks = is_dask(getattr(X, "array", None))  # which are not looked at here
        largest = 0.0 if in_chunks else largest_entry(X)
        unit = safe_unit(max(largest, largest_entry(centers)), X.dtype)
        frame = Frame(self.metric, offset, unit=unit)
        points = prepare(X, self._weights(sample_weight, X), self.metric, frame)
        return points, points.frame.enter(centers)

    def _validated(
        self, X: Any, *, reset: bool = True, sized: bool = True, finite: bool = True
    ) -> Any:
        """X checked, NaN in NumPy arrays only if ``finite``; its features kept or compared."""
        if not reset and not finite and _valid_as_it_is(X, self):
            return X
        if is_dask(X):
            chunks = load("wellsep.compute.engine.dask.chunks").open_chunks(X, sized=sized)
            skeleton = X._meta if hasattr(X, "to_dask_array") else np.empty((1, chunks.d))
            validate_data(self, skeleton, reset=reset, skip_check_array=True)
            return chunks
        if is_array_api_obj(X) and not isinstance(X, np.ndarray):
            X = check_data(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        if sp.issparse(X):
            X = narrow_indices(X)
        elif not is_frame(X):
            X = to_table(X)
        return name_x(
            validate_data,
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
            ensure_all_finite=finite,
        )

    def _weights(self, sample_weight: Any, X: Any) -> Any:
        """Weights of validated X, checked; None where all are one, so that both give one fit."""
        if is_dask(getattr(X, "array", None)):  # Chunks
            weights = X.weigh(sample_weight)
        else:
            weights = check_weights(sample_weight, X.shape[0])
        return None if weights is None or bool((weights == 1).all()) else weights

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_clusters(n_clusters: int, n_samples: int) -> None:
    if n_clusters > n_samples:
        # The second sentence is scikit-learn's, which programs look for.
        raise ValueError(
            f"n_clusters must not exceed the number of objects ({n_samples}), got {n_clusters}; "
            f"choose fewer clusters. n_samples={n_samples} should be >= n_clusters={n_clusters}."
        )


class NoProgress:
    """Nobody watches the fit."""

    stopped = False

    def begin(self, name: str) -> None:
        pass

    def end(self, points: Points, centers: np.ndarray) -> None:
        pass


UNWATCHED = NoProgress()


class FitProgress(NoProgress):
    """One fit of an estimator whose fitted state is ``cluster_centers_``."""

    def __init__(self, estimator: Any, X: Any, weights: Any, n_parts: int | None):
        self.estimator = estimator
        self.known = {"X": X, "metadata": {"sample_weight": weights}}
        self.context = estimator._init_callback_context(max_subtasks=n_parts)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.known)
        self.part: Any = None

    def begin(self, name: str) -> None:
        self.part = self.context.subcontext(task_name=name)
        self.part.call_on_fit_task_begin(estimator=self.estimator, **self.known)

    def end(self, points: Points, centers: np.ndarray) -> None:
        self.stopped |= self.part.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: {"cluster_centers_": points.publish_centers(centers)},
            **self.known,
        )

    def close(self) -> None:
        self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.known
        )
