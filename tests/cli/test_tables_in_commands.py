"""Every command reads tables as pandas, polars and R write them, says so, and can be told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

import wellsep as ws
from wellsep.cli.main import main

X, Y = make_blobs(60, 3, centers=3, cluster_std=2.0, random_state=1)
RIGHT = silhouette_score(X, Y)


def text_of(head, rows):
    return "\n".join([head] * bool(head) + [",".join(map(str, row)) for row in rows]) + "\n"


def numbered(rows, *more):
    return [[*(column[i] for column in more), *row] for i, row in enumerate(rows)]


NAMES = [f"cell{i}" for i in range(60)]
NUMBERS = list(range(60))
TWO = np.column_stack([Y, 2 * Y]).tolist()
DATA = {
    "header": ("a,b,c", X.tolist(), ""),
    "pandas": (",a,b,c", numbered(X, NUMBERS), ", ids from the first column"),
    "pandas with numbers as names": (
        ",0,1,2", numbered(X, NUMBERS), ", ids from the first column"
    ),
    "pandas without its index": ("0,1,2", X.tolist(), ""),
    "pandas, index of words": (",a,b,c", numbered(X, NAMES), ", ids from the first column"),
    "pyarrow": (
        "__index_level_0__,a,b,c", numbered(X, NUMBERS), ", ids from column '__index_level_0__'"
    ),
    "R write.csv": (
        '"","a","b","c"', numbered(X, [f'"{n}"' for n in NAMES]), ", ids from the first column"
    ),
    "R write.table": ("a,b,c", numbered(X, NAMES), ", ids from the first column"),
    "id": ("id,a,b,c", numbered(X, NUMBERS), ", ids from column 'id'"),
    "customer_id": ("customer_id,a,b,c", numbered(X, NUMBERS), ", ids from column 'customer_id'"),
    "barcode": ("barcode,a,b,c", numbered(X, NAMES), ", ids from column 'barcode'"),
    "index and barcode": (
        ",barcode,a,b,c", numbered(X, NUMBERS, NAMES),
        ", ids from the first column, 'barcode' left out as more ids",
    ),
    "no header": ("", X.tolist(), ", no header"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(text_of("k3", [[y] for y in Y]))
    return tmp_path


def run(capsys, *words):
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr()


def refused(capsys, *words):
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("kind", DATA)
def test_score_and_cluster_take_the_same_features_from_a_table(folder, capsys, kind):
    head, rows, said = DATA[kind]
    (folder / "data.csv").write_text(text_of(head, rows))
    shown = run(capsys, "score", "data.csv", "labels.csv", "-i", "silhouette", "--json")
    found = json.loads(shown.out)["partitions"][0]["scores"]["silhouette"]
    assert found == pytest.approx(RIGHT)
    line = f"data.csv: 60 objects, 3 features{said}."
    assert line in shown.err.splitlines()
    shown = run(capsys, "cluster", "data.csv", "-k", 3, "-m", "k-means", "-o", "out.csv")
    assert line in shown.err.splitlines()
    written = (folder / "out.csv").read_text().splitlines()
    assert len(written) == 61
    assert written[0] == ("id,label" if "ids" in said else "label")
    plain = ws.KMeans(3, n_init=10, random_state=0).fit_predict(X)
    assert [int(line.split(",")[-1]) for line in written[1:]] == plain.tolist()


def test_choose_k_says_what_it_read(folder, capsys):
    (folder / "data.csv").write_text(text_of(*DATA["pandas"][:2]))
    shown = run(capsys, "choose-k", "data.csv", "--k", "2:3", "-i", "silhouette", "-o", "best.csv")
    assert "data.csv: 60 objects, 3 features, ids from the first column." in shown.err
    assert "wrote best.csv" in shown.err
    assert (folder / "best.csv").read_text().startswith("id,label\n0,")


def test_frames_of_pandas_and_polars_in_parquet_are_read(folder, capsys):
    pd = pytest.importorskip("pandas", reason="writes the file")
    pytest.importorskip("pyarrow", reason="writes the file")
    pd.DataFrame(X, index=NAMES).rename(columns=str).to_parquet("data.parquet")
    pd.DataFrame({"k3": Y, "k6": 2 * Y + np.arange(60) % 2}, index=NAMES).to_parquet("two.parquet")
    shown = run(capsys, "score", "data.parquet", "two.parquet", "-i", "silhouette", "--json")
    found = {p["name"]: p["scores"]["silhouette"] for p in json.loads(shown.out)["partitions"]}
    assert found["k3"] == pytest.approx(RIGHT)
    assert list(found) == ["k3", "k6"]
    assert "two.parquet: 60 objects, 2 clusterings (k3, k6), ids from column '__index" in shown.err


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (",k3,k6", numbered(TWO, NUMBERS)),
        ("barcode,k3,k6", numbered(TWO, NAMES)),
        ("k3,k6", numbered(TWO, NAMES)),
    ],
)  # fmt: skip
def test_several_label_columns_are_partitions_by_name(folder, capsys, head, rows):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    (folder / "two.csv").write_text(text_of(head, rows))
    shown = run(capsys, "score", "data.csv", "two.csv", "-i", "silhouette", "--json")
    assert [p["name"] for p in json.loads(shown.out)["partitions"]] == ["k3", "k6"]
    shown = run(
        capsys, "score", "data.csv", "two.csv", "-i", "silhouette", "--json", "--labels", "k6"
    )
    assert [p["name"] for p in json.loads(shown.out)["partitions"]] == ["k6"]


# -- the user decides ------------------------------------------------------------------------------


def features(capsys, *words):
    shown = run(capsys, "cluster", "data.csv", "-k", 2, *words)
    return next(line for line in shown.err.splitlines() if line.startswith("data.csv: "))


def test_ids_header_and_columns_can_be_decided(folder, capsys):
    rows = numbered(X, NUMBERS, np.repeat([1, 2], 30))
    (folder / "data.csv").write_text(text_of("id,batch,a,b,c", rows))
    assert features(capsys) == "data.csv: 60 objects, 4 features, ids from column 'id'."
    assert features(capsys, "--ids", "none") == "data.csv: 60 objects, 5 features."
    line = "data.csv: 60 objects, 4 features, ids from column 'batch'."
    assert features(capsys, "--ids", "batch") == line
    line = "data.csv: 60 objects, 3 features, ids from column 'id'."
    assert features(capsys, "--columns", "a,b,c") == line
    assert features(capsys, "--columns", "[abc]") == line
    assert features(capsys, "--columns", "3,4,5") == line
    (folder / "data.csv").write_text(text_of("0,1,2", X.tolist()))
    assert features(capsys) == "data.csv: 60 objects, 3 features."
    assert features(capsys, "--no-header") == "data.csv: 61 objects, 3 features, no header."


def test_classes_in_the_data_file_are_left_out_by_naming_the_features(folder, capsys):
    words = np.array(["red", "blue", "green"])[Y]
    (folder / "data.csv").write_text(text_of("species,a,b,c", numbered(X, words)))
    assert "name the columns to take" in refused(capsys, "cluster", "data.csv", "-k", 3)
    shown = run(
        capsys, "score", "data.csv", "data.csv", "--columns", "a,b,c", "--labels", "species",
        "-i", "silhouette", "--json",
    )  # fmt: skip
    (found,) = json.loads(shown.out)["partitions"]
    assert found["scores"]["silhouette"] == pytest.approx(RIGHT)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--columns", "z"], "columns must name columns of data.csv, got 'z'; it has 'a', 'b'"),
        (["--ids", "z"], "ids must name one column of data.csv, got 'z'; it has 'a', 'b'"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(folder, capsys, words, sentence):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    assert sentence in refused(capsys, "cluster", "data.csv", "-k", 2, *words)


def test_a_label_column_that_no_file_has_is_told_by_the_flag_that_named_it(folder, capsys):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    for name in ("one", "two"):
        (folder / f"{name}.csv").write_text(text_of(name, [[y] for y in Y]))
    said = refused(capsys, "score", "data.csv", "one.csv", "two.csv", "--labels", "nowhere")
    assert "--labels must be in one of one.csv, two.csv, got 'nowhere' in none of them" in said


def test_a_setting_that_python_cannot_read_is_a_text(folder, capsys):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    said = refused(capsys, "cluster", "data.csv", "-k", 2, "--set", "init={[]:1}")
    assert "init must be one of 'k-means++', 'random', got '{[]:1}'" in said


def test_a_numpy_file_has_no_columns_to_name(folder, capsys):
    np.save(folder / "x.npy", X)
    said = refused(capsys, "cluster", "x.npy", "-k", 2, "--columns", "a")
    assert "columns must be left out for x.npy, whose columns have no names" in said


def test_labels_are_put_in_the_order_of_the_data_by_their_ids(folder, capsys):
    (folder / "data.csv").write_text(text_of("id,a,b,c", numbered(X, NAMES)))
    (folder / "labels.csv").write_text(text_of("id,k3", zip(NAMES, Y, strict=True)))
    turned = [[name, y] for name, y in zip(NAMES, Y, strict=True)][::-1]
    (folder / "turned.csv").write_text(text_of("id,k3", [*turned, ["cell99", 0]]))
    right = run(capsys, "score", "data.csv", "labels.csv", "--json")
    shown = run(capsys, "score", "data.csv", "turned.csv", "--json")
    assert shown.out == right.out
    said = "turned.csv: rows put in the order of data.csv by their ids; 1 other left out."
    assert said in shown.err
    run(capsys, "score", "data.csv", "labels.csv", "--ids", "none", "--columns", "a,b,c",
        "--labels", "k3")  # fmt: skip


def test_ids_in_one_file_only_are_said_or_refused_where_they_are_out_of_order(folder, capsys):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    rows = [[name, y] for name, y in zip(NAMES, Y, strict=True)]
    (folder / "named.csv").write_text(text_of("id,k3", rows))
    shown = run(capsys, "score", "data.csv", "named.csv")
    assert "ids not compared: data.csv has none, so rows are taken in their order." in shown.err
    (folder / "turned.csv").write_text(text_of("id,k3", rows[::-1]))
    said = refused(capsys, "score", "data.csv", "turned.csv")
    assert "ids must be in both files where the rows of one are out of order" in said
    (folder / "words.csv").write_text(text_of("id,k3", [[f"{n}x", y] for n, y in rows[::-1]]))
    assert "ids not compared" in run(capsys, "score", "data.csv", "words.csv").err
    numbers = [[i, y] for i, y in enumerate(Y)]
    (folder / "pandas.csv").write_text(text_of(",k3", numbers))
    assert "not compared" not in run(capsys, "score", "data.csv", "pandas.csv").err


def test_ids_of_other_objects_are_refused(folder, capsys):
    (folder / "data.csv").write_text(text_of("id,a,b,c", numbered(X, NAMES)))
    others = [[f"sample{i}", y] for i, y in enumerate(Y)]
    (folder / "others.csv").write_text(text_of("id,k3", others))
    said = refused(capsys, "score", "data.csv", "others.csv")
    assert "ids must name the same objects in data.csv and others.csv, got no 'cell0'" in said


def test_a_column_of_amounts_is_no_column_of_ids(folder, capsys):
    rows = [[*row, f"${i},000"] for i, row in enumerate(X.tolist())]
    text = "a,b,c,income\n" + "".join(f'{a},{b},{c},"{money}"\n' for a, b, c, money in rows)
    (folder / "money.csv").write_text(text)
    said = refused(capsys, "cluster", "money.csv", "-k", 2)
    assert "must be a table of numbers, got '$0,000' in column 'income'" in said


def test_a_table_of_data_is_no_table_of_labels(folder, capsys):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    for command in ("rank", "resolutions"):
        said = refused(capsys, command, "data.csv")
        assert "data.csv, which looks like data" in said and "wellsep explore" in said


def test_a_measurement_among_labels_is_left_out_and_named(folder, capsys):
    rows = [[y, (y + i) % 2, x[0]] for i, (y, x) in enumerate(zip(Y, X, strict=True))]
    (folder / "table.csv").write_text(text_of("k3,other,spend", rows))
    shown = run(capsys, "resolutions", "table.csv")
    assert "table.csv: 'spend' left out as measurements." in shown.err


# -- truth -----------------------------------------------------------------------------------------


@pytest.fixture
def runs(folder):
    for k in (2, 3, 5):
        labels = ws.KMeans(k, random_state=0).fit_predict(X)
        ws.save_run(folder / "runs", X[:, :2] if k == 2 else X, labels, name=f"K={k}")
    return folder


def ranked(capsys, *words):
    return run(capsys, "rank", "runs", "--draws", 0, "--cache", "none", *words)


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (",0", numbered([[y] for y in Y], NUMBERS)),
        ("barcode,label", numbered([[y] for y in Y], NAMES)),
        ("label", numbered([[y] for y in Y], NAMES)),
    ],
)
def test_truth_is_read_like_any_table(runs, capsys, head, rows):
    (runs / "truth.csv").write_text(text_of(head, rows))
    shown = ranked(capsys, "--truth", "truth.csv")
    assert "truth.csv: 60 objects, 3 classes" in shown.err
    assert "Agreement with the true labels" in shown.out


@pytest.mark.parametrize(("gap", "words"), [("", True), ("NA", False), ("nan", True)])
def test_truth_may_be_known_for_some_objects_and_the_number_is_said(runs, capsys, gap, words):
    classes = [gap if i < 20 else ("abc"[y] if words else float(y)) for i, y in enumerate(Y)]
    (runs / "truth.csv").write_text(text_of("id,class", [[i, c] for i, c in enumerate(classes)]))
    shown = ranked(capsys, "--truth", "truth.csv", "--report", "page.html")
    assert "truth.csv: 60 objects, 3 classes, known for 40 of them, ids from" in shown.err
    assert "Agreement with the true labels (known for 40 of 60 objects)" in shown.out
    assert "wrote page.html" in shown.err


def test_objects_without_a_class_do_not_count_in_the_agreement(runs):
    found = ws.load_runs("runs")
    judgement = ws.judge(found, n_draws=0)
    some = np.where(np.arange(60) < 20, np.nan, Y.astype(float))
    known = ws.agreement(judgement.ranking, found, some)
    nmi = [ws.nmi_score(Y[20:], labels[20:]) for labels in found.partitions.values()]
    assert sorted(known.external["nmi"]) == pytest.approx(sorted(nmi))
    assert (known.n_known, known.n_objects) == (40, 60)


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_truth_of_ids_is_refused(runs, capsys, separator):
    (runs / "truth.csv").write_text("\n".join(["name", *NAMES]) + "\n")
    said = refused(capsys, "rank", "runs", "--truth", "truth.csv", "--draws", 0)
    assert "truth must have classes with several objects, got 60 classes of one object" in said
    rows = [f"{name}{separator}{y}" for name, y in zip(NAMES, Y, strict=True)]
    (runs / "truth.csv").write_text("\n".join([f"id{separator}label", *rows]) + "\n")
    assert "3 classes, ids from column 'id'" in ranked(capsys, "--truth", "truth.csv").err


def test_truth_and_data_are_put_in_the_order_of_the_runs_by_their_ids(folder, capsys):
    for k in (2, 3, 5):
        labels = ws.KMeans(k, random_state=0).fit_predict(X)
        ws.save_run("runs", X, labels, name=f"k{k}", ids=NAMES)
    (folder / "truth.csv").write_text(text_of("id,class", zip(NAMES, Y, strict=True)))
    turned = [[name, y] for name, y in zip(NAMES, Y, strict=True)][::-1]
    (folder / "turned.csv").write_text(text_of("id,class", turned))
    (folder / "data.csv").write_text(text_of("id,a,b,c", numbered(X, NAMES)))
    (folder / "back.csv").write_text(text_of("id,a,b,c", numbered(X, NAMES)[::-1]))
    right = ranked(capsys, "--truth", "truth.csv", "--input", "data.csv", "--json")
    shown = ranked(capsys, "--truth", "turned.csv", "--input", "back.csv", "--json")
    assert shown.out == right.out
    assert "turned.csv: rows put in the order of the runs by their ids." in shown.err
    assert "back.csv: rows put in the order of the runs by their ids." in shown.err


def test_ids_of_a_truth_alone_are_refused_where_they_are_out_of_order(runs, capsys):
    turned = [[name, y] for name, y in zip(NAMES, Y, strict=True)][::-1]
    (runs / "turned.csv").write_text(text_of("id,class", turned))
    said = refused(capsys, "rank", "runs", "--truth", "turned.csv", "--draws", 0)
    assert "got no ids in the runs and numbers that do not rise in turned.csv" in said


def test_one_of_several_columns_is_named_as_truth(runs, capsys):
    rows = numbered(X, NAMES, np.array(["u", "v", "w"])[Y])
    (runs / "cells.csv").write_text(text_of("barcode,species,a,b,c", rows))
    said = refused(capsys, "rank", "runs", "--truth", "cells.csv", "--draws", 0)
    assert "truth must be one column of classes, got 4" in said
    assert "name one with --columns" in said
    (runs / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    shown = ranked(capsys, "--truth", "cells.csv", "--columns", "species", "--input", "data.csv")
    assert "cells.csv: 60 objects, 3 classes, ids from column 'barcode'." in shown.err
    assert "data.csv: 60 objects, 3 features." in shown.err
    said = refused(capsys, "rank", "runs", "--truth", "cells.csv", "--input", "data.csv",
                   "--columns", "nowhere")  # fmt: skip
    assert "got 'nowhere' in none of them" in said


def test_report_reads_truth_and_data_as_the_other_commands_do(runs, capsys):
    (runs / "truth.csv").write_text(text_of(",label", numbered([[y] for y in Y], NUMBERS)))
    ranked(capsys, "--save", "result")
    shown = run(capsys, "report", "result", "--runs", "runs", "--truth", "truth.csv")
    assert "truth.csv: 60 objects, 3 classes, ids from the first column." in shown.err
    (runs / "data.csv").write_text(text_of(*DATA["index and barcode"][:2]))
    run(capsys, "choose-k", "data.csv", "--k", "2:3", "--save", "chosen")
    shown = run(capsys, "report", "chosen", "--runs", "data.csv", "--truth", "truth.csv")
    assert "data.csv: 60 objects, 3 features, ids from the first column, 'barcode'" in shown.err
    said = refused(capsys, "report", "chosen", "--runs", "data.csv", "-o", "page.pdf")
    assert "output must end in .html or .htm, got 'page.pdf'" in said


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["score", "data.csv", "labels.csv", "-o"], "output"),
        (["cluster", "data.csv", "-k", "2", "-o"], "output"),
        (["cluster", "data.csv", "-k", "2", "--centers"], "centers"),
        (["choose-k", "data.csv", "-o"], "output"),
        (["rank", "runs", "--report"], "report"),
        (["report", "runs", "-o"], "output"),
    ],
)
def test_no_folder_is_made_for_a_result(runs, capsys, words, option):
    (runs / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    said = refused(capsys, *words, "absent/result.csv")
    assert f"{option} must lie in a folder that exists, got absent/result.csv" in said
    assert not (runs / "absent").exists()


def test_what_was_written_is_said(runs, capsys):
    (runs / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    assert "wrote s.csv" in run(capsys, "score", "data.csv", "labels.csv", "-o", "s.csv").err
    shown = run(capsys, "cluster", "data.csv", "-k", 2, "-o", "l.csv", "--centers", "c.npy")
    assert "wrote l.csv\nwrote c.npy" in shown.err
    assert "wrote result" in ranked(capsys, "--save", "result").err


# -- mistakes that are answered with what to do ----------------------------------------------------


def test_columns_of_very_different_spread_are_told_of_unless_they_are_scaled(folder, capsys):
    rows = X.copy()
    rows[:, 1] *= 1000
    (folder / "data.csv").write_text(text_of("a,b,c", rows.tolist()))
    said = "Columns differ in spread by a factor of"
    for command in (("cluster", "data.csv", "-k", 2), ("choose-k", "data.csv", "--k", "2,3")):
        assert main(list(map(str, command))) in (0, 3)  # 3: unscaled there may be one cluster
        err = capsys.readouterr().err
        assert said in err
        assert "(--scale)" in err
        assert main([*map(str, command), "--scale"]) in (0, 3)
        assert said not in capsys.readouterr().err
    (folder / "plain.csv").write_text(text_of("", rows.tolist()))
    assert said not in run(capsys, "cluster", "plain.csv", "-k", 2).err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cluster", "data.csv", "-k", "auto"], "wellsep choose-k DATA finds one"),
        (["choose-k", "data.csv", "--k", "1"], "--k must hold a number from 2 on, got [1]"),
        (["cluster", "latin.csv", "-k", "2"], "iconv -f latin1 -t utf-8 OLD.csv > NEW.csv"),
        (["cluster", "head.csv", "-k", "2"], "must have rows below its header, got a, b alone"),
        (
            ["rank", "misnamed"],
            "SOURCE must hold at least one run, got 'misnamed', with 'a_emb.csv'",
        ),
        (["rank", "misnamed"], "call tables NAME.embedding.csv and NAME.labels.csv"),
        (["rank", "header"], "if a header 0 was read as a label, write the labels under a name"),
        (["score", "data.csv", "zero.csv"], "got 61; is the first one a header?"),
    ],
)
def test_a_mistake_is_answered_with_the_way_out(folder, capsys, words, sentence):
    (folder / "data.csv").write_text(text_of("a,b,c", X.tolist()))
    (folder / "latin.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    (folder / "head.csv").write_text("a,b\n")
    (folder / "zero.csv").write_text(text_of("0", [[y] for y in Y]))
    for place in ("misnamed", "header"):
        (folder / place).mkdir()
    (folder / "misnamed" / "a_emb.csv").write_text(text_of("a,b,c", X.tolist()))
    (folder / "header" / "a.embedding.csv").write_text(text_of("a,b,c", X.tolist()))
    (folder / "header" / "a.labels.csv").write_text(text_of("0", [[y] for y in Y]))
    assert main(words) in (1, 2)
    assert sentence in " ".join(capsys.readouterr().err.replace("│", " ").split())
