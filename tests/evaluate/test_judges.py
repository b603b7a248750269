"""Whoever judges, ranking, certainty, page and terminal are theirs; the others stand beside."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate import NothingToRank
from wellsep.evaluate.vote.answer import k_varies
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


def test_a_vote_decides_where_it_is_asked_for(runs, tmp_path):
    judgement = ws.judge(runs, judge="consensus", n_draws=6)
    expected = ws.consensus(runs, first_judge=judgement.by_ace.scores)
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
    assert "decides, as asked." in told
    assert "How sure: Over 6 half-samples" in told
    again = Judgement.load(judgement.save(tmp_path / "saved"))
    assert again.ranking.columns() == judgement.ranking.columns()
    assert again.verdict.explain() == judgement.verdict.explain()
    assert again.to_dict().keys() == judgement.to_dict().keys()


def test_ace_decides_where_k_hardly_varies_and_the_votes_stand_beside_it(runs):
    judgement = ws.judge(runs, n_draws=0)
    assert judgement.judge == judgement.ranking.judge == "ace"
    by_ace = judgement.answers["ace"]["silhouette"]
    assert judgement.ranking.score.tolist() == by_ace.scores.tolist()
    baselines = judgement.ranking.baselines
    plain = {m: ws.consensus(runs, agreement=m).scores for m in ("ari", "nmi")}
    assert baselines["plain_consensus"].tolist() == plain["ari"].tolist()
    assert baselines["plain_consensus_nmi"].tolist() == plain["nmi"].tolist()
    weighed = ws.consensus(runs, first_judge=by_ace.scores).scores
    np.testing.assert_allclose(baselines["consensus"], weighed)
    assert {"rank_consensus", "rank_plain_consensus"} <= judgement.ranking.columns().keys()
    assert "ACE decides, because the number of clusters hardly varies" in judgement.explain()


def test_the_vote_decides_where_k_varies_and_ace_where_it_is_asked_for(varied):
    judgement = ws.judge(varied, n_draws=0)
    assert judgement.judge == "consensus"
    expected = ws.consensus(varied, first_judge=judgement.by_ace.scores)
    np.testing.assert_allclose(judgement.ranking.score, expected.scores)
    assert "decides, because the number of clusters varies (2 to 12)." in judgement.explain()
    asked = ws.judge(varied, judge="ace", n_draws=0)
    assert asked.judge == "ace"
    assert asked.answer.scores.tolist() == judgement.by_ace.scores.tolist()
    assert asked.explain().count("ACE decides, as asked.") == 1


def test_every_index_has_its_own_vote(varied):
    judgement = ws.judge(varied, ["davies_bouldin", "silhouette"], n_draws=0)
    assert list(judgement.answers["consensus"]) == ["davies_bouldin", "silhouette"]
    for index, vote in judgement.answers["consensus"].items():
        ace = judgement.answers["ace"][index]
        assert vote.first_scores.tolist() == ace.scores.tolist()
    assert judgement.answer is judgement.answers["consensus"]["davies_bouldin"]


@pytest.mark.parametrize(
    ("ks", "varies"),
    [
        ([5, 10, 20], True),
        ([10] * 10, False),
        ([10] * 30 + [3, 30], False),  # two runs lost or gained clusters
        ([5, 10] * 5, False),  # two different K only
        ([1, 1, 1, 4, 4, 4], False),  # one cluster is no clustering
        ([10, 12, 15, 15], False),
        ([10, 12, 16, 16], True),  # 16 against 10.6
    ],
)
def test_k_varies_where_three_differ_and_the_quantiles_lie_apart(ks, varies):
    assert k_varies(np.array(ks)) is varies


def test_labels_alone_are_ranked_by_the_plain_consensus(varied, tmp_path):
    alone = Runs.from_parts(None, dict(varied.partitions))
    judgement = ws.judge(alone, n_draws=6)
    plain = ws.consensus(alone)
    assert judgement.ranking.score.tolist() == plain.scores.tolist()
    assert judgement.judge == "consensus"
    assert judgement.by_ace is None
    assert judgement.details is None
    told = judgement.explain()
    assert "there are labels only" in told
    assert "was not tested: there is no embedding" in told
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
    assert "Ranking by consensus" in shown
    assert "labels only" in shown


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"one": [0, 0, 1, 1]}, "at least 2 partitions to compare, got 1"),
        ({"a": [0, 0, 0, 0], "b": [5, 5, 5, 5]}, "All 2 runs find one cluster only; add runs"),
        ({"a": [-1, -1, -1], "b": [-1, -1, -1]}, r"All 2 runs call every object noise \(-1\)"),
    ],
)
def test_labels_alone_that_leave_nothing_to_compare_get_a_sentence(labels, said):
    with pytest.raises(NothingToRank, match=said):
        ws.judge(Runs.from_parts(None, labels))


def test_certainty_is_that_of_the_vote(runs):
    by_ace = ws.judge(runs, n_draws=10).confidence
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
    assert {"ace", "plain_consensus", "plain_consensus_nmi", "more_clusters"} <= set(names)
    page = ws.render_report(judgement, tmp_path / "r.html", runs=runs, truth=truth)
    assert "6 runs ranked by consensus, weighed by ACE" in page.read_text(encoding="utf-8")


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
    assert "Ranking by consensus" in capsys.readouterr().out
    assert main([*args[:2], "--judge", "nobody"]) == 2
    assert "judge must be one of" in capsys.readouterr().err
