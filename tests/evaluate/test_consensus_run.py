"""The consensus partition as one more run: ranked like the others, no vote, only if asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main
from wellsep.evaluate.vote.merged_partition import MADE_RUN
from wellsep.records import Consensus, Judgement


def made_runs(n=90, wrong=(0.3, 0.3, 0.3, 0.3, 0.4)):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    labels = {
        f"run {i}": np.where(rng.random(n) < share, rng.integers(0, 3, n), truth)
        for i, share in enumerate(wrong)
    }
    spaces = {f"s{i}": rng.normal(size=(n, 3)) + 4 * np.eye(3)[truth] for i in range(3)}
    return ws.Runs.from_parts(spaces, labels), truth


@pytest.fixture(scope="module")
def judged():
    runs, truth = made_runs()
    options = {"dip": False, "n_draws": 6}
    return runs, truth, ws.judge(runs, **options), ws.judge(runs, consensus_run=True, **options)


def test_it_is_never_there_unasked(judged):
    _, _, plain, _ = judged
    assert plain.consensus_run is None
    assert MADE_RUN not in plain.ranking.names
    assert not ws.evaluate.options.Options().consensus_run


def test_it_is_scored_and_ranked_as_one_more_run(judged):
    runs, truth, plain, asked = judged
    assert asked.ranking.names == (*plain.ranking.names, MADE_RUN)
    labels = asked.consensus_run.labels
    assert labels.tolist() == ws.consensus_partition(runs).labels.tolist()
    for i, space in enumerate(asked.scores.spaces):
        expected = ws.silhouette_score(runs.spaces[space], labels)
        assert asked.scores.values["silhouette"][i, -1] == pytest.approx(expected)
        before = plain.scores.values["silhouette"][i]
        np.testing.assert_array_equal(asked.scores.values["silhouette"][i, :-1], before)
    assert asked.ranking.best == MADE_RUN
    assert asked.details.partition == MADE_RUN
    known = ws.agreement(asked.ranking, asked.consensus_run.added_to(runs), truth)
    assert MADE_RUN in known.table()["pick"]


def test_a_ranking_with_it_says_who_made_it(judged, tmp_path):
    _, _, _, asked = judged
    words = "'consensus' was made by wellsep from the other runs (average linkage, 3 clusters)."
    assert words in asked.explain()
    assert "It has no vote." in asked.explain()
    assert any(words in text for text in asked.to_dict()["explanation"])
    assert asked.scores.params[MADE_RUN]["made_by"] == "wellsep.consensus_partition"
    again = Judgement.load(asked.save(tmp_path / "record"))
    assert again.consensus_run.labels.tolist() == asked.consensus_run.labels.tolist()


@pytest.mark.parametrize("measure", ["ari", "nmi"])
def test_it_has_no_vote_and_moves_no_other_score(judged, measure):
    _, _, plain, asked = judged
    before, after = (j.answers["plain_consensus"][measure] for j in (plain, asked))
    np.testing.assert_array_equal(after.scores[:-1], before.scores)
    np.testing.assert_array_equal(after.weights[:-1], before.weights)
    assert (after.weights[-1], after.silent) == (0, (MADE_RUN,))
    mean = np.average(after.agreement[-1, :-1], weights=before.weights)
    assert after.scores[-1] == pytest.approx(mean)
    assert "'consensus' has no vote." in after.explain()


def test_it_has_no_vote_where_votes_are_weighed():
    # The near copies of the best run share a vote; the consensus partition is near to them too.
    runs, _ = made_runs(wrong=(0.02, 0.03, 0.3, 0.4, 0.8))
    options = {"dip": False, "n_draws": 0, "judge": "consensus", "details": False}
    before = ws.judge(runs, **options).answers["consensus"]["silhouette"]
    after = ws.judge(runs, consensus_run=True, **options).answers["consensus"]["silhouette"]
    assert after.agreement[-1, :2].max() > after.options.near
    np.testing.assert_allclose(after.scores[:-1], before.scores)
    np.testing.assert_allclose(after.weights[:-1], before.weights)
    own = Consensus.support.func(before)
    np.testing.assert_allclose(after.support[:-1] / after.support[0], own / own[0])


def test_a_run_that_equals_it_keeps_its_vote():
    labels = {"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 1, 1], "c": [0, 0, 0, 0, 1, 1]}
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    runs = ws.Runs.from_parts({"x": X}, labels)
    options = {"dip": False, "n_draws": 0, "details": False}
    plain, asked = ws.judge(runs, **options), ws.judge(runs, consensus_run=True, **options)
    before, after = (j.answers["plain_consensus"]["ari"] for j in (plain, asked))
    np.testing.assert_array_equal(after.weights, before.weights)
    np.testing.assert_array_equal(after.scores[:3], before.scores)
    assert after.classes[0] == ("a", MADE_RUN)


def test_its_half_samples_are_votes_without_it():
    runs, _ = made_runs()
    options = {"dip": False, "n_draws": 8, "judge": "consensus", "leave_out": 0.0}
    plain = ws.judge(runs, **options).confidence.ranks
    asked = ws.judge(runs, consensus_run=True, **options).confidence.ranks
    below = asked[:, :-1] - (asked[:, :-1] > asked[:, -1:])
    np.testing.assert_array_equal(below, plain)


def test_a_judgement_keeps_the_agreement_of_all_runs(judged, tmp_path):
    _, _, plain, _ = judged
    again = Judgement.load(plain.save(tmp_path / "record")).answers["plain_consensus"]["ari"]
    np.testing.assert_array_equal(
        again.agreement, plain.answers["plain_consensus"]["ari"].agreement
    )
    assert again.matrix().shape == (5, 5)


def test_a_run_of_that_name_is_refused():
    runs, truth = made_runs()
    labels = {**runs.partitions, MADE_RUN: truth}
    taken = ws.Runs.from_parts(dict(runs.spaces), labels)
    with pytest.raises(
        ValueError, match="must not hold a run called 'consensus' where one is made"
    ):
        ws.judge(taken, consensus_run=True, n_draws=0)
    assert MADE_RUN in ws.judge(taken, n_draws=0, dip=False).ranking.names


def test_one_partition_cannot_be_combined():
    runs = ws.Runs.from_parts({"x": np.arange(24.0).reshape(12, 2)}, {"a": [0, 1] * 6})
    with pytest.raises(ws.NothingToRank, match="at least 2 partitions"):
        ws.judge(runs, consensus_run=True, n_draws=0)


def test_runs_that_are_equal_are_their_own_consensus():
    labels = {"a": [0, 1] * 6, "b": [1, 0] * 6}
    runs = ws.Runs.from_parts({"x": np.arange(24.0).reshape(12, 2)}, labels)
    found = ws.judge(runs, consensus_run=True, n_draws=0)
    assert found.consensus_run is None
    assert found.ranking.names == ("a", "b")
    assert "No consensus partition was made" in found.explain()


def test_the_command_ranks_it_and_saves_its_labels(tmp_path, capsys):
    runs, truth = made_runs()
    folder, page = tmp_path / "runs", tmp_path / "page.html"
    for name, X in runs.spaces.items():
        ws.save_run(folder, X, name=name)
    for name, labels in runs.partitions.items():
        ws.save_run(folder, None, labels, name=name, space="s0")
    np.save(tmp_path / "truth.npy", truth)
    options = ["--draws", "0", "--no-cache", "--no-dip", "--consensus"]
    options += ["--truth", str(tmp_path / "truth.npy"), "--report", str(page)]
    options += ["--save", str(tmp_path / "saved")]
    assert main(["rank", str(folder), *options]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "'consensus' was made by wellsep from the other runs" in said
    assert main(["rank", str(folder), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert MADE_RUN in [row["partition"] for row in found["ranking"]]
    saved = Judgement.load(tmp_path / "saved").consensus_run
    assert ws.ari_score(saved.labels, truth) > 0.8
    assert "wellsep.consensus_partition" in page.read_text()
    later = ["--runs", str(folder), "--truth", str(tmp_path / "truth.npy"), "-o", str(page)]
    assert main(["report", str(tmp_path / "saved"), *later]) == 0
    assert "wellsep.consensus_partition" in page.read_text()
