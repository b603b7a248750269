"""In the shell a sentence names flags, not arguments of Python functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wellsep as ws
from wellsep.cli.commands import COMMANDS
from wellsep.cli.main import main
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
        (["--noise", "error"], "choose --noise penalize, exclude, cluster or singletons."),
        (["--noise", "drop"], "Error: --noise must be one of 'penalize'"),
        (["--draws", "-3"], "Error: --draws must be at least 0, got -3."),
        (["-i", "c_index"], "in 'eps=0.3'; choose --noise exclude, or an index"),
        (["--jobs", "0"], "Error: --jobs must be from 1"),
    ],
)
def test_an_error_names_the_flag(folder, capsys, arguments, sentence):
    assert main(["rank", str(folder), "--cache", "none", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_the_explanation_names_flags(folder, capsys, tmp_path):
    quick = ["--cache", "none", "--draws", "0", "--ace", "dip=no", "--save"]
    sentences = {
        "ace": "The dip test was left out (--ace dip=no)",
        "auto": "was not computed (--draws).",
    }
    for judge, sentence in sentences.items():
        result = str(tmp_path / judge)
        assert main(["rank", str(folder), "--judge", judge, *quick, result]) == 0
        assert main(["explain", result]) == 0
        text = capsys.readouterr().out
        assert text.count(sentence) == 2
        assert "dip=False" not in text
        assert "was not computed (--draws)." in text
        assert "rank_confidence" not in text


def test_rank_says_once_why_the_index_decides(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[:, 0] += 9 * (np.arange(40) % 2)
    for k in (2, 3, 4):
        ws.save_run(tmp_path, X, np.arange(40) % k, name=f"k{k}")
    assert main(["rank", str(tmp_path), "--cache", "none", "--draws", "0"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("decides: only 3 clusterings differ.") == 1


def test_coverage_stands_in_the_tables_of_runs_with_noise(folder, capsys):
    assert main(["rank", str(folder), "--cache", "none", "--draws", "0"]) == 0
    assert "coverage" in capsys.readouterr().out.split("Embeddings")[0]


def test_names_of_runs_that_read_like_arguments_stay():
    flags = {"eps": Flag("--eps"), "dip": Flag("--dip", "--no-dip")}
    for text in ("Best: 'eps=0.3'.", "run 'dip=False' is best", "'a,dip=True'", "x.eps='a'"):
        assert in_shell_words(text, flags) == text


def test_choose_k_says_in_the_words_of_the_shell_what_to_try(files, capsys):
    assert main(["choose-k", "x.csv", "-k", "2,6", "--no-gate"]) in (0, 3)
    shown = " ".join(capsys.readouterr().out.split())
    assert "Nothing between 2 and 6 was tried: say --k 2:6 for all." in shown
    assert "was not tested: --no-gate." in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_flags(command):
    flags = flags_of(command).values()
    assert all(flag.yes.startswith("--") or flag.yes.isupper() for flag in flags)
    assert flags_of("no command") == flags_of(None) == {}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("x.npy", rng.normal(size=(30, 2)))
    pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]).to_csv("x.csv", index=False)
    pd.DataFrame({"k2": np.arange(30) % 2, "k3": np.arange(30) % 3}).to_csv("y.csv", index=False)
    Path("empty").mkdir()
    ws.save_run("runs", rng.normal(size=(30, 2)), np.arange(30) % 3, name="a")
    ws.save_run("runs", rng.normal(size=(30, 2)), np.arange(30) % 2, name="b")


MISTAKES = [
    ("rank runs -i silhouete", "--index must be among", "did you mean 'silhouette'?"),
    ("rank runs -i silhouette,cfq", "--index must read name", "repeat --index."),
    ("rank nowhere", "SOURCE must be a folder", "got 'nowhere'."),
    ("rank x.npy", "SOURCE must be a folder of runs", "AnnData, MLflow and Optuna are read too."),
    ("rank runs --truth no.csv", "--truth must be an existing file", "got 'no.csv'."),
    ("rank runs --input no.csv", "--input must be an existing file", "got 'no.csv'."),
    ("rank runs --truth=no", "--truth must end in one of .csv", "got 'no'."),
    ("rank runs --ace convention=x", "--ace convention must be one of 'ace', got 'x'.", ""),
    ("rank runs --ace alpha=high", "--ace alpha must be a number", "got 'high'."),
    ("rank runs --ace dip=maybe", "--ace dip must be yes or no, got 'maybe'.", ""),
    ("rank runs --ace grouping", "--ace must read KEY=VALUE", "got 'grouping'."),
    ("rank runs --ace groups=2", "--ace must be one of 'dip', 'dip_alpha', ", "got 'groups'"),
    ("rank runs --ace dup=no", "--ace must be one of 'dip', ", "did you mean 'dip'?"),
    ("rank runs --device gpu", "--device must be 'cpu', 'cuda' or 'cuda:N', got 'gpu'.", ""),
    ("rank runs --write-back", "--write-back must end in .h5ad", "got 'runs'."),
    (
        "explain runs",
        "RESULT must hold a saved record",
        "rank or choose-k and --save.",
    ),
    ("report runs", "RESULT must hold a saved record", "rank or choose-k and --save."),
    ("score x.csv", "LABELS must be at least one file", ""),
    ("score x.csv no.csv", "LABELS must be an existing file", ""),
    ("score no.csv y.csv", "DATA must be an existing file", ""),
    ("score x.csv y.csv --labels k22", "--labels must name columns of y.csv", "did you mean 'k2'?"),
    ("score x.csv y.csv --columns c", "--columns must name columns of x.csv", "it has 'a', 'b'."),
    ("score x.csv y.csv --ids id", "--ids must be in one of x.csv, y.csv", ""),
    ("choose-k x.csv --k 20:40", "--k must not exceed the number of objects (30)", ""),
    ("choose-k x.csv --k 2:3 --repeats 0", "--repeats must be at least 1", ""),
    ("cluster x.csv -k 50", "--clusters must not exceed", ""),
    ("train --data digts -m dec -k 3 -o o", "--data must be a file or a named", "'digits'"),
    ("train --data no.npy -m dec -k 3 -o o", "--data must be an existing file", ""),
    ("train --data x.npy -m dec -k 3 -o x.npy", "--out must be a folder", ""),
    ("demo x.npy", "FOLDER must be a folder, got the file x.npy.", ""),
]


@pytest.mark.parametrize(("line", "begin", "end"), MISTAKES)
def test_a_mistake_is_told_in_the_words_of_the_shell(files, capsys, line, begin, end):
    if line.startswith("train"):
        pytest.importorskip("torch", reason="needs the extra deep")
    assert main(line.split()) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"Error: {begin}")
    assert said.endswith(end) or end in said
    for word in ("None", "ValueError", "TypeError", "list_datasets", "wellsep.", "path must"):
        assert word not in said


def test_a_failed_training_is_told_in_the_words_of_the_shell(files, capsys):
    pytest.importorskip("torch", reason="needs the extra deep")
    assert main(["train", "--data", "x.npy", "-m", "dec", "-k", "0", "-o", "out"]) == 1
    shown = capsys.readouterr()
    assert "every trial failed. --clusters must be at least 1, got 0." in shown.err
    assert "ValueError" not in shown.err + shown.out
