"""Score the fresh runs of DECLARED.md and keep what the judges need: voting_runs.zip.

    WELLSEP_DATA=FOLDER python experiments/votes/scoring.py RUNS

RUNS is what `train.py` and `noise.py` wrote. The archive holds a folder per set and
task: labels of the runs, their settings and their agreement with the truth, the silhouette of
every run in every space, the dip tests, and what the rivals say. Neither the sets nor their classes
nor the embeddings are kept. Experiments that are there are skipped.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import MADE, Entry, write_scores
from experiments.bookkeeping import provenance, say
from experiments.votes.train import EMPTY, SETS, load

ARCHIVE = Path(__file__).parent / "voting_runs.zip"
CODE = ("experiments/ace/*.py", "experiments/ace_variants/*.py", "experiments/votes/*.py")
TASKS = ("vary", "fixed", "noise")
CLOUD, DRAWS, COUNTS = 500, 2, 5  # objects of a cloud, clouds, numbers of clusters tried on each


def score_file(path: Path, archive: Path = ARCHIVE) -> Entry:
    """Score one file of runs into the archive; nothing is done if it is there."""
    entry = Entry(archive, path.stem)
    if entry.exists():
        return entry
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        labels, truth = file["labels"].astype(int), file["truth"].astype(int)
        deep = meta["task"] != "noise"
        made_in = [
            f"Z{i}" if deep else f"space{run['space']}" for i, run in enumerate(meta["runs"])
        ]
        spaces = {name: file[name].astype(np.float32) for name in dict.fromkeys(made_in)}
    X = load(meta["set"])[0]
    with np.load(path.parent / f"noise-{meta['set']}.npz") as file:
        plane = file["plane"]
    names = [f"run {i}" for i in range(len(labels))]
    runs = ws.Runs(
        tuple(
            ws.Run(name, labels=one, embedding=spaces[space] if first else None,
                   space=None if first else holder)
            for name, one, space, first, holder in _placed(names, labels, made_in)
        )
    )  # fmt: skip
    scores = ws.score_runs(runs, ["silhouette"], details=False, n_jobs=1)
    counts = cluster_counts(labels)
    tried = counts_tried(counts, min(CLOUD, labels.shape[1]))
    kept = {
        "plane": silhouettes(plane, labels),  # in a UMAP layout, as in arXiv:2406.02465
        "input": silhouettes(X, labels),
        "learned": np.array([learned(labels, Z) for Z in spaces.values()], np.int16),
        "cloud_counts": tried,
        "cloud": np.array([cloud_silhouettes(Z, tried) for Z in spaces.values()], np.float32),
        "rankme": np.array([rankme(Z) for Z in spaces.values()]),
        "alpha_req": np.array([alpha_req(Z) for Z in spaces.values()]),
    }
    rows = [
        {
            "run": name, **{m: f"{v:.6f}" for m, v in agreement(truth, one).items()},
            "n_found": int(counts[i]), **meta["runs"][i],
        }
        for i, (name, one) in enumerate(zip(names, labels, strict=True))
    ]  # fmt: skip
    facts = {
        "set": meta["set"],
        "task": meta["task"],
        "classes": len(np.unique(truth)),
        "failed": len(meta["failed"]),
        "n_objects": labels.shape[1],
        **provenance(*CODE),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        values = {name: matrix.astype(np.float32) for name, matrix in scores.values.items()}
        write_scores(folder, dataclasses.replace(scores, params={}, values=values))
        np.savez_compressed(folder / "rivals.npz", **kept)
        # Objects in rows: a third of the size.
        np.savez_compressed(folder / "labels.npz", labels=narrow(labels).T)
        with (folder / "runs.csv").open("w", newline="") as file:
            columns = dict.fromkeys(key for row in rows for key in row)
            writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        (folder / MADE).write_text(json.dumps(facts, indent=1) + "\n")
        entry.replace(folder)
    return entry


def _placed(names: list[str], labels: np.ndarray, made_in: list[str]) -> Iterable[tuple]:
    """Each run, its space, whether it is the first there, and the run that is."""
    holders: dict[str, str] = {}
    for name, one, space in zip(names, labels, made_in, strict=True):
        first = space not in holders
        yield name, one, space, first, holders.setdefault(space, name)


def narrow(labels: np.ndarray) -> np.ndarray:
    """The labels of all runs in the smallest integers that hold them."""
    return np.ascontiguousarray(labels.T.astype(np.int8 if labels.max() < 128 else np.int16)).T


def cluster_counts(labels: np.ndarray) -> np.ndarray:
    """(M,) clusters of each run, without noise."""
    return np.array([len(np.unique(one[one >= 0])) for one in labels])


def agreement(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """ARI, NMI and accuracy with the classes; noise is one cluster."""
    return {
        "ari": adjusted_rand_score(truth, labels),
        "nmi": normalized_mutual_info_score(truth, labels),
        "acc": ws.clustering_accuracy(truth, labels),
    }


# ---- rivals ---------------------------------------------------------------------------------


def silhouettes(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(M,) silhouettes in one space, noise priced; -1 where there is none."""
    found = ws.score_partitions(X, labels, ["silhouette"], noise="penalize", n_jobs=1)
    return np.nan_to_num(found.values[:, 0], nan=-1.0)


