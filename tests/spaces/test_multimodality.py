"""The dip test on a space: R's answers, a note where no view is defined, any order of objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from golden import read_arrays, read_case, read_json
from libraries import to_tensor
from scipy.stats import ortho_group

from wellsep.spaces import dip_statistic, dip_test, holm, multimodality
from wellsep.spaces import projections as dip_projections

SETS = [
    *["aniso_a", "blobs_d10_a", "blobs_d2_a", "breast_cancer", "dup_a", "iris", "moons_a"],
    *["offset_a", "oned_a", "singleton_a", "tiny_ties_a", "unequal_a", "uniform_a"],
    *["weirdlabels_a", "wide_a", "wine"],
]
ACE_CASES = [
    *["collapsed12", "digits_num", "digits_pca", "duplicates14", "half_degenerate"],
    *["identical_partitions", "iris6", "m2", "m3", "moons10", "one_passes", "opposed11"],
    *["outlier12", "random_labels6", "rot_scale12", "simlike20", "two_levels16", "unimodal"],
    "wine10",
]
R_NAMES = {"pca-scaled": "pca_scaleTRUE", "pca": "pca_scaleFALSE", "distances": "distance"}


def blobs(n=240, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[: n // 2] += 6
    return X


@pytest.mark.parametrize("projection", R_NAMES)
@pytest.mark.parametrize("name", SETS)
def test_every_reduction_equals_that_of_r(name, projection):
    case = read_case(name)
    statistic, pvalue = case.record["dip"][f"clusterability.dip.{R_NAMES[projection]}"]
    answer = multimodality(case.X, projection=projection)
    assert answer.statistic == pytest.approx(statistic, abs=1e-12)
    assert answer.pvalue == pytest.approx(pvalue, abs=0.01)


@pytest.mark.parametrize("case", ACE_CASES)
def test_the_spaces_of_an_ace_run_are_judged_as_its_authors_judged_them(case):
    golden, arrays = read_json(f"ace/{case}.json")["dip"], read_arrays(f"ace/{case}.npz")
    M = len(golden["statistic"])
    answers = [multimodality(arrays[f"Z{m:02d}"], projection="pca-scaled") for m in range(M)]
    assert [answer.scaled for answer in answers] == golden["scaled"]
    # Spaces without a first component have no value to agree on: there, R's p stands in.
    defined = np.array([answer.defined for answer in answers])
    statistic = np.array([answer.statistic for answer in answers])
    pvalue = np.array([answer.pvalue for answer in answers])
    assert statistic[defined] == pytest.approx(np.array(golden["statistic"])[defined], abs=1e-9)
    assert pvalue[defined] == pytest.approx(np.array(golden["pvalue"])[defined], abs=0.01)
    mixed = np.where(defined, pvalue, golden["pvalue"])
    assert holm(mixed, 0.05).reject.tolist() == golden["holm_reject"]


def test_exactly_the_spaces_with_uncorrelated_columns_are_noted():
    arrays = read_arrays("ace/digits_pca.npz")
    answers = [multimodality(arrays[f"Z{m:02d}"], projection="pca-scaled") for m in range(12)]
    assert [m for m in range(12) if not answers[m].defined] == list(range(8))
    assert all("projection='pca'" in answers[m].note for m in range(8))
    assert [answers[m].note for m in range(8, 12)] == [""] * 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pca_scores_have_no_first_scaled_component_but_a_first_unscaled_one(dtype):
    X = blobs()
    X -= X.mean(axis=0)
    scores = (X @ np.linalg.svd(X, full_matrices=False)[2].T).astype(dtype)
    scaled, plain = multimodality(scores, projection="pca-scaled"), multimodality(scores)
    assert not scaled.defined
    assert np.isnan([scaled.statistic, scaled.pvalue]).all()
    assert scaled.note.startswith("Undefined, because the eigenvalue of the first principal")
    assert "use projection='pca' if the columns differ in variance, else 'distances'" in scaled.note
    assert f"The relative gap is {scaled.relative_gap:.1e}." in scaled.explain()
    assert plain.defined
    assert plain.note == ""
    assert plain.statistic == pytest.approx(dip_statistic(scores[:, 0]), abs=1e-6)


def test_whitened_features_are_sent_to_distances():
    X = blobs()
    white = np.linalg.qr(X - X.mean(axis=0))[0]
    for projection in ("pca", "components"):
        answer = multimodality(white, projection=projection)
        assert not answer.defined
        assert np.isnan(answer.pvalue)
        assert "use projection='distances'" in answer.note
    assert multimodality(white, projection="distances").defined


def test_the_gap_of_equal_eigenvalues_is_zero_without_a_sign():
    square = multimodality([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert "The relative gap is 0.0e+00." in square.explain()


def test_a_constant_column_switches_scaling_off_and_is_named():
    X = np.column_stack([blobs(), np.full(240, 0.1)])
    answer = multimodality(X, projection="pca-scaled")
    assert not answer.scaled
    assert answer.note == "A column is constant, so no column was scaled."
    assert answer.constant_columns == (4,)
    assert "Constant columns: 4." in answer.explain()
    assert answer.statistic == multimodality(X, projection="pca").statistic
    assert multimodality(X[:, :4], projection="pca-scaled").scaled


@pytest.mark.parametrize("projection", ["pca-scaled", "pca", "components", "distances"])
def test_a_collapsed_space_has_p_one(projection):
    answer = multimodality(np.full((30, 3), 0.1), projection=projection)
    assert answer.pvalue == 1
    assert answer.statistic == 1 / (2 * answer.n_values)
    assert answer.note == "All objects coincide, so there is nothing to split and p is 1."
    assert np.isnan(answer.relative_gap)


def test_components_are_tested_one_by_one_and_corrected_by_holm():
    X = blobs()
    X -= X.mean(axis=0)
    scores = X @ np.linalg.svd(X, full_matrices=False)[2].T
    answer = multimodality(X, projection="components", n_components=3)
    singles = [dip_test(z) for z in scores[:, :3].T]
    assert answer.statistics == pytest.approx([s.statistic for s in singles], abs=1e-10)
    assert answer.pvalue == pytest.approx(min(1, 3 * min(s.pvalue for s in singles)))
    smallest = min(range(3), key=lambda i: singles[i].pvalue)
    assert answer.statistic == answer.statistics[smallest]
    assert len(set(answer.pvalues)) > 1


def test_groups_that_hide_from_the_first_component_are_found_by_several():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) * [20, 1]
    X[:, 1] += rng.choice([-3, 3], 600)
    assert multimodality(X, projection="pca").pvalue > 0.5
    assert multimodality(X, projection="components").pvalue < 0.001


def test_components_beyond_the_rank_are_left_out():
    X = blobs(d=2) @ np.random.default_rng(1).normal(size=(2, 6))
    assert len(multimodality(X, projection="components", n_components=5).statistics) == 2


@pytest.mark.parametrize("projection", ["pca-scaled", "pca", "components", "distances"])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_objects_and_columns_and_a_shift_do_not_matter(projection, seed):
    rng = np.random.default_rng(seed)
    X = blobs(seed=seed)
    moved = X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])] + 100 * rng.normal(size=4)
    expected = multimodality(X, projection=projection)
    answer = multimodality(moved, projection=projection)
    assert answer.statistics == pytest.approx(expected.statistics, abs=1e-10)
    assert answer.pvalue == pytest.approx(expected.pvalue, abs=1e-6)


@pytest.mark.parametrize("projection", ["pca", "components"])
@pytest.mark.parametrize("seed", range(3))
def test_rotations_and_one_scale_for_all_do_not_matter_without_scaling(projection, seed):
    X = blobs(seed=seed)
    rotation = ortho_group.rvs(4, random_state=seed)
    answer = multimodality(-7 * X @ rotation, projection=projection)
    expected = multimodality(X, projection=projection)
    assert answer.statistics == pytest.approx(expected.statistics, abs=1e-10)
    assert answer.relative_gap == pytest.approx(expected.relative_gap, abs=1e-10)


@pytest.mark.parametrize("projection", ["pca-scaled", "distances"])
def test_units_of_the_columns_do_not_matter_with_scaling(projection):
    X = blobs()
    answer = multimodality(X * [1e-200, 1, 1e5, 1e200], projection=projection)
    assert answer.statistic == pytest.approx(
        multimodality(X, projection=projection).statistic, abs=1e-10
    )


@pytest.mark.parametrize("projection", ["pca-scaled", "pca", "components", "distances"])
def test_blocks_and_both_sides_of_the_spectrum_give_one_answer(projection, monkeypatch):
    tall = blobs(n=50, d=49)
    wide = np.column_stack([tall, tall])  # more columns than rows, the same components
    whole = multimodality(wide, projection=projection)
    monkeypatch.setattr(dip_projections, "BLOCK", 500)
    assert multimodality(wide, projection=projection).statistic == pytest.approx(whole.statistic)
    assert multimodality(tall, projection=projection).statistic == pytest.approx(whole.statistic)


def test_many_columns_take_another_road_to_the_same_eigenvectors(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(700, 600))
    X[:350, :30] += 1
    answer = multimodality(X, projection="components", n_components=3)
    monkeypatch.setattr(dip_projections, "DENSE_UP_TO", 600)
    expected = multimodality(X, projection="components", n_components=3)
    assert answer.statistics == pytest.approx(expected.statistics, abs=1e-10)
    assert answer.relative_gap == pytest.approx(expected.relative_gap, abs=1e-10)


def test_among_many_columns_a_repeated_eigenvalue_is_seen():
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(700, 601)))[0]
    basis = np.linalg.qr(basis - basis.mean(axis=0))[0]
    assert not multimodality(basis[:, :600]).defined
    twice = basis[:, :600] * np.r_[3.0, 3.0, np.linspace(2, 1, 598)]
    assert multimodality(twice, projection="pca").relative_gap < 1e-12
    once = basis[:, :600] * np.r_[3.0, np.linspace(2, 1, 599)]
    assert multimodality(once, projection="pca").relative_gap == pytest.approx(5 / 9, abs=1e-9)


def test_float32_far_from_the_origin_is_close_to_float64():
    X = blobs() / 10 + 1e4
    assert multimodality(X.astype(np.float32)).statistic == pytest.approx(
        multimodality(X).statistic, abs=2e-3
    )
    assert multimodality(X + 1e6).statistic == pytest.approx(multimodality(X).statistic, abs=1e-7)


@pytest.mark.parametrize("kind", [np.asfortranarray, pd.DataFrame, pl.DataFrame, to_tensor])
def test_every_kind_of_table_is_welcome(kind):
    X = blobs(n=60)
    assert multimodality(kind(X)).statistic == pytest.approx(multimodality(X).statistic, abs=1e-13)


def test_lists_and_integers_are_welcome():
    X = np.random.default_rng(0).integers(0, 255, size=(50, 3)).astype(np.uint8)
    assert multimodality(X.tolist()).statistic == multimodality(X).statistic


def test_too_many_pairs_are_sampled_and_said_so():
    X = blobs(n=200)
    first = multimodality(X, projection="distances", max_pairs=1000, random_state=0)
    again = multimodality(X, projection="distances", max_pairs=1000, random_state=0)
    assert first == again
    assert (first.n_objects, first.n_values) == (45, 990)
    assert first.note.startswith("Only 45 of 200 objects, drawn at random, entered")
    exact = multimodality(X, projection="distances", max_pairs=200 * 199 // 2)
    assert (exact.n_objects, exact.n_values, exact.note) == (200, 19900, "")


@pytest.mark.parametrize(
    ("X", "options", "error", "sentence"),
    [
        (
            blobs(),
            {"projection": "umap"},
            ValueError,
            "projection must be one of 'pca', 'pca-scaled'",
        ),
        (blobs(), {"n_components": 0}, ValueError, "n_components must be at least 1, got 0."),
        (blobs(), {"max_pairs": 1.5}, TypeError, "max_pairs must be an integer, got 1.5."),
        ([[1.0, 2.0]], {}, ValueError, r"X must have at least 2 row\(s\), got 1."),
        ([1.0, 2.0], {}, ValueError, "X must be two-dimensional"),
        ([[1, np.nan], [2, 3]], {}, ValueError, "X must be finite, got nan in column 1"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(X, options, error, sentence):
    with pytest.raises(error, match=sentence):
        multimodality(X, **options)
