"""Functions of scikit-learn's names take scikit-learn's arguments and give its values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import distance
from sklearn import cluster, metrics

import wellsep as ws
from wellsep.testing.compare import make_blobs


@pytest.mark.parametrize("kind", ["rows", "sparse", "precomputed"])
def test_a_sampled_silhouette_is_scikit_learns_of_the_same_draw(kind):
    X, y = make_blobs(3, n=80)
    metric = "euclidean"
    if kind == "sparse":
        X = sp.csr_array(X)
    elif kind == "precomputed":
        X, metric = metrics.pairwise_distances(X), "precomputed"
    given = {"metric": metric, "sample_size": 40, "random_state": 5}
    expected = metrics.silhouette_score(X, y, **given)
    assert ws.silhouette_score(X, y, **given) == pytest.approx(expected, rel=1e-9)


def test_a_sampled_silhouette_takes_labels_and_weights_of_the_drawn_objects():
    X, y = make_blobs(3, n=80)
    weight = np.random.default_rng(0).uniform(0.5, 2, 80)
    chosen = np.random.RandomState(5).permutation(80)[:40]
    names = np.array(["a", "b", "c"])[y]
    found = ws.silhouette_score(X, names, sample_size=40, random_state=5, sample_weight=weight)
    expected = ws.silhouette_score(X[chosen], y[chosen], sample_weight=weight[chosen])
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_sample_of_a_space_of_distances_cuts_rows_and_columns():
    X, y = make_blobs(3, n=80)
    D = metrics.pairwise_distances(X)
    given = {"sample_size": 40, "random_state": 5}
    expected = metrics.silhouette_score(D, y, metric="precomputed", **given)
    for form in (D, D[np.triu_indices(80, 1)]):
        assert ws.silhouette_score(ws.Distances(form), y, **given) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["gower", "mahalanobis", "seuclidean"])
def test_what_a_metric_takes_from_all_objects_is_taken_before_the_draw(metric):
    X, y = make_blobs(3, n=80)
    chosen = np.random.RandomState(5).permutation(80)[:40]
    if metric == "gower":
        D = np.asarray(ws.MixedTable(X))
    else:
        D = distance.cdist(X, X, metric)
    found = ws.silhouette_score(X, y, metric=metric, sample_size=40, random_state=5)
    part = D[np.ix_(chosen, chosen)]
    assert found == pytest.approx(metrics.silhouette_score(part, y[chosen], metric="precomputed"))


@pytest.mark.parametrize("metric", ["mahalanobis", "seuclidean"])
def test_on_dask_a_metric_of_all_objects_is_refused_with_a_way_that_works(metric):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, y = make_blobs(3, n=80)
    rows = da.from_array(X, chunks=(20, -1))
    with pytest.raises(TypeError, match="needs all rows at once; pass X .*metric='euclidean'"):
        ws.silhouette_score(rows, y, metric=metric)
    if metric == "seuclidean":
        same = rows / rows.std(axis=0, ddof=1)
    else:
        values, vectors = np.linalg.eigh(da.cov(rows.T).compute())
        same = rows @ vectors / np.sqrt(values)
    expected = ws.silhouette_score(X, y, metric=metric)
    assert ws.silhouette_score(same, y) == pytest.approx(expected, rel=1e-9)


def test_a_sample_is_refused_where_rows_cannot_be_taken():
    X, y = make_blobs(3)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(TypeError, match="sample_size must be None where X is on Dask"):
        ws.silhouette_score(da.from_array(X), y, sample_size=9)
    with pytest.raises(ValueError, match=r"labels must have one entry per object \(60\), got 59"):
        ws.silhouette_score(X, y[1:], sample_size=9)
    with pytest.raises(ValueError, match="sample_size must be"):
        ws.silhouette_score(X, y, sample_size=0)


@pytest.mark.parametrize("average", ["min", "geometric", "arithmetic", "max"])
@pytest.mark.parametrize(
    "pair", [([0, 0, 1, 1, 2], [0, 1, 1, 1, 0]), ([0, 0, 0, 0], [0, 1, 2, 3]), ([0, 1], [0, 0])]
)
def test_information_with_every_average_is_scikit_learns(average, pair):
    given = {"average_method": average}
    ours = ws.ami_score(*pair, **given), ws.nmi_score(*pair, **given)
    theirs = (
        metrics.adjusted_mutual_info_score(*pair, **given),
        metrics.normalized_mutual_info_score(*pair, **given),
    )
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_two_labellings_of_nothing_agree_and_have_no_purity():
    assert ws.ari_score([], []) == ws.ami_score([], []) == ws.nmi_score([], []) == 1.0
    with pytest.raises(ValueError, match="labels_true must hold at least one label"):
        ws.purity_score([], [])


def test_scikit_learns_names_of_arguments_are_taken():
    assert ws.ari_score(labels_true=[0, 0, 1], labels_pred=[1, 1, 0]) == 1.0


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
def test_kmeans_takes_scikit_learns_algorithms_and_ends_where_it_ends(algorithm):
    X, _ = make_blobs(4, n=120)
    given = {"init": X[:3], "n_init": 1, "algorithm": algorithm, "copy_x": False}
    ours, theirs = ws.KMeans(3, **given).fit(X.copy()), cluster.KMeans(3, **given).fit(X.copy())
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


def test_kmeans_refuses_an_algorithm_that_nobody_has():
    with pytest.raises(ValueError, match="algorithm must be one of"):
        ws.KMeans(2, algorithm="quick").fit([[0.0], [1.0], [2.0]])


SCORES = (ws.silhouette_score, ws.calinski_harabasz_score, ws.davies_bouldin_score)


@pytest.mark.parametrize("kind", ["rows", "sparse", "tensor", "dask"])
@pytest.mark.parametrize("score", SCORES)
def test_undefined_nan_gives_nan_where_the_score_raises_and_its_value_elsewhere(score, kind):
    X, y = make_blobs(3, n=30)
    flat = np.zeros_like(X)
    places = np.repeat([[0.0] * X.shape[1], [1.0] * X.shape[1]], 15, axis=0)
    cases = [(X, y), (X, y * 0), (X, np.arange(30)), (X, np.full(30, -1)), (flat, y), (places, y)]
    convert = {"rows": np.asarray, "sparse": sp.csr_array}
    if kind == "tensor":
        convert[kind] = pytest.importorskip("torch", reason="needs the extra deep").asarray
    if kind == "dask":
        convert[kind] = pytest.importorskip("dask.array", reason="needs dask").from_array
    n_undefined = 0
    for data, labels in [*cases, (places, np.arange(30) // 15)]:
        given = convert[kind](data), labels
        try:
            expected = score(*given)
        except ws.UndefinedIndex:
            expected, n_undefined = np.nan, n_undefined + 1
        found = score(*given, undefined="nan")
        assert isinstance(found, float)
        np.testing.assert_equal(found, expected)
    assert n_undefined >= 3


def test_undefined_must_be_raise_or_nan_and_hides_no_other_error():
    with pytest.raises(ValueError, match="undefined must be one of 'raise', 'nan', got 'zero'"):
        ws.silhouette_score([[0.0], [1.0], [5.0]], [0, 0, 1], undefined="zero")
    with pytest.raises(ValueError, match="labels must have one entry per object"):
        ws.silhouette_score([[0.0], [1.0], [5.0]], [0, 0], undefined="nan")
