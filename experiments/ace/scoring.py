"""From a folder of runs to what is kept of it: every partition scored in every space.

An archive (scores.zip) holds a folder per experiment:

scores.npz, scores.json  the Scores record: every index, every partition, every space
raw.csv                  the same indices in the input space
runs.csv                 NMI and accuracy of every partition, its settings
spaces.csv               dip tests of every space, one row per way of looking at it
labels.npz               every partition
sample.npz               a sample of objects in every space, for the report page
made.json                which runs, by which code
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from experiments.ace.archive import MADE, Entry, write_scores
from experiments.ace.paper import INDICES, SCORES, index_of, split
from experiments.bookkeeping import provenance, say

REDUCTIONS = ("pca-scaled", "pca", "components", "distances")
SAMPLED, KEPT_COMPONENTS = 200, 16
ROTATED = tuple(name for name in INDICES if name != "s_dbw")


def score_experiment(
    runs: ws.Runs, name: str, X: Any, truth: Any, archive: Path = SCORES, cache: Path | None = None,
    *, whole: bool = True, device: str | None = None,
) -> Entry:  # fmt: skip
    """Score one experiment into an archive; nothing is done if these runs were scored.

    Without `whole` neither labels nor sampled objects are kept. With `device="cuda"` the indices
    are computed on the GPU.
    """
    entry = Entry(archive, name)
    digest = digest_of(runs)
    if entry.exists() and entry.json(MADE)["digest"] == digest:
        say(f"{name}: scored already")
        return entry

    def told(done: int, total: int, space: str) -> None:
        if done % 6 == 0 or done == total:
            say(f"{name}: {done} of {total} spaces")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty densities and the like: NaN with its reason
        scores = ws.score_runs(
            runs, tuple(INDICES), convention="ace", projection="pca-scaled", details=False,
            progress=told, cache=cache, device=device,
        )  # fmt: skip
    facts = {
        "experiment": name,
        "n_runs": len(runs),
        "n_objects": runs.n_objects,
        "digest": digest,
        **provenance("experiments/ace/*.py"),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_scores(folder, scores)
        say(f"{name}: the input space")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_raw(folder / "raw.csv", X, dict(runs.partitions), device)
            write_spaces(folder / "spaces.csv", runs)
        write_runs(folder / "runs.csv", runs, truth)
        if whole:
            labels = {f"r{i}": small(v) for i, v in enumerate(runs.partitions.values())}
            np.savez_compressed(folder / "labels.npz", **labels)
            write_sample(folder / "sample.npz", runs, truth)
        (folder / MADE).write_text(json.dumps(facts, indent=1) + "\n")
        entry.replace(folder)
    return entry


def digest_of(runs: ws.Runs) -> str:
    """A checksum of names, labels and spaces."""
    total = hashlib.sha256()
    for run in runs:
        total.update(run.name.encode())
        total.update(np.ascontiguousarray(run.labels).tobytes())
        total.update(np.ascontiguousarray(run.embedding).tobytes())
    return total.hexdigest()[:16]


def small(labels: Any) -> np.ndarray:
    """Labels as the smallest integers that hold them."""
    codes = np.unique(np.asarray(labels), return_inverse=True)[1].reshape(-1)
    return codes.astype(np.int8 if codes.max() < 128 else np.int16)


def isometric(X: Any) -> np.ndarray:
    """The same objects in no more than n dimensions: all distances and angles are kept.

    X X' = V Λ V', so the rows of V Λ^½ have the inner products of the rows of X.
    """
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    if X.shape[1] <= len(X):
        return X
    values, vectors = np.linalg.eigh(X @ X.T)
    return vectors * np.sqrt(np.clip(values, 0.0, None))


def write_raw(path: Path, X: Any, partitions: Mapping[str, Any], device: str | None = None) -> None:
    """Every index in the input space; empty where it is undefined (as in the paper, a dash)."""
    X = np.asarray(X, dtype=np.float32).reshape(len(X), -1)
    columns: dict[str, np.ndarray] = {}
    # S_Dbw speaks of single columns, all others of distances alone. The cubic criterion needs
    # fewer columns than objects.
    wide = X.shape[1] >= len(X)
    parts = ((isometric(X), ROTATED), (X, ("s_dbw",))) if wide else ((X, tuple(INDICES)),)
    for space, names in parts:
        wanted = tuple(i for i in names if not (wide and i == "ccc"))
        found = ws.score_partitions(space, partitions, wanted, convention="ace", device=device)
        columns |= {index_of(i): found.values[:, k] for k, i in enumerate(found.indices)}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run", *INDICES])
        for m, run in enumerate(partitions):
            values = (columns[i][m] if i in columns else np.nan for i in INDICES)
            writer.writerow([run, *(f"{v:.10g}" if np.isfinite(v) else "" for v in values)])


def write_runs(path: Path, runs: ws.Runs, truth: Any) -> None:
    """NMI and accuracy of every partition, and the settings that made it."""
    plain = [
        {k: v for k, v in {**run.metadata, **run.params}.items() if _is_plain(v)} for run in runs
    ]
    settings = list(dict.fromkeys(key for one in plain for key in one))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run", "nmi", "acc", "n_found", *settings])
        for run, one in zip(runs, plain, strict=True):
            nmi = ws.nmi_score(truth, run.labels)
            acc = ws.clustering_accuracy(truth, run.labels)
            found = len(np.unique(run.labels))
            values = (one.get(key, "") for key in settings)
            writer.writerow([run.name, f"{nmi:.6f}", f"{acc:.6f}", found, *values])


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) < 40)


def write_spaces(path: Path, runs: ws.Runs) -> None:
    """The dip test of every space in every reduction."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["space", "reduction", "statistic", "pvalue", "relative_gap", "defined"])
        for run in runs:
            for reduction in REDUCTIONS:
                seen = ws.multimodality(run.embedding, projection=reduction, random_state=0)
                values = (seen.statistic, seen.pvalue, seen.relative_gap)
                cells = (f"{v:.6g}" if np.isfinite(v) else "" for v in values)
                writer.writerow([run.name, reduction, *cells, int(seen.defined)])


