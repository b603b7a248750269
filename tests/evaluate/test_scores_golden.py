"""Scores and dip tests of the golden runs equal what the ACE authors' tools computed."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ace_golden import INDEX_NAMES, arrays, case_names, case_runs, record

from wellsep.evaluate import Scores, score_runs
from wellsep.spaces import holm


@functools.cache
def scores_of(case: str) -> Scores:
    indices = tuple(INDEX_NAMES.values())
    return score_runs(case_runs(case), indices, projection="pca-scaled", details=False)


def stored_scores(case: str, index: str) -> np.ndarray:
    """The authors' matrix, computed in float64 and with the sign they use."""
    stored = arrays(case)
    return stored.get(f"S_{index}__f64", stored[f"S_{index}"])


@pytest.mark.parametrize("index", INDEX_NAMES)
@pytest.mark.parametrize("case", case_names())
def test_scores_equal_the_authors(case, index):
    ours = scores_of(case).oriented(INDEX_NAMES[index])
    theirs = stored_scores(case, index)
    # a silhouette of equal points is 0 by definition, the other indices have no value there
    odd = odd_spaces(case) & (index != "euclidean")
    np.testing.assert_array_equal(np.isnan(ours[~odd]), np.isnan(theirs[~odd]))
    np.testing.assert_allclose(ours[~odd], theirs[~odd], rtol=1e-9, atol=1e-12)


def odd_spaces(case: str) -> np.ndarray:
    """Spaces where all objects coincide: scikit-learn returns a number, the index has no value."""
    spaces = case_runs(case).spaces.values()
    return np.array([bool((np.ptp(X, axis=0) == 0).all()) for X in spaces])


@pytest.mark.parametrize("case", case_names())
def test_the_dip_of_every_space_equals_r(case):
    theirs = record(case)["dip"]
    ours = scores_of(case).dip
    # an eigenvalue that equals the next leaves the component to chance
    gap = np.array([np.inf if g is None else g for g in theirs["pc1_relative_gap"]], dtype=float)
    defined = ~(gap < 1e-8) & ~odd_spaces(case)
    np.testing.assert_allclose(
        ours.statistic[defined], np.array(theirs["statistic"])[defined], rtol=1e-8
    )
    np.testing.assert_allclose(ours.pvalue[defined], np.array(theirs["pvalue"])[defined], atol=0.01)


@pytest.mark.parametrize("case", case_names())
def test_holm_keeps_the_same_spaces(case):
    theirs = record(case)["dip"]
    found = holm(theirs["pvalue"], 0.05)
    np.testing.assert_array_equal(found.reject, theirs["holm_reject"])
    np.testing.assert_allclose(found.adjusted, theirs["holm_adjusted"], rtol=1e-12)


@pytest.mark.parametrize("case", case_names())
def test_a_space_whose_component_is_chance_carries_a_note(case):
    theirs = record(case)["dip"]
    gap = np.array([np.inf if g is None else g for g in theirs["pc1_relative_gap"]], dtype=float)
    notes = scores_of(case).dip.notes
    undefined = [i for i in np.flatnonzero(gap < 1e-8) if not odd_spaces(case)[i]]
    assert all("Undefined" in notes[i] for i in undefined)
    assert not any("Undefined" in notes[i] for i in np.flatnonzero(gap > 1e-4))
