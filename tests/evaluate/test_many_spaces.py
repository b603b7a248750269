"""Judging in many spaces: some can be drawn, and long work is announced."""

from __future__ import annotations

import contextlib
import io
import re
import sys

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main
from wellsep.cli.printing import progress_bar
from wellsep.cli.ranking import phase
from wellsep.evaluate.scoring import spaces


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 3
    spaces = {f"s{i}": rng.normal(size=(40, 2)) + 5 * np.eye(3)[labels, :2] for i in range(8)}
    return ws.Runs.from_parts(spaces, {name: rng.permutation(labels) for name in spaces})


def test_spaces_are_drawn_and_all_partitions_are_kept(runs):
    scores = ws.score_runs(runs, max_spaces=3)
    assert len(scores.spaces) == 3 and len(scores.partitions) == 8
    assert scores.spaces != ws.score_runs(runs, max_spaces=3, random_state=1).spaces
    assert scores.spaces == ws.score_runs(runs, max_spaces=3).spaces


def test_the_scores_in_drawn_spaces_are_those_in_all(runs):
    few, every = ws.score_runs(runs, max_spaces=3), ws.score_runs(runs)
    rows = [every.spaces.index(name) for name in few.spaces]
    assert (few.values["silhouette"] == every.values["silhouette"][rows]).all()


def test_a_judgement_says_that_spaces_were_drawn(runs):
    judgement = ws.judge(runs, max_spaces=3, n_draws=2)
    assert "in 3 of 8 embeddings, drawn at random" in judgement.explain()
    assert "drawn at random" not in ws.judge(runs, max_spaces=8, n_draws=2).explain()


def test_progress_covers_the_half_samples_too(runs):
    told = []
    ws.judge(runs, n_draws=3, progress=lambda *facts: told.append(facts))
    assert told[8] == (8, 8, "")
    assert told[9:] == [(i, 3, "half-samples") for i in range(4)]


def test_the_command_takes_the_number_of_spaces(runs, tmp_path, capsys):
    runs.save(tmp_path / "runs")
    quick = ["--max-spaces", "2", "--draws", "2", "--cache", "none"]
    assert main(["rank", str(tmp_path / "runs"), *quick]) == 0
    capsys.readouterr()


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def test_the_bar_of_a_ranking_shows_the_time_left(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(phase) as told:
        for done in range(200):
            told(done, 2000, "a space")
        told(2000, 2000, "")
    shown = sys.stderr.getvalue()
    assert "Scoring spaces" in shown
    assert re.search(r"[-\d]:[-\d]{2}:[-\d]{2}", shown)


class Stopped(Exception):
    """Raised before the first space is scored."""


def _stop(done, total, space):
    raise Stopped


@pytest.fixture(scope="module")
def two_thousand():
    rng = np.random.default_rng(0)
    spaces = {f"s{i}": rng.normal(size=(40, 2)) for i in range(2000)}
    return ws.Runs.from_parts(spaces, {f"p{i}": rng.integers(0, 3, 40) for i in range(2000)})


@pytest.mark.parametrize("call", [ws.score_runs, ws.judge])
def test_a_ranking_of_2000_runs_is_announced_before_the_first_space(two_thousand, call):
    said = r"Scoring 2,000 clusterings in 2,000 embeddings can take many minutes\. .*\(max_spaces\)"
    with pytest.warns(UserWarning, match=said), pytest.raises(Stopped):
        call(two_thousand, progress=_stop)


def test_nothing_is_said_of_a_few_seconds(runs, two_thousand, recwarn):
    with pytest.raises(Stopped):
        ws.judge(runs, progress=_stop)
    with pytest.raises(Stopped):
        ws.judge(two_thousand, max_spaces=3, progress=_stop)
    assert not [w for w in recwarn if "can take many" in str(w.message)]


def test_the_command_says_so_first_and_offers_fewer_spaces(runs, tmp_path, capsys, monkeypatch):
    runs.save(tmp_path / "runs")
    monkeypatch.setattr(spaces, "_LONG", 0)
    monkeypatch.setattr("wellsep.cli.ranking.progress_bar", lambda _: contextlib.nullcontext(_stop))
    assert main(["rank", str(tmp_path / "runs"), "--cache", "none"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("Warning: Scoring 8 clusterings in 8 embeddings can take many minutes.")
    assert "take less time (--max-spaces). So do fewer half-samples (--draws)." in text


@pytest.mark.parametrize(
    ("index", "n", "long"),
    [
        ("silhouette", 30_000, True),
        ("silhouette", 5000, False),
        ("calinski_harabasz", 30_000, False),
        (("dbcv", {"d": 2}), 15_000, True),
    ],
)
def test_what_is_long_depends_on_what_the_index_needs(index, n, long, recwarn):
    X = np.zeros((n, 2))
    labels = {f"p{i}": np.arange(n) % (i + 2) for i in range(20)}
    runs = ws.Runs.from_parts({f"s{i}": X + i for i in range(6)}, labels)
    with pytest.raises(Stopped):
        ws.score_runs(runs, [index], progress=_stop)
    assert bool([w for w in recwarn if "can take many" in str(w.message)]) == long
