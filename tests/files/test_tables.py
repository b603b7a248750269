"""Files come in as arrays with their names, go out whole, and a bad file is named with a place."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

from wellsep import load_runs
from wellsep._files.replace import write_text
from wellsep.tables.reading import read_labels, read_matrix, read_table
from wellsep.tables.writing import write_array, write_table

DATA = np.array([[1.5, 2.0], [3.0, -4.25], [0.1, 1e-7]])


def test_a_matrix_survives_every_format(tmp_path):
    write_array(tmp_path / "x.npy", DATA)
    np.savez(tmp_path / "x.npz", X=DATA, y=np.arange(3))
    columns = {"a": DATA[:, 0], "b": DATA[:, 1]}
    for name in ("x.csv", "x.tsv", "x.parquet"):
        write_table(tmp_path / name, columns)
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_array_equal(read_matrix(path), DATA)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n3,4\n", "1,2\n3,4\n", '"a","b"\n1,2\n3,4', "1,2\r\n3,4\r\n"]
)
def test_a_header_is_seen_and_left_out(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.csv"), [[1, 2], [3, 4]])


def test_packed_and_blank_separated_text_is_read(tmp_path):
    with gzip.open(tmp_path / "x.txt.gz", "wt") as stream:
        stream.write("1  2\n3 4\n\n")
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.txt.gz"), [[1, 2], [3, 4]])


def test_images_become_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2, 3), np.uint8))
    assert read_matrix(tmp_path / "x.npy").shape == (4, 6)


def test_each_column_is_a_partition_named_by_its_header(tmp_path):
    (tmp_path / "labels.csv").write_text("km2,words\n0,cat\n1,dog\n-1,cat\n")
    labels = read_labels(tmp_path / "labels.csv")
    np.testing.assert_array_equal(labels["km2"], [0, 1, -1])
    np.testing.assert_array_equal(labels["words"], ["cat", "dog", "cat"])


def test_a_single_column_of_words_has_no_header(tmp_path):
    (tmp_path / "labels.csv").write_text("cat\ndog\ncat\n")
    np.testing.assert_array_equal(
        read_labels(tmp_path / "labels.csv")["labels"], ["cat", "dog", "cat"]
    )


def test_labels_survive_every_format(tmp_path):
    columns = {"k2": np.array([0, 1, 1]), "w": np.array(["a", "b", "a"])}
    for name in ("l.csv", "l.parquet"):
        write_table(tmp_path / name, columns)
    np.savez(tmp_path / "l.npz", **columns)
    for path in sorted(tmp_path.iterdir()):
        labels = read_labels(path)
        assert list(labels) == ["k2", "w"]
        np.testing.assert_array_equal(labels["k2"], [0, 1, 1])
        np.testing.assert_array_equal(labels["w"], ["a", "b", "a"])


def test_rows_of_an_npy_file_are_partitions(tmp_path):
    np.save(tmp_path / "runs.npy", np.array([[0, 0, 1], [0, 1, 2]]))
    assert list(read_labels(tmp_path / "runs.npy")) == ["runs[0]", "runs[1]"]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "x.csv",
            "a,b\n1,two\n3,4\n",
            r"x\.csv must be a table of numbers, got 'two' in column 'b'",
        ),
        ("x.csv", "a,b\n1,\n3,4\n", r"no empty cells.*'b', row 1"),
        ("x.csv", "1,2\n3\n", r"2 cells in every row, got 1 in row 2"),
        ("x.csv", "a,b\n0\n0,1\n1,1\n", r"2 cells in every row, got 1 in row 2"),
        ("x.csv", "", r"must not be empty"),
        ("x.csv", "a,a\n1,2\n", r"each column once, got 'a' twice"),
        ("x.npy", "not numpy", r"x\.npy must be a NumPy file"),
        ("x.xlsx", "", r"path must end in one of"),
    ],
)
def test_a_bad_matrix_file_is_named_with_its_place(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        read_matrix(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_labels(tmp_path / "absent.csv")


def test_python_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="without Python objects"):
        read_matrix(tmp_path / "x.npy")


def test_an_archive_without_a_matrix_says_what_it_holds(tmp_path):
    np.savez(tmp_path / "x.npz", Z1=DATA, Z2=DATA)
    with pytest.raises(ValueError, match="Z1, Z2"):
        read_matrix(tmp_path / "x.npz")


def test_a_vector_is_not_a_matrix(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(ValueError, match="one object per row"):
        read_matrix(tmp_path / "x.npy")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, {"a": [1]})
    with pytest.raises(ValueError, match="shorter|longer"):
        write_table(path, {"a": [1, 2], "b": [1]})
    assert path.read_text() == "a\n1\n"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_a_new_file_is_readable_like_any_other(tmp_path):
    (tmp_path / "plain.txt").write_text("x")
    write_text(tmp_path / "deep" / "ours.txt", "x")
    assert (tmp_path / "deep" / "ours.txt").stat().st_mode == (
        tmp_path / "plain.txt"
    ).stat().st_mode


@pytest.mark.parametrize(("write", "name"), [(write_table, "x.doc"), (write_array, "x.csv")])
def test_an_unknown_ending_is_refused(tmp_path, write, name):
    with pytest.raises(ValueError, match="path must end in"):
        write(tmp_path / name, {"a": [1]})


def both_doors(folder, text, ending=".csv"):
    """The data of one file through load_runs and through the commands' reader."""
    path = folder / f"one.embedding{ending}"
    path.write_text(text)
    run = load_runs(folder)["one"]
    return run, read_matrix(path), read_table(path)


