"""DBCV: an independent spelling of the paper, hand arithmetic, noise and corner cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from golden import read_json
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from sklearn.metrics import pairwise_distances

import wellsep as ws
from wellsep.compute.statistics import density_trees


def _brute_tree(D, core):
    """Kruskal over all pairs, by mutual reachability, then by the smaller core distance."""
    n = len(D)
    reach = np.maximum(D, np.maximum(core[:, None], core))
    pairs = sorted(
        (reach[i, j], *sorted((core[i], core[j])), i, j) for i in range(n) for j in range(i)
    )
    parent = list(range(n))

    def root(x):
        while parent[x] != x:
            x = parent[x]
        return x

    edges = []
    for weight, _, _, i, j in pairs:
        p, q = root(i), root(j)
        if p != q:
            parent[p] = q
            edges.append((weight, i, j))
    return edges


def _brute(X, y):
    """Definitions 1 to 8 of the paper, one after the other."""
    d = X.shape[1]
    labels = sorted(set(y[y >= 0]))
    inner, cores, sparseness = [], [], []
    for label in labels:
        P = X[y == label]
        D = cdist(P, P)
        with np.errstate(divide="ignore"):
            density = np.array(
                [(1 / np.delete(row, i)).astype(np.longdouble) ** d for i, row in enumerate(D)]
            )
        core = (density.sum(axis=1) / (len(P) - 1)).astype(np.longdouble) ** (-1 / np.longdouble(d))
        core = core.astype(float)
        edges = _brute_tree(D, core)
        degree = np.bincount([v for _, i, j in edges for v in (i, j)], minlength=len(P))
        inside = [w for w, i, j in edges if degree[i] > 1 and degree[j] > 1]
        sparseness.append(max(inside) if inside else max(w for w, _, _ in edges))
        members = degree > 1 if (degree > 1).any() else degree > 0
        inner.append(P[members])
        cores.append(core[members])
    k = len(labels)
    apart = np.full((k, k), np.inf)
    for i in range(k):
        for j in range(k):
            if i != j:
                reach = np.maximum(cdist(inner[i], inner[j]), cores[i][:, None])
                apart[i, j] = np.maximum(reach, cores[j]).min()
    nearest = apart.min(axis=1)
    validity = (nearest - sparseness) / np.maximum(nearest, sparseness)
    sizes = np.array([(y == label).sum() for label in labels])
    return float((sizes / len(y) * validity).sum()), validity


def _blobs(seed, n=150, d=2, k=3, spread=4.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(k, d))[y], y


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 2, 5])
def test_it_is_what_the_paper_spells_out(seed, d):
    X, y = _blobs(seed, d=d)
    value, validity = _brute(X, y)
    assert ws.dbcv_score(X, y) == pytest.approx(value, rel=1e-7)
    assert ws.dbcv_clusters(X, y) == pytest.approx(validity, rel=1e-7)


def test_objects_labelled_noise_lower_the_value_by_their_share():
    X, y = _blobs(7, spread=8)
    noisy = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    kept = noisy >= 0
    alone = ws.dbcv_score(X[kept], y[kept])
    assert ws.dbcv_score(X, noisy) == pytest.approx(alone * kept.mean(), rel=1e-12)
    assert ws.dbcv_score(X, noisy) == pytest.approx(_brute(X, noisy)[0], rel=1e-7)


def test_the_hand_computes_the_same_on_a_line():
    # one dimension: core of the middle of {0, 1, 2} is 1, of its ends 1/((1 + 1/2)/2) = 4/3
    X = np.array([[0.0], [1], [2], [10], [11], [12]])
    y = [0, 0, 0, 1, 1, 1]
    # one inner object each, no inner edge: all edges count, the longest is 4/3; the inner
    # objects 1 and 11 are 10 apart
    expected = (10 - 4 / 3) / 10
    assert ws.dbcv_clusters(X, y) == pytest.approx([expected, expected])
    assert ws.dbcv_score(X, y) == pytest.approx(expected)


def test_shapes_that_centroids_cannot_see_are_preferred():
    X, moons = make_moons(300, noise=0.05, random_state=0)
    halves = (X[:, 0] > 0.5).astype(int)
    assert ws.dbcv_score(X, moons) > 0 > ws.dbcv_score(X, halves)
    assert ws.silhouette_score(X, moons) < ws.silhouette_score(X, halves)


def test_many_dimensions_neither_overflow_nor_underflow():
    X, y = _blobs(1, d=400, n=90)
    values = [ws.dbcv_score(scale * X, y) for scale in (1e-6, 1.0, 1e6)]
    assert np.isfinite(values).all()
    assert values == pytest.approx([values[1]] * 3, rel=1e-9)


def test_a_cluster_of_one_object_counts_nothing():
    X, y = _blobs(2, k=2, spread=6)
    lone = np.append(y, 2)
    far = np.vstack([X, [[100.0, 100.0]]])
    assert ws.dbcv_clusters(far, lone)[2] == 0
    assert ws.dbcv_score(far, lone) == pytest.approx(
        ws.dbcv_score(X, y) * len(y) / len(lone), rel=1e-9
    )


@pytest.mark.parametrize("ties", ["core", "hdbscan"])
def test_a_cluster_of_one_object_is_noise(ties):
    X, y = _blobs(2, k=2, spread=6)
    apart = np.where(np.arange(len(y)) == 3, 2, y)
    noise = np.where(apart == 2, -1, y)
    assert ws.dbcv_score(X, apart, ties=ties) == ws.dbcv_score(X, noise, ties=ties)
    assert ws.dbcv_score(X, np.arange(len(X)) == 3, ties=ties) == 0  # one cluster and noise


@pytest.mark.parametrize("seed", range(5))
def test_one_object_set_apart_from_a_cloud_is_no_good_clustering(seed):
    X = np.random.default_rng(seed).normal(size=(100, 2))
    outwards = np.argsort((X**2).sum(axis=1))
    for lone in outwards[[0, -1]]:
        assert ws.dbcv_score(X, np.arange(100) == lone) < 0.2


HDBSCAN = read_json("dbcv_hdbscan.json")["cases"]


@pytest.mark.parametrize("case", HDBSCAN, ids=lambda case: case["name"])
def test_the_ties_of_hdbscan_give_its_value(case):
    X, y = np.array(case["X"]), np.array(case["y"])
    assert ws.dbcv_score(X, y, ties="hdbscan") == pytest.approx(case["value"], abs=1e-12)
    assert ws.dbcv_clusters(X, y, ties="hdbscan") == pytest.approx(case["clusters"], abs=1e-12)


def _as_hdbscan(X, y, metric, d):
    """hdbscan's reading with its own distances; their rounding decides which copies are equal."""
    parts = []
    for label in np.unique(y[y >= 0]):
        P = X[y == label]
        D, n = pairwise_distances(P, metric=metric), len(P)
        powers = D.copy()
        powers[D != 0] = (1 / D[D != 0]) ** d
        core = powers.sum(axis=1) / (n - 1)
        core = core ** (-1 / d) if core.sum() else np.zeros(n)
        reach = np.maximum(D, np.maximum(core[:, None], core))
        joined, edges = [0], []
        best = reach[0].copy()
        while len(joined) < n:
            best[joined] = np.inf
            new = int(best.argmin())
            first = min(i for i in joined if np.isclose(reach[new, i], best[new]))
            edges.append((first, new, best[new]))
            joined.append(new)
            best = np.minimum(best, reach[new])
        degree = np.bincount([v for i, j, _ in edges for v in (i, j)], minlength=n)
        inner = np.flatnonzero(degree > 1) if (degree > 1).any() else np.array([0])
        between = [w for i, j, w in edges if degree[i] > 1 and degree[j] > 1]
        parts.append((P[inner], core[inner], max(between or [w for *_, w in edges]), n))
    value = 0
    for P, core, longest, n in parts:
        nearest = min(
            np.maximum(cdist(P, Q, metric), np.maximum(core[:, None], other)).min()
            for Q, other, *_ in parts
            if Q is not P
        )
        value += n / len(y) * (nearest - longest) / max(nearest, longest)
    return value


