"""One door for every source, and libraries that are missing named with their extra."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from wellsep import Run, Runs, save_run
from wellsep.adapters import attach_run, load_any, log_run, runs_from_anndata, runs_from_optuna
from wellsep.adapters.stores import require

LABELS = [0, 0, 1]
SPACE = [[0.0], [0.1], [5.0]]


def test_a_folder_and_an_archive_are_opened(tmp_path):
    save_run(tmp_path / "runs", SPACE, LABELS, name="a")
    np.savez(tmp_path / "b.npz", labels=LABELS)
    assert load_any(tmp_path / "runs").names == ("a",)
    assert load_any(str(tmp_path / "b.npz")).names == ("b",)


def test_runs_pass_through_and_patterns_choose_among_them():
    runs = Runs([Run("a1", SPACE, LABELS), Run("a2", SPACE, LABELS), Run("b", SPACE, LABELS)])
    assert load_any(runs) is runs
    chosen = load_any(runs, spaces="a?", labels=["a2", "b"])
    assert list(chosen.spaces) == ["a1", "a2"]
    assert list(chosen.partitions) == ["a2", "b"]
    with pytest.raises(ValueError, match="labels must match one of 'a1', 'a2', 'b', got 'c.'"):
        load_any(runs, labels="c*")


def test_a_name_that_looks_like_a_pattern_is_taken_literally():
    runs = Runs([Run("a[1]", labels=LABELS), Run("a1", labels=LABELS)])
    assert list(load_any(runs, labels="a[1]").partitions) == ["a[1]"]


def test_a_folder_whose_name_holds_a_hash_is_a_folder(tmp_path):
    save_run(tmp_path / "c#", None, LABELS, name="a")
    assert load_any(tmp_path / "c#").names == ("a",)


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        ("nowhere", FileNotFoundError, "source must be .* that exists, got 'nowhere'"),
        ("postgresql://host/db", ValueError, "whose database it is.*mlflow. or optuna. before"),
        ("sqlite:///nowhere.db", FileNotFoundError, "existing database, got no file nowhere.db"),
        (3, TypeError, "source must be a path, a URL, Runs, AnnData or an Optuna study, got int"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_a_remedy(source, error, sentence):
    with pytest.raises(error, match=sentence):
        load_any(source)


def test_a_database_of_somebody_else_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("create table t (x)")
    with pytest.raises(ValueError, match="must be a database of MLflow or Optuna"):
        load_any(tmp_path / "other.db")
    (tmp_path / "no.db").write_bytes(b"not a database at all, but long enough to be looked at" * 9)
    with pytest.raises(ValueError, match="source must be a SQLite database"):
        load_any(tmp_path / "no.db")


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("anndata", lambda folder: runs_from_anndata(folder / "a.h5ad", labels="x")),
        ("optuna", lambda folder: runs_from_optuna("sqlite:///a.db")),
        ("optuna", lambda folder: attach_run(FakeTrial(), None, LABELS, artifact_store="store")),
        ("mlflow", lambda folder: log_run(None, LABELS)),
    ],
)
def test_a_missing_library_is_named_with_how_to_install_it(tmp_path, monkeypatch, library, call):
    (tmp_path / "a.h5ad").touch()
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.artifacts", None)
    with pytest.raises(ImportError, match=rf"the package {library}, .*pip install {library}"):
        call(tmp_path)


def test_a_package_that_a_library_needs_is_named_when_it_is_missing(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import its_own_need.deep")
    monkeypatch.syspath_prepend(tmp_path)
    sentence = "needs the package its_own_need, which is not installed.*pip install halfway"
    with pytest.raises(ImportError, match=sentence):
        require("halfway")


class FakeTrial:
    number, params = 0, {}


def test_importing_the_adapters_imports_none_of_the_libraries():
    code = (
        "import sys, wellsep.adapters, wellsep.runs\n"
        "heavy = {'anndata', 'mlflow', 'optuna', 'pandas', 'polars', 'pyarrow', 'torch', 'h5py'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    source = sys.modules["wellsep"].__file__.rpartition("wellsep")[0]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": source},
    )
    assert done.stdout.strip() == "[]"
