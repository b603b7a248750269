"""A space given by distances is checked once, cut both ways, and judged as its coordinates are."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.metrics
from golden import read_arrays, read_json
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris

import wellsep as ws
from wellsep.compute.data.opening import open_space


def blobs(n=120, k=4, d=3, gap=3.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) * k // n
    return rng.normal(size=(n, d)) + gap * y[:, None], y


def partitions(y, seed=0):
    return {"k4": y, "k2": y // 2, "mixed": np.random.default_rng(seed).permutation(y)}


FORMS = {
    "square": lambda X: ws.Distances(squareform(pdist(X))),
    "float32": lambda X: ws.Distances(squareform(pdist(X)).astype(np.float32)),
    "condensed": lambda X: ws.Distances(pdist(X)),
    "graph": lambda X: ws.Distances(sp.csr_array(squareform(pdist(X))), absent=0.0),
}


# --- what is refused ----------------------------------------------------------------------------


def spoilt(kind, dtype=np.float64):
    D = squareform(pdist(blobs()[0])).astype(dtype)
    if kind == "wide":
        return np.hstack([D, D])
    if kind == "diagonal":
        D[3, 3] = 0.1 * D.max()
    if kind == "asymmetric":
        D[2, 5] += 1
    if kind == "negative":
        D[2, 5] = D[5, 2] = -1
    if kind == "nan":
        D[2, 5] = np.nan
    if kind == "similarities":
        return 1 - D / D.max()
    return D


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("wide", r"square matrix .* got shape \(120, 240\)"),
        ("diagonal", "zeros on its diagonal, got .* at 3,"),
        ("asymmetric", r"symmetric, got .* at \(2, 5\) and .* at \(5, 2\)"),
        ("negative", r"not have negative distances, got -1.0 at \(2, 5\)"),
        ("nan", r"be finite, got nan"),
        ("similarities", "looks like similarities"),
    ],
)
def test_what_holds_no_distances_is_refused_with_the_place(kind, sentence):
    y = blobs()[1]
    with pytest.raises(ValueError, match="values must .*" + sentence):
        ws.Distances(spoilt(kind))
    with pytest.raises(ValueError, match="X must .*" + sentence):
        ws.score_partitions(spoilt(kind), y, [("silhouette", {"metric": "precomputed"})])


def test_a_small_unit_does_not_hide_a_wrong_matrix():
    with pytest.raises(ValueError, match="symmetric"):
        ws.Distances(1e-9 * spoilt("asymmetric"))


def test_what_rounding_leaves_in_float32_is_read_as_distances():
    X, y = blobs(d=40)
    Z = X.astype(np.float32)
    square = (Z**2).sum(axis=1)
    D = np.sqrt(np.maximum(square[:, None] + square - 2 * Z @ Z.T, 0))
    assert D.diagonal().any()
    assert ws.silhouette_score(ws.Distances(D), y) == pytest.approx(
        ws.silhouette_score(X, y), abs=1e-4
    )
    assert not ws.Distances(D).block([0, 1], [0, 1]).diagonal().any()


def test_the_matrix_given_is_never_changed():
    D = squareform(pdist(blobs()[0])).astype(np.float32)
    D[4, 4] = 1e-5
    before = D.copy()
    ws.silhouette_score(ws.Distances(D), blobs()[1])
    np.testing.assert_array_equal(D, before)


def test_a_list_that_no_number_of_objects_has_is_refused():
    with pytest.raises(ValueError, match=r"n\(n−1\)/2 entries .* got 7; 6 would be of 4 objects"):
        ws.Distances(np.ones(7))


def test_rows_and_columns_of_a_frame_must_be_in_the_same_order():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    D = squareform([1.0, 2.0, 3.0])
    good = pd.DataFrame(D, index=list("abc"), columns=list("abc"))
    assert ws.Distances(good).names == ("a", "b", "c")
    assert ws.Distances(good).take([2, 0]).names == ("c", "a")
    with pytest.raises(ValueError, match="columns in the order of its rows"):
        ws.Distances(good[["b", "a", "c"]])


def test_rows_alone_of_a_space_of_distances_cannot_be_taken():
    D = ws.Distances(pdist(blobs()[0]))
    with pytest.raises(TypeError):
        D[np.arange(5)]


def test_a_square_table_that_looks_like_distances_is_warned_of():
    X, y = blobs()
    D = squareform(pdist(X))
    for call in (
        lambda: ws.silhouette_score(D, y),
        lambda: ws.judge(ws.Runs.from_parts({"s": D}, partitions(y)), n_draws=0),
    ):
        with pytest.warns(UserWarning, match=r"looks like a matrix of distances.*Distances\("):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ws.silhouette_score(D, y, metric="precomputed")
        ws.silhouette_score(D + np.eye(len(D)), y)


# --- values -------------------------------------------------------------------------------------


def test_the_condensed_order_is_that_of_pdist():
    x = np.array([[0.0], [1], [3], [7]])
    assert pdist(x).tolist() == [1, 3, 7, 2, 6, 4]
    np.testing.assert_array_equal(np.asarray(ws.Distances(pdist(x))), np.abs(x - x.T))


@pytest.mark.parametrize("form", FORMS)
def test_an_index_of_distances_is_that_of_the_coordinates(form):
    X, y = blobs(1100)
    labels = {"y": y, "noise": np.where(np.arange(1100) % 9 == 0, -1, y)}
    names = [name for name in ws.INDICES if ws.INDICES[name].distances and name != "dbcv"]
    given = ws.score_partitions(FORMS[form](X), labels, names)
    plain = ws.score_partitions(X, labels, names)
    assert given.indices == plain.indices
    rel = 1e-5 if form == "float32" else 1e-10
    np.testing.assert_allclose(given.values, plain.values, rtol=rel)


@pytest.mark.parametrize("noise", ["penalize", "cluster", "singletons"])
def test_noise_costs_in_distances_what_it_costs_in_coordinates(noise):
    X, y = blobs()
    labels = np.where(np.arange(len(y)) % 7 == 0, -1, y)
    for index in ("silhouette", "calinski_harabasz"):
        spec = {"indices": [index], "noise": noise}
        given = ws.score_partitions(ws.Distances(pdist(X)), labels, **spec).values
        assert given == pytest.approx(ws.score_partitions(X, labels, **spec).values, rel=1e-10)


@pytest.mark.parametrize(
    "kinds",
    [
        ("single", "complete"),
        ("complete", "average"),
        ("hausdorff", "complete"),
        ("average", "half-average"),
    ],
)
def test_generalised_dunn_takes_distances_where_no_centroid_is_asked(kinds):
    X, y = blobs()
    options = dict(zip(("separation", "diameter"), kinds, strict=True))
    given = ws.generalized_dunn_score(ws.Distances(pdist(X)), y, **options)
    assert given == pytest.approx(ws.generalized_dunn_score(X, y, **options), rel=1e-10)
    with pytest.raises(ValueError, match="separation must need no centroids"):
        ws.generalized_dunn_score(ws.Distances(pdist(X)), y, separation="centroid")


def test_calinski_harabasz_of_iris_needs_no_coordinates():
    iris = load_iris()
    found = ws.calinski_harabasz_score(ws.Distances(pdist(iris.data)), iris.target)
    assert found == pytest.approx(ws.calinski_harabasz_score(iris.data, iris.target), rel=1e-10)


@pytest.mark.parametrize("name", sorted(n for n in ws.INDICES if not ws.INDICES[n].distances))
def test_an_index_that_needs_coordinates_refuses_by_name(name):
    X, y = blobs()
    with pytest.raises(ValueError, match=f"coordinates for '{name}', got distances; .*silhouette"):
        ws.score_partitions(ws.Distances(pdist(X)), y, [name])


def test_functions_of_coordinates_refuse_distances():
    X, y = blobs()
    D = ws.Distances(pdist(X))
    for call in (
        lambda: ws.gap_statistic(D, y),
        lambda: ws.margins(D, y),
        lambda: ws.KMeans(2).fit(D),
    ):
        with pytest.raises((TypeError, ValueError), match="coordinates"):
            call()


ORACLE = read_json("distances/indices.json")["cases"]
CASES = [(name, part) for name in ORACLE for part in ORACLE[name]["partitions"]]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_indices_of_matrices_are_those_of_r(name, part):
    values, case = read_arrays("distances/matrices.npz")[name], ORACLE[name]["partitions"][part]
    labels, D, theirs = case["labels"], ws.Distances(values), case["R"]
    widths = np.array([np.nan if w is None else w for w in theirs["silhouette_widths"]], float)
    counted = np.asarray(labels) >= 0
    found = ws.silhouette_samples(D, labels)[counted]
    np.testing.assert_allclose(found, widths[counted] if len(widths) > counted.sum() else widths,
                               atol=1e-12)  # fmt: skip
    ours = {
        "silhouette": ws.silhouette_score(D, labels),
        "dunn": ws.dunn_score(D, labels),
        "ch": ws.calinski_harabasz_score(D, labels),
        "c_index": ws.c_index_score(D, labels),
        "dunn2": ws.generalized_dunn_score(D, labels),
    }
    for index, value in ours.items():
        assert value == pytest.approx(theirs[index], rel=1e-9, abs=1e-12), index
    for kinds, value in case["generalized_dunn"].items():
        separation, diameter = kinds.split("/")
        found = ws.generalized_dunn_score(D, labels, separation=separation, diameter=diameter)
        assert found == pytest.approx(value, rel=1e-9), kinds


DBCV = read_json("distances/dbcv.json")["cases"]


def _matrix_of(name):
    """A case's distances, labels and power."""
    case = DBCV[name]
    if "matrix" in case:
        return np.array(case["matrix"]), np.array(case["labels"]), case["d"]
    matrix, part, power = name.split("|")
    arrays = read_arrays("distances/matrices.npz")
    D = arrays[matrix]
    return squareform(D) if D.ndim == 1 else D, arrays[f"{matrix}|{part}"], int(power[2:])


