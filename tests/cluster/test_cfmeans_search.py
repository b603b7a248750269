"""The search of CFMeans: lower than k-means, repeatable, within its budget, on every kind of X."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from libraries import needs_callbacks
from sklearn.datasets import load_digits

import wellsep as ws
from wellsep._checks.arrays import is_torch
from wellsep.cluster.cf_means.centre_search import leading_directions
from wellsep.cluster.cf_means.estimator import separation
from wellsep.compute.kmeans.prepared_points import prepare


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 4)) + 6 * rng.integers(0, 3, (600, 4))


def test_the_search_ends_below_ten_restarts_of_k_means():
    X = load_digits().data
    for k in (10, 30):
        plain = ws.KMeans(k, n_init=10, random_state=0).fit(X)
        model = ws.CFMeans(k, max_moves=150, random_state=0).fit(X)
        assert model.inertia_ <= plain.inertia_ * (1 + 1e-6)
    assert model.inertia_ < plain.inertia_


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "weights"])
def test_every_kind_of_data_ends_at_or_below_k_means_with_its_true_inertia(X, kind, metric):
    X = X + 1.0
    weights = np.arange(len(X)) % 4.0 if kind == "weights" else None
    given = {"sparse": sp.csr_array(X), "float32": X.astype(np.float32)}.get(kind, X)
    options = {"metric": metric, "random_state": 1}
    plain = ws.KMeans(18, **options).fit(given, sample_weight=weights)
    model = ws.CFMeans(18, max_moves=25, **options).fit(given, sample_weight=weights)
    assert model.inertia_ < plain.inertia_ * (1 + 1e-6)
    assert -model.score(given, sample_weight=weights) == pytest.approx(model.inertia_, rel=1e-5)
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    assert model.cluster_centers_.dtype == given.dtype
    counted = slice(None) if weights is None else weights > 0
    assert np.isfinite(model.margins_[counted]).all()


def test_the_same_seed_gives_the_same_bits(X):
    fits = [ws.CFMeans(20, max_moves=15, random_state=3).fit(X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    assert fits[0].inertia_ == fits[1].inertia_


def test_weights_of_one_give_the_fit_without_weights(X):
    one = ws.CFMeans(20, max_moves=15, random_state=3).fit(X)
    other = ws.CFMeans(20, max_moves=15, random_state=3).fit(X, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)


def test_history_falls_against_work_and_ends_at_the_inertia(X):
    model = ws.CFMeans(20, max_moves=30, random_state=0).fit(X)
    history = model.history_
    assert set(history) == {"work", "seconds", "inertia"}
    assert (np.diff(history["inertia"]) <= 0).all()
    assert (np.diff(history["work"]) >= 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["inertia"][-1] == pytest.approx(model.inertia_, rel=1e-9)
    assert history["inertia"][-1] < history["inertia"][0]
    assert model.n_moves_ > 0


def test_more_moves_never_give_a_higher_inertia_on_the_same_road(X):
    found = [ws.CFMeans(25, max_moves=m, random_state=0).fit(X).inertia_ for m in (0, 20, 60)]
    assert found[0] > found[1] >= found[2]


def test_a_budget_of_seconds_ends_the_search_soon_after(X):
    ws.CFMeans(30, max_moves=20, random_state=0).fit(X)  # loaded
    model = ws.CFMeans(30, max_seconds=0.2, random_state=0).fit(X)
    assert 0.1 < model.history_["seconds"][-1] < 2.0


@needs_callbacks
def test_a_callback_sees_each_trial_and_may_stop_the_search(X):
    FitCallback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9").FitCallback

    class Stop(FitCallback):
        seen = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **given):
            pass

        def on_fit_task_end(self, estimator, context, **given):
            self.seen += context.task_name == "move"
            return self.seen >= 7

    stop = Stop()
    ws.CFMeans(20, max_moves=500, random_state=0).set_callbacks(stop).fit(X)
    assert stop.seen == 7


def test_a_sketch_of_many_features_finds_the_leading_directions_and_helps():
    rng = np.random.default_rng(2)
    centres = np.zeros((30, 128))
    centres[:, :5] = rng.normal(size=(30, 5)) * 4
    X = centres[rng.integers(0, 30, 700)] + rng.normal(size=(700, 128))
    basis = leading_directions(prepare(X), 24, np.random.RandomState(0))
    np.testing.assert_allclose(basis.T @ basis, np.eye(24), atol=1e-10)
    assert (np.linalg.norm(basis[:5], axis=1) > 0.97).all()
    plain = ws.KMeans(30, n_init=5, random_state=0).fit(X)
    model = ws.CFMeans(30, max_moves=100, random_state=0).fit(X)
    assert model.inertia_ < plain.inertia_


def test_margins_of_directions_lie_between_unit_rows(X):
    points = prepare(X + 1.0, None, "cosine")
    model = ws.CFMeans(3, metric="cosine", max_moves=5, random_state=0).fit(X + 1.0)
    unit = (X + 1.0) / np.linalg.norm(X + 1.0, axis=1, keepdims=True)
    expected = ws.margins(unit, model.labels_, centers=model.cluster_centers_)
    np.testing.assert_allclose(model.margins_, expected, rtol=1e-9)
    again, _ = separation(X + 1.0, model.labels_, points, model.cluster_centers_, None)
    np.testing.assert_allclose(again, expected, rtol=1e-9)


def test_two_clusters_and_as_many_clusters_as_points_are_searched_too():
    X = np.arange(12.0)[:, None] ** 1.5
    assert ws.CFMeans(2, max_moves=20, random_state=0).fit(X).inertia_ > 0
    assert ws.CFMeans(12, max_moves=20, random_state=0).fit(X).inertia_ == 0.0


def test_values_of_proposals_on_a_card_are_what_the_cost_falls_by(X, monkeypatch):
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
    from wellsep.cluster.cf_means.centre_search_gpu import proposal_values

    for weights in (None, np.arange(len(X)) % 3.0):
        points = prepare(torch.tensor(X), weights)
        centers = points.take(np.arange(9))
        found = points.space.nearest_two(centers, points.norms)
        table, far = proposal_values(points, found, 9, np.random.RandomState(0))
        rows, unit = points.take(np.arange(len(X))), np.ones(len(X)) if weights is None else weights

        def cost(centers, rows=rows, unit=unit):
            return ((rows[:, None] - centers) ** 2).sum(axis=2).min(axis=1) @ unit

        for at in (0, len(table) // 2, len(table) - 1):
            for code in (0, 4, 8):
                moved = centers.copy()
                moved[code] = far.places[at]
                assert table[at, code] == pytest.approx(cost(centers) - cost(moved), rel=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_tensors_are_searched_where_they_are(X, metric):
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    given = torch.tensor(X + 1.0, dtype=torch.float32)
    plain = ws.KMeans(25, metric=metric, random_state=0).fit(given)
    model = ws.CFMeans(25, metric=metric, random_state=0).fit(given)
    assert isinstance(model.cluster_centers_, torch.Tensor)
    assert model.inertia_ < plain.inertia_
    assert model.n_moves_ > 0
    assert (np.diff(model.history_["inertia"]) <= 0).all()