def write_sample(path: Path, runs: ws.Runs, truth: Any) -> None:
    """A sample of the objects in the leading principal components of every space."""
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(runs.n_objects, min(SAMPLED, runs.n_objects), replace=False))
    arrays = {"objects": some.astype(np.int32), "truth": small(truth)[some]}
    for i, run in enumerate(runs):
        Z = np.asarray(run.embedding, dtype=float)
        Z = Z - Z.mean(axis=0)
        if Z.shape[1] > KEPT_COMPONENTS:
            axes = np.linalg.eigh(Z.T @ Z)[1][:, ::-1][:, :KEPT_COMPONENTS]
            Z = Z @ axes
        scale = np.abs(Z).max() or 1.0
        arrays[f"z{i}"] = (Z[some] / scale).astype(np.float16)
    np.savez_compressed(path, **arrays)


def input_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels between 0 and 1 and true classes of an experiment's set."""
    data = ws.load_dataset(split(name)[2], flatten=True)
    return data.X.astype(np.float32) / 255, data.y


def sampled_runs(entry: Entry) -> tuple[ws.Runs, np.ndarray]:
    """The sampled objects as runs, and their true classes."""
    scores, sample, labels = entry.scores(), entry.arrays("sample.npz"), entry.arrays("labels.npz")
    runs = [
        ws.Run(
            name,
            labels=labels[f"r{i}"][sample["objects"]],
            embedding=sample[f"z{i}"].astype(np.float32),
            params=scores.params.get(name),
        )
        for i, name in enumerate(scores.partitions)
    ]
    return ws.Runs(runs), sample["truth"]


def read_labels(entry: Entry) -> dict[str, np.ndarray]:
    """Every partition by name."""
    labels = entry.arrays("labels.npz")
    return {name: labels[f"r{i}"] for i, name in enumerate(entry.scores().partitions)}
