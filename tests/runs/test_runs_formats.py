"""Runs are read from archives and tables as from folders."""

from __future__ import annotations

import builtins
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import pdist, squareform

from wellsep import Run, Runs, load_runs, save_run

RNG = np.random.default_rng(1)
SPACE = RNG.normal(size=(5, 2))
LABELS = np.array([0, 0, 1, 1, -1])
IDS = np.array(["p", "q", "r", "s", "t"])


def check_run(run: Run, labels=LABELS, space=SPACE) -> None:
    np.testing.assert_array_equal(run.labels, labels)
    np.testing.assert_allclose(run.embedding, space, rtol=1e-15)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_folder_of_archives_has_one_run_each(tmp_path, save):
    save(tmp_path / "a.npz", embedding=SPACE, labels=LABELS, ids=IDS, params=json.dumps({"k": 2}))
    save(tmp_path / "b.npz", embedding=SPACE + 1, labels=LABELS[::-1], name="true <name>")
    runs = load_runs(tmp_path)
    assert runs.names == ("a", "true <name>")
    check_run(runs["a"])
    check_run(runs["true <name>"], LABELS[::-1], SPACE + 1)
    assert runs.params["a"] == {"k": 2}
    assert runs.ids.tolist() == IDS.tolist()


def test_uncompressed_archives_are_mapped_and_compressed_ones_are_read(tmp_path):
    np.savez(tmp_path / "plain.npz", embedding=SPACE, labels=LABELS)
    np.savez_compressed(tmp_path / "small.npz", embedding=SPACE, labels=LABELS)
    runs = load_runs(tmp_path)
    assert isinstance(runs.spaces["plain"], np.memmap)
    assert not isinstance(runs.spaces["small"], np.memmap)
    check_run(runs["plain"])
    check_run(runs["small"])


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_memory_orders_come_back_equal(tmp_path, order):
    space = np.asarray(SPACE, order=order)
    np.savez(tmp_path / "a.npz", embedding=space, labels=LABELS)
    (tmp_path / "b").mkdir()
    np.save(tmp_path / "b" / "embedding.npy", space)
    runs = load_runs(tmp_path)
    check_run(runs["a"])
    np.testing.assert_array_equal(runs.spaces["b"], SPACE)


def test_one_archive_may_hold_many_runs(tmp_path):
    path = tmp_path / "all.npz"
    np.savez(
        path,
        **{
            "a/embedding": SPACE,
            "a/labels": LABELS,
            "deep/er/labels": LABELS[::-1],
            "c/embedding": SPACE * 2,
            "ids": IDS,
        },
    )
    runs = load_runs(path)
    assert runs.names == ("a", "c", "deep/er")
    assert runs.made_in.tolist() == [0, -1]
    assert runs.ids.tolist() == IDS.tolist()
    check_run(runs["a"])


def test_runs_saved_to_one_archive_come_back(tmp_path):
    runs = Runs(
        [
            Run("a/\\b", SPACE, LABELS, params={"k": 2}, metadata={"x": None}, ids=IDS),
            Run("鳥", labels=LABELS.astype(str), space="a/\\b"),
        ]
    )
    runs.save(tmp_path / "all.npz")
    again = load_runs(tmp_path / "all.npz")
    assert again.names == runs.names
    check_run(again["a/\\b"])
    assert again["鳥"].labels.tolist() == ["0", "0", "1", "1", "-1"]
    assert again.made_in.tolist() == [0, 0]
    assert (again[0].params, again[0].metadata) == ({"k": 2}, {"x": None})
    with pytest.raises(FileExistsError, match="path must be new"):
        runs.save(tmp_path / "all.npz")
    runs.save(tmp_path / "all.npz", overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["all.npz"]


def test_a_folder_with_plain_arrays_is_a_run_of_its_name(tmp_path):
    for name in ("one", "two words"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "labels.npy", LABELS)
        np.save(tmp_path / name / "embedding.npy", SPACE)
    (tmp_path / "two words" / "run.json").write_text(json.dumps({"params": {"k": 2}}))
    runs = load_runs(tmp_path)
    assert runs.names == ("one", "two words")
    assert runs.params == {"one": {}, "two words": {"k": 2}}
    check_run(runs["one"])


def test_one_run_folder_may_be_loaded_by_itself(tmp_path):
    path = save_run(tmp_path, SPACE, LABELS, name="a")
    assert load_runs(path).names == ("a",)


def test_all_forms_may_lie_side_by_side_with_other_files(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="folder")
    np.savez(tmp_path / "archive.npz", labels=LABELS)
    np.save(tmp_path / "flat.labels.npy", LABELS)
    np.save(tmp_path / "flat.embedding.npy", SPACE)
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / "truth.csv").write_text("y\n1\n")
    (tmp_path / "cache").mkdir()
    (tmp_path / ".cache").mkdir()
    runs = load_runs(tmp_path)
    assert runs.names == ("archive", "flat", "folder")
    assert isinstance(runs.spaces["flat"], np.memmap)


