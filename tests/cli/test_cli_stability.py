"""`wellsep stability` and `wellsep resolutions` print and write what the library finds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.cli.main import main
from wellsep.records import Stability
from wellsep.tables.reading import read_table
from wellsep.tables.writing import write_table


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs(90, 2, centers=[[0, 0], [9, 0], [9, 5]], random_state=1)
    write_table(tmp_path / "data.csv", {f"c{j}": X[:, j].tolist() for j in range(2)})
    write_table(tmp_path / "labels.csv", {"k2": (y > 0).tolist(), "k3": y.tolist()})
    return X, y


def run(capsys, *words):
    code = main([*map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_stability_prints_what_the_library_finds(files, capsys):
    X, _ = files
    code, out, _ = run(capsys, "stability", "data.csv", "-k", 4, "--draws", 8, "--json")
    shown = json.loads(out)
    found = ws.stability(ws.KMeans(4, n_init=10), X, n_draws=8, random_state=0)
    assert code == 0
    assert [row["jaccard"] for row in shown["clusters"]] == pytest.approx(found.jaccard.tolist())
    assert [row["dissolved"] for row in shown["clusters"]] == found.dissolved.tolist()
    assert shown["prediction_strength"] == pytest.approx(found.prediction_strength)
    assert (shown["scheme"], shown["stand_in"]) == ("bootstrap", None)
    assert shown["explanation"] == found.explain().splitlines()


def test_the_table_names_clusters_and_the_sentences_count_draws(files, capsys):
    code, out, err = run(capsys, "stability", "data.csv", "-k", 3, "--draws", 5, "--subsample", 0.5)
    assert code == 0
    assert out.startswith("All 3 clusters are stable over 5 subsamples.")
    assert out.count("are stable over") == 1
    assert "dissolved" in out
    assert "dissolves in 0 of 5 subsamples and is recovered in 5" in out
    assert "Stable does not mean true" in out
    assert err == "data.csv: 90 objects, 2 features.\n"


def test_finished_labels_are_judged_by_a_stand_in(files, capsys):
    words = ("labels.csv", "--labels", "k3", "--draws", 5, "--set", "stand_in=nearest-mean")
    code, out, _ = run(capsys, "stability", "data.csv", *words, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["stand_in"] == "nearest-mean"
    assert shown["clusterer"] is None
    assert shown["prediction_strength"] is None


def test_labels_and_a_method_judge_the_labels_by_the_method(files, capsys):
    words = ("labels.csv", "--labels", "k2", "-k", 3, "--method", "ward", "--draws", 5, "--json")
    code, out, _ = run(capsys, "stability", "data.csv", *words)
    shown = json.loads(out)
    assert code == 0
    assert [row["size"] for row in shown["clusters"]] == [30, 60]
    assert set(shown["n_found"]) == {3}


def test_the_table_and_the_record_are_written(files, capsys):
    words = ("-k", 3, "--draws", 4, "--set", "n_splits=0", "-o", "out.csv", "--save", "record")
    code, _, err = run(capsys, "stability", "data.csv", *words)
    assert code == 0
    assert "wrote out.csv" in err
    assert read_table("out.csv").names[:3] == ("cluster", "size", "jaccard")
    assert Stability.load("record").values.shape == (3, 4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["data.csv"], "--clusters must be given where there are no labels"),
        (["data.csv", "labels.csv"], "LABELS must be one clustering, got 2: 'k2', 'k3'"),
        (["data.csv", "--labels", "k2"], "LABELS must be a file for data without columns"),
        (["data.csv", "-k", "200"], "--clusters must not exceed the number of objects (90)"),
        (["data.csv", "-k", "2", "--draws", "0"], "--draws must be at least 1"),
        (["data.csv", "-k", "2", "--method", "magic"], "--method must be one of"),
        (["data.csv", "-k", "2", "--subsample", "7"], "--subsample must be a share"),
        (["data.csv", "-k", "2", "-o", "no/x.csv"], "--output must lie in a folder that exists"),
        (["data.csv", "-k", "2", "-o", "data.csv"], "--output must be another file than the input"),
        (["absent.csv", "-k", "2"], "absent.csv"),
    ],
)
def test_bad_words_end_in_a_sentence_that_names_the_flag(files, capsys, words, sentence):
    code, out, err = run(capsys, "stability", *words)
    assert (code, out) == (2, "")
    assert sentence in err


def test_resolutions_prints_the_tree_of_a_table_of_labels(files, capsys):
    code, out, _ = run(capsys, "resolutions", "labels.csv", "--json", "-o", "links.csv")
    shown = json.loads(out)
    assert code == 0
    assert [level["n_clusters"] for level in shown["levels"]] == [2, 3]
    assert {(row["cluster"], row["next_cluster"]) for row in shown["links"]} == {
        ("False", "0"), ("True", "1"), ("True", "2"),
    }  # fmt: skip
    assert read_table("links.csv").names[0] == "level"
    _, out, _ = run(capsys, "resolutions", "labels.csv")
    parents = [line for line in out.splitlines() if line.strip().startswith(("True", "False"))]
    children = [line for line in out.splitlines() if line.strip().startswith("└ ")]
    assert (len(parents), len(children)) == (2, 3)
    assert all(line.rstrip().endswith("100%") for line in children)


def test_resolutions_reads_a_saved_choice_of_k(files, capsys):
    assert main(["choose-k", "data.csv", "--k", "2:4", "--save", "chosen"]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, "resolutions", "chosen")
    assert code == 0
    assert "K = 2 → K = 3: cluster" in out


def test_a_result_that_is_no_ranking_is_not_explained(files, capsys):
    assert main(["choose-k", "data.csv", "--k", "2:4", "--save", "chosen"]) == 0
    for command in ("explain", "settle"):
        capsys.readouterr()
        assert main([command, "chosen"]) == 2
        assert capsys.readouterr().err == (
            "Error: RESULT must be a ranking that wellsep rank --save wrote, got chosen with a "
            "ChosenK; wellsep report shows any saved result.\n"
        )


def test_resolutions_reads_columns_of_anndata(files, capsys):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X, y = files
    obs = pd.DataFrame({"leiden_1.0": y, "leiden_0.2": y > 0, "batch": np.arange(90) % 2})
    obs = obs.astype(int).astype(str).astype("category")
    obs.index = [f"cell{i}" for i in range(90)]
    data = anndata.AnnData(X, obs=obs)
    data.write_h5ad("data.h5ad")
    code, out, _ = run(capsys, "resolutions", "data.h5ad", "--labels", "leiden_*", "--json")
    assert code == 0
    assert [level["partition"] for level in json.loads(out)["levels"]] == [
        "leiden_0.2", "leiden_1.0",
    ]  # fmt: skip
    tree = ws.resolution_tree(data, "leiden_*")
    assert tree.levels == ("leiden_0.2", "leiden_1.0")


def test_one_clustering_is_no_tree(files, capsys):
    code, _, err = run(capsys, "resolutions", "labels.csv", "--labels", "k2")
    assert code == 2
    assert "runs must hold at least 2 clusterings, got 1" in err