@pytest.mark.parametrize(
    ("text", "rows", "header", "ids"),
    [
        ("0,1\n0.5,1\n2,3\n4,5\n", [[0.5, 1], [2, 3], [4, 5]], True, None),
        ("1,2\n0.5,1\n2,3\n", [[1, 2], [0.5, 1], [2, 3]], False, None),
        ("0,2\n0.5,1\n", [[0, 2], [0.5, 1]], False, None),
        ("0\n1\n2\n", [[0], [1], [2]], False, None),
        ("x,y\n1,2\n3,4\n", [[1, 2], [3, 4]], True, None),
        ("x,2019\n1,2\n3,4\n", [[1, 2], [3, 4]], True, None),
        # pandas with its index; R's write.csv; R's write.table; polars has no index
        (",0,1\n0,1,2\n1,3,4\n", [[1, 2], [3, 4]], True, [0, 1]),
        ('"","x","y"\n"a",1,2\n"b",3,4\n', [[1, 2], [3, 4]], True, ["a", "b"]),
        ('"x","y"\n"a",1,2\n"b",3,4\n', [[1, 2], [3, 4]], True, ["a", "b"]),
        ("__index_level_0__,x,y\n7,1,2\n9,3,4\n", [[1, 2], [3, 4]], True, [7, 9]),
        ("x,id,y\n1,7,2\n3,7,4\n", [[1, 2], [3, 4]], True, [7, 7]),
        ("x,Barcode\n1,AAC\n3,AAG\n", [[1], [3]], True, ["AAC", "AAG"]),
        ("sample_id,x\n11,1\n12,3\n", [[1], [3]], True, [11, 12]),
        ("sampleId,x\n11,1\n12,3\n", [[1], [3]], True, [11, 12]),
        ("what,x\na,1\nb,3\n", [[1], [3]], True, ["a", "b"]),
        ("a,1,2\nb,3,4\n", [[1, 2], [3, 4]], False, ["a", "b"]),
        # not ids: a name for ids over values that come twice, or one that only looks like it
        ("sample_id,x\n11,1\n11,3\n", [[11, 1], [11, 3]], True, None),
        ("grid,x\n11,1\n12,3\n", [[11, 1], [12, 3]], True, None),
        ("x;y\n1;2\n3;4\n", [[1, 2], [3, 4]], True, None),
        ("x\ty\n1\t2\n3\t4\n", [[1, 2], [3, 4]], True, None),
        ("\ufeffx,y\r\n1,2\r\n3,4\r\n", [[1, 2], [3, 4]], True, None),
    ],
)
def test_both_doors_read_a_table_alike(tmp_path, text, rows, header, ids):
    run, matrix, table = both_doors(tmp_path, text)
    np.testing.assert_array_equal(matrix, rows)
    np.testing.assert_array_equal(run.embedding, rows)
    assert run.embedding.dtype == matrix.dtype == np.float64
    assert table.header is header
    for found in (run.ids, table.ids):
        assert ids is None if found is None else found.tolist() == ids


@pytest.mark.parametrize(
    ("text", "header"), [("x;y\n1,5;2\n-3,25;4e-1\n", True), ("1,5;2\n-3,25;0,4\n", False)]
)
def test_decimal_commas_between_semicolons_are_numbers(tmp_path, text, header):
    _, matrix, table = both_doors(tmp_path, "\ufeff" + text)
    np.testing.assert_array_equal(matrix, [[1.5, 2], [-3.25, 0.4]])
    assert (table.header, table.ids) == (header, None)


def test_r_writes_blanks_and_a_header_that_is_one_cell_short(tmp_path):
    (tmp_path / "x.txt").write_text('"a" "b"\n"1" 0.5 1.5\n"2" 2.5 3.5\n')
    table = read_table(tmp_path / "x.txt")
    assert (table.names, table.ids.tolist()) == (("a", "b"), [1, 2])
    np.testing.assert_array_equal(table.matrix("x"), [[0.5, 1.5], [2.5, 3.5]])


