"""Fitting any scikit-learn clusterer with one setting after another, and reading its labels."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from wellsep._checks.arrays import to_numpy
from wellsep._checks.labels import fitted_labels
from wellsep._checks.values import check_text
from wellsep.cluster.kmedoids import KMedoids
from wellsep.distances.base import PRECOMPUTED, PairSpace


class Fitted(NamedTuple):
    """One fit: the estimator, its labels, the seconds it took."""

    estimator: Any
    labels: np.ndarray
    seconds: float


def fit_labels(estimator: Any, X: Any, fit_params: dict[str, Any] | None = None) -> Fitted:
    """Fit a clusterer, mixture or pipeline, and read the labels of X."""
    start = time.perf_counter()
    estimator.fit(X, **(fit_params or {}))
    labels = fitted_labels(estimator)
    if labels is None:
        if not hasattr(estimator, "predict"):
            raise TypeError(
                "estimator must have labels_ or predict after fit, "
                f"got {type(last_step(estimator)).__name__}."
            )
        labels = to_numpy(estimator.predict(X))
    return Fitted(estimator, labels, time.perf_counter() - start)


def fit_each(
    model: Any,
    parameter: str,
    ks: Iterable[int],
    X: Any,
    weights: Any = None,
    seed: int | None = None,
) -> list[Fitted | Exception]:
    """Fit a clusterer for every K, a tree once; a K that fails comes back as its error."""
    model = clone(model) if seed is None else seeded(clone(model), int(seed))
    params = weight_params(model, weights)
    ks = list(ks)
    fits: list[Fitted | Exception] = []
    if is_tree(model):
        try:
            full = {parameter: min(ks), f"{prefix_of(model)}compute_full_tree": True}
            fitted = fit_labels(model.set_params(**full), X, params)
            children, seconds = last_step(model).children_, fitted.seconds / len(ks)
            return [Fitted(None, cut_tree(children, k), seconds) for k in ks]
        except Exception as error:  # a clusterer may raise what it likes
            return [error] * len(ks)
    for k in ks:
        try:
            fits.append(fit_labels(clone(model).set_params(**{parameter: k}), X, params))
        except Exception as error:
            error.add_note(f"while fitting {parameter} = {k}")
            fits.append(error)
    return fits


def last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def prefix_of(estimator: Any) -> str:
    """What stands before the parameters of the clusterer: "" or "<last step>__"."""
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def seen_inside(model: Any, X: Any) -> Any:
    """X as the clusterer sees it: after the steps of a pipeline that come before it."""
    if not isinstance(model, Pipeline) or len(model.steps) == 1:
        return X
    inside = clone(model[:-1]).fit_transform(X)
    return inside if sp.issparse(inside) else to_numpy(inside)


def count_parameter(estimator: Any, named: str | None = None, name: str = "estimator") -> str:
    """The parameter that holds K, with the prefix of a pipeline's last step; "" is no name."""
    options = [prefix_of(estimator) + p for p in ("n_clusters", "n_components")]
    if named is not None and check_text("parameter", named):
        options = [named]
    parameters = estimator.get_params()
    for option in options:
        if option in parameters:
            return option
    remedy = "; name it with parameter=" if name == "estimator" else ""
    raise ValueError(
        f"{name} must have a parameter {' or '.join(map(repr, options))}, "
        f"got {type(last_step(estimator)).__name__}{remedy}."
    )


def seeded(estimator: Any, seed: int, *, where_free: bool = False) -> Any:
    """The estimator with every random_state in it set, or every one that is None."""
    names = [
        name
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "random_state" and not (where_free and value is not None)
    ]
    return estimator.set_params(**dict.fromkeys(names, seed))


def weight_params(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    """Fit parameters that hand the weights to the clusterer."""
    if sample_weight is None:
        return {}
    if not has_fit_parameter(last_step(estimator), "sample_weight"):
        raise TypeError(
            "sample_weight must be None for an estimator that cannot use it, "
            f"got weights for {type(last_step(estimator)).__name__}."
        )
    return {f"{prefix_of(estimator)}sample_weight": sample_weight}


def scoring_space(space: Any, X: Any) -> Any:
    """Where partitions are judged: X, a given array, or what a transformer makes of X."""
    if space is None:
        return X
    if hasattr(space, "fit_transform"):
        return clone(space).fit_transform(X)
    return space


# ---------------------------------------------------------------- distances in place of rows


def all_equal(X: Any) -> bool:
    """Whether all rows are equal; those of distances are where all are 0."""
    if isinstance(X, PairSpace):
        return X.largest == 0
    if sp.issparse(X):
        return bool(np.all(X.max(axis=0).toarray() == X.min(axis=0).toarray()))
    return bool((X[:1] == X).all())


def cut_rows(X: Any, rows: np.ndarray | None, pairwise: bool = False) -> Any:
    """Some rows of X, and with distances the same columns; of nothing nothing."""
    if rows is None or X is None:
        return X
    if isinstance(X, PairSpace):
        return X.take(rows)
    return X[rows][:, rows] if pairwise else X[rows]


def is_pairwise(model: Any) -> bool:
    """Whether the clusterer takes distances or similarities between all objects."""
    return bool(get_tags(model).input_tags.pairwise) or metric_of(model) == PRECOMPUTED


def takes_distances(model: Any) -> bool:
    """Whether the clusterer takes distances between all objects."""
    return metric_of(model) == PRECOMPUTED


def of_distances(model: Any) -> Any:
    """A clusterer that is given distances: one that takes them, told so where it must be."""
    if takes_distances(model):
        return model
    if isinstance(last_step(model), KMedoids):
        return model.set_params(**{f"{prefix_of(model)}metric": PRECOMPUTED})
    raise ValueError(
        "estimator must take distances where X holds them, got "
        f"{type(last_step(model)).__name__}; give it metric='precomputed', or use KMedoids."
    )


def given_to(model: Any, X: PairSpace) -> Any:
    """Distances as a clusterer takes them: KMedoids by blocks, others as one matrix."""
    if not X.complete:
        raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
    return X if model is None or isinstance(model, KMedoids) else X.matrix()


def metric_of(model: Any) -> str:
    """The metric of a clusterer where it is a name, else "euclidean"."""
    metric = last_step(model).get_params().get("metric")
    return metric if isinstance(metric, str) else "euclidean"


# ---------------------------------------------------------------- trees


def is_tree(estimator: Any) -> bool:
    """Whether one fit holds the partitions of every K: an agglomerative clustering."""
    return isinstance(last_step(estimator), AgglomerativeClustering)


def cut_tree(children: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels of the n_clusters clusters left before the last merges of a full tree.

    ``children`` (n - 1, 2) are the two nodes of each merge, in the order of merging; leaf i is
    node i, merge j is node n + j.
    """
    n = len(children) + 1
    if not 1 <= n_clusters <= n:
        raise ValueError(f"K must be between 1 and the number of objects ({n}), got {n_clusters}.")
    root = np.arange(n + n - n_clusters)
    # From the last kept merge down, so that a node's root is known before its children ask.
    for merge in range(n - n_clusters - 1, -1, -1):
        root[children[merge]] = root[n + merge]
    return np.unique(root[:n], return_inverse=True)[1].astype(np.int32)
