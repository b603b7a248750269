"""Collect clusters with their support and their best class: clusters.csv.gz.

    WELLSEP_DATA=FOLDER python experiments/support/collect.py RUNS...

RUNS are .npz files, or folders of them, with `labels` (M, n) and `truth` (n,) of one set; a file
may also have `names` (M,), `space` (M,) and `mean_score` (M,). Files whose names begin with `var-`,
`fix-`, `hdb-`, `deepvar-` or `deepfix-` are runs of those five tasks, others are wide grids.
The archive `voting_runs.zip` of `experiments/votes` is read too where WELLSEP_DATA has its sets.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import Entry, names
from wellsep.evaluate import ranks as ranking
from wellsep.evaluate.clusters import support
from wellsep.partitions import best_matches

HERE = Path(__file__).parent
TABLE = HERE / "clusters.csv.gz"
VOTES = HERE.parent / "votes" / "voting_runs.zip"
TASKS = {
    "var": "varying K",
    "fix": "fixed K",
    "hdb": "noise",
    "deepvar": "deep",
    "deepfix": "deep",
    "deepvary": "deep",
}
# Sets that share objects are one unit.
UNITS = {
    "optdigits": "digits", "usps_9298": "usps", "usps_11000": "usps", "mnist_test": "mnist",
    "mnist_embeddings10": "mnist", "mnist_umap3": "mnist", "coil20_32": "coil", "orl_112x92": "orl",
    "coil100_32": "coil", "orl_32": "orl", "umist_28": "umist", "umist_112x92": "umist",
    "uci_ionosphere": "ionosphere", "uci_sonar": "sonar", "uci-ionosphere": "ionosphere",
    "uci-sonar": "sonar", "breast_cancer": "cancer", "fashion_mnist_test": "fashion",
}  # fmt: skip
DRAWN = ("fcps", "sipu", "wut", "graves")  # sets drawn in two or three dimensions
BEST, LEAST, NEAREST = 5, 5, 15  # runs of a table; objects of a cluster; runs of like K
CLASS = 0.5  # Jaccard similarity with a true class from which on a cluster is one


class Experiment(NamedTuple):
    """Runs of one set, with its classes."""

    collection: str
    unit: str
    labels: np.ndarray  # (M, n)
    truth: np.ndarray  # (n,)
    score: np.ndarray | None  # (M,) mean silhouette over the embeddings
    method: np.ndarray | None  # (M,) embedding and method of each run
    width: np.ndarray | None = None  # (M, n) silhouette widths in the run's embedding


def widths(Z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) silhouette widths; NaN for noise."""
    return ws.silhouette_samples(Z, labels, noise="exclude")


def from_file(path: Path) -> Experiment:
    """The runs of one .npz file."""
    with np.load(path, allow_pickle=False) as file:
        labels = file["labels"].astype(int)
        truth = np.zeros(labels.shape[1], dtype=int)  # without classes nothing is one
        if "truth" in file.files and len(np.unique(file["truth"])) > 1:
            truth = np.unique(file["truth"], return_inverse=True)[1]
        task, _, rest = path.stem.partition("-")
        width = None
        if "meta" in file.files:
            runs = json.loads(str(file["meta"]))["runs"]
            method = np.array([f"{run.get('space')} {run['how']}" for run in runs])
            score = None
            if "S_silhouette" in file.files:
                score = np.nan_to_num(file["S_silhouette"], nan=-1.0).mean(axis=0)
            kind = TASKS[task] if truth.any() else "nothing to find"
            return Experiment(kind, UNITS.get(rest, rest), labels, truth, score, method, width)
        method = np.array([str(name).rpartition(" ")[0] for name in file["names"]])
        kind = "drawn sets" if task in DRAWN else "wide grid"
        unit = UNITS.get(path.stem, path.stem)
        score = file["mean_score"].astype(float)
        spaces = [file[f"Z_{space}"].astype(float) for space in file["spaces"]]
        width = np.array(
            [widths(spaces[at], v) for at, v in zip(file["space"], labels, strict=True)]
        )
        return Experiment(kind, unit, labels, truth, score, method, width)


def archived() -> Iterator[Experiment]:
    """Deep runs and UMAP with HDBSCAN of thirteen sets."""
    from experiments.votes.train import EMPTY, load

    kinds = {"vary": "deep", "fixed": "deep", "noise": "noise"}
    for name in names(VOTES):
        task, _, place = name.partition("-")
        if place in EMPTY:
            continue
        entry = Entry(VOTES, name)
        labels = entry.arrays("labels.npz")["labels"].T.astype(int)
        truth = np.unique(load(place)[1], return_inverse=True)[1]
        scores = np.nan_to_num(entry.scores().values["silhouette"].astype(float), nan=-1.0)
        yield Experiment(
            kinds[task], UNITS.get(place, place), labels, truth, scores.mean(axis=0), None
        )


def experiments(paths: Iterable[str]) -> Iterator[Experiment]:
    """All experiments, files first."""
    for given in map(Path, paths):
        files = sorted(given.glob("[!.]*.npz")) if given.is_dir() else [given]
        yield from map(from_file, files)
    if "WELLSEP_DATA" in os.environ:
        yield from archived()


class Distinct(NamedTuple):
    """The distinct partitions of an experiment."""

    codes: np.ndarray  # (D, n), noise below 0
    n_clusters: np.ndarray
    agreement: np.ndarray  # (D, D) ARI
    weights: np.ndarray  # near copies share one
    plain: np.ndarray  # (D,) mean agreement
    score: np.ndarray | None
    method: np.ndarray | None
    width: np.ndarray | None


