"""Bad input is answered with a sentence that says what is wrong and what to do."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws

X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [2, 3], [2, 4]])
Y = np.array([0, 0, 1, 1, 2, 2])

SINGLE = [
    ws.silhouette_score,
    ws.simplified_silhouette_score,
    ws.calinski_harabasz_score,
    ws.davies_bouldin_score,
    ws.cfq_score,
]
one_index = pytest.mark.parametrize("score", SINGLE, ids=lambda f: f.__name__)


@one_index
def test_labels_of_the_wrong_length_are_named(score):
    with pytest.raises(ValueError, match=r"labels must have one entry per object \(6\), got 5"):
        score(X, Y[:5])


@one_index
def test_fractional_labels_suggest_exchanged_arguments(score):
    with pytest.raises(ValueError, match=r"whole numbers or names, got 0.5 at 0; are X and labels"):
        score(X, [0.5, 0, 1, 1, 2, 2])


@one_index
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_with_its_column(score, value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=r"X must be finite, got .* in column 1 \(row 3\)"):
        score(bad, Y)


def test_a_value_that_is_not_finite_is_named_by_the_frames_column():
    import pandas as pd

    frame = pd.DataFrame(X.copy(), columns=["height", "width"])
    frame.loc[2, "width"] = np.nan
    with pytest.raises(ValueError, match="column 'width'"):
        ws.silhouette_score(frame, Y)


def test_a_tensor_with_nan_is_refused():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    tensor = torch.tensor(X)
    tensor[0, 1] = torch.nan
    with pytest.raises(ValueError, match=r"got nan in column 1 \(row 0\)"):
        ws.cfq_score(tensor, Y)


def test_sparse_data_with_nan_are_refused():
    import scipy.sparse as sp

    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        ws.cfq_score(sp.csr_array(bad), Y)


def test_huge_but_finite_values_are_accepted():
    big = X * 1e150
    assert ws.davies_bouldin_score(big, Y) == pytest.approx(ws.davies_bouldin_score(X, Y))


@one_index
def test_empty_data_are_refused(score):
    with pytest.raises(ValueError, match=r"at least 1 row\(s\), got 0"):
        score(np.empty((0, 2)), [])


@one_index
def test_data_without_columns_are_refused(score):
    with pytest.raises(ValueError, match="at least 1 column"):
        score(np.empty((3, 0)), [0, 0, 1])


@one_index
def test_one_sample_has_no_index(score):
    with pytest.raises(ws.UndefinedIndex, match="at least 2 clusters, got 1"):
        score([[1.0, 2.0]], [0])


@one_index
def test_one_cluster_has_no_index(score):
    with pytest.raises(ws.UndefinedIndex, match="at least 2 clusters, got 1"):
        score(X, np.zeros(6, int))


@one_index
def test_as_many_clusters_as_objects_have_no_index(score):
    with pytest.raises(ws.UndefinedIndex, match="every one of the 6 objects"):
        score(X, np.arange(6))


@one_index
def test_one_dimensional_data_are_told_to_reshape(score):
    with pytest.raises(ValueError, match=r"two-dimensional, got 1 .*reshape\(-1, 1\)"):
        score(X[:, 0], Y)


@one_index
def test_object_arrays_that_are_not_numbers_are_refused(score):
    with pytest.raises(TypeError, match="X must be numeric"):
        score(np.array([["a", 1]] * 6, dtype=object), Y)


@one_index
def test_object_arrays_of_numbers_are_accepted(score):
    assert score(X.astype(object), Y) == score(X, Y)


def test_frames_with_text_name_the_column():
    import pandas as pd

    frame = pd.DataFrame({"size": [1.0] * 6, "colour": list("abcabc")})
    with pytest.raises(TypeError, match="column 'colour'"):
        ws.silhouette_score(frame, Y)


@one_index
def test_ragged_lists_are_refused(score):
    with pytest.raises(ValueError, match="table of numbers"):
        score([[1.0, 2.0], [3.0]], [0, 1])


@one_index
def test_negative_weights_are_refused_with_their_place(score):
    with pytest.raises(ValueError, match="must not be negative, got -1.0 at 2"):
        score(X, Y, sample_weight=[1, 1, -1, 1, 1, 1])


@one_index
def test_weights_of_the_wrong_length_are_refused(score):
    with pytest.raises(ValueError, match=r"one value per object \(6\), got shape \(5,\)"):
        score(X, Y, sample_weight=np.ones(5))


@one_index
def test_weights_that_are_all_zero_are_refused(score):
    with pytest.raises(ValueError, match="at least one positive value"):
        score(X, Y, sample_weight=np.zeros(6))


@one_index
def test_a_cluster_whose_weights_are_zero_does_not_exist(score):
    weight = np.array([1, 1, 1, 1, 0, 0])
    assert score(X, Y, sample_weight=weight) == pytest.approx(score(X[:4], Y[:4]), rel=1e-12)


@one_index
def test_text_and_categories_are_labels_like_any_other(score):
    import pandas as pd

    names = np.array(["b", "b", "a", "a", "c", "c"])
    values = {score(X, names), score(X, pd.Categorical(names)), score(X, list(names))}
    assert values == {score(X, Y)}


@one_index
def test_missing_labels_are_refused(score):
    import pandas as pd

    with pytest.raises(ValueError, match=r"got none for 1 object\(s\), first at 1"):
        score(X, pd.Series(["a", None, "b", "b", "a", "a"], dtype="string"))


@one_index
def test_a_constant_column_changes_nothing(score):
    wide = np.column_stack([X, np.full(6, 7.0)])
    assert score(wide, Y) == pytest.approx(score(X, Y), rel=1e-12)


@pytest.mark.parametrize(
    "score", [ws.calinski_harabasz_score, ws.davies_bouldin_score, ws.cfq_score]
)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_points_that_all_coincide_have_no_variance_to_compare(score, value):
    with pytest.raises(ws.UndefinedIndex, match="coincide|variance"):
        score(np.full((6, 2), value), Y)


def test_the_silhouette_of_coinciding_points_is_zero():
    assert ws.silhouette_score(np.full((6, 2), 0.1), Y) == 0


def test_centres_of_another_array_kind_are_refused():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    with pytest.raises(TypeError, match="centers must be of X's array kind"):
        ws.cfq_score(torch.tensor(X), Y, centers=np.zeros((3, 2)))


def test_centres_of_the_wrong_shape_say_the_right_one():
    with pytest.raises(ValueError, match=r"\(3, 2\), got \(2, 2\)"):
        ws.cfq_score(X, Y, centers=np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"average": "median"}, "average must be one of 'point', 'cluster'"),
        ({"singleton": 2}, "singleton must be at most 1"),
        ({"noise": "drop"}, "noise must be one of"),
    ],
)
def test_an_unknown_option_lists_the_known_ones(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.silhouette_score(X, Y, **options)


def test_an_unknown_index_lists_the_known_ones():
    with pytest.raises(ValueError, match="indices must be among .*silhouette.*got 'silhuette'"):
        ws.score_partitions(X, Y, ["silhuette"])


def test_an_unknown_parameter_of_an_index_lists_the_known_ones():
    with pytest.raises(ValueError, match="of 'davies_bouldin' must be among: q; got 'p'"):
        ws.score_partitions(X, Y, [("davies_bouldin", {"p": 1})])


def test_a_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match="square"):
        ws.silhouette_score(X, Y, metric="precomputed")


def test_a_precomputed_matrix_must_have_a_zero_diagonal():
    with pytest.raises(ValueError, match="zeros on its diagonal"):
        ws.silhouette_score(np.ones((6, 6)), Y, metric="precomputed")


def test_a_gpu_that_is_not_there_is_named():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    torch.cuda.is_available() and pytest.skip("a CUDA device is present")
    with pytest.raises(ValueError, match="sees no CUDA GPU"):
        ws.silhouette_score(X, Y, device="cuda")


def test_many_partitions_given_to_a_single_index_point_to_the_right_function():
    with pytest.raises(ValueError, match="one clustering here, got 2; .*score_partitions"):
        ws.silhouette_score(X, [Y, Y])


def test_partitions_in_columns_instead_of_rows_are_told_to_transpose():
    with pytest.raises(ValueError, match=r"one entry per object \(6\), got 2.*transpose"):
        ws.score_partitions(X, np.column_stack([Y, Y]), ["cfq"])


def test_complex_data_are_refused():
    with pytest.raises(TypeError, match="X must be real"):
        ws.cfq_score(X + 1j, Y)
