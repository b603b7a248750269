"""KMedoids reaches R's best cost on every matrix and keeps scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pytest
from golden import read_arrays, read_json
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws
from wellsep.compute.pam import _State, faster_pam

CASES = read_json("distances/kmedoids.json")["cases"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_cost_is_no_larger_than_that_of_r(name):
    case = CASES[name]
    values = read_arrays("distances/matrices.npz")[name.split("|")[0]]
    model = ws.KMedoids(case["K"], n_init=20, random_state=0).fit(ws.Distances(values))
    theirs = min(case[way]["total"] for way in ("pam", "pam_faster"))
    assert model.inertia_ <= theirs * (1 + 1e-9)
    if case.get("optimum"):
        assert model.inertia_ == pytest.approx(case["optimum"][0], rel=1e-9)
    D = squareform(values)
    assert model.inertia_ == pytest.approx(D[:, model.medoid_indices_].min(axis=1).sum())
    np.testing.assert_array_equal(model.labels_[model.medoid_indices_], range(case["K"]))


def test_a_predicted_change_is_the_true_one():
    rng = np.random.default_rng(0)
    D = squareform(pdist(rng.normal(size=(40, 3))))
    state = _State(lambda at: D[at], np.array([3, 9, 21]))
    changes = state.changes(D)
    for candidate in (0, 17, 30):
        for medoid in range(3):
            medoids = [3, 9, 21]
            medoids[medoid] = candidate
            true = D[:, medoids].min(axis=1).sum() - state.cost
            assert changes[candidate, medoid] == pytest.approx(true, abs=1e-9)


def test_no_exchange_improves_what_was_found():
    rng = np.random.default_rng(1)
    D = squareform(pdist(rng.normal(size=(90, 2))))
    found = faster_pam(lambda at: D[at], 90, np.array([0, 1, 2, 3]), 100)
    for medoid in range(4):
        for candidate in range(90):
            medoids = found.medoids.copy()
            medoids[medoid] = candidate
            assert D[:, medoids].min(axis=1).sum() >= found.cost * (1 - 1e-9)


def test_coordinates_distances_and_frames_give_the_same_medoids():
    X, _ = make_blobs(150, 3, centers=4, random_state=0)
    by_rows = ws.KMedoids(4, random_state=0).fit(X)
    for other in (ws.Distances(pdist(X)), ws.Distances(squareform(pdist(X)))):
        assert ws.KMedoids(4, random_state=0).fit(other).inertia_ == pytest.approx(by_rows.inertia_)
    given = ws.KMedoids(4, metric="precomputed", random_state=0).fit(cdist(X, X))
    np.testing.assert_array_equal(given.medoid_indices_, by_rows.medoid_indices_)
    np.testing.assert_array_equal(by_rows.predict(X), by_rows.labels_)
    np.testing.assert_array_equal(given.predict(cdist(X, X)), given.labels_)
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")})
    model = ws.KMedoids(3, metric="gower", random_state=0).fit(frame)
    table = np.asarray(ws.MixedTable(frame))
    assert model.inertia_ == pytest.approx(table[:, model.medoid_indices_].min(axis=1).sum())


def test_one_cluster_and_as_many_as_objects():
    X = np.array([[0.0], [1], [5], [6]])
    assert ws.KMedoids(1, random_state=0).fit(X).inertia_ == 10.0
    assert ws.KMedoids(4, random_state=0).fit(X).inertia_ == 0.0


def test_build_is_a_start_without_chance():
    X, _ = make_blobs(80, 2, centers=3, random_state=1)
    first, second = (ws.KMedoids(3, init="build").fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.medoid_indices_, second.medoid_indices_)


def test_cross_validation_cuts_a_matrix_both_ways():
    X, _ = make_blobs(60, 2, centers=3, random_state=1)
    found = cross_val_predict(ws.KMedoids(3, metric="precomputed", random_state=0), cdist(X, X))
    assert len(found) == 60


@parametrize_with_checks([ws.KMedoids(2, n_init=2, random_state=0)])
def test_the_contract_of_scikit_learn_holds(estimator, check):
    check(estimator)
