"""Whoever judges, ranking, certainty, page and terminal are theirs; the others stand beside."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import cluster, datasets, decomposition

import wellsep as ws
from wellsep.evaluate import NothingToRank
from wellsep.records import AceResult, Consensus, Judgement
from wellsep.runs import Runs


@pytest.fixture(scope="module")
def runs():
    """ACE and the vote disagree: one space praises a partition that no other run supports."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    spaces = {s: rng.normal(size=(120, 2)) + 4 * np.eye(3)[truth, :2] for s in "abc"}
    labels = {f"{p:.0%}": np.where(rng.random(120) < p, rng.integers(0, 4, 120), truth)
              for p in (0.1, 0.15, 0.2, 0.3, 0.5)}  # fmt: skip
    labels["pair"] = truth == 2
    return Runs.from_parts(spaces, labels)


def finer(labels, k):
    """The same clusters cut into k."""
    return labels * k + np.arange(len(labels)) // 3 % k


@pytest.fixture(scope="module")
def varied(runs):
    """The same with twice and three times as many clusters besides."""
    labels = dict(runs.partitions)
    more = {f"{name}, {k}": finer(labels[name], k) for name in ("10%", "15%") for k in (2, 3)}
    return Runs.from_parts(dict(runs.spaces), labels | more)


def mean_silhouettes(judgement):
    return judgement.scores.values["silhouette"].mean(axis=0)


def test_a_vote_decides_where_it_is_asked_for(runs, tmp_path):
    judgement = ws.judge(runs, judge="consensus", n_draws=6)
    expected = ws.consensus(runs, index=mean_silhouettes(judgement))
    np.testing.assert_allclose(judgement.ranking.score, expected.scores)
    assert judgement.ranking.winners == expected.winners
    assert judgement.ranking.judge == judgement.judge == "consensus"
    assert judgement.details.partition == expected.best
    assert isinstance(judgement.answer, Consensus)
    assert isinstance(judgement.by_ace, AceResult)
    assert "ace" in judgement.ranking.baselines
    assert "consensus" not in judgement.ranking.baselines
    told = judgement.explain()
    assert "ACE picks" in told
    assert "Runs with about as many clusters and the silhouette decide, as asked." in told
    assert "How stable: Over 6 half-samples" in told
    again = Judgement.load(judgement.save(tmp_path / "saved"))
    assert again.ranking.columns() == judgement.ranking.columns()
    assert again.verdict.explain() == judgement.verdict.explain()
    assert again.to_dict().keys() == judgement.to_dict().keys()


def test_the_vote_decides_whether_k_varies_or_not_and_ace_where_it_is_asked_for(runs, varied):
    for some in (runs, varied):
        judgement = ws.judge(some, n_draws=0)
        assert judgement.judge == judgement.ranking.judge == "consensus"
        expected = ws.consensus(some, index=mean_silhouettes(judgement))
        np.testing.assert_allclose(judgement.ranking.score, expected.scores)
        said = "Runs with about as many clusters and the silhouette decide."
        assert judgement.explain().count(said) == 1
        asked = ws.judge(some, judge="ace", n_draws=0)
        assert asked.judge == "ace"
        assert asked.answer.scores.tolist() == judgement.by_ace.scores.tolist()
        assert asked.explain().count("ACE decides, as asked.") == 1


def test_at_most_two_baselines_stand_beside_the_other_judge(runs):
    X = runs.spaces["a"]
    by_vote = ws.judge(runs, n_draws=0, X=X).ranking
    assert by_vote.shown_baselines == ("ace", "input", "mean_all")
    by_ace = ws.judge(runs, judge="ace", n_draws=0).ranking
    assert by_ace.shown_baselines == ("consensus", "mean_all")
    assert {"mean_admitted", "mean_all", "input", "ace"} <= set(by_vote.baselines)
    assert [c for c in by_vote.columns() if c.startswith("rank_")] == [
        "rank_ace", "rank_input", "rank_mean_all",
    ]  # fmt: skip


