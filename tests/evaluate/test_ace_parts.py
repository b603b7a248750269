"""The parts of ACE hold by themselves: ranks, correlations, grouping, link analysis."""

from __future__ import annotations

import numpy as np
import pytest
from golden import read_arrays, read_json
from scipy import stats

from wellsep.evaluate.ace_method.groups import (
    dbscan,
    density_groups,
    hdbscan,
    hits,
    pagerank,
    row_distances,
)
from wellsep.evaluate.ranks import average_ranks, rank_agreement, tied_classes


def line(*points: float) -> np.ndarray:
    x = np.array(points)
    return np.abs(x[:, None] - x)


@pytest.mark.parametrize("seed", ["seed1", "seed2"])
def test_the_peers_statistics_are_reproduced(seed):
    rows = read_arrays("indices/ace_stats.npz")[seed]
    theirs = read_json("indices/ace_stats.json")["cases"][seed]
    found = rank_agreement("spearman", rows)
    pair = np.triu_indices(len(rows), 1)
    rho, edges = np.array(theirs["spearman_rho"]), np.array(theirs["affinity_after_holm"])
    np.testing.assert_allclose(found.correlation[pair], rho[pair], atol=1e-14)
    np.testing.assert_allclose(found.pvalue[pair], theirs["spearman_p_greater"], rtol=1e-9)
    grouped = hdbscan(found.distance)
    np.testing.assert_array_equal(grouped.labels, theirs["hdbscan_labels_mincluster2"])
    np.testing.assert_allclose(grouped.outlier_scores, theirs["hdbscan_outlier_scores"], atol=1e-13)
    # networkx stops at an error of 1e-6 per node
    np.testing.assert_allclose(pagerank(edges), theirs["pagerank_alpha0_9"], atol=1e-5)
    np.testing.assert_allclose(
        pagerank(edges, damping=0.85), theirs["pagerank_alpha0_85"], atol=1e-5
    )
    np.testing.assert_allclose(hits(edges), theirs["hits_authority"], atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("m", [3, 8, 40])
def test_correlations_and_pvalues_equal_scipy(m, ties):
    rng = np.random.default_rng(m)
    rows = rng.normal(size=(5, m)) + np.linspace(0, 2, m)
    rows = np.round(rows * 2) if ties else rows
    rows[0, 0] -= 9  # no row is constant
    pair = np.triu_indices(5, 1)
    for kind, function in (("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        found = rank_agreement(kind, rows)
        theirs = [
            function(rows[i], rows[j], alternative="greater") for i, j in zip(*pair, strict=True)
        ]
        np.testing.assert_allclose(
            found.correlation[pair], [t.statistic for t in theirs], atol=1e-13
        )
        exact = function is stats.spearmanr or ties or m <= 33  # scipy's exact p ends at 33
        np.testing.assert_allclose(
            found.pvalue[pair], [t.pvalue for t in theirs], atol=1e-12 if exact else 0.01
        )
        np.testing.assert_allclose(found.distance, 1 - found.correlation, atol=1e-15)


def test_equal_ranks_are_at_distance_zero_exactly():
    rows = np.array([[0.1, 0.2, 0.3, 0.4, 0.4], [1, 2, 5, 9, 9], [2, 1, 5, 9, 9.0]])
    found = rank_agreement("spearman", rows)
    assert found.distance[0, 1] == 0.0
    assert found.correlation[0, 1] == 1.0
    assert found.distance[0, 2] > 0


def test_one_swap_among_many_keeps_its_distance_to_full_precision():
    m = 200
    first = np.arange(m, dtype=float)
    second = first.copy()
    second[[50, 51]] = second[[51, 50]]
    exact = 12 / (m * (m**2 - 1))  # 1 - r = 6 Σd² / (M (M² - 1))
    found = rank_agreement("spearman", np.array([first, second]))
    assert found.distance[0, 1] == pytest.approx(exact, rel=1e-14)


def test_two_partitions_have_no_pvalue():
    found = rank_agreement("spearman", np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 4.0]]))
    assert np.isnan(found.pvalue).all()
    np.testing.assert_array_equal(found.correlation[0], [1.0, 1.0, -1.0])


def test_scores_closer_than_rounding_are_tied():
    values = np.array([0.3, 0.1 + 0.2, 0.7, 1e-17, -1e-17, 0.0])
    assert tied_classes(values).tolist() == [1, 1, 2, 0, 0, 0]
    assert tied_classes(values, tolerance=0.0).tolist() == [3, 4, 5, 2, 0, 1]
    assert average_ranks(values).tolist() == [4.5, 4.5, 6.0, 2.0, 2.0, 2.0]


def test_large_and_small_scores_keep_their_order():
    values = np.array([1e6, 1.0, 1.0 + 1e-8])
    assert tied_classes(values).tolist() == [2, 0, 1]


def test_two_clumps_make_two_groups_and_a_far_point_none():
    found = hdbscan(line(0, 0.1, 0.25, 5, 5.1, 5.25, 40))
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert found.outlier_scores[6] == found.outlier_scores.max()


