"""Every index in the registry obeys the laws it declares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import wellsep as ws
from wellsep.testing import indices as laws
from wellsep.testing.compare import make_blobs as _blobs
from wellsep.testing.indices import value_of as _value

NAMES = list(ws.INDICES)


def _obeying(law):
    return [name for name in NAMES if law in ws.INDICES[name].laws]


seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("name", NAMES)
def test_an_index_declares_what_a_user_needs_to_know(name):
    laws.check_facts(name)


@pytest.mark.parametrize("name", _obeying("labels"))
@given(seed=seeds)
def test_names_of_clusters_do_not_matter(name, seed):
    laws.check_law(name, "labels", seed)


@pytest.mark.parametrize("name", _obeying("order"))
@given(seed=seeds)
def test_order_of_objects_does_not_matter(name, seed):
    laws.check_law(name, "order", seed)


@pytest.mark.parametrize("name", _obeying("translation"))
@given(seed=seeds)
def test_translation_does_not_matter(name, seed):
    laws.check_law(name, "translation", seed)


def _whole_numbers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Few places and many ties: equal distances, duplicates, objects just on a radius."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), np.arange(3), rng.integers(0, 3, 9)])
    return rng.integers(0, 6, (15, 2)) + 2.0 * y[:, None], y


@pytest.mark.parametrize("library", ["numpy", "accelerator"])
@pytest.mark.parametrize("name", _obeying("translation"))
def test_translation_does_not_matter_where_distances_tie(name, library, monkeypatch):
    convert = _as_on_an_accelerator(monkeypatch) if library == "accelerator" else np.asarray
    for X, y in [(SIX, [0, 0, 0, 1, 1, 1]), *map(_whole_numbers, range(4))]:
        values = [_value(name, convert(X + step), y) for step in (0.0, 1.0, 1000.0)]
        assert values == pytest.approx([values[0]] * 3, rel=1e-9, nan_ok=True)


SIX = np.array([[5.0, 0], [3, 0], [2, 1], [0, 0], [5, 5], [0, 5]])


def _as_on_an_accelerator(monkeypatch):
    """Tensors in memory, worked on by the passes for accelerators."""
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    import wellsep._checks.arrays as arrays

    monkeypatch.setattr(arrays, "on_device", arrays.is_torch)
    return torch.asarray


@pytest.mark.parametrize("name", _obeying("rotation"))
@given(seed=seeds)
def test_rotation_does_not_matter(name, seed):
    laws.check_law(name, "rotation", seed)


@pytest.mark.parametrize("name", _obeying("scale"))
@given(seed=seeds, factor=st.sampled_from([1e-9, 0.5, 1e6]))
def test_scale_does_not_matter(name, seed, factor):
    laws.check_law(name, "scale", seed, factor)


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
def test_a_value_lies_in_the_declared_range(name, seed):
    laws.check_range(name, seed)


@pytest.mark.parametrize("name", NAMES)
def test_one_partition_scores_as_it_does_among_many(name):
    laws.check_one_and_many(name)


@pytest.mark.parametrize("name", NAMES)
def test_all_indices_together_equal_each_alone(name):
    X, y = _blobs(6, n=80)
    together = ws.score_partitions(X, y, NAMES)
    column = together.indices.index(name)
    assert together.values[0, column] == pytest.approx(_value(name, X, y), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", _obeying("translation"))
def test_data_at_an_offset_of_a_million_score_the_same(name):
    laws.check_far_translation(name)


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
def test_float32_stays_close_to_float64(name, seed):
    laws.check_float32(name, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.bool_])
def test_integer_data_are_cast_before_any_arithmetic(name, dtype):
    X, y = _blobs(8)
    X = np.abs(X * 20).clip(0, 127).astype(dtype)
    X[:, 0] += np.arange(len(X), dtype=X.dtype) % 2 if dtype is not np.bool_ else X[:, 0]
    assert _value(name, X, y) == pytest.approx(
        _value(name, X.astype(np.float64), y), rel=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "kind", ["list", "pandas", "polars", "torch", "array-api-strict", "fortran"]
)
def test_every_kind_of_array_gives_the_same_value(name, kind):
    X, y = _blobs(9)
    given_X, given_y = _as_kind(X, y, kind)
    assert _value(name, given_X, given_y) == pytest.approx(
        _value(name, X, y), rel=1e-10, nan_ok=True
    )


def _as_kind(X, y, kind):
    if kind == "list":
        return X.tolist(), y.tolist()
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(X), pd.Series(y)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(X, schema=["a", "b", "c"]), pl.Series(y)
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="needs the extra deep")
        return torch.asarray(X), torch.asarray(y)
    if kind == "array-api-strict":
        import array_api_strict as strict

        return strict.asarray(X), strict.asarray(y)
    return np.asfortranarray(X), y


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", ["np.matrix", "masked array without a mask", "objects"])
def test_a_subclass_of_an_array_scores_as_the_array_does(name, kind):
    X, y = _blobs(9)
    makers = {"np.matrix": np.matrix, "objects": lambda X: X.astype(object)}
    given_X = makers.get(kind, np.ma.masked_array)(X)
    assert _value(name, given_X, y) == _value(name, X, y)


def _malformed(kind):
    X, _ = _blobs(9)
    if kind == "masked values":
        return np.ma.masked_array(X, mask=np.eye(*X.shape, dtype=bool))
    if kind == "huge integers":
        return np.where(np.eye(*X.shape, dtype=bool), 10**400, X.astype(object))
    if kind == "complex":
        return X + 1j
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    return torch.tensor(X).to_sparse() if kind == "sparse tensor" else torch.tensor(X) + 1j


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("masked values", r"X must not have masked values, got 3, first at \(0, 0\)"),
        ("huge integers", "X must fit float64"),
        ("complex", "X must be real, got complex"),
        ("complex tensor", "X must be real, got complex"),
        ("sparse tensor", "X must be a dense tensor, got one of layout torch.sparse_coo"),
    ],
)
def test_data_whose_values_are_not_real_numbers_are_refused(name, kind, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        _value(name, _malformed(kind), _blobs(9)[1])


@pytest.mark.parametrize(
    "name", [n for n in NAMES if ws.INDICES[n].sparse or ws.INDICES[n].sparse_sums]
)
def test_sparse_data_score_as_dense_ones_do(name):
    laws.check_sparse(name)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if not (ws.INDICES[n].sparse or ws.INDICES[n].sparse_sums)]
)
def test_sparse_data_are_refused_with_the_indices_that_take_them(name):
    import scipy.sparse as sp

    X, y = _blobs(10)
    with pytest.raises(TypeError, match="must be dense.*calinski_harabasz"):
        _value(name, sp.csr_array(X), y)


WEIGHTED = [name for name in NAMES if ws.INDICES[name].weighted]


@pytest.mark.parametrize("name", WEIGHTED)
@given(seed=seeds)
def test_an_object_of_weight_zero_is_as_good_as_absent(name, seed):
    laws.check_weight_zero(name, seed)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_one_change_nothing(name):
    laws.check_weights_of_one(name)


@pytest.mark.parametrize("name", [n for n in NAMES if not ws.INDICES[n].weighted])
def test_weights_are_refused_where_the_definition_knows_none(name):
    laws.check_weights_refused(name)


@pytest.mark.parametrize(
    "name", ["calinski_harabasz", "davies_bouldin", "cfq", "simplified_silhouette"]
)
def test_integer_weights_count_as_repetitions_for_centroid_indices(name):
    X, y = _blobs(12)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = _value(name, np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert _value(name, X, y, sample_weight=weight) == pytest.approx(repeated, rel=1e-10)


@pytest.mark.parametrize("name", [n for n in NAMES if ws.INDICES[n].price != "included"])
def test_excluded_noise_scores_as_if_it_were_not_there(name):
    laws.check_excluded_noise(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("noise", ["exclude", "cluster", "singletons"])
def test_minus_two_and_minus_three_score_as_minus_one_does(name, noise):
    laws.check_noise_labels(name, noise)


MORE = {"dbcv": {"d": 3}}  # a matrix has no columns
WITH_METRIC = [name for name in NAMES if "metric" in ws.INDICES[name].params]


def _matrix(kind: str) -> np.ndarray:
    D = cdist(*[_blobs(14)[0]] * 2)
    if kind == "not square":
        return np.hstack([D, D])
    if kind == "diagonal":
        return D + np.eye(len(D))
    if kind == "negative":
        return -D
    D[0, 5] += 9
    return D


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("not square", r"X must be a square matrix .* got shape \(60, 120\)"),
        ("diagonal", "X must have zeros on its diagonal, got 1.0 at 0"),
        ("negative", "X must not have negative distances"),
        ("asymmetric", r"X must be symmetric, .* at \(0, 5\) and .* at \(5, 0\)"),
    ],
)
@pytest.mark.parametrize("name", WITH_METRIC)
def test_what_is_no_matrix_of_distances_is_refused(name, kind, sentence, library):
    D, y = _matrix(kind), _blobs(14)[1]
    if library == "torch":
        D = pytest.importorskip("torch", reason="needs the extra deep").tensor(D)
    with pytest.raises(ValueError, match=sentence):
        ws.score_partitions(D, y, [(name, {"metric": "precomputed", **MORE.get(name, {})})])


@pytest.mark.parametrize("name", WITH_METRIC)
def test_a_matrix_of_distances_in_float32_is_one(name):
    X, y = _blobs(14)
    D = cdist(X, X).astype(np.float32)
    D[3, 4] *= np.float32(1 + 1e-6)
    D[7, 7] = np.float32(1e-6)
    given = ws.score_partitions(
        D, y, [(name, {"metric": "precomputed", **MORE.get(name, {})})]
    ).values
    assert given[0, 0] == pytest.approx(_value(name, X, y), rel=1e-4)


def test_x_is_not_distances_for_one_index_and_coordinates_for_another():
    with pytest.raises(ValueError, match="must all have metric='precomputed' .* 'cfq', which"):
        ws.score_partitions(
            np.zeros((4, 4)), [0, 0, 1, 1], [("silhouette", {"metric": "precomputed"}), "cfq"]
        )
