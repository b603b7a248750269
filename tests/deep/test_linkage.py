"""Both agglomerations equal brute-force twins, and cost far less than a cubic one."""

from __future__ import annotations

import cProfile
import itertools
import pstats
import time

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.compute.statistics.neighbour_graph import NeighbourGraph
from wellsep.deep import degree_linkage, path_integral
from wellsep.deep.linkage.degree import DegreeLinkage
from wellsep.deep.linkage.merging import (
    chains,
    gaussian_weights,
    merge_clusters,
    renumbered,
)
from wellsep.deep.linkage.paths import PathIntegral


def mixture(n, d=5, k=4, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return 2 * rng.normal(size=(k, d))[labels] + spread * rng.normal(size=(n, d)), labels


def groups_of(labels):
    return [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]


def degree_affinity(W, a, b):
    def half(i, j):  # what j sends to each of i, times what each of i sends to j
        return (W[np.ix_(j, i)].sum(axis=0) * W[np.ix_(i, j)].sum(axis=1)).sum() / len(j) ** 2

    return half(a, b) + half(b, a)


def path_affinity(P, z, a, b):
    union = np.concatenate([a, b])
    inverse = np.linalg.inv(np.eye(len(union)) - z * P[np.ix_(union, union)])

    def alone(c):
        return np.linalg.inv(np.eye(len(c)) - z * P[np.ix_(c, c)]).sum() / len(c) ** 2

    inside_a, inside_b = inverse[: len(a), : len(a)], inverse[len(a) :, len(a) :]
    return inside_a.sum() / len(a) ** 2 - alone(a) + inside_b.sum() / len(b) ** 2 - alone(b)


def brute_force(labels, n_clusters, affinity, n_local):
    """All affinities anew for every merge; graphs here leave no cluster without affinity."""
    groups = groups_of(labels)
    while len(groups) > n_clusters:
        A = np.zeros((len(groups), len(groups)))
        for i, j in itertools.combinations(range(len(groups)), 2):
            A[i, j] = A[j, i] = affinity(groups[i], groups[j])
        best = np.sort(A, axis=1)[:, ::-1]
        scores = best[:, 0].copy()
        for k in range(1, n_local):
            behind = best[:, k] if k < len(groups) - 1 else 0.0
            scores += (best[:, 0] - behind) / (n_local - 1)
        i = int(scores.argmax())
        j = int(A[i].argmax())
        groups[min(i, j)] = np.concatenate([groups[i], groups[j]])
        del groups[max(i, j)]
    merged = np.empty(len(labels), dtype=int)
    for code, group in enumerate(groups):
        merged[group] = code
    return renumbered(merged)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_local", [1, 5])
def test_degree_linkage_merges_like_brute_force(seed, n_local):
    X = np.random.default_rng(seed).uniform(size=(120, 3))  # no clusters: every merge is close
    near = NeighbourGraph.of(X, 12)
    start = chains(near.indices)
    W = gaussian_weights(near.indices, near.distances).toarray()
    expected = brute_force(start, 6, lambda a, b: degree_affinity(W, a, b), n_local)
    found = merge_clusters(
        DegreeLinkage(gaussian_weights(near.indices, near.distances), start),
        start,
        6,
        points=X,
        n_local=n_local,
        reach=12,
    )
    assert start.max() > 8
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("z", [0.01, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_path_integral_merges_like_brute_force(seed, z):
    X = np.random.default_rng(seed).uniform(size=(90, 3))
    near = NeighbourGraph.of(X, 12)
    start = chains(near.indices)
    W = gaussian_weights(near.indices, near.distances).toarray()
    P = W / W.sum(axis=1, keepdims=True)
    expected = brute_force(start, 5, lambda a, b: path_affinity(P, z, a, b), 1)
    affinity = PathIntegral(gaussian_weights(near.indices, near.distances), start, z)
    found = merge_clusters(affinity, start, 5, points=X, reach=12)
    np.testing.assert_array_equal(found, expected)


def test_affinities_stay_exact_while_clusters_merge():
    X, _ = mixture(50, seed=3)
    near = NeighbourGraph.of(X, 8)
    start = chains(near.indices)
    W = gaussian_weights(near.indices, near.distances).toarray()
    linkage = DegreeLinkage(gaussian_weights(near.indices, near.distances), start)
    rows = linkage.rows()
    groups = {i: list(g) for i, g in enumerate(groups_of(start))}
    rng = np.random.default_rng(0)
    for _ in range(5):
        i, j = rng.choice(sorted(groups), 2, replace=False)
        kept, row = linkage.merge(int(i), int(j))
        gone = int(j) if kept == i else int(i)
        groups[kept] += groups.pop(gone)
        expected = {
            c: degree_affinity(W, np.array(groups[kept]), np.array(g))
            for c, g in groups.items()
            if c != kept
        }
        expected = {c: value for c, value in expected.items() if value > 0}
        assert row == pytest.approx(expected, rel=1e-12)
    assert len(rows) == start.max() + 1


def test_a_small_cluster_nobody_points_to_joins_the_nearest_centroid():
    crowd = np.random.default_rng(0).normal(size=(60, 2))
    far = np.random.default_rng(1).normal(size=(60, 2)) + np.array([40, 0])
    strays = np.array([[52.0, 0.0], [52.1, 0.0]])  # their neighbours lie in `far`, not vice versa
    labels = degree_linkage(np.concatenate([crowd, far, strays]), 2, n_neighbors=10)
    np.testing.assert_array_equal(labels, [0] * 60 + [1] * 62)


def test_large_groups_without_affinity_are_merged_by_centroid_only_at_the_end():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.1, size=(40, 2)) for c in (0.0, 5.0, 50.0)])
    np.testing.assert_array_equal(
        degree_linkage(X, 2, n_neighbors=10), [0] * 40 + [0] * 40 + [1] * 40
    )


