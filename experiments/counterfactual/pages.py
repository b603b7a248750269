"""REPORT.md and STUDY.md: which block is made from which results, and the text around them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import bookkeeping
from experiments.counterfactual import deep, deep_tables, picks, sse_tables, starts, tables

HERE = Path(__file__).resolve().parent
FILES = {
    "table2": "results_table2.csv",
    "figure23": starts.SIGNS.file,
    "figure24": "results_deep.csv",
    "study": starts.STUDY.file,
    "whole": starts.WHOLE.file,
    "choose": starts.CHOICE.file,
}
PAGES = ("REPORT.md", "STUDY.md")

Row = dict[str, Any]
Results = Mapping[str, Sequence[Row]]


def read(folder: Path) -> dict[str, list[Row]]:
    return {name: bookkeeping.read(folder / file) for name, file in FILES.items()}


def status(results: Results) -> str:
    """What was run, how often, by which code."""
    seeds = {"table2": "trial", "figure24": "seed"}
    counted = {
        "table2": "table 2",
        "figure23": "figure 23",
        "figure24": "figure 24",
        "study": "cf-means against restarts",
        "whole": "the same on whole sets",
        "choose": "settings on other sets",
    }
    lines = []
    for name, title in counted.items():
        rows = results[name]
        column = seeds.get(name, "start")
        numbers = sorted({row[column] for row in rows})
        lines.append(
            {
                "what": title,
                "file": FILES[name],
                "rows": len(rows) if rows else "not yet run",
                "sets": len({row["set"] for row in rows}) or None,
                "seeds": f"{numbers[0]} … {numbers[-1]}" if rows else None,
                "commit": ", ".join(sorted({row["commit"] for row in rows})) or None,
            }
        )
    return bookkeeping.markdown(
        lines, {"what": "part", "file": "file", "rows": "rows", "sets": "sets",
                "seeds": "seeds", "commit": "commit"}
    )  # fmt: skip


def blocks(results: Results) -> dict[str, str]:
    """Marker -> text, for both pages."""
    found = {"status": status(results)}
    makers = {
        "table2": {
            "table2_short": tables.table2_short,
            "table2": tables.table2,
            "table2_tests": tables.table2_tests,
            "table2_all": tables.table2_all,
        },
        "figure23": {
            "figure23_short": sse_tables.figure23_short,
            "figure23": sse_tables.figure23,
            "figure23_tests": sse_tables.figure23_tests,
        },
        "figure24": {
            "figure24_short": deep_tables.figure24_short,
            "figure24": deep_tables.figure24,
            "figure24_tests": deep_tables.figure24_tests,
            "figure24_sets": deep_tables.figure24_sets,
            "figure24_measures": deep_tables.figure24_measures,
            "figure24_space": deep_tables.figure24_space,
            "figure24_parts": deep_tables.figure24_parts,
        },
        "study": {
            "sse_short": sse_tables.study_short,
            "sse": sse_tables.main_table,
            "sse_lines": sse_tables.lines_reached,
            "parts": sse_tables.parts,
        },
        "whole": {"whole": sse_tables.main_table, "whole_lines": sse_tables.lines_reached},
        "choose": {"choices": sse_tables.choices},
    }
    for name, of in makers.items():
        for marker, make in of.items():
            found[marker] = make(results[name]) if results[name] else tables.NOT_RUN
    picture = "![NMI of deep k-means and deep cf-means](figure24.png)"
    found["figure24_picture"] = picture if results["figure24"] else tables.NOT_RUN
    return found


def fill(text: str, results: Results) -> str:
    """The page with every block made anew."""
    made = blocks(results)
    for marker in re.findall(r"<!-- (\w+) -->", text):
        text = bookkeeping.replace_between(text, marker, made[marker])
    return text


def prose(text: str) -> str:
    """What stands outside the blocks."""
    return re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)


def write(out: Path) -> None:
    """Figures and pages from the CSVs in a folder."""
    from experiments.counterfactual import figures

    out.mkdir(parents=True, exist_ok=True)
    results = read(out)
    written = figures.draw(results, out)
    for page in PAGES:
        text = fill((HERE / page).read_text(encoding="utf-8"), results)
        (out / page).write_text(text, encoding="utf-8")
    bookkeeping.say(f"written: {', '.join([*PAGES, *written])}")


def complete(results: Results, name: str) -> bool:
    """Whether the CSV has every row that its stage asks for."""
    rows = results[name]
    if name == "table2":
        have = {(r["set"], r["protocol"], r["trial"]) for r in rows}
        return have == {
            (s, p, t) for s in picks.SETS for p, n in picks.PROTOCOLS.items() for t in range(n)
        }
    if name == "figure24":
        groups = deep.paired(list(rows))
        wanted = deep.wanted(deep.Plan(HERE / FILES[name], origin={}))
        return all(
            wanted <= set(groups.get((s, seed), {})) for s in deep.SETS for seed in range(10)
        )
    collection = next(
        c for c in (starts.SIGNS, starts.STUDY, starts.WHOLE, starts.CHOICE)
        if c.file == FILES[name]
    )  # fmt: skip
    have = {(r["set"], r["k"], r["start"]) for r in rows}
    return have == {
        (s, multiple * classes, start)
        for s, (classes, _) in collection.sets.items()
        for multiple in collection.multiples
        for start in range(collection.n_starts)
    }
