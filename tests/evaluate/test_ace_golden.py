"""ACE gives what the authors' code gives, wherever that does not depend on order or CPU."""

from __future__ import annotations

import numpy as np
import pytest
from ace_golden import Cell, arrays, cells, filled, matrices, matrix_record

from wellsep.evaluate import NothingToRank, ace
from wellsep.evaluate.ace_method.steps import admit, edge_weights, fill_undefined, mean_scores
from wellsep.evaluate.ranks import rank_agreement
from wellsep.partitions import Classes

# Decided by the last digit of a score, which counts as tied here.
LAST_DIGIT = {
    f"identical_partitions/ch/{variant}"
    for variant in ("dbscan05", "dbscan10", "dbscan20", "dbscan10_keep_outliers")
}
# Spaces 0 and 8 are rotations of each other and both outliers with the largest sum.
TWO_OUTLIERS = {f"digits_pca/ch/{v}" for v in ("keep_outliers", "no_dip_keep_outliers")}

ROBUST = [c for c in cells() if c.stored.get("robust")]
PLAIN = [c for c in ROBUST if str(c) not in LAST_DIGIT | TWO_OUTLIERS]


def exact_scores(cell: Cell) -> np.ndarray:
    return np.array(cell.stored.get("ace_exact_weights", cell.stored["ace"]))


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return np.abs(ours - theirs).max() <= 1e-9 * np.abs(theirs).max()


def rows_of(case: str, part: str, index: str, which: str) -> np.ndarray:
    stored = arrays(case)
    used = stored[f"spaces_{index}_{which}{part}"]
    return filled(case, part, index).oriented()[used]


PAIRS = [
    (*matrix, which)
    for matrix in matrices()
    for which in ("dip", "all")
    if arrays(matrix[0])[f"spaces_{matrix[2]}_{which}{matrix[1]}"].size > 1
]


@pytest.mark.parametrize(("case", "part", "index", "which"), PAIRS)
def test_spearman_pvalues_and_holm_equal_the_authors(case, part, index, which):
    stored = arrays(case)
    key = f"{index}_{which}{part}"
    found = rank_agreement("spearman", rows_of(case, part, index, which), tolerance=0.0)
    off = ~np.eye(len(found.correlation), dtype=bool)
    np.testing.assert_allclose(
        found.correlation[off], stored[f"spearman_{key}"][off], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(found.pvalue, stored[f"p_{key}"], rtol=1e-7, atol=1e-14)
    for alpha, name in ((0.1, "holm10"), (0.05, "holm05")):
        edges, _ = edge_weights(found, alpha)
        expected = stored[f"{name}_{key}"] & (stored[f"spearman_{key}"] > 0)
        np.testing.assert_array_equal(edges > 0, expected)


@pytest.mark.parametrize(("case", "part", "index"), matrices())
def test_paired_and_pooled_scores_equal_the_authors(case, part, index):
    scores, theirs = filled(case, part, index), matrix_record(case, part, index)
    # float32 matrices were averaged in float32
    rtol = 1e-12 if theirs["score_dtype"] == "float64" else 1e-5
    matrix, _ = fill_undefined(scores, scores.check_index(None), "worst")
    kept = admit(scores.dip.pvalue, 0.05).retained
    ours = mean_scores(scores, matrix, kept, Classes.all_differ(scores.partitions))
    np.testing.assert_allclose(ours["own_space"], theirs["paired"], rtol=rtol)
    np.testing.assert_allclose(ours["mean_admitted"], theirs["pooled"], rtol=rtol)
    np.testing.assert_allclose(ours["mean_all"], theirs["pooled_all"], rtol=rtol)


@pytest.mark.parametrize("cell", PLAIN, ids=str)
def test_a_robust_cell_has_the_same_winner_and_scores(cell):
    result = ace(filled(*cell[:3]), **cell.options)
    assert sorted(result.winner.spaces) == sorted(cell.stored["winner"]["members"])
    assert close(result.scores, exact_scores(cell))


@pytest.mark.parametrize("cell", [c for c in ROBUST if str(c) in LAST_DIGIT], ids=str)
def test_scores_that_differ_in_the_last_digit_count_only_without_tolerance(cell):
    with pytest.raises(NothingToRank, match="identical"):
        ace(filled(*cell[:3]), **cell.options)
    result = ace(filled(*cell[:3]), tie_tolerance=0.0, **cell.options)
    assert sorted(result.winner.spaces) == sorted(cell.stored["winner"]["members"])
    assert close(result.scores, exact_scores(cell))


@pytest.mark.parametrize("cell", [c for c in ROBUST if str(c) in TWO_OUTLIERS], ids=str)
def test_outliers_that_tie_share_the_win_of_either(cell):
    result = ace(filled(*cell[:3]), **cell.options)
    assert result.winner.won_by == "outlier"
    assert result.winner.spaces == (0, 8)
    assert cell.stored["winner"]["members"] == [8]
    assert close(result.scores, exact_scores(cell))


@pytest.mark.parametrize(
    "cell", [c for c in cells() if c.stored["status"] == "single_space"], ids=str
)
def test_a_single_space_answers_with_its_own_row(cell):
    result = ace(filled(*cell[:3]), **cell.options)
    assert result.winner.won_by == "single space"
    np.testing.assert_array_equal(result.scores, cell.stored["ace"])


@pytest.mark.parametrize("cell", [c for c in cells() if c.stored["status"] == "error"], ids=str)
def test_where_the_authors_code_fails_nothing_can_be_ranked_and_the_reason_is_given(cell):
    with pytest.raises(NothingToRank, match="tells the 4 clusterings apart"):
        ace(filled(*cell[:3]), **cell.options)


@pytest.mark.parametrize("cell", [c for c in PLAIN if c.variant == "default"], ids=str)
def test_weights_and_edges_of_the_winning_subgroup_equal_the_authors(cell):
    result = ace(filled(*cell[:3]))
    theirs = {tuple(s["members"]): s for s in cell.stored["subgroups"]}
    winner = tuple(sorted(cell.stored["winner"]["members"]))
    ours = {s.members: s for s in result.groups.subgroups}
    # a subgroup of one space has no second set of weights
    expected = theirs[winner].get("weights_exact", theirs[winner]["weights"])
    np.testing.assert_allclose(ours[winner].weights, expected, atol=1e-9)
    assert ours[winner].n_edges == theirs[winner]["n_edges"]


@pytest.mark.parametrize(
    "cell", [c for c in PLAIN if "ttest" in c.stored and c.part == ""], ids=str
)
def test_the_outlier_test_has_the_authors_statistic_and_pvalue(cell):
    result = ace(filled(*cell[:3]), **cell.options)
    expected = cell.stored["ttest"]
    assert result.winner.test is not None
    # the authors' group scores carry the error of an iterated PageRank
    assert result.winner.test["statistic"] == pytest.approx(expected["statistic"], rel=1e-4)
    assert result.winner.test["pvalue"] == pytest.approx(expected["pvalue"], rel=1e-3)
