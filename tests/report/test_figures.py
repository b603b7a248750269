"""Figures are plain data with the right values, before anything is drawn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pages import grouped_scores, small_choice, small_judgement, small_runs
from sklearn.metrics import silhouette_samples

import wellsep as ws
from wellsep.evaluate import rank
from wellsep.plot import ConnectivityDisplay, MarginDisplay, SilhouetteDisplay, display, partitions
from wellsep.report import pack
from wellsep.report.figures import ace, runs
from wellsep.report.figures.ace import (
    dip_figure,
    place_nodes,
    space_agreement,
    space_order,
    steps_figure,
)
from wellsep.report.pages.choose_k import build_k_page, k_table
from wellsep.report.sections import objects as object_figures
from wellsep.report.sections.scatter import matched
from wellsep.report.sections.tables import ranking_table, winning_means
from wellsep.spaces.drawing_planes import plane

HOMES = (pack, ace, runs, object_figures, partitions, display)
RECORDS = [
    record
    for home in HOMES
    for record in vars(home).values()
    if dataclasses.is_dataclass(record) and record.__module__ == home.__name__
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_figure_is_frozen_and_says_what_it_is(record):
    assert record.__dataclass_params__.frozen
    assert record.__doc__


@pytest.fixture(scope="module")
def result():
    return ws.ace(grouped_scores())


def test_the_steps_count_the_spaces_that_are_left(result):
    steps = steps_figure(result)
    assert [(s.title, s.count) for s in steps.steps] == [
        ("spaces", 8),
        ("have more than one mode", 7),
        ("tell clusterings apart", 6),
        ("in a group", 6),
        ("give the answer", 3),
    ]
    assert [sum(s.kept) for s in steps.steps] == [8, 7, 6, 6, 3]


def test_every_space_has_its_fate_and_those_that_fell_out_a_sentence(result):
    steps = steps_figure(result)
    assert steps.fate == ("wins",) * 3 + ("group",) * 3 + ("constant", "dip")
    said = {space: (step, why) for space, step, why in steps.dropped}
    assert said["flat"][0] == "constant"
    assert "adjusted p = 0.9" in said["plain"][1]


def test_the_spaces_are_drawn_by_group_with_the_winner_first(result):
    order = space_order(result)
    assert sorted(order[:3]) == [0, 1, 2]
    assert sorted(order[3:6]) == [3, 4, 5]
    assert order[6:].tolist() == [6, 7]
    assert steps_figure(result).group.tolist() == [0, 0, 0, 1, 1, 1, -1, -1]


def test_where_no_space_passes_the_step_counts_none_and_all_stay():
    scores = ws.Scores.from_matrix([[0.1, 0.3], [0.2, 0.5]], dip_pvalues=[0.5, 0.6])
    step = steps_figure(ws.ace(scores)).steps[1]
    assert step.count == 0
    assert step.kept == (True, True)


def test_the_heat_map_is_the_agreement_in_the_order_of_the_groups(result):
    heat = space_agreement(result)
    place = {space: i for i, space in enumerate(result.screen.retained)}
    for i, a in enumerate(heat.places):
        for j, b in enumerate(heat.places):
            assert heat.values[i, j] == result.groups.agreement[place[a], place[b]]
            assert heat.linked[i, j] == (result.groups.edges[place[a], place[b]] > 0)
    assert heat.names[0].startswith("good")
    assert heat.wins.tolist() == [True] * 3 + [False] * 3


def test_the_graph_links_what_agrees_and_puts_it_near(result):
    graph = space_agreement(result)
    near = np.linalg.norm(graph.xy[:, None] - graph.xy[None], axis=2)
    inside = near[:3, :3][np.triu_indices(3, 1)].max()
    between = near[:3, 3:].min()
    assert inside < between
    assert len(graph.edges) == 6
    assert np.all((graph.xy >= 0) & (graph.xy <= 1))
    np.testing.assert_allclose(graph.weight.sum(), 2.0)  # one in each of two groups


def test_the_layout_of_a_graph_is_the_same_every_time_and_parts_equal_nodes():
    r = np.ones((5, 5))
    xy = place_nodes(r, np.where(np.eye(5) > 0, 0.0, 1.0))
    near = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 9 * np.eye(5)
    assert near.min() > 0.05
    np.testing.assert_array_equal(xy, place_nodes(r, np.where(np.eye(5) > 0, 0.0, 1.0)))


def test_one_space_alone_has_no_heat_map_and_no_graph():
    scores = ws.Scores.from_matrix([[0.1, 0.3, 0.2]], paired=False)
    result = ws.ace(scores, dip=False)
    assert space_agreement(result) is None
    assert dip_figure(result) is None


def test_the_dip_figure_says_who_passes(result):
    dips = dip_figure(result, grouped_scores())
    assert dips.passed.tolist() == [True] * 7 + [False]
    assert dips.adjusted[-1] == pytest.approx(0.9)
    assert dips.alpha == 0.05


def test_the_table_has_ranks_intervals_params_baselines_and_indices():
    judgement = small_judgement()
    runs, _ = small_runs()
    table = ranking_table(judgement.ranking, scores=judgement.scores, params=runs.params)
    keys = [column.key for column in table.columns]
    assert keys[:5] == ["rank", "name", "score", "best", "interval"]
    assert {"k", "rank:own_space", "rank:mean_all", "param:lr", "param:model"} <= set(keys)
    assert "index:davies_bouldin" in keys
    assert table.same == {"epochs": "50"}
    by_key = {column.key: column for column in table.columns}
    assert list(by_key["rank"].values) == sorted(by_key["rank"].values)
    assert by_key["name"].values[0] == judgement.ranking.best
    assert by_key["index:davies_bouldin"].direction == -1


def test_many_params_share_one_column():
    scores = ws.Scores.from_matrix([[0.1, 0.3], [0.2, 0.5]])
    params = {name: {f"p{i}": f"{name}{i}" for i in range(9)} for name in scores.partitions}
    table = ranking_table(rank(ws.ace(scores, dip=False)), params=params)
    text = next(column for column in table.columns if column.key == "params")
    assert text.values[0].startswith("p0=run 10, p1=run 11")


def test_index_columns_are_weighted_means_over_the_winning_spaces_without_gaps():
    matrix = np.array([[0.2, np.nan], [0.4, 0.1]])
    scores = ws.Scores.from_matrix(matrix)
    result = ws.ace(scores, dip=False)
    weights = np.zeros(2)
    weights[list(result.winner.spaces)] = result.winner.weights
    expected = [weights @ matrix[:, 0], 0.1 if weights[1] else np.nan]
    np.testing.assert_allclose(winning_means(result, scores)["score"], expected)


def test_silhouettes_are_those_of_scikit_learn_sorted_within_clusters():
    runs, truth = small_runs()
    X = np.asarray(runs.spaces["first"])
    figure = SilhouetteDisplay.figure_of(X, truth)
    expected = silhouette_samples(X, truth)
    for cluster, (widths, objects) in enumerate(zip(figure.widths, figure.objects, strict=True)):
        np.testing.assert_allclose(widths, np.sort(expected[truth == cluster])[::-1])
        np.testing.assert_array_equal(truth[objects], cluster)
    assert figure.mean == pytest.approx(expected.mean())


def test_margins_list_the_smallest_and_connectivity_the_largest_as_worst():
    runs, _ = small_runs()
    X, labels = np.asarray(runs.spaces["first"]), runs.partitions["run 5"]
    margins, lcd = MarginDisplay.figure_of(X, labels), ConnectivityDisplay.figure_of(X, labels)
    values = ws.margins(X, labels)
    np.testing.assert_array_equal(np.sort(values)[: len(margins.worst)], values[margins.worst])
    disagreement = ws.local_connectivity(X, labels).objects
    largest = np.sort(disagreement)[::-1][: len(lcd.worst)]
    np.testing.assert_array_equal(disagreement[lcd.worst], largest)


def test_noise_is_in_no_cluster_of_a_figure():
    figure = SilhouetteDisplay.figure_of([[0.0], [1.0], [4.0], [5.0], [9.0]], [0, 0, 1, 1, -1])
    assert figure.clusters == ("0", "1")
    assert sum(map(len, figure.widths)) == 4


def test_clusters_keep_the_colour_of_those_they_overlap():
    reference = np.repeat([0, 1, 2], 10)
    renamed = np.repeat([2, 0, 1], 10)
    assert matched(renamed, reference).tolist() == [1, 2, 0]
    split = np.repeat([0, 1, 2, 3], [10, 10, 6, 4])
    assert matched(split, reference).tolist() == [0, 1, 2, 3]


def test_a_plane_of_two_columns_is_shown_as_it_is_and_a_wider_space_by_its_components():
    X = np.random.default_rng(0).normal(size=(20, 2))
    xy, axes = plane(X, np.arange(5))
    np.testing.assert_allclose(xy, X[:5], rtol=1e-6)
    assert axes == "columns"
    wide = np.column_stack([X[:, 0] * 10, X[:, 1], 0.01 * X[:, 0]])
    xy, axes = plane(wide, np.arange(20))
    assert abs(np.corrcoef(xy[:, 0], X[:, 0])[0, 1]) > 0.999
    assert axes == "principal components"


def test_a_layout_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="layout must be"):
        plane(np.eye(5), np.arange(5), "mds")


def test_curves_are_means_with_their_spread():
    chosen, _, _ = small_choice()
    figure = build_k_page(chosen, runs=None, truth=None, title=None, layout="pca").data["curves"]
    curve = {name: np.asarray(figure["curves"][0][name]) for name in ("mean", "high")}
    np.testing.assert_allclose(curve["mean"], chosen.mean[:, 0])
    spread = np.nan_to_num(chosen.spread[:, 0])
    np.testing.assert_allclose(curve["high"] - curve["mean"], spread)
    assert figure["best"] == chosen.best == 3
    assert sum(figure["votes"]) == pytest.approx(2)


def test_one_cluster_that_gets_votes_has_a_row_and_a_place_among_the_votes():
    X = np.random.default_rng(1).normal(size=(120, 4))
    chosen = ws.choose_k(X, range(2, 6), random_state=0)
    assert chosen.best == 1
    table = k_table(chosen)
    row = {column.key: column.values[0] for column in table.columns}
    assert row["k"] == "K = 1"
    assert row["votes"] == chosen.votes[1] > 0
    assert row["silhouette"] is None
    page = build_k_page(chosen, runs=X, truth=None, title=None, layout="pca")
    assert page.data["partitions"] == ["K = 1", "K = 2", "K = 3", "K = 4", "K = 5"]
    assert page.data["curves"]["votes"][0] == chosen.votes[1]
    assert page.data["partitions"][page.data["best"]] == f"K = {chosen.best_above_one}"


def test_the_table_over_k_starts_with_the_best():
    chosen, _, _ = small_choice()
    table = k_table(chosen)
    assert table.columns[0].values[0] == "K = 3"
    assert {"votes", "silhouette", "silhouette ±", "stability"} <= {c.key for c in table.columns}


def test_a_param_that_repeats_the_number_of_clusters_is_no_second_column():
    judgement = small_judgement()
    counts = dict(zip(judgement.ranking.names, judgement.ranking.n_clusters.tolist(), strict=True))
    params = {name: {"K": counts[name], "seed": i} for i, name in enumerate(counts)}
    keys = [column.key for column in ranking_table(judgement.ranking, params=params).columns]
    assert "param:seed" in keys
    assert "param:K" not in keys
