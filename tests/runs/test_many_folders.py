"""Runs of many folders are ranked together, under names that stay unique by their path."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wellsep as ws
from wellsep.adapters import load_any
from wellsep.cli.main import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) + 6 * np.repeat([[0, 0], [1, 1]], 20, axis=0)


def save(folder, *names, space="pca"):
    ws.save_run(folder, X + RNG.normal(size=X.shape), name=space)
    for number, name in enumerate(names):
        labels = (np.arange(40) // (20 - number)).astype(int)
        ws.save_run(folder, None, labels, name=name, space=space)


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "all" / "dec", "K=2", "K=3")
    save(tmp_path / "all" / "idec" / "seed 1", "K=2", "K=3")
    return tmp_path / "all"


NESTED = ["dec/K=2", "dec/K=3", "idec/seed 1/K=2", "idec/seed 1/K=3"]


def test_runs_in_subfolders_are_called_by_their_path(folder):
    runs = ws.load_runs(folder)
    assert list(runs.partitions) == NESTED
    assert list(runs.spaces) == ["dec/pca", "idec/seed 1/pca"]
    assert runs.made_in.tolist() == [0, 0, 1, 1]
    alone = ws.load_runs(folder / "dec")
    np.testing.assert_array_equal(runs["dec/K=2"].labels, alone["K=2"].labels)
    np.testing.assert_array_equal(runs.spaces["dec/pca"], alone.spaces["pca"])


def test_runs_beside_subfolders_keep_their_names(folder):
    ws.save_run(folder, None, np.arange(40) % 2, name="mine")
    assert list(ws.load_runs(folder).partitions) == ["dec/K=2", "dec/K=3", *NESTED[2:], "mine"]


def test_what_is_no_run_in_a_subfolder_is_left_alone(folder):
    names = ws.load_runs(folder).names
    ws.judge(ws.load_runs(folder), n_draws=0).save(folder / "result")
    (folder / "notes").mkdir()
    (folder / "notes" / "readme.txt").write_text("words")
    (folder / ".hidden").mkdir()
    save(folder / ".hidden" / "old", "K=2")
    (folder / "again").symlink_to(folder)  # no end
    assert ws.load_runs(folder).names == names


def test_several_sources_with_equal_names_are_told_apart_by_their_paths(folder):
    runs = load_any([folder / "dec", folder / "idec" / "seed 1"])
    assert sorted(runs.partitions) == sorted(NESTED)
    assert runs.made_in.tolist() == [0, 0, 1, 1]


def test_several_sources_with_different_names_keep_them(folder, tmp_path):
    save(tmp_path / "other", "K=4", space="umap")
    runs = load_any([folder / "dec", tmp_path / "other"])
    assert list(runs.partitions) == ["K=2", "K=3", "K=4"]
    runs.save(tmp_path / "one.npz")
    assert list(load_any([tmp_path / "one.npz"]).partitions) == ["K=2", "K=3", "K=4"]


def test_a_pattern_must_match_in_one_source_only(folder, tmp_path):
    save(tmp_path / "other", "leiden", space="umap")
    sources = [folder / "dec", tmp_path / "other"]
    runs = load_any(sources, labels="K=*", spaces="umap")
    assert (list(runs.partitions), list(runs.spaces)) == (["K=2", "K=3"], ["umap"])
    with pytest.raises(ValueError, match="labels must match one of .* got 'louvain'"):
        load_any(sources, labels="louvain")


def test_a_source_is_named_once(folder):
    with pytest.raises(ValueError, match="source must name each source once, got .*dec twice"):
        load_any([folder / "dec", f"{folder}/idec/../dec"])
    with pytest.raises(ValueError, match="source must name at least one source"):
        load_any([])


def test_the_command_ranks_subfolders_and_several_sources_alike(folder, capsys):
    def answer(*sources):
        words = ["rank", *map(str, sources), "--draws", "0", "--cache", "none", "--json"]
        assert main(words) == 0
        table = json.loads(capsys.readouterr().out)["ranking"]
        return {row["partition"]: row["score"] for row in table}

    assert answer(folder) == answer(folder / "dec", folder / "idec" / "seed 1")
    assert set(answer(folder)) == set(NESTED)


def test_a_page_of_several_sources_names_them_again(folder, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources = [str(folder / "dec"), str(folder / "idec")]
    assert main(["rank", *sources, "--draws", "0", "--cache", "none", "--save", "result"]) == 0
    words = ["report", "result", "--runs", sources[0], "--runs", sources[1]]
    assert main(words) == 0
    assert "wrote report.html" in capsys.readouterr().err


def space_of(runs):
    return {run.name: run.space for run in runs if run.labels is not None}


def test_pairs_are_looked_for_in_each_of_several_sources(tmp_path, capsys):
    for folder in ("dec", "idec"):
        save(tmp_path / folder, "leiden_pca_2", "leiden_scvi_3", space="X_pca")
        save(tmp_path / folder, space="X_scvi")
    save(tmp_path / "other", "louvain_2", space="X_umap")
    sources = [tmp_path / "dec", tmp_path / "idec", tmp_path / "other"]
    expected = {
        f"{folder}/leiden_{space}_{k}": f"{folder}/X_{space}"
        for folder in ("dec", "idec")
        for space, k in (("pca", 2), ("scvi", 3))
    } | {"louvain_2": "X_umap"}
    assert space_of(load_any(sources, pairs="leiden_{space}_*")) == expected
    by_mapping = {"leiden_pca_*": "X_pca", "leiden_scvi_*": "X_scvi"}
    assert space_of(load_any(sources, pairs=by_mapping)) == expected
    words = ["rank", *map(str, sources), "--pairs", "leiden_{space}_*", "--draws", "0"]
    assert main([*words, "--cache", "none", "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out)["ranking"]
    assert all(row["rank_own_space"] is not None for row in ranked)


def test_pairs_between_sources_are_found_and_what_fits_in_none_is_refused(tmp_path):
    save(tmp_path / "spaces", space="X_pca")
    save(tmp_path / "labels", "leiden_pca_2", space="X_scvi")
    sources = [tmp_path / "spaces", tmp_path / "labels"]
    assert space_of(load_any(sources, pairs="leiden_{space}_*")) == {"leiden_pca_2": "X_pca"}
    with pytest.raises(ValueError, match="pairs must fit a partition, got 'louvain_{space}'"):
        load_any(sources, pairs="louvain_{space}")
    with pytest.raises(ValueError, match="pairs must name partitions, got 'typo'"):
        load_any(sources, pairs={"leiden_*": "X_pca", "typo": "X_pca"})
