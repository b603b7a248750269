"""What CONTRIBUTING says of adding an index, and where things live, is so."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def ball_hall():
    """The lines of the section "Add an index", as they stand there."""
    lines = section("Add an index").split("```python\n")[1].split("```")[0]
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    exec(lines, {"ws": ws, "X": X, "labels": labels})
    yield X, labels
    del ws.INDICES._entries["ball_hall"]


def test_one_formula_is_all_a_new_index_needs(ball_hall):
    X, labels = ball_hall
    groups = [X[labels == k] for k in range(4)]
    expected = np.mean([((g - g.mean(axis=0)) ** 2).sum(axis=1).mean() for g in groups])
    scores = ws.score_partitions(X, {"one": labels, "lump": [0] * 60}, ["ball_hall"])
    assert scores.values[0, 0] == pytest.approx(expected)
    assert "at least 2 clusters" in scores.why("lump", "ball_hall")


@pytest.mark.parametrize("package", ["torch", "dask.array"])
def test_a_new_index_works_on_other_arrays(ball_hall, package):
    X, labels = ball_hall
    library = pytest.importorskip(package, reason=f"needs {package}")
    given = library.asarray(X)
    found = ws.score_partitions(given, labels, ["ball_hall"]).values
    np.testing.assert_allclose(found, ws.score_partitions(X, labels, ["ball_hall"]).values)


def test_a_new_index_ranks_runs(ball_hall):
    X, labels = ball_hall
    runs = ws.Runs.from_parts({"s": X, "t": 2 * X}, {"a": labels, "b": np.arange(60) % 4})
    ranking = ws.judge(runs, "ball_hall", n_draws=6, dip=False).ranking
    assert ranking.columns()["partition"][0] == ranking.best


def homes() -> list[str]:
    """Every `file.py: name` of the table."""
    return re.findall(r"`([\w/]+)\.py(?:: ([\w., ]+))?`", section("Where does X live?"))


def test_the_table_of_homes_is_long_enough():
    assert len(homes()) >= 15


@pytest.mark.parametrize(("path", "names"), homes())
def test_a_home_holds_what_the_table_says(path, names):
    module = f"wellsep.{path.replace('/', '.')}"
    if not (ROOT / "src" / "wellsep" / f"{path}.py").is_file():
        pytest.fail(f"{path}.py does not exist")
    needed = {"deep": "torch", "device": "torch"} | {p: p for p in ("torch", "triton", "dask")}
    for folder, package in needed.items():
        if f"/{folder}/" in f"/{path}":
            pytest.importorskip(package, reason=f"needs {package}")
    home = importlib.import_module(module)
    for name in filter(None, names.split(", ")):
        holder = home
        for part in name.split("."):
            assert hasattr(holder, part), f"{module} has no {name}"
            holder = getattr(holder, part)


@pytest.mark.parametrize("package", ["numpy", "torch", "dask.array"])
def test_a_printed_statistic_is_written_once_for_every_array(package, monkeypatch):
    from wellsep._checks.arrays import is_torch
    from wellsep.compute.requests import Pass, run
    from wellsep.compute.statistics.centre_distances import View
    from wellsep.compute.statistics.row_statistics import describe_clusters
    from wellsep.indices.scoring import open_task

    library = pytest.importorskip(package, reason=f"needs {package}")
    monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
    names = {"Pass": Pass, "View": View, "describe_clusters": describe_clusters}
    exec(section("Add an array library or device").split("```python\n")[1].split("```")[0], names)
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    asked = [(ws.INDICES["davies_bouldin"], {})]
    task = open_task(library.asarray(X), labels, asked)
    (sums,) = run(task, names["provide_radius_sums"](task, ["sums"]))["sums"]
    groups = [X[labels == k] for k in range(4)]
    expected = [np.sqrt(((g - g.mean(axis=0)) ** 2).sum(axis=1)).sum() for g in groups]
    assert np.asarray(sums) == pytest.approx(np.array(expected))


def test_every_name_that_contributing_speaks_of_is_in_the_code():
    files = [path for room in ("src", "tests") for path in (ROOT / room).rglob("*.py")]
    code = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in files)))
    text = TEXT.replace(section("Add an index"), "")  # its example is in no file
    spoken = set(re.findall(r"(?<=`)_?[a-z]+_\w+(?=[`(])", text))
    assert spoken - code == set()