def test_edges_of_equal_weight_merge_at_once():
    """Four equal clumps at equal distances: a sort would pair some of them by chance."""
    distance = np.full((12, 12), 10.0)
    for k in range(4):
        distance[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = 1.0
    np.fill_diagonal(distance, 0.0)
    assert hdbscan(distance).labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


@pytest.mark.parametrize("seed", range(8))
def test_grouping_follows_any_order_of_the_points(seed):
    rng = np.random.default_rng(seed)
    distance = line(*rng.integers(0, 12, 10).astype(float), *rng.integers(30, 36, 5))
    order = rng.permutation(15)
    first, second = hdbscan(distance), hdbscan(distance[np.ix_(order, order)])
    together = first.labels[order][:, None] == first.labels[order]
    np.testing.assert_array_equal(together, second.labels[:, None] == second.labels)
    np.testing.assert_array_equal(first.labels[order] < 0, second.labels < 0)
    np.testing.assert_allclose(first.outlier_scores[order], second.outlier_scores)


def test_a_bridge_between_two_groups_joins_neither_whatever_the_order():
    """Its second neighbour lies in the other group: both are at its core distance of 1.05."""
    from sklearn.cluster import HDBSCAN

    points = np.array([0.0, 0.1, 0.2, 1.2, 2.25, 2.35, 2.45])
    ours, theirs = set(), set()
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(points))
        back = np.argsort(order)
        distance = line(*points[order])
        labels = hdbscan(distance).labels[back]
        ours.add((labels[3] == labels[0], labels[3] == labels[6]))
        usual = HDBSCAN(min_cluster_size=2, min_samples=3, metric="precomputed", copy=True)
        labels = usual.fit(distance).labels_[back]
        theirs.add((labels[3] == labels[0], labels[3] == labels[6]))
    assert ours == {(False, False)}
    assert theirs >= {(True, False), (False, True)}


def test_scikit_learn_finds_the_same_groups_where_nothing_ties():
    from sklearn.cluster import HDBSCAN

    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(40, 2)) + 6 * (np.arange(40) % 3)[:, None]
        distance = row_distances(points)
        theirs = HDBSCAN(min_cluster_size=4, min_samples=3, metric="precomputed", copy=True)
        labels = theirs.fit(distance).labels_
        ours = hdbscan(distance, min_cluster_size=4, min_samples=2).labels
        np.testing.assert_array_equal(ours[:, None] == ours, labels[:, None] == labels)
        np.testing.assert_array_equal(ours < 0, labels < 0)


def test_without_density_groups_the_inliers_form_one():
    turn = np.arange(8) * np.pi / 4
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    distance = row_distances(np.vstack([ring, [[60, 0]]]))
    labels, fallback = density_groups(distance)
    assert fallback
    assert labels.tolist() == [0] * 8 + [-1]
    scores = hdbscan(distance).outlier_scores
    low, high = np.quantile(scores, [0.25, 0.75])
    assert scores[8] > high + 1.5 * (high - low)


def test_points_at_distance_zero_leave_no_outliers():
    assert hdbscan(line(0, 0, 0, 7)).outlier_scores.tolist() == [0, 0, 0, 0]
    assert density_groups(line(0, 0, 0, 7))[0].tolist() == [0, 0, 0, 0]


def test_dbscan_joins_chains_and_leaves_single_points():
    assert dbscan(line(0, 0.1, 0.2, 0.9), 0.1).tolist() == [0, 0, 0, -1]
    assert dbscan(line(0, 0.1, 0.2, 0.9), 0.05).tolist() == [-1, -1, -1, -1]


def test_rows_equal_up_to_rounding_are_at_distance_zero():
    rows = np.array([[0.3, 0.6], [0.1 + 0.2, 0.6], [0.3, 0.7]])
    assert row_distances(rows)[0, 1] == 0.0
    assert row_distances(rows)[0, 2] == pytest.approx(0.1)


def test_pagerank_solves_its_own_equation():
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.5), 1)
    weights = weights + weights.T
    weights[5] = weights[:, 5] = 0.0  # a space without links
    rank = pagerank(weights)
    out = weights.sum(axis=1, keepdims=True)
    steps = np.where(out > 0, weights / np.where(out > 0, out, 1), 1 / 6)
    np.testing.assert_allclose(rank, 0.1 / 6 + 0.9 * steps.T @ rank, atol=1e-15)
    assert rank.sum() == pytest.approx(1)


def test_link_analysis_without_edges_weighs_all_alike():
    nothing = np.zeros((3, 3))
    assert pagerank(nothing).tolist() == pytest.approx([1 / 3] * 3)
    assert hits(nothing).tolist() == pytest.approx([1 / 3] * 3)


def test_hits_ends_where_power_iteration_ends():
    weights = np.array([[0, 0.9, 0.4, 0], [0.9, 0, 0, 0.2], [0.4, 0, 0, 0.7], [0, 0.2, 0.7, 0]])
    authority = np.ones(4)
    for _ in range(3000):
        authority = weights.T @ (weights @ authority)
        authority /= authority.sum()
    np.testing.assert_allclose(hits(weights), authority, atol=1e-12)
