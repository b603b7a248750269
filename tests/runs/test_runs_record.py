"""Run and Runs: frozen, checked against each other, spaces and partitions free to differ."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wellsep.runs import NoRuns, Run, Runs

SPACE = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 2.0], [5.1, 2.0]])


def small_runs() -> Runs:
    return Runs(
        [
            Run("a", labels=[0, 0, 1, 1], embedding=SPACE, params={"k": 2}),
            Run("b", labels=["x", "x", "y", "y"], space="c"),
            Run("c", embedding=SPACE[:, :1]),
            Run("d", labels=[0, 1, 2, -1]),
        ]
    )


def test_a_run_cannot_be_changed():
    run = Run("a", labels=[0, 1, 1], embedding=[[0.0], [1.0], [2.0]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.labels = [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        run.labels[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        run.embedding[0, 0] = 5.0


def test_labels_and_params_are_copied_and_the_embedding_is_not():
    labels, space, params = np.array([0, 0, 1, 1]), SPACE.copy(), {"layers": [1, 2]}
    run = Run("a", space, labels, params=params)
    labels[0] = 7
    params["layers"].append(3)
    assert run.labels.tolist() == [0, 0, 1, 1]
    assert run.params == {"layers": [1, 2]}
    assert np.shares_memory(run.embedding, space)
    assert space.flags.writeable


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, -1], np.array([0, 1, -1])),
        ([0.0, 1.0, -1.0], np.array([0, 1, -1])),
        ([True, False, True], np.array([1, 0, 1])),
        (["a", "b", "b"], np.array(["a", "b", "b"])),
        ([b"a", b"\xc3\xa4", b"b"], np.array(["a", "ä", "b"])),
        (np.array(["a", "b", "b"], dtype=object), np.array(["a", "b", "b"])),
        (np.array([3, 4, 4], dtype=object), np.array([3, 4, 4])),
        (pd.Categorical(["a", "b", "a"]), np.array(["a", "b", "a"])),
        (pd.Series(["a", "b", "a"], dtype="category"), np.array(["a", "b", "a"])),
        (pl.Series(["a", "b", "a"]), np.array(["a", "b", "a"])),
        (np.array(["a", "b"], dtype=np.dtypes.StringDType()), np.array(["a", "b"])),
        (np.array([2**63 + 1, 0], dtype=np.uint64), np.array([2**63 + 1, 0], dtype=np.uint64)),
        (pd.Categorical([-1, 2, 2]), np.array([-1, 2, 2])),
    ],
)
def test_labels_of_every_kind_become_integers_or_text(labels, expected):
    got = Run("a", labels=labels).labels
    assert got.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        ([0.0, np.nan], ValueError, "got none for 1 object.s., first at 1; label such objects -1"),
        (["a", None], ValueError, "labels of run 'a' must have a value for every object"),
        (pd.Categorical(["a", None]), ValueError, "got none for 1 object"),
        ([0.5, 1.0], ValueError, "must be whole numbers or names, got 0.5 at 0"),
        (
            np.array(["a", 1], dtype=object),
            TypeError,
            "must be all text or all integers, got int, str",
        ),
        ([1 + 2j, 0], TypeError, "must be integers or text, got complex128"),
        ([[0, 1], [1, 0]], ValueError, "must be one value per object, got shape .2, 2."),
        ([], ValueError, "must be one value per object, got shape .0,."),
        ([b"\xff", b"a"], ValueError, "must be UTF-8 text"),
        (["a", np.nan], ValueError, "got none for 1 object.s., first at 1"),
        (np.array(["a", np.nan]), ValueError, "got none for 1 object.s., first at 1"),
        (["a", 1], TypeError, "must be all text or all integers, got int, str, with 1 at 1"),
        ([0.0, 1e19], ValueError, "at most 2..53 where they are floats, got 1e.19 at 1"),
        ([0, -4], ValueError, "or -1, -2 or -3 for noise, got -4 at 1"),
        (["a", "a\0"], ValueError, "must not end in NUL, got .* at 1"),
        (np.ma.masked_array([0, 1], mask=[0, 1]), ValueError, "masked values, got 1, first at 1"),
    ],
)
def test_bad_labels_are_refused_with_the_name_of_the_run(labels, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        Run("a", labels=labels)
    assert "labels of run 'a'" in str(caught.value)


@pytest.mark.parametrize(
    ("embedding", "error", "sentence"),
    [
        (
            [0.0, 1.0],
            ValueError,
            "got shape .2,.; the order is .*, and a single feature is embedding.reshape",
        ),
        (np.zeros((3, 0)), ValueError, "got shape .3, 0."),
        ([["a"], ["b"]], TypeError, "real number type, got <U1"),
        (np.zeros((2, 2), dtype=complex), TypeError, "real number type, got complex128"),
        ([[1.0], [2.0, 3.0]], ValueError, "must be a table of numbers"),
    ],
)
def test_bad_embeddings_are_refused_with_the_name_of_the_run(embedding, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        Run("a", embedding=embedding)
    assert "embedding of run 'a'" in str(caught.value)


def test_a_sparse_embedding_stays_sparse():
    import scipy.sparse as sparse

    run = Run("a", embedding=sparse.eye_array(3).tocsr())
    assert sparse.issparse(run.embedding)
    assert run.n_features == 3


@pytest.mark.parametrize(
    "embedding",
    [
        pd.DataFrame(SPACE),
        pl.DataFrame(SPACE),
        SPACE.tolist(),
        SPACE.astype(object),
        np.asfortranarray(SPACE),
    ],
)
def test_an_embedding_may_be_a_frame_or_a_list(embedding):
    np.testing.assert_array_equal(Run("a", embedding=embedding).embedding, SPACE)


def test_a_run_may_be_made_of_tensors():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    space = torch.tensor(SPACE, requires_grad=True)
    run = Run("a", space, torch.tensor([2, 1, 1, 2]))
    assert run.labels.tolist() == [2, 1, 1, 2]
    np.testing.assert_array_equal(run.embedding, SPACE)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "uint8"])
def test_the_number_type_of_an_embedding_is_kept(dtype):
    assert Run("a", embedding=SPACE.astype(dtype)).embedding.dtype == dtype


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_are_checked_when_a_space_is_opened_and_not_before(bad):
    space = SPACE.copy()
    space[2, 1] = bad
    runs = Runs.from_parts({"good": SPACE, "bad": space}, {"good": [0, 0, 1, 1]})
    np.testing.assert_array_equal(runs.spaces["good"], SPACE)
    sentence = "embedding of run 'bad' must be finite, got .* at row 2, column 1"
    for look in (lambda: runs.spaces["bad"], lambda: runs[1].embedding):
        with pytest.raises(ValueError, match=sentence):
            look()


@pytest.mark.parametrize(
    ("name", "error", "sentence"),
    [
        ("", ValueError, "must not be empty"),
        (3, TypeError, "must be a string, got 3"),
        ("run\udcff", ValueError, r"must be valid UTF-8 text, got 'run\\udcff'"),
        ("a\nb", ValueError, "must not hold control characters"),
        ("a\x1b[2J", ValueError, "must not hold control characters"),
    ],
)
def test_a_name_that_is_no_name_is_refused(name, error, sentence):
    with pytest.raises(error, match=f"name {sentence}"):
        Run(name, labels=[0, 1])


def test_a_run_needs_labels_or_an_embedding_of_one_length():
    with pytest.raises(ValueError, match="run 'a' must have labels or an embedding, got neither"):
        Run("a")
    with pytest.raises(ValueError, match="got 3 in labels, 4 in embedding"):
        Run("a", SPACE, [0, 1, 1])
    with pytest.raises(ValueError, match="got 2 in labels, 1 in ids"):
        Run("a", labels=[0, 1], ids=["one"])


def test_params_become_plain_data_and_the_rest_is_refused_by_place():
    run = Run(
        "a",
        labels=[0, 1],
        params={"lr": np.float32(0.5), "sizes": (1, np.int64(2)), "flag": np.True_, "nan": np.nan},
        metadata={"loss": np.array([1.0, np.inf]), "nested": {1: None}},
    )
    assert run.params == {"lr": 0.5, "sizes": [1, 2], "flag": True, "nan": "nan"}
    assert run.metadata == {"loss": [1.0, "inf"], "nested": {"1": None}}
    with pytest.raises(TypeError, match="params of run 'a' must be .* got object at 'x/0'"):
        Run("a", labels=[0, 1], params={"x": [object()]})
    with pytest.raises(TypeError, match="metadata of run 'a' must be a mapping, got list"):
        Run("a", labels=[0, 1], metadata=[1])


def test_spaces_and_partitions_need_not_be_paired():
    runs = small_runs()
    assert runs.names == ("a", "b", "c", "d")
    assert list(runs.spaces) == ["a", "c"]
    assert list(runs.partitions) == ["a", "b", "d"]
    assert runs.made_in.tolist() == [0, 1, -1]
    assert not runs.paired
    assert runs.n_objects == 4
    assert runs.params["a"] == {"k": 2}
    assert runs["c"].n_features == 1
    assert runs["d"].n_features is None


def test_runs_that_are_all_paired_say_so():
    runs = Runs.from_parts(
        {"p": SPACE}, {"k2": [0, 0, 1, 1], "k3": [0, 0, 1, 2]}, pairs={"k2": "p", "k3": "p"}
    )
    assert runs.paired
    assert runs.made_in.tolist() == [0, 0]
    assert not Runs.from_parts({"p": SPACE}).paired


def test_twelve_labelings_can_be_judged_in_four_spaces():
    spaces = {f"s{i}": SPACE[:, : 1 + i % 2] for i in range(4)}
    labels = {f"k{i}": [0, i % 2, 1, 1] for i in range(12)}
    runs = Runs.from_parts(spaces, labels, ids=["p", "q", "r", "s"])
    assert (len(runs.spaces), len(runs.partitions)) == (4, 12)
    assert (runs.made_in == -1).all()
    assert runs.ids.tolist() == ["p", "q", "r", "s"]


def test_runs_behave_like_a_sequence():
    runs = small_runs()
    assert [run.name for run in runs] == list(runs.names)
    assert len(runs) == 4
    assert "b" in runs and "z" not in runs
    assert runs[1] is runs["b"]
    assert runs[-1].name == "d"
    assert runs[2:].names == ("c", "d")
    with pytest.raises(KeyError, match="no run is called 'z'; there are 'a', 'b', 'c', 'd'"):
        runs["z"]
    with pytest.raises(KeyError, match="no space is called 'b'; there are 'a', 'c'"):
        runs.spaces["b"]


def test_a_subset_keeps_order_and_drops_only_what_was_left_out():
    runs = small_runs()
    assert runs.subset(["d", "a"]).names == ("a", "d")
    judged = runs.subset(spaces=["a"], partitions=["b", "d"])
    assert list(judged.spaces) == ["a"]
    assert list(judged.partitions) == ["b", "d"]
    assert judged.made_in.tolist() == [-1, -1]
    with pytest.raises(ValueError, match="spaces must be among 'a', 'c', got 'b'"):
        runs.subset(spaces=["b"])
    with pytest.raises(NoRuns, match="at least one run, got none"):
        runs.subset([])


def test_duplicate_names_are_refused():
    with pytest.raises(ValueError, match="names of runs must be unique, got 'a' twice"):
        Runs([Run("a", labels=[0, 1]), Run("b", labels=[0, 1]), Run("a", labels=[1, 1])])


def test_the_run_with_the_odd_number_of_objects_is_named():
    with pytest.raises(
        ValueError, match="run 'odd' must have the 2 objects that run 'b' has, got 3"
    ):
        Runs([Run("odd", labels=[0, 1, 2]), Run("b", labels=[0, 1]), Run("c", labels=[1, 1])])


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (["p", "r", "q"], "got 'r' in place of 'q' at position 1; sort its objects alike"),
        (["p", "q", "s"], "got 's' in place of 'r' at position 2; use the same objects"),
        ([1, 2, 3], "got '1' in place of 'p' at position 0"),
    ],
)
def test_ids_that_differ_are_refused_at_their_first_difference(second, sentence):
    first = Run("a", labels=[0, 1, 1], ids=["p", "q", "r"])
    with pytest.raises(ValueError, match="ids of run 'c' must equal those of run 'a', " + sentence):
        Runs([first, Run("b", labels=[0, 0, 1]), Run("c", labels=[0, 1, 0], ids=second)])


def test_ids_may_be_given_by_some_runs_and_as_numbers_or_text():
    runs = Runs(
        [
            Run("a", labels=[0, 1]),
            Run("b", labels=[0, 1], ids=[7, 8]),
            Run("c", labels=[1, 1], ids=["7", "8"]),
        ]
    )
    assert runs.ids.tolist() == [7, 8]
    assert small_runs().ids is None


def test_a_space_that_is_not_there_is_refused():
    with pytest.raises(
        ValueError, match="space of run 'b' must be a run with an embedding, got 'z'"
    ):
        Runs([Run("a", [[0.0], [1.0]], [0, 1]), Run("b", labels=[0, 1], space="z")])
    with pytest.raises(ValueError, match="space of run 'a' must be left out"):
        Run("a", [[0.0], [1.0]], [0, 1], space="b")
    with pytest.raises(ValueError, match="pairs must name partitions, got 'x'"):
        Runs.from_parts({"a": SPACE}, {}, pairs={"x": "a"})
    with pytest.raises(ValueError, match="pairs must name spaces, got 'z' for 'p'"):
        Runs.from_parts({"a": SPACE}, {"p": [0] * len(SPACE)}, pairs={"p": "z"})


def test_one_run_is_enough_and_none_is_refused():
    assert len(Runs([Run("a", labels=[0, 1])])) == 1
    with pytest.raises(NoRuns, match="runs must hold at least one run, got none"):
        Runs([])
    with pytest.raises(TypeError, match="runs must hold Run records, got str"):
        Runs(["a"])


def test_equal_spaces_have_equal_digests_whatever_their_layout():
    first = Run("a", embedding=SPACE)
    assert first.digest() == Run("b", embedding=np.asfortranarray(SPACE)).digest()
    assert first.digest() != Run("a", embedding=SPACE.astype(np.float32)).digest()
    assert first.digest() != Run("a", embedding=SPACE[::-1]).digest()
    with pytest.raises(ValueError, match="run 'a' must have an embedding to be digested"):
        Run("a", labels=[0, 1]).digest()


def test_runs_survive_pickle():
    copy = pickle.loads(pickle.dumps(small_runs()))
    assert copy.names == small_runs().names
    np.testing.assert_array_equal(copy.spaces["a"], SPACE)


def test_the_text_form_tells_sizes_and_pairing():
    assert repr(small_runs()) == (
        "Runs(2 spaces × 3 partitions of 4 objects, 2 of 3 partitions paired with a space)\n"
        "  a  space of 2 features (float64), 2 clusters\n"
        "  b  2 clusters, made in 'c'\n"
        "  c  space of 1 feature (float64)\n"
        "  d  3 clusters, 1 noise"
    )


def test_a_long_list_of_runs_is_shortened():
    runs = Runs([Run(f"r{i}", labels=[0, 1]) for i in range(40)])
    assert repr(runs).endswith("… and 32 more")
    assert "… and 32 more" in runs._repr_html_()


def test_the_html_form_escapes_names_and_params():
    run = Run("<script>alert(1)</script>", labels=[0, 1], params={"<b>": "&"})
    html = Runs([run])._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "<b>" not in html and "&amp;" in html


def test_columns_about_the_objects_have_a_value_for_each():
    with pytest.raises(ValueError, match=r"objects\['age'\] must have one value per object"):
        Runs(tuple(small_runs()), objects={"age": [20]})