def test_every_index_has_its_own_vote(varied):
    judgement = ws.judge(varied, ["davies_bouldin", "silhouette"], n_draws=0)
    votes = judgement.answers["consensus"]
    assert list(votes) == ["davies_bouldin", "silhouette"]
    np.testing.assert_allclose(votes["silhouette"].index_scores, mean_silhouettes(judgement))
    assert votes["silhouette"].bounded and not votes["davies_bouldin"].bounded
    smallest = judgement.scores.values["davies_bouldin"].mean(axis=0).argmin()
    assert votes["davies_bouldin"].index_scores[smallest] == 0.5  # half the rank of the best
    assert judgement.answer is votes["davies_bouldin"]


def blobs(centers, ks, dims, seed):
    """k-means over K on blobs, in their coordinates or in principal components of them."""
    X, _ = datasets.make_blobs(300, 4, centers=centers, random_state=seed)
    spaces = {"X": X} if dims is None else {
        f"PCA {d}": decomposition.PCA(d, random_state=0).fit_transform(X) for d in dims
    }  # fmt: skip
    return [
        (f"{name} K={k}", Z, cluster.KMeans(k, n_init=10, random_state=0).fit_predict(Z))
        for name, Z in spaces.items()
        for k in ks
    ]


@pytest.mark.parametrize(
    ("centers", "ks", "dims", "right"),
    [
        (3, (2, 3, 4), (2, 3), 4),
        (3, (2, 3, 4, 5, 6), (2, 3), 4),
        (5, (2, 4, 5, 6, 8), (2, 3), 4),
        (10, (6, 10, 14), (2, 3), 4),
        (3, (2, 3, 4), None, 3),
        (3, range(2, 11), None, 3),
        (5, range(2, 11), None, 2),
    ],
)
def test_on_blobs_the_default_finds_k_at_least_as_often_as_the_silhouette(centers, ks, dims, right):
    found = by_silhouette = 0
    for seed in range(4):
        judgement = ws.judge(blobs(centers, ks, dims, seed), n_draws=0, details=False)
        clusters = judgement.ranking.n_clusters
        best = judgement.ranking.names.index(judgement.ranking.best)
        found += int(clusters[best] == centers)
        by_silhouette += int(clusters[mean_silhouettes(judgement).argmax()] == centers)
    assert found >= by_silhouette
    assert found >= right


@pytest.mark.parametrize(
    ("ks", "why"),
    [
        ((2, 3, 4), "only 3 clusterings differ"),
        ((2, 3, 4, 5, 6), "all runs come from one embedding"),
    ],
)
def test_the_index_decides_in_one_embedding_and_the_verdict_says_why(ks, why):
    judgement = ws.judge(blobs(3, ks, None, 0), n_draws=10, details=False)
    assert judgement.judge == judgement.ranking.judge == "index"
    np.testing.assert_array_equal(judgement.ranking.score, mean_silhouettes(judgement))
    headline = judgement.verdict.headline
    assert headline.startswith(f"'X K=3' (K = 3) is ranked first of {len(ks)} runs. The silhouette")
    assert why in headline and why in judgement.explain()
    assert "half-samples" not in judgement.verdict.explain()
    asked = ws.judge(blobs(3, ks, None, 0), judge="consensus", n_draws=0, details=False)
    assert asked.judge == "consensus"


def test_fewer_than_five_labels_alone_get_no_word_on_how_stable_the_order_is():
    labels = {name: one for name, _, one in blobs(3, (2, 3, 4), None, 0)}
    judgement = ws.judge(Runs.from_parts(None, labels), n_draws=10)
    assert judgement.judge == "consensus"
    assert judgement.ranking.score.tolist() == ws.consensus(labels).scores.tolist()
    assert "half-samples" not in judgement.verdict.explain()


