"""The clusterers that commands call by name, and the data that these commands scale."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from scipy.sparse import issparse
from sklearn.cluster import AgglomerativeClustering
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep._checks.arrays import check_choice, check_count

METHODS = ("k-means", "cf-means", "lof-k-means", "robust-k-means", "ward", "gaussian-mixture")
Method = Annotated[
    str, typer.Option("--method", "-m", help=f"Clustering method: {', '.join(METHODS)}.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A parameter of the method, such as n_init=20 or n_neighbors=10. Repeat for more.",
    ),
]
Scale = Annotated[
    bool,
    typer.Option("--scale", help="First scale every column to mean 0 and standard deviation 1."),
]


def clusterer(
    method: str, k: int | None, seed: int | None = None, settings: dict[str, Any] | None = None
) -> Any:
    """A clusterer by the name of its method, with its parameters."""
    check_choice("method", method, METHODS)
    model = {
        "k-means": ws.KMeans(n_init=10),
        "cf-means": ws.CFMeans(),
        "lof-k-means": ws.LOFKMeans(n_neighbors=5),
        "robust-k-means": ws.RobustKMeans(),
        "ward": AgglomerativeClustering(),
        "gaussian-mixture": GaussianMixture(),
    }[method]
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
