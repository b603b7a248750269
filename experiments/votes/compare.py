"""Compare the rules of `rules.py` on files of `arrays.py` and `wide_runs.py`: tables by task.

    python -m experiments.votes.compare FOLDER ...

Order is Spearman's r_s between scores and ARI; regret is the best ARI among the runs minus that of
the pick. Experiments of one unit are averaged first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from experiments.votes.arrays import UNITS, case_of
from experiments.votes.rules import RULES

TASKS = ("varying", "low", "high", "fixed", "noise", "wide")
TIES = {"order": 0.02, "regret": 0.005}
DRAWN = ("sipu-", "fcps-")  # sets that somebody drew; the tables are of real ones


def ends(score: np.ndarray, ari: np.ndarray) -> np.ndarray:
    """Order, regret, above the median run, in the best quarter, ARI; means over equal picks."""
    best = score >= score.max() - 1e-9 * max(1.0, abs(score.max()))
    a, b = rankdata(np.round(score, 9)), rankdata(np.round(ari, 9))
    constant = np.ptp(a) == 0 or np.ptp(b) == 0
    picked = ari[best]
    return np.array([
        0.0 if constant else np.corrcoef(a, b)[0, 1],
        ari.max() - picked.mean(),
        (picked > np.median(ari)).mean(),
        (picked >= np.quantile(ari, 0.75) - 1e-9).mean(),
        picked.mean(),
    ])  # fmt: skip


def outcomes(paths: list[Path], rules=RULES) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Task -> rule -> unit -> mean ends; experiments with nothing to choose from are left out."""
    gathered: dict[str, dict[str, dict[str, list[np.ndarray]]]] = {}
    for path in paths:
        with np.load(path) as file:
            if np.ptp(file["ari"]) < 0.01 or path.name.startswith(DRAWN):
                continue
            kind = str(file["kind"]) if "kind" in file.files else "wide"
            unit = str(file["unit"]) if "unit" in file.files else UNITS.get(path.stem, path.stem)
            case, class_of = case_of(file)
            if len(case.A) < 3:
                continue
            for rule, function in rules.items():
                gathered.setdefault(kind, {}).setdefault(rule, {}).setdefault(unit, []).append(
                    ends(function(case)[class_of], file["ari"])
                )
    return {
        kind: {
            rule: {unit: np.mean(rows, axis=0) for unit, rows in units.items()}
            for rule, units in rules_of.items()
        }
        for kind, rules_of in gathered.items()
    }


def means(found, kind: str, rule: str) -> np.ndarray:
    return np.mean(list(found[kind][rule].values()), axis=0)


def table(found) -> str:
    """Order and regret of every rule by task, as Markdown."""
    kinds = [kind for kind in TASKS if kind in found]
    rules = list(found[kinds[0]])
    head = " | ".join(kinds)
    lines = [
        f"| rule | r_s: {head} | regret: {head} | above the median | best quarter |",
        "|---" * (2 * len(kinds) + 3) + "|",
    ]
    for rule in rules:
        rows = np.array([means(found, kind, rule) for kind in kinds])
        cells = [f"{x:.3f}".replace("0.", ".") for x in (*rows[:, 0], *rows[:, 1])]
        last = [f"{x:.2f}".replace("0.", ".") for x in rows[:, 2:4].mean(axis=0)]
        lines.append(f"| {rule} | " + " | ".join((*cells, *last)) + " |")
    return "\n".join(lines)


def duels(found, rule: str, against: str) -> str:
    """Units won, tied and lost, by task."""
    lines = ["| task | units | order | regret |", "|---|---|---|---|"]
    for kind in (kind for kind in TASKS if kind in found):
        units = sorted(found[kind][rule])
        gain = np.array([found[kind][rule][u] - found[kind][against][u] for u in units])
        cells = []
        for values, tie in ((gain[:, 0], TIES["order"]), (-gain[:, 1], TIES["regret"])):
            won, lost = int((values > tie).sum()), int((values < -tie).sum())
            cells.append(f"{won}–{len(units) - won - lost}–{lost}")
        lines.append(f"| {kind} | {len(units)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    folders = [Path(name) for name in arguments]
    paths = [path for folder in folders for path in sorted(folder.glob("[!.]*.npz"))]
    found = outcomes(paths)
    print({kind: len(next(iter(rules.values()))) for kind, rules in found.items()}, "units")
    print(table(found))
    names = list(RULES)
    print("\nThe declared rule against the one before, units won–tied–lost\n")
    print(duels(found, "**declared**", names[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