@pytest.mark.parametrize("name", DBCV)
def test_dbcv_of_matrices_is_that_of_hdbscan_with_its_ties(name):
    D, labels, d = _matrix_of(name)
    if DBCV[name]["hdbscan"] is None:
        pytest.skip("hdbscan fails on clusters of one object")
    found = ws.dbcv_score(ws.Distances(D), labels, d=d, ties="hdbscan")
    assert found == pytest.approx(DBCV[name]["hdbscan"], abs=1e-9)


@pytest.mark.parametrize("name", DBCV)
def test_dbcv_of_matrices_does_not_depend_on_the_order_of_the_objects(name):
    D, labels, d = _matrix_of(name)
    rng = np.random.default_rng(0)
    expected = ws.dbcv_score(ws.Distances(D), labels, d=d)
    if "matrix" in DBCV[name]:  # one tree is the shortest, whatever the rule
        assert expected == pytest.approx(DBCV[name]["dbcv"], abs=1e-9)
    for order in (rng.permutation(len(labels)) for _ in range(3)):
        found = ws.dbcv_score(ws.Distances(D[np.ix_(order, order)]), labels[order], d=d)
        assert found == pytest.approx(expected, abs=1e-9)


def test_dbcv_of_distances_needs_d():
    with pytest.raises(ValueError, match="d must be given where X holds distances"):
        ws.dbcv_score(ws.Distances(pdist(blobs()[0])), blobs()[1])


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine"])
def test_dbcv_of_rows_equals_that_of_their_distances(metric):
    X, y = blobs()
    D = ws.Distances(pdist(X, metric))
    given = ws.dbcv_score(D, y, d=3)
    assert given == pytest.approx(ws.dbcv_score(X, y, metric=metric, d=3), rel=1e-6)
    assert given == pytest.approx(ws.dbcv_score(X, y, metric=metric), rel=1e-6)


