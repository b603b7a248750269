"""Tables on the votes of the experiments kept before: from open_votes.csv alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.ace.tables import NOTHING, probability, table
from experiments.bookkeeping import read
from experiments.votes.tables import CANDIDATES, SIGN, TIES, decimal, holm, sign_test

HERE = Path(__file__).parent
TABLE = HERE / "open_votes.csv"
JUDGES = (
    "ACE", *CANDIDATES, "the rule", "plain, NMI", "ACE, no dip test", "input", "own space",
    "mean of admitted spaces", "mean of all spaces", "more clusters", "middle K",
)  # fmt: skip
KINDS = (
    "deep, K fixed", "k-means, K fixed", "deep, K varies", "k-means, K drawn",
    "k-means, K tied to the space", "deep, checkpoints",
)  # fmt: skip
# What is compared by unit. Runs whose K is tied to their space, and checkpoints, do not count.
COMPARED = {
    "K varies": ("deep, K varies", "k-means, K drawn"),
    "K fixed": ("deep, K fixed", "k-means, K fixed"),
}
FEW = 4  # classes: the K tried, 2 to 11, then lie mostly above them
LEAST_SPREAD = 0.05  # where the truth of the best and the worst run is closer, order says nothing


def unit_means(
    rows: list[dict[str, Any]], kinds: tuple[str, ...], judge: str, end: str, measure: str
) -> dict[str, float]:
    """Unit -> mean over its experiments; for order, those whose truth differs."""
    found = defaultdict(list)
    for row in rows:
        if row["kind"] in kinds and row["judge"] == judge:
            if end == "r_s" and row[f"spread_{measure}"] < LEAST_SPREAD:
                continue
            found[row["set"]].append(row[f"{end}_{measure}"])
    return {unit: float(np.mean(values)) for unit, values in found.items()}


def by_group(rows: list[dict[str, Any]], measure: str) -> str:
    """Mean r_s · regret over units, by group of experiments."""
    lines = []
    for judge in JUDGES:
        cells = [f"**{judge}**" if judge in CANDIDATES else judge]
        for kind in KINDS:
            means = [unit_means(rows, (kind,), judge, end, measure) for end in TIES]
            shown = [decimal(float(np.mean(list(m.values())))) if m else "–" for m in means]
            cells.append(" · ".join(shown))
        lines.append(cells)
    counts = ["*experiments, units*"]
    for kind in KINDS:
        mine = {(row["experiment"], row["set"]) for row in rows if row["kind"] == kind}
        counts.append(f"*{len(mine)}, {len({unit for _, unit in mine})}*")
    return table(["judge", *KINDS], [*lines, counts])


def by_unit(rows: list[dict[str, Any]], kind: str, measure: str = "ari") -> str:
    """Units won, tied and lost against ACE."""
    kinds = COMPARED[kind]
    found: dict[str, list[Any]] = {}
    for judge in JUDGES:
        found[judge] = []
        for end in TIES:
            mine = unit_means(rows, kinds, judge, end, measure)
            base = unit_means(rows, kinds, "ACE", end, measure)
            gain = SIGN[end] * np.array([mine[unit] - base[unit] for unit in mine])
            won, lost = int((gain > TIES[end]).sum()), int((gain < -TIES[end]).sum())
            duel = (won, len(gain) - won - lost, lost)
            found[judge].append((float(np.mean(list(mine.values()))), duel, sign_test(duel)))
    adjusted = [
        dict(zip(CANDIDATES, holm([found[c][e][2] for c in CANDIDATES]), strict=True))
        for e in range(len(TIES))
    ]
    lines = []
    for judge, by_end in found.items():
        cells = [f"**{judge}**" if judge in CANDIDATES else judge]
        for e, (mean, duel, p) in enumerate(by_end):
            cells.append(decimal(mean))
            if judge == "ACE":
                cells += ["", "", ""]
                continue
            cells += ["/".join(map(str, duel)), probability(p)]
            cells.append(probability(adjusted[e][judge]) if judge in CANDIDATES else "")
        lines.append(cells)
    head = ["judge", "r_s", "won/tied/lost", "p", "Holm", "regret", "won/tied/lost", "p", "Holm"]
    return table(head, lines)


def drawn_by_set(rows: list[dict[str, Any]]) -> str:
    """r_s · regret where K was drawn, sets with few classes first."""
    judges = ("ACE", *CANDIDATES, "more clusters", "middle K")
    of = {(r["experiment"], r["judge"]): r for r in rows if r["kind"] == "k-means, K drawn"}
    sets = sorted({(r["classes"], name) for (name, _), r in of.items()})
    lines = []
    for classes, name in sets:
        cells = [name.removeprefix("cpu-drawn-"), str(classes)]
        for judge in judges:
            row = of[name, judge]
            cells.append(" · ".join(decimal(row[f"{end}_ari"]) for end in TIES))
        lines.append(cells)
    for title, kept in (
        (f"*mean, up to {FEW} classes*", lambda c: c <= FEW),
        ("*mean, more classes*", lambda c: c > FEW),
    ):
        some = [name for classes, name in sets if kept(classes)]
        means = (
            [float(np.mean([of[name, j][f"{end}_ari"] for name in some])) for end in TIES]
            for j in judges
        )
        lines.append([title, "", *(" · ".join(map(decimal, pair)) for pair in means)])
    return table(["set", "classes", *judges], lines)


def hardly_differ(rows: list[dict[str, Any]]) -> str:
    """Experiments whose best and worst run are about as good."""
    first = {row["experiment"]: row for row in rows}
    lines = [
        [name, decimal(row["spread_ari"]), decimal(row["spread_nmi"])]
        for name, row in first.items()
        if min(row["spread_ari"], row["spread_nmi"]) < LEAST_SPREAD
    ]
    return table(["experiment", "range of ARI", "range of NMI"], lines)


def power(rows: list[dict[str, Any]]) -> str:
    """How often sign tests over so many units find a judge that wins a unit this often."""
    lines = []
    for kind, kinds in COMPARED.items():
        n = len(unit_means(rows, kinds, "ACE", "r_s", "ari"))
        needed = min(k for k in range(n + 1) if 2 * k > n and stats.binomtest(k, n).pvalue < 0.05)
        found = [decimal(float(stats.binom.sf(needed - 1, n, rate))) for rate in (0.65, 0.75, 0.85)]
        lines.append([kind, str(n), str(needed), *found])
    return table(
        ["", "units", "wins needed", "found if a unit is won by .650", ".750", ".850"], lines
    )


def found_to_vary(rows: list[dict[str, Any]]) -> str:
    """In how many experiments the rule says that K varies."""
    lines = []
    for kind in KINDS:
        told = {row["experiment"]: row["k_varies"] for row in rows if row["kind"] == kind}
        lines.append([kind, str(len(told)), str(sum(told.values()))])
    return table(["runs", "experiments", "K varies by the rule"], lines)


def blocks(place: Path) -> dict[str, str]:
    """Marker -> table of REPORT.md on the experiments kept before."""
    rows = read(place / TABLE.name)
    makers: dict[str, Any] = {
        "open-ari": lambda: by_group(rows, "ari"),
        "open-nmi": lambda: by_group(rows, "nmi"),
        "open-acc": lambda: by_group(rows, "acc"),
        "open-K-varies": lambda: by_unit(rows, "K varies"),
        "open-K-fixed": lambda: by_unit(rows, "K fixed"),
        "open-drawn-sets": lambda: drawn_by_set(rows),
        "open-hardly-differ": lambda: hardly_differ(rows),
        "open-power": lambda: power(rows),
        "open-rule": lambda: found_to_vary(rows),
    }
    return {marker: make() if rows else NOTHING for marker, make in makers.items()}
