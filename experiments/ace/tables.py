"""The paper's tables with our numbers beside its own, written from the CSVs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.ace.paper import (
    ABLATION_TABLES,
    APPROACHES,
    COLUMNS,
    DEPICT_COLUMNS,
    INDICES,
    MAIN,
    METHODS,
    NOT_TO_BE_HAD,
    OTHERS,
    ROW_TITLES,
    SETS,
    TASKS,
    published,
)
from experiments.bookkeeping import read

# Smaller images in the column of the paper's, where those were not run: said in the README.
STANDS_FOR = {"coil20_32": "coil20_128"}
NOTHING = "Nothing here yet."
AVERAGES = ("ours", "theirs, same sets", "theirs, all")


def two(value: Any) -> str:
    """Two digits without the leading zero, a true minus; nothing for nothing."""
    if value is None or not np.isfinite(value):
        return ""
    text = f"{value:.2f}".replace("-0.00", "0.00")
    return text.replace("0.", ".", 1).replace("-", "−") if abs(value) < 0.995 else (
        text.replace("-", "−")
    )  # fmt: skip


def probability(value: float) -> str:
    """Three digits; what is smaller is said to be."""
    return "< .001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def pair(values: Sequence[Any] | None) -> str:
    """r_s/τ_b."""
    if values is None or all(v is None for v in values):
        return ""
    return "/".join(two(v) or "–" for v in values)


class Numbers:
    """Ours and theirs, by cell."""

    def __init__(self, results: Iterable[dict[str, Any]]) -> None:
        self.ours: dict[tuple[str, ...], dict[str, Any]] = {}
        results = list(results)
        there = {(row["task"], row["method"], row["set"]) for row in results}
        for row in results:
            title = SETS[row["set"]][0]
            stands_for = STANDS_FOR.get(row["set"])
            if stands_for and (row["task"], row["method"], stands_for) not in there:
                title = SETS[stands_for][0]
            key = (row["task"], row["method"], row["index"], row["approach"], title)
            self.ours[key] = row
        self.theirs = published()

    @classmethod
    def read(cls, path: Path) -> Numbers:
        return cls(read(path))

    def our(self, task, method, index, approach, name, measure) -> tuple[Any, Any] | None:
        row = self.ours.get((task, method, index, approach, name))
        if row is None:
            return None
        found = row[f"r_s_{measure}"], row[f"tau_b_{measure}"]
        return None if found[0] is None else found

    def their(self, task, method, index, approach, name, measure) -> tuple[Any, Any] | None:
        row = self.theirs.get((task, method, index, approach, name, measure))
        if row is None and approach in ("paired", "pooled", "ace"):
            return None
        return None if row is None or row["r_s"] is None else (row["r_s"], row["tau_b"])

    def chosen(self, task, method, index, approach, name) -> tuple[str, str]:
        """The K picked, ours and theirs."""
        ours = self.ours.get((task, method, index, approach, name), {}).get("k")
        theirs = self.theirs.get((task, method, index, approach, name, "nmi"), {}).get("k")
        return tuple("" if k is None else str(k).replace(" ", ", ") for k in (ours, theirs))

    def sets(self, task: str, method: str) -> list[str]:
        """The sets we have of a task, the paper's first, in its order."""
        there = {key[4] for key in self.ours if key[:2] == (task, method)}
        return [c for c in COLUMNS if c in there] + sorted(there - set(COLUMNS))

    def averages(self, task, method, index, approach, measure) -> dict[str, tuple[Any, Any] | None]:
        """Ours over our sets, theirs over those of them they have, theirs over all."""
        have = [
            s for s in self.sets(task, method)
            if self.our(task, method, index, approach, s, measure) is not None
        ]  # fmt: skip
        ours = [self.our(task, method, index, approach, s, measure) for s in have]
        both = [self.their(task, method, index, approach, s, measure) for s in have]
        return {
            "ours": mean_pair(ours),
            "theirs, same sets": mean_pair([v for v in both if v is not None]),
            "theirs, all": self.their(task, method, index, approach, "Average", measure),
        }


