"""README, quick start, demo, shell and Python give one answer to one question."""

from __future__ import annotations

import doctest
import json
import re
import shlex

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws
from wellsep.cli.main import main


def example_of(page):
    """The names that a page's examples define, up to its first ranking of runs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, page, "single"), names)
        if "judgement" in names:
            return names["folder"], names["judgement"]
    raise AssertionError(f"{page} ranks no runs")


def in_the_shell(capsys, *arguments):
    assert main(["rank", *arguments, "--no-cache", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def rows(table):
    """Name, score and certainty of each run, best first."""
    keys = ("partition", "score", "p_best")
    return [tuple(row[key] for key in keys) for row in table]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_shell_ranks_the_runs_of_a_page_as_python_does(page, capsys):
    folder, judgement = example_of(page)
    shell = in_the_shell(capsys, folder)
    assert shell["best"] == list(judgement.ranking.winners)
    python = json.loads(json.dumps(judgement.to_dict()["ranking"], default=np.ndarray.tolist))
    assert rows(shell["ranking"]) == rows(python)
    assert shell["explanation"] == list(judgement.ranking.explanation)


@pytest.mark.slow
def test_the_command_the_demo_prints_gives_the_answer_of_the_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    command = shlex.split(re.search(r"The same by hand: wellsep rank (.*)", shown)[1])
    shell = in_the_shell(capsys, *command)
    assert f"Best: {shell['best'][0]!r}" in shown
    runs = ws.load_runs("wellsep-demo/runs")
    assert shell["best"] == list(ws.judge(runs).ranking.winners)
