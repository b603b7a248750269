"""KMedoids: clusters around objects, for coordinates, distances and mixed tables."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
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
    check_positions,
    name_x,
    to_numpy,
    to_table,
)
from wellsep._checks.values import check_random_state
from wellsep._threads import own_threads
from wellsep.cluster.estimator import check_clusters
from wellsep.cluster.faster_pam import build, distance_rows, faster_pam
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.data.opening import open_space
from wellsep.compute.metrics.table import Metric, find
from wellsep.distances.base import PRECOMPUTED, PairSpace

FLOATS = [np.float64, np.float32]  # that rows are worked on as


@dataclass(eq=False, repr=False)
class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-medoids: k objects that minimise the summed distance of all objects to them.

    The cost Σ_i d(x_i, m_{c_i}) falls with every exchange of a medoid for another object. The
    algorithm, FasterPAM, ends where no exchange lowers it. Of several random starts the lowest
    cost is kept.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    metric : str or callable
        "euclidean", "cosine", "dc", a name of scikit-learn's ``pairwise_distances``, or a function
        of two rows. "precomputed": X is a matrix of distances. "gower": X is a frame of mixed
        columns. Left at "euclidean" for `Distances` and `MixedTable`.
    init : {"random", "build"} or array of shape (k, d) or (k,)
        Where medoids start: at random objects, one after the other at the object that lowers the
        cost most (PAM's BUILD), at the objects nearest to the given rows, or at the given
        positions. All but "random" are one start.
    n_init : int
        Random starts; exchanges end in a local optimum, and one start often misses the best.
    max_iter : int
        Greatest number of rounds over all objects, of one start.
    random_state : int, RandomState instance or None
        Source of the starts.

    Attributes
    ----------
    medoid_indices_ : array of shape (k,)
        Positions of the medoids among the objects of fit.
    labels_ : array of shape (n,)
        The medoid that each object is nearest to.
    inertia_ : float
        The cost above, a sum (R's ``pam`` gives the mean).
    n_iter_ : int
        Rounds of the start that was kept.
    cluster_centers_ : array of shape (k, d) or None
        Rows of the medoids; None where X holds distances or mixed columns.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names where X had names.

    References
    ----------
    Schubert & Rousseeuw (2021), "Fast and eager k-medoids clustering: O(k) runtime improvement of
    the PAM, CLARA, and CLARANS algorithms", Information Systems 101, 101804.

    Examples
    --------
    >>> import wellsep as ws
    >>> model = ws.KMedoids(2, random_state=0).fit([[0.0], [1.0], [2.0], [10.0], [11.0]])
    >>> sorted(model.medoid_indices_.tolist()), model.inertia_
    ([1, 3], 3.0)
    >>> D = ws.Distances([1.0, 2, 10, 11, 1, 9, 10, 8, 9, 1])
    >>> ws.KMedoids(2, random_state=0).fit(D).inertia_
    3.0
    """

    n_clusters: int = 8
    _: KW_ONLY
    metric: Any = "euclidean"
    init: Any = "random"
    n_init: int = 10
    max_iter: int = 300
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric in ("euclidean", "cosine")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        return tags

    @own_threads()
    def fit(self, X: Any, y: Any = None) -> KMedoids:
        """Find the medoids.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), Distances, MixedTable or frame
            Objects. A sparse matrix for the metrics "euclidean" and "cosine".
        y : ignored
            Present by convention.

        Returns
        -------
        KMedoids
            The fitted estimator.
        """
        entry = find(self.metric)
        data = self._opened(X, entry)
        space = open_space(data, n_jobs=1)
        k = check_count("n_clusters", self.n_clusters)
        check_clusters(k, space.n)
        n_init = check_count("n_init", self.n_init)
        rounds = check_count("max_iter", self.max_iter)
        metric = entry if space.own_metric is None else find(space.own_metric)
        rows_of = distance_rows(space, metric)
        rng = check_random_state(self.random_state)
        if not isinstance(self.init, str):
            starts = [self._given_start(data, k)]
        elif check_choice("init", self.init, ("random", "build")) == "build":
            starts = [build(rows_of, space.n, k)]
        else:
            starts = [rng.choice(space.n, k, replace=False) for _ in range(n_init)]
        ended = [faster_pam(rows_of, space.n, start, rounds) for start in starts]
        best = min(ended, key=lambda medoids: medoids.cost)
        if not best.ended:
            warnings.warn(
                f"Exchanges did not end within {rounds} rounds. The medoids reached are kept. "
                "Raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.medoid_indices_ = best.medoids
        self.labels_ = best.labels
        self.inertia_ = float(metric.in_unit(best.cost, space.unit))
        self.n_iter_ = best.n_rounds
        self.cluster_centers_ = None
        if space.own_metric is None:
            rows = data[best.medoids]
            self.cluster_centers_ = rows.toarray() if sp.issparse(rows) else np.array(rows)
        self._medoid_table = data.take(best.medoids) if isinstance(data, MixedTable) else None
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Nearest medoid of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), frame, or distances of shape (m, n)
            Objects, given as in fit. After a fit on distances: distances of m objects to the n
            objects of fit, of which those to the medoids are used. After a fit on mixed columns: a
            frame with these columns; ranges stay those of the objects of fit, see
            :meth:`MixedTable.followed_by`. Metrics that need all rows at once ("dc", "seuclidean",
            "mahalanobis") do not say how far new rows lie from those of fit, and are refused.

        Returns
        -------
        array of shape (m,)
            Numbers of the medoids.

        Examples
        --------
        >>> import pandas as pd, wellsep as ws
        >>> frame = pd.DataFrame({"age": [20, 22, 60, 64], "smokes": ["no", "no", "yes", "yes"]})
        >>> model = ws.KMedoids(2, metric="gower", init="build").fit(frame)
        >>> new = pd.DataFrame({"age": [58, 25], "smokes": ["yes", None]})
        >>> (model.predict(new) == model.labels_[[2, 0]]).all()
        np.True_
        """
        return self.transform(X).argmin(axis=1).astype(np.int32)

    def transform(self, X: Any) -> np.ndarray:
        """Return the (m, k) distances of objects, given as in `predict`, to the medoids."""
        check_is_fitted(self)
        if self._medoid_table is not None:
            if isinstance(X, PairSpace):
                raise TypeError(
                    f"X must be a frame with the columns of fit, got {type(X).__name__}, whose "
                    "ranges are its own; pass the frame."
                )
            k, joined = self._medoid_table.n, self._medoid_table.followed_by(X)
            return joined.block(np.arange(k, joined.n), np.arange(k))
        if self.cluster_centers_ is None:
            return self._distances_to_medoids(X)
        table = self._checked_rows(X, reset=False)
        distances = _row_distances(self.cluster_centers_, table, find(self.metric)).T
        return distances.astype(table.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_)

    def _given_start(self, data: Any, k: int) -> np.ndarray:
        """Positions of the objects that ``init`` names, or of those nearest to its rows."""
        start = to_numpy(self.init, "init")
        if start.ndim == 2:
            if isinstance(data, PairSpace) or start.shape[1] != data.shape[1]:
                raise ValueError(
                    "init must be positions of objects, or rows with the columns of X, got an "
                    f"array of shape {start.shape}."
                )
            rows = check_data(start, name="init")
            start = _row_distances(rows, data, find(self.metric)).argmin(axis=1)
        start = check_positions("init", start, data.shape[0])
        if len(start) != k or len(np.unique(start)) != k:
            raise ValueError(f"init must name {k} different objects, got {len(np.unique(start))}.")
        return start

    def _checked_rows(self, X: Any, *, reset: bool = True) -> Any:
        sparse = "csr" if self.metric in ("euclidean", "cosine") else False
        if not (hasattr(X, "columns") or sp.issparse(X)):  # which are left to scikit-learn's check
            X = to_table(X)
        return name_x(validate_data, self, X, reset=reset, dtype=FLOATS, accept_sparse=sparse)

    def _distances_to_medoids(self, X: Any) -> np.ndarray:
        n = self.n_features_in_
        if isinstance(X, PairSpace):
            if len(X) != n:
                raise ValueError(
                    f"X must hold distances to the {n} objects of fit, got {X!r}; pass an array of "
                    f"shape (m, {n})."
                )
            some = X.block(slice(0, n), self.medoid_indices_)
        else:
            table = name_x(validate_data, self, to_table(X), reset=False, dtype=FLOATS)
            some = table[:, self.medoid_indices_]
        if some.min(initial=0.0) < 0:
            row, medoid = np.argwhere(some < 0)[0].tolist()
            raise ValueError(
                f"X must hold distances, which are at least 0, got {some[row, medoid]:g} in row "
                f"{row}, column {self.medoid_indices_[medoid]}."
            )
        return some

    def _opened(self, X: Any, entry: Any) -> Any:
        """Objects made ready, with the number and names of features noted."""
        if isinstance(X, PairSpace):
            self.n_features_in_ = len(X.columns) if isinstance(X, MixedTable) else X.n
            return X
        if entry.opens is not None and entry.name != PRECOMPUTED:
            return self._opened(entry.opens(X), entry)
        table = self._checked_rows(X)
        return table if entry.coordinates else entry.opens(table)


def _row_distances(rows: Any, others: Any, metric: Metric) -> np.ndarray:
    """(k, m) distances of k rows to m others, in their own unit."""
    if metric.whole:
        raise ValueError(
            "metric must be one that two rows decide where rows are compared with the medoids, got "
            f"{metric.name!r}, which needs all rows at once; read labels_, and give init as "
            "positions."
        )
    if sp.issparse(others):
        joined = sp.vstack([sp.csr_array(rows), others], format="csr")
    else:
        joined = np.concatenate([rows, others])
    space, k = open_space(joined.astype(np.float64), n_jobs=1), len(rows)
    table = distance_rows(space, metric, keep=False)(np.arange(k))[:, k:]
    return metric.in_unit(table, space.unit)
