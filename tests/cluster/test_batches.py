"""Rows that come in batches: read again in passes, or seen once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws
from wellsep.cluster.batches import Stream

ESTIMATORS = pytest.mark.parametrize("make", [ws.KMeans, ws.CFMeans])


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(9000, 4)) + 12 * rng.normal(size=(12, 4))[rng.integers(0, 12, 9000)]


def inertia(X, centers, weights=None):
    squares = ((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1)
    return float(squares @ (np.ones(len(X)) if weights is None else weights))


@ESTIMATORS
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "weights"])
def test_batches_end_at_a_fixed_point_of_k_means_on_all_rows(X, make, kind):
    given = {"sparse": sp.csr_array(X), "float32": X.astype(np.float32)}.get(kind, X)
    weights = np.arange(len(X)) % 3.0 if kind == "weights" else None
    model = make(12, batch_size=1000, random_state=0).fit(given, sample_weight=weights)
    assert model.inertia_ == pytest.approx(inertia(X, model.cluster_centers_, weights), rel=1e-4)
    again = ws.KMeans(12, init=model.cluster_centers_, max_iter=50).fit(X, sample_weight=weights)
    assert again.inertia_ == pytest.approx(model.inertia_, rel=1e-3)
    np.testing.assert_array_equal(model.labels_, model.predict(given))


@ESTIMATORS
def test_batches_are_as_good_as_a_fit_in_memory_and_do_not_depend_on_their_size(X, make):
    whole = ws.CFMeans(12, random_state=0).fit(X).inertia_
    found = [make(12, batch_size=b, random_state=0).fit(X).inertia_ for b in (700, 9000)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    if make is ws.CFMeans:
        assert found[0] <= 1.01 * whole


@ESTIMATORS
def test_a_memory_map_is_read_in_batches_and_never_copied_whole(tmp_path, make):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60_000, 40)) + 5 * rng.integers(0, 3, (60_000, 1))  # 19 MB
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = make(4, batch_size=2000, max_iter=3, random_state=0)
    if make is ws.CFMeans:
        model.set_params(max_moves=3)
    model.fit(X[:3000])  # loaded
    tracemalloc.start()
    model.fit(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * X.nbytes
    np.testing.assert_allclose(model.inertia_, inertia(X, model.cluster_centers_), rtol=1e-9)


@ESTIMATORS
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_rows_have_labels_beside_a_huge_one_that_is_not_in_the_sample(X, make):
    rows = np.concatenate([X, np.full((1, 4), 1e30)]).astype(np.float32)  # squares are infinite
    model = make(12, batch_size=1000, random_state=2).fit(rows)
    assert set(model.labels_.tolist()) <= set(range(12))
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)


@ESTIMATORS
def test_a_stream_ends_near_the_fit_of_all_rows(X, make):
    model = make(12, random_state=0)
    for begin in range(0, len(X), 500):
        model.partial_fit(X[begin : begin + 500])
    assert model.n_samples_seen_ == len(X)
    assert len(model.labels_) == 500
    best = ws.CFMeans(12, random_state=0).fit(X).inertia_
    assert inertia(X, model.cluster_centers_) < (1.05 if make is ws.CFMeans else 2.0) * best


def test_centres_between_searches_are_running_means():
    model = ws.KMeans(2, random_state=0).partial_fit([[0.0], [1.0], [20.0], [21.0]])
    before = model.cluster_centers_.copy()
    model.partial_fit([[2.0], [22.0], [23.0]])  # fewer than have been seen: no search
    low, high = np.argsort(before.ravel())
    assert model.cluster_centers_[low, 0] == pytest.approx((0 + 1 + 2) / 3)
    assert model.cluster_centers_[high, 0] == pytest.approx((20 + 21 + 22 + 23) / 4)


@pytest.mark.parametrize("exponent", [-650, 650])
def test_a_stream_finds_the_same_clusters_in_any_unit(X, exponent):
    unit = 2.0**exponent
    model, scaled = ws.KMeans(12, random_state=0), ws.KMeans(12, random_state=0)
    for rows in (slice(0, 1000), slice(1000, 1500), slice(1500, 1900)):
        model.partial_fit(X[rows])
        scaled.partial_fit(X[rows] * unit)
        np.testing.assert_array_equal(scaled.labels_, model.labels_)
        np.testing.assert_allclose(scaled.cluster_centers_ / unit, model.cluster_centers_)


def test_a_stream_begins_anew_after_a_fit(X):
    model = ws.KMeans(3, random_state=0).partial_fit(X[:100]).fit(X[:, :2])
    model.partial_fit(X[:200, :2])
    fresh = ws.KMeans(3, random_state=0).partial_fit(X[:200, :2])
    np.testing.assert_array_equal(model.cluster_centers_, fresh.cluster_centers_)
    assert model.n_samples_seen_ == 200


def test_a_stream_takes_weights_sparse_rows_and_directions(X):
    weights = np.ones(500)
    weights[::2] = 0.0
    one = ws.KMeans(5, random_state=0).partial_fit(X[:500], sample_weight=weights)
    other = ws.KMeans(5, random_state=0).partial_fit(X[:500])
    assert not np.allclose(one.cluster_centers_, other.cluster_centers_)
    for model in (ws.KMeans(5, random_state=0), ws.KMeans(5, metric="cosine", random_state=0)):
        for begin in range(0, 1500, 500):
            model.partial_fit(sp.csr_array(X[begin : begin + 500]))
        assert np.isfinite(model.cluster_centers_).all()


def test_a_reservoir_is_a_uniform_sample_in_any_batches():
    draws = np.random.RandomState(0)
    hits = np.zeros(100)
    for _ in range(300):
        sample = Stream(1, draws)
        sample.size = 20
        for begin in range(0, 100, 25):
            sample.add(np.arange(begin, begin + 25.0)[:, None], None)
        assert len(sample.rows) == 20
        hits[sample.rows[:, 0].astype(int)] += 1
    assert abs(hits.reshape(4, 25).mean(axis=1) - 60).max() < 6


@ESTIMATORS
def test_bad_batches_are_named(X, make):
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        make(3, batch_size=0).fit(X)
    torch = pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(TypeError, match="batch_size must be None unless X"):
        make(3, batch_size=10).fit(torch.tensor(X))
    with pytest.raises(ValueError, match="n_clusters must not exceed"):
        make(30).partial_fit(X[:10])
