"""local_connectivity equals its definition, whatever engine searches the neighbours."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lcd_oracle import lcd_by_definition, lcd_of_integers
from sklearn.cluster import KMeans

import wellsep as ws
from wellsep.compute.statistics import local_connectivity as witnesses
from wellsep.compute.statistics import neighbour_graph

pytestmark = pytest.mark.filterwarnings("ignore:.*clusters have at most n_neighbors")


def blobs(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(scale=4, size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def means(X, labels):
    return {label: X[labels == label].mean(axis=0) for label in np.unique(labels)}


@pytest.mark.parametrize("t", [1, 3, 5])
@pytest.mark.parametrize(("n", "d", "k"), [(60, 1, 2), (150, 2, 3), (200, 8, 2), (150, 40, 3)])
def test_every_object_has_the_value_of_the_definition(n, d, k, t):
    X, labels = blobs(n, d, k)
    values, sizes = lcd_by_definition(X, labels, means(X, labels), t)
    found = ws.local_connectivity(X, labels, n_neighbors=t)
    np.testing.assert_allclose(found.objects, values, atol=1e-12)
    np.testing.assert_array_equal(found.n_witnesses, sizes)


@pytest.mark.parametrize("features", [0, 100])
def test_trees_and_blocks_equal_the_definition_beyond_one_block(monkeypatch, features):
    monkeypatch.setattr(neighbour_graph, "TREE_FEATURES", features)
    monkeypatch.setattr(witnesses, "_SMALL", 16)
    monkeypatch.setattr(witnesses, "_BLOCK", 2000)
    monkeypatch.setattr(witnesses, "_ROWS", 8)
    X, labels = blobs(300, 3, 2, seed=1)
    values, sizes = lcd_by_definition(X, labels, means(X, labels), 4)
    found = ws.local_connectivity(X, labels, n_neighbors=4)
    np.testing.assert_allclose(found.objects, values, atol=1e-12)
    np.testing.assert_array_equal(found.n_witnesses, sizes)


def test_given_prototypes_replace_the_means():
    X, labels = blobs(90, 2, 3)
    centers = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 5.0]])
    values, _ = lcd_by_definition(X, labels, centers, 3)
    found = ws.local_connectivity(X, labels, centers=centers, n_neighbors=3)
    np.testing.assert_allclose(found.objects, values, atol=1e-12)


def test_prototypes_of_empty_clusters_are_passed_over():
    X, labels = blobs(60, 2, 2)
    centers = np.array([X[labels == 0].mean(axis=0), [99.0, 99.0], X[labels == 1].mean(axis=0)])
    found = ws.local_connectivity(X, 2 * labels, centers=centers)
    np.testing.assert_allclose(found.objects, ws.local_connectivity(X, labels).objects)


def test_hand_arithmetic():
    # x = (4, 3), r = 5: only (3, 0) lies between, at √10 from x and 3 from the prototype.
    X = [[0.0, 0.0], [3.0, 0.0], [4.0, 3.0], [8.0, 0.0]]
    found = ws.local_connectivity(X, [0, 0, 0, 0], centers=[[0.0, 0.0]], n_neighbors=3)
    path = 3 + math.sqrt(10)
    # (8, 0) sees (3, 0) on the line, which adds nothing, and (4, 3): (10/8 - 1) · 5/10.
    assert found.objects == pytest.approx([0, 0, (path / 5 - 1) * math.sqrt(10) / path, 0.125])
    assert found.n_witnesses.tolist() == [0, 0, 1, 2]


def test_clusters_hold_the_maximum_of_their_objects_and_the_two_measures_sum_them_up():
    X, labels = blobs(200, 3, 4)
    found = ws.local_connectivity(X, labels)
    highest = [found.objects[labels == code].max() for code in range(4)]
    assert found.clusters.tolist() == highest
    assert found.maximum == max(highest)
    assert found.mean == pytest.approx(np.mean(highest))


def test_whole_numbers_with_many_ties_equal_exact_arithmetic(real_data):
    X = np.load(real_data / "wifi_localization.npz")["X"]
    labels = KMeans(4, n_init=1, random_state=0).fit_predict(X.astype(float))
    values, sizes = lcd_of_integers(X, labels, 5)
    found = ws.local_connectivity(X, labels)
    np.testing.assert_allclose(found.objects, values, atol=1e-12)
    np.testing.assert_array_equal(found.n_witnesses, sizes)


@pytest.mark.parametrize("d", [3, 20])
def test_the_order_of_the_objects_plays_no_part(d):
    rng = np.random.default_rng(3)
    X, labels = rng.integers(0, 3, size=(400, d)), rng.integers(3, size=400)
    order = rng.permutation(400)
    found, shuffled = (
        ws.local_connectivity(X, labels),
        ws.local_connectivity(X[order], labels[order]),
    )
    np.testing.assert_allclose(shuffled.objects, found.objects[order], atol=1e-12)
    np.testing.assert_array_equal(shuffled.n_witnesses, found.n_witnesses[order])
    np.testing.assert_array_equal(shuffled.better_cluster, found.better_cluster[order])


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_values_lie_between_zero_and_half_the_neighbours(seed, t, d, whole):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(40, d)).astype(float) if whole else rng.normal(size=(40, d))
    labels = rng.integers(3, size=40)
    found = ws.local_connectivity(X, labels, n_neighbors=t)
    assert (found.objects >= 0).all()
    assert (found.objects < t / 2).all()
    assert (found.n_witnesses <= t).all()


@pytest.mark.parametrize("change", ["scale", "shift", "rotate", "rename"])
def test_values_are_invariant_to(change):
    X, labels = blobs(300, 4, 3, seed=5)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    other = {"scale": 1000 * X, "shift": X + 1e4, "rotate": X @ rotation, "rename": X}[change]
    renamed = np.array(["c", "a", "b"])[labels] if change == "rename" else labels
    np.testing.assert_allclose(
        ws.local_connectivity(other, renamed).objects,
        ws.local_connectivity(X, labels).objects,
        atol=1e-7,
    )


def test_an_object_on_its_prototype_and_clusters_of_one_have_no_disagreement():
    found = ws.local_connectivity([[0.0, 0.0], [5.0, 1.0], [2.0, 2.0]], [0, 1, 2])
    assert found.objects.tolist() == [0.0, 0.0, 0.0]
    assert found.maximum == 0.0


def test_duplicates_take_up_places_and_add_nothing():
    # Three duplicates of the far object fill its three places; the object aside never counts.
    X = np.array([[0.0, 0.0], [2.0, 2.0]] + 4 * [[4.0, 0.0]])
    aside = ws.local_connectivity(X, [0] * 6, centers=[[0.0, 0.0]], n_neighbors=4).objects[2]
    alone = ws.local_connectivity(X, [0] * 6, centers=[[0.0, 0.0]], n_neighbors=3).objects[2]
    assert alone == 0.0
    assert aside > 0.1


def test_twenty_thousand_coinciding_objects_do_not_exhaust_the_search():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10_000, axis=0)
    found = ws.local_connectivity(X, np.zeros(20_000, dtype=int), n_neighbors=3)
    assert found.maximum == 0.0
    assert (found.n_witnesses == 3).all()


def test_thousands_of_coinciding_objects_of_two_clusters_side_with_the_greater():
    X = np.zeros((60_000, 2))
    X[-1] = [5.0, 5.0]
    labels = np.r_[np.zeros(40_000, dtype=int), np.ones(20_000, dtype=int)]
    found = ws.local_connectivity(X, labels, centers=[[1.0, 1.0], [-1.0, -1.0]])
    assert found.objects[:-1].max() == 0.0
    assert (found.better_cluster[:-1] == 0).all()


def test_where_more_than_t_coincide_the_most_frequent_cluster_is_best():
    X, labels = np.zeros((20, 2)), np.repeat([0, 1], 10)
    centers = [[1.0, 1.0], [-1.0, -1.0]]
    even = ws.local_connectivity(X, labels, centers=centers, n_neighbors=3)
    assert (even.better_cluster == labels).all()
    labels[0] = 1
    assert (
        ws.local_connectivity(X, labels, centers=centers, n_neighbors=3).better_cluster == 1
    ).all()


@pytest.mark.parametrize("d", [2, 20])
def test_surplus_duplicates_change_no_value(d):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, d))[rng.integers(30, size=300)]
    labels = rng.integers(2, size=300)
    centers = rng.normal(size=(2, d))
    values, sizes = lcd_by_definition(X, labels, centers, 3)
    found = ws.local_connectivity(X, labels, centers=centers, n_neighbors=3)
    np.testing.assert_allclose(found.objects, values, atol=1e-12)
    np.testing.assert_array_equal(found.n_witnesses, sizes)


def test_noise_is_left_out_by_default_and_may_be_a_cluster():
    X, labels = blobs(80, 2, 2)
    noisy = labels.copy()
    noisy[:10] = -1
    found = ws.local_connectivity(X, noisy)
    assert np.isnan(found.objects[:10]).all()
    assert (found.better_cluster[:10] == -1).all()
    assert found.coverage == pytest.approx(70 / 80)
    np.testing.assert_allclose(
        found.objects[10:], ws.local_connectivity(X[10:], labels[10:]).objects, atol=1e-12
    )
    assert len(ws.local_connectivity(X, noisy, noise="cluster").clusters) == 3


def test_the_better_cluster_is_the_one_of_the_neighbours_around():
    # As in figure 2(a) of the paper: near the prototype of "blue", but among "red" objects that
    # lead on to theirs.
    rng = np.random.default_rng(0)
    red = np.column_stack([np.linspace(1.5, 6, 40), rng.normal(scale=0.1, size=40)])
    blue = rng.normal(scale=0.3, size=(40, 2)) - np.array([1.0, 0.0])
    X = np.vstack([blue, red, [[1.2, 0.0]]])
    labels = np.array(["blue"] * 40 + ["red"] * 40 + ["blue"])
    found = ws.local_connectivity(X, labels)
    assert found.better_cluster[-1] == "red"
    assert (found.better_cluster[:40] == "blue").all()


def test_a_far_cluster_is_never_the_better_one():
    X, labels = blobs(200, 2, 2, seed=2)
    X = np.vstack([X, np.full((50, 2), 1e3) + np.random.default_rng(0).normal(size=(50, 2))])
    found = ws.local_connectivity(X, np.r_[labels, np.full(50, 2)])
    assert (found.better_cluster[:200] != 2).all()


def test_the_index_of_the_registry_is_the_same_number():
    X, labels = blobs(150, 3, 3)
    other = np.where(labels == 2, 1, labels)
    other[:9] = -1
    scores = ws.score_partitions(
        X, [labels, other], ["lcd", ("lcd", {"aggregate": "max", "n_neighbors": 3})]
    )
    expected = [
        [
            ws.local_connectivity(X, labelling).mean,
            ws.local_connectivity(X, labelling, n_neighbors=3).maximum,
        ]
        for labelling in (labels, other)
    ]
    np.testing.assert_allclose(scores.values, expected, rtol=1e-12)
    assert scores.directions.tolist() == [-1, -1]


def test_small_clusters_are_told():
    X, labels = blobs(40, 2, 2)
    labels[:3] = 2
    with pytest.warns(UserWarning, match=r"1 of 3 clusters have at most n_neighbors = 5 members"):
        ws.local_connectivity(X, labels)


@pytest.mark.parametrize(
    ("labels", "options", "sentence"),
    [
        ([-1, -1, -1], {}, "labels must hold at least one cluster, got noise"),
        ([0, 1, 4], {"centers": [[0.0, 0.0]] * 4}, "centers must have one row per cluster"),
        ([0, 1, 1], {"centers": [[0.0]] * 2}, "centers must have 2 columns like X, got 1"),
        ([0, 1, 1], {"n_neighbors": 0}, "n_neighbors must be at least 1, got 0"),
        ([0, 1], {}, r"labels must have one entry per object \(3\), got 2"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(labels, options, sentence):
    X = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    with pytest.raises(ValueError, match=sentence):
        ws.local_connectivity(X, labels, **options)


def test_float32_frames_and_tensors_give_the_values_of_float64():
    pd = pytest.importorskip("pandas", reason="pandas is an optional input kind")
    X, labels = blobs(100, 3, 2)
    X = X.astype(np.float32)
    expected = ws.local_connectivity(X.astype(float), labels).objects
    np.testing.assert_array_equal(ws.local_connectivity(X, labels).objects, expected)
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(ws.local_connectivity(frame, pd.Series(labels)).objects, expected)


@pytest.mark.parametrize("d", [4, 30])
def test_memory_stays_far_below_a_table_of_all_pairs(d):
    X, labels = blobs(12_000, d, 2)
    tracemalloc.start()
    ws.local_connectivity(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 140e6  # all pairs of a cluster of 6,000 would take 288 MB, of all objects 1.2 GB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "k", "avg", "most"), [("wifi_localization", 4, 1.29, 1.36), ("avila", 12, 1.17, 1.34)]
)
def test_k_means_comes_near_the_replicated_table(real_data, name, k, avg, most):
    X = np.load(real_data / f"{name}.npz")["X"].astype(float)
    found = [
        ws.local_connectivity(
            X, KMeans(k, init="random", n_init=1, random_state=seed).fit_predict(X), n_neighbors=3
        )
        for seed in range(10)
    ]
    assert np.mean([f.mean for f in found]) == pytest.approx(avg, abs=0.06)
    assert np.mean([f.maximum for f in found]) == pytest.approx(most, abs=0.06)
