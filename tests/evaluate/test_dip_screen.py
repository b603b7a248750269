"""The dip screen has one default, and a test that is undefined leaves no space out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main

THREE = np.repeat([0, 1, 2], 40)


def groups(d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(120, d)) @ rng.normal(size=(d, d)) + 15 * THREE[:, None]


def pca_scores(X):
    X = X - X.mean(axis=0)
    return X @ np.linalg.svd(X, full_matrices=False)[2].T


def whitened(X):
    return np.linalg.qr(X - X.mean(axis=0))[0]


def runs_of(spaces):
    rng = np.random.default_rng(1)
    mixed = np.where(rng.random(120) < 0.3, rng.integers(0, 3, 120), THREE)
    return ws.Runs.from_parts(spaces, {"three": THREE, "mixed": mixed, "two": THREE > 0})


def one_mode(seed=5):
    return np.random.default_rng(seed).normal(size=(120, 1)) * [[1.0, 0.3, 0.1]]


@pytest.mark.parametrize("function", [ws.multimodality, ws.score_runs, ws.Ace])
def test_the_default_view_is_the_first_principal_component(function):
    assert inspect.signature(function).parameters["projection"].default == "pca"


@pytest.mark.parametrize(
    ("X", "defined"),
    [
        (pca_scores(groups()), True),
        (pca_scores(groups()).astype(np.float32), True),
        (whitened(groups()), False),
        (groups()[:, [0]] * [1.0, 2.0, -3.0], True),  # collinear columns
        (groups()[:, [0]], True),
        (np.column_stack([groups(), np.full(120, 7.0)]), True),
    ],
    ids=["PCA scores", "PCA scores, float32", "whitened", "collinear", "one column", "constant"],
)
def test_the_default_is_defined_wherever_there_is_a_first_component(X, defined):
    answer = ws.multimodality(X)
    assert answer.defined == defined
    assert np.isfinite(answer.pvalue) == defined
    assert (answer.note == "") == defined


@pytest.mark.parametrize(
    ("projection", "undefined"),
    [("pca-scaled", pca_scores(groups())), ("pca", whitened(groups()))],
)
def test_a_space_without_a_first_component_stays(projection, undefined):
    spaces = {"undefined": undefined, "groups": groups(seed=2), "one mode": one_mode()}
    judgement = ws.judge(runs_of(spaces), judge="ace", ace={"projection": projection}, n_draws=0)
    result = judgement.answer
    assert result.untested == ("undefined",)
    assert [d.space for d in result.dropped if d.step == "dip"] == ["one mode"]
    assert {result.spaces[i] for i in result.screen.retained} == {"undefined", "groups"}
    assert np.isnan(result.screen.adjusted[0])


def test_an_undefined_space_stays_in_every_half_sample():
    runs = runs_of({"white": whitened(groups()), "groups": groups(seed=2)})
    tested, untested = (
        ws.judge(runs, judge="ace", n_draws=20, dip=dip).ranking for dip in (True, False)
    )
    np.testing.assert_array_equal(tested.confidence.ranks, untested.confidence.ranks)


def test_an_undefined_space_pays_for_nobody_in_holms_correction():
    pvalues = [np.nan, 0.02, 0.04]
    scores = ws.Scores.from_matrix(np.arange(6.0).reshape(3, 2), dip_pvalues=pvalues, paired=False)
    np.testing.assert_allclose(ws.ace(scores).screen.adjusted, [np.nan, 0.04, 0.04])


def test_the_note_stands_before_the_answer(tmp_path, capsys):
    runs = runs_of({"white": whitened(groups()), "groups": groups(seed=2)})
    text = ws.judge(runs, judge="ace", n_draws=0).explain()
    assert text.index("Dip test of 'white': undefined, because") < text.index("Best: 'three'")
    runs.save(tmp_path / "runs.npz")
    options = ["--judge", "ace", "--draws", "0", "--cache", "none"]
    assert main(["rank", str(tmp_path / "runs.npz"), *options]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("undefined, because") == 1
    assert shown.index("The dip test is undefined in 'white'") < shown.index("Ranking by ACE")


def test_if_no_tested_space_has_two_modes_all_stay():
    spaces = {"white": whitened(groups()), "one mode": one_mode(), "another": one_mode(6)}
    result = ws.judge(runs_of(spaces), judge="ace", n_draws=0).answer
    assert result.screen.none_passed
    assert len(result.screen.retained) == 3


def test_if_no_space_can_be_tested_all_stay():
    spaces = {f"white {i}": whitened(groups(seed=i)) for i in range(3)}
    judgement = ws.judge(runs_of(spaces), judge="ace", n_draws=10)
    assert len(judgement.answer.screen.retained) == 3
    assert not judgement.answer.screen.none_passed
    assert "The dip test is undefined in every embedding" in judgement.explain()


def test_a_collapsed_space_is_still_left_out():
    spaces = {"collapsed": np.ones((120, 3)), "groups": groups(seed=2)}
    result = ws.judge(runs_of(spaces), judge="ace", n_draws=0).answer
    assert [(d.space, d.step) for d in result.dropped] == [("collapsed", "dip")]


def test_the_page_says_that_a_test_is_undefined(tmp_path):
    runs = runs_of({"white": whitened(groups()), "groups": groups(seed=2)})
    page = tmp_path / "page.html"
    ws.render_report(ws.judge(runs, n_draws=0), page, runs=runs)
    text = page.read_text(encoding="utf-8")
    assert "The dip test is undefined in <bdi>&#39;white&#39;</bdi>" in text
