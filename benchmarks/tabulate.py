"""Makes the page of benchmarks, the tables in README and guide, and latest.jsonl of the results.

    make bench-page                          # after make bench and make bench-gpu
    python -m benchmarks.tabulate --again    # the same tables from latest.jsonl alone

Of each file's results the lines of its last run count. ``latest.jsonl`` keeps them in the
repository, with commit, versions and machine, so that the tables can be made again anywhere.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.dask_tables import with_tables
from benchmarks.harness import RESULTS, ROOT

LATEST = ROOT / "benchmarks" / "latest.jsonl"
PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guides" / "dask.md"
BEGIN, END = "<!-- benchmarks: made by benchmarks/tabulate.py -->", "<!-- end of benchmarks -->"
ORDER = (
    "bench_one_silhouette",
    "bench_many_partitions",
    "bench_ace_grid",
    "bench_judge",
    "bench_consensus",
    "bench_consensus_partition",
    "bench_stability",
    "bench_describe",
    "bench_disco",
    "bench_gower",
    "bench_all_indices",
    "bench_recorded_r",
    "bench_kmeans",
    "bench_cfmeans",
    "bench_choose_k",
    "bench_explore",
    "bench_reach",
    "bench_kmeans_search",
    "bench_assignment",
    "bench_lloyd_bound",
    "bench_streams",
    "bench_robust",
    "bench_lof",
    "bench_tensors",
    "bench_lcd",
    "bench_dip",
    "bench_small_calls",
    "bench_cluster_support",
    "bench_growth",
    "bench_trees",
    "bench_memory",
    "bench_limits",
    "bench_import",
    "bench_dask_scaling",
    "bench_silhouette_gpu",
    "bench_nearest_gpu",
    "bench_search_gpu",
    "bench_grid_gpu",
    "bench_judge_gpu",
    "bench_pairs_gpu",
    "bench_deep_gpu",
)
# The three questions that the README shows, as (file, beginning of the question).
README_LINES = (
    ("bench_one_silhouette", "one Euclidean silhouette, 20,000×16"),
    ("bench_many_partitions", "20 partitions"),
    ("bench_silhouette_gpu", "silhouette, 1,000,000 × 64"),
)
INTRO = """---
nosearch: true
---
# Benchmarks

These are the results of `make bench` and `make bench-gpu`. The first takes about twelve minutes
on two cores, more where slow peers are installed. The second needs one CUDA device. Every file in
`benchmarks/` asks one question and names its baseline. It checks that both sides compute the
same, and then times them in turns in one run. `make bench-page` makes this page and the table in
the README from the results. `benchmarks/latest.jsonl` holds every figure with commit, versions
and machine.

A ratio like 5× says how many times faster we are than the baseline. Where a smaller number is
better, the target says "≤". A target that was missed stays here, marked. A load above the number
of cores means that other programs were at work too. [Performance](guides/performance.md) says
where the time goes.
"""

Record = dict[str, Any]


def last_runs(folder: Path = RESULTS) -> list[Record]:
    """The lines of the last run of each file; files without a result are left out."""
    found = []
    for path in sorted(folder.glob("bench_*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        runs = [line["run"] for line in lines if "run" in line]
        found += [{"file": path.stem, **line} for line in lines if line.get("run") in runs[-1:]]
    return found


def merge(old: list[Record], new: list[Record]) -> list[Record]:
    """Files measured anew replace what was known of them; others stay."""
    measured = {record["file"] for record in new}
    kept = [record for record in old if record["file"] not in measured]
    return sorted([*kept, *new], key=lambda record: _place(record["file"]))


def _place(file: str) -> tuple[int, str]:
    return (ORDER.index(file) if file in ORDER else len(ORDER), file)


def number(value: float) -> str:
    """Three digits, thousands set apart, powers of ten for the very small."""
    if value != 0 and abs(value) < 1e-3:
        mantissa, power = f"{value:.1e}".split("e")
        return f"{mantissa}·10^{int(power)}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def result(record: Record) -> str:
    mark = "" if record["met"] else " (missed)"
    return f"{number(record['value'])}{record['unit']}{mark}"


def target(record: Record) -> str:
    if record["target"] is None:
        return ""
    sign = "≤" if record["smaller_is_better"] else "≥"
    return f"{sign} {number(record['target'])}{record['unit']}"


def against(record: Record) -> str:
    text = "" if record["baseline"] == "none" else record["baseline"]
    if "baseline_s" in record and "ours_s" in record:
        text += f" ({number(record['baseline_s'])} s, ours {number(record['ours_s'])} s)"
    return text


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(records: list[Record]) -> str:
    rows = ["| what | against | result | target |", "|---|---|---|---|"]
    rows += [
        "| " + " | ".join(map(cell, (r["question"], against(r), result(r), target(r)))) + " |"
        for r in records
    ]
    return "\n".join(rows)


def question_of(file: str) -> str:
    """The first line of the benchmark's docstring."""
    path = ROOT / "benchmarks" / f"{file}.py"
    if not path.exists():
        return file
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or file
    return text.splitlines()[0]


def setting(record: Record) -> str:
    """Where and with what a file's numbers were taken, in a line."""
    machine, versions = record["machine"], record["versions"]
    device = machine.get("gpu") or f"{machine['cores']} × {machine['cpu']}"
    load = machine.get("load")
    busy = f", load {load:g}" if load is not None and load > machine["cores"] else ""
    named = ", ".join(
        f"{name} {versions[name]}"
        for name in ("python", "numpy", "scikit-learn", "numba", "torch")
        if name in versions
    )
    return f"{record['time'][:10]}, commit {record['commit']}, {device}{busy}; {named}"


def page(records: list[Record]) -> str:
    parts = [INTRO]
    for file, group in groupby(records, key=lambda record: record["file"]):
        lines = list(group)
        parts.append(f"## {question_of(file)}\n")
        parts.append(table(lines) + "\n")
        parts.append(f"`benchmarks/{file}.py`: {setting(lines[-1])}\n")
    return "\n".join(parts)


def summary(records: list[Record]) -> str:
    """The three lines of the README; a question that was not measured is left out."""
    chosen = []
    for file, question in README_LINES:
        asked = [r for r in records if r["file"] == file and r["question"].startswith(question)]
        chosen += asked[:1]
    return f"{BEGIN}\n\n{table(chosen)}\n\n{END}"


def with_summary(text: str, records: list[Record]) -> str:
    """The README with the table between its marks replaced."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"README.md must hold one table between {BEGIN!r} and {END!r}.")
    return pattern.sub(lambda _: summary(records), text)


def read_latest() -> list[Record]:
    if not LATEST.exists():
        return []
    return [json.loads(line) for line in LATEST.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    records = read_latest()
    if "--again" not in sys.argv:
        records = merge(records, last_runs())
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        LATEST.write_text("".join(lines), encoding="utf-8")
    PAGE.write_text(page(records), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8"), records), encoding="utf-8")
    GUIDE.write_text(with_tables(GUIDE.read_text(encoding="utf-8"), records), encoding="utf-8")
    print(f"{len(records)} results of {len({r['file'] for r in records})} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
