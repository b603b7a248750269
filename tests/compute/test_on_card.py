"""What stays on an accelerator gives the host's numbers; CPU tensors stand in for it here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context

import wellsep as ws
from wellsep._checks.arrays import is_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def as_card(monkeypatch):
    """CPU tensors are worked on as if they lay on an accelerator."""
    monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)


def _case(n=500, d=6, seed=0):
    """Clusters of very different sizes and numbers, objects that coincide, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 7, n)
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(7, d))[y] + 3
    X[5] = X[6]
    X[20:24] = X[20]
    X[[40, 133]] = 0
    labels = [y, rng.integers(0, 3, n), rng.integers(0, 40, n), np.where(np.arange(n) < 3, 50, y)]
    labels[1][:50] = -1
    return X, labels


@pytest.mark.parametrize("spec", ["silhouette", "dunn", "cdbw", "s_dbw", "c_index"])
@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
def test_coinciding_objects_are_treated_as_on_the_host(spec, as_card):
    X = np.repeat(np.array([[0.1, 0.2], [5.0, 0.3], [0.7, 9.0]]), [4, 5, 1], axis=0)
    labels = [np.repeat([0, 1, 2], [4, 5, 1]), np.arange(10) % 3]
    ours = ws.score_partitions(torch.tensor(X), labels, [spec])
    host = ws.score_partitions(X, labels, [spec])
    assert ours.values == pytest.approx(host.values, rel=1e-9, nan_ok=True)
    assert ours.reasons == host.reasons


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 0.1, 1e3])
def test_objects_on_their_centres_are_seen_as_such(dtype, offset, as_card):
    places = np.random.default_rng(11).normal(size=(20, 3)) + offset
    X = np.repeat(places, 13, axis=0).astype(dtype)
    labels = [np.repeat(np.arange(20), 13)]
    specs = ["calinski_harabasz", "cfq", "cfq_mixture", "ccc",
             ("generalized_dunn", {"separation": "centroid", "diameter": "centroid"})]  # fmt: skip
    ours = ws.score_partitions(torch.tensor(X), labels, specs)
    host = ws.score_partitions(X, labels, specs)
    assert np.array_equal(ours.values, [[np.nan, np.nan, np.nan, np.inf, np.nan]], equal_nan=True)
    assert ours.reasons == host.reasons


@pytest.mark.parametrize("wrong_side", ["zero", "squared"])
@pytest.mark.parametrize("many", [1024, 1])
def test_clusters_with_one_centre_are_still_rivals_of_the_others(
    wrong_side, many, as_card, monkeypatch
):
    monkeypatch.setattr("wellsep.compute.statistics.centre_pairs.MANY", many)
    place = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, -0.5]])
    X, y = (
        np.vstack([place, place, place + 5, [[1.0, 4.0]]]),
        np.repeat([0, 1, 2, -1], [3, 3, 3, 1]),
    )
    spec = [("cfq", {"wrong_side": wrong_side})]
    host = ws.score_partitions(X, [y], spec).values
    assert ws.score_partitions(torch.tensor(X), [y], spec).values == pytest.approx(host, rel=1e-9)


def test_centres_that_coincide_decide_nothing_about_other_clusters(as_card):
    cross = [[-1, 0], [1, 0], [0, -1], [0, 1]]  # two clusters about one centre
    X = np.array([*cross, [5, 5], [6, 5], [9, -9], [9, -8], [3, 3]], dtype=float)
    labels = [
        [0, 0, 1, 1, 2, 2, 3, 3, -1],
        [0, 0, 1, 1, 2, 2, 2, 2, -1],
        [3, 3, 2, 2, 1, 1, 0, 0, 0],
    ]
    ours = ws.score_partitions(torch.tensor(X), labels, ["cfq"], noise="cluster")
    host = ws.score_partitions(X, labels, ["cfq"], noise="cluster")
    assert ours.values == pytest.approx(host.values, rel=1e-12)
    assert ours.reasons == host.reasons


def test_distances_that_are_not_numbers_are_seen_as_such(as_card):
    X = np.random.default_rng(3).normal(size=(60, 6))
    X[7] = 1.0  # correlates with nothing
    spec = ("silhouette", {"metric": "correlation"})
    values = [
        ws.score_partitions(x, [np.arange(60) % 3], [spec]).values for x in (X, torch.tensor(X))
    ]
    assert np.isnan(values).all()


@pytest.mark.parametrize("variant", ["hubert-levin", "nbclust"])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_directions_far_from_the_origin_are_not_rounded(variant, offset, as_card):
    X, labels = _case(n=200, seed=12)
    X = (X + offset).astype(np.float32)
    spec = ("c_index", {"metric": "cosine", "variant": variant})
    ours = ws.score_partitions(torch.tensor(X), labels, [spec]).values
    host = ws.score_partitions(X.astype(np.float64), labels, [spec]).values
    assert ours == pytest.approx(host, rel=1e-5)


