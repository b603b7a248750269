"""Which threshold makes a cluster agreed: agreed.csv.

    WELLSEP_DATA=FOLDER python experiments/support/agreed_groups.py RUNS...

RUNS as in collect.py. The labels of every experiment are judged alone; the contenders are the runs
that come first in some half-sample. Of each cluster of the best run: its smallest Jaccard
similarity with a cluster of every contender, its similarity with a class and its purity.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.support.collect import LEAST, Experiment, experiments
from wellsep.evaluate.clusters import agreed
from wellsep.partitions import best_matches

TABLE = Path(__file__).parent / "agreed.csv"


def rows_of(one: Experiment) -> Iterator[dict[str, Any]]:
    """One row per cluster of the best run."""
    codes = np.full(one.labels.shape, -1)
    for row, code in zip(one.labels, codes, strict=True):
        code[row >= 0] = np.unique(row[row >= 0], return_inverse=True)[1]
    some = codes[codes.max(axis=1) >= 1]
    judged = ws.judge(ws.Runs.from_parts(None, {f"run {m}": c for m, c in enumerate(some)}))
    chance = judged.confidence.first_in
    order = judged.answer.first_of_each.tolist()
    chosen = [order[0], *(m for m in order[1:] if chance[m] > 0)]
    best = some[chosen[0]]
    names = tuple(map(str, range(best.max() + 1)))
    found = agreed.find_agreed(some[chosen], chance[chosen], names, tuple(map(str, chosen)))
    match, _ = best_matches(best, one.truth[None])
    of_question = {c: q for q in found.questions for c in q.clusters}
    for c, size in enumerate(found.sizes.tolist()):
        if size < LEAST:
            continue
        question = of_question.get(str(c))
        yield {
            "collection": one.collection,
            "unit": one.unit,
            "contenders": len(chosen),
            "K": len(names),
            "questions": len(found.questions),
            "clusters": 0 if question is None else len(question.clusters),
            "sides": 0 if question is None else len(question.sides),
            "size": size,
            "overlap": found.overlap[c],
            "jaccard": match[c, 0],
            "purity": np.bincount(one.truth[best == c]).max() / size,
        }


def main(paths: list[str]) -> None:
    rows = []
    for one in experiments(paths):
        if len(one.labels) < 5:
            continue
        try:
            rows += rows_of(one)
        except ValueError as error:
            print(one.collection, one.unit, error)
        print(one.collection, one.unit, len(rows), flush=True)
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
