"""The unit of the data changes no scale-free value, however large or small it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws

SCALES = [
    *(("float32", scale) for scale in (1e-30, 1e-25, 1e-12, 1e12, 1e19, 1e30)),
    *(("float64", scale) for scale in (1e-160, 1e-150, 1e-60, 1e60, 1e150, 1e160)),
]
CLOSE = {"float32": 2e-5, "float64": 1e-9}
SCALE_FREE = [name for name in ws.INDICES if "scale" in ws.INDICES[name].laws]
CENTROID = ["calinski_harabasz", "davies_bouldin", "cfq", "simplified_silhouette"]
ON_DASK = [*CENTROID, "silhouette", "silhouette_cosine", "dunn"]


def _blobs(dtype: str, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = np.arange(60) % 3
    X = 3 * rng.normal(size=(3, 3))[labels] + 1 + rng.normal(size=(60, 3))
    return (X * scale).astype(dtype), labels


def _values(X, y, names=SCALE_FREE, **options) -> np.ndarray:
    return ws.score_partitions(X, y, names, **options).values[0]


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_the_unit_changes_no_scale_free_index(dtype, scale):
    X, y = _blobs(dtype)
    weights = np.linspace(1, 2, len(y))
    weighted = [name for name in SCALE_FREE if ws.INDICES[name].weighted]
    far, _ = _blobs(dtype, scale)
    assert _values(far, y) == pytest.approx(_values(X, y), rel=CLOSE[dtype])
    assert _values(far, y, weighted, sample_weight=weights) == pytest.approx(
        _values(X, y, weighted, sample_weight=weights), rel=CLOSE[dtype]
    )


@pytest.mark.parametrize("kind", ["torch", "sparse", "dask", "precomputed"])
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e-25), ("float64", 1e155)])
def test_the_unit_changes_no_value_of_any_kind_of_data(kind, dtype, scale):
    X, y = _blobs(dtype)
    X[np.abs(X) < 0.5] = 0
    far = (X.astype(np.float64) * scale).astype(dtype)
    names = {"sparse": CENTROID, "dask": ON_DASK}.get(kind, SCALE_FREE)
    if kind == "precomputed":
        apart = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
        X, far = apart, (apart.astype(np.float64) * scale).astype(dtype)
        names = [("silhouette", {"metric": "precomputed"}), ("dunn", {"metric": "precomputed"})]
    expected = _values(X, y, names)
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="needs the extra deep")
        far = torch.asarray(far)
    elif kind == "sparse":
        far = sp.csr_array(far)
    elif kind == "dask":
        da = pytest.importorskip("dask.array", reason="needs the extra dask")
        far = da.from_array(far, chunks=(20, 3))
    assert _values(far, y, names) == pytest.approx(expected, rel=CLOSE[dtype])


def test_ordinary_data_are_not_touched():
    from wellsep.compute.data.opening import open_space

    for dtype, scale in (
        ("float32", 1e-8),
        ("float32", 1e8),
        ("float64", 1e-35),
        ("float64", 1e35),
    ):
        X, _ = _blobs(dtype, scale)
        assert open_space(X).X is X


def test_a_power_of_two_changes_no_bit():
    X, y = _blobs("float64")
    for exponent in (-500, 500):
        assert np.array_equal(_values(X * 2.0**exponent, y, CENTROID), _values(X, y, CENTROID))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_values_with_a_unit_come_in_the_unit_of_the_data(scale):
    X, y = _blobs("float64")
    far, centers = X * scale, np.stack([X[y == k].mean(axis=0) + 0.1 for k in range(3)])
    assert ws.margins(far, y) / scale == pytest.approx(ws.margins(X, y), rel=1e-9)
    given = ws.margins(far, y, centers=centers * scale)
    assert given / scale == pytest.approx(ws.margins(X, y, centers=centers), rel=1e-9)
    assert ws.cfq_score(far, y, centers=centers * scale) == pytest.approx(
        ws.cfq_score(X, y, centers=centers), rel=1e-9
    )
    covariances = np.full((3, 3), 2.0)
    assert ws.cfq_score(far, y, covariances=covariances * scale**2) == pytest.approx(
        ws.cfq_score(X, y, covariances=covariances), rel=1e-9
    )
    radii = ws.local_connectivity(far, y).radii
    assert radii / scale == pytest.approx(ws.local_connectivity(X, y).radii, rel=1e-9)
    # CDbw has the unit 1/length where lengths are large
    if scale > 1:
        assert ws.cdbw_score(far, y) * scale == pytest.approx(ws.cdbw_score(X * 1e9, y) * 1e9)


def test_functions_of_the_user_get_the_data_as_they_are():
    X, y = _blobs("float64", 1e150)
    seen = []

    def first_gap(one, two):
        seen.append(one)
        return abs(one[0] - two[0]) / 1e150

    ws.silhouette_score(X, y, metric=first_gap)
    assert all((row == X).all(axis=1).any() for row in seen[:50])
    ws.register_index("reach", lambda X, labels: float(X.max()), direction=1, overwrite=True)
    try:
        assert _values(X, y, ["reach"])[0] == X.max()
    finally:
        ws.INDICES._entries.pop("reach")


@pytest.mark.parametrize("estimator", [ws.KMeans, ws.CFMeans, ws.LOFKMeans])
@pytest.mark.parametrize("kind", ["numpy", "torch", "dask"])
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 2.0**-60), ("float64", 2.0**500)])
def test_a_clusterer_finds_the_same_in_any_unit(estimator, kind, dtype, scale):
    if kind == "dask" and estimator is ws.LOFKMeans:
        pytest.skip("LOFKMeans takes dense data in memory only")
    X, _ = _blobs(dtype)
    far, like = _blobs(dtype, scale)[0], np.asarray
    if kind == "torch":
        like = pytest.importorskip("torch", reason="needs the extra deep").asarray
    elif kind == "dask":
        da = pytest.importorskip("dask.array", reason="needs the extra dask")
        like = lambda X: da.from_array(X, chunks=(20, 3))  # noqa: E731
    options = {"max_moves": 3} if estimator is ws.CFMeans else {}
    near, away = (estimator(3, random_state=0, **options).fit(like(Z)) for Z in (X, far))
    close = CLOSE[dtype]
    assert np.array_equal(np.asarray(near.labels_), np.asarray(away.labels_))
    assert away.inertia_ / scale / scale == pytest.approx(near.inertia_, rel=close)
    assert np.asarray(away.cluster_centers_) / scale == pytest.approx(
        np.asarray(near.cluster_centers_), rel=close
    )
    distances = np.asarray(away.transform(like(far))) / scale
    assert distances == pytest.approx(np.asarray(near.transform(like(X))), rel=close)
    assert away.score(like(far)) / scale / scale == pytest.approx(near.score(like(X)), rel=close)


def test_half_samples_and_estimates_hold_in_any_unit():
    X, y = _blobs("float64")
    far = X * 1e160
    here, there = (
        ws.silhouette_estimate(Z, y, n_sampled=30, random_state=0).value for Z in (X, far)
    )
    assert here == pytest.approx(there, rel=1e-9)
    gaps = [ws.gap_statistic(Z, range(1, 4), n_references=2, random_state=0) for Z in (X, far)]
    assert gaps[0].gap == pytest.approx(gaps[1].gap, rel=1e-9)