# --- half-samples -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [200, 900])
def test_judge_on_distances_equals_judge_on_rows_draw_by_draw(n):
    X, y = blobs(n)
    options = {"n_draws": 12, "dip": n <= 500}
    rows = ws.judge(ws.Runs.from_parts({"s": X}, partitions(y)), **options)
    given = ws.judge(ws.Runs.from_parts({"s": ws.Distances(pdist(X))}, partitions(y)), **options)
    np.testing.assert_array_equal(given.confidence.ranks, rows.confidence.ranks)
    np.testing.assert_allclose(given.answer.scores, rows.answer.scores, rtol=1e-9)
    assert given.ranking.best == rows.ranking.best
    if n <= 500:
        np.testing.assert_allclose(given.scores.dip.pvalue, rows.scores.dip.pvalue, atol=1e-9)


@pytest.mark.parametrize("index", ["silhouette", "dunn", "calinski_harabasz", "c_index"])
def test_half_samples_cut_rows_and_columns(index):
    from halved import score_halves

    from wellsep.evaluate.certainty.half_samples import draw_halves
    from wellsep.partitions import Partitions

    X, y = blobs(160)
    parts = Partitions.from_labels(partitions(y))
    halves = draw_halves(160, 6, 8, np.random.default_rng(1))
    params = dict(ws.INDICES[index].params)
    given = score_halves(ws.Distances(pdist(X)), parts, index, params, halves)
    np.testing.assert_allclose(given, score_halves(X, parts, index, params, halves), rtol=1e-9)


def test_a_space_of_distances_is_scored_on_dask_workers_as_here():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    X, y = blobs()
    runs = ws.Runs.from_parts({"s": ws.Distances(pdist(X))}, partitions(y))
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        there = ws.judge(runs, n_draws=6, scheduler=client)
    here = ws.judge(runs, n_draws=6)
    np.testing.assert_array_equal(there.confidence.ranks, here.confidence.ranks)


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_distances_survive_a_folder(tmp_path, form):
    X, y = blobs()
    D = FORMS[form](X)
    ws.save_run(tmp_path, D, y, name="a")
    run = ws.load_runs(tmp_path, verify=True)["a"]
    assert (run.n_features, type(run.embedding)) == (None, ws.Distances)
    assert (run.embedding.kind, run.embedding.dtype) == (D.kind, D.dtype)
    np.testing.assert_array_equal(np.asarray(run.embedding), np.asarray(D))
    file = {"graph": "distances.npz"}.get(form, "distances.npy")
    assert (tmp_path / "a" / file).exists()


