"""k-means and cf-means on dask collections end where they end in memory."""

from __future__ import annotations

import multiprocessing
import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import wellsep as ws

da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
from wellsep.cluster.cf_means import fit as one_start
from wellsep.compute.engine.dask import chunks, pairs
from wellsep.compute.kmeans.lloyd import parallel_start
from wellsep.compute.kmeans.prepared_points import prepare, row_uniforms

N, D, K = 180, 3, 5
CHUNKINGS = {"uneven": (90, 1, 60, 29), "single rows": (1,) * N, "one chunk": (N,)}
# A chunk for each row takes long: those tests run with the slow ones.
CHUNKED = [
    pytest.param(sizes, id=name, marks=pytest.mark.slow if name == "single rows" else ())
    for name, sizes in CHUNKINGS.items()
]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) + 4 * rng.normal(size=(K, D))[rng.integers(0, K, N)] + 3


@pytest.fixture(params=CHUNKED)
def rows(request, X, monkeypatch):
    """X on Dask; chunks, pieces and blocks are worked on apart, although the data are small."""
    if len(request.param) < 10:
        monkeypatch.setattr(chunks, "PORTION_BYTES", 0)
    monkeypatch.setattr(chunks, "PIECE_BYTES", 0)
    monkeypatch.setattr(chunks, "PIECE_ROWS", 23)
    monkeypatch.setattr(pairs, "LEAST_ROWS", 40)
    return da.from_array(X, chunks=(request.param, -1))


def estimators(X):
    start = X[:K].copy()
    far = np.vstack([start[:-1], X.mean(axis=0) + 100])  # a centre that no point is nearest to
    return {
        "KMeans": ws.KMeans(K, init=start),
        "spherical KMeans": ws.KMeans(K, init=start, metric="cosine"),
        "KMeans with an empty cluster": ws.KMeans(K, init=far),
        "KMeans from random rows": ws.KMeans(K, init="random", n_init=2, random_state=3),
        "CFMeans": ws.CFMeans(K, schedule="oscillate", init=start, max_moves=12, random_state=1),
        "CFMeans that repels": ws.CFMeans(
            K, init=start, schedule="repel", max_moves=3, n_init=1, random_state=1
        ),
    }


NAMES = list(estimators(np.zeros((K, D))))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_ends_where_it_ends_in_memory_and_publishes_the_same(X, rows, name):
    here, there = estimators(X)[name], estimators(X)[name]
    here.fit(X)
    there.fit(rows)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-9)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    if not isinstance(here, ws.CFMeans):  # on Dask Lloyd's loop follows the search
        assert there.n_iter_ == here.n_iter_
    else:
        assert there.n_moves_ == here.n_moves_
        assert there.safeguarded_ == here.safeguarded_
        assert there.cfq_ == pytest.approx(here.cfq_, rel=1e-9)
        np.testing.assert_allclose(there.margins_.compute(), here.margins_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(there.steps_["objective"], here.steps_["objective"], rtol=1e-9)


@pytest.mark.parametrize("name", ["KMeans", "CFMeans", "KMeans from random rows"])
def test_weights_on_dask_weigh_what_they_weigh_in_memory(X, name):
    rows = da.from_array(X, chunks=((90, 1, 60, 29), -1))
    weights = np.random.default_rng(2).integers(0, 3, N).astype(float)
    here, there = estimators(X)[name], estimators(X)[name]
    here.fit(X, sample_weight=weights)
    there.fit(rows, sample_weight=da.from_array(weights, chunks=70))
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-9)
    assert there.score(rows, sample_weight=weights) == pytest.approx(
        here.score(X, sample_weight=weights), rel=1e-9
    )


def test_predict_and_transform_are_lazy_and_cut_like_the_rows(X):
    model = ws.KMeans(K, random_state=0).fit(X)
    reads = []
    rows = da.from_array(X, chunks=((90, 1, 60, 29), -1))
    watched = rows.map_blocks(lambda block: reads.append(len(block)) or block, meta=X[:0])
    labels, distances = model.predict(watched), model.transform(watched)
    assert reads == []
    assert labels.chunks == ((90, 1, 60, 29),)
    assert distances.chunks == ((90, 1, 60, 29), (K,))
    np.testing.assert_array_equal(labels.compute(), model.predict(X))
    np.testing.assert_allclose(distances.compute(), model.transform(X), rtol=1e-12)
    assert labels[:50].compute().tolist() == model.predict(X[:50]).tolist()


