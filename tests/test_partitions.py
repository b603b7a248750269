"""Label vectors of every kind are encoded once, names kept, noise by policy."""

from __future__ import annotations

import numpy as np
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
    with pytest.raises(TypeError, match="all strings or all integers"):
        encode(["a", 1, 1])


def test_the_partition_with_the_wrong_length_is_named():
    with pytest.raises(
        ValueError, match="'second' must have the 3 objects that 'first' has, got 2"
    ):
        Partitions.from_labels({"first": [0, 0, 1], "second": [0, 1]})


def test_no_partition_at_all_is_refused():
    with pytest.raises(ValueError, match="at least one partition"):
        Partitions.from_labels({})
