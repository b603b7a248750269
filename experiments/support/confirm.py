"""Try the shipped map and the agreed groups on sets that no one has looked at: confirmed.csv.

    python experiments/support/confirm.py RUNS...

RUNS are folders of .npz files with wide grids of runs (see DECLARATION.md): `labels`, `names`,
`space`, `spaces`, `Z_<space>` and `truth`. `wellsep.judge` with its defaults ranks them. Prints
what the declaration asks for. With --dry nothing is written; with --deep the files hold deep runs,
each with an embedding of its own (`Z0`, `Z1` …), and the result is deep_confirmed.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.support.calibrate import BANDS, SHIPPED, bands, brier, reliability, weigh
from experiments.support.collect import BEST, CLASS, HERE, LEAST
from wellsep.evaluate.clusters import agreed, support
from wellsep.partitions import best_matches

RESULT = "confirmed.csv"
NEAR = 0.15  # how far a band may lie from what the map says
ENOUGH = 20  # clusters of a band that can fail


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """One row per cluster of the five best runs of one set."""
    with np.load(path, allow_pickle=False) as file:
        labels, truth = file["labels"].astype(int), np.unique(file["truth"], return_inverse=True)[1]
        if "spaces" in file.files:
            names = [str(name) for name in file["names"]]
            spaces = {str(s): file[f"Z_{s}"].astype(float) for s in file["spaces"]}
            made_in = [str(file["spaces"][at]) for at in file["space"]]
        else:  # deep runs: each has an embedding of its own
            names = made_in = [f"run {m}" for m in range(len(labels))]
            spaces = {name: file[f"Z{m}"].astype(float) for m, name in enumerate(names)}
    pairs = dict(zip(names, made_in, strict=True))
    runs = ws.Runs.from_parts(spaces, dict(zip(names, labels, strict=True)), pairs=pairs)
    judged = ws.judge(runs, details=False)
    answer, chance = judged.answer, judged.confidence.first_in
    order = [m for m in answer.first_of_each.tolist() if labels[m].max() >= 1]
    codes = np.full((len(order), labels.shape[1]), -1)
    for row, code in zip(labels[order], codes, strict=True):
        code[row >= 0] = np.unique(row[row >= 0], return_inverse=True)[1]
    rank = answer.rank[order]
    own = judged.vote.classes.of[order]
    weights = 1 / (judged.vote.agreement[np.ix_(own, own)] >= 0.9).sum(axis=1)
    supports = support.cluster_support(codes, rank, weights)
    first = [0, *(m for m in range(1, len(order)) if chance[order[m]] > 0)]
    labels_of_best = tuple(map(str, range(codes[0].max() + 1)))
    names_of = tuple(names[order[m]] for m in first)
    groups = agreed.find_agreed(
        codes[first], chance[[order[m] for m in first]], labels_of_best, names_of
    )
    for run in range(min(BEST, len(order))):
        match, _ = best_matches(codes[run], truth[None])
        for c, size in enumerate(np.bincount(codes[run][codes[run] >= 0]).tolist()):
            if size >= LEAST:
                yield {
                    "unit": path.stem.rpartition("-")[2],
                    "rank": run + 1,
                    "run": names[order[run]],
                    "size": size,
                    "support": supports[run][c],
                    "jaccard": match[c, 0],
                    "agreed": "" if run else int(groups.is_agreed[c]),
                    "questions": len(groups.questions),
                    "contenders": len(first),
                }


def told(rows: pd.DataFrame) -> Iterator[str]:
    """What the declaration asks for."""
    curve = pd.read_json(SHIPPED)["curves"]["several embeddings"]
    rows["is_class"] = (rows.jaccard >= CLASS).astype(float)
    said = np.interp(rows.support, curve["support"], curve["share"])
    base = sum(band["share"] * band["clusters"] for band in curve["bands"]) / curve["clusters"]
    ours, constant = brier(rows, said), brier(rows, np.full(len(rows), base))
    yield f"{len(rows)} clusters of {rows.unit.nunique()} sets"
    lower = ours[1] < constant[1]
    yield f"1 Brier over clusters, sets: {ours}; constant {base:.2f}: {constant}; {lower}"
    table = bands(rows)
    shares = [band["share"] for band in table if band["clusters"] >= ENOUGH]
    yield f"2 bands {table}: rising {all(np.diff(shares) >= 0)}"
    for low, high in pairwise(BANDS):
        inside = ((rows.support >= low) & ((rows.support < high) | (high == 1))).to_numpy()
        if inside.sum() >= ENOUGH:
            mass = weigh(rows)[inside]
            a = float(np.average(said[inside], weights=mass))
            b = float(np.average(rows.is_class[inside], weights=mass))
            yield f"3 {low} to {high}: said {a:.2f}, was {b:.2f}; {abs(a - b) <= NEAR}"
    for line in reliability(rows, said):
        yield f"  reliability {np.round(line, 2).tolist()}"
    best = rows[rows["rank"] == 1].copy()
    best["agreed"] = best.agreed.astype(int)
    good, rest = best[best.agreed == 1], best[best.agreed == 0]
    means = [own.groupby("agreed").jaccard.mean() for _, own in best.groupby("unit")]
    both = [mean for mean in means if len(mean) == 2]
    better = sum(mean[1] > mean[0] for mean in both)
    yield (
        f"4 agreed {len(good)}: Jaccard {good.jaccard.mean():.3f}, others {len(rest)}: "
        f"{rest.jaccard.mean():.3f}; better in {better} of {len(both)} sets with both"
    )
    within = [
        own.support.corr(own.jaccard, method="spearman")
        for _, own in rows.groupby("unit")
        if len(own) > 4 and own.jaccard.std() > 0 and own.support.std() > 0
    ]
    over_all = rows.support.corr(rows.jaccard, method="spearman")
    yield f"r_s within sets {np.mean(within):.2f}, over all {over_all:.2f}"


def main(arguments: list[str]) -> None:
    dry, deep = "--dry" in arguments, "--deep" in arguments
    folders = [Path(given) for given in arguments if not given.startswith("--")]
    files = [file for folder in folders for file in sorted(folder.glob("[!.]*.npz"))]
    rows = []
    for file in files:
        rows += rows_of(file)
        print(file.stem, len(rows), flush=True)
    if not dry:
        with (HERE / f"{'deep_' * deep}{RESULT}").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()}
                )
    print("\n".join(told(pd.DataFrame(rows))))


if __name__ == "__main__":
    main(sys.argv[1:])