def test_predict_needs_no_chunk_sizes(X):
    model = ws.KMeans(K, random_state=0).fit(X)
    rows = da.from_array(X, chunks=(50, -1))
    some = rows[rows[:, 0] > 3]
    assert np.isnan(some.shape[0])
    np.testing.assert_array_equal(model.predict(some).compute(), model.predict(X[X[:, 0] > 3]))


def test_predict_names_the_chunk_of_a_nan(X):
    model = ws.KMeans(K, random_state=0).fit(X)
    broken = X.copy()
    broken[70, 1] = np.inf
    labels = model.predict(da.from_array(broken, chunks=(50, -1)))
    with pytest.raises(ValueError, match=r"got inf in chunk 1 \(row 20 of it, column 1\)"):
        labels.compute()


def test_a_dataframe_keeps_the_names_of_its_columns(X):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    import pandas as pd

    table = pd.DataFrame(X, columns=["a", "b", "c"])
    frame = dd.from_pandas(table, npartitions=3)
    model = ws.KMeans(K, init=X[:K]).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = ws.KMeans(K, init=X[:K]).fit(table)
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(frame).compute(), expected.predict(table))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))
    words = frame.assign(d="word")
    with pytest.raises(TypeError, match="X must have numeric columns, got column 'd'"):
        ws.KMeans(K).fit(words)


def test_the_number_of_features_is_compared(X):
    model = ws.KMeans(K, random_state=0).fit(da.from_array(X, chunks=(50, -1)))
    assert model.n_features_in_ == D
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3"):
        model.predict(da.from_array(X[:, :2], chunks=(50, -1)))


@pytest.mark.parametrize("weighted", [False, True])
def test_starts_do_not_depend_on_the_chunks(X, weighted):
    n = 60
    weights = np.random.default_rng(1).random(n) if weighted else None
    found = [
        ws.KMeans(K, random_state=7)
        .fit(da.from_array(X[:n], chunks=(sizes, -1)), sample_weight=weights)
        .cluster_centers_
        for sizes in ((30, 1, 20, 9), (1,) * n, (n,))
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)


def test_random_numbers_belong_to_rows_not_to_chunks():
    whole = row_uniforms(5, 0, 40)
    assert 0 <= whole.min() < whole.max() < 1
    for start in (1, 3, 4, 18):
        np.testing.assert_array_equal(row_uniforms(5, start, 10), whole[start : start + 10])


def test_starts_are_as_good_as_greedy_k_means_plus_plus():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2)) * 0.3 + 10 * rng.normal(size=(25, 2))[np.arange(600) % 25]
    rows = da.from_array(X, chunks=(150, -1))
    once = [ws.KMeans(25, random_state=s, max_iter=1).fit(X).inertia_ for s in range(5)]
    ours = [ws.KMeans(25, random_state=s, max_iter=1).fit(rows).inertia_ for s in range(5)]
    assert np.median(ours) < 1.2 * np.median(once)


def test_a_draw_far_away_is_in_proportion_to_the_squared_distance():
    mass, points = np.array([0.0, 1.0, 3.0]), prepare(np.zeros((3, 1)))
    first = [int(points.leading_draw(mass, key, 1)[1][0]) for key in range(2000)]
    share = np.bincount(first, minlength=3) / 2000
    np.testing.assert_allclose(share, [0, 0.25, 0.75], atol=0.04)


def test_fewer_distinct_points_than_clusters_are_reported():
    rows = da.from_array(np.repeat([[0.0], [1.0]], 10, axis=0), chunks=(6, 1))
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found"):
        model = ws.KMeans(4, random_state=0).fit(rows)
    assert model.inertia_ == 0.0


def test_float32_stays_float32(X):
    rows = da.from_array(X.astype(np.float32), chunks=(50, -1))
    model = ws.KMeans(K, init=X[:K]).fit(rows)
    assert model.cluster_centers_.dtype == np.float32
    assert model.transform(rows).dtype == np.float32
    exact = ws.KMeans(K, init=X[:K]).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, exact.cluster_centers_, rtol=1e-5)


