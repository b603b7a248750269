"""From what is kept of an experiment to rank correlations with the truth: results.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.ace.paper import (
    ABLATIONS,
    INDICES,
    RESULTS,
    SCORES,
    index_of,
    is_experiment,
    split,
)
from experiments.bookkeeping import provenance
from wellsep.spaces import holm

MEASURES = ("nmi", "acc")
TIE = 1e-9  # values this close, relatively, are tied


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of an experiment."""

    name: str
    scores: ws.Scores
    truth: dict[str, np.ndarray]  # nmi, acc: (M,)
    raw: dict[str, np.ndarray]  # index -> (M,), own sign, NaN where undefined
    screens: dict[str, np.ndarray]  # reduction -> (L,) p-values
    runs: tuple[dict[str, Any], ...]  # rows of runs.csv

    @property
    def labels(self) -> dict[str, str]:
        """Index -> its column in the record."""
        return {index_of(label): label for label in self.scores.indices}


def kept(entry: Entry) -> Kept:
    """Read what `scoring.score_experiment` wrote."""
    return _kept(entry, entry.archive.stat().st_mtime_ns)


@cache
def _kept(entry: Entry, _stamp: int) -> Kept:
    scores = entry.scores()
    runs, raw, spaces = (entry.rows(f"{n}.csv") for n in ("runs", "raw", "spaces"))
    if [str(row["run"]) for row in runs] != list(scores.partitions):
        raise ValueError(
            f"runs.csv of {entry.name} in {entry.archive} must list the runs of its scores,"
            " in their order."
        )
    screens: dict[str, list[float]] = {}
    for row in spaces:
        screens.setdefault(row["reduction"], []).append(row["pvalue"])
    return Kept(
        entry.name,
        scores,
        {m: np.array([row[m] for row in runs], dtype=float) for m in MEASURES},
        {
            i: np.array([np.nan if row[i] is None else row[i] for row in raw], dtype=float)
            for i in INDICES
        },
        {name: np.array(values, dtype=float) for name, values in screens.items()},
        tuple(runs),
    )


def experiments(archive: Path = SCORES) -> list[Entry]:
    """The experiments that were scored, in the order of the paper's tasks."""
    found = [Entry(archive, name) for name in names(archive) if is_experiment(name)]
    return sorted(found, key=lambda entry: split(entry.name))


def correlation(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Spearman's r_s and Kendall's τ_b; NaN if either side is constant."""
    a, b = tied(scores), tied(truth)
    if len(np.unique(a)) < 2 or len(np.unique(b)) < 2:
        return np.nan, np.nan
    return float(stats.spearmanr(a, b).statistic), float(stats.kendalltau(a, b).statistic)


def tied(values: np.ndarray) -> np.ndarray:
    """Ranks in which values that differ by rounding only are equal."""
    order = np.argsort(values)
    ordered = np.asarray(values, dtype=float)[order]
    gap = np.diff(ordered) > TIE * np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    ranks = np.empty(len(ordered))
    ranks[order] = np.concatenate([[0], np.cumsum(gap)])
    return ranks


def picks(scores: np.ndarray) -> np.ndarray:
    """Positions of the partitions with the largest score."""
    ranks = tied(scores)
    return np.flatnonzero(ranks == ranks.max())


def regret(scores: np.ndarray, nmi: np.ndarray) -> float:
    """How much NMI the choice gives away; ties count by their mean."""
    return float(nmi.max() - nmi[picks(scores)].mean())


def approaches(one: Kept, index: str) -> dict[str, np.ndarray]:
    """Scores of every partition by every way of scoring; larger is better."""
    label = one.labels[index]
    ways: dict[str, np.ndarray] = {}
    raw = one.raw[index] * one.scores.directions[label]
    if np.isfinite(raw).any():
        ways["raw"] = np.where(np.isfinite(raw), raw, np.nanmin(raw))
    try:
        answer = ws.ace(one.scores, index=label)
    except ValueError:  # undefined everywhere, or nothing to tell apart
        return ways
    ways |= {"paired": answer.baselines["own_space"], "pooled": answer.baselines["mean_admitted"]}
    ways |= {"pooled, no dip": answer.baselines["mean_all"], "ace": answer.scores}
    for name, options in ABLATIONS.items():
        ways[name] = ws.ace(one.scores, index=label, **options).scores
    return ways


def distinct_spaces(scores: ws.Scores) -> int:
    """How many spaces differ in any score; trainings of one seed may end in the same space."""
    rows = np.concatenate([scores.values[index] for index in scores.indices], axis=1)
    found: list[np.ndarray] = []
    for row in rows:
        if not any(np.allclose(row, other, rtol=TIE, atol=0, equal_nan=True) for other in found):
            found.append(row)
    return len(found)


def rows_of(one: Kept) -> list[dict[str, Any]]:
    """All results of one experiment."""
    task, method, name = split(one.name)
    dip = one.scores.dip
    passed = int(holm(dip.pvalue, 0.05).reject.sum()) if dip is not None else 0
    n_distinct = distinct_spaces(one.scores)
    rows = []
    for index in INDICES:
        for approach, scores in approaches(one, index).items():
            best = picks(scores)
            row: dict[str, Any] = {
                "task": task, "method": method, "set": name, "index": index, "approach": approach,
            }  # fmt: skip
            for measure in MEASURES:
                r, tau = correlation(scores, one.truth[measure])
                row |= {f"r_s_{measure}": _cell(r), f"tau_b_{measure}": _cell(tau)}
            ks = sorted(
                {int(one.runs[i].get("n_clusters") or one.runs[i]["n_found"]) for i in best}
            )
            row |= {
                "k": " ".join(map(str, ks)) if task == "clusters" else "",
                "regret": _cell(regret(scores, one.truth["nmi"])),
                "best_nmi": _cell(one.truth["nmi"].max()),
                "n_runs": len(scores),
                "n_distinct": n_distinct,
                "n_passed": passed,
            }
            rows.append(row)
    return rows


def _cell(value: float) -> float | str:
    return round(float(value), 4) if np.isfinite(value) else ""


def seeds_of(one: Kept) -> str:
    """Seeds of the trainings, where the runs tell them."""
    found = {
        row[key]
        for row in one.runs
        for key in ("random_state", "seed", "seed_")
        if row.get(key) not in (None, "")
    }
    return " ".join(map(str, sorted(found)))


def write_results(archive: Path = SCORES, path: Path = RESULTS) -> list[dict[str, Any]]:
    """Evaluate every experiment that was scored and write results.csv anew."""
    rows = []
    for entry in experiments(archive):
        one = kept(entry)
        rows += [row | {"seeds": seeds_of(one)} for row in rows_of(one)]
    rows = stamped(rows, path, provenance("experiments/ace/*.py"))
    write_csv(path, rows)
    return rows


def stamped(rows: list[dict[str, Any]], path: Path, origin: dict[str, str]) -> list[dict[str, Any]]:
    """Rows with their origin: what the CSV held before with the same values keeps its own.

    The origin of uncommitted code, marked by a +, is not kept.
    """

    def cells(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        return tuple((k, "" if v is None else str(v)) for k, v in row.items() if k not in origin)

    before: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                had = {key: row.get(key) or "" for key in origin}
                if all(had.values()) and not had.get("commit", "").endswith("+"):
                    before[cells(row)] = had
    return [row | before.get(cells(row), origin) for row in rows]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """A whole CSV; None where there is nothing."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
