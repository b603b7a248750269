"""Each story of examples/ prints the truth, our pick, and what simple rules pick."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
STORIES = {  # story: what it cannot do without
    "customers": None,
    "deep_sweep": "optuna",
    "forty_deep_runs": "torch",
    "how_many_clusters": None,
    "mixed_table": "pandas",
    "sentence_embeddings": None,
    "settled_digits": None,
    "shapes_and_indices": None,
    "single_cells": None,
    "time_series": None,
    "topics_with_noise": None,
}
QUICK = ("customers", "forty_deep_runs")  # the others: make test-slow
JUDGED_RUNS = ("single_cells", "topics_with_noise", "forty_deep_runs")


def told(name, monkeypatch, capsys, *, small):
    """What a story prints."""
    needed = STORIES[name]
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{name} needs {needed}, which is not installed")
    monkeypatch.setenv("WELLSEP_SMALL_EXAMPLES", "1" if small else "")
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def picks(text):
    """Rule → the agreement of its pick with the truth, from the table that a story prints."""
    lines = text.partition("ARI with truth\n")[2].partition(" did better")[0].splitlines()
    rows = [re.fullmatch(r"(.+?)\s{2,}\S.*\s(-?\d\.\d{3})", line) for line in lines]
    return {row[1]: float(row[2]) for row in rows if row}


def check(name, text):
    assert re.search(r"The truth: \d+ ", text)
    found = picks(text)
    ours = found.pop("our pick")
    best = found.pop(next(rule for rule in found if rule.endswith("known only with the truth")))
    assert len(found) >= 3
    assert any("silhouette" in rule for rule in found)
    if name in JUDGED_RUNS:
        assert any("Calinski-Harabasz" in rule for rule in found)
        assert any("most frequent number of clusters" in rule for rule in found)
    assert max(ours, *found.values()) <= best
    said = re.search(r"^(.+) did better than our pick\.$", text, re.MULTILINE)[1]
    ahead = [] if said == "No simple rule" else said.split("; ")
    # Values are printed to three digits, so that a rule ahead by less looks level.
    assert {rule for rule, value in found.items() if value > ours} <= set(ahead)
    assert all(found[rule] >= ours for rule in ahead)


def check_picture():
    """A story drew something, where that is possible."""
    if importlib.util.find_spec("matplotlib"):
        plt = sys.modules["matplotlib.pyplot"]
        assert plt.get_fignums()
        assert all(plt.figure(number).axes for number in plt.get_fignums())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in STORIES],
)
def test_a_story_names_truth_pick_and_what_simple_rules_pick(name, monkeypatch, capsys):
    if "matplotlib.pyplot" in sys.modules:  # figures that other tests left open
        sys.modules["matplotlib.pyplot"].close("all")
    check(name, told(name, monkeypatch, capsys, small=True))
    check_picture()


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_story_runs_in_full(name, monkeypatch, capsys):
    check(name, told(name, monkeypatch, capsys, small=False))
    check_picture()


def test_every_example_but_the_simulation_is_a_story():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*STORIES, "simulation_study"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_opens_with_a_title_as_the_gallery_wants_it(path):
    title, line = path.read_text(encoding="utf-8").split("\n")[1:3]
    assert title and set(line) == {"="} and len(line) >= len(title)
