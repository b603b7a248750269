"""Long tables and long names in the terminal: the first rows with a count, both ends of a name."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Fifty runs whose long names differ at the end."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    space = 8 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    ws.save_run(folder, space, name="space")
    for i in range(50):
        labels = np.where(rng.random(60) < i / 60, rng.integers(0, 3, 60), truth)
        name = f"a very long name of a sweep with many words in it, {'x' * 90} seed={i:02d}"
        ws.save_run(folder, None, labels, name=name, space="space")
    return folder


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r" +\d+ +a very long .*seed=", line)]


def test_a_terminal_shows_forty_rows_with_a_count_and_a_pipe_gets_all(runs, capsys, monkeypatch):
    arguments = ["rank", str(runs), "--draws", "0", "--ace", "dip=no", "--cache", "none"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert len(rows_of(shown)) == 50
    assert shown.index("Ranking by") > shown.index("Next: ")  # the verdict comes first
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert len(rows_of(shown)) == 40
    assert "40 of 50 rows. A pipe or a file gets every row." in " ".join(shown.split())


def test_a_long_name_keeps_both_ends(runs, capsys):
    assert main(["rank", str(runs), "--draws", "0", "--ace", "dip=no", "--cache", "none"]) == 0
    first = rows_of(capsys.readouterr().out)[0]
    assert "a very long name" in first
    assert "…" in first
    assert "seed=" in first


# --- eighty columns -----------------------------------------------------------------------------

LONG = "another-cluster-with-hyphens-and-no-blank"


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """Long names, large negative numbers, 51 clusterings, objects with names."""
    folder = tmp_path_factory.mktemp("awkward")
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    X = 8 * np.eye(3)[truth] + rng.normal(size=(60, 3)) - [0, 0, 1e6]
    names = [
        "id",
        "a_long_feature_name_without_a_single_blank",
        "Länge in Zentimetern und mehr",
        "z",
    ]
    rows = [
        f"object-number-{i:05d}-of-all,{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(X.tolist())
    ]
    (folder / "x.csv").write_text("\n".join([",".join(names), *rows]), encoding="utf-8")
    labels = {
        f"a_long_name_of_labels_{i:02d}_{'x' * 60}": np.where(
            rng.random(60) < i / 60, rng.integers(0, 3, 60), truth
        )
        for i in range(50)
    }
    texts = {**labels, "named": np.array(["the very small ones of them all", LONG, "c"])[truth]}
    rows = [",".join(str(values[i]) for values in texts.values()) for i in range(60)]
    (folder / "y.csv").write_text("\n".join([",".join(texts), *rows]), encoding="utf-8")
    np.save(folder / "t.npy", truth)
    near = X - X.mean(axis=0)
    ws.save_run(folder / "runs", near, name="space")
    ws.save_run(folder / "runs", near[:, :2], name="a_space_with_a_long_name_and_no_blank_in_it")
    for name, values in labels.items():
        params = {"a_parameter_with_a_long_name": float(-1e6 * rng.random()), "lr": rng.random()}
        ws.save_run(folder / "runs", None, values, name=name, space="space", params=params)
    return folder


INDICES = ["-i", "calinski_harabasz", "-i", "davies_bouldin(q=2)", "-i", "silhouette", "-i", "ccc"]
COMMANDS = {
    "rank": ["rank", "runs", "--draws", "4", "--cache", "none", *INDICES, "--truth", "t.npy"],
    "choose-k": ["choose-k", "x.csv", "--k", "2:5", "--repeats", "2"],
    "choose-k by many": ["choose-k", "x.csv", "--k", "2:5", *INDICES, "-i", "elbow", "-i", "gap"],
    "indices": ["indices"],
    "score": ["score", "x.csv", "y.csv"],
    "score by many": ["score", "x.csv", "y.csv", *INDICES],
    "stability": ["stability", "x.csv", "-k", "12", "--draws", "4", "--set", "n_splits=0"],
    "stability of labels": ["stability", "x.csv", "y.csv", "--labels", "named", "--draws", "4"],
    "describe": ["describe", "x.csv", "y.csv", "--labels", "named"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_and_no_number_of_a_table_is_split_at_80_columns(
    awkward, name, capsys, monkeypatch
):
    import importlib

    from wellsep.cli import printing as output

    given, print_table = [], output.print_table

    def noted(columns, *words, **called):
        given.append((columns, (*words, *called.values())))
        print_table(columns, *words, **called)

    monkeypatch.chdir(awkward)
    monkeypatch.setattr(output, "_WIDTH_OF_A_PIPE", 80)
    for room in ("printing", "ranking", "scoring", "clustering"):
        module = importlib.import_module(f"wellsep.cli.{room}")
        if hasattr(module, "print_table"):
            monkeypatch.setattr(module, "print_table", noted)
    assert main(COMMANDS[name]) == 0
    shown = capsys.readouterr().out
    whole = set(shown.split())
    assert given
    for columns, words in given:
        texts = [*columns, *words]
        texts += [output.cell(value) for values in columns.values() for value in values]
        assert {word for text in texts for word in text.split()} <= whole
    tables = [line for line in shown.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= 80


def test_a_wide_column_does_not_push_the_score_off_the_screen(awkward, capsys, monkeypatch):
    from wellsep.cli import printing as output

    monkeypatch.chdir(awkward)
    monkeypatch.setattr(output, "_WIDTH_OF_A_PIPE", 80)
    assert main(["rank", "runs", "--draws", "0", "--cache", "none"]) == 0
    shown = capsys.readouterr().out
    head = next(line for line in shown.splitlines() if line.split()[:2] == ["rank", "partition"])
    assert "score" in head.split()
    assert "params" in shown.split("Not shown, the terminal is too narrow:")[1]


def test_names_that_differ_in_the_middle_stay_different_when_they_are_shortened(
    awkward, capsys, monkeypatch
):
    from wellsep.cli import printing as output

    monkeypatch.chdir(awkward)
    monkeypatch.setattr(output, "_WIDTH_OF_A_PIPE", 80)
    assert main(["rank", "runs", "--draws", "0", "--cache", "none"]) == 0
    shown = capsys.readouterr().out
    names = [line.split()[1] for line in shown.splitlines() if re.match(r" +\d+ +\S*\d\d_x", line)]
    assert len(names) == len(set(names)) == 50