def distinct(one: Experiment) -> Distinct:
    """Each partition once, with clusters and not only noise."""
    clusters = np.array([len(np.unique(v[v >= 0])) for v in one.labels])
    some = np.flatnonzero(clusters >= 2)
    vote = ws.consensus(one.labels[some])
    first = vote.classes.first
    labels = one.labels[some][first]
    codes = np.full(labels.shape, -1)
    for row, code in zip(labels, codes, strict=True):
        code[row >= 0] = np.unique(row[row >= 0], return_inverse=True)[1]
    return Distinct(
        codes,
        clusters[some][first],
        vote.agreement,
        1 / (vote.agreement >= 0.9).sum(axis=1),
        vote.scores[first],
        None if one.score is None else one.score[some][first],
        None if one.method is None else one.method[some][first],
        None if one.width is None else one.width[some][first],
    )


def like_k(runs: Distinct) -> np.ndarray:
    """(D,) rank of the agreement with the runs nearest in K, and half the rank of the index."""
    apart = np.abs(np.log(runs.n_clusters)[:, None] - np.log(runs.n_clusters))
    np.fill_diagonal(apart, np.inf)
    near = np.sort(apart, axis=1)[:, min(NEAREST, len(apart) - 1) - 1]
    shares = (apart <= near[:, None]) * runs.weights
    agreed = (shares * runs.agreement).sum(axis=1) / shares.sum(axis=1)
    total = ranking.average_ranks(agreed)
    return total if runs.score is None else total + ranking.average_ranks(runs.score) / 2


ORDERS = {"plain": lambda runs: runs.plain, "like K": like_k}


def rows_of(one: Experiment, order: str, runs: Distinct) -> Iterator[dict[str, Any]]:
    """One row per cluster of the best runs."""
    n = runs.codes.shape[1]
    rank = ranking.ranks(ORDERS[order](runs))
    truth = one.truth[None]
    order_of = np.argsort(rank, kind="stable")
    some = [*range(min(BEST, len(rank))), len(rank) // 2, 3 * len(rank) // 4]
    for run in order_of[np.unique(some)]:
        codes = runs.codes[run]
        voters = support.better_half(rank, runs.weights, int(run))
        every = np.delete(np.arange(len(rank)), run)
        known, _ = best_matches(codes, truth)
        better, _ = best_matches(codes, runs.codes[voters.runs])
        all_runs, _ = best_matches(codes, runs.codes[every])
        apart = runs.agreement[run, voters.runs] < 0.9
        others = voters.weights * apart
        like = np.abs(np.log(runs.n_clusters[voters.runs] / runs.n_clusters[run]))
        like = voters.weights * (like <= max(np.log(1.35), np.median(like)))
        sizes = np.bincount(codes[codes >= 0])
        chance = expected_best(sizes, runs.codes[voters.runs], voters.weights)
        for cluster, size in enumerate(sizes.tolist()):
            if size < LEAST:
                continue
            yield {
                "collection": one.collection,
                "unit": one.unit,
                "order": order,
                "rank": int(rank[run]),
                "runs": len(rank),
                "K": len(sizes),
                "n": n,
                "classes": int(one.truth.max()) + 1,
                "size": size,
                "support": better[cluster] @ voters.weights,
                "apart": better[cluster] @ others / others.sum() if others.any() else np.nan,
                "like_k": better[cluster] @ like / like.sum(),
                "all": all_runs[cluster].mean(),
                "chance": chance[cluster],
                "width": np.nan if runs.width is None else runs.width[run][codes == cluster].mean(),
                "jaccard": known[cluster, 0],
            }


def expected_best(sizes: np.ndarray, others: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(K,) best Jaccard to be expected if a cluster were drawn at random: that of mean overlaps."""
    n = others.shape[1]
    found = np.zeros(len(sizes))
    for codes, weight in zip(others, weights, strict=True):
        theirs = np.bincount(codes[codes >= 0])
        common = np.multiply.outer(sizes, theirs) / n
        found += weight * (common / (sizes[:, None] + theirs - common)).max(axis=1)
    return found


def alone(one: Experiment) -> Iterator[Experiment]:
    """The runs of each embedding, and those of each method in it, where there are five or more."""
    if one.method is None or one.collection != "wide grid":
        return
    embedding = np.array([method.partition(" ")[0] for method in one.method])
    for kind, of in (("one embedding", embedding), ("one method", one.method)):
        for value in np.unique(of):
            some = np.flatnonzero(of == value)
            if len(some) >= 5:
                yield one._replace(
                    collection=kind, labels=one.labels[some], method=None, width=None,
                    score=None if one.score is None else one.score[some],
                )  # fmt: skip


def main(paths: list[str]) -> None:
    rows = []
    for one in experiments(paths):
        for some in (one, *alone(one)):
            runs = distinct(some)
            if len(runs.codes) < 5:
                continue
            orders = ORDERS if some is one else ("like K",)
            rows += [row for order in orders for row in rows_of(some, order, runs)]
        print(one.collection, one.unit, len(rows), flush=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()})
    with gzip.GzipFile(TABLE, "wb", mtime=0) as file:
        file.write(text.getvalue().encode())


if __name__ == "__main__":
    main(sys.argv[1:])
