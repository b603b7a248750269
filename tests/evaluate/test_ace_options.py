"""ACE's choices and refusals: what is dropped, what ties, what cannot be ranked."""

from __future__ import annotations

import numpy as np
import pytest

from wellsep.evaluate import AceResult, NothingToRank, Scores, ace

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def scores(*rows, **options) -> Scores:
    return Scores.from_matrix(np.array(rows), **{"paired": False, **options})


def noisy(row, seed, scale=0.05):
    return np.array(row) + np.random.default_rng(seed).normal(0, scale, len(row))


def test_a_smaller_is_better_index_is_negated_once():
    matrix = np.array([[0.5, 2.0, 1.0], [0.4, 1.9, 1.1]])
    result = ace(scores(*matrix, index="davies_bouldin", direction=-1), dip=False)
    assert result.scores.argmax() == 0
    assert (result.scores < 0).all()
    assert result.baselines["mean_admitted"].tolist() == pytest.approx([-0.45, -1.95, -1.05])


def test_undefined_scores_take_the_smallest_of_the_whole_matrix_with_reasons_kept():
    table = Scores(
        values={"silhouette": np.array([[0.4, np.nan, 0.2], [0.5, 0.3, -0.7]])},
        directions={"silhouette": 1},
        spaces=("a", "b"),
        partitions=("x", "y", "z"),
        made_in=np.full(3, -1),
        reasons={"silhouette": {"'y' in 'a'": "one cluster"}},
    )
    result = ace(table, dip=False)
    assert result.undefined == (("a", "y", "one cluster"),)
    assert result.undefined_value == -0.7
    assert result.baselines["mean_admitted"].tolist() == pytest.approx([0.45, -0.2, -0.25])
    with pytest.raises(ValueError, match=r"no silhouette for 'y' in 'a' \(one cluster\)"):
        ace(table, dip=False, undefined="error")


@pytest.mark.parametrize("direction", [1, -1])
def test_infinity_is_undefined_whatever_its_sign(direction):
    rows = [[np.inf, 0.3, 0.2], [0.5, 0.3, -np.inf]]
    result = ace(scores(*rows, direction=direction), dip=False)
    assert len(result.undefined) == 2
    assert np.isfinite(result.scores).all()
    assert result.undefined_value == (0.2 if direction > 0 else -0.5)


def test_spaces_that_fail_the_dip_test_are_dropped_by_name():
    rows = [noisy(UP, i) for i in range(3)] + [UP[::-1]]
    table = scores(*rows, spaces=["a", "b", "c", "flat"], dip_pvalues=[0, 0, 0, 0.8])
    result = ace(table)
    assert [(d.space, d.step) for d in result.dropped] == [("flat", "dip")]
    assert "0.8" in result.dropped[0].reason
    assert 3 not in result.winner.spaces


def test_when_no_space_passes_all_stay_and_it_is_said():
    table = scores(*[noisy(UP, i) for i in range(4)], dip_pvalues=[0.5] * 4)
    result = ace(table)
    assert result.screen.none_passed
    assert result.screen.retained == (0, 1, 2, 3)
    assert "No embedding passes the dip test" in result.explain()
    assert "mean scores" in result.explain().lower()


def test_one_space_left_answers_alone():
    table = scores(UP, UP[::-1], dip_pvalues=[0.0, 0.9])
    result = ace(table)
    assert result.winner.won_by == "single space"
    assert result.scores.tolist() == UP


def test_a_constant_row_is_dropped():
    rows = [*(noisy(UP, i) for i in range(3)), [0.3] * 6]
    result = ace(scores(*rows, spaces=["a", "b", "c", "same"]), dip=False)
    assert [(d.space, d.step) for d in result.dropped] == [("same", "constant")]


def test_one_partition_leaves_nothing_to_rank():
    with pytest.raises(NothingToRank, match="at least 2 clusterings"):
        ace(scores([0.1], [0.2]), dip=False)


def test_identical_partitions_leave_nothing_to_rank():
    with pytest.raises(NothingToRank, match="identical"):
        ace(scores([0.3, 0.1 + 0.2], [0.7, 0.7]), dip=False)


def test_scores_undefined_everywhere_leave_nothing_to_rank():
    with pytest.raises(NothingToRank, match="undefined for every clustering"):
        ace(scores([np.nan, np.nan], [np.nan, np.nan]), dip=False)


def test_two_partitions_are_ranked_and_the_edge_stays_without_a_test():
    result = ace(scores([0.1, 0.2], [0.3, 0.5], [0.2, 0.9]), dip=False)
    assert result.groups.adjusted is None
    assert (result.groups.edges > 0).sum() == 6
    assert result.scores.argmax() == 1


def test_two_runs_are_ranked():
    result = ace(Scores.from_matrix([[0.1, 0.2], [0.3, 0.5]]), dip=False)
    assert result.scores.tolist() == pytest.approx([0.2, 0.35])