def test_a_folder_with_a_file_of_distances_is_a_run_of_distances(tmp_path):
    X, y = blobs()
    for name, values in (("square", squareform(pdist(X))), ("list", pdist(X))):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "distances.npy", values)
        np.save(tmp_path / name / "labels.npy", y)
    np.savetxt(tmp_path / "flat.distances.csv", squareform(pdist(X)), delimiter=",")
    runs = ws.load_runs(tmp_path)
    scores = ws.score_runs(runs).values["silhouette"]
    assert scores == pytest.approx(ws.silhouette_score(X, y), rel=1e-9)


def test_coordinates_and_distances_in_one_run_are_an_error(tmp_path):
    X, _ = blobs()
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a" / "distances.npy", pdist(X))
    np.save(tmp_path / "a" / "embedding.npy", X)
    with pytest.raises(ValueError, match="'a' must be in one file, got embedding.npy and dist"):
        ws.load_runs(tmp_path)


def test_a_memory_map_stays_a_map(tmp_path):
    n = 1500
    X, y = blobs(n)
    file = np.lib.format.open_memmap(tmp_path / "D.npy", "w+", np.float32, (n, n))
    file[:] = squareform(pdist(X))
    file.flush()
    del file
    mapped = np.load(tmp_path / "D.npy", mmap_mode="r")
    runs = ws.Runs.from_parts({"s": ws.Distances(mapped)}, partitions(y))
    tracemalloc.start()
    ws.judge(runs, ["silhouette", "calinski_harabasz", "dunn"], n_draws=4, details=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Axes are computed of at most 2,000 objects, so that their tables do not grow with n.
    assert isinstance(runs.spaces["s"].values, np.memmap)
    assert peak < 5 * 8 * n * n
    tracemalloc.start()
    ws.score_partitions(ws.Distances(mapped), y, ["silhouette", "calinski_harabasz", "dunn"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * 4 * n * n + 20e6


# --- graphs -------------------------------------------------------------------------------------


def test_a_graph_keeps_stored_zeros_and_both_directions():
    row, column = [0, 0, 1, 2], [1, 2, 3, 3]
    graph = sp.coo_array(([0.0, 2.0, 5.0, 1.0], (row, column)), shape=(4, 4))
    found = np.asarray(ws.Distances(graph, absent=9.0))
    assert found.tolist() == [[0, 0, 2, 9], [0, 0, 9, 5], [2, 9, 0, 1], [9, 5, 1, 0]]


def test_absent_pairs_of_a_graph_are_unknown_unless_told():
    X, y = blobs()
    graph = sp.csr_array(np.where(squareform(pdist(X)) < 2, squareform(pdist(X)), 0))
    with pytest.raises(ValueError, match="absent pairs are unknown"):
        ws.silhouette_score(ws.Distances(graph), y)
    with pytest.raises(ValueError, match="absent pairs are unknown"):
        ws.judge(ws.Runs.from_parts({"s": ws.Distances(graph)}, partitions(y)))


def test_a_graph_is_never_made_dense():
    n = 6000
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(n), 5)
    graph = sp.coo_array((rng.uniform(0.1, 1, 5 * n), (row, (row + 1 + np.tile(range(5), n)) % n)),
                         shape=(n, n))  # fmt: skip
    D = ws.Distances(graph, absent=2.0)
    tracemalloc.start()
    ws.silhouette_score(D, np.arange(n) // (n // 3 + 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 10


# --- the door -----------------------------------------------------------------------------------


def test_extreme_units_of_distances_change_no_value():
    X, y = blobs()
    names = ["silhouette", "calinski_harabasz"]
    expected = ws.score_partitions(X, y, names).values
    for scale in (1e-200, 1e200):
        D = ws.Distances(pdist(X) * scale)
        assert ws.score_partitions(D, y, names).values == pytest.approx(expected, rel=1e-9)


def test_a_space_of_distances_names_its_metric():
    assert open_space(ws.Distances([1.0, 2.0, 2.0])).own_metric == "precomputed"
    with pytest.raises(ValueError, match="metric must be left out for 'silhouette'"):
        ws.silhouette_score(ws.Distances(pdist(blobs()[0])), blobs()[1], metric="manhattan")


def test_widths_are_those_of_scikit_learn():
    X, y = blobs()
    D = squareform(pdist(X, "cityblock"))
    expected = sklearn.metrics.silhouette_samples(D, y, metric="precomputed")
    np.testing.assert_allclose(ws.silhouette_samples(ws.Distances(D), y), expected, atol=1e-12)
