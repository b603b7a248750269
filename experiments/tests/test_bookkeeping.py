"""Results of experiments can be appended, resumed, traced to a commit and shown in a report."""

from __future__ import annotations

import re

import pytest

from experiments import bookkeeping


def test_rows_come_back_as_they_were_appended(tmp_path):
    path = tmp_path / "folder" / "results.csv"
    bookkeeping.append(path, [{"set": "a, b", "t": 3, "value": 0.5, "commit": "12e4567"}])
    bookkeeping.append(path, [{"commit": "1234567", "value": None, "t": 4, "set": "c"}])
    assert bookkeeping.read(path) == [
        {"set": "a, b", "t": 3, "value": 0.5, "commit": "12e4567"},
        {"set": "c", "t": 4, "value": None, "commit": "1234567"},
    ]
    assert bookkeeping.done(path, ["set", "t"]) == {("a, b", 3), ("c", 4)}


def test_a_line_cut_off_by_an_end_is_neither_read_nor_kept(tmp_path):
    path = tmp_path / "results.csv"
    bookkeeping.append(path, [{"t": 3, "value": 0.5}])
    path.write_text(path.read_text() + "4,0.2", encoding="utf-8")
    assert bookkeeping.done(path, ["t"]) == {(3,)}
    bookkeeping.append(path, [{"t": 4, "value": 0.25}])
    assert path.read_text() == "t,value\n3,0.5\n4,0.25\n"


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "results.csv"
    bookkeeping.append(path, [{"t": 3}])
    with pytest.raises(ValueError, match="must have the columns"):
        bookkeeping.append(path, [{"k": 3}])


def test_nothing_is_done_where_there_is_no_file(tmp_path):
    assert bookkeeping.read(tmp_path / "none.csv") == []
    bookkeeping.append(tmp_path / "none.csv", [])
    assert not (tmp_path / "none.csv").exists()


def test_provenance_names_a_commit_and_the_version():
    found = bookkeeping.provenance()
    assert re.fullmatch(r"[0-9a-f]{10,}\+?|unknown", found["commit"])
    assert re.match(r"\d+\.\d+", found["version"])


def test_a_table_has_titles_and_leaves_missing_values_empty():
    table = bookkeeping.markdown(
        [{"a": 0.12345, "b": None}, {"a": 2}], {"a": "A", "b": "B"}, digits=2
    )
    assert table == "| A | B |\n|---|---|\n| 0.12 |  |\n| 2 |  |"


def test_a_block_is_replaced_between_its_markers_only():
    text = "x\n<!-- t -->\nold\n<!-- /t -->\ny\n"
    assert bookkeeping.replace_between(text, "t", "new") == text.replace("old", "new")
    with pytest.raises(ValueError, match="once each"):
        bookkeeping.replace_between(text, "u", "new")


def test_the_data_folder_is_the_one_named(tmp_path, monkeypatch):
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path))
    assert bookkeeping.data_folder() == tmp_path
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path / "absent"))
    assert bookkeeping.data_folder() is None
    monkeypatch.delenv("WELLSEP_DATA")
    assert bookkeeping.data_folder() is None
