"""RobustKMeans: outliers hardly move its centres, small clusters are lost only where it says so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws
from wellsep.cluster.outlier_weights import robust_weights


@pytest.fixture(scope="module")
def spoiled():
    """Five clusters of 80, and clumps of 8 outliers each far away."""
    X, y = make_blobs(400, 3, centers=5, cluster_std=0.6, random_state=2)
    rng = np.random.default_rng(0)
    places = 40 * rng.normal(size=(5, 3))
    clumps = np.repeat(places, 8, axis=0) + 0.3 * rng.normal(size=(40, 3))
    return np.vstack([X, clumps]), y


def test_clumps_of_outliers_do_not_take_centres(spoiled):
    X, y = spoiled
    model = ws.RobustKMeans(5, random_state=0).fit(X)
    plain = ws.KMeans(5, n_init=10, random_state=0).fit(X)
    assert ws.ari_score(y, model.labels_[:400]) > 0.95
    assert ws.ari_score(y, plain.labels_[:400]) < 0.8
    assert model.outlier_[400:].all()
    assert model.outlier_[:400].mean() < 0.1


def test_weights_fall_with_the_greatest_factor_of_three_neighbourhoods(spoiled):
    X, _ = spoiled
    found = robust_weights(X, 40)
    from sklearn.neighbors import LocalOutlierFactor

    factors = [
        -LocalOutlierFactor(n_neighbors=t).fit(X).negative_outlier_factor_ for t in (10, 20, 40)
    ]
    expected = np.max(factors, axis=0)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
    np.testing.assert_allclose(found.weights, np.maximum(expected / 1.5, 1.0) ** -4.0, rtol=1e-5)
    assert (found.weights[:400] == 1.0).mean() > 0.8  # an ordinary edge of a cluster costs nothing


def test_weights_of_the_user_are_kept_beside_those_of_the_outlier_factor(spoiled):
    X, _ = spoiled
    given = np.where(np.arange(len(X)) % 5 == 0, 0.0, 2.0)
    model = ws.RobustKMeans(5, random_state=0).fit(X, sample_weight=given)
    counted = given > 0
    alone = robust_weights(X[counted], 40)
    np.testing.assert_allclose(model.weights_[counted], 2.0 * alone.weights)
    assert (model.weights_[~counted] == 0).all()
    assert np.isnan(model.lof_scores_[~counted]).all()


def test_trimming_drops_the_share_that_is_asked_for_and_refines(spoiled):
    X, y = spoiled
    auto = ws.RobustKMeans(5, trim="auto", random_state=0).fit(X)
    assert (auto.weights_ == 0).sum() == round(auto.outlier_.mean() * len(X))
    assert set(np.unique(auto.weights_)) == {0.0, 1.0}
    fixed = ws.RobustKMeans(5, trim=0.1, random_state=0).fit(X)
    assert (fixed.weights_ == 0).sum() == 44
    assert ws.ari_score(y, fixed.labels_[:400]) > 0.95
    kept = fixed.weights_ > 0
    for code in range(5):
        own = kept & (fixed.labels_ == code)
        np.testing.assert_allclose(fixed.cluster_centers_[code], X[own].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("trim", ["auto", 0.0])
def test_trimming_without_outliers_counts_every_point_with_its_own_weight(trim):
    X = np.append(np.arange(60.0), 61.4)[:, None]
    given = np.append(np.tile([1.0, 2.0], 30), 1.0)
    untrimmed = ws.RobustKMeans(2, min_cluster_size=8, random_state=0).fit(X, sample_weight=given)
    assert untrimmed.weights_[-1] < 1.0  # by its M, which lies below that of an outlier
    model = ws.RobustKMeans(2, trim=trim, min_cluster_size=8, random_state=0)
    model.fit(X, sample_weight=given)
    assert not model.outlier_.any()
    np.testing.assert_array_equal(model.weights_, given)
    for code in range(2):
        own = model.labels_ == code
        center = np.average(X[own], axis=0, weights=given[own])
        np.testing.assert_allclose(model.cluster_centers_[code], center)


def test_a_small_cluster_survives_only_where_the_smallest_size_says_so():
    rng = np.random.default_rng(1)
    big = np.vstack([rng.normal(size=(150, 2)), rng.normal([14, 0], size=(150, 2))])
    X = np.vstack([big, rng.normal([7, 12], 0.3, size=(12, 2))])
    y = np.repeat([0, 1, 2], [150, 150, 12])
    small = ws.RobustKMeans(3, min_cluster_size=8, random_state=0).fit(X)
    large = ws.RobustKMeans(3, min_cluster_size=60, random_state=0).fit(X)
    assert ws.ari_score(y, small.labels_) == 1.0
    assert ws.ari_score(y, large.labels_) < 0.9


def test_many_equal_points_are_warned_of_and_the_factor_is_capped():
    X = np.vstack([np.zeros((60, 2)), np.random.default_rng(0).normal(size=(20, 2))])
    with pytest.warns(UserWarning, match="almost no weight"):
        found = robust_weights(X, 20)
    assert found.scores.max() == 1e4
    assert (found.weights > 0).all()


@pytest.mark.parametrize("trim", [0.5, -0.1, "most"])
def test_a_bad_share_is_named(trim):
    with pytest.raises(ValueError, match="trim must be"):
        ws.RobustKMeans(2, trim=trim).fit(np.arange(20.0)[:, None])


def test_sparse_rows_are_refused_with_a_way_out():
    with pytest.raises(TypeError, match="pass X.toarray"):
        ws.RobustKMeans(2).fit(sp.eye_array(5, format="csr"))


WHY = "a weight is not that many copies: equal rows change the density around them"


@parametrize_with_checks(
    [ws.RobustKMeans(3, min_cluster_size=5, max_moves=5)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": WHY,
    },
)
@pytest.mark.filterwarnings("ignore:min_cluster_size must be less")
@pytest.mark.filterwarnings("ignore:.*almost no weight")
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)
