"""`wellsep choose-k` and `wellsep cluster` print and write what the library finds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep.cli.main import main
from wellsep.cli.options import METHODS, parse_range
from wellsep.cluster import by_name
from wellsep.records import ChosenK
from wellsep.tables.reading import read_labels
from wellsep.tables.writing import write_table


@pytest.fixture
def files(tmp_path):
    X, _ = make_blobs(120, 3, centers=4, random_state=1)
    columns = {f"c{j}": X[:, j].tolist() for j in range(3)}
    write_table(tmp_path / "data.csv", columns)
    write_table(tmp_path / "data.parquet", columns)
    np.save(tmp_path / "data.npy", X)
    np.savez(tmp_path / "data.npz", X=X)
    return tmp_path, X


def run_json(capsys, *arguments):
    code = main([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
def test_choose_k_prints_what_the_library_finds(files, capsys, ending):
    folder, X = files
    shown = run_json(
        capsys, "choose-k", folder / f"data.{ending}", "--k", "3:5", "-i", "silhouette", "-i", "cfq"
    )
    chosen = ws.choose_k(X, range(3, 6), indices=["silhouette", "cfq"], random_state=0)
    assert shown["best"] == 4
    assert shown["picks"] == {"silhouette": 4, "cfq": 4}
    np.testing.assert_allclose(shown["indices"][1]["mean"], chosen.mean[:, 1], rtol=1e-9)


def test_the_table_of_choose_k_shows_every_k_and_the_vote(files, capsys):
    folder, _ = files
    assert main(["choose-k", str(folder / "data.csv"), "-k", "2:5", "--repeats", "2"]) == 0
    shown = capsys.readouterr().out
    assert "silhouette ↑" in shown
    assert "mixture_bic ↓" in shown
    assert "K = 4 is the median of 3 votes (2 to 5 tried, 2 repeats)." in shown


def test_choose_k_prints_its_answer_before_its_table_and_each_sentence_once(files, capsys):
    folder, X = files
    assert main(["choose-k", str(folder / "data.csv"), "-k", "2:5"]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    said = ws.choose_k(X, range(2, 6), random_state=0).explain().splitlines()
    assert lines.startswith(said[0])
    table = lines.index("votes silhouette ↑")
    places = [lines.index(" ".join(sentence.split())) for sentence in said]
    assert places == sorted(places)
    assert sum(place < table for place in places) == 2
    assert all(lines.count(" ".join(sentence.split())) == 1 for sentence in said)


def test_choose_k_writes_the_labels_of_the_best_and_the_record(files, capsys):
    folder, _ = files
    shown = run_json(
        capsys, "choose-k", folder / "data.npy", "-k", "3,4,5", "--method", "ward",
        "-o", folder / "labels.csv", "--save", folder / "record",
    )  # fmt: skip
    written = read_labels(folder / "labels.csv")["label"]
    assert len(np.unique(written)) == shown["best"] == 4
    record = ChosenK.load(folder / "record")
    np.testing.assert_array_equal(record.labels_for(4), written)


def test_columns_are_scaled_on_request(files, capsys):
    folder, X = files
    shown = run_json(
        capsys, "choose-k", folder / "data.npy", "-k", "3:5", "--scale", "-i", "silhouette"
    )
    scaled = StandardScaler().fit_transform(X)
    chosen = ws.choose_k(scaled, [3, 4, 5], indices="silhouette", gate=False, random_state=0)
    np.testing.assert_allclose(shown["indices"][0]["mean"], chosen.mean[:, 0], rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_cluster_writes_the_labels_of_every_method(files, capsys, method, ending):
    folder, _ = files
    out = folder / f"labels.{ending}"
    shown = run_json(capsys, "cluster", folder / "data.csv", "-m", method, "-k", 4, "-o", out)
    labels = next(iter(read_labels(out).values()))
    assert len(labels) == 120
    assert shown["n_clusters"] == 4
    assert sorted(shown["sizes"].values()) == sorted(np.bincount(labels).tolist())
    assert shown["labels"] is None


def test_cluster_is_the_estimator_with_the_seed(files, capsys):
    folder, X = files
    shown = run_json(
        capsys, "cluster", folder / "data.npy", "-k", 4, "--method", "lof-k-means",
        "--set", "n_neighbors=7", "--set", "n_init=2", "--seed", 3,
    )  # fmt: skip
    model = ws.LOFKMeans(4, n_neighbors=7, n_init=2, random_state=3).fit(X)
    assert shown["labels"] == model.labels_.tolist()
    assert shown["inertia"] == pytest.approx(model.inertia_)


def test_cluster_reads_an_npy_file_in_batches(files, capsys):
    folder, X = files
    shown = run_json(capsys, "cluster", folder / "data.npy", "-k", 4, "--batch", 50)
    model = ws.CFMeans(4, batch_size=50, random_state=0).fit(X)
    assert shown["labels"] == model.labels_.tolist()
    for wrong, sentence in (
        (["data.csv"], "batch must be left out unless the data are an npy file, got data.csv"),
        (["data.npy", "-m", "ward"], "batch must be left out for ward; use k-means or cf-means"),
        (["data.npy", "--scale"], "scale must be left out with --batch"),
    ):
        assert main(["cluster", str(folder / wrong[0]), "-k4", "--batch", "50", *wrong[1:]]) != 0
        assert sentence in capsys.readouterr().err


def test_cluster_writes_centres(files, capsys):
    folder, _ = files
    run_json(capsys, "cluster", folder / "data.npy", "-k", 3, "--centers", folder / "centers.npy")
    assert np.load(folder / "centers.npy").shape == (3, 3)


def test_the_table_of_cluster_shows_sizes(files, capsys):
    folder, _ = files
    assert main(["cluster", str(folder / "data.csv"), "-k", "4"]) == 0
    shown = capsys.readouterr().out
    assert "cf-means: 4 clusters of 120 objects, inertia" in shown
    assert "Labels were not written" in shown
    assert main(["cluster", str(folder / "data.csv"), "-k", "1"]) == 0
    assert "cf-means: 1 cluster of 120 objects, inertia" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2:5", [2, 3, 4, 5]), ("2:8:3", [2, 5, 8]), ("3, 5,8", [3, 5, 8]), ("7", [7])],
)
def test_ranges_read_as_they_look(text, numbers):
    assert parse_range(text) == numbers


@pytest.mark.parametrize("text", ["5:2", "a", "2-8", "", "2:8:0"])
def test_other_ranges_are_answered_in_a_sentence(text):
    with pytest.raises(ValueError, match="k must read like 2:12"):
        parse_range(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["choose-k", "data.csv", "--method", "best"], "method must be one of 'k-means'"),
        (["choose-k", "data.csv", "-k", "2:200"], "--k must not exceed"),
        (["choose-k", "nowhere.csv"], "DATA must be an existing file"),
        (["cluster", "data.csv", "-k", "999"], ", got 999; choose fewer clusters.\n"),
        (
            ["cluster", "data.csv", "-k", "999"],
            "Error: --clusters must not exceed the number of obj",
        ),
        (["cluster", "data.csv", "-k", "0"], "--clusters must be at least 1, got 0"),
        (["cluster", "data.csv", "-k", "3", "-o", "labels.xls"], "--output must end in .csv"),
        (["cluster", "data.csv", "-k", "3", "-m", "ward", "--centers", "c.npy"], "without centres"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    files, capsys, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(files[0])
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["choose-k", "cluster"])
def test_help_shows_examples(capsys, command):
    assert main([command, "--help"]) == 0
    assert f"wellsep {command} data.csv" in capsys.readouterr().out


def test_cluster_without_k_is_a_misuse(files, capsys):
    assert main(["cluster", str(files[0] / "data.csv")]) == 2
    assert "-k" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["cluster", "-k", "2", "-o"], ["cluster", "-k", "2", "--centers"], ["choose-k", "-o"]]
)
def test_a_command_never_writes_over_its_input(tmp_path, capsys, words):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(24.0).reshape(8, 3))
    before = path.read_bytes()
    command, *options = words
    assert main([command, str(path), *options, str(tmp_path / "." / "x.npy")]) == 2
    assert "must be another file than the input" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_labels_and_centres_do_not_share_a_file(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.arange(24.0).reshape(8, 3))
    out = str(tmp_path / "out.npy")
    assert main(["cluster", str(tmp_path / "x.npy"), "-k", "2", "-o", out, "--centers", out]) == 2
    assert "centers must be another file than output" in capsys.readouterr().err
    assert not (tmp_path / "out.npy").exists()


def test_the_help_names_every_method():
    assert tuple(by_name.METHODS) == METHODS


def test_ctrl_c_ends_a_command_with_one_sentence(tmp_path, capsys, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    np.save(tmp_path / "x.npy", np.arange(24.0).reshape(8, 3))
    monkeypatch.setattr("wellsep.cluster.fit_labels", interrupted)
    assert main(["cluster", str(tmp_path / "x.npy"), "-k", "2"]) == 130
    assert capsys.readouterr().err == "Interrupted. Files that were complete are kept.\n"
