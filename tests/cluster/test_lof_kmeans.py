"""LOFKMeans is k-means with weights max(1, LOF), and behaves as a scikit-learn estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from libraries import needs_callbacks
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws
from wellsep.cluster import outlier_weights as lofkmeans
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph


def scattered(n=300, d=4, seed=0):
    X, _ = make_blobs(n, d, centers=4, random_state=seed)
    X[:10] += np.random.default_rng(seed).normal(scale=15, size=(10, d))
    return X


REASONS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a repeated point changes LOF, which is a matter of density, while a weight does not"
    ),
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [ws.LOFKMeans(n_clusters=3, n_init=2)], expected_failed_checks=lambda _: REASONS
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_the_weights_are_scikit_learns_lof_from_one_upwards():
    X = scattered()
    model = ws.LOFKMeans(4, n_neighbors=7, random_state=0).fit(X)
    lof = -LocalOutlierFactor(n_neighbors=7).fit(X).negative_outlier_factor_
    np.testing.assert_allclose(model.lof_scores_, lof, rtol=1e-8)
    np.testing.assert_allclose(model.weights_, np.maximum(lof, 1), rtol=1e-8)
    assert model.weights_.max() > 2


def test_avila_has_weights_of_up_to_307(real_data):
    X = np.load(real_data / "avila.npz")["X"].astype(float)
    weights = lofkmeans.outlier_weights(X, 3).weights
    assert weights.max() == pytest.approx(307, abs=0.5)
    assert weights.min() == 1.0


def test_hand_arithmetic_of_lof():
    # Three points 0, 1, 3 with t = 1: reach 1, 1, 2, densities 1, 1, 1/2, so LOF 1, 1, 2.
    scores = NeighbourGraph.of(np.array([[0.0], [1.0], [3.0]]), 1).outlier_factor()
    assert scores == pytest.approx([1.0, 1.0, 2.0])


def test_with_all_weights_one_it_is_k_means(monkeypatch):
    X = scattered()
    ones = lofkmeans.OutlierWeights(np.ones(len(X)), np.ones(len(X)))
    monkeypatch.setattr(lofkmeans, "outlier_weights", lambda *args, **options: ones)
    model = ws.LOFKMeans(4, random_state=3, n_init=3).fit(X)
    plain = ws.KMeans(4, init="random", random_state=3, n_init=3).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_it_is_k_means_with_the_weights_from_the_same_start():
    X = scattered()
    model = ws.LOFKMeans(4, init=X[:4], random_state=0, tol=0).fit(X)
    plain = ws.KMeans(4, init=X[:4], tol=0).fit(X, sample_weight=model.weights_)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_centres_are_the_weighted_means_and_the_inertia_is_the_weighted_sum():
    X = scattered()
    model = ws.LOFKMeans(4, random_state=0, tol=0).fit(X)
    for code, center in enumerate(model.cluster_centers_):
        own = model.labels_ == code
        np.testing.assert_allclose(
            center, np.average(X[own], axis=0, weights=model.weights_[own]), atol=1e-9
        )
    squares = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    assert model.inertia_ == pytest.approx(squares @ model.weights_, rel=1e-9)


def test_given_weights_multiply_those_of_lof():
    X = scattered()
    given = np.random.default_rng(0).uniform(0.5, 2, len(X))
    alone = ws.LOFKMeans(4, random_state=0).fit(X)
    both = ws.LOFKMeans(4, random_state=0).fit(X, sample_weight=given)
    np.testing.assert_allclose(both.weights_, alone.weights_ * given, rtol=1e-12)


def test_points_of_weight_zero_are_as_good_as_absent():
    X = scattered()
    given = np.ones(len(X))
    given[:60] = 0
    both = ws.LOFKMeans(4, init=X[-4:]).fit(X, sample_weight=given)
    without = ws.LOFKMeans(4, init=X[-4:]).fit(X[60:])
    np.testing.assert_array_equal(both.labels_[60:], without.labels_)
    np.testing.assert_allclose(both.lof_scores_[60:], without.lof_scores_, rtol=1e-12)
    assert np.isnan(both.lof_scores_[:60]).all()


def test_new_points_go_to_the_nearest_centre():
    X = scattered()
    model = ws.LOFKMeans(4, random_state=0).fit(X)
    new = scattered(50, seed=1)
    distances = model.transform(new)
    expected = np.linalg.norm(new[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), expected.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_labels_are_indifferent_to_unit_and_origin():
    X = scattered()
    labels = ws.LOFKMeans(4, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(ws.LOFKMeans(4, random_state=0).fit_predict(1000 * X), labels)
    np.testing.assert_array_equal(ws.LOFKMeans(4, random_state=0).fit_predict(X + 1e6), labels)


@pytest.mark.filterwarnings("ignore:.*coincide")
def test_even_beside_many_duplicates_the_unit_does_not_matter():
    X = np.vstack([scattered(), np.tile([3.0, 3.0, 3.0, 3.0], (20, 1))])
    weights = ws.LOFKMeans(4, random_state=0).fit(X).weights_
    np.testing.assert_allclose(
        ws.LOFKMeans(4, random_state=0).fit(1000 * X).weights_, weights, rtol=1e-6
    )


def test_the_same_seed_gives_the_same_labels_and_inertia_for_any_number_of_threads():
    X = scattered(2000, 20)
    one = ws.LOFKMeans(5, random_state=1, n_jobs=1).fit(X)
    two = ws.LOFKMeans(5, random_state=1, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-9)


def test_coinciding_points_are_told():
    X = np.vstack([scattered(50), np.ones((8, 4))])
    with pytest.warns(UserWarning, match="8 points coincide with at least n_neighbors = 5 others"):
        ws.LOFKMeans(3, random_state=0).fit(X)


def test_too_many_neighbours_are_cut_and_told():
    X = scattered(20)
    with pytest.warns(UserWarning, match=r"n_neighbors must be less than .* \(20\), got 50; 19"):
        model = ws.LOFKMeans(3, n_neighbors=50, random_state=0).fit(X)
    lof = -LocalOutlierFactor(n_neighbors=19).fit(X).negative_outlier_factor_
    np.testing.assert_allclose(model.lof_scores_, lof, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"n_clusters": 31}, ValueError, "n_clusters must not exceed the number of objects"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors must be an integer, got 2.5"),
        ({"init": "best"}, ValueError, "init must be one of"),
    ],
)
def test_bad_parameters_are_answered_in_a_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        ws.LOFKMeans(**{"n_clusters": 3, **options}).fit(scattered(30))


def test_bad_data_are_answered_in_a_sentence():
    X = scattered(30)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        ws.LOFKMeans(3).fit(X, sample_weight=-np.ones(30))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ws.LOFKMeans(3).fit(X)


def test_fewer_distinct_points_than_clusters_are_told():
    X = np.repeat([[0.0], [1.0], [5.0]], 3, axis=0)
    with pytest.warns(UserWarning, match=r"distinct clusters \(3\) found"):
        ws.LOFKMeans(5, n_neighbors=4, random_state=0).fit(X)


def test_frames_keep_their_names_and_kind():
    pd = pytest.importorskip("pandas", reason="pandas is an optional input kind")
    pl = pytest.importorskip("polars", reason="polars is an optional input kind")
    X, names = scattered(), ["a", "b", "c", "d"]
    expected = ws.LOFKMeans(4, random_state=0).fit(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = ws.LOFKMeans(4, random_state=0).fit(frame)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.labels_, expected.labels_)
    model.set_output(transform="pandas")
    assert model.transform(frame).columns.tolist() == [f"lofkmeans{j}" for j in range(4)]


def test_it_can_be_cloned_pickled_and_kept_with_skops():
    skops = pytest.importorskip("skops.io", reason="skops is an optional way to keep models")
    X = scattered()
    model = ws.LOFKMeans(4, n_neighbors=7, random_state=0).fit(X)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    stored = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=stored)
    np.testing.assert_array_equal(skops.loads(stored, trusted=trusted).predict(X), model.labels_)


def test_it_works_in_a_pipeline_with_routed_weights():
    import sklearn

    X = scattered()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    scaled = StandardScaler().fit_transform(X)
    expected = ws.LOFKMeans(4, random_state=0).fit(scaled, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            ws.LOFKMeans(4, random_state=0).set_fit_request(sample_weight=True),
        ).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(pipe[-1].labels_, expected.labels_)


@needs_callbacks
def test_callbacks_hear_of_every_restart():
    class Counter:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            heard.append(context.task_name)

    heard: list[str] = []
    ws.LOFKMeans(3, n_init=3, random_state=0).set_callbacks(Counter()).fit(scattered(60))
    assert heard.count("restart") == 3


def test_tensors_are_taken():
    torch = pytest.importorskip("torch", reason="torch is an optional input kind")
    X = scattered()
    model = ws.LOFKMeans(4, init=X[:4]).fit(torch.from_numpy(X))
    expected = ws.LOFKMeans(4, init=X[:4]).fit(X)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