def write_csv_pair(folder, name="a", **options):
    pd.DataFrame(SPACE, index=IDS).to_csv(folder / f"{name}.embedding.csv", **options)
    pd.Series(LABELS, index=IDS, name="label").to_csv(folder / f"{name}.labels.csv", **options)


def test_csv_pairs_written_by_pandas_are_read_with_their_index_as_ids(tmp_path):
    write_csv_pair(tmp_path)
    runs = load_runs(tmp_path)
    check_run(runs["a"])
    assert runs.ids.tolist() == IDS.tolist()


def test_csv_pairs_without_index_are_read(tmp_path):
    write_csv_pair(tmp_path, index=False)
    run = load_runs(tmp_path)["a"]
    check_run(run)
    assert run.ids is None


def test_csv_pairs_without_header_are_read(tmp_path):
    np.savetxt(tmp_path / "a.embedding.csv", SPACE, delimiter=",")
    np.savetxt(tmp_path / "a.labels.csv", LABELS, fmt="%d")
    check_run(load_runs(tmp_path)["a"])


def test_csv_labels_may_be_text_and_ids_a_column_called_id(tmp_path):
    (tmp_path / "a.labels.csv").write_text('cluster,ID\n"b, c",7\nä,8\n', "utf-8-sig")
    (tmp_path / "a.embedding.csv").write_text("x,id,y\n1,7,2\n3,8,4\n", "utf-8-sig")
    run = load_runs(tmp_path)["a"]
    assert run.labels.tolist() == ["b, c", "ä"]
    assert run.embedding.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert run.ids.tolist() == [7, 8]


def test_tables_may_have_params_beside_them(tmp_path):
    write_csv_pair(tmp_path)
    (tmp_path / "a.run.json").write_text(json.dumps({"params": {"k": 2}, "name": "a/1"}))
    assert load_runs(tmp_path).params == {"a/1": {"k": 2}}


def test_labels_of_a_run_are_put_in_the_order_of_its_embedding(tmp_path):
    (tmp_path / "a.labels.csv").write_text("id,label\nq,1\np,0\n")
    (tmp_path / "a.embedding.csv").write_text("id,x\np,1\nq,2\n")
    run = load_runs(tmp_path)["a"]
    assert (run.labels.tolist(), run.ids.tolist()) == ([0, 1], ["p", "q"])


def test_the_two_tables_of_a_run_must_agree_on_ids(tmp_path):
    (tmp_path / "a.labels.csv").write_text("id,label\np,0\nr,1\n")
    (tmp_path / "a.embedding.csv").write_text("id,x\np,1\nq,2\n")
    with pytest.raises(ValueError, match="ids must name the same objects in a.embedding.csv"):
        load_runs(tmp_path)


@pytest.mark.parametrize(
    ("labels", "embedding", "sentence"),
    [
        ("label\n0\n1\n", "x,y\n1,2\n3,oops\n", "embedding of run 'a' must be a table of numbers"),
        ("label\n0\n\n1\n", "x\n1\n2\n3\n", "run 'a' must have the same number of objects"),
        ("label,other\n0,1\n1,1\n", "x\n1\n2\n", "labels of run 'a' must have one column"),
        (
            "label,id\n0,1\n1\n",
            "x\n1\n2\n",
            "labels of run 'a' must have 2 cells in every row, got 1",
        ),
        ("label,id\n,1\n1,2\n", "x\n1\n2\n", "labels of run 'a' must have no empty cells, .*row 1"),
        ("", "x\n1\n2\n", "labels of run 'a' must not be empty"),
        ("label\n0\n1\n", "", "embedding of run 'a' must not be empty"),
        ("label\n0\n1\n", "id\n0\n1\n", "embedding of run 'a' must have a column of numbers"),
    ],
)
def test_bad_csv_is_refused_with_the_name_of_the_run(tmp_path, labels, embedding, sentence):
    (tmp_path / "a.labels.csv").write_text(labels)
    (tmp_path / "a.embedding.csv").write_text(embedding)
    with pytest.raises(ValueError, match=sentence):
        load_runs(tmp_path)


def test_csv_that_is_not_utf8_is_refused_with_the_name_of_the_run(tmp_path):
    (tmp_path / "a.labels.csv").write_bytes(b"label\n\xff\n")
    with pytest.raises(ValueError, match="labels of run 'a' must be UTF-8 text"):
        load_runs(tmp_path)