def _rough(kind, seed):
    """Sets on which rounding decides between trees."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers([12, 1, 2], [50, 6, 4])
    y = np.concatenate([np.arange(k), np.arange(k), rng.integers(-1, k, n - 2 * k)])
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[y]
    return {
        "offset": X + 1e5,
        "duplicates": X[rng.integers(0, n // 2, n)],
        "on a line": np.outer(0.1 * rng.integers(0, 9, n), X[0]) + X[1],
        "whole numbers": np.round(X),
    }[kind], y


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock", "chebyshev"])
@pytest.mark.parametrize("kind", ["offset", "duplicates", "on a line", "whole numbers"])
def test_the_ties_of_hdbscan_are_rounded_as_it_rounds(kind, metric):
    for seed in range(8):
        X, y = _rough(kind, seed)
        for d in (X.shape[1], 2.5):
            power = {} if d == X.shape[1] else {"d": d}
            found = ws.dbcv_score(X, y, ties="hdbscan", metric=metric, **power)
            assert found == pytest.approx(_as_hdbscan(X, y, metric, d), abs=1e-9), (seed, d)


def _inner_of_all_trees(P):
    """Inner objects and longest inner edge of every shortest spanning tree of a few objects."""
    n, D = len(P), cdist(P, P)
    np.fill_diagonal(D, np.inf)
    core = ((D**-2.0).sum(axis=1) / (n - 1)) ** -0.5
    reach = np.maximum(D, np.maximum(core[:, None], core))
    trees = []
    for edges in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        graph = np.zeros((n, n))
        graph[tuple(np.array(edges).T)] = 1
        if connected_components(graph, directed=False)[0] == 1:
            trees.append((sum(reach[e] for e in edges), edges))
    shortest = min(length for length, _ in trees)
    found = set()
    for length, edges in trees:
        if length < shortest * (1 + 1e-9):
            inner = np.bincount(np.ravel(edges), minlength=n) > 1
            longest = max((reach[e] for e in edges if inner[list(e)].all()), default=0)
            found.add((tuple(inner.tolist()), round(float(longest), 9)))
    return found


def test_ties_do_not_matter_where_all_shortest_trees_agree():
    y, unique = np.repeat([0, 1], 4), 0
    for seed in range(60):
        X = np.random.default_rng(seed).normal(size=(8, 2)) + 2 * y[:, None]
        if all(len(_inner_of_all_trees(P)) == 1 for P in (X[:4], X[4:])):
            unique += 1
            assert ws.dbcv_score(X, y) == pytest.approx(
                ws.dbcv_score(X, y, ties="hdbscan"), abs=1e-9
            )
    assert unique >= 5


def test_ties_must_be_a_known_rule():
    with pytest.raises(ValueError, match="ties must be one of 'core', 'hdbscan', got 'first'"):
        ws.dbcv_score([[0.0], [1], [3]], [0, 0, 1], ties="first")


def test_clusters_of_duplicates_have_a_value():
    X = np.repeat(np.array([[0.0, 0], [0, 1], [6, 0], [6, 1]]), 4, axis=0)
    value = ws.dbcv_score(X, np.repeat([0, 0, 1, 1], 4))
    assert value == pytest.approx(1 - 1 / 6, rel=1e-9)


def test_clusters_in_one_place_count_nothing():
    X = np.zeros((6, 2))
    assert ws.dbcv_score(X, [0, 0, 0, 1, 1, 1]) == 0


def test_clusters_of_two_objects_have_a_value():
    X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    assert ws.dbcv_score(X, [0, 0, 1, 1]) == pytest.approx((5 - 1) / 5)


@pytest.mark.parametrize("seed", range(5))
def test_order_does_not_decide_between_equally_short_trees(seed):
    X, y = _blobs(seed, n=80, spread=2)
    order = np.random.default_rng(seed).permutation(80)
    assert ws.dbcv_score(X[order], y[order]) == pytest.approx(ws.dbcv_score(X, y), rel=1e-9)


def test_large_clusters_in_several_blocks_give_the_same_value_on_more_threads():
    X, y = _blobs(3, n=2300, k=3)
    one = ws.score_partitions(X, y, ["dbcv"], n_jobs=1).values
    three = ws.score_partitions(X, y, ["dbcv"], n_jobs=3).values
    assert np.array_equal(one, three)


def _many(seed=0, n=150, d=3):
    """Partitions with clusters of all sizes: large, small, single objects, noise, duplicates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(4, d))[np.arange(n) % 4]
    X[1], X[7] = X[0], X[3]
    two = np.arange(n) % 2
    lonely = two.copy()
    lonely[5] = 7
    noisy = np.where(rng.random(n) < 0.1, -1, np.arange(n) % 4)
    return X, {"two": two, "four": np.arange(n) % 4, "lonely": lonely, "noisy": noisy,
               "many": np.arange(n) // 4, "four again": np.arange(n) % 4 + 5}  # fmt: skip


@pytest.mark.parametrize(
    "sizes",
    [
        {"SHARED": 60, "LARGE": 60},
        {"SHARED": 20, "LARGE": 20, "TOGETHER": 40},
        {"BLOCK": 7},
        {"NARROW": 1},
        {"TOGETHER": 1},
    ],
)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_tables_of_all_objects_of_clusters_or_of_blocks_give_the_same(sizes, d, monkeypatch):
    X, partitions = _many(d=d)
    expected = ws.score_partitions(X, partitions, ["dbcv"]).values
    for name, value in sizes.items():
        monkeypatch.setattr(density_trees, name, value)
    found = ws.score_partitions(X, partitions, ["dbcv"]).values
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_one_partition_among_many_has_the_value_it_has_alone(d):
    X, partitions = _many(d=d)
    together = ws.score_partitions(X, partitions, ["dbcv"]).values[:, 0]
    alone = [ws.dbcv_score(X, labels) for labels in partitions.values()]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_cluster_that_several_partitions_have_is_grown_once(monkeypatch):
    X, partitions = _many()
    grown = []
    grow = density_trees._side_by_side

    def counted(squares, sizes, d):
        grown.extend(sizes)
        return grow(squares, sizes, d)

    monkeypatch.setattr(density_trees, "_side_by_side", counted)
    ws.score_partitions(X, {k: partitions[k] for k in ("two", "four", "four again")}, ["dbcv"])
    assert len(grown) == 2 + 4


def test_far_apart_scales_of_density_do_not_underflow():
    """The nearest object of another cluster is 1e6 times nearer than any of the own."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20, 80))
    X = np.vstack([wide, wide + 1e-6 * rng.normal(size=(20, 80))])
    y = np.arange(40) // 20
    np.testing.assert_allclose(ws.dbcv_clusters(X, y), _brute(X, y)[1], rtol=1e-7)


def test_the_work_does_not_grow_with_the_number_of_clusters(monkeypatch):
    """Small clusters share batches and blocks: none asks for a search of its own."""
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 2))
    calls = {"linkage": 0, "_separation": 0, "spanning_tree": 0}
    for name in calls:
        real = getattr(density_trees, name)

        def counted(*given, real=real, name=name, **more):
            calls[name] += 1
            return real(*given, **more)

        monkeypatch.setattr(density_trees, name, counted)
    ws.dbcv_score(X, np.arange(n) // 3)
    assert calls["linkage"] <= n / 100
    assert (calls["_separation"], calls["spanning_tree"]) == (1, 0)
