"""KMeans: restarts keep the lowest inertia, and the spherical metric is understood throughout."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.datasets import make_blobs

import wellsep as ws


@pytest.fixture(scope="module")
def X():
    return make_blobs(500, 3, centers=12, cluster_std=1.5, random_state=4)[0]


def test_restarts_keep_the_lowest_inertia(X):
    draws = np.random.RandomState(0)
    singles = [ws.KMeans(12, n_init=1, random_state=draws).fit(X).inertia_ for _ in range(6)]
    many = ws.KMeans(12, n_init=6, random_state=np.random.RandomState(0)).fit(X)
    assert many.inertia_ == min(singles)
    assert min(singles) < max(singles)


def test_a_given_start_is_used_once_and_ends_where_scikit_learn_ends(X):
    theirs = TheirKMeans(12, init=X[:12], n_init=1).fit(X)
    with pytest.warns(RuntimeWarning, match="n_init = 7 is not used: init gives the centres"):
        ours = ws.KMeans(12, init=X[:12], n_init=7).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    assert ours.n_iter_ == theirs.n_iter_


def test_auto_means_ten_random_starts(X):
    auto = ws.KMeans(12, init="random", random_state=0).fit(X)
    ten = ws.KMeans(12, init="random", n_init=10, random_state=0).fit(X)
    assert auto.inertia_ == ten.inertia_


def test_plus_plus_is_as_good_as_scikit_learn_s_on_average(X):
    ours = [ws.KMeans(12, random_state=s).fit(X).inertia_ for s in range(30)]
    theirs = [TheirKMeans(12, random_state=s).fit(X).inertia_ for s in range(30)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.06)


def test_the_spherical_metric_reaches_predict_transform_and_score(X):
    model = ws.KMeans(4, metric="cosine", random_state=0).fit(X)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = rows @ model.cluster_centers_.T
    np.testing.assert_array_equal(model.predict(3.0 * X), cosines.argmax(axis=1))
    np.testing.assert_allclose(model.transform(X), 1.0 - cosines, atol=1e-12)
    assert model.score(X) == pytest.approx(-(1.0 - cosines.max(axis=1)).sum(), rel=1e-9)


def test_weights_move_the_centres(X):
    weights = np.where(X[:, 0] > 0.0, 10.0, 1.0)
    model = ws.KMeans(1).fit(X, sample_weight=weights)
    np.testing.assert_allclose(
        model.cluster_centers_[0], np.average(X, axis=0, weights=weights), rtol=1e-12
    )


def test_an_unknown_metric_or_restart_word_is_refused(X):
    with pytest.raises(ValueError, match="metric must be one of"):
        ws.KMeans(2, metric="manhattan").fit(X)
    with pytest.raises(ValueError, match="n_init must be one of 'auto', got 'many'"):
        ws.KMeans(2, n_init="many").fit(X)
