"""Whoever judges, ranking, certainty, page and terminal are theirs; the others stand beside."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate.options import JUDGES
from wellsep.runs import Runs

VOTES = [name for name in JUDGES if name != "ace"]


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


@pytest.mark.parametrize("name", VOTES)
def test_a_vote_decides_where_it_is_asked_for(name, runs, tmp_path):
    judgement = ws.judge(runs, judge=name, n_draws=6)
    first, rounds = JUDGES[name]
    expected = ws.consensus(runs, first_judge=first, rounds=rounds)
    np.testing.assert_allclose(judgement.ranking.score, expected.scores)
    assert judgement.ranking.winners == expected.winners
    assert judgement.ranking.judge == judgement.judge == name
    assert judgement.details.partition == expected.best
    assert isinstance(judgement.answer, ws.Consensus)
    assert "ace" in judgement.ranking.baselines
    assert name not in judgement.ranking.baselines
    assert "ACE picks" in judgement.explain()
    assert "How sure: Over 6 half-samples" in judgement.explain()
    again = ws.Judgement.load(judgement.save(tmp_path / "saved"))
    assert again.ranking.table() == judgement.ranking.table()


def test_ace_decides_by_default_and_the_vote_stands_beside_it(runs):
    judgement = ws.judge(runs, n_draws=0)
    assert judgement.judge == judgement.ranking.judge == "ace"
    assert (
        judgement.ranking.score.tolist() == judgement.answers["ace"]["silhouette"].scores.tolist()
    )
    plain = {m: ws.consensus(runs, agreement=m).scores for m in ("ari", "nmi")}
    assert judgement.ranking.baselines["consensus"].tolist() == plain["ari"].tolist()
    assert judgement.ranking.baselines["consensus_nmi"].tolist() == plain["nmi"].tolist()
    assert {"rank_consensus", "rank_consensus_nmi"} <= judgement.ranking.table().keys()
    assert "Mean agreement with the other runs (consensus, ARI) picks" in judgement.explain()


def test_certainty_is_that_of_the_vote(runs):
    by_ace = ws.judge(runs, n_draws=10).confidence
    by_vote = ws.judge(runs, judge="consensus", n_draws=10).confidence
    assert by_ace.ranks.shape == by_vote.ranks.shape
    assert by_ace.ranks.tolist() != by_vote.ranks.tolist()
    again = ws.judge(runs, judge="consensus", n_draws=10, random_state=0).confidence
    assert again.ranks.tolist() == by_vote.ranks.tolist()


def test_page_and_truth_name_the_judge(runs, tmp_path):
    truth = np.arange(120) % 3
    judgement = ws.judge(runs, judge="consensus_by_ace", n_draws=4)
    found = ws.agreement(judgement.ranking, runs, truth)
    names = found.table()["ranking"]
    assert names[0] == "consensus_by_ace"
    assert {"ace", "consensus", "consensus_nmi", "more_clusters", "middle_k"} <= set(names)
    page = ws.render_report(judgement, tmp_path / "r.html", runs=runs, truth=truth)
    assert "of 6 runs by consensus by ace." in page.read_text(encoding="utf-8")


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
        "--no-cache",
    ]
    assert main(args) == 0
    assert "Ranking by consensus" in capsys.readouterr().out
    assert main([*args[:2], "--judge", "nobody"]) == 2
    assert "judge must be one of" in capsys.readouterr().err
