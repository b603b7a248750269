"""Benchmarks are measured in turns, and what they report is complete."""

from __future__ import annotations

import json
import re

import pytest
from golden import ROOT

from benchmarks.harness import Ratio, machine, report, run_child, time_ratio, versions

BENCHMARKS = sorted((ROOT / "benchmarks").glob("bench_*.py"))


def test_the_two_programs_take_turns_after_one_warm_call_of_ours():
    calls = []
    measured = time_ratio(lambda: calls.append("b"), lambda: calls.append("o"), repeats=3)
    assert "".join(calls) == "o" + "bo" * 3
    assert measured.repeats == 3


def test_the_best_of_each_is_kept(monkeypatch):
    clock = iter([0.0, 8.0, 10.0, 12.0, 20.0, 24.0, 30.0, 31.0])
    monkeypatch.setattr("benchmarks.harness.time.perf_counter", lambda: next(clock))
    measured = time_ratio(lambda: None, lambda: None, repeats=2, warm=False)
    assert (measured.baseline_s, measured.ours_s, measured.ratio) == (4.0, 1.0, 4.0)


def test_a_slow_baseline_is_not_repeated_for_long(monkeypatch):
    clock = iter([0.0, 20.0, 20.0, 21.0, 21.0, 41.0, 41.0, 42.0])
    monkeypatch.setattr("benchmarks.harness.time.perf_counter", lambda: next(clock))
    measured = time_ratio(lambda: None, lambda: None, repeats=50, warm=False)
    assert (measured.baseline_s, measured.repeats) == (20.0, 2)


def test_no_repeat_is_refused():
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        time_ratio(lambda: None, lambda: None, repeats=0)


def test_a_report_prints_a_line_and_keeps_what_is_needed_to_trust_it(tmp_path, capsys):
    path = tmp_path / "deep" / "r.jsonl"
    for repeat in range(2):
        met = report(
            "how fast", Ratio(6.0, 2.0, 5), baseline="peer", target=2.5, results=path, n=repeat
        )
        assert met
    line = capsys.readouterr().out.splitlines()[0]
    assert line == "[ok] how fast: 3× (target ≥ 2.5×); peer 6 s, wellsep 2 s"
    records = [json.loads(text) for text in path.read_text().splitlines()]
    assert [record["n"] for record in records] == [0, 1]
    assert records[0]["value"] == 3.0
    assert records[0]["baseline_s"] == 6.0
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", records[0]["commit"])
    assert {"python", "numpy", "scikit-learn"} <= set(records[0]["versions"])
    assert records[0]["machine"]["cores"] >= 1


@pytest.mark.parametrize(("value", "smaller", "met"), [(2.0, False, False), (2.0, True, True)])
def test_a_target_is_judged_in_its_direction(tmp_path, capsys, value, smaller, met):
    options = {"target": 3.0, "unit": " s", "smaller_is_better": smaller, "baseline": "-"}
    assert report("q", value, results=tmp_path / "r.jsonl", **options) is met
    assert ("MISSED" in capsys.readouterr().out) is not met


def test_a_child_reports_its_time_memory_and_output():
    child = run_child("block = bytearray(64 << 20); print('done')")
    assert child.output == "done\n"
    assert child.seconds > 0
    assert 64 < child.peak_mb < 512


def test_a_failing_child_is_an_error():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_child("1 / 0")


def test_machine_and_versions_are_named():
    assert machine()["cpu"]
    assert versions()["numpy"]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.name)
def test_a_benchmark_opens_with_its_question(path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith('"""')
    assert "?" in first