def mean_pair(values: Sequence[tuple[Any, Any] | None]) -> tuple[float, float] | None:
    """Mean of pairs; None without any."""
    there = [v for v in values if v is not None]
    if not there:
        return None
    return tuple(float(np.mean([v[i] for v in there])) for i in (0, 1))  # type: ignore[return-value]


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(
        [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        + [f"| {' | '.join(line)} |" for line in lines]
    )


def per_set(
    numbers: Numbers, task: str, method: str, indices: Sequence[str], measure: str,
    rows: Sequence[str] = tuple(APPROACHES),
) -> str:  # fmt: skip
    """One of the paper's tables for one method: ours, and theirs in brackets behind it."""
    paper = COLUMNS if method == "jule" else DEPICT_COLUMNS
    columns = [*paper, *(s for s in numbers.sets(task, method) if s not in paper)]
    lines = []
    for index in indices:
        lines.append([f"**{INDICES[index]}**", *[""] * (len(columns) + 3)])
        for approach in rows:
            cells = []
            for name in columns:
                at = (task, method, index, approach, name)
                ours, theirs = (pair(f(*at, measure)) for f in (numbers.our, numbers.their))
                if task == "clusters" and measure == "nmi":
                    k = numbers.chosen(*at)
                    ours, theirs = (
                        f"{v} K={x}" if v and x else v
                        for v, x in zip((ours, theirs), k, strict=True)
                    )
                cell = f"{ours} ({theirs})" if theirs else ours
                cells.append("" if name in NOT_TO_BE_HAD else cell.strip())
            means = numbers.averages(task, method, index, approach, measure)
            lines.append([ROW_TITLES[approach], *cells, *(pair(means[a]) for a in AVERAGES)])
    heads = [_with_k(name) if task == "clusters" else name for name in columns]
    return table(["", *heads, *(f"mean, {a}" for a in AVERAGES)], lines)


def _with_k(title: str) -> str:
    ks = {name: k for name, k in SETS.values()} | {"YTF": 41, "FRGC": 20}
    return f"{title} ({ks[title]})"


def checkpoints(numbers: Numbers) -> str:
    """Table 10: theirs on ImageNet, ours on small images."""
    lines = []
    order = ("silhouette_cosine", "silhouette", "davies_bouldin", "calinski_harabasz")
    sets = numbers.sets("checkpoints", "deepcluster")
    for measure in ("nmi", "acc"):
        for source in (*sets, "ImageNet-val"):
            for approach in APPROACHES:
                get = numbers.their if source == "ImageNet-val" else numbers.our
                cells = [
                    pair(get("checkpoints", "deepcluster", index, approach, source, measure))
                    for index in order
                ]
                if any(cells):
                    who = "theirs" if source == "ImageNet-val" else "ours"
                    lines.append(
                        [measure.upper(), f"{source} ({who})", APPROACHES[approach], *cells]
                    )
    return table(["", "set", "", *(INDICES[i] for i in order)], lines)


def averages(numbers: Numbers, task: str, measure: str, indices: Sequence[str]) -> str:
    """Averages over sets only: one row per method and index, ours and theirs."""
    lines = []
    for method in ("jule", "depict"):
        for index in indices:
            cells = []
            for approach in APPROACHES:
                means = numbers.averages(task, method, index, approach, measure)
                shown = [two(means[a][0]) if means[a] else "" for a in AVERAGES]
                cells.append(" · ".join(s or "–" for s in shown) if any(shown) else "")
            if any(cells):
                lines.append([METHODS[method], INDICES[index].split(" (CFQ")[0], *cells])
    return table(["", "", *APPROACHES.values()], lines)


def ablations(numbers: Numbers, task: str, measure: str) -> str:
    """Averages of the ablated ACE, r_s/τ_b, over our sets and theirs."""
    lines = []
    for title, (rows, _) in ABLATION_TABLES.items():
        lines.append([f"**{title}**", *[""] * 8])
        for approach in rows:
            cells = []
            for method in ("jule", "depict"):
                for index in MAIN:
                    means = numbers.averages(task, method, index, approach, measure)
                    ours, same = pair(means["ours"]), pair(means["theirs, same sets"])
                    cells.append(f"{ours} ({same})" if same else ours)
            lines.append([ROW_TITLES[approach], *cells])
    short = {
        "calinski_harabasz": "CH", "davies_bouldin": "DB", "silhouette_cosine": "sil. cosine",
        "silhouette": "sil. Euclidean",
    }  # fmt: skip
    heads = [f"{METHODS[m]} {short[i]}" for m in ("jule", "depict") for i in MAIN]
    return table(["", *heads], lines)


def inventory(numbers: Numbers) -> str:
    """What was run: experiments, runs, distinct spaces, those past the dip test, the best NMI."""
    seen = {}
    for (task, method, _, _, name), row in numbers.ours.items():
        seen.setdefault((task, method, name), row)
    order = {task: i for i, task in enumerate(TASKS)}
    lines = [
        [TASKS[t], METHODS[m], s, str(row["n_runs"]), str(row["n_distinct"]), str(row["n_passed"]),
         two(row["best_nmi"]), str(row["seeds"] if row["seeds"] is not None else "")]
        for (t, m, s), row in sorted(seen.items(), key=lambda item: (order[item[0][0]], item[0]))
    ]  # fmt: skip
    head = ["task", "method", "set", "runs", "distinct spaces", "runs past the dip test",
            "best NMI", "seeds"]  # fmt: skip
    return table(head, lines)


def all_tables(numbers: Numbers) -> str:
    """TABLES.md: every table of the paper that can be filled."""
    parts = [
        "# The tables of the paper, ours and theirs\n",
        "Written by `run.py` from `results.csv` and `expected.csv`; not edited by hand. Cells are "
        "Spearman's r_s / Kendall's τ_b: ours, then the paper's in brackets. FRGC and YTF are not "
        "to be had and stay empty. A bracket alone: not run here. Means: ours over the sets we "
        "have, theirs over the same sets, theirs over all their sets.\n",
    ]
    plan = (
        ("tuning", "nmi", MAIN, "Table 1: hyper-parameters, NMI"),
        ("clusters", "nmi", MAIN, "Table 2: number of clusters, NMI"),
        ("tuning", "nmi", OTHERS, "Table 4: hyper-parameters, NMI, other indices"),
        ("tuning", "acc", MAIN + OTHERS, "Tables 5 and 6: hyper-parameters, accuracy"),
        ("clusters", "nmi", OTHERS, "Table 7: number of clusters, NMI, other indices"),
        ("clusters", "acc", MAIN + OTHERS, "Tables 8 and 9: number of clusters, accuracy"),
    )
    for task, measure, indices, title in plan:
        parts.append(f"## {title}\n")
        for method in ("jule", "depict"):
            parts.append(
                f"### {METHODS[method]}\n\n{per_set(numbers, task, method, indices, measure)}\n"
            )
    parts.append(f"## Table 10: checkpoints of DeepCluster\n\n{checkpoints(numbers)}\n")
    parts.append(
        "## Tables 11–30: ablations, means over sets\n\nOurs over the sets we have, theirs over "
        "the same sets in brackets.\n"
    )
    for task in ("tuning", "clusters"):
        for measure in ("nmi", "acc"):
            found = ablations(numbers, task, measure)
            parts.append(f"### {TASKS[task]}, {measure.upper()}\n\n{found}\n")
    for title, (rows, tables) in ABLATION_TABLES.items():
        for task, number in (("tuning", tables[0]), ("clusters", tables[2])):
            parts.append(f"## Table {number}: {title.lower()}, {TASKS[task].lower()}, NMI\n")
            for method in ("jule", "depict"):
                found = per_set(numbers, task, method, MAIN, "nmi", rows)
                parts.append(f"### {METHODS[method]}\n\n{found}\n")
    parts.append("## CFQ beside the paper's indices\n")
    for task in ("tuning", "clusters"):
        for method in ("jule", "depict"):
            found = per_set(numbers, task, method, ("cfq",), "nmi")
            parts.append(f"### {TASKS[task]}, {METHODS[method]}, NMI\n\n{found}\n")
    return "\n".join(parts)
