"""The published figures are those of benchmarks/latest.jsonl, set in tables by a program."""

from __future__ import annotations

import json

import pytest
from golden import ROOT

from benchmarks import tabulate

RECORD = {
    "file": "bench_import",
    "question": "how long | how far",
    "value": 12.345,
    "unit": " s",
    "target": 20,
    "met": True,
    "smaller_is_better": True,
    "baseline": "none",
    "run": "a",
    "time": "2026-01-02T03:04:05+00:00",
    "commit": "0123456789ab",
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "machine": {"cores": 2, "cpu": "a processor", "load": 0.5},
}
FACTS = {"question", "value", "met", "baseline", "commit", "versions", "machine"}


def test_the_page_and_the_readme_show_the_latest_results():
    records = tabulate.read_latest()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(records) > 0
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == tabulate.page(records)
    assert tabulate.with_summary(readme, records) == readme


def test_every_published_result_says_what_it_was_measured_with():
    lacking = [r["question"] for r in tabulate.read_latest() if set(r) < FACTS]
    assert lacking == []


def test_every_benchmark_has_its_place_on_the_page():
    files = {path.stem for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert files <= set(tabulate.ORDER)


def test_a_row_names_result_and_target_and_is_one_row():
    row = tabulate.table([RECORD]).splitlines()[-1]
    assert row == "| how long \\| how far |  | 12.3 s | ≤ 20 s |"


def test_a_missed_target_stays_and_is_marked():
    missed = RECORD | {"value": 25.0, "met": False}
    assert "25 s (missed)" in tabulate.page([missed])


def test_a_busy_machine_is_called_busy():
    busy = RECORD | {"machine": RECORD["machine"] | {"load": 9.0}}
    assert "load 9;" in tabulate.page([busy])
    assert "load" not in tabulate.setting(RECORD)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.14159, "3.14"), (183.6, "184"), (12345.6, "12,346"), (4.2e-7, "4.2·10^-7")],
)
def test_numbers_have_three_digits(value, text):
    assert tabulate.number(value) == text


def test_the_last_run_of_a_file_counts(tmp_path):
    lines = [{"run": r, "question": q} for r, q in (("a", "x"), ("a", "y"), ("b", "x"))]
    old = {"question": "from before runs had names"}
    path = tmp_path / "bench_dip.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [old, *lines]))
    (tmp_path / "bench_lof.jsonl").write_text(json.dumps(old) + "\n")
    assert tabulate.last_runs(tmp_path) == [{"file": "bench_dip", "run": "b", "question": "x"}]


def test_files_that_were_not_measured_again_keep_their_results():
    old = [{"file": "bench_dip", "n": 1}, {"file": "bench_import", "n": 2}]
    new = [{"file": "bench_import", "n": 3}]
    assert tabulate.merge(old, new) == [{"file": "bench_dip", "n": 1}, new[0]]


def test_a_readme_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="README.md must hold one table"):
        tabulate.with_summary("# wellsep", [RECORD])
