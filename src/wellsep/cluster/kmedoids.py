"""KMedoids: clusters around objects, for coordinates, distances and mixed tables."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks.arrays import check_choice, check_count, name_x, to_table
from wellsep._checks.values import check_random_state
from wellsep.cluster.estimator import check_clusters
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.data.opening import open_space
from wellsep.compute.engine.threads import own_threads
from wellsep.compute.kmeans.faster_pam import Medoids, build, distance_rows, faster_pam
from wellsep.compute.metrics.table import METRICS, Rows, find, square_lengths
from wellsep.distances.base import PairSpace


class KMedoids(ClusterMixin, BaseEstimator):
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
    init : {"random", "build"}
        Where medoids start: at random objects, or one after the other at the object that lowers
        the cost most (PAM's BUILD), which needs no restarts.
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
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (d,)
        Their names, where X had names.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "euclidean",
        init: str = "random",
        n_init: int = 10,
        max_iter: int = 300,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        return tags

    @own_threads()
    def fit(self, X: Any, y: Any = None) -> KMedoids:
        """Find the medoids.

        Parameters
        ----------
        X : array of shape (n, d), Distances, MixedTable or frame
            Objects.
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
        check_choice("init", self.init, ("random", "build"))
        n_init = check_count("n_init", self.n_init)
        rounds = check_count("max_iter", self.max_iter)
        metric = entry if space.own_metric is None else find(space.own_metric)
        rows_of = distance_rows(space, metric)
        rng = check_random_state(self.random_state)
        best: Medoids | None = None
        for _ in range(1 if self.init == "build" else n_init):
            start = (
                build(rows_of, space.n, k)
                if self.init == "build"
                else rng.choice(space.n, k, replace=False)
            )
            found = faster_pam(rows_of, space.n, start, rounds)
            if best is None or found.cost < best.cost:
                best = found
        if best is None:
            raise ValueError(f"n_init must be at least 1, got {n_init}.")
        if not best.ended:
            warnings.warn(
                f"Exchanges did not end within {rounds} rounds. The medoids reached are kept. "
                "Raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.medoid_indices_ = best.medoids
        self.labels_ = best.labels
        self.inertia_ = float(best.cost * space.unit)
        self.n_iter_ = best.n_rounds
        coordinates = space.own_metric is None
        self.cluster_centers_ = np.array(data[best.medoids]) if coordinates else None
        self._medoid_table = data.take(best.medoids) if isinstance(data, MixedTable) else None
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Nearest medoid of each row.

        Parameters
        ----------
        X : array of shape (m, d), frame, or distances of shape (m, n)
            Objects, given as in fit. After a fit on distances: distances of m objects to the n
            objects of fit, of which those to the medoids are used. After a fit on mixed columns: a
            frame with these columns; ranges stay those of the objects of fit, see
            :meth:`MixedTable.followed_by`.

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
        check_is_fitted(self)
        if self._medoid_table is not None:
            return _nearest_of_mixed(X, self._medoid_table)
        if self.cluster_centers_ is None:
            return self._nearest_of_distances(X)
        table = name_x(validate_data, self, _plain(X), reset=False, dtype=np.float64)
        joined = np.concatenate([self.cluster_centers_.astype(np.float64), table])
        space, entry = open_space(joined, n_jobs=1), find(self.metric)
        rows, zero = space.on_host(entry)
        square = None if entry.finish is None else square_lengths(rows, zero, np)
        k = len(self.cluster_centers_)

        def side(at: slice) -> Rows:
            own = None if zero is None else zero[at]
            return Rows(rows[at, :], None if square is None else square[at], own, at)

        found = entry.distances(side(slice(k, len(joined))), side(slice(0, k)), np)
        return np.asarray(found).argmin(axis=1).astype(np.int32)

    def _nearest_of_distances(self, X: Any) -> np.ndarray:
        n = self.n_features_in_
        if isinstance(X, PairSpace):
            if len(X) != n:
                raise ValueError(
                    f"X must hold distances to the {n} objects of fit, got {X!r}; pass an array of "
                    f"shape (m, {n})."
                )
            some = X.block(slice(0, n), self.medoid_indices_)
        else:
            kinds = [np.float64, np.float32]
            table = name_x(validate_data, self, to_table(X), reset=False, dtype=kinds)
            some = table[:, self.medoid_indices_]
        if some.min(initial=0.0) < 0:
            row, medoid = (int(at) for at in np.argwhere(some < 0)[0])
            raise ValueError(
                f"X must hold distances, which are at least 0, got {some[row, medoid]:g} in row "
                f"{row}, column {self.medoid_indices_[medoid]}."
            )
        return some.argmin(axis=1).astype(np.int32)

    def _opened(self, X: Any, entry: Any) -> Any:
        """Objects made ready, with the number and names of features noted."""
        if isinstance(X, PairSpace):
            self.n_features_in_ = len(X.columns) if isinstance(X, MixedTable) else X.n
            return X
        if entry.opens is not None and entry != METRICS["precomputed"]:
            opened = entry.opens(X)
            self.n_features_in_ = len(opened.columns)
            return opened
        table = name_x(validate_data, self, _plain(X), dtype=[np.float64, np.float32])
        return table if entry.coordinates else entry.opens(table)


def _nearest_of_mixed(X: Any, medoids: MixedTable) -> np.ndarray:
    if isinstance(X, PairSpace):
        raise TypeError(
            f"X must be a frame with the columns of fit, got {type(X).__name__}, whose ranges are "
            "its own; pass the frame."
        )
    k, joined = medoids.n, medoids.followed_by(X)
    return joined.block(np.arange(k, joined.n), np.arange(k)).argmin(axis=1).astype(np.int32)


def _plain(X: Any) -> Any:
    """Frames and sparse matrices are left to scikit-learn's check; all else becomes an array."""
    return X if hasattr(X, "columns") or sp.issparse(X) else to_table(X)
