"""The minimum spanning tree is exact, with plain distances and with mutual reachability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from wellsep.compute.metrics.squares import rows_of
from wellsep.compute.statistics.spanning_tree import (
    Dissimilarities,
    nearest_neighbours,
    spanning_tree,
)


def _data(n, d, seed, spread=5.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(5, d))[rng.integers(0, 5, n)]


def _spans(edges, n):
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[0] == 1 and len(edges) == n - 1


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 2), (9, 1), (700, 3), (1300, 20)])
@pytest.mark.parametrize("spread", [0.0, 50.0])
def test_the_tree_is_as_short_as_scipys(n, d, spread):
    X = _data(n, d, n + d, spread)
    tree = spanning_tree(Dissimilarities(rows_of(X)), 2)
    assert _spans(tree.edges, n)
    expected = np.sort(minimum_spanning_tree(cdist(X, X)).data)
    assert np.sort(np.sqrt(tree.squares)) == pytest.approx(expected, rel=1e-10)


def test_the_tree_of_mutual_reachability_is_as_short_as_scipys():
    X = _data(900, 3, 1)
    core = np.random.default_rng(2).uniform(0, 4, 900)
    reach = np.sqrt(np.maximum(cdist(X, X, "sqeuclidean"), np.maximum(core[:, None], core)))
    tree = spanning_tree(Dissimilarities(rows_of(X), core), 1)
    assert _spans(tree.edges, 900)
    expected = np.sort(minimum_spanning_tree(reach).data)
    assert np.sort(np.sqrt(tree.squares)) == pytest.approx(expected, rel=1e-9)


def test_objects_in_one_place_are_joined_at_no_length():
    X = np.repeat(_data(60, 4, 3), 15, axis=0) + 1e3
    tree = spanning_tree(Dissimilarities(rows_of(X - X.mean(axis=0))), 1)
    assert _spans(tree.edges, 900)
    assert int((tree.squares == 0).sum()) == 900 - 60


def test_objects_that_all_coincide_have_a_tree():
    tree = spanning_tree(Dissimilarities(rows_of(np.zeros((70, 2)))), 1)
    assert _spans(tree.edges, 70)
    assert (tree.squares == 0).all()


def test_nearest_neighbours_are_the_nearest_others():
    X = _data(1100, 6, 4)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    found = nearest_neighbours(Dissimilarities(rows_of(X)), 2)
    assert np.array_equal(found.nearest, D.argmin(axis=1))
    assert np.sqrt(found.square) == pytest.approx(D.min(axis=1), rel=1e-9)
