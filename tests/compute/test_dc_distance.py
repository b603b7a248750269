"""The metric "dc" is the minimax path distance over mutual reachability, for every index."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from dc_oracle import explicit
from golden import read_json
from ugly import data_sets

import wellsep as ws
from wellsep.compute.data.opening import open_space
from wellsep.compute.metrics.squares import Rows

HAND = np.array([[0.0], [1], [3], [7], [8]])
HAND_DC = np.array(
    [[0, 1, 2, 4, 4], [1, 0, 2, 4, 4], [2, 2, 0, 4, 4], [4, 4, 4, 0, 1], [4, 4, 4, 1, 0]]
)


def table(X, metric):
    space = open_space(X)
    rows = Rows(space.prepared(metric).X, at=slice(0, len(X)))
    return metric.distances(rows, rows, space.xp)


def test_hand_arithmetic_of_five_objects():
    assert table(HAND, ws.dc_metric(2)).tolist() == HAND_DC.tolist()
    widths = ws.silhouette_samples(HAND, [0, 0, 0, 1, 1], metric=ws.dc_metric(2))
    assert widths == pytest.approx([0.625, 0.625, 0.5, 0.75, 0.75], abs=1e-15)
    assert ws.silhouette_score(HAND, [0, 0, 0, 1, 1]) == pytest.approx(0.7241, abs=1e-4)


@pytest.mark.parametrize("case", [c for c in read_json("disco.json")["cases"] if "dc" in c])
def test_distances_are_those_of_the_oracle(case):
    found = table(np.array(case["X"]), ws.dc_metric(case["min_points"]))
    assert found == pytest.approx(np.array(case["dc"]), abs=1e-12)


@pytest.mark.parametrize("min_points", [1, 2, 5, 9])
@pytest.mark.parametrize("n", [9, 16, 17, 100])
def test_blocks_hold_the_minimax_distances(n, min_points):
    X = np.random.default_rng(n).normal(size=(n, 3)).round(1)  # with ties
    found = table(X, ws.dc_metric(min_points))
    assert found == pytest.approx(explicit(X, min_points), rel=1e-9, abs=1e-9)


def test_one_point_counts_only_itself_and_gives_single_linkage():
    from scipy.cluster.hierarchy import cophenet, linkage
    from scipy.spatial.distance import squareform

    X = np.random.default_rng(3).normal(size=(60, 2))
    expected = squareform(cophenet(linkage(X, "single")))
    assert table(X, ws.dc_metric(1)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("data", ["duplicates", "all", "all far"])
@pytest.mark.parametrize("index", ["silhouette", "dunn", "c_index"])
def test_an_index_gives_what_the_matrix_gives(index, data):
    _, X, partitions, _ = data_sets(150)[data]
    ours = ws.score_partitions(X, partitions, [(index, {"metric": "dc"})]).values
    matrix = explicit(X)
    expected = ws.score_partitions(matrix, partitions, [(index, {"metric": "precomputed"})]).values
    assert ours == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_weights_and_noise_mean_what_they_mean_for_the_matrix():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 2)), rng.integers(-1, 3, 80)
    given = {"sample_weight": rng.uniform(0.1, 2, 80)}
    ours = ws.silhouette_samples(X, y, metric="dc", **given)
    expected = ws.silhouette_samples(explicit(X), y, metric="precomputed", **given)
    assert ours == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(1200, 2)), rng.integers(0, 3, 1200)
    specs = [(name, {"metric": "dc"}) for name in ("silhouette", "dunn")]
    one = ws.score_partitions(X, y, specs, n_jobs=1).values
    assert np.array_equal(one, ws.score_partitions(X, y, specs, n_jobs=3).values)


def test_no_table_of_all_pairs_is_made():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(4000, 2)), rng.integers(0, 3, 4000)
    ws.silhouette_score(X[:200], y[:200], metric="dc")  # imports
    tracemalloc.start()
    ws.silhouette_score(X, y, metric="dc")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 4000**2 / 3


def test_too_few_objects_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="min_points must be at most the number of objects"):
        ws.silhouette_score(HAND[:4], [0, 0, 1, 1], metric="dc")


def test_a_dask_array_is_refused_with_a_sentence():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X, y = da.from_array(np.vstack([HAND, HAND]), chunks=5), da.from_array(np.arange(10) % 2, 5)
    with pytest.raises(TypeError, match="where X is a dask collection, got 'dc', which needs all"):
        ws.silhouette_score(X, y, metric="dc")


def test_an_estimate_from_a_sample_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="computed from two rows for a silhouette from a sample"):
        ws.silhouette_estimate(np.vstack([HAND, HAND]), np.arange(10) % 2, metric="dc")


def test_an_index_without_a_metric_refuses_it_with_a_sentence():
    with pytest.raises(ValueError, match="must be among: .*got 'metric'"):
        ws.score_partitions(HAND, [0, 0, 0, 1, 1], [("davies_bouldin", {"metric": "dc"})])
    with pytest.raises(ValueError, match="metric must be 'euclidean' for coordinates here"):
        ws.score_partitions(HAND, [0, 0, 0, 1, 1], [("calinski_harabasz", {"metric": "dc"})])


def test_half_samples_grow_their_own_trees():
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + 6 * np.eye(3, 2)[y]
    shaken = X + rng.normal(size=X.shape)
    runs = ws.Runs([ws.Run("a", X, y), ws.Run("b", shaken, np.roll(y, 5))])
    found = ws.judge(runs, ("silhouette", {"metric": "dc"}), n_draws=4, dip=False, details=False)
    assert found.ranking.best == "a"
