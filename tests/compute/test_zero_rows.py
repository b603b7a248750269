"""Under cosine a zero row is at distance 1 from everything but itself, as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

import wellsep as ws
from wellsep._checks.arrays import is_torch

KINDS = ["numpy", "float32", "tensor", "on a card", "dask", "array_api_strict"]
SPECS = [
    (name, {"metric": "cosine", **more})
    for name in ws.INDICES
    if "cosine" in ws.INDICES[name].metrics and "metric" in ws.INDICES[name].params
    for more in {
        "c_index": [{"variant": "hubert-levin"}, {"variant": "nbclust"}],
        "dbcv": [{"d": 4}],
    }.get(name, [{}])
]


def _case(n=160, d=4, seed=0):
    """Two zero rows in one cluster, one in another, noise, duplicates, a cluster of one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) + 4 * np.eye(3, d)[y]
    X[[5, 6, 7]] = 0
    y[[5, 6, 7]] = 0, 0, 1
    X[20:24] = X[20]
    X[30] = 3 * X[31]
    y[40] = 7
    noisy = np.where(np.arange(n) % 11 == 0, -1, y)
    labels = [y, noisy, rng.integers(0, 9, n)]
    for codes in labels:  # equal directions lie in one cluster: Dunn is not 0
        codes[20:24], codes[30] = codes[20], codes[31]
    return X.astype(np.float32).astype(np.float64), labels


def _distances(X):
    D = pairwise_distances(X, metric="cosine")
    D = (D + D.T) / 2
    D[D < 1e-15] = 0  # what rounding leaves between equal rows
    return D


def _as(kind, X, monkeypatch):
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "dask":
        da = pytest.importorskip("dask.array", reason="Dask is not installed")
        return da.from_array(X, chunks=(60, -1))
    if kind in ("tensor", "on a card"):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        if kind == "on a card":
            monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
        return torch.tensor(X)
    if kind == "array_api_strict":
        return pytest.importorskip(kind, reason="needs array_api_strict").asarray(X)
    return X


def _label(spec):
    return "-".join([spec[0], *map(str, list(spec[1].values())[1:])])


def test_every_index_with_a_metric_is_tried():
    assert {name for name, _ in SPECS} == {
        "silhouette",
        "dunn",
        "generalized_dunn",
        "c_index",
        "dbcv",
    }


@pytest.mark.parametrize("spec", SPECS, ids=_label)
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_that_of_scikit_learns_distances(kind, spec, monkeypatch):
    X, labels = _case()
    name, params = spec
    if name == "dbcv" and kind == "dask":
        pytest.skip("DBCV grows trees in memory; a dask collection is refused")
    expected = ws.score_partitions(
        _distances(X), labels, [(name, {**params, "metric": "precomputed"})]
    )
    found = ws.score_partitions(_as(kind, X, monkeypatch), labels, [spec])
    # Means of float32 distances have their rounding; other indices sum in float64.
    rel = 1e-6 if kind == "float32" and name == "generalized_dunn" else 1e-7
    assert found.values == pytest.approx(expected.values, rel=rel)
    assert (found.values != 0).all()


@pytest.mark.parametrize("spec", SPECS, ids=_label)
def test_the_reference_without_faster_twins_agrees(spec, monkeypatch):
    X, labels = _case(seed=1)
    fast = ws.score_partitions(X, labels, [spec]).values
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    assert ws.score_partitions(X, labels, [spec]).values == pytest.approx(fast, rel=1e-9)


def test_many_partitions_share_a_tree_that_knows_zero_rows():
    X, labels = _case(seed=2)
    many = [*labels, *(np.random.default_rng(i).integers(0, 4, len(X)) for i in range(9))]
    asked = [("dunn", {"metric": "cosine"}), ("c_index", {"metric": "cosine"})]
    them = [(name, {"metric": "precomputed"}) for name, _ in asked]
    expected = ws.score_partitions(_distances(X), many, them).values
    assert ws.score_partitions(X, many, asked).values == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "sparse"])
def test_widths_are_those_of_scikit_learns_distances(kind, weighted, monkeypatch):
    X, (y, *_) = _case(seed=3)
    weight = np.random.default_rng(4).uniform(0.5, 2, len(y)) if weighted else None
    given = sp.csr_array(X) if kind == "sparse" else _as(kind, X, monkeypatch)
    found = ws.silhouette_samples(given, y, metric="cosine", sample_weight=weight)
    expected = ws.silhouette_samples(_distances(X), y, metric="precomputed", sample_weight=weight)
    assert np.asarray(found) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kind", ["numpy", "float32", "dask"])
def test_an_estimate_from_all_objects_is_the_silhouette(kind, monkeypatch):
    X, (_, noisy, _) = _case(seed=5)
    found = ws.silhouette_estimate(_as(kind, X, monkeypatch), noisy, metric="cosine")
    assert found.exact
    expected = ws.silhouette_score(_distances(X), noisy, metric="precomputed")
    assert found.value == pytest.approx(expected, rel=1e-5 if kind == "float32" else 1e-9)


