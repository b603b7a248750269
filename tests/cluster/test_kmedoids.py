"""KMedoids reaches R's best cost on every matrix and keeps scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from golden import read_arrays, read_json
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws
from wellsep.cluster.faster_pam import _State, faster_pam

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


def hand_table():
    """The table of test_gower: ages between 20 and 40, grades between low and high."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(
        {
            "age": [20, 30, 40, None],
            "colour": ["red", "red", "blue", "blue"],
            "grade": ["low", "mid", "high", "mid"],
            "smokes": [0, 1, 0, 1],
        }
    )
    table = ws.MixedTable(frame, asymmetric=["smokes"], ordered={"grade": ["low", "mid", "high"]})
    return pd, frame, table


def test_new_rows_of_a_mixed_table_go_to_the_medoid_that_hand_arithmetic_names():
    pd, frame, table = hand_table()
    new = pd.DataFrame(
        {
            "grade": ["mid", "high", None],
            "smokes": [0, 1, 0],
            "age": [25, 50, 22],
            "colour": ["red", "green", None],
        }
    )
    far = table.followed_by(new).block([4, 5, 6], [0, 1, 2, 3])
    by_hand = [
        [(0.25 + 0 + 0.5) / 3, (0.25 + 0 + 0 + 1) / 4, (0.75 + 1 + 0.5) / 3, (1 + 0 + 1) / 3],
        [(1.5 + 1 + 1 + 1) / 4, (1 + 1 + 0.5 + 0) / 4, (0.5 + 1 + 0 + 1) / 4, (1 + 0.5 + 0) / 3],
        [0.1, (0.4 + 1) / 2, 0.9, 1.0],
    ]
    np.testing.assert_allclose(far, by_hand, atol=1e-15)
    model = ws.KMedoids(2, init="build").fit(table)
    expected = far[:, model.medoid_indices_].argmin(axis=1)
    np.testing.assert_array_equal(model.predict(new), expected)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


def test_new_rows_have_the_distances_of_daisy_under_the_ranges_of_fit():
    case = read_json("distances/gower.json")["cases"]["subset_of_ten"]
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({c["name"]: c["values"] for c in case["columns"]})
    ordered = {"o": ["a", "b", "c", "d"]}
    # The rows of fit hold the smallest and the largest number, so that their range is that of all.
    first = [5, 8, 0, 1, 2, 3]
    rest = [4, 6, 7, 9]
    table = ws.MixedTable(frame.iloc[first], ordered=ordered)
    far = table.followed_by(frame.iloc[rest]).block(np.arange(6, 10), np.arange(6))
    np.testing.assert_allclose(far, np.array(case["matrix"])[np.ix_(rest, first)], atol=1e-12)
    model = ws.KMedoids(3, random_state=0).fit(table)
    expected = far[:, model.medoid_indices_].argmin(axis=1)
    np.testing.assert_array_equal(model.predict(frame.iloc[rest]), expected)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library_are_predicted_as_they_were_fitted(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.normal(size=60),
        "b": rng.choice(list("xyz"), 60),
        "c": rng.random(60) > 0.5,
    }
    made = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    model = ws.KMedoids(4, metric="gower", random_state=0).fit(made)
    np.testing.assert_array_equal(model.predict(made), model.labels_)
    assert model.n_features_in_ == 3


