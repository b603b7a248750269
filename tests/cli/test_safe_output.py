"""Names from files reach the terminal and spreadsheets as text only."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import wellsep as ws
from wellsep._text.sentences import printable_lines, shown
from wellsep.cli.main import main
from wellsep.tables.reading import read_table
from wellsep.tables.writing import write_table

RED = "\x1b[31mred\x1b[0m"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(12, 2))
    np.save("x.npy", X)
    rows = "\n".join(f"{i % 2},{i % 3}" for i in range(12))
    (tmp_path / "y.csv").write_text(f"{RED},=1+1\n{rows}\n")
    return tmp_path


def test_escape_sequences_in_column_names_are_not_printed(files, capsys):
    assert main(["score", "x.npy", "y.csv"]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told and "\\x1b[31mred" in told


def test_json_has_escape_sequences_as_json_writes_them(files, capsys):
    (files / "z.csv").write_text("\x9b31m,k\n" + "\n".join(f"{i % 2},{i % 3}" for i in range(12)))
    assert main(["score", "x.npy", "z.csv", "--json"]) == 0
    told = capsys.readouterr().out
    assert "\x9b" not in told and "\\u009b31m" in told


def test_escape_sequences_in_a_saved_ranking_are_not_printed(files, capsys):
    X = np.random.default_rng(0).normal(size=(12, 2))
    spaces = {"a\u202eb": X, "c": X[:, ::-1]}
    runs = ws.Runs.from_parts(spaces, {"p\u202eq": np.arange(12) % 3, "r": np.arange(12) % 2})
    ws.judge(runs, n_draws=0).save("result")
    assert main(["explain", "result"]) == 0
    assert "\u202e" not in capsys.readouterr().out


def test_an_error_shows_escape_sequences_as_text(files, capsys):
    assert main(["score", "x.npy", f"{RED}.csv"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_brackets_in_a_setting_are_no_markup(files, capsys):
    pytest.importorskip("torch", reason="needs the extra deep")
    words = ["train", "-d", "x.npy", "-m", "dec", "-k", "2", "-o", "runs", "-s", "network=[/red]"]
    assert main([*words, "-s", "epochs=1", "-s", "pretrain_epochs=1"]) == 1
    told = capsys.readouterr().err
    assert "network must be one of" in told and "[/red]" in told


def test_a_csv_file_holds_no_formula(files):
    assert main(["score", "x.npy", "y.csv", "-o", "s.csv"]) == 0
    cells = [line.split(",")[0] for line in (files / "s.csv").read_text().splitlines()]
    assert cells[2] == "'=1+1"


def test_a_csv_file_holds_no_character_that_steers_a_terminal(files):
    assert main(["score", "x.npy", "y.csv", "-o", "s.csv"]) == 0
    text = (files / "s.csv").read_text()
    assert "\x1b" not in text and "\\x1b[31mred" in text


def test_words_of_any_script_are_written_to_csv_as_they_are(tmp_path):
    words = ["naïve\xa0鳥", "👩\u200d🔬", "two\nlines", "a\tb"]
    write_table(tmp_path / "t.csv", {"id": words, "turned\u202eback": [1, 2, 3, 4]})
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["id", "turned\\u202eback"]
    assert [row[0] for row in rows[1:]] == words


def test_a_warning_shows_escape_sequences_as_text(files, capsys):
    ws.save_run("runs", np.eye(12), np.arange(12) % 2, name="a")
    (files / "runs" / RED).mkdir()
    (files / "runs" / RED / "run.json").write_text("[")
    main(["rank", "runs", "--cache", "none", "--draws", "0"])
    told = capsys.readouterr().err
    assert "left out" in told and "\x1b" not in told


@pytest.mark.parametrize("name", ["=1+1", "+a", "-b", "@c", "'=d", "'plain", "a=b"])
def test_a_guarded_text_comes_back_as_it_was(tmp_path, name):
    write_table(tmp_path / "t.csv", {"id": [name, "other"], "-x": [1, -2], "y": ["-3", "4"]})
    first = (tmp_path / "t.csv").read_text().splitlines()[1].split(",")
    assert not first[0].startswith(("=", "+", "-", "@"))
    table = read_table(tmp_path / "t.csv")
    assert table.names == ("-x", "y")
    assert table.columns[0].tolist() == [1, -2] and table.columns[1].tolist() == [-3, 4]
    if name != "'=d":  # an apostrophe before a formula is what the guard looks like
        assert table.ids.tolist() == [name, "other"]


def test_an_object_without_a_repr_is_named_by_its_type():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    assert shown(Silent()) == "<Silent without a repr>"
    with pytest.raises(TypeError, match="n_clusters must be an integer, got <Silent without"):
        ws.KMeans(Silent()).fit(np.ones((3, 2)))


def test_lines_stay_lines():
    assert printable_lines("a\n\x1bb") == "a\n\\x1bb"
