"""An .h5ad file in every command, and AnnData in one call: what is proposed, left out, written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import wellsep as ws
from wellsep.adapters import load_any, runs_from_anndata
from wellsep.adapters.columns import made_in, propose
from wellsep.cli.main import main

anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
QUICK = ["--draws", "4", "--cache", "none"]


def cells(n=90):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3

    def wrong(share):
        return np.where(rng.random(n) < share, rng.integers(0, 3, n), truth).astype(str)

    def space(width):
        return rng.normal(size=(n, width)) + 6 * np.eye(3, width)[truth]

    obs = pd.DataFrame(
        {
            "cell_type": np.array(["B", "T", "NK"])[truth],
            "batch": np.arange(n) % 2,
            "barcode": [f"b{i}" for i in range(n)],
            "n_counts": rng.normal(size=n),
            "leiden_pca_1": wrong(0.0),
            "leiden_pca_2": wrong(0.3),
            "leiden_scvi_1": wrong(0.5),
        },
        index=[f"c{i}" for i in range(n)],
    )
    obsm = {"X_pca": space(4), "X_scvi": space(3), "X_umap": space(2)}
    return anndata.AnnData(obs=obs, obsm=obsm)


@pytest.fixture
def path(tmp_path):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def run(capsys, *words):
    code = main([*map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_without_labels_the_columns_that_look_like_clusterings_are_proposed(path, capsys):
    code, out, err = run(capsys, "rank", path)
    assert (code, out) == (2, "")
    assert "these look like clusterings" in err
    assert "--labels 'leiden_*'" in err


def test_a_proposal_passes_over_measurements_and_names():
    obs = cells().obs
    assert propose({name: obs[name] for name in obs}) == "leiden_*"
    others = [name for name in obs if not name.startswith("leiden")]
    assert propose({name: obs[name] for name in others}) == "cell_type,batch"
    assert propose({"n_counts": obs["n_counts"]}) == ""


def test_a_misspelt_column_is_answered_with_the_one_that_was_meant(path, capsys):
    code, _, err = run(capsys, "rank", path, "--labels", "lieden_pca_1")
    assert code == 2
    assert "did you mean 'leiden_pca_1'?" in err
    code, _, err = run(capsys, "rank", path, "--labels", "leiden_*", "--truth", "cel_type")
    assert code == 2
    assert "did you mean 'cell_type'?" in err


def test_a_column_can_be_the_truth(path, capsys):
    code, out, err = run(capsys, "rank", path, *QUICK, "--labels", "leid*", "--truth", "cell_type")
    assert code == 0, err
    assert "Agreement with the true labels" in out


def test_layouts_are_not_judged_unless_they_are_named(path, capsys):
    runs = runs_from_anndata(path, labels="leiden_*")
    assert list(runs.spaces) == ["X_pca", "X_scvi"]
    assert list(runs.layouts) == ["X_umap"]
    assert runs.open_layout("X_umap").shape == (90, 2)
    named = runs_from_anndata(path, "X_*", "leiden_*")
    assert list(named.spaces) == ["X_pca", "X_scvi", "X_umap"]
    _, out, _ = run(capsys, "rank", path, *QUICK, "--labels", "leiden_*", "--judge", "ace")
    assert "'X_umap' has two columns. It is taken for a layout and not judged." in out
    assert "3 clusterings were judged in 2 embeddings" in out


def test_layouts_are_judged_where_there_is_nothing_else():
    made = cells()
    del made.obsm["X_pca"], made.obsm["X_scvi"]
    runs = runs_from_anndata(made, labels="leiden_*")
    assert list(runs.spaces) == ["X_umap"]
    assert runs.notes == ()


def test_a_star_takes_no_measurements_and_no_class_per_object(path):
    runs = load_any(path, labels="*")
    assert set(runs.partitions) == {
        "cell_type", "batch", "leiden_pca_1", "leiden_pca_2", "leiden_scvi_1"
    }  # fmt: skip
    assert "'n_counts' (measurements)" in runs.notes[1]
    assert "'barcode' (a class per object)" in runs.notes[1]
    assert "barcode" in runs_from_anndata(path, labels="barcode,leiden_*").partitions


def test_columns_are_paired_with_embeddings_by_a_pattern(path, capsys):
    runs = runs_from_anndata(path, labels="leiden_*", pairs="leiden_{space}_*")
    assert runs.made_in.tolist() == [0, 0, 1]
    _, out, _ = run(
        capsys, "rank", path, *QUICK, "--labels", "leiden_*", "--pairs", "leiden_{space}_*"
    )
    assert "rank_own_space" in out
    loaded = load_any(runs_from_anndata(path, labels="leiden_*"), pairs={"leiden_pca_*": "X_pca"})
    assert loaded.made_in.tolist() == [0, 0, -1]


def test_the_longest_name_of_an_embedding_is_taken():
    names = ["k_pca_1", "k_pca_harmony_1"]
    found = made_in("k_{space}_*", names, ["X_pca_harmony", "X_pca"])
    assert found == {"k_pca_1": "X_pca", "k_pca_harmony_1": "X_pca_harmony"}


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ("leiden_*", "pairs must hold {space}"),
        ("louvain_{space}", "pairs must fit a partition"),
        ({"leidn_pca_1": "X_pca"}, "did you mean 'leiden_pca_1'"),
        ({"leiden_*": "X_pcs"}, "did you mean 'X_pca'"),
    ],
)
def test_pairs_that_fit_nothing_are_refused(pairs, sentence):
    with pytest.raises(ValueError, match=sentence):
        runs_from_anndata(cells(), labels="leiden_*", pairs=pairs)


def test_anndata_is_judged_in_one_call():
    made = cells()
    found = ws.judge(made, labels="leiden_*", n_draws=0)
    again = ws.judge(runs_from_anndata(made, labels="leiden_*"), n_draws=0)
    assert str(found.to_dict()) == str(again.to_dict())
    assert found.ranking.best == "leiden_pca_1"
    assert any("X_umap" in note for note in found.notes)
    scores = ws.score_runs(made, labels="leiden_pca_*", spaces="X_pca")
    assert (scores.spaces, scores.partitions) == (("X_pca",), ("leiden_pca_1", "leiden_pca_2"))


@pytest.mark.parametrize("where", ["memory", "file"])
def test_the_answer_is_written_back(where, path, capsys):
    if where == "memory":
        target = cells()
        ws.adapters.write_anndata(ws.judge(target, labels="leiden_*", n_draws=0), target)
    else:
        words = [*QUICK, "--labels", "leiden_*", "--write-back"]
        code, _, err = run(capsys, "rank", path, *words)
        assert (code, err) == (0, f"wrote {path}\n")
        assert run(capsys, "rank", path, *words)[0] == 0  # a second answer replaces the first
        target = anndata.read_h5ad(path)
    assert target.obs["wellsep_best"].tolist() == target.obs["leiden_pca_1"].tolist()
    entry = target.uns["wellsep"]
    assert (entry["best"], entry["judge"], entry["index"]) == (
        "leiden_pca_1",
        "index",
        "silhouette",
    )
    assert entry["ranking"]["partition"][0] == "leiden_pca_1"
    assert len(target.obsm) == 3


def test_an_answer_is_not_written_where_its_column_is_missing():
    made = cells()
    judgement = ws.judge(made, labels="leiden_*", n_draws=0)
    del made.obs["leiden_pca_1"]
    with pytest.raises(ValueError, match="target must hold the best partition 'leiden_pca_1'"):
        ws.adapters.write_anndata(judgement, made)
    assert "wellsep" not in made.uns


def test_score_takes_columns_and_one_embedding(path, capsys):
    words = ["--labels", "leiden_*", "--space", "X_pca", "-i", "silhouette", "--json"]
    code, out, err = run(capsys, "score", path, *words)
    assert code == 0, err
    made = cells()
    for row in json.loads(out)["partitions"]:
        expected = ws.silhouette_score(made.obsm["X_pca"], made.obs[row["name"]])
        assert row["scores"]["silhouette"] == pytest.approx(expected, rel=1e-12)
    code, _, err = run(capsys, "score", path, "--labels", "leiden_*")
    assert code == 2
    assert "--space X_pca" in err


def test_choose_k_and_cluster_take_an_embedding(path, capsys, tmp_path):
    words = ["--space", "X_scvi", "--json"]
    code, out, err = run(capsys, "choose-k", path, "--k", "2:4", *words)
    assert code == 0, err
    assert json.loads(out)["best"] == 3
    code, out, _ = run(capsys, "cluster", path, "-k", "3", *words)
    assert (code, json.loads(out)["n_objects"]) == (0, 90)
    np.save(tmp_path / "x.npy", np.eye(4))
    code, _, err = run(capsys, "cluster", tmp_path / "x.npy", "-k", "2", "--space", "X_pca")
    assert code == 2
    assert "space must be left out" in err


def test_a_page_of_a_saved_ranking_reads_the_file_again(path, capsys, tmp_path):
    result, page = tmp_path / "result", tmp_path / "page.html"
    assert run(capsys, "rank", path, *QUICK, "--labels", "leiden_*", "--save", result)[0] == 0
    words = ["--runs", path, "--truth", "cell_type", "--layout", "X_umap", "-o", page]
    code, _, err = run(capsys, "report", result, *words)
    assert (code, err) == (0, f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "leiden_scvi_1" in text
    assert "X_umap" in text


def test_a_column_may_be_in_one_of_several_files(tmp_path):
    one, other = cells(), cells()
    other.obs = other.obs.rename(columns=lambda name: name.replace("leiden", "louvain"))
    one.write_h5ad(tmp_path / "one.h5ad")
    other.write_h5ad(tmp_path / "other.h5ad")
    sources = [tmp_path / "one.h5ad", tmp_path / "other.h5ad"]
    runs = ws.adapters.load_any(sources, labels="leiden_*,louvain_*", pairs="*_{space}_*")
    names = list(runs.partitions)
    assert any("leiden_" in name for name in names) and any("louvain_" in name for name in names)
    assert {run.space.split("/")[0] for run in runs if run.labels is not None and run.space} == {
        "one.h5ad",
        "other.h5ad",
    }
    assert any("two columns" in note for note in runs.notes)
    with pytest.raises(ValueError, match="labels must match one of .* got 'ward_"):
        ws.adapters.load_any(sources, labels="ward_*")


def test_the_page_colours_cells_by_the_other_columns_of_obs_without_being_asked(path, tmp_path):
    page = tmp_path / "page.html"
    words = ["rank", str(path), "--labels", "leiden_*", *QUICK, "--layout", "pca"]
    assert main([*words, "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    start = text.index('id="data">') + len('id="data">')
    known = json.loads(text[start : text.index("</script>", start)])["scatters"]["known"]
    assert list(known) == ["cell_type", "batch", "barcode", "n_counts"]
    assert known["cell_type"]["clusters"] == ["B", "NK", "T"]
    assert "values" in known["n_counts"]
    assert "texts" in known["barcode"]


def test_columns_with_gaps_keep_them():
    adata = cells()
    adata.obs["stage"] = pd.Categorical(["early", None, "late"] * 30)
    adata.obs["count"] = pd.array([1, None, 3] * 30, dtype="Int64")
    runs = runs_from_anndata(adata, labels="leiden_*")
    assert runs.objects["stage"][:3].tolist() == ["early", "", "late"]
    np.testing.assert_array_equal(runs.objects["count"][:3].astype(float), [1, np.nan, 3])
    more = ws.consensus_partition(runs).added_to(runs)
    assert list(more.objects) == list(runs.objects)
    assert list(more.layouts) == ["X_umap"]