def test_what_cannot_be_predicted_says_why():
    _, frame, table = hand_table()
    model = ws.KMedoids(2, init="build").fit(table)
    for new, error, sentence in (
        (frame.drop(columns="age"), ValueError, "must have the columns .* without 'age'"),
        (frame.assign(pet="cat"), ValueError, "must have the columns .* with 'pet'"),
        (
            frame.assign(colour=1.0),
            TypeError,
            "'colour' of the new rows must hold categories as",
        ),
        (
            frame.assign(age="old"),
            TypeError,
            "'age' of the new rows must hold numbers .*got cat",
        ),
        (frame.assign(grade="top"), ValueError, "every level of the column, got none for 'top'"),
        (table, TypeError, "must be a frame with the columns of fit, got MixedTable"),
    ):
        with pytest.raises(error, match=sentence):
            model.predict(new)
    given = ws.KMedoids(2, init="build").fit(ws.Distances(np.asarray(table)))
    with pytest.raises(ValueError, match="3 features, but KMedoids is expecting 4"):
        given.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="at least 0, got -1 in row 1, column"):
        given.predict(np.array([[0.0] * 4, [-1.0] * 4]))
    with pytest.raises(ValueError, match="to the 4 objects of fit, got Distances\\(3 obj"):
        given.predict(ws.Distances([1.0, 2, 1]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_objects_are_predicted_from_their_distances_to_those_of_fit(dtype):
    X, _ = make_blobs(130, 3, centers=4, random_state=0)
    by_rows = ws.KMedoids(4, random_state=0).fit(X[:100])
    D = ws.Distances(pdist(X[:100]))
    given = ws.KMedoids(4, random_state=0).fit(D)
    np.testing.assert_array_equal(given.medoid_indices_, by_rows.medoid_indices_)
    far = cdist(X[100:], X[:100]).astype(dtype)
    np.testing.assert_array_equal(given.predict(far), by_rows.predict(X[100:]))
    np.testing.assert_array_equal(given.predict(D), given.labels_)


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


@parametrize_with_checks(
    [ws.KMedoids(2, n_init=2, random_state=0), ws.KMedoids(2, metric="cosine", init="build")]
)
def test_the_contract_of_scikit_learn_holds(estimator, check):
    check(estimator)


ROWS = make_blobs(90, 4, centers=3, random_state=3)[0]
MIXED = pd.DataFrame({"x": ROWS[:, 0], "c": np.where(ROWS[:, 1] > 0, "a", "b")})
FITS = {
    "rows": (ROWS, {}, cdist(ROWS, ROWS)),
    "float32": (ROWS.astype(np.float32), {}, cdist(ROWS, ROWS)),
    "frame": (pd.DataFrame(ROWS, columns=list("abcd")), {}, cdist(ROWS, ROWS)),
    "sparse": (sp.csr_array(ROWS), {}, cdist(ROWS, ROWS)),
    "sparse by columns": (sp.csc_matrix(ROWS), {}, cdist(ROWS, ROWS)),
    "squares": (ROWS, {"metric": "sqeuclidean"}, cdist(ROWS, ROWS) ** 2),
    "cosine": (ROWS, {"metric": "cosine"}, cdist(ROWS, ROWS, "cosine")),
    "sparse cosine": (sp.csr_array(ROWS), {"metric": "cosine"}, cdist(ROWS, ROWS, "cosine")),
    "manhattan": (ROWS, {"metric": "manhattan"}, cdist(ROWS, ROWS, "cityblock")),
    "function": (ROWS, {"metric": lambda a, b: abs(a - b).max()}, cdist(ROWS, ROWS, "chebyshev")),
    "matrix": (cdist(ROWS, ROWS), {"metric": "precomputed"}, cdist(ROWS, ROWS)),
    "distances": (ws.Distances(pdist(ROWS)), {}, cdist(ROWS, ROWS)),
    "mixed": (MIXED, {"metric": "gower"}, np.asarray(ws.MixedTable(MIXED))),
}


@pytest.mark.parametrize("case", FITS)
def test_transform_gives_the_distances_to_the_medoids(case):
    X, options, D = FITS[case]
    model = ws.KMedoids(3, random_state=0, **options)
    table = model.fit_transform(X)
    narrow = case == "float32"
    rel = 1e-5 if narrow else 1e-12
    np.testing.assert_allclose(table, D[:, model.medoid_indices_], rtol=rel, atol=rel)
    assert table.dtype == (np.float32 if narrow else np.float64)
    np.testing.assert_array_equal(model.transform(X), table)
    np.testing.assert_array_equal(model.predict(X), table.argmin(axis=1))
    assert table.min(axis=1).sum() == pytest.approx(model.inertia_, rel=rel)
    assert model.get_feature_names_out().tolist() == ["kmedoids0", "kmedoids1", "kmedoids2"]


@pytest.mark.parametrize("case", ["rows", "sparse", "cosine", "squares", "manhattan"])
@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_transform_and_inertia_have_the_unit_of_the_objects(case, factor):
    X, options, _ = FITS[case]
    plain = ws.KMedoids(3, random_state=0, **options).fit(X)
    scaled = ws.KMedoids(3, random_state=0, **options).fit(X * factor)
    power = {"cosine": 0, "squares": 2}.get(case, 1)
    np.testing.assert_array_equal(scaled.medoid_indices_, plain.medoid_indices_)
    assert scaled.inertia_ == pytest.approx(plain.inertia_ * factor**power, rel=1e-12)
    table = scaled.transform(X * factor) / factor**power
    np.testing.assert_allclose(table, plain.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_give_what_dense_rows_give(metric):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((120, 30)) * (rng.random((120, 30)) < 0.2))
    X = sp.vstack([X, X[3:4]]).tocsr()  # two objects in one place
    dense = ws.KMedoids(4, metric=metric, random_state=0).fit(X.toarray())
    sparse = ws.KMedoids(4, metric=metric, random_state=0).fit(X)
    np.testing.assert_array_equal(sparse.medoid_indices_, dense.medoid_indices_)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.cluster_centers_, dense.cluster_centers_)
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-12)
    with pytest.raises(TypeError, match="dense data is required"):
        ws.KMedoids(4, metric="manhattan").fit(X)