def test_neighbours_are_the_exact_ones():
    X, _ = mixture(300, d=7)
    distances, indices = NearestNeighbors(n_neighbors=6).fit(X).kneighbors()
    found = NeighbourGraph.of(X + 1e4, 6)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-6)


@pytest.mark.parametrize("agglomerate", [degree_linkage, path_integral])
def test_duplicates_alone_do_not_break_the_graph(agglomerate):
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 15, axis=0)
    np.testing.assert_array_equal(agglomerate(X, 2, n_neighbors=5), [0] * 15 + [1] * 15)


@pytest.mark.parametrize("agglomerate", [degree_linkage, path_integral])
def test_more_clusters_than_objects_are_refused(agglomerate):
    with pytest.raises(ValueError, match="n_clusters must be at most 5"):
        agglomerate(np.zeros((5, 2)), 6)


def calls(n):
    X, _ = mixture(n, d=10, k=10)
    near = NeighbourGraph.of(X, 20)
    start, W = chains(near.indices), gaussian_weights(near.indices, near.distances)
    profile = cProfile.Profile()
    profile.enable()
    merge_clusters(DegreeLinkage(W, start), start, 10, points=X, n_local=5)
    profile.disable()
    return pstats.Stats(profile).total_calls


def test_the_cost_of_degree_linkage_grows_no_faster_than_n_to_the_one_and_a_half():
    assert calls(8000) / calls(2000) < 4**1.5


@pytest.mark.slow
def test_ten_thousand_objects_are_agglomerated_in_a_minute():
    X, truth = mixture(10_000, d=10, k=10)
    start = time.perf_counter()
    labels = degree_linkage(X, 10)
    assert time.perf_counter() - start < 60
    assert normalized_mutual_info_score(truth, labels) > 0.9


@pytest.mark.slow
def test_path_integral_takes_ten_thousand_objects_in_two_minutes():
    X, truth = mixture(10_000, d=10, k=10)
    start = time.perf_counter()
    labels = path_integral(X, 10)
    assert time.perf_counter() - start < 120
    assert normalized_mutual_info_score(truth, labels) > 0.9


class _Rounded:
    """Affinities whose last digit is lost when clusters 0 and 1 merge."""

    def rows(self):
        return [{1: 1.0, 2: 1e-17}, {0: 1.0, 2: 2e-17}, {0: 1e-17, 1: 2e-17}, {}]

    def merge(self, first, second):
        return first, {}


def test_an_affinity_that_rounds_to_nothing_leaves_no_merged_cluster_behind():
    # Cluster 2 must not join cluster 1 after 1 has gone: four clusters would end as three.
    points = np.array([[0.0], [1.0], [3.0], [50.0]])
    labels = merge_clusters(_Rounded(), np.arange(4), 2, points=points, reach=0)
    assert labels.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("agglomerate", [degree_linkage, path_integral])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"X": np.array([[0.0], [np.nan], [2.0], [3.0]])}, "X must be finite, got nan in column 0"),
        ({"X": np.array([1.0, 2.0, 3.0])}, "X must be two-dimensional"),
        ({"labels": np.array(1)}, "labels must be one value per object"),
        ({"labels": [0, 1, 1]}, r"labels must have one entry per object \(4\), got 3"),
        ({"labels": [0, 1, 1, -2]}, "labels must not hold noise"),
    ],
)
def test_what_cannot_be_agglomerated_is_refused(agglomerate, change, sentence):
    given = {"X": np.arange(4.0)[:, None], "n_clusters": 2, **change}
    with pytest.raises(ValueError, match=sentence):
        agglomerate(given.pop("X"), given.pop("n_clusters"), **given)
