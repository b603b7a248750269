"""A resolution tree counts the objects that clusters of neighbouring levels have in common."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.report.figures.runs import tree_figure

LABELS = {
    "k3": [0, 0, 0, 2, 1, 1, 1, 1],
    "k2": ["a", "a", "a", "a", "b", "b", "b", "b"],
    "k4": [0, 0, 3, 2, 1, 1, 2, 1],
}


def links_of(tree):
    table = tree.columns()
    return {
        (a, b, c, d): n
        for a, b, c, d, n in zip(*[table[name] for name in list(table)[:5]], strict=True)
    }


def test_levels_go_from_few_clusters_to_many_and_links_count_common_objects():
    tree = ws.resolution_tree(LABELS)
    assert tree.levels == ("k2", "k3", "k4")
    assert tree.n_clusters.tolist() == [2, 3, 4]
    assert links_of(tree) == {
        ("k2", "a", "k3", "0"): 3, ("k2", "a", "k3", "2"): 1, ("k2", "b", "k3", "1"): 4,
        ("k3", "0", "k4", "0"): 2, ("k3", "0", "k4", "3"): 1, ("k3", "2", "k4", "2"): 1,
        ("k3", "1", "k4", "1"): 3, ("k3", "1", "k4", "2"): 1,
    }  # fmt: skip


def test_shares_and_parents_follow_from_the_counts():
    tree = ws.resolution_tree(LABELS)
    for step in range(2):  # everything a cluster has goes somewhere, and comes from somewhere
        upper = tree.level[tree.links[:, 0]] == step
        for side, shares in ((0, tree.share_of_source), (1, tree.share_of_target)):
            nodes = tree.links[upper, side]
            total = np.bincount(nodes, shares[upper])
            np.testing.assert_allclose(total[np.unique(nodes)], 1)
    names = [None if p < 0 else tree.clusters[p] for p in tree.parents]
    assert names == [None, None, "a", "b", "a", "0", "1", "2", "0"]
    assert tree.parent_shares[-2] == 0.5  # cluster 2 of k4 takes its objects from 2 and 1
    assert np.isnan(tree.parent_shares[:2]).all()


def test_the_sentences_tell_splits_and_mixtures():
    lines = ws.resolution_tree(LABELS).explain().splitlines()
    assert lines[0] == "k2 → k3: cluster a splits into 0 (75%) and 2 (25%)."
    assert "the new cluster 2 takes objects from" in lines[1]
    assert lines[2].startswith("6 of 7 clusters after the first level")
    same = ws.resolution_tree([[0, 0, 1, 1], [1, 1, 0, 0]]).explain()
    assert "every cluster keeps its objects" in same


def test_equal_numbers_of_clusters_stay_in_their_order():
    tree = ws.resolution_tree({"b": [0, 1, 1], "a": [0, 0, 1], "one": [0, 0, 0]})
    assert tree.levels == ("one", "b", "a")


def test_noise_is_a_node_of_its_own_and_no_cluster():
    tree = ws.resolution_tree({"coarse": [0, 0, 0, 1, -1], "fine": [0, 0, -2, 1, 2]})
    assert tree.n_clusters.tolist() == [2, 3]
    assert tree.clusters[2] == "noise"
    assert tree.is_noise.tolist() == [False, False, True, False, False, False, True]
    assert links_of(tree)["coarse", "0", "fine", "noise"] == 1
    assert (tree_figure(tree).codes[tree.is_noise] == -1).all()


def test_runs_frames_arrays_and_a_choice_of_k_give_trees():
    X = np.array([[0.0], [1], [10], [11], [20], [22]])
    chosen = ws.choose_k(X, range(2, 5), indices=["silhouette"], random_state=0)
    assert ws.resolution_tree(chosen).levels == ("K = 2", "K = 3", "K = 4")
    assert ws.resolution_tree(chosen, "K = 2,K = 4").levels == ("K = 2", "K = 4")
    rows = list(LABELS.values())
    runs = ws.Runs.from_parts(None, LABELS)
    codes = np.array([np.unique(row, return_inverse=True)[1] for row in rows])
    for other in (runs, codes):
        np.testing.assert_array_equal(
            ws.resolution_tree(other).counts, ws.resolution_tree(LABELS).counts
        )
    pd = pytest.importorskip("pandas", reason="needs pandas")
    assert ws.resolution_tree(pd.DataFrame(LABELS), ["k2", "k4"]).levels == ("k2", "k4")


@pytest.mark.parametrize(
    ("runs", "labels", "message"),
    [
        ({"a": [0, 1]}, None, "runs must hold at least 2 clusterings, got 1"),
        ({"a": [0, 1], "b": [0, 1, 1]}, None, "must have the 2 objects"),
        (LABELS, "k9", "labels must match one of 'k3', 'k2', 'k4', got 'k9'"),
        (3, None, "runs must be Runs, label vectors by name"),
    ],
)
def test_what_is_no_tree_is_refused_with_a_sentence(runs, labels, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ws.resolution_tree(runs, labels)


def test_the_layout_crosses_no_links_of_a_true_tree():
    labels = np.arange(16)
    tree = ws.resolution_tree({str(k): (labels * 7 % 16) // (16 // k) for k in (1, 2, 4, 8, 16)})
    figure = tree_figure(tree)
    for step in range(len(figure.levels) - 1):
        mine = figure.level[figure.links[:, 0]] == step
        upper, lower = (figure.x[nodes] for nodes in figure.links[mine].T)
        order = np.lexsort((lower, upper))
        assert (np.diff(lower[order]) >= 0).all()


def test_the_largest_part_of_a_cluster_keeps_its_colour():
    figure = tree_figure(ws.resolution_tree(LABELS))
    named = dict(zip(zip(figure.level, figure.clusters, strict=True), figure.codes, strict=True))
    assert named[0, "a"] == named[1, "0"] == named[2, "0"]
    assert named[0, "b"] == named[1, "1"] == named[2, "1"]
    assert len(set(named.values())) == 4


def test_the_page_of_a_chosen_k_holds_the_tree(tmp_path):
    X = np.array([[0.0], [1], [10], [11], [20], [22]])
    chosen = ws.choose_k(X, range(2, 5), indices=["silhouette"], random_state=0)
    page = ws.render_report(chosen, tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'data-chart="tree"' in page
    single = ws.choose_k(X, [3], indices=["silhouette"], random_state=0)
    page = ws.render_report(single, tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'data-chart="tree"' not in page


def test_the_display_draws_a_dot_per_cluster_and_a_line_per_link():
    pytest.importorskip("matplotlib", reason="needs matplotlib").use("agg")
    from wellsep.plot import ResolutionTreeDisplay

    tree = ws.resolution_tree(LABELS)
    display = ResolutionTreeDisplay.from_result(tree)
    assert len(display.ax_.lines) == len(tree.links)
    assert len(display.ax_.collections[0].get_offsets()) == len(tree.sizes)
    with pytest.raises(TypeError, match="result must be ResolutionTree"):
        ResolutionTreeDisplay.from_result(LABELS)
