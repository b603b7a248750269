"""The report of `explore` is written from its files, and its summary is plain arithmetic."""

from __future__ import annotations

from experiments.explore import run


def test_the_summary_has_means_regrets_and_counts():
    ways = (run.OURS, *run.RIVALS, run.KNOWS, "best candidate", "median candidate")
    rows = [dict.fromkeys(ways, 0.5) | {"best candidate": 0.7, run.RIVALS[0]: 0.4} for _ in "ab"]
    rows[1][run.RIVALS[0]] = 0.6
    table = {row["way"]: row for row in run.summary(rows)}
    assert table[run.OURS]["mean ARI"] == "0.500"
    assert table[run.OURS]["regret"] == "0.200"
    assert table[run.RIVALS[0]]["won–tied–lost"] == "1–0–1"
    assert table[run.RIVALS[1]]["won–tied–lost"] == "0–2–0"


def test_the_report_has_the_tables_that_its_files_give():
    text = (run.HERE / "REPORT.md").read_text(encoding="utf-8")
    assert run.with_tables(text) == text
