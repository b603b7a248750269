"""What picks that came first in x % of the half-samples were worth: the table behind the verdict.

    python -m experiments.votes.worth OUT.csv FOLDER ... [--deep REFERENCE]
    python -m experiments.votes.worth --write OUT.csv ...

The first line judges every file of `wide_runs.py` in the folders, and the deep runs of a folder
with `deep_runs*`, by `wellsep.judge` with its defaults, and notes the share of the half-samples in
which the pick came first beside what it was worth by the known classes. The second writes the
table that the package ships: counts of trials.
"""

from __future__ import annotations

import csv
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from experiments.votes import arrays
from experiments.votes.compare import DRAWN

SHIPPED = Path(__file__).parents[2] / "src" / "wellsep" / "evaluate" / "words" / "worth.json"
FLOORS = (0.9, 0.6, 0.3, 0.0)  # of the share of half-samples, for each row of the table
FEWEST = 10  # trials of a row; with fewer it is one with the row below
LOSS = 0.8  # share of the picks, sets alike, that lose no more than what the table says


def wide_runs(folder: Path) -> Iterator[tuple[str, str, ws.Runs, np.ndarray]]:
    """(experiment, unit, runs, ARI) of the files of `wide_runs.py`."""
    for path in sorted(folder.glob("[!.]*.npz")):
        if path.name.startswith(DRAWN):
            continue
        with np.load(path) as file:
            spaces = {str(name): file[f"Z_{name}"].astype(float) for name in file["spaces"]}
            names = file["names"].tolist()
            labels = dict(zip(names, file["labels"].astype(int), strict=True))
            made = [str(file["spaces"][i]) for i in file["space"]]
            ari = file["ari"]
            unit = str(file["unit"]) if "unit" in file.files else path.stem
        runs = ws.Runs.from_parts(spaces, labels, pairs=dict(zip(names, made, strict=True)))
        yield f"{folder.name}/{path.stem}", arrays.UNITS.get(unit, unit), runs, ari


def judged(runs: ws.Runs, ari: np.ndarray) -> dict[str, Any] | None:
    """The share of the pick, and what it was worth; None where no such words are said."""
    judgement = ws.judge(runs, details=False, n_jobs=1)
    ranking = judgement.ranking
    if judgement.judge != "consensus" or np.ptp(ari) < 0.01:
        return None
    best = ranking.names.index(ranking.best)
    return {
        "runs": len(ari),
        "verdict": judgement.verdict.kind,
        "first_in": float(ranking.confidence.first_in[best]),
        "best_quarter": int(ari[best] >= np.quantile(ari, 0.75) - 1e-9),
        "above_median": int(ari[best] > np.median(ari)),
        "loss": float(ari.max() - ari[best]),
    }


def table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per range of shares; sets weigh alike."""
    found, high = [], 1.01
    for low in FLOORS:
        some = [row for row in rows if low <= float(row["first_in"]) < high]
        if len(some) < FEWEST:
            continue
        units = [row["unit"] for row in some]
        weight = np.array([1 / units.count(unit) for unit in units])
        losses = np.array([float(row["loss"]) for row in some])
        order = np.argsort(losses)
        reached = np.cumsum(weight[order]) / weight.sum() >= LOSS
        loss = round(float(losses[order][reached.argmax()]), 2)
        found.append({
            "low": low,
            "high": min(high, 1.0),
            "trials": len(some),
            "sets": len(set(units)),
            "best_quarter": sum(int(row["best_quarter"]) for row in some),
            "above_median": sum(int(row["above_median"]) for row in some),
            "lost_less": int((losses < loss).sum()),
            "loss": loss,
        })  # fmt: skip
        high = low
    return found


def show(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| first in | trials | sets | best quarter | above the median | lost less than |",
        "|---|---|---|---|---|---|",
    ]
    for row in table(rows):
        span = f"{row['low']:.0%} to {row['high']:.0%}"
        cells = (span, *(row[k] for k in ("trials", "sets", "best_quarter", "above_median")))
        lost = f"{row['lost_less']}: {row['loss']:.2f}"
        lines.append("| " + " | ".join(map(str, (*cells, lost))) + " |")
    return "\n".join(lines)


def read(paths: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    return rows


def main(arguments: list[str]) -> None:
    if arguments[0] == "--write":
        rows = read(arguments[1:])
        SHIPPED.write_text(json.dumps(table(rows), indent=1) + "\n", encoding="utf-8")
        print(show(rows))
        return
    deep = []
    if "--deep" in arguments:
        at = arguments.index("--deep")
        deep = [arrays.deep_runs(Path(arguments[at + 1]))]
        del arguments[at : at + 2]
    sources = [wide_runs(Path(folder)) for folder in arguments[1:]] + deep
    fields = ("experiment", "unit", "runs", "verdict", "first_in", "best_quarter", "above_median")
    with open(arguments[0], "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*fields, "loss"], lineterminator="\n")
        writer.writeheader()
        for name, unit, runs, ari in (row for source in sources for row in source):
            row = judged(runs, ari)
            if row is not None:
                row = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
                writer.writerow({"experiment": name, "unit": unit} | row)
                file.flush()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(sys.argv[1:])
