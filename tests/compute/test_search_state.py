"""The state of the k-means search equals brute force after every move, compiled or not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from wellsep.cluster.cf_means.centre_search import Budget, CentreSearch, History
from wellsep.compute.kmeans.lloyd import start_centers
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.compute.kmeans.search_state import CentreState

pytest.importorskip("numba", reason="the compiled state needs the extra fast")
from wellsep.compute.kernels.numba_search import CompiledState

STATES = (CentreState, CompiledState)
few = settings(max_examples=12, deadline=None)


def ugly(kind, rng):
    """Clusters, duplicates with many ties, a line of repeated values, many features."""
    if kind == "clusters":
        return rng.normal(size=(90, 3)) + 4 * rng.integers(0, 3, (90, 1))
    if kind == "integers":
        return rng.integers(0, 4, (80, 2)).astype(float)
    if kind == "line":
        return np.repeat(np.arange(14.0), 5)[:, None]
    return rng.normal(size=(40, 30))


KINDS = ("clusters", "integers", "line", "features")


def opened(kind, seed, k, *, weighted=False, metric="euclidean", dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = ugly(kind, rng).astype(dtype)
    weights = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    if weighted:
        weights[:k] = 1.0
    if metric == "cosine":
        X = X + 0.5
        X[3] = 0.0
    points = prepare(X, weights, metric)
    at = rng.choice(np.flatnonzero((points.X != 0).any(axis=1)), k, replace=False)
    return points, points.take(at), rng


def assert_exact(state, tol=1e-9):
    """Everything the state holds, from the table of all distances."""
    X = state.points.take(np.arange(state.points.n))
    weights, k = state.weights, state.k
    squares = ((X[:, None, :] - state.centers[None]) ** 2).sum(axis=2)
    ordered, rows = np.sort(squares, axis=1), np.arange(len(X))
    unit = max(squares.max(), 1e-300)
    close = {"rtol": 0, "atol": tol * unit}
    # Of centres at the same distance the state may name either: compare distances, not labels.
    np.testing.assert_allclose(state.near, ordered[:, 0], **close)
    np.testing.assert_allclose(squares[rows, state.first], ordered[:, 0], **close)
    if k > 1:
        np.testing.assert_allclose(state.far, ordered[:, 1], **close)
        np.testing.assert_allclose(squares[rows, state.second], ordered[:, 1], **close)
        assert (state.first != state.second).all()
    if k > 2 and isinstance(state, CompiledState):
        squares[rows, state.first] = squares[rows, state.second] = np.inf
        assert (np.sqrt(squares.min(axis=1)) >= state.third - 10 * np.sqrt(tol * unit)).all()
        # The bound is of use: a fresh scan knows the third distance.
    mass = np.bincount(state.first, weights, k)
    np.testing.assert_allclose(state.mass, mass, atol=1e-9 * weights.sum())
    sums = np.zeros((k, X.shape[1]))
    np.add.at(sums, state.first, weights[:, None] * X)
    np.testing.assert_allclose(state.sums, sums, atol=1e-9 * max(np.abs(X).sum(), 1.0))
    assert state.cost == pytest.approx(float(ordered[:, 0] @ weights), abs=tol * unit * len(X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", STATES)
@few
@given(seed=st.integers(0, 10**6), k=st.sampled_from([1, 2, 3, 8, 20]), weighted=st.booleans())
def test_the_state_equals_brute_force_after_every_move(make, kind, seed, k, weighted):
    k = min(k, 14) if kind == "line" else k
    points, start, rng = opened(kind, seed, k, weighted=weighted)
    state = make(points, start)
    assert_exact(state)
    for _ in range(4):
        codes = rng.choice(k, rng.integers(1, min(k, 3) + 1), replace=False)
        state.move(codes, points.take(rng.choice(points.n, len(codes))))  # a jump
        assert_exact(state)
        state.descend(floor=1e-5, max_iter=2)  # small ways of several centres
        assert_exact(state)
    state.transfers()
    assert_exact(state)


@pytest.mark.parametrize("make", STATES)
@few
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_the_state_equals_brute_force_on_directions_with_a_zero_row(make, seed, weighted):
    points, start, rng = opened("clusters", seed, 6, weighted=weighted, metric="cosine")
    state = make(points, start)
    for _ in range(3):
        code = rng.integers(6)
        state.move(np.array([code]), points.take(rng.choice([5, 9, 40], 1)))
        state.descend(floor=1e-6, max_iter=3)
        assert_exact(state)
        np.testing.assert_allclose(np.linalg.norm(state.centers, axis=1), 1.0)
    before = state.cost
    state.transfers()
    assert_exact(state)
    assert state.cost <= before * (1 + 1e-9)


@few
@given(seed=st.integers(0, 10**6))
def test_sparse_rows_keep_the_same_state_as_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5)) * rng.integers(0, 2, (60, 5))
    X[:, 0] = rng.normal(size=60)  # no two rows alike
    X[:, 0] = rng.normal(size=60)  # no two rows alike
    sparse, dense = prepare(sp.csr_array(X)), prepare(X)
    start = rng.choice(60, 7, replace=False)
    one, other = CentreState(sparse, X[start]), CentreState(dense, dense.take(start))
    for _ in range(3):
        code, row = np.array([rng.integers(7)]), rng.integers(60)
        one.move(code, X[[row]] + 0.01)  # not on another centre
        other.move(code, dense.take([row]) + 0.01)
        assert_exact(one)
        np.testing.assert_allclose(one.near, other.near, atol=1e-9)
        for state in (one, other):
            state.descend(floor=0.0, max_iter=3)  # a plane through a point would be a tie
        mine, theirs = one.split(2, 0.37), other.split(2, 0.37)
        assert mine.gain == pytest.approx(theirs.gain, abs=1e-9)


@pytest.mark.parametrize("make", STATES)
def test_single_precision_rows_keep_a_state_exact_to_their_rounding(make):
    points, start, rng = opened("clusters", 3, 12, dtype=np.float32)
    state = make(points, start)
    for _ in range(6):
        state.move(rng.choice(12, 2, replace=False), points.take(rng.choice(90, 2)))
        state.descend(floor=1e-5, max_iter=3)
        assert_exact(state, tol=1e-6)
    assert state.sums.dtype == state.near.dtype == np.float64


@pytest.mark.parametrize("kind", ["clusters", "features"])  # ties may be broken either way
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_compiled_state_does_what_the_reference_does(kind, metric):
    for seed in range(4):
        points, start, rng = opened(kind, seed, 7, weighted=seed % 2 == 1, metric=metric)
        pair = [make(points, start) for make in STATES]
        for _ in range(4):
            codes = rng.choice(7, 2, replace=False)
            apart = cdist(points.take(np.arange(4, points.n)), pair[0].centers).min(axis=1)
            places = points.take(4 + rng.choice(np.flatnonzero(apart > 1e-6), 2, replace=False))
            for state in pair:
                state.move(codes, places)
                state.descend(floor=1e-5, max_iter=3, target=state.cost * 0.99, pace=3.0)
            one, other = pair
            assert one.cost == pytest.approx(other.cost, rel=1e-9, abs=1e-9)
            np.testing.assert_array_equal(one.touched, other.touched)
            for mine, theirs in zip(one.losses(), other.losses(), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
            code = int(np.argmax(one.losses()[1]))
            mine, theirs = one.split(code, 0.4), other.split(code, 0.4)
            assert mine.gain == pytest.approx(theirs.gain, rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(mine.one, theirs.one, atol=1e-9)
        assert pair[0].transfers() == pair[1].transfers()
        np.testing.assert_allclose(pair[0].centers, pair[1].centers, atol=1e-9)


class ByCoin(CentreSearch):
    """What trials have cost does not choose the next one."""

    def operator(self):
        return "split" if self.random_state.uniform() < 0.5 else "point"


def searched(make, monkeypatch):
    monkeypatch.setattr(CentreSearch, "open_state", make)
    rng = np.random.default_rng(1)
    points = prepare(rng.normal(size=(400, 4)) + 3 * rng.integers(0, 4, (400, 4)))
    draws = np.random.RandomState(0)

    def restart():
        return start_centers(points, 20, "k-means++", draws)

    history = History()
    search = ByCoin(points, restart(), restart, Budget(60), draws, history=history)
    return search.run(), history


def test_a_compiled_search_takes_the_moves_of_the_reference_with_fewer_distances(monkeypatch):
    one, first = searched(CentreState, monkeypatch)
    other, second = searched(CompiledState, monkeypatch)
    np.testing.assert_allclose(one.centers, other.centers, rtol=1e-9)
    assert one.n_moves == other.n_moves > 0
    assert one.work > 2 * other.work
    costs = [history.columns()["inertia"] for history in (first, second)]
    np.testing.assert_allclose(*costs, rtol=1e-9)
    for history in (first, second):
        assert (np.diff(history.columns()["work"]) >= 0).all()
        assert (np.diff(history.columns()["inertia"]) <= 0).all()


def test_exact_gains_are_what_the_cost_falls_by():
    points, start, _ = opened("clusters", 5, 6, weighted=True)
    state = CentreState(points, start)
    state.descend(floor=0.0, max_iter=100)
    weights = state.weights

    def cost(centers):
        X = points.X
        return float(((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1) @ weights)

    losses, own = state.losses()
    for code in range(6):
        without = cost(np.delete(state.centers, code, axis=0))
        assert losses[code] == pytest.approx(without - state.cost)
        found = state.split(code, 0.3)
        if found.gain > 0:
            rows = state.first == code
            two = np.stack([found.one, found.other])
            parted = ((points.X[rows, None] - two) ** 2).sum(axis=2).min(axis=1) @ weights[rows]
            assert parted <= own[code] - found.gain + 1e-9


def test_a_cluster_of_equal_points_cannot_be_split():
    points = prepare(np.array([[0.0], [0.0], [0.0], [5.0], [6.0]]))
    for make in STATES:
        state = make(points, points.take([0, 3]))
        assert state.split(0, 0.5).gain <= 0.0
        assert state.split(1, 0.5).gain > 0.0


def test_more_centres_than_distinct_points_end_the_search_at_cost_zero():
    points = prepare(np.repeat(np.arange(4.0), 5)[:, None])
    draws = np.random.RandomState(0)
    found = CentreSearch(
        points,
        points.take([0, 0, 5, 10, 15, 15]),
        lambda: points.take([0] * 6),
        Budget(1000),
        draws,
    ).run()
    assert found.cost == 0.0
    assert np.isfinite(found.centers).all()