def learned(labels: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """(M,) objects whose label a linear model tells from the others of a space, in five folds.

    The idea is that of arXiv:2406.07236; the model here is ridge regression on indicators.
    """
    n = labels.shape[1]
    fold = np.random.default_rng(0).permutation(n) % 5
    codes = [np.unique(one, return_inverse=True)[1] for one in labels]
    edges = np.cumsum([0, *(c.max() + 1 for c in codes)])
    indicators = np.concatenate([np.eye(c.max() + 1)[c] for c in codes], axis=1)
    Z = np.asarray(Z, float)
    scale = Z.std(0)
    Z = np.c_[(Z - Z.mean(0)) / np.where(scale > 0, scale, 1), np.ones(n)]
    right = np.zeros(len(labels), int)
    for held in range(5):
        train, test = fold != held, fold == held
        A = Z[train]
        gram = A.T @ A + 1e-3 * len(A) * np.eye(A.shape[1])
        guess = Z[test] @ np.linalg.solve(gram, A.T @ indicators[train])
        for i, code in enumerate(codes):
            mine = guess[:, edges[i] : edges[i + 1]].argmax(1)
            right[i] += (mine == code[test]).sum()
    return right


def counts_tried(counts: np.ndarray, n: int) -> np.ndarray:
    """At most five numbers of clusters between the smallest and the largest of the runs."""
    found = np.unique(np.clip(counts, 2, max(2, n // 4)))
    if len(found) > COUNTS:
        found = np.unique(np.geomspace(found[0], found[-1], COUNTS).round().astype(int))
    return found


def cloud_silhouettes(Z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean silhouette of k-means on Gaussian clouds with the covariance of a space.

    Distances do not change when a cloud is turned, so that variances along the principal
    directions are all it takes.
    """
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(Z, rowvar=False)))
    scales = np.sqrt(np.maximum(variances, 0.0))
    n = min(CLOUD, len(Z))
    total = np.zeros(len(counts))
    for draw in range(DRAWS):
        cloud = np.random.default_rng(draw).normal(size=(n, len(scales))) * scales
        labels = [ws.KMeans(int(k), random_state=draw).fit(cloud).labels_ for k in counts]
        total += silhouettes(cloud, np.array(labels))
    return total / DRAWS


def rankme(Z: np.ndarray) -> float:
    """Effective rank of a space, exp of the entropy of its singular values (arXiv:2210.02885)."""
    values = np.linalg.svd(np.asarray(Z, float), compute_uv=False)
    shares = values / values.sum() + 1e-7
    return float(np.exp(-(shares * np.log(shares)).sum()))


def alpha_req(Z: np.ndarray) -> float:
    """How fast the eigenvalues of the covariance fall, as a power of their rank.

    Agrawal et al. (2022), "α-ReQ", NeurIPS 35; best near 1.
    """
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(Z, rowvar=False)))[::-1]
    values = values[values > 1e-12 * max(values[0], 1e-300)]
    if len(values) < 2:
        return float("inf")
    return float(-np.polyfit(np.log(np.arange(1, len(values) + 1)), np.log(values), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path)
    options = parser.parse_args()
    for name in SETS + EMPTY:
        for task in TASKS:
            path = options.runs / f"{task}-{name}.npz"
            if path.exists():
                score_file(path)
                say(path.stem)


if __name__ == "__main__":
    main()