def test_hand_arithmetic_of_two_zero_rows():
    X = np.array([[1.0, 0], [1, 0.2], [0, 1], [0.2, 1], [0, 0], [0, 0]])
    y = [0, 0, 1, 1, 0, 1]
    # all within at 1 but two pairs; the nearest between is (1, .2) to (.2, 1): 1 − .4/1.04
    assert ws.dunn_score(X, y, metric="cosine") == pytest.approx(0.64 / 1.04, rel=1e-12)


def test_all_rows_may_be_zero():
    X, y = np.zeros((6, 3)), [0, 0, 0, 1, 1, 1]
    assert ws.silhouette_score(X, y, metric="cosine") == 0
    assert ws.dunn_score(X, y, metric="cosine") == 1


# --- spherical k-means --------------------------------------------------------------------------


def _directions(seed=6, n=120):
    """Three bundles of directions, with zero rows among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 0.2 + 2 * np.eye(3)[np.arange(n) % 3]
    zero = np.zeros(n, dtype=bool)
    zero[[0, 1, 50, 119]] = True
    X[zero] = 0
    return X.astype(np.float32).astype(np.float64), zero


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", ["k-means++", "random", "given"])
@pytest.mark.parametrize("kind", ["numpy", "float32", "tensor", "dask", "sparse"])
def test_k_means_finds_the_centres_it_finds_without_zero_rows(kind, init, weighted, monkeypatch):
    X, zero = _directions()
    weight = np.random.default_rng(7).uniform(0.5, 2, len(X)) if weighted else None
    given = sp.csr_array(X) if kind == "sparse" else _as(kind, X, monkeypatch)
    start = np.eye(3) + 0.1 if init == "given" else init
    options = {"metric": "cosine", "tol": 0.0, "random_state": 0}
    model = ws.KMeans(3, init=start, n_init=1 if init == "given" else 3, **options)
    model.fit(given, sample_weight=weight)
    without = ws.KMeans(3, init=np.eye(3), **options)
    without.fit(X[~zero], sample_weight=None if weight is None else weight[~zero])
    found = np.asarray(model.cluster_centers_)
    order = found.argmax(axis=1)
    tolerance = 1e-5 if kind == "float32" else 1e-9
    assert found == pytest.approx(without.cluster_centers_[order], abs=tolerance)
    labels = np.asarray(model.labels_)
    assert (order[labels[~zero]] == without.labels_).all()
    assert (labels[zero] == 0).all()
    mass = zero.sum() if weight is None else weight[zero].sum()
    assert model.inertia_ == pytest.approx(without.inertia_ + mass, rel=1e-5)
    distances = np.asarray(model.transform(given))
    assert distances[zero] == pytest.approx(1, abs=1e-6)
    assert (np.asarray(model.predict(given)) == labels).all()
    assert model.score(given, sample_weight=weight) == pytest.approx(-model.inertia_, rel=1e-5)


@pytest.mark.parametrize("kind", ["numpy", "tensor", "dask", "sparse"])
def test_an_empty_cluster_is_never_put_on_a_zero_row(kind, monkeypatch):
    X, _ = _directions(8)
    given = sp.csr_array(X) if kind == "sparse" else _as(kind, X, monkeypatch)
    start = np.array([[1.0, 0, 0], [0, 1, 1], [-1, -1, -1]])  # nobody is near the last one
    model = ws.KMeans(3, init=start, metric="cosine").fit(given)
    lengths = np.linalg.norm(np.asarray(model.cluster_centers_), axis=1)
    assert lengths == pytest.approx(1, rel=1e-6)
    assert len(np.unique(np.asarray(model.labels_))) == 3


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("kind", ["numpy", "tensor", "dask"])
def test_fewer_directions_than_clusters_are_said(kind, init, monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    X = np.zeros((9, 2))
    X[4], X[7] = (1, 0), (0, 2)
    with pytest.warns(ConvergenceWarning, match=r"n_clusters \(3\)"):
        model = ws.KMeans(3, init=init, metric="cosine", random_state=0).fit(
            _as(kind, X, monkeypatch)
        )
    assert model.inertia_ == pytest.approx(7)
    with pytest.raises(ValueError, match="got rows of zeros only"):
        ws.KMeans(2, init=init, metric="cosine").fit(_as(kind, 0 * X, monkeypatch))


def test_given_centres_need_a_direction():
    X, _ = _directions(9)
    with pytest.raises(ValueError, match="centers must have no row of zeros.* got one at row 1"):
        ws.KMeans(2, init=np.array([[1.0, 0, 0], [0, 0, 0]]), metric="cosine").fit(X)
