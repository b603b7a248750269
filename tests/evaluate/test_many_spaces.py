"""Judging in many spaces: some can be drawn, and the time it takes is told."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import wellsep as ws
from wellsep.cli.main import main
from wellsep.cli.ranking import _show_progress, _time_left
from wellsep.evaluate.scoring import duration


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
    assert "in 3 of 8 spaces, drawn at random" in judgement.explain()
    assert "drawn at random" not in ws.judge(runs, max_spaces=8, n_draws=2).explain()


def test_progress_covers_the_half_samples_too(runs):
    told = []
    ws.judge(runs, n_draws=3, progress=lambda *facts: told.append(facts))
    assert told[8] == (8, 8, "")
    assert told[9:] == [(i, 3, "half-samples") for i in range(4)]


def test_the_command_takes_the_number_of_spaces(runs, tmp_path, capsys):
    runs.save(tmp_path / "runs")
    assert (
        main(["rank", str(tmp_path / "runs"), "--max-spaces", "2", "--draws", "2", "--no-cache"])
        == 0
    )
    capsys.readouterr()


def test_a_long_ranking_is_announced_after_its_first_space(monkeypatch, capsys):
    seconds = iter([0.0, 0.0, 5.0, 10.0])
    monkeypatch.setattr("wellsep.cli.ranking.time.perf_counter", lambda: next(seconds))
    told = _show_progress()
    told(0, 2000, "a")
    told(1, 2000, "b")
    told(2, 2000, "c")
    assert capsys.readouterr().err == (
        "2,000 spaces: about 167 minutes left. --draws and --max-spaces make it less.\n"
    )


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
def test_the_time_of_2000_runs_is_said_before_the_first_space_is_scored(two_thousand, call):
    said = r"Scoring 2,000 partitions in 2,000 spaces will take about \d+ (seconds|minutes)\. .*"
    with pytest.warns(UserWarning, match=said + r"\(max_spaces\)"), pytest.raises(Stopped):
        call(two_thousand, progress=_stop)


def test_nothing_is_said_of_a_few_seconds(runs, two_thousand, recwarn):
    with pytest.raises(Stopped):
        ws.judge(runs, progress=_stop)
    with pytest.raises(Stopped):
        ws.judge(two_thousand, max_spaces=3, progress=_stop)
    assert not [w for w in recwarn if "will take about" in str(w.message)]


def test_the_command_says_the_time_first_and_offers_fewer_spaces(
    runs, tmp_path, capsys, monkeypatch
):
    runs.save(tmp_path / "runs")
    monkeypatch.setattr(duration, "WORTH_A_TRIAL", 0)
    monkeypatch.setattr(duration, "LONG", 0)
    monkeypatch.setattr("wellsep.cli.ranking._show_progress", lambda: _stop)
    assert main(["rank", str(tmp_path / "runs"), "--no-cache"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("Warning: Scoring 8 partitions in 8 spaces will take about 0 seconds.")
    assert "take less time (--max-spaces)." in text


def test_a_space_that_cannot_be_tried_is_refused_by_its_own_error(monkeypatch):
    monkeypatch.setattr(duration, "WORTH_A_TRIAL", 0)
    bad = ws.Runs.from_parts({"bad": np.full((9, 2), np.nan)}, {"p": np.arange(9) % 2})
    with pytest.raises(ValueError, match="'bad' must be finite"):
        ws.score_runs(bad)


def test_a_short_ranking_is_not_announced():
    assert _time_left(0.5, 1, 20) is None and _time_left(1.0, 0, 9) is None


@pytest.mark.parametrize("form", ["rows", "distances"])
@pytest.mark.parametrize(("index", "trees"), [("dbcv", True), ("silhouette", False)])
def test_the_time_of_an_index_that_grows_trees_is_said_first(index, trees, form, monkeypatch):
    rng = np.random.default_rng(0)
    labels = {f"p{i}": rng.integers(0, 2, 900) for i in range(6)}
    X = rng.normal(size=(900, 2))
    spec = (index, {"d": 2} if index == "dbcv" else {})
    space = X if form == "rows" else ws.Distances(pdist(X))
    runs = ws.Runs.from_parts({"a": space}, labels)
    monkeypatch.setattr(duration, "WORTH_A_TRIAL", 0)
    monkeypatch.setattr(duration, "LONG", 0)
    monkeypatch.setattr(duration, "_timed", lambda call: 1.0)
    # A second for 400 of 900 objects, and no more for more partitions, is 5 s; a third of it for
    # the trees of each of 20 half-samples; and the dip test of all.
    said = r"Scoring 6 partitions in 1 space will take about (\d+) seconds\."
    more = r" dbcv grows trees anew in each of 20 half-samples; fewer take less time \(n_draws\)."
    warns = pytest.warns(UserWarning, match=said + (more if trees else " Some"))
    with warns as warned, pytest.raises(Stopped):
        ws.judge(runs, [spec], n_draws=100, progress=_stop, n_jobs=1)
    text = next(str(w.message) for w in warned if "will take about" in str(w.message))
    once = (900 / 400) ** 2 + 900 / 400
    times = 1 + 20 / 3 if trees else 1.6
    assert int(re.search(said, text).group(1)) == round(once * times)