def test_groups_whose_means_tie_share_the_answer():
    up, down = np.array(UP), np.array(UP[::-1])
    moved = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0.01, -0.01], [0.01, 0, 0, 0, 0, -0.01]])
    rows = list(up + moved)
    rows += [row[::-1] for row in rows]
    result = ace(scores(*rows), dip=False)
    assert len(result.groups.members) == 2
    assert result.winner.subgroups == (0, 1)
    assert result.winner.spaces == (0, 1, 2, 3, 4, 5)
    np.testing.assert_allclose(result.scores, result.scores[::-1])
    assert result.scores.mean() == pytest.approx((up + down).mean() / 2)


def test_no_edge_test_keeps_every_positive_correlation():
    rows = [noisy(UP, i, scale=0.3) for i in range(5)]
    free, strict = ace(scores(*rows), dip=False, alpha=None), ace(scores(*rows), dip=False)
    positive = np.triu(free.groups.agreement > 0, 1).sum()
    assert np.count_nonzero(np.triu(free.groups.edges, 1)) == positive
    assert np.count_nonzero(strict.groups.edges) < np.count_nonzero(free.groups.edges)


def test_kendall_stands_in_for_spearman():
    rows = [noisy(UP, i, scale=0.1) for i in range(5)]
    by_rank, by_pairs = (
        ace(scores(*rows), dip=False, correlation=c) for c in ("spearman", "kendall")
    )
    assert (np.abs(by_pairs.groups.agreement) <= np.abs(by_rank.groups.agreement) + 1e-12).all()
    assert not np.allclose(by_pairs.groups.agreement, by_rank.groups.agreement)


def test_an_outlier_wins_only_if_it_competes_and_is_significantly_better():
    group = [noisy(UP, i, scale=0.001) for i in range(4)]
    better = np.array([0.9, 0.7, 0.95, 0.8, 0.72, 0.85])
    options = {"dip": False, "grouping": "dbscan"}
    table = scores(*group, better)
    assert ace(table, **options).winner.won_by == "group"
    winner = ace(table, outliers="compete", **options)
    assert winner.winner.won_by == "outlier"
    assert winner.winner.spaces == (4,)
    barely = scores(*group, np.array([0.9, 0.2, 0.1, 0.3, 0.2, 0.45]))
    kept = ace(barely, outliers="compete", **options)
    assert kept.winner.won_by == "group"
    assert kept.winner.test["pvalue"] > 0.05
    assert "not significantly" in kept.explain()


def test_without_any_group_the_best_space_answers():
    rows = [[0.1, 0.5, 0.2, 0.3], [0.9, 0.2, 0.8, 0.7], [0.3, 0.1, 0.2, 0.4]]
    result = ace(scores(*rows), dip=False, grouping="dbscan", eps=0.01)
    assert result.groups.members == ()
    assert result.winner.won_by == "outlier"
    assert result.winner.spaces == (1,)


def test_own_space_scores_need_a_space_of_each_partition():
    assert "own_space" not in ace(scores(UP, UP[::-1]), dip=False).baselines


def test_the_dip_test_needs_its_pvalues():
    with pytest.raises(ValueError, match="dip p-values"):
        ace(scores(UP, UP))
    assert ace(scores(UP, UP), dip=False).baselines["mean_all"].tolist() == UP


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"links": "random"}, "links must be one of"),
        ({"grouping": "kmeans"}, "grouping must be one of"),
        ({"outliers": "keep"}, "outliers must be one of"),
        ({"alpha": 0.0}, "alpha must be greater than 0"),
        ({"dip_alpha": 1.5}, "dip_alpha must be at most 1"),
        ({"eps": -1.0}, "eps must be at least 0"),
        ({"index": "dunn"}, "index must be one of 'score'"),
        ({"correlation": "pearson"}, "correlation must be one of"),
        ({"undefined": "zero"}, "undefined must be one of"),
    ],
)
def test_a_wrong_option_is_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ace(scores(UP, UP[::-1]), **{"dip": False, **options})


def test_the_result_survives_the_disk(tmp_path):
    rows = [noisy(UP, i) for i in range(3)] + [UP[::-1]]
    first = ace(scores(*rows, dip_pvalues=[0, 0, 0, 0.8]))
    first.save(tmp_path / "ace")
    again = AceResult.load(tmp_path / "ace")
    assert again.explain() == first.explain()
    np.testing.assert_array_equal(again.scores, first.scores)
    np.testing.assert_array_equal(
        again.groups.subgroups[0].weights, first.groups.subgroups[0].weights
    )
    assert again.dropped[0].space == first.dropped[0].space
    assert again.options == first.options


def test_a_notebook_shows_the_story_with_names_escaped():
    table = scores(UP, noisy(UP, 1), spaces=["<b>bold</b>", "b"])
    html = ace(table, dip=False)._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert "<b>bold" not in html
