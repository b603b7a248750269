"""Keep what votes need of the experiments kept before: open_runs.zip.

    WELLSEP_DATA=FOLDER python experiments/votes/open_runs.py

The archive has a folder per experiment with the agreement of every run with the truth, ARI among
it. Of the k-means runs, made again by `cpu_runs.made`, it also keeps the labels. Last come k-means
runs of the same sets whose number of clusters is drawn apart from their space, with their
silhouettes in every space. Experiments that are there are skipped.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import MADE, Entry, names, write_scores
from experiments.ace.evaluating import experiments, kept
from experiments.ace.paper import SCORES, split
from experiments.ace.scoring import read_labels
from experiments.ace_variants.beating import HERE as VARIANTS
from experiments.ace_variants.cpu_runs import EMBEDDED, FRESH, FROM_FOLDER, drawn, made
from experiments.bookkeeping import provenance, say
from experiments.votes.scoring import CODE, agreement, cluster_counts, narrow, silhouettes

HERE = Path(__file__).parent
ARCHIVE = HERE / "open_runs.zip"
COLLECTIONS = {
    "deep": SCORES,
    "k-means": VARIANTS / "cpu_scores.zip",
    "fresh": VARIANTS / "fresh_scores.zip",
}
SAME = 1e-5  # NMI of a run made again may differ from the kept one by this


def keep(
    name: str, labels: np.ndarray, truth: np.ndarray, runs: list[str], facts: dict[str, Any],
    *, scores: ws.Scores | None = None, X: np.ndarray | None = None, with_labels: bool = True,
) -> None:  # fmt: skip
    """Write one experiment into the archive."""
    found = cluster_counts(labels)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (folder / "truth.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["run", "ari", "nmi", "acc", "n_found"])
            for run, one, k in zip(runs, labels, found, strict=True):
                values = (f"{v:.6f}" for v in agreement(truth, one).values())
                writer.writerow([run, *values, int(k)])
        if with_labels:
            np.savez_compressed(folder / "labels.npz", labels=narrow(labels).T)
        if scores is not None and X is not None:
            write_scores(folder, scores)
            np.savez_compressed(folder / "input.npz", input=silhouettes(X, labels))
        counts = {"classes": len(np.unique(truth)), "n_objects": labels.shape[1]}
        facts = {**facts, **counts, **provenance(*CODE)}
        (folder / MADE).write_text(json.dumps(facts, indent=1) + "\n")
        Entry(ARCHIVE, name).replace(folder)


def keep_deep(entry: Entry) -> None:
    """ARI of the runs whose labels lie in scores.zip."""
    task, _, name = split(entry.name)
    labels = read_labels(entry)
    whole = np.array(list(labels.values()), dtype=int)
    truth = ws.load_dataset(name, flatten=True).y
    facts = {"set": name, "task": task, "group": "deep"}
    keep(entry.name, whole, truth, list(labels), facts, with_labels=False)


def keep_kmeans(entry: Entry, name: str, task: str) -> None:
    """Labels of k-means runs, made again.

    Graph embeddings of graphs that fall apart come out otherwise on other machines. Where a run is
    not the one that was scored, the runs of now are kept with their own silhouettes.
    """
    runs, X, truth = made(name, task)
    labels = stacked(runs)
    now = [ws.nmi_score(truth, one) for one in labels]
    differ = int((np.abs(np.array(now) - kept(entry).truth["nmi"]) > SAME).sum())
    scores = ws.score_runs(runs, ["silhouette"], details=False, n_jobs=1) if differ else None
    facts = {"set": name, "task": task, "group": "k-means", "differ": differ}
    keep(entry.name, labels, truth, list(runs.partitions), facts, scores=scores, X=X)


def stacked(runs: ws.Runs) -> np.ndarray:
    """(M, n) labels of all runs."""
    return np.array([np.asarray(one) for one in runs.partitions.values()], dtype=int)


def keep_drawn(title: str, name: str) -> None:
    """k-means runs whose K has nothing to do with their space."""
    runs, X, truth = drawn(name)
    labels = stacked(runs)
    scores = ws.score_runs(runs, ["silhouette"], details=False, n_jobs=1)
    facts = {"set": name, "task": "drawn", "group": "k-means"}
    keep(title, labels, truth, list(runs.partitions), facts, scores=scores, X=X)


def main() -> None:
    there = set(names(ARCHIVE))
    for entry in experiments(COLLECTIONS["deep"]):
        if entry.name not in there:
            keep_deep(entry)
            say(entry.name)
    for collection, sets in (("k-means", (*EMBEDDED, *FROM_FOLDER)), ("fresh", FRESH)):
        for name in sets:
            plain = name.replace("/", "_")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for task in ("tuning", "clusters"):
                    entry = Entry(COLLECTIONS[collection], f"cpu-{task}-{plain}")
                    if entry.name not in there and entry.exists():
                        keep_kmeans(entry, name, task)
                        say(entry.name)
                title = f"cpu-drawn-{plain}"
                if title not in there:
                    keep_drawn(title, name)
                    say(title)


if __name__ == "__main__":
    main()
