"""`wellsep explore` goes from a file to labels, a page and a folder."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.cli.main import main

QUICK = ["-m", "k-means", "-m", "ward", "-k", "2:5", "--draws", "0", "--cache", "none"]


@pytest.fixture
def blobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs(90, 4, centers=3, cluster_std=0.6, random_state=2)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"o{i}" for i in range(90)])
    frame.to_csv("x.csv", index_label="id")
    frame.assign(kind=np.array(["x", "y", "z"])[y]).to_csv("mixed.csv", index_label="id")
    return X, y


def test_a_csv_becomes_a_page_labels_and_a_folder(blobs, capsys, tmp_path):
    files = ["--report", "page.html", "-o", "labels.csv", "--save", "found"]
    assert main(["explore", "x.csv", *QUICK, *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 clusters of 90 objects")
    labels = pd.read_csv("labels.csv", index_col="id")["label"]
    assert labels.index[3] == "o3"
    np.testing.assert_array_equal(labels, ws.load("found").labels_)
    assert "wellsep explore x.csv" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["rank", "found/runs", "--draws", "0", "--cache", "none"]) == 0


def test_json_has_the_answer_and_nothing_else(blobs, capsys):
    assert main(["explore", "x.csv", *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_clusters"] == 3
    assert len(found["labels"]) == 90


def test_a_table_with_words_is_compared_by_gower(blobs, capsys):
    assert main(["explore", "mixed.csv", "-k", "2:4", "--draws", "0", "--cache", "none"]) == 0
    out, err = capsys.readouterr()
    assert "Gower" in out
    assert "mixed.csv: 90 objects, words or gaps among them." in err


def test_a_folder_of_embeddings_is_explored(blobs, capsys, tmp_path):
    X, _ = blobs
    ws.Runs.from_parts({"one": X, "two": X[:, :2]}).save("spaces")
    assert main(["explore", "spaces", *QUICK, "-e", "pca"]) == 0
    assert "Embeddings: one, two and one pca." in capsys.readouterr().out


def test_a_folder_of_plain_files_is_one_embedding_for_each(blobs, capsys, tmp_path):
    X, _ = blobs
    names = [f"o{i}" for i in range(90)]
    (tmp_path / "plain").mkdir()
    pd.DataFrame(X, index=names).to_csv("plain/one.csv", index_label="id")
    pd.DataFrame(X[::-1, :2], index=names[::-1]).to_csv("plain/two.csv", index_label="id")
    assert main(["explore", "plain", *QUICK, "-e", "pca", "--save", "found"]) == 0
    assert "Embeddings: one, two and one pca." in capsys.readouterr().out
    spaces = ws.load("found").runs.spaces
    np.testing.assert_allclose(spaces["two"], spaces["one"][:, :2])


def test_a_file_of_distances_is_warned_of_once_and_the_folder_it_names_is_explored(
    blobs, capsys, tmp_path
):
    distances = cdist(blobs[0], blobs[0])
    np.save("dist.npy", distances)
    assert main(["explore", "dist.npy", *QUICK]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "Warning" in line]
    assert len(told) == 1
    assert "FOLDER/NAME/distances.npy for wellsep explore FOLDER" in told[0]
    (tmp_path / "folder" / "name").mkdir(parents=True)
    np.save("folder/name/distances.npy", distances)
    assert main(["explore", "folder", "-k", "2:5", "--draws", "0", "--cache", "none"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("3 clusters of 90 objects: 'name ")
    assert "Warning" not in err


def test_a_folder_without_data_is_refused(blobs, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    assert main(["explore", "empty", *QUICK]) == 1
    assert "must hold at least one run" in capsys.readouterr().err


def test_one_cluster_is_the_exit_code_three(blobs, capsys):
    np.save("noise.npy", np.random.default_rng(0).normal(size=(120, 3)))
    assert main(["explore", "noise.npy", *QUICK]) == 3
    assert capsys.readouterr().out.startswith("One cluster")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.csv", "--report", "page.txt"], "--report must end in .html"),
        (["x.csv", "-o", "x.csv"], "must be another file than the input"),
        (["x.csv", "-m", "kmeans"], "--method must be one of"),
        (["x.csv", "-k", "1:3"], "--k must be at least 2, got 1"),
        (["no.csv"], "no.csv"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line(blobs, capsys, words, message):
    assert main(["explore", *words]) == 2
    assert message in capsys.readouterr().err
