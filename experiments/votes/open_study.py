"""Let the partitions of the experiments kept before vote too: open_votes.csv.

    python experiments/votes/open_study.py

Made from `open_runs.zip` and the kept scores, in seconds. These experiments were looked at before
the rule of DECLARED.md was written, so that they explain it and do not test it. Judges use the
silhouette, the projection "pca" for the dip test, and each distinct space and clustering once.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.ace.archive import Entry, names
from experiments.ace.evaluating import kept
from experiments.ace.scoring import read_labels
from experiments.votes import open_tables
from experiments.votes.open_runs import ARCHIVE, COLLECTIONS, HERE
from experiments.votes.study import MEASURES, Judged, ends, write

# Sets that share objects are one unit.
UNITS = {
    "digits": "optdigits", "usps_9298": "USPS", "usps_11000": "USPS", "mnist_test": "MNIST",
    "mnist_embeddings10": "MNIST", "mnist_umap3": "MNIST", "coil20_32": "COIL",
    "coil100_32": "COIL",
}  # fmt: skip
KINDS = {
    ("deep", "tuning"): "deep, K fixed",
    ("deep", "clusters"): "deep, K varies",
    ("deep", "checkpoints"): "deep, checkpoints",
    ("k-means", "tuning"): "k-means, K fixed",
    ("k-means", "clusters"): "k-means, K tied to the space",
    ("k-means", "drawn"): "k-means, K drawn",
}


def judged(entry: Entry) -> Judged:
    """The runs of one experiment, with the scores that were kept of it elsewhere or here."""
    rows = entry.rows("truth.csv")
    truth = {m: np.array([row[m] for row in rows], float) for m in MEASURES}
    if "scores.npz" in entry.sizes():
        scores, raw = entry.scores(), entry.arrays("input.npz")["input"]
        labels = entry.arrays("labels.npz")["labels"].T
        return Judged(labels.astype(int), scores, {"input": raw}, truth)
    before = [Entry(file, entry.name) for file in COLLECTIONS.values()]
    source = next(one for one in before if one.exists())
    one = kept(source)
    label = one.labels["silhouette"]
    scores = dataclasses.replace(
        one.scores,
        values={"silhouette": one.scores.values[label]},
        directions={"silhouette": one.scores.directions[label]},
        reasons={},
        dip=dataclasses.replace(one.scores.dip, pvalue=one.screens["pca"], projection="pca"),
    )
    raw = one.raw["silhouette"]
    raw = np.where(np.isfinite(raw), raw, -1.0)
    if source.archive == COLLECTIONS["deep"]:
        labels = np.array([read_labels(source)[name] for name in scores.partitions])
    else:
        labels = entry.arrays("labels.npz")["labels"].T
    return Judged(labels.astype(int), scores, {"input": raw}, truth)


def rows_of(entry: Entry) -> list[dict[str, Any]]:
    """One row per judge of one experiment."""
    made, some = entry.json("made.json"), judged(entry)
    told = {
        "experiment": entry.name,
        "set": UNITS.get(made["set"], made["set"]),
        "kind": KINDS[made["group"], made["task"]],
    }
    spreads = {f"spread_{m}": float(np.ptp(some.truth[m])) for m in MEASURES}
    facts = {
        "runs": len(some.labels),
        "classes": made["classes"],
        **spreads,
        "k_varies": int(some.varies),
    }
    return [
        {**told, "judge": judge, **ends(score, some.truth), **facts}
        for judge, score in some.judges().items()
    ]


def main() -> None:
    rows = [row for name in names(ARCHIVE) for row in rows_of(Entry(ARCHIVE, name))]
    write(open_tables.TABLE, rows)
    for title, text in open_tables.blocks(HERE).items():
        print(f"\n{title}\n\n{text}")


if __name__ == "__main__":
    main()
