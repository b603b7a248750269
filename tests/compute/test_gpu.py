"""On a CUDA device the public functions give the numbers they give on the host."""

from __future__ import annotations

import numpy as np
import pytest
from indices.test_two_scales import (
    PLACES,
    SCALES,
    SPECS,
    compared,
    scores,
    tolerance,
    two_scales,
    wrong,
)
from sklearn import config_context
from ugly import data_sets

import wellsep as ws

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
INDICES = ["silhouette", "silhouette_cosine", "simplified_silhouette", "calinski_harabasz",
           "davies_bouldin", "cfq"]  # fmt: skip
LAST = "opposite clusters"


def _blobs(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return (rng.normal(size=(n, d)) + 2 * rng.normal(size=(k, d))[y] + 3).astype(np.float32), y


@pytest.mark.parametrize(("n", "d", "k"), [(3000, 64, 20), (2001, 160, 7), (1500, 5, 3)])
def test_a_float32_tensor_agrees_with_float64_on_the_host(n, d, k):
    X, y = _blobs(n, d, k)
    ours = ws.score_partitions(torch.tensor(X, device="cuda"), y, INDICES).values
    exact = ws.score_partitions(X.astype(np.float64), y, INDICES).values
    assert ours == pytest.approx(exact, rel=1e-5, abs=1e-6)


def test_many_partitions_at_once_agree_with_float64_on_the_host():
    X, y = _blobs(4000, 32, 12)
    rng = np.random.default_rng(1)
    labels = [y, *[rng.integers(0, k, len(y)) for k in (2, 30, 100)]]
    labels[1][:50] = -1
    ours = ws.score_partitions(X, labels, INDICES, device="cuda").values
    exact = ws.score_partitions(X.astype(np.float64), labels, INDICES).values
    assert ours == pytest.approx(exact, rel=1e-5, abs=1e-6)


UGLY = data_sets(621)
EVERY = [*INDICES, ("silhouette", {"metric": "manhattan"}), "dunn", ("dunn", {"metric": "cosine"}),
         "generalized_dunn", "c_index", ("c_index", {"metric": "cosine"}), "s_dbw", "ccc", "cdbw",
         "dbcv", "lcd"]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize("spec", EVERY, ids=str)
@pytest.mark.parametrize("data", ["zeros", "duplicates", "all", "all far"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_zero_rows_duplicates_noise_and_far_offsets_agree_with_the_host(
    spec, data, dtype, tolerance
):
    _, X, partitions, _ = UGLY[data]
    there = torch.tensor(X.astype(dtype), device="cuda")
    ours = ws.score_partitions(there, partitions, [spec])
    exact = ws.score_partitions(X, partitions, [spec])
    if data == "all far" and "cosine" in str(spec):
        tolerance = max(tolerance, 1e-7)  # 1 - cos of rows that differ by 1e-4 of their length
    scale = np.nanmax(np.abs(exact.values))
    close = {"rel": tolerance, "abs": tolerance * scale, "nan_ok": True}
    assert ours.values == pytest.approx(exact.values, **close)
    assert ours.reasons == exact.reasons


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_one_object_far_out_leaves_the_others_their_silhouettes(far):
    X, y = _blobs(3000, 8, 5)
    X[0] = far
    labels = [y, (y + 1) % 4]
    ours = ws.score_partitions(X, labels, ["silhouette"], device="cuda").values
    exact = ws.score_partitions(X.astype(np.float64), labels, ["silhouette"]).values
    assert ours == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_one_object_far_out_leaves_the_others_their_c_index(metric):
    X, y = _blobs(3000, 8, 5)
    X[0] = 1e6
    spec = [("c_index", {"metric": metric})]
    ours = ws.score_partitions(X, y, spec, device="cuda").values
    exact = ws.score_partitions(X.astype(np.float64), y, spec).values
    assert ours == pytest.approx(exact, rel=1e-5, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize("far", SCALES)
@pytest.mark.parametrize(("places", "n", "d"), [(p, 300, 16) for p in PLACES] + [(LAST, 1500, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_distances_are_not_lost_beside_far_clusters(dtype, places, n, d, far):
    X, labels = two_scales(places, far, n, d)
    X = X.astype(dtype)
    specs = compared(places, SPECS)
    expected = scores(X.astype(np.float64), labels, specs)
    found = ws.score_partitions(X, [labels, (labels + 1) // 2], specs, device="cuda").values[0]
    found = np.where([s[0] == "cfq_mixture" for s in specs] & np.isnan(found), expected, found)
    most = [tolerance(spec, dtype, 10 * far) for spec in specs]  # means of many more objects
    assert wrong(found, expected, specs, most) == {}


def test_margins_and_cfq_of_a_fit_are_those_of_the_host():
    X, _ = _blobs(20_000, 16, 30)
    model = ws.CFMeans(30, schedule="oscillate", init=X[:30], n_steps=3, max_moves=0)
    model.fit(torch.tensor(X, device="cuda"))
    labels, centers = model.labels_.cpu().numpy(), model.cluster_centers_.double().cpu().numpy()
    wide = X.astype(np.float64)
    assert model.cfq_ == pytest.approx(ws.cfq_score(wide, labels, centers=centers), rel=1e-6)
    assert model.margins_ == pytest.approx(ws.margins(wide, labels, centers=centers), abs=1e-5)
    own = wide - centers[labels]
    assert model.inertia_ == pytest.approx((own**2).sum(), rel=1e-6)


def test_cdbw_of_many_wide_clusters_stays_within_the_budget():
    X, _ = _blobs(2000, 1500, 5)
    labels = [np.random.default_rng(m).integers(0, 60, 2000) for m in range(4)]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with config_context(working_memory=256):
        ours = ws.score_partitions(X, labels, ["cdbw"], device="cuda").values
    assert torch.cuda.max_memory_allocated() - before < 2**30
    assert ours == pytest.approx(ws.score_partitions(X.astype(float), labels, ["cdbw"]).values)


@pytest.mark.parametrize("scale", [1e-18, 1e18])
def test_very_small_and_very_large_data_have_the_same_dunn_index(scale):
    X, y = _blobs(600, 4, 3)
    ours = ws.dunn_score(torch.tensor(X * np.float32(scale), device="cuda"), y)
    assert ours == pytest.approx(ws.dunn_score(X.astype(np.float64), y), rel=1e-5)


def test_any_metric_works_on_the_device():
    X, y = _blobs(400, 6, 3)
    ours = ws.silhouette_score(torch.tensor(X, device="cuda"), y, metric="manhattan")
    assert ours == pytest.approx(ws.silhouette_score(X, y, metric="manhattan"), rel=1e-5)


@pytest.mark.parametrize("partitions", [1, 3])
def test_weights_and_uncounted_objects_agree(partitions):
    X, y = _blobs(1200, 16, 6)
    y[::9] = -1
    weight = np.random.default_rng(2).uniform(0, 2, len(y))
    weight[::7] = 0
    labels = [np.where(y >= 0, (y + m) % 6, -1) for m in range(partitions)]
    ours = ws.score_partitions(X, labels, ["silhouette"], device="cuda", sample_weight=weight)
    exact = ws.score_partitions(X.astype(np.float64), labels, ["silhouette"], sample_weight=weight)
    assert ours.values == pytest.approx(exact.values, rel=1e-5)


def test_without_kernels_the_numbers_are_the_same(monkeypatch):
    X, y = _blobs(2500, 24, 9)
    tensor = torch.tensor(X, device="cuda")
    fused = ws.silhouette_samples(tensor, y)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    assert ws.silhouette_samples(tensor, y) == pytest.approx(fused, abs=1e-5)


def test_float64_on_the_device_is_computed_in_float64():
    X, y = _blobs(1000, 8, 4)
    X = X.astype(np.float64)
    ours = ws.score_partitions(torch.tensor(X, device="cuda"), y, INDICES).values
    assert ours == pytest.approx(ws.score_partitions(X, y, INDICES).values, rel=1e-10)


def test_points_that_all_coincide_have_silhouette_zero_on_the_device():
    X = np.full((300, 4), 0.1, dtype=np.float32)
    assert ws.silhouette_score(X, np.arange(300) % 3, device="cuda") == 0


def test_the_mean_of_a_large_silhouette_errs_by_less_than_a_millionth():
    X, y = _blobs(60_000, 64, 20)
    ours = ws.silhouette_score(torch.tensor(X, device="cuda"), y)
    exact = ws.silhouette_score(X.astype(np.float64), y)
    assert abs(ours - exact) < 1e-6


@pytest.mark.parametrize(("d", "k"), [(64, 100), (5, 3), (160, 37)])
def test_the_nearest_two_centres_are_those_of_the_host(d, k):
    from wellsep.compute.data.opening import open_space

    X, _ = _blobs(5000, d, 8)
    centers = X[:k].astype(np.float64) + 0.01
    exact = open_space(X.astype(np.float64)).nearest_two(centers)
    there = open_space(torch.tensor(X, device="cuda"))
    found = [part.cpu().numpy() for part in there.nearest_two(centers)]
    assert (found[0] == exact.first).mean() > 0.999  # near ties may fall either way
    assert (found[1] == exact.second).mean() > 0.999
    assert found[2] == pytest.approx(exact.near, rel=1e-5, abs=1e-6)
    assert found[3] == pytest.approx(exact.far, rel=1e-5)
    alone = there.nearest(centers)
    assert np.array_equal(alone.first.cpu().numpy(), found[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_by_code_are_those_of_the_host(weighted):
    from wellsep.compute.data.opening import open_space

    X, y = _blobs(20_000, 24, 50)
    codes = np.column_stack([y, (y + 1) % 50])
    shares = np.random.default_rng(3).uniform(-1, 1, codes.shape) if weighted else None
    exact = open_space(X.astype(np.float64)).code_sums(codes, shares, 50)
    there = [torch.tensor(a, device="cuda") if a is not None else None for a in (X, codes, shares)]
    found = open_space(there[0]).code_sums(there[1], there[2], 50)
    assert found == pytest.approx(exact, abs=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["KMeans", "CFMeans"])
def test_a_clusterer_ends_where_it_ends_on_the_host(name):
    X, _ = _blobs(6000, 8, 6)
    options = {"init": X[:6].astype(np.float64), "n_init": 1}
    host = getattr(ws, name)(6, **options).fit(X)
    there = getattr(ws, name)(6, **options).fit(torch.tensor(X, device="cuda"))
    assert float(there.inertia_) == pytest.approx(host.inertia_, rel=1e-4)
    assert ws.ari_score(host.labels_, there.labels_) > 0.999


NINE = ["silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin", "dunn",
        "c_index", "s_dbw", "ccc", "cdbw"]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize("convention", [None, "ace"])
def test_the_indices_of_the_ace_paper_agree_with_float64_on_the_host(convention):
    X, y = _blobs(3500, 40, 9)
    rng = np.random.default_rng(4)
    labels = [np.where(rng.random(len(y)) < p, rng.integers(0, k, len(y)), y % k)
              for p, k in ((0, 9), (0.2, 9), (0.5, 4), (0.9, 60))]  # fmt: skip
    labels[1][:70] = -1
    ours = ws.score_partitions(X, labels, NINE, device="cuda", convention=convention).values
    exact = ws.score_partitions(X.astype(np.float64), labels, NINE, convention=convention).values
    assert ours == pytest.approx(exact, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_deciding_pairs_are_evaluated_exactly(metric):
    X, y = _blobs(5000, 3, 5)
    X[100:120] = X[100]  # rounding cannot tell these apart
    labels = [y, (y + 1) % 3, np.arange(5000) % 2]
    spec = [("dunn", {"metric": metric}), ("c_index", {"metric": metric, "variant": "nbclust"})]
    ours = ws.score_partitions(X, labels, spec[:1], device="cuda").values
    exact = ws.score_partitions(X.astype(np.float64), labels, spec[:1]).values
    assert ours == pytest.approx(exact, rel=1e-9, abs=1e-300)
    whole = ws.score_partitions(X, labels, spec, device="cuda").values
    assert whole[:, 1] == pytest.approx(
        ws.score_partitions(X.astype(np.float64), labels, spec).values[:, 1], rel=1e-5
    )


@pytest.mark.parametrize(("metric", "strip"), [("euclidean", None), ("cosine", 40)])
def test_the_histogram_of_distances_selects_as_the_host_does(metric, strip, monkeypatch):

    from wellsep.compute.kernels import triton_extremes as order

    X, y = _blobs(6000, 24, 7)
    if strip:  # as for millions of objects, more than one launch takes
        monkeypatch.setattr(order, "STRIP", strip)
    spec = [("c_index", {"metric": metric})]
    ours = ws.score_partitions(X, [y, y % 3], spec, device="cuda").values
    exact = ws.score_partitions(X.astype(np.float64), [y, y % 3], spec).values
    assert ours == pytest.approx(exact, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("n", "d", "t"), [(20_000, 64, 5), (5003, 160, 20), (3000, 2, 3)])
def test_neighbours_are_those_of_the_host(n, d, t):
    from wellsep.compute.statistics.neighbour_graph import NeighbourGraph

    X, _ = _blobs(n, d, 6)
    host = NeighbourGraph.of(X.astype(np.float64), t)
    ours = NeighbourGraph.of(torch.tensor(X, device="cuda"), t)
    assert ours.distances == pytest.approx(host.distances, rel=1e-9, abs=1e-12)
    assert (ours.indices == host.indices).mean() > 0.9999  # exact ties may fall either way


@pytest.mark.parametrize(("d", "t"), [(24, 5), (2, 3)])
def test_local_connectivity_is_that_of_the_host(d, t):
    X, y = _blobs(9000, d, 6)
    X[50:80] = X[50]
    host = ws.local_connectivity(X.astype(np.float64), y, n_neighbors=t)
    ours = ws.local_connectivity(torch.tensor(X, device="cuda"), y, n_neighbors=t)
    assert ours.objects == pytest.approx(host.objects, rel=1e-7, abs=1e-9)
    assert np.array_equal(ours.n_witnesses, host.n_witnesses)
    assert np.array_equal(ours.better_cluster, host.better_cluster)


def test_lofkmeans_finds_the_weights_of_the_host():
    X, _ = _blobs(4000, 20, 6)
    host = ws.LOFKMeans(6, random_state=0).fit(X.astype(np.float64))
    ours = ws.LOFKMeans(6, random_state=0).fit(torch.tensor(X, device="cuda"))
    assert ours.weights_ == pytest.approx(host.weights_, rel=1e-6)


def test_a_budget_too_small_for_the_sums_gives_the_same_values_on_the_device():
    from sklearn import config_context

    X, y = _blobs(9000, 32, 12)
    labels = [y, y % 5, np.arange(9000) % 30]
    tensor = torch.tensor(X, device="cuda")
    roomy = ws.score_partitions(tensor, labels, ["silhouette", "c_index", "dunn"]).values
    with config_context(working_memory=4):
        tight = ws.score_partitions(tensor, labels, ["silhouette", "c_index", "dunn"]).values
    assert tight == pytest.approx(roomy, rel=1e-6, abs=1e-8)


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
def test_without_kernels_all_indices_are_the_same(monkeypatch):
    X, y = _blobs(3500, 12, 6)
    tensor = torch.tensor(X, device="cuda")
    fused = ws.score_partitions(tensor, [y, y % 4], [*NINE, "lcd"]).values
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    plain = ws.score_partitions(tensor, [y, y % 4], [*NINE, "lcd"]).values
    assert plain == pytest.approx(fused, rel=1e-5)
