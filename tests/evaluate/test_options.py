"""An option is written in one signature and one field; it is checked, parsed and encoded once."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import fields

import numpy as np
import pytest

import wellsep as ws
from wellsep import partitions
from wellsep.cli.commands import load_command
from wellsep.evaluate import options as options_module
from wellsep.evaluate import rank_confidence
from wellsep.evaluate.options import (
    Ace,
    Calling,
    Options,
    ScoreOptions,
    Settings,
    VoteOptions,
)
from wellsep.records import AceResult


def made(n=90, spaces=3):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    labels = {
        f"{wrong:.0%}": np.where(rng.random(n) < wrong, rng.integers(0, 3, n), truth)
        for wrong in (0.0, 0.2, 0.4, 0.8)
    }
    return ws.Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, 3)) + 6 * np.eye(3)[truth] for i in range(spaces)}, labels
    )


def names_of(kind):
    return [option.name for option in fields(kind) if option.init]


@pytest.mark.parametrize(
    ("function", "kind", "beside"),
    [
        (ws.judge, Options, {"runs"}),
        (ws.score_runs, ScoreOptions, {"runs"}),
        (rank_confidence, Calling, {"runs", "scores", "result", "n_draws"}),
        (ws.consensus, VoteOptions, {"runs", "index", "n_jobs"}),
        (ws.ace, Ace, {"scores", "index", "dip"}),
    ],
)
def test_a_keyword_has_the_default_of_the_field_that_checks_it(function, kind, beside):
    given = inspect.signature(function).parameters
    names = set(names_of(kind)) - ({"projection", "convention"} if kind is Ace else set())
    assert set(given) == names | beside
    for name in names - {"ace"}:
        assert given[name].default == inspect.signature(kind).parameters[name].default
    if "ace" in names:
        assert (given["ace"].default, Options().ace) == (None, Ace())


# Flags of `wellsep rank` that say what to read and write; every other one is an option of judge.
FILES = {
    "source", "truth", "report", "save", "as_json", "write_back", "objects", "ids",
    "no_header", "columns",
}  # fmt: skip
CALLED = {"index": "indices", "input_data": "X"}


def flags_of_rank():
    return {parameter.name: parameter for parameter in load_command("rank").params}


def test_a_flag_of_rank_is_an_option_of_judge_or_names_a_file():
    flags = set(flags_of_rank()) - FILES
    options = set(inspect.signature(ws.judge).parameters)
    assert {CALLED.get(name, name) for name in flags} <= options
    assert set(flags_of_rank()) >= FILES


def test_the_default_of_a_flag_is_that_of_the_option():
    # The shell's list of indices and switches; the runs are drawn only where a page is written.
    different = {"index", "ace", "layout"}
    options = inspect.signature(ws.judge).parameters
    same = [name for name in flags_of_rank() if name not in FILES | different]
    assert same
    for name in same:
        assert flags_of_rank()[name].default == options[CALLED.get(name, name)].default, name


def test_rank_has_at_most_26_flags():
    assert sum(flag.param_type_name == "option" for flag in flags_of_rank().values()) <= 26


def test_judge_has_at_most_20_keywords():
    assert len(inspect.signature(ws.judge).parameters) - 1 <= 20


@pytest.mark.parametrize("name", [n for n in ws.__all__ if inspect.isfunction(getattr(ws, n))])
def test_the_signature_of_a_public_function_stands_in_the_source(name):
    function = getattr(ws, name)
    assert not hasattr(function, "__wrapped__")
    assert not hasattr(function, "__signature__")
    written = {
        part.arg
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__
        for part in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    }
    kinds = inspect.signature(function).parameters
    assert set(kinds) <= written
    assert not any(p.kind == p.VAR_KEYWORD for p in kinds.values())


def test_the_switches_of_ace_may_come_as_a_mapping():
    options = {"n_draws": 0, "dip": False, "details": False}
    record = ws.judge(made(), ace=Ace(links="hits", alpha=None), **options)
    mapping = ws.judge(made(), ace={"links": "hits", "alpha": None}, **options)
    assert record.by_ace.options == mapping.by_ace.options == Ace(links="hits", alpha=None)
    assert record.call == mapping.call
    assert "ace={'alpha': None, 'links': 'hits'}" in record.call
    with pytest.raises(ValueError, match="ace must be one of 'dip_alpha', .*, got 'link'"):
        ws.judge(made(), ace={"link": "hits"})
    with pytest.raises(TypeError, match="ace must be Ace, a mapping or None, got 'hits'"):
        ws.judge(made(), ace="hits")


def test_the_switches_of_ace_reach_the_scores():
    runs = made()
    found = ws.judge(
        runs, "ccc", ace=Ace(convention="ace", projection="components"), n_draws=0
    ).scores
    expected = ws.score_runs(runs, "ccc", convention="ace", projection="components")
    assert (
        found.settings == expected.settings == Settings(convention="ace", projection="components")
    )
    for index, values in expected.values.items():
        np.testing.assert_array_equal(found.values[index], values)
    np.testing.assert_array_equal(found.dip.pvalue, expected.dip.pvalue)
    answer = ws.ace(expected)
    assert (answer.options.convention, answer.options.projection) == ("ace", "components")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"noise": "keep"}, "noise must be one of"),
        ({"ace": {"convention": "paper"}}, "convention must be one of"),
        ({"ace": {"projection": "tsne"}}, "projection must be one of"),
        ({"n_draws": -1}, "n_draws must be at least 0, got -1"),
        ({"ace": {"grouping": "kmeans"}}, "grouping must be one of"),
        ({"ace": {"alpha": 2.0}}, "alpha must be at most 1.0, got 2.0"),
        ({"indices": ["no such"]}, "indices must be among"),
    ],
)
def test_a_wrong_option_is_refused_before_a_space_is_opened(wrong, sentence, monkeypatch):
    monkeypatch.setattr("wellsep.evaluate.judging.score_spaces", lambda *_: pytest.fail("opened"))
    with pytest.raises(ValueError, match=sentence):
        ws.judge(made(), **wrong)


@pytest.mark.parametrize("n_draws", [0, 4])
def test_a_judgement_encodes_each_label_vector_once(n_draws, monkeypatch):
    encoded, encode = [], partitions._encode
    monkeypatch.setattr(partitions, "_encode", lambda *a: encoded.append(a[-1]) or encode(*a))
    runs = made()
    ws.judge(runs, n_draws=n_draws, X=runs.spaces["s0"])
    assert encoded == list(runs.partitions)
    assert len(encoded) == 4


def test_a_judgement_parses_the_indices_once(monkeypatch):
    calls, parse = [], options_module.parse_indices
    monkeypatch.setattr(options_module, "parse_indices", lambda *a: calls.append(a) or parse(*a))
    ws.judge(made(), ["silhouette", "calinski_harabasz"], n_draws=4)
    assert len(calls) == 1


def test_the_first_index_decides():
    found = ws.judge(made(), ["davies_bouldin", "silhouette"], n_draws=2)
    assert found.answer.index == "davies_bouldin"
    assert set(found.ranking.by_other_index) == {"silhouette"}


def test_scores_keep_what_they_depend_on_and_nothing_of_how_they_were_made(tmp_path):
    scores = ws.score_runs(made(), n_jobs=1, noise="exclude", progress=print, cache=tmp_path / "c")
    assert scores.settings == Settings(noise="exclude")
    again = ws.Scores.load(scores.save(tmp_path / "scores"))
    assert again.settings == scores.settings
    assert again.index_specs == scores.index_specs
    assert again.index_specs["silhouette"][0] == "silhouette"


def test_the_answer_keeps_its_options(tmp_path):
    answer = ws.judge(made(), n_draws=0, dip=False, ace=Ace(links="hits", alpha=None)).by_ace
    assert (answer.options, answer.dip) == (Ace(links="hits", alpha=None), False)
    assert AceResult.load(answer.save(tmp_path)).options == answer.options
