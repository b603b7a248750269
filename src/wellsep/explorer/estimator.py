"""ClusterExplorer: `explore` as an estimator, so that it stands in a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks.arrays import is_frame, name_x
from wellsep.explorer.exploring import explore


class ClusterExplorer(ClusterMixin, BaseEstimator):
    """Cluster data of which nothing is known, see :func:`wellsep.explore`.

    Parameters
    ----------
    methods : iterable of str, or mapping of str to clusterer, optional
        By default "k-means", "mixture", "ward" and "hdbscan"; also "spectral"; or estimators.
    embeddings : iterable of str, optional
        Made besides the data: "pca", "umap", "tsne".
    k : iterable of int, optional
        Numbers of clusters; by default in equal ratios from 2 to √n and beyond.
    budget : float, optional
        Seconds after which no more candidates are begun.
    n_draws : int
        Half-samples for the certainty of the answer; 0 for none.
    random_state : int, Generator or None
        Seeds all that is drawn.
    n_jobs : int, optional
        Fits at a time.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The cluster of every object; -1 is noise.
    n_clusters_ : int
        Clusters without noise.
    exploration_ : Exploration
        The judgement, the candidates and what was done.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X had names.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, 3, centers=3, random_state=0)
    >>> model = ws.ClusterExplorer(methods=["k-means"], k=range(2, 6), n_draws=0).fit(X)
    >>> model.n_clusters_
    3
    """

    def __init__(
        self,
        *,
        methods: Any = None,
        embeddings: Any = None,
        k: Any = None,
        budget: float | None = None,
        n_draws: int = 100,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.methods = methods
        self.embeddings = embeddings
        self.k = k
        self.budget = budget
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> ClusterExplorer:
        """Make candidates and keep the best.

        Parameters
        ----------
        X : array-like or frame of shape (n, d), sparse matrix, Distances, MixedTable or mapping
            Objects, or several embeddings of them by name.
        y : ignored
            Present by convention.

        Returns
        -------
        ClusterExplorer
            The fitted estimator.
        """
        self.exploration_ = explore(self._checked(X, reset=True), **self.get_params(deep=False))
        self.labels_ = self.exploration_.labels_
        self.n_clusters_ = self.exploration_.n_clusters
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of new objects, given as in fit, by votes of their neighbours."""
        check_is_fitted(self)
        return self.exploration_.predict(self._checked(X, reset=False))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Rows as scikit-learn checks them; other kinds of data are left to `explore`."""
        if is_frame(X):
            name_x(validate_data, self, X, reset=reset, skip_check_array=True)
        elif sp.issparse(X) or isinstance(X, np.ndarray | list | tuple):
            rule = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
            least = 2 if reset else 1
            return name_x(validate_data, self, X, reset=reset, ensure_min_samples=least, **rule)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