def test_all_columns_of_ids_are_left_out_and_the_first_gives_them(tmp_path):
    (tmp_path / "x.csv").write_text(",sample_id,x,name\n0,7,1,ann\n1,8,1,bob\n")
    table = read_table(tmp_path / "x.csv")
    assert (table.names, table.left_out) == (("x",), ("sample_id", "name"))
    assert (table.ids.tolist(), table.id_place) == ([0, 1], 0)


def test_the_usual_separator_of_a_tsv_file_is_a_tab_and_others_are_seen(tmp_path):
    assert both_doors(tmp_path, "x\ty\n1\t2\n", ".tsv")[2].names == ("x", "y")
    (tmp_path / "two.tsv").write_text("x,y\n1,2\n")
    assert read_table(tmp_path / "two.tsv").names == ("x", "y")


def test_an_id_column_is_no_partition(tmp_path):
    text = "id,k2\n101,0\n102,0\n103,1\n104,1\n"
    (tmp_path / "two.labels.csv").write_text(text)
    assert list(read_labels(tmp_path / "two.labels.csv")) == ["k2"]
    run = load_runs(tmp_path)["two"]
    assert (run.labels.tolist(), run.ids.tolist()) == ([0, 0, 1, 1], [101, 102, 103, 104])


def test_the_index_that_pandas_writes_into_parquet_holds_ids(tmp_path):
    pd = pytest.importorskip("pandas", reason="writes the file")
    frame = pd.DataFrame({"x": [1.0, 3.0], "y": [2.0, 4.0]}, index=["a", "b"])
    frame.to_parquet(tmp_path / "one.embedding.parquet")
    np.testing.assert_array_equal(read_matrix(tmp_path / "one.embedding.parquet"), [[1, 2], [3, 4]])
    run = load_runs(tmp_path)["one"]
    np.testing.assert_array_equal(run.embedding, [[1, 2], [3, 4]])
    assert run.ids.tolist() == ["a", "b"]


def test_words_with_an_underscore_are_not_numbers(tmp_path):
    (tmp_path / "l.csv").write_text("a\n1_2\n1_2\n12\n")
    assert read_labels(tmp_path / "l.csv")["a"].tolist() == ["1_2", "1_2", "12"]


def test_a_missing_value_in_the_first_row_is_no_header(tmp_path):
    (tmp_path / "x.csv").write_text("NA,1.5\n2,3\n")
    with pytest.raises(ValueError, match="got 'NA' in column"):
        read_matrix(tmp_path / "x.csv")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_reading_is_linear_in_the_number_of_columns(tmp_path, ending):
    def seconds(width):
        path = tmp_path / f"{width}{ending}"
        write_table(path, {f"gene {j}": [0.5, 1.5] for j in range(width)})

        def attempt():
            start = time.process_time()
            assert read_matrix(path).shape == (2, width)
            return time.process_time() - start

        return attempt

    seconds(100)()
    narrow, wide = seconds(2_000), seconds(16_000)
    # Quadratic would be 64 times as long. Others share the cores, hence several attempts.
    limit = 25 * max(min(narrow() for _ in range(3)), 0.005)
    assert any(wide() < limit for _ in range(3))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "txt"])
@pytest.mark.parametrize("header", [True, False])
def test_numbers_are_read_as_python_reads_them(tmp_path, ending, header):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * 10.0 ** rng.integers(-300, 300, (60, 4))
    X[0] = [0.1, -2.5, 1e-5 / 3, 0.5]
    X[40] = [np.nan, np.inf, -np.inf, 7]
    between = {"csv": ",", "tsv": "\t", "csv.gz": ",", "txt": " "}[ending]
    rows = [between.join(map(repr, row)) for row in X.tolist()]
    text = "\n".join([between.join("abcd"), *rows] if header else rows) + "\n"
    path = tmp_path / f"x.{ending}"
    opener = gzip.open if ending.endswith("gz") else open
    with opener(path, "wt") as stream:
        stream.write(text)
    np.testing.assert_array_equal(read_matrix(path), X, strict=True)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("word", "got 'word' in column 'a'"),
        ("1_2", "got '1_2' in column 'a'"),
        ("", "no empty cells, got one in column 'a', row 50"),
        ("1.5,2", "must have 2 cells in every row, got 3 in row 51"),
    ],
)
def test_a_bad_cell_far_below_is_named(tmp_path, cell, sentence):
    rows = ["a,b", *["0.5,1.5"] * 49, f"{cell},2.5", *["0.5,1.5"] * 9]
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=sentence):
        read_matrix(tmp_path / "x.csv")
