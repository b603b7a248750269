"""Try the judges of DECLARED.md on the fresh runs: voting.csv, and the tables of the report.

    WELLSEP_DATA=FOLDER python experiments/ace/voting_study.py RUNS

RUNS is what `voting_train.py` and `voting_noise.py` wrote. Without it the tables are made again
from voting.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.evaluating import picks, tied
from experiments.ace.voting_train import SETS, load

TABLE = Path(__file__).parent / "voting.csv"
MEASURES = ("ari", "nmi", "acc")
CANDIDATES = ("plain", "seeded", "self-seeded", "two rounds")
JUDGES = (
    "ace", *CANDIDATES, "plain NMI", "input", "own_space", "mean_admitted", "mean_all",
    "UMAP silhouette", "generalisation", "more clusters", "middle K",
)  # fmt: skip
# Task of the file -> the ranges of K, in shares of the number of classes, that are judged.
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "vary": {"K varies": (0, np.inf), "K low": (0, 1.2), "K high": (0.85, np.inf)},
    "fixed": {"K fixed": (0, np.inf)},
    "noise": {"with noise": (0, np.inf)},
}
FEWEST = 10
TIES = {"r_s": 0.02, "regret": 0.005}


def judges(labels: np.ndarray, spaces: dict[str, np.ndarray], made_in: list[str],
           X: np.ndarray, plane: np.ndarray | None) -> dict[str, np.ndarray]:  # fmt: skip
    """Scores of every run by every judge; larger is better."""
    names = [f"run {i}" for i in range(len(labels))]
    runs = ws.Runs(
        tuple(
            ws.Run(name, labels=one, embedding=spaces[space] if first else None,
                   space=None if first else holder)
            for name, one, space, first, holder in _placed(names, labels, made_in)
        )
    )  # fmt: skip
    found = ws.judge(runs, n_draws=0, details=False, X=X, n_jobs=1)
    ace = found.answers["ace"]["silhouette"]
    out = {"ace": ace.scores, "input": found.input_scores}
    out |= {name: ace.baselines[name] for name in ("own_space", "mean_admitted", "mean_all")}
    out["plain"] = ws.consensus(labels).scores
    out["seeded"] = ws.consensus(labels, first_judge=ace.scores).scores
    out["self-seeded"] = ws.consensus(labels, first_judge=out["plain"]).scores
    out["two rounds"] = ws.consensus(labels, first_judge=ace.scores, rounds=2).scores
    out["plain NMI"] = ws.consensus(labels, agreement="nmi").scores
    out["generalisation"] = generalisation(labels, spaces.values())
    if plane is not None:
        silhouettes = ws.score_partitions(plane, labels, ["silhouette"], noise="priced")
        out["UMAP silhouette"] = np.nan_to_num(silhouettes["silhouette"], nan=-1.0)
    counts = np.array([len(np.unique(one[one >= 0])) for one in labels], float)
    out["more clusters"] = counts
    out["middle K"] = -np.abs(counts - np.median(counts))
    return {name: np.asarray(scores, float) for name, scores in out.items()}


def _placed(names: list[str], labels: np.ndarray, made_in: list[str]) -> Iterable[tuple]:
    """Each run, its space, whether it is the first there, and the run that is."""
    holders: dict[str, str] = {}
    for name, one, space in zip(names, labels, made_in, strict=True):
        first = space not in holders
        yield name, one, space, first, holders.setdefault(space, name)


def generalisation(labels: np.ndarray, spaces: Iterable[np.ndarray]) -> np.ndarray:
    """Mean accuracy over spaces of a linear model that learns a run's labels, in five folds.

    The idea is that of arXiv:2406.07236; the model here is ridge regression on indicators.
    """
    n = labels.shape[1]
    fold = np.random.default_rng(0).permutation(n) % 5
    codes = [np.unique(one, return_inverse=True)[1] for one in labels]
    edges = np.cumsum([0, *(c.max() + 1 for c in codes)])
    indicators = np.concatenate([np.eye(c.max() + 1)[c] for c in codes], axis=1)
    total = np.zeros(len(labels))
    count = 0
    for Z in spaces:
        Z = np.asarray(Z, float)
        scale = Z.std(0)
        Z = np.c_[(Z - Z.mean(0)) / np.where(scale > 0, scale, 1), np.ones(n)]
        right = np.zeros(len(labels))
        for held in range(5):
            train, test = fold != held, fold == held
            A = Z[train]
            B = np.linalg.solve(
                A.T @ A + 1e-3 * len(A) * np.eye(A.shape[1]), A.T @ indicators[train]
            )
            guess = Z[test] @ B
            for i, code in enumerate(codes):
                mine = guess[:, edges[i] : edges[i + 1]].argmax(1)
                right[i] += (mine == code[test]).sum()
        total, count = total + right / n, count + 1
    return total / count


def rows_of(path: Path) -> list[dict[str, Any]]:
    """One row per judge and range of K of one file."""
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        labels, truth = file["labels"].astype(int), file["truth"].astype(int)
        deep = meta["task"] != "noise"
        made_in = [
            f"Z{i}" if deep else f"space{run['space']}" for i, run in enumerate(meta["runs"])
        ]
        spaces = {name: file[name].astype(np.float32) for name in dict.fromkeys(made_in)}
    plane_file = path.parent / f"noise-{meta['set']}.npz"
    plane = np.load(plane_file)["plane"] if plane_file.exists() else None
    classes = len(np.unique(truth))
    found = []
    for kind, (low, high) in RANGES[meta["task"]].items():
        asked = [run.get("n_clusters", classes) / classes for run in meta["runs"]]
        kept = [i for i, share in enumerate(asked) if low <= share <= high]
        if len(kept) < FEWEST:
            continue
        part, places = labels[kept], [made_in[i] for i in kept]
        used = {name: spaces[name] for name in dict.fromkeys(places)}
        values = {
            "ari": [adjusted_rand_score(truth, one) for one in part],
            "nmi": [normalized_mutual_info_score(truth, one) for one in part],
            "acc": [ws.clustering_accuracy(truth, one) for one in part],
        }
        scores = judges(part, used, places, load(meta["set"])[0], plane)
        for judge, score in scores.items():
            row = {"set": meta["set"], "kind": kind, "judge": judge, "runs": len(kept)}
            for measure in MEASURES:
                true = np.array(values[measure])
                row[f"r_s_{measure}"] = _spearman(score, true)
                row[f"regret_{measure}"] = float(true.max() - true[picks(score)].mean())
            found.append(row)
    return found


def _spearman(score: np.ndarray, truth: np.ndarray) -> float:
    """r_s; 0 where a judge tells nothing apart."""
    a, b = tied(score), tied(truth)
    constant = len(np.unique(a)) < 2 or len(np.unique(b)) < 2
    return 0.0 if constant else float(stats.spearmanr(a, b).statistic)


def table(rows: list[dict[str, Any]], kind: str, against: str = "ace", measure: str = "ari") -> str:
    """Means of a kind of runs by judge, and sets won, tied and lost against one judge."""
    of = {(row["set"], row["judge"]): row for row in rows if row["kind"] == kind}
    sets = sorted({name for name, _ in of})
    lines = [
        f"| judge | r_s {measure.upper()} | won/tied/lost | p | regret | won/tied/lost |",
        "|---|---|---|---|---|---|",
    ]
    for judge in JUDGES:
        if (sets[0], judge) not in of:
            continue
        cells = [judge]
        for end, sign in (("r_s", 1), ("regret", -1)):
            mine = np.array([float(of[s, judge][f"{end}_{measure}"]) for s in sets])
            base = np.array([float(of[s, against][f"{end}_{measure}"]) for s in sets])
            gain = sign * (mine - base)
            won, lost = int((gain > TIES[end]).sum()), int((gain < -TIES[end]).sum())
            cells += [f"{mine.mean():.3f}", f"{won}/{len(sets) - won - lost}/{lost}"]
            if end == "r_s":
                cells.append(f"{stats.binomtest(won, won + lost).pvalue:.3f}" if won + lost else "")
        lines.append("| " + " | ".join(cells) + " |")
    return f"{kind}, {len(sets)} sets\n\n" + "\n".join(lines)


def read() -> list[dict[str, Any]]:
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, Any]]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.6f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


def main(say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="?")
    options = parser.parse_args()
    if options.runs is not None:
        paths = [options.runs / f"{task}-{name}.npz" for name in SETS for task in RANGES]
        rows = []
        for path in paths:
            if path.exists():
                rows += rows_of(path)
                say(path.stem)
        write(rows)
    rows = read()
    for kind in dict.fromkeys(row["kind"] for row in rows):
        say("\n" + table(rows, kind))


if __name__ == "__main__":
    main()
