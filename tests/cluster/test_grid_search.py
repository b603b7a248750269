"""ClusterSearch keeps the setting its index likes best, and behaves as a scikit-learn search."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from libraries import needs_callbacks
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws


@pytest.fixture(scope="module")
def X():
    return make_blobs(200, 3, centers=4, random_state=1)[0]


def search_of(**options):
    options = {"scoring": ["silhouette", "davies_bouldin"], **options}
    return ws.ClusterSearch(ws.KMeans(random_state=0), {"n_clusters": [2, 4, 6]}, **options)


WEIGHTS = (
    "k-means draws its start by weight, so that repeated points draw another; its own exception"
)
REASONS = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        ws.ClusterSearch(
            SklearnKMeans(n_init=1, random_state=0), {"n_clusters": [2, 3]}, scoring="cfq"
        )
    ],
    expected_failed_checks=lambda _: REASONS,
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_the_best_setting_is_the_one_its_index_likes_best(X):
    search = search_of().fit(X)
    scores = [
        ws.silhouette_score(X, ws.KMeans(k, random_state=0).fit_predict(X)) for k in (2, 4, 6)
    ]
    assert search.best_params_ == {"n_clusters": 4}
    assert search.best_index_ == 1
    assert search.best_score_ == pytest.approx(max(scores))
    np.testing.assert_allclose(search.results_["score_silhouette"], scores, rtol=1e-12)
    assert search.results_["rank_silhouette"][1] == 1


def test_where_smaller_is_better_the_smallest_wins(X):
    search = search_of(refit="davies_bouldin").fit(X)
    assert search.best_score_ == search.results_["score_davies_bouldin"].min()
    assert search.results_["rank_davies_bouldin"][search.best_index_] == 1


def test_the_kept_labels_are_the_ones_that_were_scored(X):
    search = ws.ClusterSearch(ws.KMeans(init="random", n_init=1), {"n_clusters": [5] * 6}).fit(X)
    assert ws.silhouette_score(X, search.labels_) == pytest.approx(search.best_score_)
    np.testing.assert_array_equal(search.best_estimator_.labels_, search.labels_)


def test_predict_transform_and_score_are_those_of_the_best(X):
    search = search_of().fit(X)
    best = ws.KMeans(4, random_state=0).fit(X)
    np.testing.assert_array_equal(search.predict(X), best.labels_)
    np.testing.assert_array_equal(search.transform(X), best.transform(X))
    np.testing.assert_array_equal(search.fit_predict(X), best.labels_)
    assert search.score(X) == pytest.approx(ws.silhouette_score(X, best.labels_))
    assert search.get_feature_names_out().tolist() == [f"kmeans{j}" for j in range(4)]
    down = search_of(refit="davies_bouldin").fit(X)
    assert down.score(X) == pytest.approx(-ws.davies_bouldin_score(X, down.labels_))


def test_a_clusterer_without_predict_has_none_in_the_search(X):
    search = ws.ClusterSearch(AgglomerativeClustering(), {"n_clusters": [3, 4]})
    assert not hasattr(search, "predict")
    assert search.fit(X).best_params_ == {"n_clusters": 4}
    assert not hasattr(search, "transform")


def test_noise_is_counted_in_the_coverage(X):
    search = ws.ClusterSearch(DBSCAN(), {"eps": [0.5, 1.0, 3.0], "min_samples": [5]}).fit(X)
    for eps, coverage in zip([0.5, 1.0, 3.0], search.results_["coverage"], strict=True):
        assert coverage == (DBSCAN(eps=eps).fit_predict(X) >= 0).mean()


def test_mixtures_and_pipelines_are_searched(X):
    mixture = ws.ClusterSearch(GaussianMixture(random_state=0), {"n_components": [2, 4]}).fit(X)
    assert mixture.best_params_ == {"n_components": 4}
    pipe = make_pipeline(StandardScaler(), ws.KMeans(random_state=0))
    grid = {"kmeans__n_clusters": [2, 4], "standardscaler": [StandardScaler(), MinMaxScaler()]}
    search = ws.ClusterSearch(pipe, grid).fit(X)
    assert search.best_params_["kmeans__n_clusters"] == 4
    assert len(search.results_["params"]) == 4
    assert isinstance(search.best_estimator_, Pipeline)


def test_lists_of_grids_and_samplers_are_taken(X):
    grids = [{"n_clusters": [2, 3]}, {"n_clusters": [4], "init": ["random"]}]
    search = ws.ClusterSearch(ws.KMeans(random_state=0), grids).fit(X)
    assert len(search.results_["params"]) == 3
    assert search.results_["param_init"].mask.tolist() == [True, True, False]
    sampler = ParameterSampler({"n_clusters": [2, 3, 4, 5]}, n_iter=2, random_state=0)
    assert len(ws.ClusterSearch(ws.KMeans(), sampler).fit(X).results_["params"]) == 2


def test_the_table_becomes_a_frame(X):
    pd = pytest.importorskip("pandas", reason="the table is read as a pandas frame here")
    frame = pd.DataFrame(search_of().fit(X).cv_results_)
    assert frame.columns.tolist() == [
        "params",
        "param_n_clusters",
        "score_silhouette",
        "rank_silhouette",
        "score_davies_bouldin",
        "rank_davies_bouldin",
        "n_clusters",
        "coverage",
        "fit_time",
        "error",
    ]
    assert frame["n_clusters"].tolist() == [2, 4, 6]


def test_a_function_may_decide(X):
    fewest = search_of(refit=lambda results: int(np.argmin(results["n_clusters"]))).fit(X)
    assert fewest.best_params_ == {"n_clusters": 2}
    assert len(np.unique(fewest.labels_)) == 2


def test_without_refit_there_is_a_table_and_no_estimator(X):
    search = search_of(refit=False).fit(X)
    assert search.best_params_ == {"n_clusters": 4}
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(NotFittedError):
        search.predict(X)
    with pytest.raises(AttributeError, match="fit_predict needs refit=True"):
        search.fit_predict(X)


def test_a_failing_setting_is_kept_with_its_reason(X):
    search = ws.ClusterSearch(ws.KMeans(random_state=0), {"n_clusters": [4, 999]})
    with pytest.warns(FitFailedWarning, match="1 of 2 settings could not be fitted"):
        search.fit(X)
    assert np.isnan(search.results_["score_silhouette"][1])
    assert "n_clusters must not exceed" in search.results_["error"][1]
    assert search.results_["error"][0] is None
    assert search.best_params_ == {"n_clusters": 4}


def test_a_failing_setting_may_stop_the_search(X):
    search = ws.ClusterSearch(ws.KMeans(), {"n_clusters": [4, 999]}, error_score="raise")
    with pytest.raises(ValueError, match="n_clusters must not exceed") as caught:
        search.fit(X)
    assert "while fitting {'n_clusters': 999}" in caught.value.__notes__


def test_where_all_settings_fail_the_first_reason_is_raised(X):
    with pytest.raises(ValueError, match="n_clusters must not exceed"):
        ws.ClusterSearch(ws.KMeans(), {"n_clusters": [998, 999]}).fit(X)


def test_one_cluster_everywhere_is_answered_with_the_reason(X):
    with pytest.raises(ValueError, match=r"none for silhouette: silhouette needs at least 2"):
        ws.ClusterSearch(ws.KMeans(), {"n_clusters": [1]}).fit(X)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scoring": "best"}, "scoring must be among"),
        ({"refit": "cfq"}, "refit must be True, False, a function or one of silhouette"),
        ({"error_score": "ignore"}, "error_score must be 'raise' or a number, got 'ignore'"),
        ({"noise": "drop"}, "noise must be one of"),
    ],
)
def test_bad_parameters_are_answered_in_a_sentence(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        search_of(**options).fit(X)


def test_an_empty_grid_is_refused(X):
    with pytest.raises(ValueError, match="param_grid must hold at least one setting"):
        ws.ClusterSearch(ws.KMeans(), iter([])).fit(X)


def test_two_jobs_find_what_one_finds(X):
    one = search_of().fit(X)
    with joblib.parallel_config(backend="threading"):
        two = search_of(n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(
        one.results_["score_silhouette"], two.results_["score_silhouette"], rtol=1e-12
    )


def test_settings_are_judged_in_the_space_asked_for(X):
    wide = X * [1, 1000, 1]
    pipe = make_pipeline(StandardScaler(), ws.KMeans(random_state=0))
    search = ws.ClusterSearch(pipe, {"kmeans__n_clusters": [4]}, space=StandardScaler()).fit(wide)
    scaled = StandardScaler().fit_transform(wide)
    assert search.best_score_ == pytest.approx(ws.silhouette_score(scaled, search.labels_))


def test_weights_reach_the_fit_and_the_scores(X):
    weights = np.random.default_rng(0).uniform(0.1, 3, len(X))
    search = search_of().fit(X, sample_weight=weights)
    labels = ws.KMeans(4, random_state=0).fit_predict(X, sample_weight=weights)
    np.testing.assert_array_equal(search.labels_, labels)
    assert search.best_score_ == pytest.approx(
        ws.silhouette_score(X, labels, sample_weight=weights)
    )


def test_routed_weights_go_where_they_are_requested(X):
    weights = np.random.default_rng(0).uniform(0.1, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = ws.KMeans(random_state=0).set_fit_request(sample_weight=True)
        search = ws.ClusterSearch(model, {"n_clusters": [4]}).fit(X, sample_weight=weights)
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            ws.ClusterSearch(model, {"n_clusters": [4]}).set_fit_request(sample_weight=True),
        ).fit(X, sample_weight=weights)
    weighted = ws.KMeans(4, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(search.best_estimator_.cluster_centers_, weighted.cluster_centers_)
    scaled = StandardScaler().fit_transform(X)
    inner = ws.KMeans(4, random_state=0).fit(scaled, sample_weight=weights)
    np.testing.assert_allclose(pipe[-1].best_estimator_.cluster_centers_, inner.cluster_centers_)


def test_it_can_be_cloned_pickled_and_keeps_names(X):
    pd = pytest.importorskip("pandas", reason="pandas is an optional input kind")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    search = search_of().fit(frame)
    assert search.feature_names_in_.tolist() == ["a", "b", "c"]
    assert search.n_features_in_ == 3
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(frame), search.labels_)
    fresh = clone(search)
    assert not hasattr(fresh, "results_")
    assert fresh.estimator.get_params() == search.estimator.get_params()


def test_it_can_be_kept_with_skops(X):
    skops = pytest.importorskip("skops.io", reason="skops is an optional way to keep models")
    search = search_of().fit(X)
    stored = skops.dumps(search)
    again = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.predict(X), search.labels_)
    assert again.best_params_ == search.best_params_


@needs_callbacks
def test_callbacks_hear_of_every_setting_and_of_the_fits_inside(X):
    class Listener:
        max_propagation_depth = 1

        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            heard.append((type(estimator).__name__, context.task_name))

    heard: list[tuple[str, str]] = []
    search_of().set_callbacks(Listener()).fit(X)
    assert heard.count(("KMeans", "restart")) == 3
    assert ("ClusterSearch", "fit") in heard
    assert not hasattr(search_of().estimator, "_skl_callbacks")


def test_the_progress_bar_of_scikit_learn_runs(X, capsys):
    ProgressBar = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9").ProgressBar

    search = search_of().set_callbacks(ProgressBar()).fit(X)
    assert search.best_params_ == {"n_clusters": 4}
    assert "ClusterSearch" in capsys.readouterr().out
