"""Experiments with known classes as plain arrays, one npz file each: what `compare.py` reads.

    python -m experiments.votes.arrays FOLDER [REFERENCE]

Writes the runs of `open_runs.zip` and `voting_runs.zip`, and those of a folder REFERENCE with
`runs/*.npz`, `results.json` and `deep_runs*` if one is given. `wide_runs.py` writes such files too.
Each file has labels (M, n), K, space (number of the embedding, -1 for none), mean_score, ace and
ari (M,), and the words kind and unit: sets that share objects are one unit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.votes import open_runs, scoring
from experiments.votes.open_study import judged
from experiments.votes.rules import Case
from experiments.votes.study import RANGES, Judged, distinct_spaces, subset
from experiments.votes.train import EMPTY

UNITS = {
    "coil20_32": "coil", "coil30": "coil", "coil100_32": "coil", "umist_28": "umist_112x92",
    "optdigits": "digits", "mnist_test": "mnist", "mnist_embeddings10": "mnist",
    "mnist_umap3": "mnist", "usps_9298": "usps", "usps_11000": "usps",
    "fashion_mnist_test": "fashion", "breast_cancer": "breast",
}  # fmt: skip
LOW, HIGH = 1.21, 0.84  # K of the cut ranges, in shares of the number of classes
KINDS = {"tuning": "fixed", "checkpoints": "fixed", "clusters": "varying", "drawn": "varying"}
DEEP = {"varying": (0, np.inf), "low": (0, LOW), "high": (HIGH, np.inf)}


class Experiment(NamedTuple):
    """One experiment, over all of its runs."""

    name: str
    kind: str
    unit: str
    labels: np.ndarray
    space: np.ndarray
    mean_score: np.ndarray
    ace: np.ndarray
    ari: np.ndarray

    def save(self, folder: Path) -> None:
        clusters = np.array([len(np.unique(row[row >= 0])) for row in self.labels])
        np.savez_compressed(
            folder / f"{self.name}.npz",
            K=clusters,
            **{key: value for key, value in self._asdict().items() if key != "name"},
        )


def case_of(file: Any) -> tuple[Case, np.ndarray]:
    """The distinct partitions of a file, and which of them each run is."""
    labels = file["labels"].astype(int)
    vote = ws.consensus(labels)
    class_of, first = vote.classes.of, vote.classes.first
    size = np.bincount(class_of)

    def mean(key: str) -> np.ndarray:
        values = file[key].astype(float)
        filled = np.nan_to_num(values, nan=np.nanmin(values))
        return np.bincount(class_of, filled) / size

    return Case(
        np.asarray(vote.agreement), file["K"][first], mean("mean_score"), mean("ace")
    ), class_of


def scored(name: str, kind: str, unit: str, some: Judged) -> Experiment:
    """An experiment whose silhouettes in every embedding are there."""
    scores, labels = some.scores, some.labels
    classes = ws.consensus(labels).classes
    class_of, first = classes.of, classes.first
    spaces = distinct_spaces(scores)
    ace = np.asarray(ws.ace(subset(scores, spaces, first)).scores)[class_of]
    silhouettes = np.nan_to_num(np.asarray(scores.values["silhouette"], float), nan=-1.0)
    mean = silhouettes[spaces].mean(axis=0)
    unit = UNITS.get(unit, unit)
    return Experiment(name, kind, unit, labels, scores.made_in, mean, ace, some.truth["ari"])


def archived() -> Iterator[Experiment]:
    for name in names(open_runs.ARCHIVE):
        entry = Entry(open_runs.ARCHIVE, name)
        made = entry.json("made.json")
        yield scored(f"kept-{name}", KINDS[made["task"]], made["set"], judged(entry))
    for name in names(scoring.ARCHIVE):
        entry = Entry(scoring.ARCHIVE, name)
        made = entry.json("made.json")
        if made["task"] not in RANGES or made["set"] in EMPTY:
            continue
        whole, classes = Judged.of(entry), made["classes"]
        asked = np.array([(row.get("n_clusters") or classes) for row in entry.rows("runs.csv")])
        kinds = DEEP if made["task"] == "vary" else {made["task"]: (0, np.inf)}
        for kind, (low, high) in kinds.items():
            runs = np.flatnonzero((asked >= low * classes) & (asked <= high * classes))
            title = f"declared-{kind}-{made['set']}"
            yield scored(title, kind, made["set"], whole.part(runs))


def reference(folder: Path) -> Iterator[Experiment]:
    """Runs over eight embeddings, UMAP with HDBSCAN, and short deep runs, with scores and truth."""
    results = json.loads((folder / "results.json").read_text())
    kinds = {"fix": "fixed", "deepfix": "fixed", "var": "varying", "deepvar": "varying"}
    for path in sorted((folder / "runs").glob("*.npz")):
        if "null_" in path.stem:
            continue
        result = results[path.stem]
        with np.load(path) as file:
            scores = np.nan_to_num(file["S_silhouette"].astype(float), nan=-1.0)
            labels, space = file["labels"].astype(int), file["pairing"]
        kind = kinds.get(path.stem.split("-")[0], "noise")
        ace = np.array(result["judges"]["ace silhouette"], float)
        ari = np.array(result["truth_ari"])
        name, unit = f"open-{path.stem}", result["unit"]
        yield Experiment(name, kind, unit, labels, space, scores.mean(axis=0), ace, ari)


def deep_runs(folder: Path) -> Iterator[tuple[str, str, ws.Runs, np.ndarray]]:
    """(experiment, unit, runs, ARI) of deep runs with their embeddings, by task."""
    rows = json.loads((folder / "deep_runs.json").read_text())
    arrays: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("deep_runs_*.npz")):
        with np.load(path) as file:
            arrays |= {key: file[key] for key in file.files}
    rows = [row for row in rows if usable(arrays, row["id"])]
    for name in sorted({row["set"] for row in rows}):
        truth = arrays[f"truth/{name}"]
        classes = len(np.unique(truth))
        for kind, (low, high) in {**DEEP, "fixed": (0, np.inf)}.items():
            task = "fixed" if kind == "fixed" else "vary"
            mine = [
                row for row in rows
                if (row["set"], row["task"]) == (name, task) and low <= row["K"] / classes <= high
            ]  # fmt: skip
            spaces = {str(row["id"]): arrays[f"{row['id']}/Z"].astype(float) for row in mine}
            labels = {str(row["id"]): arrays[f"{row['id']}/labels"].astype(int) for row in mine}
            runs = ws.Runs.from_parts(spaces, labels, pairs={run: run for run in labels})
            ari = np.array([ws.ari_score(truth, partition) for partition in labels.values()])
            yield f"large-{kind}-{name}", UNITS.get(name, name), runs, ari


def large_deep(folder: Path) -> Iterator[Experiment]:
    """Deep runs with their embeddings, scored here."""
    for name, unit, runs, ari in deep_runs(folder):
        scores = ws.score_runs(runs, details=False, n_jobs=1)
        labels = np.array([np.asarray(one) for one in runs.partitions.values()])
        yield scored(name, name.split("-")[1], unit, Judged(labels, scores, {}, {"ari": ari}))


def usable(arrays: dict[str, np.ndarray], run: Any) -> bool:
    """Whether a run was kept, has two clusters or more, and a finite embedding."""
    if f"{run}/labels" not in arrays or len(np.unique(arrays[f"{run}/labels"])) < 2:
        return False
    return bool(np.isfinite(arrays[f"{run}/Z"].astype("f4")).all())


def main(folder: Path, source: Path | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in archived():
        experiment.save(folder)
    if source is not None:
        for experiment in (*reference(source), *large_deep(source)):
            experiment.save(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
