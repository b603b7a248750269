"""The sampled silhouette is unbiased, covers the true one as often as it says, and says so."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 2)) + 2.5 * np.eye(3, 2)[truth]
    return X, np.where(rng.random(600) < 0.1, -1, truth)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_all_objects_give_the_exact_value(data, metric):
    X, labels = data
    found = ws.silhouette_estimate(X, labels, n_sampled=10_000, metric=metric)
    assert found.exact
    assert found.value == pytest.approx(ws.silhouette_score(X, labels, metric=metric), rel=1e-12)
    assert found.low == found.high == found.value
    assert found.n_sampled == found.n_objects == (labels >= 0).sum()
    assert "exact" in str(found)


def test_intervals_hold_the_true_value_as_often_as_they_say(data):
    X, labels = data
    true = ws.silhouette_score(X, labels)
    found = [
        ws.silhouette_estimate(X, labels, n_sampled=60, level=0.9, random_state=seed)
        for seed in range(200)
    ]
    hits = np.mean([one.low <= true <= one.high for one in found])
    assert 0.84 < hits < 0.96
    values = np.array([one.value for one in found])
    assert abs(values.mean() - true) < 3 * values.std() / np.sqrt(200)
    assert values.std() == pytest.approx(np.mean([one.standard_error for one in found]), rel=0.15)


def test_weighted_estimates_are_of_the_weighted_silhouette(data):
    X, labels = data
    weights = np.random.default_rng(1).integers(0, 4, 600).astype(float)
    true = ws.silhouette_score(X, labels, sample_weight=weights)
    values = [
        ws.silhouette_estimate(
            X, labels, n_sampled=100, sample_weight=weights, random_state=seed
        ).value
        for seed in range(100)
    ]
    assert abs(np.mean(values) - true) < 3 * np.std(values) / 10


def test_it_says_that_it_is_an_estimate(data):
    found = ws.silhouette_estimate(*data, n_sampled=50, random_state=0)
    assert not found.exact
    assert "95% interval" in str(found)
    assert f"estimated from 50 of {found.n_objects} objects" in str(found)
    assert float(found) == found.value


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_dask_it_is_the_same_for_every_chunking(data, metric, weighted):
    da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    X, labels = data
    X = X.copy()
    X[[3, 500]] = 0.0  # rows without a direction, in some chunks only
    weights = np.random.default_rng(1).integers(0, 4, 600).astype(float) if weighted else None
    options = {"n_sampled": 80, "metric": metric, "random_state": 5}
    expected = ws.silhouette_estimate(X, labels, sample_weight=weights, **options)
    for sizes in ((600,), (1, 250, 249, 100), (40,) * 15):
        rows = da.from_array(X, chunks=(sizes, -1))
        beside = da.from_array(labels, chunks=70)
        mass = None if weights is None else da.from_array(weights, chunks=33)
        found = ws.silhouette_estimate(rows, beside, sample_weight=mass, **options)
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        assert found.low == pytest.approx(expected.low, rel=1e-9)
        assert found.n_objects == expected.n_objects


def test_undefined_and_bad_input_are_told(data):
    X, labels = data
    with pytest.raises(ws.UndefinedIndex, match="needs at least 2 clusters, got 1"):
        ws.silhouette_estimate(X, np.zeros(600, dtype=int))
    for function in (ws.silhouette_samples, ws.margins):
        for label, clusters in ((0, 1), (-1, 0)):
            with pytest.raises(ws.UndefinedIndex, match=f"at least 2 clusters, got {clusters}"):
                function(X, np.full(600, label))
    with pytest.raises(ws.UndefinedIndex, match="every one of the 600 objects"):
        ws.silhouette_estimate(X, np.arange(600))
    with pytest.raises(ValueError, match="n_sampled must be at least 2, got 1"):
        ws.silhouette_estimate(X, labels, n_sampled=1)
    with pytest.raises(ValueError, match="got 'precomputed'"):
        ws.silhouette_estimate(X, labels, metric="precomputed")
    with pytest.raises(ValueError, match="labels must be one clustering here, got 2"):
        ws.silhouette_estimate(X, [labels, labels])
