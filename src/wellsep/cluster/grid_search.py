"""ClusterSearch: a grid search over clusterers, judged by validity indices, without folds."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_weights,
    is_dask,
    is_frame,
    to_table,
)
from wellsep._checks.values import check_estimator, check_jobs
from wellsep._sklearn_callbacks import CallbackSupportMixin, with_callbacks
from wellsep._text.sentences import shown
from wellsep.cluster.fitting import (
    Fitted,
    fit_labels,
    given_to,
    last_step,
    of_distances,
    prefix_of,
    scoring_space,
    takes_distances,
)
from wellsep.cluster.worker_processes import ending_with_parent
from wellsep.distances.base import PairSpace
from wellsep.distances.matrix import Distances
from wellsep.indices.index_names import parse_indices
from wellsep.indices.score_table import PartitionScores
from wellsep.indices.scoring import score_partitions
from wellsep.partitions import NOISE_POLICIES


def _best_has(name: str) -> Any:
    """Whether the fitted, or before fit the given, estimator has a method."""
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


class ClusterSearch(MetaEstimatorMixin, ClusterMixin, CallbackSupportMixin, BaseEstimator):
    """Fit a clusterer with every setting of a grid and keep the best by a validity index.

    It is like ``GridSearchCV``, but without folds: every setting is fitted once to all of X. All
    partitions are scored by all indices in one pass. The best fitted estimator is kept as it is,
    so its labels are the ones that were scored.

    Parameters
    ----------
    estimator : clusterer
        Any scikit-learn clusterer or mixture, or a pipeline that ends in one.
    param_grid : dict, list of dicts or iterable of settings
        Name of a parameter → values to try, all combined, as in scikit-learn's ``ParameterGrid``.
        An iterator of dicts, such as a ``ParameterSampler``, is taken as it is.
    scoring : str, (str, dict), or a list of them
        Names from ``wellsep.INDICES``, with parameters where needed:
        ``("davies_bouldin", {"q": 2})``. Scores keep the sign of the index; whether larger or
        smaller is better is the index's own, too.
    refit : bool, str or callable
        Which index decides: True the first, a name that one; or a function from ``results_`` to a
        row. False keeps no estimator.
    space : array-like of shape (n, d'), transformer or None
        Where partitions are scored; X by default. Settings that transform X differently are thus
        compared in one space.
    noise : {"penalize", "exclude", "cluster", "singletons", "error"}
        Objects labelled -1, -2 or -3 are left out and counted against the score ("penalize"; an
        index without a rule for them is refused), left out ("exclude"), one cluster ("cluster"), a
        cluster each ("singletons"), or refused ("error").
    error_score : "raise" or float
        A fit that fails stops the search, or has this score, NaN by default; ``results_["error"]``
        keeps the sentence.
    n_jobs : int, optional
        Fits at a time, through joblib.
    verbose : int
        Passed to joblib. A progress bar is scikit-learn's ``ProgressBar`` callback.

    Attributes
    ----------
    results_ : dict of arrays
        ``params`` and one ``param_<name>`` per parameter, ``score_<index>`` and
        ``rank_<index>``, ``n_clusters``, ``coverage``, ``fit_time``, ``error``; ready for
        ``pandas.DataFrame``. ``cv_results_`` is the same.
    best_estimator_ : estimator
        The best, fitted.
    best_params_ : dict
        Its setting.
    best_score_ : float
        Its score, with the index's own sign.
    best_index_ : int
        Its row in ``results_``.
    labels_ : ndarray of shape (n,)
        Its labels.
    scores_ : PartitionScores
        The scores of all settings that were fitted.
    n_features_in_, feature_names_in_
        Those of the best estimator, where it has them.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_moons
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> search = ws.ClusterSearch(ws.KMeans(random_state=0), {"n_clusters": [2, 3, 8]},
    ...                           scoring=["silhouette", "davies_bouldin"]).fit(X)
    >>> search.best_params_, round(search.best_score_, 2)
    ({'n_clusters': 8}, 0.52)
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = "silhouette",
        refit: Any = True,
        space: Any = None,
        noise: str = "penalize",
        error_score: Any = np.nan,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.refit = refit
        self.space = space
        self.noise = noise
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit every setting and keep the best.

        Parameters
        ----------
        X : array-like of shape (n, d), or Distances
            Objects; distances for `KMedoids` or an estimator with ``metric="precomputed"``.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n,), optional
            Used in scoring, and in fitting where the estimator takes it; with scikit-learn's
            metadata routing, where it requests it.
        **fit_params
            Passed to the estimator's fit.

        Returns
        -------
        ClusterSearch
            The fitted search.
        """
        check_estimator(self.estimator)
        check_jobs(self.n_jobs)
        check_count("verbose", self.verbose, 0)
        check_choice("noise", self.noise, NOISE_POLICIES)
        decider = self._decider()
        error_score = self.error_score
        raises = isinstance(error_score, str) and error_score == "raise"
        if not (raises or isinstance(error_score, numbers.Real)):
            raise ValueError(f"error_score must be 'raise' or a number, got {shown(error_score)}.")
        settings = list_settings(self.param_grid)
        space = scoring_space(self.space, X)
        estimator = self.estimator
        if isinstance(X, PairSpace):
            if not any(name.endswith("metric") for setting in settings for name in setting):
                estimator = of_distances(clone(estimator))
            X = given_to(estimator, X)
        elif self.space is None and takes_distances(self.estimator):
            space = Distances.of_matrix(X)
        if not (isinstance(X, PairSpace) or is_frame(X) or sp.issparse(X) or is_dask(X)):
            to_table(X)  # what is no table is refused before the first fit
        weights = check_weights(sample_weight, _num_samples(X))
        routed = self._routed(sample_weight, fit_params)

        root = self._init_callback_context(max_subtasks=1)
        root.call_on_fit_task_begin(estimator=self, X=X)
        tasks = root.subcontext("search", max_subtasks=len(settings), sequential_subtasks=False)
        tasks.call_on_fit_task_begin(estimator=self, X=X)
        # Made beforehand: a worker must not change what another is being sent.
        contexts = [tasks.subcontext("candidate", task_id=i) for i in range(len(settings))]
        fit_one = ending_with_parent(fit_setting)
        fits = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(fit_one)(self, clone(estimator), setting, X, routed, context)
            for setting, context in zip(settings, contexts, strict=True)
        )
        tasks.call_on_fit_task_end(estimator=self, X=X)
        errors = [None if isinstance(fit, Fitted) else fit for fit in fits]
        report_failures(errors, settings, error_score)
        fitted = {i: fit for i, fit in enumerate(fits) if isinstance(fit, Fitted)}

        self.scores_ = score_partitions(
            space,
            {str(i): fit.labels for i, fit in fitted.items()},
            self.scoring,
            sample_weight=weights,
            noise=self.noise,
            n_jobs=self.n_jobs,
        )
        self.results_ = results_table(settings, fitted, errors, self.scores_, error_score)
        self._keep_best(fitted, settings, decider)
        root.call_on_fit_task_end(estimator=self, X=X)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit, then return the labels of the best setting; parameters as in `fit`."""
        if self.refit is False:
            raise AttributeError("fit_predict needs refit=True; with refit=False call fit.")
        return self.fit(X, **fit_params).labels_

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Any:
        """Labels of new objects by the best estimator."""
        return self._best().predict(X)

    @available_if(_best_has("transform"))
    def transform(self, X: Any) -> Any:
        """What the best estimator makes of new objects."""
        return self._best().transform(X)

    @available_if(_best_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform X by the best estimator."""
        return self.fit(X, **fit_params).transform(X)

    @available_if(_best_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of ``transform``."""
        return self._best().get_feature_names_out(input_features)

    @available_if(_best_has("predict"))
    def score(self, X: Any, y: Any = None) -> float:
        """The deciding index of the labels predicted for X, negated if smaller is better."""
        index, params = parse_indices(self.scoring)[self.scores_.indices.index(self.scoring_)]
        space, labels = scoring_space(self.space, X), self.predict(X)
        scores = score_partitions(space, labels, [(index.name, params)], noise=self.noise)
        return float(scores.values[0, 0] * scores.directions[0])

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The same as ``results_``, under the name scikit-learn's tools look for."""
        check_is_fitted(self, "results_")
        return self.results_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the best estimator."""
        return self._of_best("n_features_in_")

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features seen by the best estimator, where the data had names."""
        return self._of_best("feature_names_in_")

    @property
    def n_clusters(self) -> int:
        """Clusters of the best setting."""
        check_is_fitted(self, "results_")
        return int(self.results_["n_clusters"][self.best_index_])

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go where: ``fit`` hands to the estimator's ``fit`` what it requests."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **given, **fit_params).estimator.fit)
        if given and has_fit_parameter(last_step(self.estimator), "sample_weight"):
            return {f"{prefix_of(self.estimator)}sample_weight": sample_weight, **fit_params}
        return dict(fit_params)

    def _decider(self) -> Any:
        """The name of the index that decides, a function, or None."""
        parsed = parse_indices(self.scoring, what="scoring")
        asked = [index.label(params) for index, params in parsed]
        if self.refit is False or callable(self.refit):
            return self.refit or None
        if self.refit is True:
            return asked[0]
        if not isinstance(self.refit, str) or self.refit not in asked:
            raise ValueError(
                f"refit must be True, False, a function or one of {', '.join(asked)}, "
                f"got {shown(self.refit)}."
            )
        return self.refit

    def _keep_best(self, fitted: dict[int, Fitted], settings: list, decider: Any) -> None:
        for name in ("best_estimator_", "labels_"):
            self.__dict__.pop(name, None)
        self.scoring_ = decider if isinstance(decider, str) else self.scores_.indices[0]
        scores = self.results_[f"score_{self.scoring_}"]
        if callable(decider):
            self.best_index_ = check_count("refit", decider(self.results_), 0, len(settings) - 1)
        else:
            if np.isnan(scores).all():
                reasons = sorted(set(self.scores_.reasons.values())) or ["every fit failed"]
                raise ValueError(
                    f"scoring must be defined for some setting, got none for {self.scoring_}: "
                    f"{'; '.join(reasons)}."
                )
            self.best_index_ = int(self.results_[f"rank_{self.scoring_}"].argmin())
        self.best_params_ = settings[self.best_index_]
        self.best_score_ = float(scores[self.best_index_])
        if self.refit is not False and self.best_index_ in fitted:
            self.best_estimator_ = fitted[self.best_index_].estimator
            self.labels_ = fitted[self.best_index_].labels
        covered = self.results_["coverage"][self.best_index_]
        if covered < 0.5:
            warnings.warn(
                f"The best setting, {self.best_params_}, is judged on {covered:.0%} of the "
                "objects; it calls the others noise. Its labels are kept. Look at the coverage in "
                "results_, or try settings that call fewer objects noise.",
                UserWarning,
                stacklevel=4,
            )

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _of_best(self, name: str) -> Any:
        best = getattr(self, "best_estimator_", None)
        if best is None or not hasattr(best, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} yet.")
        return getattr(best, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "results_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.array_api_support = inner.array_api_support
        tags.transformer_tags = inner.transformer_tags
        return tags


def fit_setting(search, estimator, setting, X, fit_params, context) -> Fitted | Exception:
    """One setting in one worker; a failure comes back as itself."""
    context.call_on_fit_task_begin(estimator=search, X=X)
    try:
        # A setting may hold estimators: they are cloned too, so that no two fits share one.
        estimator.set_params(**{k: clone(v, safe=False) for k, v in setting.items()})
        if not hasattr(estimator, "set_callbacks"):
            return fit_labels(estimator, X, fit_params)
        with context.propagate_callback_context(estimator):
            return fit_labels(estimator, X, fit_params)
    except Exception as error:
        return error
    finally:
        context.call_on_fit_task_end(estimator=search, X=X)


def list_settings(param_grid: Any) -> list[dict[str, Any]]:
    try:
        as_grid = isinstance(param_grid, Mapping | list | tuple)
        settings = list(ParameterGrid(param_grid) if as_grid else param_grid)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"param_grid must be values by parameter, or a list of such: {shown(str(error))}."
        ) from None
    for setting in settings:
        if not isinstance(setting, Mapping):
            raise TypeError(f"param_grid must hold settings (dicts), got {shown(setting)}.")
    if not settings:
        raise ValueError("param_grid must hold at least one setting, got none.")
    return settings


def report_failures(errors: list, settings: list, error_score: Any) -> None:
    failed = [i for i, error in enumerate(errors) if error is not None]
    if not failed:
        return
    first = errors[failed[0]]
    if error_score == "raise" or len(failed) == len(errors):
        first.add_note(f"while fitting {settings[failed[0]]}")
        raise first
    warnings.warn(
        f"{len(failed)} of {len(errors)} settings could not be fitted and have the score "
        f"{error_score}; the first, {settings[failed[0]]}: {type(first).__name__}: {first}",
        FitFailedWarning,
        stacklevel=4,
    )


def results_table(
    settings: list, fitted: dict[int, Fitted], errors: list, scores: PartitionScores, failed: Any
) -> dict[str, Any]:
    """The table, column by column; settings that failed have the error score."""
    n = len(settings)
    rows = np.array(sorted(fitted))
    results: dict[str, Any] = {"params": settings}
    for name in sorted({name for setting in settings for name in setting}):
        column = np.ma.MaskedArray(np.empty(n, dtype=object), mask=True)
        for row, setting in enumerate(settings):
            if name in setting:
                column[row] = setting[name]
        results[f"param_{name}"] = column
    of_indices = zip(scores.indices, scores.directions, scores.values.T, strict=True)
    for name, direction, of_fitted in of_indices:
        values = np.full(n, np.nan if failed == "raise" else float(failed))
        values[rows] = of_fitted
        results[f"score_{name}"] = values
        signed = np.where(np.isnan(values), -np.inf, values * direction)
        results[f"rank_{name}"] = 1 + (signed[None, :] > signed[:, None]).sum(axis=1)
    seconds = np.array([fit.seconds for fit in fitted.values()])
    facts = {"n_clusters": scores.n_clusters, "coverage": scores.coverage, "fit_time": seconds}
    for name, of_fitted in facts.items():
        results[name] = np.full(n, np.nan)
        results[name][rows] = of_fitted
    texts = [None if e is None else f"{type(e).__name__}: {e}" for e in errors]
    results["error"] = np.array(texts, dtype=object)
    return results
