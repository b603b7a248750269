"""Neighbour graphs hold the true nearest objects and true distances, by every search."""

from __future__ import annotations

import numpy as np
import pytest

from wellsep.compute.statistics import neighbour_graph as neighbours
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph


def by_definition(X, k):
    distances = np.sqrt(((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("tree_features", [0, 14, 30])
@pytest.mark.parametrize("d", [1, 5, 30])
def test_trees_and_blocks_find_the_nearest(tree_features, d, offset, monkeypatch):
    monkeypatch.setattr(neighbours, "TREE_FEATURES", tree_features)
    X = np.random.default_rng(0).normal(size=(200, d)) + offset
    graph = NeighbourGraph.of(X, 6)
    np.testing.assert_allclose(graph.distances, by_definition(X, 6), rtol=1e-12)
    assert (graph.indices != np.arange(200)[:, None]).all()


def test_float32_data_have_float64_distances():
    X = np.random.default_rng(0).normal(size=(100, 20)).astype(np.float32)
    graph = NeighbourGraph.of(X, 3)
    np.testing.assert_allclose(graph.distances, by_definition(X, 3), rtol=1e-12)


@pytest.mark.parametrize("tree_features", [0, 14])
def test_duplicates_never_put_an_object_among_its_own_neighbours(tree_features, monkeypatch):
    monkeypatch.setattr(neighbours, "TREE_FEATURES", tree_features)
    X = np.repeat([[0.0, 1.0], [2.0, 2.0]], 20, axis=0)
    graph = NeighbourGraph.of(X, 4)
    assert (graph.distances == 0).all()
    assert (graph.indices != np.arange(40)[:, None]).all()


@pytest.mark.parametrize("k", [1, 3, 8])
def test_crowded_spots_have_the_distances_of_the_definition(k):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2))[rng.integers(25, size=200)]
    graph = NeighbourGraph.of(X, k)
    np.testing.assert_allclose(graph.distances, by_definition(X, k), atol=1e-12)
    assert (graph.indices != np.arange(200)[:, None]).all()
    assert all(len(set(row)) == k for row in graph.indices)


def test_a_hundred_thousand_coinciding_objects_are_no_burden():
    X = np.zeros((100_000, 2))
    X[:10] = np.arange(20).reshape(10, 2)
    graph = NeighbourGraph.of(X, 5)
    assert (graph.distances[10:] == 0).all()
    np.testing.assert_allclose(graph.distances[9], [2 * 2**0.5 * i for i in range(1, 6)])


def test_some_rows_have_the_neighbours_they_have_among_all():
    X = np.random.default_rng(0).normal(size=(300, 3))
    rows = np.array([250, 3, 77])
    graph, some = NeighbourGraph.of(X, 5), NeighbourGraph.of(X, 5, rows=rows)
    np.testing.assert_array_equal(some.indices, graph.indices[rows])
    np.testing.assert_array_equal(some.distances, graph.distances[rows])


def test_as_many_neighbours_as_objects_are_refused():
    with pytest.raises(ValueError, match="n_neighbors must be at most 4, got 5"):
        NeighbourGraph.of(np.zeros((5, 2)), 5)


def test_where_all_objects_coincide_none_is_an_outlier():
    graph = NeighbourGraph.of(np.ones((10, 2)), 3)
    assert graph.outlier_factor().tolist() == [1.0] * 10


def test_searches_in_parts_find_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(150, 3))
    whole = NeighbourGraph.of(X, 4)
    monkeypatch.setattr(neighbours, "_ENTRIES", 3)
    np.testing.assert_array_equal(NeighbourGraph.of(X, 4).indices, whole.indices)
