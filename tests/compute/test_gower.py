"""Gower's distance is R's, is computed by blocks, and is summed without pairs."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
import sklearn
from golden import read_json

import wellsep as ws

pd = pytest.importorskip("pandas", reason="pandas is not installed")

CASES = read_json("distances/gower.json")["cases"]


def table_of(columns):
    frame, ordered, asymmetric, weights = {}, {}, [], {}
    for column in columns:
        name, values, kind = column["name"], column["values"], column["kind"]
        weights[name] = column["weight"]
        if kind == "numeric":
            frame[name] = np.array([np.nan if v is None else v for v in values], float)
        elif kind in ("asymmetric", "logical"):  # to daisy a logical is asymmetric
            frame[name] = pd.array(
                [pd.NA if v is None else bool(v) for v in values], dtype="boolean"
            )
            asymmetric.append(name)
        else:
            frame[name] = pd.Series(values, dtype=object)
            if kind == "ordered":
                ordered[name] = column["levels"]
    return ws.MixedTable(
        pd.DataFrame(frame), ordered=ordered, asymmetric=asymmetric, weights=weights
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_distances_are_those_of_daisy(name):
    case = CASES[name]
    table = table_of(case["columns"])
    expected = np.array([[np.nan if v is None else v for v in row] for row in case["matrix"]])
    for i in range(len(expected)):
        for j in range(len(expected)):
            if np.isnan(expected[i, j]):
                continue
            assert table.block([i], [j])[0, 0] == pytest.approx(expected[i, j], abs=1e-12)


def test_rows_without_a_common_column_are_named():
    frame = pd.DataFrame({"a": [1.0, None, 2.0], "b": [None, "x", "y"]})
    with pytest.raises(ValueError, match="rows 0 and 1 have no column in common"):
        ws.silhouette_score(frame, [0, 0, 1], metric="gower")


def test_hand_arithmetic_of_a_mixed_table():
    frame = pd.DataFrame(
        {
            "age": [20, 30, 40, None],
            "colour": ["red", "red", "blue", "blue"],
            "grade": pd.Categorical(["low", "mid", "high", "mid"], ["low", "mid", "high"], True),
            "smokes": [False, True, False, True],
        }
    )
    table = ws.MixedTable(frame, asymmetric=["smokes"])
    found = [table.block([i], [j])[0, 0] for i, j in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3))]
    assert found == pytest.approx([0.5, 1, 2.5 / 3, 0.75, 1 / 3])


def mixed(n, missing=0.05, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n)
    frame = {f"x{c}": rng.normal(size=n) + y * (c < 3) for c in range(6)}
    frame |= {f"c{c}": (y + rng.integers(0, 3, n)).astype(str) for c in range(3)}
    frame |= {f"b{c}": rng.random(n) < 0.2 + 0.1 * y for c in range(3)}
    frame = pd.DataFrame(frame)
    if missing:
        frame.loc[rng.random(n) < missing, "x1"] = np.nan
        frame.loc[rng.random(n) < missing, "c1"] = None
    return frame, y


@pytest.mark.parametrize("missing", [0, 0.1])
@pytest.mark.parametrize("asymmetric", [(), ("b0", "b1")])
def test_sums_without_pairs_equal_those_of_pairs(missing, asymmetric, monkeypatch):
    frame, y = mixed(1600, missing)
    table = ws.MixedTable(frame, asymmetric=asymmetric)
    labels = np.where(np.arange(1600) % 50 == 0, -1, y)
    weight = np.random.default_rng(1).uniform(0.5, 2, 1600)
    summed = ws.silhouette_samples(table, labels, sample_weight=weight)
    with sklearn.config_context(working_memory=0.01):  # too small for the sums of all objects
        in_strips = ws.silhouette_samples(table, labels, sample_weight=weight)
    np.testing.assert_allclose(in_strips, summed, atol=1e-12)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    pairs = ws.silhouette_samples(table, labels, sample_weight=weight)
    np.testing.assert_allclose(summed, pairs, atol=1e-12)


def test_every_index_of_distances_takes_a_mixed_table():
    frame, y = mixed(150)
    names = [name for name in ws.INDICES if ws.INDICES[name].distances and name != "dbcv"]
    table = ws.MixedTable(frame)
    given = ws.score_partitions(frame, y, [(name, {"metric": "gower"}) for name in names]).values
    expected = ws.score_partitions(ws.Distances(np.asarray(table)), y, names).values
    np.testing.assert_allclose(given, expected, rtol=1e-9)
    np.testing.assert_allclose(ws.score_partitions(table, y, names).values, expected, rtol=1e-9)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_have_the_same_distances(library):
    frame, _ = mixed(60)
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "polars":
        other = module.DataFrame({c: [None if v != v else v for v in frame[c]] for c in frame})
    else:
        other = module.Table.from_pandas(frame, preserve_index=False)
    np.testing.assert_allclose(np.asarray(ws.MixedTable(other)), np.asarray(ws.MixedTable(frame)))


NAMES = {
    "numbers": [0, 1, 2],
    "numbers in another order": [2, 0, 1],
    "tuples": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    "none": [None, "x", "y"],
    "not a number": [np.nan, "x", 1.5],
    "dates": pd.date_range("2020-01-01", periods=3),
    "booleans": [True, False, "x"],
    "empty text": ["", " ", "x"],
    "names of methods": ["dtype", "shape", "columns"],
}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("case", NAMES)
def test_names_of_columns_change_nothing(case, library):
    frame, y = mixed(60)
    frame = frame.iloc[:, [0, 1, -1]]
    named = frame.set_axis(pd.Index(NAMES[case], tupleize_cols=False), axis=1)
    if case == "tuples":
        named = frame.set_axis(NAMES[case], axis=1)
    if library == "polars":
        polars = pytest.importorskip("polars", reason="polars is not installed")
        columns = zip(map(str, NAMES[case]), frame.to_numpy(object).T, strict=True)
        named = polars.DataFrame({c: [None if v != v else v for v in col] for c, col in columns})
    if library == "pyarrow":
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        texts = frame.set_axis([str(name) for name in NAMES[case]], axis=1)
        named = pyarrow.Table.from_pandas(texts, preserve_index=False)
    expected = ws.MixedTable(frame)
    np.testing.assert_allclose(np.asarray(ws.MixedTable(named)), np.asarray(expected))
    assert ws.silhouette_score(named, y, metric="gower") == ws.silhouette_score(expected, y)
    fitted = ws.KMedoids(2, metric="gower", random_state=0).fit(named)
    assert (fitted.labels_ == ws.KMedoids(2, random_state=0).fit(expected).labels_).all()
    assert (fitted.predict(named) == fitted.labels_).all()


def test_options_name_columns_as_the_frame_does():
    frame = pd.DataFrame([[1.0, "x", 1], [2.0, "y", 0], [3.0, "x", 0]])
    given = ws.MixedTable(frame, weights={0: 2.0}, ordered={1: ["x", "y"]}, asymmetric=[2])
    texts = frame.set_axis(list("abc"), axis=1)
    options = {"weights": {"a": 2.0}, "ordered": {"b": ["x", "y"]}, "asymmetric": "c"}
    np.testing.assert_array_equal(np.asarray(given), np.asarray(ws.MixedTable(texts, **options)))


@pytest.mark.parametrize("names", [["a", "a"], [None, None], [0, 0], [1, "1"]])
def test_columns_of_one_name_are_refused_in_a_sentence(names):
    frame = pd.DataFrame([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 4.0]], columns=names)
    for call in (
        lambda: ws.MixedTable(frame),
        lambda: ws.silhouette_score(frame, [0, 0, 1, 1], metric="gower"),
        lambda: ws.KMedoids(2, metric="gower").fit(frame),
    ):
        with pytest.raises(ValueError, match=r"frame must have columns of different names.*\.$"):
            call()
    if names[0] == names[1]:
        with pytest.raises(ValueError, match=r"X must have columns of different names.*\.$"):
            ws.silhouette_score(frame, [0, 0, 1, 1])
        with pytest.raises(ValueError, match=r"labels must have columns of different names.*\.$"):
            ws.consensus(frame)


def test_ranges_stay_those_of_all_objects():
    table = table_of(CASES["subset_of_ten"]["columns"])
    part = table.take(range(5))
    np.testing.assert_array_equal(np.asarray(part), np.asarray(table)[:5, :5])


def test_half_samples_of_a_mixed_table_equal_those_of_its_matrix():
    frame, y = mixed(200)
    table = ws.MixedTable(frame)
    parts = {"y": y, "two": y // 3, "mixed": np.random.default_rng(0).permutation(y)}
    given = ws.judge(ws.Runs.from_parts({"s": table}, parts), n_draws=8)
    D = ws.Distances(np.asarray(table))
    expected = ws.judge(ws.Runs.from_parts({"s": D}, parts), n_draws=8)
    np.testing.assert_array_equal(given.confidence.ranks, expected.confidence.ranks)


def test_a_large_table_is_summed_in_bounded_memory():
    frame, y = mixed(20000, missing=0)
    table = ws.MixedTable(frame)
    tracemalloc.start()
    found = ws.silhouette_score(table, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < found < 1
    assert peak < 60e6  # the matrix would have 3.2 GB


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"asymmetric": ["x"]}, "asymmetric must name columns of booleans .* 'x' with 2"),
        ({"asymmetric": ["z"]}, "asymmetric must name columns, got 'z'"),
        ({"weights": {"x": 0, "c": 0}}, "at least one positive"),
        ({"ordered": {"c": ["a"]}}, r"ordered\['c'\] must hold every level"),
    ],
)
def test_bad_options_of_a_mixed_table_say_what_is_wrong(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.MixedTable(pd.DataFrame({"x": [0.0, 2.0], "c": ["a", "b"]}), **options)


def test_infinite_numbers_and_dates_are_refused():
    with pytest.raises(ValueError, match="finite numbers, got inf in column 'x'"):
        ws.MixedTable(pd.DataFrame({"x": [0.0, np.inf]}))
    with pytest.raises(TypeError, match="'t' of type Datetime"):
        ws.MixedTable(pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2021-01-01"])}))


def test_the_oracle_says_what_made_it():
    assert "daisy" in json.dumps(read_json("distances/gower.json")["function"])


def test_categories_that_come_in_two_steps_stay_apart():
    table = ws.MixedTable(pd.DataFrame({"age": [20, 40], "colour": ["red", "blue"]}))
    for colour in ("green", "black", "green"):
        table = table.followed_by(pd.DataFrame({"age": [20], "colour": [colour]}))
    assert table.block([2], [3, 4, 0]).tolist() == [[0.5, 0.0, 0.5]]
