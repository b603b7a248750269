"""Holm's correction equals R's and statsmodels', and says what it does with NaN."""

from __future__ import annotations

import numpy as np
import pytest
from golden import read_json
from hypothesis import given
from hypothesis import strategies as st

from wellsep.spaces import holm


@pytest.mark.parametrize("case", ["seed1", "seed2"])
def test_adjusted_values_and_decisions_equal_those_of_r_and_statsmodels(case):
    golden = read_json("indices/ace_stats.json")["cases"][case]
    p = np.array(golden["spearman_p_greater"], dtype=float)
    pairs = np.triu_indices(len(p), 1) if p.ndim == 2 else slice(None)
    result = holm(p[pairs], 0.1)

    def flat(key):
        table = np.array(golden[key])
        return table[pairs] if table.ndim == 2 else table

    assert result.adjusted == pytest.approx(flat("holm_adjusted_R"), rel=1e-13)
    assert result.adjusted == pytest.approx(flat("holm_adjusted_statsmodels"), rel=1e-13)
    assert np.array_equal(result.reject, flat("holm_reject_alpha0_1").astype(bool))


def test_the_correction_agrees_with_arithmetic_by_hand():
    result = holm([0.04, 0.01, 0.5, 0.011], 0.05)
    assert result.adjusted.tolist() == pytest.approx([0.08, 0.04, 0.5, 0.04])
    assert result.reject.tolist() == [False, True, False, True]
    assert result.alpha == 0.05


def test_a_rejection_needs_all_smaller_p_values_rejected():
    assert not holm([0.03, 0.04, 0.045], 0.05).reject.any()


def test_nan_counts_neither_as_a_test_nor_as_a_rejection():
    result = holm([0.02, np.nan, 0.03], 0.05)
    assert result.adjusted.tolist() == pytest.approx([0.04, np.nan, 0.04], nan_ok=True)
    assert result.reject.tolist() == [True, False, True]


def test_no_tests_give_no_rejections():
    assert holm([], 0.05).reject.shape == (0,)


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(probabilities, st.randoms(use_true_random=False))
def test_the_order_of_the_tests_does_not_matter(p, random):
    order = random.sample(range(len(p)), len(p))
    assert holm(np.array(p)[order]).adjusted == pytest.approx(holm(p).adjusted[order])


@given(probabilities)
def test_adjusted_values_lie_between_the_raw_and_bonferronis(p):
    adjusted = holm(p).adjusted
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= np.minimum(1, len(p) * np.array(p)).max()).all()


@pytest.mark.parametrize(
    ("pvalues", "alpha", "error", "sentence"),
    [
        ([0.5, 1.5], 0.05, ValueError, "pvalues must lie between 0 and 1, got 1.5 at 1."),
        ([-0.1], 0.05, ValueError, "pvalues must lie between 0 and 1, got -0.1 at 0."),
        ([[0.5]], 0.05, ValueError, r"pvalues must be one-dimensional, got shape \(1, 1\)."),
        (["a"], 0.05, TypeError, "pvalues must be numbers, got an array of type"),
        ([0.5], 0, ValueError, "alpha must be greater than 0, got 0.0."),
        ([0.5], 5, ValueError, "alpha must be at most 1, got 5.0."),
        ([0.5], "x", TypeError, "alpha must be a number, got 'x'."),
    ],
)
def test_bad_input_is_refused_with_a_sentence(pvalues, alpha, error, sentence):
    with pytest.raises(error, match=sentence):
        holm(pvalues, alpha)
