"""The published figures are those of benchmarks/latest.jsonl, set in tables by a program."""

from __future__ import annotations

import json

import pytest
from golden import ROOT

from benchmarks import dask_tables, tabulate

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


def test_the_guide_to_dask_shows_the_latest_results_and_what_follows_from_them():
    records, guide = tabulate.read_latest(), tabulate.GUIDE.read_text(encoding="utf-8")
    assert "bench_dask_scaling" in {record["file"] for record in records}
    assert dask_tables.with_tables(guide, records) == guide


def dask_records():
    """Two workers, an iteration of 2 µs a row and indices of 10, as bench_dask_scaling writes."""
    spent = {"iteration": 2e-6, "indices": 10e-6}
    costs = {
        f"{what}, {workers} worker(s), × {times}": {
            "busiest": per_row * 50_000 * times / workers,
            "processor": per_row * 50_000 * times,
            "traffic": 14_000.0 if what == "iteration" else 210_000.0,
        }
        for what, per_row in spent.items()
        for workers in (1, 2)
        for times in (1, 4, 16)
    }
    once = {
        "estimate": {"processor": 0.7, "distances": 10**8},
        "exact": {"processor": 8.0, "distances": 10**9},
        "seconds_a_task": 0.0007,
    }
    facts = {
        "file": "bench_dask_scaling",
        "unit": "",
        "value": 1.0,
        "rows": [50_000, 200_000, 800_000],
        "features": 128,
        "clusters": 16,
        "seed": [1, 4, 16],
        "costs": costs,
        "once": once,
    }
    return [facts | {"what": what, "workers": w} for what in spent for w in (1, 2)]


def test_the_cluster_on_paper_is_the_measurement_multiplied():
    page = dask_tables.on_paper(dask_records()[0])
    for part in (
        "512 GB of float32",
        "chunks of 256 MB (500,000 rows, 2,000 chunks, 20 a worker)",
        "| a k-means iteration | 2.0 µs a row | 20 s | 32 MB |",  # 14 kB × 2,000 × 8/7
        # (1 + 17 + 33 + 49 + 65)/16 = 10.3 iterations; then 38.3 of 20 s, and 32 of 32 MB
        "| k-means‖ start | as 10 iterations, in 5 passes | 3.4 min | 128 MB |",
        "| fit: start, 25 iterations and 3 passes |  | 13 min | 1 GB |",
        "| six centroid indices | 10 µs a row | 100 s | 480 MB, and at most 8 GB of labels |",
        # 16 · 2,000 · 8 bytes a partial result
        "| 7.0 ns a distance | 140 s | 585 MB, and at most 4 GB of labels |",
        "| 8.0 ns a distance, 5 · 10¹⁷ of them | 463 days: take the estimate |",
        "Each worker reads 5.1 GB in a pass. That takes 10 s from a local disk at 500 MB/s, and "
        "51 s from",
        "took 0.7 ms a task here, on the same two cores as the workers. That is 1.60 s a pass",
        "With chunks of 16 MB it is 26 s.",
    ):
        assert part in page


def test_the_measured_times_stand_under_their_sizes():
    table = dask_tables.measured(dask_records())
    assert "|  | 50,000 rows | 200,000 | 800,000 | exponent |" in table
    assert "| a k-means iteration, 1 worker | 0.10 s | 0.40 s | 1.60 s | 1.00 |" in table
    assert "| 2 workers | 0.05 s | 0.20 s | 0.80 s | 1.00 |" in table
    assert "14 kB a chunk for an iteration, 210 kB for the indices" in table


def test_a_guide_without_its_marks_is_refused():
    with pytest.raises(ValueError, match="dask.md must hold one part between"):
        dask_tables.with_tables("# Dask", dask_records())
    assert dask_tables.with_tables("# Dask", [RECORD]) == "# Dask"


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
