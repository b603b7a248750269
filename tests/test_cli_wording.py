"""In the shell a sentence names flags, not arguments of Python functions."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import COMMANDS, main
from wellsep.cli.wording import Flag, flags_of, in_shell_words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    ws.save_run(path, X, np.where(np.arange(60) % 5, y, -1), name="eps=0.3")
    ws.save_run(path, X + rng.normal(size=X.shape), y, name="b")
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--noise", "error"], "choose --noise priced, exclude, cluster or singletons."),
        (["--noise", "drop"], "Error: --noise must be one of 'priced'"),
        (["--draws", "-3"], "Error: --draws must be at least 0, got -3."),
        (["-i", "c_index"], "in 'eps=0.3'; choose --noise exclude, or an index"),
        (["--jobs", "0"], "Error: --jobs must be from 1"),
    ],
)
def test_an_error_names_the_flag(folder, capsys, arguments, sentence):
    assert main(["rank", str(folder), "--no-cache", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_the_explanation_names_flags(folder, capsys, tmp_path):
    quick = ["--no-cache", "--draws", "0", "--no-dip", "--save", str(tmp_path / "result")]
    assert main(["rank", str(folder), *quick]) == 0
    assert main(["explain", str(tmp_path / "result")]) == 0
    text = capsys.readouterr().out
    assert text.count("The dip test was left out (--no-dip)") == 2
    assert text.count("was not computed (--draws).") == 2
    assert "dip=False" not in text


def test_coverage_stands_in_the_tables_of_runs_with_noise(folder, capsys):
    assert main(["rank", str(folder), "--no-cache", "--draws", "0"]) == 0
    assert "coverage" in capsys.readouterr().out.split("Embeddings")[0]


def test_names_of_runs_that_read_like_arguments_stay():
    flags = {"eps": Flag("--eps"), "dip": Flag("--dip", "--no-dip")}
    for text in ("Best: 'eps=0.3'.", "run 'dip=False' is best", "'a,dip=True'", "x.eps='a'"):
        assert in_shell_words(text, flags) == text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_flags(command):
    assert all(flag.yes.startswith("--") for flag in flags_of(command).values())
    assert flags_of("no command") == flags_of(None) == {}
