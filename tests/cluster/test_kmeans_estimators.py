"""KMeans and CFMeans are good citizens of scikit-learn: checks, frames, routing, callbacks."""

from __future__ import annotations

import functools
import io
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from libraries import needs_callbacks
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws

ESTIMATORS = (ws.KMeans, ws.CFMeans)

WHY_NOT_EQUIVALENT = (
    "a start is drawn by position: data with repeated rows draw other starts than data with "
    "weights, so the two end in other local optima; scikit-learn's own KMeans fails it too"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": WHY_NOT_EQUIVALENT,
    "check_sample_weight_equivalence_on_sparse_data": WHY_NOT_EQUIVALENT,
}


@parametrize_with_checks(
    [ws.KMeans(), ws.CFMeans(max_moves=3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcome = check(estimator)
    assert outcome is None


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def make(request):
    return request.param


BLOBS = make_blobs(240, 3, centers=4, random_state=1)[0]


@pytest.fixture
def X():
    return BLOBS


@functools.cache
def fitted(make):
    """A model of the blobs that no test may change."""
    return make(4, random_state=0).fit(BLOBS)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_come_in_and_their_names_are_kept(make, X, frame):
    table = frame({name: X[:, i] for i, name in enumerate(("a", "b", "c"))})
    model = make(4, random_state=0).fit(table)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.labels_, fitted(make).labels_)
    np.testing.assert_array_equal(model.predict(table), model.labels_)


@pytest.mark.parametrize(("output", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_transform_speaks_the_frame_asked_for(make, X, output, kind):
    model = make(4, random_state=0).set_output(transform=output).fit(X)
    table = model.transform(X)
    prefix = make.__name__.lower()
    assert isinstance(table, kind)
    assert list(table.columns) == [f"{prefix}{i}" for i in range(4)]


def test_transform_gives_distances_and_predict_their_least(make, X):
    model = fitted(make)
    table = np.linalg.norm(X[:, None] - model.cluster_centers_[None], axis=2)
    np.testing.assert_allclose(model.transform(X), table, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), table.argmin(axis=1))
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.score(X[:9]) == pytest.approx(-(table[:9].min(axis=1) ** 2).sum(), rel=1e-9)


def test_a_row_is_judged_alone_as_in_company(make, X):
    model = fitted(make)
    alone = np.vstack([model.transform(row[None]) for row in X[:20]])
    np.testing.assert_allclose(alone, model.transform(X)[:20], rtol=1e-12)


def test_pickle_clone_and_skops_bring_back_the_same(make, X):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = fitted(make)
    packed = skops.dumps(model)
    untrusted = skops.get_untrusted_types(data=packed)
    for copy in (pickle.loads(pickle.dumps(model)), skops.loads(packed, trusted=untrusted)):
        np.testing.assert_array_equal(copy.predict(X), model.labels_)
    fresh = clone(model)
    assert not hasattr(fresh, "labels_")
    assert fresh.get_params() == model.get_params()


def test_a_subclass_may_take_fewer_parameters(make, X):
    class Short(make):
        def __init__(self, n_clusters=4):
            super().__init__(n_clusters, random_state=0)

    np.testing.assert_array_equal(Short().fit(X).labels_, make(4, random_state=0).fit(X).labels_)
    assert clone(Short(3)).get_params() == {"n_clusters": 3}


def test_only_the_estimator_itself_needs_trust(make, X):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    packed = skops.dumps(fitted(make))
    types = skops.get_untrusted_types(data=packed)
    assert [name.rsplit(".", 1)[1] for name in types] == [make.__name__]


def test_it_works_in_a_pipeline_and_a_grid_search(make, X):
    pipeline = make_pipeline(StandardScaler(), make(4, random_state=0))
    assert len(np.unique(pipeline.fit_predict(X))) == 4
    search = GridSearchCV(make(random_state=0), {"n_clusters": [2, 4]}, cv=2).fit(X)
    assert search.best_params_ == {"n_clusters": 4}


def test_weights_are_routed_through_a_pipeline(make, X):
    import sklearn

    weights = np.r_[np.ones(120), np.zeros(120)]
    with sklearn.config_context(enable_metadata_routing=True):
        step = make(3, random_state=0).set_fit_request(sample_weight=True)
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), step)
        routed.fit(X, sample_weight=weights)
    alone = make(3, random_state=0).fit(StandardScaler().fit_transform(X), sample_weight=weights)
    np.testing.assert_array_equal(routed[-1].labels_, alone.labels_)


class Counter:
    """A callback that counts tasks, looks at the fitted state, and may ask for an end."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.shapes = stop_after, 0, 0, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.closed = True

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended += 1
        self.shapes.append(fitted_estimator.predict(X).shape)
        return self.stop_after is not None and self.ended >= self.stop_after


@needs_callbacks
def test_callbacks_see_every_part_and_a_usable_estimator(make, X):
    watch = Counter()
    make(4, n_init=3, random_state=0).set_callbacks(watch).fit(X)
    assert watch.begun == watch.ended >= 4
    assert watch.closed
    assert set(watch.shapes) == {(len(X),)}


@needs_callbacks
def test_callbacks_may_end_the_fit_early(make, X):
    full, short = Counter(), Counter(stop_after=1)
    make(4, n_init=5, random_state=0).set_callbacks(full).fit(X)
    stopped = make(4, n_init=5, random_state=0).set_callbacks(short).fit(X)
    assert short.ended < full.ended
    assert stopped.labels_.shape == (len(X),)


@needs_callbacks
def test_watching_changes_nothing(make, X):
    watched = make(4, random_state=0).set_callbacks(Counter()).fit(X)
    assert watched.inertia_ == fitted(make).inertia_


def test_the_progress_bar_shows_the_estimator_and_goes_quiet(make, X, capsys):
    bar = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9").ProgressBar()
    model = make(4, random_state=0).set_callbacks(bar).fit(X)
    assert make.__name__ in capsys.readouterr().out
    model.set_callbacks().fit(X)
    assert capsys.readouterr().out == ""


def test_tensors_stay_tensors_and_give_the_same(make, X):
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    tensor = torch.from_numpy(X)
    model = make(4, random_state=0).fit(tensor)
    plain = fitted(make)
    for part in (model.labels_, model.cluster_centers_, model.predict(tensor)):
        assert isinstance(part, torch.Tensor)
    np.testing.assert_array_equal(model.labels_.numpy(), plain.labels_)
    np.testing.assert_allclose(model.transform(tensor).numpy(), plain.transform(X), rtol=1e-9)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_the_array_standard_alone_is_enough(make, X):
    import array_api_strict

    model = make(4, random_state=0).fit(array_api_strict.asarray(X))
    assert model.inertia_ == pytest.approx(fitted(make).inertia_, rel=1e-12)


def test_sparse_and_dense_agree(make, X):
    sparse = make(4, random_state=0).fit(sp.csr_matrix(X))
    dense = fitted(make)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, rtol=1e-9)


def test_float32_stays_float32(make, X):
    model = make(4, random_state=0).fit(X.astype(np.float32))
    assert model.cluster_centers_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.inertia_ == pytest.approx(fitted(make).inertia_, rel=1e-5)


@pytest.mark.parametrize("make", [ws.KMeans, ws.CFMeans])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_float32_stays_float32(make, metric, X):
    rows = sp.csr_matrix(X.astype(np.float32))
    model = make(4, metric=metric, random_state=0).fit(rows)
    wide = make(4, metric=metric, random_state=0).fit(rows.astype(np.float64))
    assert model.cluster_centers_.dtype == model.transform(rows).dtype == np.float32
    assert wide.cluster_centers_.dtype == wide.transform(rows.astype(float)).dtype == float
    np.testing.assert_array_equal(model.predict(rows), wide.labels_)
    np.testing.assert_allclose(model.cluster_centers_, wide.cluster_centers_, rtol=1e-6)


def test_runs_and_thread_counts_agree(make):
    from threadpoolctl import threadpool_limits

    X = make_blobs(4000, 6, centers=9, cluster_std=3.0, random_state=2)[0]
    brief = {"max_moves": 10} if make is ws.CFMeans else {}
    models = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            models.append(make(9, random_state=7, **brief).fit(X))
    for other in models[1:]:
        np.testing.assert_array_equal(other.labels_, models[0].labels_)
        assert other.inertia_ == pytest.approx(models[0].inertia_, rel=1e-9)


def test_scale_and_shift_change_no_label(make, X):
    labels = fitted(make).labels_
    np.testing.assert_array_equal(make(4, random_state=0).fit(1000.0 * X).labels_, labels)
    np.testing.assert_array_equal(make(4, random_state=0).fit(X + 1e6).labels_, labels)


def test_fewer_distinct_points_than_clusters_are_counted_in_a_warning(make):
    X = np.repeat([[0.0], [1.0], [2.0]], 5, axis=0)
    with pytest.warns(
        ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than n_clusters \(5\)"
    ):
        model = make(5, random_state=0).fit(X)
    assert model.inertia_ == 0.0
    assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize("make", [*ESTIMATORS, ws.LOFKMeans, ws.RobustKMeans])
def test_restarts_that_given_centres_do_not_have_are_warned_of_once(make, X):
    for n_init in (1, 3):
        model = make(4, init=X[:4], n_init=n_init, random_state=0)
        fits = [model.fit]
        if "batch_size" in model.get_params():
            fits.append(clone(model).set_params(batch_size=50).fit)
        if make is ws.KMeans:  # CFMeans makes one start of a stream, whatever n_init
            fits.append(clone(model).partial_fit)
        for fit in fits:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                fit(X)
            told = [w for w in heard if issubclass(w.category, RuntimeWarning)]
            assert len(told) == (n_init > 1)
            for warning in told:
                assert str(warning.message).startswith("n_init = 3 is not used: init gives")
    once = make(4, init=X[:4], n_init=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, once.cluster_centers_)
    with pytest.raises(ValueError, match="n_init must be at least 1, got 0"):
        make(4, init=X[:4], n_init=0).fit(X)


def test_one_point_per_cluster_is_a_perfect_fit(make):
    X = np.arange(6.0)[:, None] ** 2
    model = make(6, random_state=0).fit(X)
    assert model.inertia_ == 0.0
    assert sorted(model.labels_) == list(range(6))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"n_clusters": 300},
            r"exceed the number of objects \(240\), .* n_samples=240 should be >= n_clusters",
        ),
        ({"n_clusters": 0}, "n_clusters must be at least 1, got 0"),
        ({"n_init": 0}, "n_init must be at least 1, got 0"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": -1.0}, "tol must be at least 0"),
        ({"init": "best"}, "init must be one of"),
    ],
)
def test_bad_settings_are_named(make, X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**options).fit(X)


def test_bad_data_and_weights_are_named(make, X):
    with pytest.raises(ValueError, match="NaN"):
        make(2).fit(np.where(X > 5.0, np.nan, X))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        make(2).fit(X, sample_weight=np.r_[-1.0, np.ones(239)])
    with pytest.raises(ValueError, match="sample_weight must have one value per object"):
        make(2).fit(X, sample_weight=np.ones(3))
    with pytest.raises(TypeError, match="n_clusters must be an integer, got 2.5"):
        make(2.5).fit(X)


def test_the_html_repr_names_the_estimator(make):
    text = io.StringIO(make(3)._repr_html_()).read()
    assert make.__name__ in text


WAYS_TO_FIT = ["dense", "float32", "sparse", "cosine", "random", "tensor", "dask", "dask weights"]


@pytest.mark.parametrize(
    "way",
    [pytest.param(w, marks=pytest.mark.slow if w == "dask" else ()) for w in WAYS_TO_FIT],
)
@pytest.mark.parametrize("make", [*ESTIMATORS, ws.LOFKMeans])
def test_weights_of_one_are_no_weights_bit_for_bit(make, way):
    X = np.random.default_rng(0).normal(size=(90, 4)).astype("f4" if way == "float32" else "f8")
    ones, options = np.ones(90), {"max_moves": 5} if make is ws.CFMeans else {}
    if make is ws.LOFKMeans and (way == "sparse" or "dask" in way):
        pytest.skip("LOFKMeans takes dense data in memory only")
    if way == "cosine" and make is not ws.KMeans:
        pytest.skip("KMeans alone has a metric")
    if way == "sparse":
        X = sp.csr_array(np.where(np.abs(X) < 0.5, 0, X))
    elif way == "cosine":
        X[3] = 0.0
        options["metric"] = "cosine"
    elif way == "random":
        options["init"] = "random"
    elif way == "tensor":
        X = pytest.importorskip("torch", reason="needs the extra deep").tensor(X)
    elif way.startswith("dask"):
        da = pytest.importorskip("dask.array", reason="needs the extra dask")
        X = da.from_array(X, chunks=(40, 4))
        ones = da.ones(90, chunks=40) if way == "dask weights" else ones
    plain = make(5, random_state=0, **options).fit(X)
    weighted = make(5, random_state=0, **options).fit(X, sample_weight=ones)
    assert weighted.inertia_ == plain.inertia_
    np.testing.assert_array_equal(
        np.asarray(weighted.cluster_centers_), np.asarray(plain.cluster_centers_)
    )
    np.testing.assert_array_equal(np.asarray(weighted.labels_), np.asarray(plain.labels_))
    assert weighted.score(X, sample_weight=ones) == plain.score(X)
