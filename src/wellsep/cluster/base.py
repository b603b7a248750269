"""What clusterers with centres share: checks, predict, transform, score, and callbacks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks import check_data, check_weights, is_dask, to_numpy
from wellsep.cluster.points import METRICS, Points, assign, inertia, prepare
from wellsep.cluster.seeding import center_distances
from wellsep.cluster.tasks import NoTasks, Tasks
from wellsep.compute.nearest import bins, is_host

__all__ = ["CentroidClusterer", "NoTasks", "Tasks", "check_clusters"]


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

    def predict(self, X: Any) -> Any:
        """Nearest centre of each row.

        Parameters
        ----------
        X : array of shape (n, d)
            Points. A dask collection is predicted lazily, chunk by chunk.

        Returns
        -------
        array of shape (n,)
            Codes of the centres.
        """
        if is_dask(X):
            return self._on_dask().predict_chunks(self, X)
        points = self._ready(X)
        return assign(points, self._framed(points)).first

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, then return ``labels_``.

        Parameters
        ----------
        X : array of shape (n, d)
            Points.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point.

        Returns
        -------
        array of shape (n,)
            Codes of the centres.
        """
        return self.fit(X, sample_weight=sample_weight).labels_  # type: ignore[attr-defined]

    def transform(self, X: Any) -> Any:
        """Distance of each row to every centre (1 − cos for metric="cosine").

        Parameters
        ----------
        X : array of shape (n, d)
            Points.

        Returns
        -------
        array of shape (n, k)
            Distances.
        """
        if is_dask(X):
            return self._on_dask().transform_chunks(self, X)
        points = self._ready(X)
        squared = center_distances(points, self._framed(points)).T
        if points.metric == "cosine":
            distances = 0.5 * squared
        else:
            distances = (
                np.sqrt(squared) if is_host(squared) else array_namespace(squared).sqrt(squared)
            )
        if is_host(distances):
            return np.ascontiguousarray(distances, dtype=points.values.dtype)
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of X under the fitted centres; greater is better.

        Parameters
        ----------
        X : array of shape (n, d)
            Points.
        y : ignored
            Present by convention.
        sample_weight : array of shape (n,), optional
            Weight of each point.

        Returns
        -------
        float
            −Σ w‖x − μ‖².
        """
        if is_dask(X):
            return self._on_dask().score_chunks(self, X, sample_weight)
        points = self._ready(X, sample_weight)
        centers = self._framed(points)
        return -inertia(points, centers, assign(points, centers).first)

    def _ready(self, X: Any, sample_weight: Any = None) -> Points:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        # The same offset at every call, so that a row's distances do not depend on its company.
        offset = to_numpy(self.cluster_centers_).astype(np.float64).mean(axis=0)
        return prepare(X, check_weights(sample_weight, X.shape[0]), self._metric, offset)

    def _framed(self, points: Points) -> np.ndarray:
        return points.frame(to_numpy(self.cluster_centers_).astype(np.float64))

    def _validated(self, X: Any, *, reset: bool = True) -> Any:
        """X checked; names and number of features kept or compared."""
        if is_dask(X):
            from wellsep.cluster.dask_fit import open_fit

            return open_fit(self, X, reset=reset)
        if is_array_api_obj(X) and not is_host(X):
            X = check_data(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
        )

    def _weights(self, sample_weight: Any, X: Any) -> Any:
        """Weights of validated X, checked."""
        if is_dask(getattr(X, "array", None)):  # chunks of rows
            from wellsep.cluster.dask_fit import weigh_chunks

            return weigh_chunks(sample_weight, X)
        return check_weights(sample_weight, X.shape[0])

    def _on_dask(self) -> Any:
        check_is_fitted(self)
        from wellsep.cluster import dask_fit

        return dask_fit

    def _warn_if_fewer(self, labels: Any, n_clusters: int) -> None:
        if is_dask(labels):
            found = self._on_dask().n_distinct(labels)
        else:
            found = int((bins(labels, None, n_clusters) > 0).sum())
        if found < n_clusters:
            warnings.warn(
                f"n_clusters={n_clusters} clusters were asked for, but only {found} distinct "
                "ones were found; X may hold fewer distinct points.",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def _metric(self) -> str:
        metric = getattr(self, "metric", METRICS[0])
        return str(metric)

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
        raise ValueError(
            "n_clusters must be at most the number of samples, "
            f"got n_clusters={n_clusters} and n_samples={n_samples}."
        )
