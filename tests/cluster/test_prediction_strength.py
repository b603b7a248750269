"""Prediction strength is that of R's fpc, of hand arithmetic, and the same for every kind of X."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import pairwise_distances

from wellsep import Distances, UndefinedIndex
from wellsep.cluster.k_choice.prediction_strength import (
    draw_halves,
    nearest_clusters,
    split_strengths,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "stability.json").read_text())


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda c: f"{c['set']}-{c['k']}")
def test_it_is_that_of_fpc_with_ward_in_every_permutation(case):
    X, expected = np.array(ORACLE["inputs"][case["set"]]), case["prediction_strength"]
    for order, value in zip(expected["permutations"], expected["fpc"], strict=True):
        halves = np.split(np.array(order), [expected["first_half"]])
        labels = [AgglomerativeClustering(case["k"]).fit_predict(X[rows]) for rows in halves]
        assert split_strengths(X, halves, labels).weakest == pytest.approx(value, abs=1e-7)


def test_by_hand_one_object_goes_to_the_other_cluster():
    # Means of the first half 1 and 11: the object at 7 goes to 11, so t = (2, 1), 2·1 / (3·2).
    X = np.array([[0.0], [1], [2], [10], [11], [12], [0], [1], [7], [10], [11], [12]])
    halves, labels = (np.arange(6), np.arange(6, 12)), [[0, 0, 0, 1, 1, 1]] * 2
    found = split_strengths(X, halves, labels)
    assert found.first.tolist() == [1, 1]
    np.testing.assert_allclose(found.second, [1 / 3, 1])
    assert found.weakest == pytest.approx(2 / 3)


def test_a_cluster_of_one_object_has_strength_one():
    X = np.array([[0.0], [9.0], [9.5], [0.0], [9.0], [9.5]])
    found = split_strengths(X, ([0, 1, 2], [3, 4, 5]), [[0, 1, 1], [0, 0, 1]])
    assert found.first[0] == 1
    assert found.second[1] == 1


def test_noise_is_in_no_cluster_and_is_not_counted():
    X = np.array([[0.0], [1], [10], [11], [0], [1], [10], [11], [500.0]])
    halves = np.arange(4), np.arange(4, 9)
    plain = split_strengths(X[:8], (halves[0], halves[1][:4]), [[0, 0, 1, 1]] * 2)
    noisy = split_strengths(X, halves, [[0, 0, 1, 1], [0, 0, 1, 1, -1]])
    assert noisy.weakest == plain.weakest == 1
    assert noisy.second.shape == (2,)


def test_a_half_that_is_all_noise_has_no_strength():
    X = np.arange(6.0)[:, None]
    with pytest.raises(UndefinedIndex, match="all objects of one half are noise"):
        split_strengths(X, ([0, 1, 2], [3, 4, 5]), [[0, 1, 1], [-1, -1, -1]])


@pytest.mark.parametrize("kind", [sp.csr_array, np.float32])
def test_sparse_and_single_precision_objects_give_the_same(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) + 100
    halves = draw_halves(80, np.random.RandomState(1))
    labels = [AgglomerativeClustering(4).fit_predict(X[rows]) for rows in halves]
    one, other = split_strengths(X, halves, labels), split_strengths(kind(X), halves, labels)
    np.testing.assert_allclose(one.first, other.first)
    np.testing.assert_allclose(one.second, other.second)


def test_distances_use_the_least_mean_distance():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 50])
    D = pairwise_distances(X)
    halves = draw_halves(40, np.random.RandomState(0))
    labels = [AgglomerativeClustering(2).fit_predict(X[rows]) for rows in halves]
    assert split_strengths(D, halves, labels, metric="precomputed").weakest == 1
    mixed = [np.arange(20) % 2] * 2
    by_mean = D[np.ix_(*halves)]
    nearest = np.stack([by_mean[:, mixed[0] == q].mean(axis=1) for q in range(2)]).argmin(axis=0)
    t = np.array([[(nearest[mixed[0] == c] == q).sum() for q in range(2)] for c in range(2)])
    expected = (t * (t - 1)).sum(axis=1) / (10 * 9)
    found = split_strengths(D, halves, mixed, metric="precomputed")
    np.testing.assert_allclose(found.first, expected)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_a_cluster_without_weight_is_nearest_to_nothing(metric):
    X, weights = np.array([[-10.0], [10.0], [30.0], [-1.0]]), np.array([1.0, 1.0, 0.0, 1.0])
    data = X if metric == "euclidean" else abs(X - X.T)
    others, codes = np.arange(3), np.arange(3)
    assert nearest_clusters(data, np.array([3]), others, codes, metric, weights).tolist() == [0]
    with pytest.raises(UndefinedIndex, match="has weight"):
        nearest_clusters(data, np.array([3]), others, codes, metric, np.zeros(4))


def test_distances_between_halves_keep_to_the_memory_budget():
    class Counted(Distances):
        largest_block = 0

        def block(self, i, j):
            table = super().block(i, j)
            self.largest_block = max(self.largest_block, table.size)
            return table

    X = np.random.default_rng(0).normal(size=(900, 2))
    space, labels = Counted(pairwise_distances(X)), (X[:, 0] > 0).astype(int)
    halves = draw_halves(900, np.random.RandomState(0))
    both = [labels[rows] for rows in halves]
    whole = split_strengths(space, halves, both, "precomputed")
    assert space.largest_block == 450 * 450
    space.largest_block = 0
    with sklearn.config_context(working_memory=1):  # MiB
        parts = split_strengths(space, halves, both, "precomputed")
    assert space.largest_block <= 2**20 / 8
    np.testing.assert_array_equal(parts.first, whole.first)


def test_halves_share_no_object_and_hold_all():
    first, second = draw_halves(11, np.random.RandomState(0))
    assert (len(first), len(second)) == (5, 6)
    assert sorted([*first, *second]) == list(range(11))