def test_far_from_the_origin_nothing_is_lost(X):
    rows = da.from_array(X + 1e6, chunks=(50, -1))
    model = ws.KMeans(K, init=X[:K] + 1e6).fit(rows)
    exact = ws.KMeans(K, init=X[:K]).fit(X)
    assert model.inertia_ == pytest.approx(exact.inertia_, rel=1e-8)


def test_a_fitted_model_travels(X):
    model = ws.KMeans(K, random_state=0).fit(da.from_array(X, chunks=(50, -1)))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.labels_.compute(), model.labels_.compute())


def test_a_start_may_be_a_function_of_the_dask_array(X):
    rows = da.from_array(X, chunks=(50, -1))
    seen = []

    def start(given, n_clusters, random_state):
        seen.append(given is rows)
        return given[:n_clusters].compute()

    model = ws.KMeans(K, init=start, n_init=1).fit(rows)
    assert seen == [True]
    expected = ws.KMeans(K, init=X[:K]).fit(X)
    assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-9)
    with pytest.raises(ValueError, match=r"init must have shape \(n_clusters, n_features\)"):
        ws.KMeans(K, init=X[: K - 1]).fit(rows)
    with pytest.raises(ValueError, match="n_clusters must not exceed the number of objects"):
        ws.KMeans(N + 1).fit(rows)


def test_the_search_sees_a_sample_of_many_rows_and_ends_close_to_that_of_all(X, monkeypatch):
    monkeypatch.setattr("wellsep.cluster.cf_means.fit.SEARCHED", 60)
    monkeypatch.setattr("wellsep.cluster.cf_means.fit.PER_CLUSTER", 10)
    searched = []
    search = one_start.search
    monkeypatch.setattr(
        one_start, "search", lambda p, *a, **o: searched.append(p.n) or search(p, *a, **o)
    )
    there = ws.CFMeans(K, random_state=0).fit(da.from_array(X, chunks=(60, -1)))
    assert searched == [60]
    assert there.inertia_ <= 1.1 * ws.CFMeans(K, random_state=0).fit(X).inertia_


def test_the_last_digit_chooses_no_restart():
    from wellsep.compute.kmeans.lloyd import lower

    digit = 1e-13
    assert not lower(7.0 - digit, 7.0)
    assert lower(6.9999, 7.0)
    assert not lower(0.0, 0.0)


def _numbers(points):
    return points.start + np.arange(points.n)


def _weighed(points, numbers, factor):
    return factor * (points.pull * numbers).sum()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_points_in_chunks_answer_as_points_in_memory_do(X, rows, metric):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, N)
    given = X.copy()
    given[[3, 90]] = 0.0  # no direction: cosine counts them for nothing
    whole = chunks.open_chunks(da.from_array(given, chunks=rows.chunks))
    here = prepare(given, weights, metric)
    there = prepare(whole, whole.weigh(weights), metric)
    assert (here.in_chunks, there.in_chunks) == (False, True)
    assert here.n == there.n == N
    assert here.any_zero == there.any_zero == (metric == "cosine")
    assert there.frame.spread == pytest.approx(here.frame.spread, rel=1e-12)
    np.testing.assert_array_equal(there.pull, here.pull)
    np.testing.assert_allclose(there.take([5, 2]), here.take([5, 2]), atol=1e-12)
    found = []
    for points in (here, there):
        numbers = points.values(_numbers) if points.in_chunks else _numbers(points)
        np.testing.assert_array_equal(points.publish(numbers, np.int64), np.arange(N))
        found.append(points.fold(_weighed, 2.0, beside=[numbers]))
    weighed = (here.pull * np.arange(N)).sum()
    assert found == pytest.approx([2.0 * weighed] * 2, rel=1e-12)


def test_k_means_parallel_draws_the_same_start_in_memory_and_in_chunks(X, rows):
    whole = chunks.open_chunks(rows)
    here, there = (
        points.frame.leave(parallel_start(points, K, np.random.RandomState(4)))
        for points in (prepare(X), prepare(whole))
    )
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_no_cluster_is_started_behind_the_users_back(X):
    from wellsep.compute.engine.dask.client import active_client

    before = set(multiprocessing.active_children())
    rows = da.from_array(X, chunks=(60, -1))
    labels = ws.KMeans(3, random_state=0).fit(rows).labels_
    ws.silhouette_score(rows, labels)
    assert active_client() is None
    assert set(multiprocessing.active_children()) <= before
