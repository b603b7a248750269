"""REPORT.md and TABLES.md, their tables written from the CSVs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.ace.paper import HERE, MAIN, OTHERS
from experiments.ace.tables import (
    NOTHING,
    Numbers,
    ablations,
    all_tables,
    averages,
    checkpoints,
    inventory,
    probability,
    table,
    two,
)
from experiments.ace_variants.beating import (
    DEFAULTS,
    HYPOTHESIS,
    KINDS,
    confirmation,
    family_means,
    leave_one_out,
    read_beat,
    wins_by_margin,
    within_reach,
)
from experiments.bookkeeping import replace_between, say
from experiments.votes import open_tables
from experiments.votes import tables as voting_tables

FURTHER = ("cpu", "simulation")
POOLS = {"deep": ("deep",), "further": FURTHER, "all": tuple(KINDS)}


def three(value: float) -> str:
    """Three digits with a sign, no leading zero."""
    text = f"{value:+.3f}"
    return text.replace("0.", ".", 1).replace("-", "−")


def margin(found: dict[str, Any]) -> str:
    """Whether the rule of the README is met, and whether so few sets could have met it."""
    if not within_reach(found["sets"]):
        return "out of reach"
    return "yes" if wins_by_margin(found) else "no"


def left_out(rows: list[dict[str, Any]], pool: str) -> str:
    """One row per family: the variant chosen on the other sets, judged on the one left out."""
    lines = []
    for family in DEFAULTS:
        found = leave_one_out(rows, family, POOLS[pool])
        if found:
            lines.append(
                [
                    family, found["default"], str(found["sets"]), two(found["default r_s"]),
                    two(found["left-out r_s"]), three(found["gain"]), probability(found["p"]),
                    f"{found['won']} / {found['lost']}", three(found["saved regret"]),
                    found["chosen"], margin(found),
                ]
            )  # fmt: skip
    head = ["family", "ACE as published", "sets", "its r_s", "r_s, left out", "gain", "p",
            "sets won / lost", "NMI regret saved", "chosen (times)", "margin"]  # fmt: skip
    return table(head, lines) if lines else NOTHING


def confirmed(rows: list[dict[str, Any]]) -> str:
    """The one hypothesis on the fresh sets."""
    found = confirmation(rows)
    if not found:
        return NOTHING
    line = [
        HYPOTHESIS[1], HYPOTHESIS[2], str(found["sets"]), two(found["default r_s"]),
        two(found["r_s"]), three(found["gain"]), probability(found["p"]),
        f"{found['won']} / {found['lost']}", three(found["saved regret"]),
        margin(found),
    ]  # fmt: skip
    head = ["variant", "against", "sets", "r_s of the latter", "r_s", "gain", "p",
            "sets won / lost", "NMI regret saved", "margin"]  # fmt: skip
    return table(head, [line])


def families(rows: list[dict[str, Any]]) -> str:
    """Every variant's mean over sets: deep runs, and the further evidence."""
    lines = []
    for family, base in DEFAULTS.items():
        deep, further = (
            {f["variant"]: f for f in family_means(rows, family, POOLS[pool])}
            for pool in ("deep", "further")
        )
        for name in {**deep, **further}:
            shown = []
            for found in (deep.get(name), further.get(name)):
                shown += [""] * 4 if found is None else [
                    two(found["r_s"]), three(found["difference"]),
                    probability(found["p"]) if name != base else "", two(found["regret"]),
                ]  # fmt: skip
            lines.append([family, f"**{name}**" if name == base else name, *shown])
    head = ["family", "variant", "deep: r_s", "difference", "p", "regret", "further: r_s",
            "difference", "p", "regret"]  # fmt: skip
    return table(head, lines) if lines else NOTHING


def verdicts(numbers: Numbers) -> str:
    """How often ACE is ahead of each other way of scoring, cell by cell, here and in the paper."""
    lines = []
    for other, title in (("raw", "raw"), ("paired", "paired"), ("pooled", "pooled")):
        for task, method in (
            ("tuning", "jule"), ("tuning", "depict"), ("clusters", "jule"), ("clusters", "depict"),
        ):  # fmt: skip
            ours, theirs = [], []
            for name in numbers.sets(task, method):
                for index in MAIN:
                    for get, kept in ((numbers.our, ours), (numbers.their, theirs)):
                        a = get(task, method, index, "ace", name, "nmi")
                        b = get(task, method, index, other, name, "nmi")
                        if a is not None and b is not None:
                            kept.append(a[0] - b[0])
            if ours:
                cells = []
                for gaps in (ours, theirs):
                    up, down = (int(np.sum(np.array(gaps) * s > 0.005)) for s in (1, -1))
                    mean = three(float(np.mean(gaps))) if gaps else ""
                    cells += [f"{up} / {down} of {len(gaps)}", mean]
                lines.append([f"{task}, {method.upper()}", f"ACE over {title}", *cells])
    head = ["", "", "ours: cells won / lost", "mean gain", "theirs, same sets", "mean gain"]
    return table(head, lines) if lines else NOTHING


def blocks(place: Path) -> dict[str, str]:
    """Marker -> table of REPORT.md."""
    numbers = Numbers.read(place / "results.csv")
    rows = read_beat(place)
    votes = voting_tables.HERE if place == HERE else place
    found = {
        "inventory": inventory(numbers) if numbers.ours else NOTHING,
        "verdicts": verdicts(numbers),
        "checkpoints": checkpoints(numbers),
        **{f"left-out-{pool}": left_out(rows, pool) for pool in POOLS},
        "confirmation": confirmed(rows),
        "families": families(rows),
        **voting_tables.blocks(votes),
        **open_tables.blocks(votes),
    }
    for task in ("tuning", "clusters"):
        found[f"{task}-nmi"] = averages(numbers, task, "nmi", (*MAIN, *OTHERS, "cfq"))
        found[f"{task}-acc"] = averages(numbers, task, "acc", MAIN)
        found[f"{task}-ablations"] = ablations(numbers, task, "nmi")
    return found


def report_text(text: str, place: Path) -> str:
    """The report with its tables written anew."""
    for marker, block in blocks(place).items():
        text = replace_between(text, marker, block)
    return text


def copy_text(place: Path, note: str) -> None:
    """The committed report in another folder, under a note that its text speaks of other runs."""
    text = (HERE / "REPORT.md").read_text(encoding="utf-8")
    (place / "REPORT.md").write_text(f"> **Note:** {note}\n\n{text}", encoding="utf-8")


def write_reports(place: Path) -> None:
    """REPORT.md between its markers, TABLES.md whole."""
    path = place / "REPORT.md"
    if not path.is_file():
        copy_text(place, "the tables are of this folder, the text is of the committed runs.")
    path.write_text(report_text(path.read_text(encoding="utf-8"), place), encoding="utf-8")
    tables = all_tables(Numbers.read(place / "results.csv"))
    (place / "TABLES.md").write_text(tables, encoding="utf-8")
    say("REPORT.md and TABLES.md")
