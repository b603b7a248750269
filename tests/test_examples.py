"""Each story of examples/ prints the truth, our pick, and what simple rules pick."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
STORIES = ("single_cells", "topics_with_noise", "forty_deep_runs")


def told(name, monkeypatch, capsys, *, small):
    """What a story prints."""
    if name == "forty_deep_runs" and importlib.util.find_spec("torch") is None:
        pytest.skip("forty_deep_runs trains networks, and PyTorch is not installed")
    monkeypatch.setenv("WELLSEP_SMALL_EXAMPLES", "1" if small else "")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def picks(text):
    """Rule → the agreement of its pick with the truth, from the table that a story prints."""
    lines = text.partition("ARI with truth\n")[2].partition("Ahead of our pick")[0].splitlines()
    rows = [re.fullmatch(r"(.+?)\s{2,}\S.*\s(-?\d\.\d{3})", line) for line in lines]
    return {row[1]: float(row[2]) for row in rows if row}


def check(text):
    assert re.search(r"The truth: \d+ ", text)
    found = picks(text)
    ours, best = found.pop("our pick"), found.pop("best run, known only with the truth")
    assert len(found) >= 3
    assert any("silhouette" in rule for rule in found)
    assert any("Calinski-Harabasz" in rule for rule in found)
    assert any("most frequent number of clusters" in rule for rule in found)
    assert max(ours, *found.values()) <= best
    said = text.partition("Ahead of our pick: ")[2].partition(".\n")[0]
    ahead = [] if said == "no rule" else said.split("; ")
    # Values are printed to three digits, so that a rule ahead by less looks level.
    assert {rule for rule, value in found.items() if value > ours} <= set(ahead)
    assert all(found[rule] >= ours for rule in ahead)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_names_truth_pick_and_what_simple_rules_pick(name, monkeypatch, capsys):
    check(told(name, monkeypatch, capsys, small=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_story_runs_in_full(name, monkeypatch, capsys):
    check(told(name, monkeypatch, capsys, small=False))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_opens_with_a_title_as_the_gallery_wants_it(path):
    title, line = path.read_text(encoding="utf-8").split("\n")[1:3]
    assert title and set(line) == {"="} and len(line) >= len(title)