def test_labels_alone_are_ranked_by_agreement(varied, tmp_path):
    alone = Runs.from_parts(None, dict(varied.partitions))
    judgement = ws.judge(alone, n_draws=6)
    plain = ws.consensus(alone)
    assert judgement.ranking.score.tolist() == plain.scores.tolist()
    assert judgement.judge == "consensus"
    assert judgement.by_ace is None
    assert judgement.details is None
    told = judgement.explain()
    assert "there are labels only" in told
    assert "was not tested: that needs the input (X)" in told
    page = ws.render_report(judgement, tmp_path / "r.html", runs=alone, truth=np.arange(120) % 3)
    assert "there is no embedding" in page.read_text(encoding="utf-8")
    again = Judgement.load(judgement.save(tmp_path / "saved"))
    assert again.explain() == told
    assert again.to_dict()["verdict"]["headline"] == judgement.verdict.headline
    with pytest.raises(ValueError, match="where runs have no embedding"):
        ws.judge(alone, judge="ace")


def test_a_table_of_label_columns_is_ranked(varied, tmp_path, capsys):
    from wellsep.cli.main import main

    columns = {f"run {m}": labels for m, labels in enumerate(varied.partitions.values())}
    rows = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    assert main(["rank", str(tmp_path / "labels.csv"), "--draws", "4", "--cache", "none"]) == 0
    shown = capsys.readouterr().out
    assert "Ranking by agreement" in shown
    assert "labels only" in shown


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"one": [0, 0, 1, 1]}, "at least 2 clusterings to compare, got 1"),
        ({"a": [0, 0, 0, 0], "b": [5, 5, 5, 5]}, "All 2 runs find one cluster only; add runs"),
        ({"a": [-1, -1, -1], "b": [-1, -1, -1]}, r"All 2 runs call every object noise \(-1\)"),
    ],
)
def test_labels_alone_that_leave_nothing_to_compare_get_a_sentence(labels, said):
    with pytest.raises(NothingToRank, match=said):
        ws.judge(Runs.from_parts(None, labels))


def test_certainty_is_that_of_the_vote(runs):
    by_ace = ws.judge(runs, judge="ace", n_draws=10).confidence
    by_vote = ws.judge(runs, judge="consensus", n_draws=10).confidence
    assert by_ace.ranks.shape == by_vote.ranks.shape
    assert by_ace.ranks.tolist() != by_vote.ranks.tolist()
    assert by_ace.runs_per_draw == 5
    assert by_vote.runs_per_draw == 3
    again = ws.judge(runs, judge="consensus", n_draws=10, random_state=0).confidence
    assert again.ranks.tolist() == by_vote.ranks.tolist()


def test_page_and_truth_name_the_judge(runs, tmp_path):
    truth = np.arange(120) % 3
    judgement = ws.judge(runs, judge="consensus", n_draws=4)
    found = ws.agreement(judgement.ranking, runs, truth)
    names = found.columns()["ranking"]
    assert names[0] == "consensus"
    assert {"ace", "mean_all", "more_clusters"} <= set(names)
    page = ws.render_report(judgement, tmp_path / "r.html", runs=runs, truth=truth)
    assert "6 runs ranked by agreement and silhouette" in page.read_text(encoding="utf-8")


def test_rules_on_the_number_of_clusters_stand_beside_the_truth_alone(runs):
    judgement = ws.judge(runs, n_draws=0)
    assert "more_clusters" not in judgement.ranking.baselines
    found = ws.agreement(judgement.ranking, runs, np.arange(120) % 3)
    clusters = judgement.ranking.n_clusters
    assert found.scores["more_clusters"].tolist() == clusters.tolist()
    assert found.scores["middle_k"].tolist() == (-np.abs(clusters - np.median(clusters))).tolist()


def test_the_terminal_takes_the_judge(runs, tmp_path, capsys):
    from wellsep.cli.main import main

    runs.save(tmp_path / "runs.npz")
    args = [
        "rank",
        str(tmp_path / "runs.npz"),
        "--judge",
        "consensus",
        "--draws",
        "0",
        "--cache",
        "none",
    ]
    assert main(args) == 0
    assert "Ranking by agreement and silhouette" in capsys.readouterr().out
    assert main([*args[:2], "--judge", "nobody"]) == 2
    assert "judge must be one of" in capsys.readouterr().err