@pytest.mark.parametrize("case", FITS)
def test_given_positions_are_where_medoids_start(case):
    X, options, D = FITS[case]
    best = ws.KMedoids(3, random_state=0, **options).fit(X)
    again = ws.KMedoids(3, init=best.medoid_indices_.tolist(), **options).fit(X)
    np.testing.assert_array_equal(again.medoid_indices_, best.medoid_indices_)
    assert again.n_iter_ == 1  # nothing was left to exchange
    worse = ws.KMedoids(3, init=[0, 1, 2], **options).fit(X)
    assert worse.inertia_ <= D[:, :3].min(axis=1).sum() * (1 + 1e-6)


@pytest.mark.parametrize("case", ["rows", "float32", "frame", "sparse", "cosine", "function"])
def test_given_rows_start_at_the_objects_nearest_to_them(case):
    X, options, _ = FITS[case]
    at = np.array([5, 40, 77])
    by_position = ws.KMedoids(3, init=at, **options).fit(X)
    by_rows = ws.KMedoids(3, init=ROWS[at] * (1 + 1e-6), **options).fit(X)
    np.testing.assert_array_equal(by_rows.medoid_indices_, by_position.medoid_indices_)
    assert by_rows.inertia_ == by_position.inertia_


@pytest.mark.parametrize(
    ("case", "init", "error", "sentence"),
    [
        ("rows", [0, 1], ValueError, "init must name 3 different objects, got 2"),
        ("rows", [0, 1, 1], ValueError, "init must name 3 different objects, got 2"),
        ("rows", [0, 1, 90], ValueError, "init must be below 90, got 90"),
        ("rows", [0.0, 1.0, 2.0], TypeError, "init must be whole numbers"),
        ("rows", None, TypeError, "init must be whole numbers"),
        ("rows", "heuristic", ValueError, "init must be one of 'random', 'build'"),
        ("rows", np.zeros((3, 4)), ValueError, "init must name 3 different objects, got 1"),
        ("rows", np.zeros((3, 5)), ValueError, r"rows with the columns of X, .* shape \(3, 5\)"),
        ("rows", np.full((3, 4), np.nan), ValueError, "init must be finite"),
        ("distances", np.zeros((3, 4)), ValueError, "init must be positions of objects, or"),
        ("mixed", np.zeros((3, 2)), ValueError, "init must be positions of objects, or"),
    ],
)
def test_a_start_that_names_no_objects_is_refused_in_a_sentence(case, init, error, sentence):
    X, options, _ = FITS[case]
    with pytest.raises(error, match=sentence):
        ws.KMedoids(3, init=init, **options).fit(X)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis", "dc"])
def test_new_rows_are_refused_where_all_rows_of_fit_decide_the_distance(metric):
    model = ws.KMedoids(3, metric=metric, random_state=0).fit(ROWS)
    assert model.labels_.max() == 2
    refusal = f"got '{metric}', which needs all rows at once; read labels_, and give init as pos"
    with pytest.raises(ValueError, match=refusal):
        model.predict(ROWS[:5])
    with pytest.raises(ValueError, match=refusal):
        ws.KMedoids(3, metric=metric, init=ROWS[:3] + 1e-6).fit(ROWS)


@pytest.mark.parametrize("k", [2, 12, 13, 30])
def test_no_exchange_of_a_medoid_for_another_object_lowers_the_cost(k):
    D = squareform(pdist(np.random.default_rng(0).normal(size=(120, 3))))
    model = ws.KMedoids(k, metric="precomputed", n_init=1, random_state=0).fit(D)
    others = np.setdiff1d(np.arange(120), model.medoid_indices_)
    for m in range(k):
        rest = np.delete(model.medoid_indices_, m)
        without = D[:, rest].min(axis=1)
        costs = np.minimum(without[:, None], D[:, others]).sum(axis=0)
        assert costs.min() >= model.inertia_ * (1 - 1e-9)