def test_two_files_for_the_same_part_are_refused(tmp_path):
    write_csv_pair(tmp_path)
    np.save(tmp_path / "a.labels.npy", LABELS)
    with pytest.raises(ValueError, match="labels of run 'a' must be in one file, got a.labels.csv"):
        load_runs(tmp_path)


def write_parquet_pair(folder):
    frame = pd.DataFrame(SPACE.astype(np.float32), columns=["x", "y"], index=IDS)
    frame.to_parquet(folder / "a.embedding.parquet")
    labels = pd.Series(LABELS.astype(str), dtype="category").to_numpy()
    pd.DataFrame({"label": pd.Categorical(labels)}, index=IDS).to_parquet(
        folder / "a.labels.parquet"
    )


def check_parquet(folder):
    run = load_runs(folder)["a"]
    assert run.embedding.dtype == np.float32
    np.testing.assert_array_equal(run.embedding, SPACE.astype(np.float32))
    assert run.labels.tolist() == ["0", "0", "1", "1", "-1"]
    assert run.ids.tolist() == IDS.tolist()


def test_parquet_pairs_are_read_with_pyarrow(tmp_path):
    write_parquet_pair(tmp_path)
    check_parquet(tmp_path)


def hide(monkeypatch, *packages):
    real = builtins.__import__

    def guarded(name, *args, **kwargs):
        if name.partition(".")[0] in packages:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)


def test_parquet_pairs_are_read_with_polars_where_pyarrow_is_missing(tmp_path, monkeypatch):
    write_parquet_pair(tmp_path)
    hide(monkeypatch, "pyarrow")
    check_parquet(tmp_path)


def test_parquet_without_a_reader_names_what_to_install(tmp_path, monkeypatch):
    write_parquet_pair(tmp_path)
    hide(monkeypatch, "pyarrow", "polars")
    with pytest.raises(
        ImportError, match="of run 'a' needs the package pyarrow or polars.*pip inst"
    ):
        load_runs(tmp_path)


def test_a_parquet_column_of_vectors_is_an_embedding(tmp_path):
    pl.DataFrame(
        {"id": [1, 2], "vector": [[1.0, 2.0], [3.0, 4.0]]},
        schema_overrides={"vector": pl.Array(pl.Float32, 2)},
    ).write_parquet(tmp_path / "a.embedding.parquet")
    run = load_runs(tmp_path)["a"]
    assert run.embedding.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert run.ids.tolist() == [1, 2]


def test_a_damaged_parquet_file_is_refused_with_the_name_of_the_run(tmp_path):
    (tmp_path / "a.embedding.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="embedding of run 'a' must be a readable Parquet table"):
        load_runs(tmp_path)


def test_an_embedding_table_with_text_is_refused_by_column(tmp_path):
    pd.DataFrame({"x": [1.0], "y": ["b"]}).to_parquet(tmp_path / "a.embedding.parquet")
    sentence = "embedding of run 'a' must be a table of numbers, got 'b' in column 'y'"
    with pytest.raises(ValueError, match=sentence):
        load_runs(tmp_path)


def test_files_of_a_run_beside_other_files_are_told_where_they_belong(tmp_path):
    X = np.arange(8.0).reshape(4, 2)
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    save_run(beside / "runs", X, [0, 0, 1, 1], name="a")
    for folder in (alone, beside):
        folder.mkdir(exist_ok=True)
        np.save(folder / "distances.npy", squareform(pdist(X)))
    assert list(load_runs(alone).spaces) == ["alone"]  # the folder of one run
    sentence = (
        "distances.npy must lie in a folder that holds the files of one run only, or be called "
        f"NAME.distances.npy after its run, got it in {str(beside)!r}."
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        load_runs(beside)


def test_a_table_without_the_name_of_its_run_is_told_the_only_place_where_it_is_read(tmp_path):
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "labels.csv").write_text("l\n0\n0\n1\n1\n")
    sentence = (
        f"labels.csv must be called NAME.labels.csv after its run, got it in {str(folder)!r}."
    )
    for path in (folder, folder.parent):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            load_runs(path)
    (folder / "labels.csv").rename(folder / "a.labels.csv")
    assert load_runs(folder).names == ("a",)


@pytest.mark.parametrize("saved", [True, False])
def test_the_folder_of_a_run_can_be_the_working_folder(saved, tmp_path, monkeypatch):
    if saved:
        save_run(tmp_path, np.eye(4), [0, 0, 1, 1], name="a")
    else:
        (tmp_path / "a").mkdir()
        np.save(tmp_path / "a" / "labels.npy", [0, 0, 1, 1])
    monkeypatch.chdir(tmp_path / "a")
    assert load_runs(".").names == ("a",)
