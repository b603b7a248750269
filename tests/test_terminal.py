"""Long tables and long names in the terminal: the first rows with a count, both ends of a name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Fifty runs whose long names differ at the end."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    space = 8 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    ws.save_run(folder, space, name="space")
    for i in range(50):
        labels = np.where(rng.random(60) < i / 60, rng.integers(0, 3, 60), truth)
        name = f"a very long name of a sweep with many words in it, {'x' * 90} seed={i:02d}"
        ws.save_run(folder, None, labels, name=name, space="space")
    return folder


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r" +\d+ +a very long .*seed=", line)]


def test_more_than_forty_rows_are_folded_with_a_count_until_all_are_asked_for(runs, capsys):
    arguments = ["rank", str(runs), "--draws", "0", "--no-dip", "--no-cache"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert len(rows_of(shown)) == 40
    assert "40 of 50 rows. --all prints every row." in " ".join(shown.split())
    assert shown.index("Ranking by") > shown.index("Next: ")  # the verdict comes first
    assert main([*arguments, "--all"]) == 0
    assert len(rows_of(capsys.readouterr().out)) == 50


def test_a_long_name_keeps_both_ends(runs, capsys):
    assert main(["rank", str(runs), "--draws", "0", "--no-dip", "--no-cache"]) == 0
    first = rows_of(capsys.readouterr().out)[0]
    assert "a very long name" in first
    assert "…" in first
    assert "seed=" in first
