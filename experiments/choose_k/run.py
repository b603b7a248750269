"""Choose K on sets with known classes and on sets without clusters; write the tables.

    WELLSEP_DATA=FOLDER python experiments/choose_k/run.py battery    # known sets
    python experiments/choose_k/run.py fresh                          # generated anew
    python experiments/choose_k/run.py "fresh again"                  # the second rule, drawn anew
    WELLSEP_DATA=FOLDER python experiments/choose_k/run.py empty      # without clusters
    python experiments/choose_k/run.py report                         # the tables of REPORT.md

Rows are appended to results.csv as they come; those that are there are skipped.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from experiments.bookkeeping import (
    append,
    data_folder,
    done,
    markdown,
    provenance,
    read,
    replace_between,
    say,
)
from experiments.choose_k import sets

HERE = Path(__file__).parent
RESULTS, REPORT = HERE / "results.csv", HERE / "REPORT.md"
RECOVERABLE = 0.7  # ARI of k-means with the true K
# "again": the second rule, on sets drawn anew and on the known ones.
LABELLED = ("battery", "fresh", "battery again", "fresh again")
SINGLE = ("silhouette", "prediction_strength", "mixture_bic")


def measure(group: str, one: sets.Set) -> dict[str, Any]:
    """One set: what k-means finds with the true K, and what `choose_k` answers."""
    began = time.process_time()
    chosen = ws.choose_k(one.X, random_state=0)
    seconds = time.process_time() - began
    counted = one.classes > 0
    ari = None
    if one.k > 1:
        labels = ws.KMeans(one.k, n_init=10, random_state=0).fit_predict(one.X)
        ari = float(ws.ari_score(one.classes[counted], labels[counted]))
    assert chosen.gain is not None
    return {
        "group": group,
        "set": one.name,
        "n": len(one.X),
        "d": one.X.shape[1],
        "k": one.k,
        "ari": None if ari is None else round(ari, 4),
        "best": chosen.best,
        "voted": chosen.voted,
        "gain": round(chosen.gain[0], 3),
        "gain_at": chosen.gain[1],
        **{name: chosen.picks[name] for name in SINGLE},
        "end": int(chosen.k[-1]),
        "wants_more": " ".join(chosen.wants_more),
        "seconds": round(seconds, 2),
    }


def listed(group: str) -> Iterator[sets.Set]:
    """The sets of a group."""
    folder = data_folder()
    if group == "fresh":
        return sets.fresh()
    if group == "fresh again":
        return sets.fresh(2)
    if folder is None:
        raise SystemExit("Name the folder of data sets in WELLSEP_DATA.")
    return sets.empty(folder) if group == "empty" else sets.battery(folder)


# --------------------------------------------------------------------------- tables


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hits and mean absolute error by rule and class of sets."""
    classes = {
        "all": rows,
        "recoverable": [row for row in rows if row["ari"] >= RECOVERABLE],
        "not recoverable": [row for row in rows if row["ari"] < RECOVERABLE],
    }
    rules = {"choose_k": "best", "the vote without the gate": "voted"} | {n: n for n in SINGLE}
    found = []
    for title, key in rules.items():
        line: dict[str, Any] = {"rule": title}
        for name, some in classes.items():
            hits = sum(row[key] == row["k"] for row in some)
            line[name] = f"{hits} of {len(some)}"
            error = statistics.mean(abs(row[key] - row["k"]) for row in some) if some else 0.0
            line[f"{name}, MAE"] = f"{error:.2f}"
        line["says 1"] = sum(row[key] == 1 for row in rows)
        found.append(line)
    return found


def by_set(rows: list[dict[str, Any]]) -> str:
    """One line per set, the best recoverable first."""
    order = sorted(rows, key=lambda row: (-(row["ari"] or 0), row["set"]))
    columns = {
        "set": "set", "n": "n", "d": "d", "k": "K", "ari": "ARI at K", "best": "choose_k",
        "silhouette": "silhouette", "prediction_strength": "prediction strength",
        "mixture_bic": "mixture BIC", "gain": "Z", "gain_at": "at K", "end": "tried to",
    }  # fmt: skip
    return markdown(order, columns, digits=2)


def emptiness(rows: list[dict[str, Any]]) -> str:
    """How often each kind of set without clusters is answered by 1."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["set"].rpartition(", draw")[0], []).append(row)
    lines = [
        {
            "kind": kind,
            "answered by 1": f"{sum(row['best'] == 1 for row in some)} of {len(some)}",
            "largest Z": max(row["gain"] for row in some),
            "vote without the gate": " ".join(str(row["voted"]) for row in some),
        }
        for kind, some in kinds.items()
    ]
    return markdown(lines, list(lines[0]), digits=1)


def write_report() -> None:
    """Put the tables into REPORT.md."""
    rows, text = read(RESULTS), REPORT.read_text(encoding="utf-8")
    for group in LABELLED:
        some = [row for row in rows if row["group"] == group]
        if some:
            lines = summary(some)
            text = replace_between(text, f"{group}-summary", markdown(lines, list(lines[0])))
            text = replace_between(text, f"{group}-sets", by_set(some))
    some = [row for row in rows if row["group"] == "empty"]
    if some:
        text = replace_between(text, "empty", emptiness(some))
    REPORT.write_text(text, encoding="utf-8")


def main() -> None:
    """Run one group, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("group", choices=[*LABELLED, "empty", "report"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.group == "report":
        write_report()
        return
    known, origin = done(asked.results, ["group", "set"]), provenance("experiments/choose_k")
    for one in listed(asked.group):
        if (asked.group, one.name) in known:
            continue
        row = measure(asked.group, one)
        append(asked.results, [row | origin])
        say(f"{one.name}: K = {row['k']}, answer {row['best']}, Z = {row['gain']}")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
