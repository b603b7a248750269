"""Clusterers by the names that the commands have for them, and data scaled for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse import issparse
from sklearn.cluster import AgglomerativeClustering
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from wellsep._checks.arrays import check_choice, check_count
from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.outlier_weights import LOFKMeans, RobustKMeans

METHODS: dict[str, Callable[[], Any]] = {
    "k-means": lambda: KMeans(n_init=10),
    "cf-means": CFMeans,
    "lof-k-means": lambda: LOFKMeans(n_neighbors=5),
    "robust-k-means": RobustKMeans,
    "ward": AgglomerativeClustering,
    "gaussian-mixture": GaussianMixture,
}


def clusterer(
    method: str, k: int | None, seed: int | None = None, settings: dict[str, Any] | None = None
) -> Any:
    """A clusterer by the name of its method, with its parameters."""
    check_choice("method", method, METHODS)
    model = METHODS[method]()
    if method != "ward":
        model.set_params(random_state=seed)
    if k is not None:
        name = "n_components" if method == "gaussian-mixture" else "n_clusters"
        model.set_params(**{name: check_count("k", k)})
    return model.set_params(**(settings or {}))


def scaled(X: Any, scale: bool) -> Any:
    """The data, with every column scaled to standard deviation 1 where that is asked for."""
    if not scale:
        return X
    # Distances do not depend on the mean, and without it sparse data stay sparse.
    return StandardScaler(with_mean=not issparse(X)).fit_transform(X)