def test_distances_of_any_metric_go_back_to_where_the_rows_lie():
    from wellsep.compute.metrics.squares import Rows
    from wellsep.compute.metrics.table import general_distances

    class Elsewhere:
        """Takes the place of the array library and notes where it is asked to put a table."""

        @staticmethod
        def asarray(table, *, device):
            return table, device

    rows = torch.tensor([[0.0, 0], [1, 2]])
    left, right = Rows(rows, at=slice(0, 2)), Rows(rows + 1, at=slice(2, 4))
    table, device = general_distances("manhattan", left, right, Elsewhere)
    assert device == rows.device
    assert table.tolist() == [[2, 5], [1, 2]]


def test_ties_at_the_extremes_do_not_need_all_candidates(as_card, monkeypatch):
    from wellsep.compute.engine.device import extremes

    monkeypatch.setattr(extremes, "CANDIDATES", 3)
    grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    labels = [grid[:, 0] > 4, grid[:, 1] > 2]
    ours = ws.score_partitions(torch.tensor(grid), labels, ["dunn"]).values
    assert ours == pytest.approx(ws.score_partitions(grid, labels, ["dunn"]).values, rel=1e-12)


@pytest.mark.parametrize("memory", [1024, 0.05])
def test_margins_are_those_of_the_host(memory, as_card):
    X, labels = _case()
    y = np.where(np.arange(len(X)) < 30, -1, labels[0])
    centers = np.stack([X[y == k].mean(axis=0) for k in range(7)])
    centers[3] = centers[2]  # no plane lies between these two
    with config_context(working_memory=memory):
        ours = ws.margins(torch.tensor(X), y, centers=torch.tensor(centers))
    assert ours == pytest.approx(ws.margins(X, y, centers=centers), rel=1e-9, nan_ok=True)
    assert np.isnan(ours[:30]).all()
    assert np.isfinite(ours[30:]).all()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_a_histogram_selects_as_sorting_does(metric):
    from wellsep.compute.engine.device.extremes import select_on_device
    from wellsep.compute.metrics.row_preparation import Prepared
    from wellsep.compute.metrics.table import find

    X = torch.tensor(np.random.default_rng(6).normal(size=(900, 3)))
    X[10:40] = X[10]
    pairs = 900 * 899 // 2
    counts = np.array([1, 7, 435, 436, 5000, pairs // 3, pairs - 1, pairs])
    options = {"finish": find(metric).finish, "fused": False}
    sorting = select_on_device(Prepared(X), counts, sortable=pairs, **options)
    binned = select_on_device(Prepared(X), counts, sortable=0, **options)
    assert np.array(binned) == pytest.approx(np.array(sorting), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("d", "t"), [(3, 5), (20, 1), (20, 12)])
def test_neighbours_are_those_of_the_host(d, t, as_card):
    from wellsep.compute.statistics.neighbour_graph import NeighbourGraph

    X = np.random.default_rng(7).normal(size=(700, d)) + 5
    rows = np.array([3, 600, 17])
    host = NeighbourGraph.of(X, t)
    ours = NeighbourGraph.of(torch.tensor(X), t)
    some = NeighbourGraph.of(torch.tensor(X), t, rows=rows)
    assert np.array_equal(ours.indices, host.indices)
    assert ours.distances == pytest.approx(host.distances, rel=1e-12)
    assert np.array_equal(some.indices, host.indices[rows])


def test_the_outlier_factor_needs_no_host_search(as_card):
    from wellsep.compute.statistics.neighbour_graph import NeighbourGraph

    X = np.random.default_rng(8).normal(size=(400, 4))
    X[:9] = X[0]
    ours = NeighbourGraph.of(torch.tensor(X), 6).outlier_factor()
    assert ours == pytest.approx(NeighbourGraph.of(X, 6).outlier_factor(), rel=1e-9)


@pytest.mark.parametrize(("d", "t"), [(2, 5), (20, 3)])
def test_local_connectivity_is_that_of_the_host(d, t, as_card):
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, d)) + 3 * y[:, None]
    X[100:120] = X[100]
    y[:30] = -1
    host = ws.local_connectivity(X, y, n_neighbors=t)
    ours = ws.local_connectivity(torch.tensor(X), y, n_neighbors=t)
    assert ours.objects == pytest.approx(host.objects, rel=1e-9, abs=1e-12, nan_ok=True)
    assert np.array_equal(ours.n_witnesses, host.n_witnesses)
    assert np.array_equal(ours.better_cluster, host.better_cluster)


def test_lofkmeans_weighs_a_tensor_as_it_weighs_an_array(as_card):
    X = np.random.default_rng(10).normal(size=(300, 3))
    weight = np.ones(300)
    weight[::10] = 0
    host = ws.LOFKMeans(4, random_state=0).fit(X, sample_weight=weight)
    ours = ws.LOFKMeans(4, random_state=0).fit(torch.tensor(X), sample_weight=weight)
    assert ours.weights_ == pytest.approx(host.weights_, rel=1e-9)
    assert float(ours.inertia_) == pytest.approx(host.inertia_, rel=1e-9)
