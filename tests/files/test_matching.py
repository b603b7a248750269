"""Rows of two tables, and pandas objects, are matched by their names or the difference is told."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.tables.matching import match_rows


def matched(ids, others):
    rows, sentence = match_rows(ids, others, "x.csv", "y.csv")
    return None if rows is None else rows.tolist(), sentence


def test_rows_are_found_by_their_ids():
    assert matched(["a", "b"], ["a", "b"]) == (None, None)
    assert matched(["a", "b"], ["b", "c", "a"])[0] == [2, 0]
    assert "1 other left out" in matched(["a", "b"], ["b", "c", "a"])[1]
    assert matched([7, 3], ["3", "7"])[0] == [1, 0]  # numbers in one file are text in another


def test_numbers_of_rows_are_no_ids():
    assert matched(["0", "1", "2"], None) == (None, None)
    assert matched([1, 2, 3], ["a", "b", "c"])[0] is None
    assert matched(None, None) == (None, None)


def test_ids_of_one_table_are_told():
    for ids in (["b", "a"], ["c10", "c12", "c11", "c20"], ["c1", "c2", "c3"]):
        rows, sentence = matched(None, ids)
        assert rows is None
        assert sentence.startswith("ids not compared: x.csv has none")
    assert matched(["b", "a"], None)[1].startswith("ids not compared: y.csv has none")


@pytest.mark.parametrize("ids", [[1, 0, 2], ["c003", "c001", "c002"], ["cell3", "cell2", "cell1"]])
def test_consecutive_numbers_out_of_order_in_one_table_are_refused(ids):
    with pytest.raises(ValueError, match="ids must be in both files where the rows of one are out"):
        matched(None, ids)
    with pytest.raises(ValueError, match="got no ids in y.csv and numbers that do not rise in x"):
        matched(ids, None)


@pytest.mark.parametrize(
    ("others", "why"), [(["a", "c"], "no 'b' in y.csv"), (["b", "a", "a"], "one of them twice")]
)
def test_other_objects_are_refused(others, why):
    with pytest.raises(ValueError, match=f"ids must name the same objects .* got {why}"):
        matched(["a", "b"], others)


CALLS = {
    "silhouette_score": lambda X, y: ws.silhouette_score(X, y),
    "sample_size": lambda X, y: ws.silhouette_score(X, y, sample_size=10, random_state=0),
    "score_partitions": lambda X, y: ws.score_partitions(X, {"y": y}).values.tolist(),
    "a list": lambda X, y: ws.score_partitions(X, [y]).values.tolist(),
    "describe_clusters": lambda X, y: ws.describe_clusters(X, y).sizes.tolist(),
    "membership_report": lambda X, y: ws.membership_report(X, y).margins.tolist(),
    "local_connectivity": lambda X, y: ws.local_connectivity(X, y).objects.tolist(),
    "stability": lambda X, y: ws.stability(None, X, y, n_draws=3, random_state=0).jaccard.tolist(),
}


@pytest.mark.parametrize("name", CALLS)
def test_pandas_labels_in_another_order_are_put_in_that_of_the_data(name):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    X = pd.DataFrame(rng.normal(size=(40, 2)) + 9 * truth[:, None], columns=["a", "b"])
    X.index = [f"c{i}" for i in range(40)]
    y = pd.Series(truth, index=X.index)
    right = CALLS[name](X, y)
    with pytest.warns(UserWarning, match="labels have the index of X in another order"):
        assert CALLS[name](X, y.sample(frac=1, random_state=0)) == right


def test_pandas_labels_of_another_index_are_taken_as_they_stand(recwarn):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = pd.DataFrame({"a": [0.0, 0.1, 9.0, 9.2]})
    for index in ([4, 5, 6, 7], [1, 1, 2, 3], None):
        assert ws.silhouette_score(X, pd.Series([0, 0, 1, 1], index=index)) > 0.9
    assert not recwarn.list


def test_a_column_that_looks_like_ids_is_warned_of():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = pd.DataFrame({"customer_id": [10, 11, 12, 13], "a": [0.0, 0.1, 9.0, 9.2]})
    with pytest.warns(UserWarning, match="X has a column 'customer_id' that looks like ids"):
        ws.silhouette_score(X, [0, 0, 1, 1])
    with pytest.warns(UserWarning, match="X has a column 'customer_id' that looks like ids"):
        ws.KMeans(2, random_state=0).fit(X)


def test_a_column_with_values_that_come_twice_is_no_column_of_ids(recwarn):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = pd.DataFrame({"city_id": [1, 1, 2, 2], "a": [0.0, 0.1, 9.0, 9.2]})
    ws.silhouette_score(X, [0, 0, 1, 1])
    assert not recwarn.list


def test_exchanged_columns_of_new_rows_are_refused_with_the_way_out():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = pd.DataFrame({"b": [1.0, 2.0, 8.0, 9.0], "a": [0.0, 0.1, 9.0, 9.2]})
    model = ws.KMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"in their order; pass X\[clusterer.feature_names_in_\]"):
        model.predict(X[["a", "b"]])
    assert model.predict(X[["a", "b"]][model.feature_names_in_]).tolist() == model.labels_.tolist()
