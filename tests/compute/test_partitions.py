"""Label vectors of every kind are encoded once, names kept, noise by policy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wellsep.partitions import Partitions, encode


def test_codes_count_from_zero_in_the_order_of_the_sorted_labels():
    p = encode([30, 10, 10, 20])
    assert p.codes.tolist() == [[2, 0, 0, 1]]
    assert p.classes[0].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "labels",
    [
        [[0, 1, 1], [2, 2, 5]],
        np.array([[0, 1, 1], [2, 2, 5]]),
        (np.array([0, 1, 1]), [2, 2, 5]),
        {"0": [0, 1, 1], "1": [2.0, 2.0, 5.0]},
    ],
    ids=["lists", "array", "tuple", "dict"],
)
def test_many_partitions_come_in_many_shapes(labels):
    p = Partitions.from_labels(labels)
    assert p.codes.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert p.names == ("0", "1")


def test_frames_give_a_partition_per_column():
    import polars as pl

    frame = pl.DataFrame({"coarse": ["a", "b", "b"], "fine": [1, 2, 3]})
    p = Partitions.from_labels(frame)
    assert p.names == ("coarse", "fine")
    assert p.n_clusters.tolist() == [2, 3]


@pytest.mark.parametrize("kind", ["category", "string", "int64", "Int64"])
def test_pandas_columns_of_every_type_are_labels(kind):
    import pandas as pd

    values = [1, 2, 2] if "nt" in kind else ["u", "v", "v"]
    assert encode(pd.Series(values, dtype=kind)).codes.tolist() == [[0, 1, 1]]


def test_polars_enums_are_labels():
    import polars as pl

    series = pl.Series(["lo", "hi", "hi"], dtype=pl.Enum(["lo", "hi"]))
    assert encode(series).n_clusters.tolist() == [2]


def test_noise_is_the_integer_minus_one_alone():
    assert encode(["-1", "0", "0"]).coverage.tolist() == [1.0]
    assert encode([-1.0, 0.0, 0.0]).coverage.tolist() == [pytest.approx(2 / 3)]


def test_all_noise_leaves_no_cluster():
    p = encode([-1, -1])
    assert p.n_clusters.tolist() == [0]
    assert p.coverage.tolist() == [0.0]


def test_a_subset_drops_clusters_left_empty():
    p = Partitions.from_labels([[0, 1, 2, 2], [0, 0, -1, 1]]).take(np.array([0, 2]))
    assert p.codes.tolist() == [[0, 1], [0, -1]]
    assert [c.tolist() for c in p.classes] == [[0, 2], [0]]


def test_a_slice_of_the_partitions_keeps_its_name():
    p = Partitions.from_labels({"a": [0, 1], "b": [1, 1]})
    assert p[1].names == ("b",)
    assert p[-1].codes.tolist() == [[0, 0]]
    assert [q.names[0] for q in p] == ["a", "b"]


def test_mixed_text_and_numbers_are_refused():
    with pytest.raises(TypeError, match="all text or all integers, got int, str, with 1 at 1"):
        encode(["a", 1, 1])


def test_the_partition_with_the_wrong_length_is_named():
    with pytest.raises(
        ValueError, match="'second' must have the 3 objects that 'first' has, got 2"
    ):
        Partitions.from_labels({"first": [0, 0, 1], "second": [0, 1]})


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_names_that_read_alike_are_refused(kind):
    with pytest.raises(ValueError, match="labels must have names that differ, got '1' twice"):
        Partitions.from_labels(kind({1: [0, 0, 1], "1": [0, 1, 1]}))


def test_no_partition_at_all_is_refused():
    with pytest.raises(ValueError, match="at least one clustering"):
        Partitions.from_labels({})


def test_the_three_noise_labels_of_hdbscan_are_noise():
    p = encode([0, 0, 1, 1, -2, -2, -1])
    assert p.n_clusters.tolist() == [2]
    assert p.coverage.tolist() == [pytest.approx(4 / 7)]
    assert encode([0, 0, 1, 1, -3, -3]).classes[0].tolist() == [0, 1]


@pytest.mark.parametrize("labels", [[0, 1, -2], [0, 1, -3], np.array([-2, 0, 1], dtype=np.int8)])
def test_noise_of_every_kind_is_an_error_where_it_is_to_be_one(labels):
    with pytest.raises(ValueError, match=r"must not hold noise \(-1, -2 or -3\), got 1 such"):
        encode(labels, noise="error")


def test_noise_of_every_kind_is_one_cluster_or_clusters_of_one():
    assert encode([0, -1, -2, -3], noise="cluster").codes.tolist() == [[1, 0, 0, 0]]
    alone = encode([0, -1, -2, -3], noise="singletons")
    assert alone.codes.tolist() == [[0, 1, 2, 3]]
    assert alone.classes[0].tolist() == [0, -1, -1, -1]


def test_other_negative_numbers_are_refused_with_their_position():
    with pytest.raises(ValueError, match=r"-1, -2 or -3 for noise, got -7 at 2; number"):
        encode([0, -1, -7, 1])


def test_labels_on_dask_have_the_same_noise():
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    import wellsep as ws

    X = np.arange(14.0).reshape(7, 2) ** 2
    y = np.array([0, 0, 1, 1, -2, -3, -1])
    lazy = ws.score_partitions(
        da.from_array(X, chunks=(3, 2)), da.from_array(y, chunks=3), ["silhouette"]
    )
    assert lazy.coverage.tolist() == [pytest.approx(4 / 7)]
    assert lazy.values == pytest.approx(ws.score_partitions(X, y, ["silhouette"]).values)
    with pytest.raises(ValueError, match="got -9 at 4"):
        ws.score_partitions(
            da.from_array(X, chunks=(3, 2)),
            da.from_array(np.array([0, 0, 1, 1, -9, 1, 1]), chunks=3),
            ["silhouette"],
        )


def test_categories_that_are_numbers_keep_their_noise():
    import pandas as pd

    assert encode(pd.Series([-1, 0, 0, 1], dtype="category")).coverage.tolist() == [0.75]


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        (["a", np.nan, "b"], ValueError, "a value for every object, got none .* first at 1"),
        (np.array(["a", np.nan, "b"]), ValueError, "a value for every object, .* first at 1"),
        (["a", "b", "b\0"], ValueError, r"must not end in NUL, got 'b\\x00' at 2"),
        ([0.0, 1e19, 1.0], ValueError, r"at most 2\*\*53 .* got 1e\+19 at 1"),
        ([0.0, 2.0**53 + 2, 1.0], ValueError, r"at most 2\*\*53 .* at 1"),
        (np.array([0, 10**400, 1], dtype=object), ValueError, "fit 64 bits, .* at 1"),
        ([0, -(2**70), 1], ValueError, "fit 64 bits, .* at 1"),
        (np.array(1), ValueError, "0 dimension"),
        (3, ValueError, r"one value per object, got shape \(\)"),
        (np.ma.masked_array([0, 1, 1], mask=[0, 0, 1]), ValueError, "masked values.* first at 2"),
        ([[0, 1], [1]], ValueError, "must have the 2 objects that"),
    ],
)
def test_labels_that_would_change_on_the_way_are_refused(labels, error, sentence):
    with pytest.raises(error, match=sentence):
        Partitions.from_labels(labels)


def test_large_integers_stay_what_they_are():
    p = encode(np.array([2**63 + 1, 2**63, 2**63], dtype=np.uint64))
    assert p.classes[0].tolist() == [2**63, 2**63 + 1]
    assert encode([2**64 - 1, 0, 0]).classes[0].tolist() == [0, 2**64 - 1]
    assert encode(np.ma.masked_array([0, 1, 1])).codes.tolist() == [[0, 1, 1]]


def test_equal_partitions_are_one_whatever_their_clusters_are_called():
    labels = {"a": [0, 0, 1], "b": [0, 1, 1], "c": ["y", "y", "x"]}
    classes = Partitions.from_labels(labels).distinct
    assert classes.of.tolist() == [0, 1, 0]
    assert classes.members == (("a", "c"), ("b",))


def test_clusters_alone_leave_out_noise_that_counts_as_a_cluster():
    one = Partitions.from_labels([[4, 4, -1, 7]], noise="cluster").clusters_only()
    assert one.codes.tolist() == [[0, 0, -1, 1]]
    assert one.classes[0].tolist() == [4, 7]
