"""Try the judges of DECLARED.md on the fresh runs: voting.csv, and the tables of the report.

    python experiments/votes/study.py

Everything is made again from `voting_runs.zip` (see `scoring.py`), in seconds; no set and no
training is needed. The last lines say what the declared rule decides.
"""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.ace.evaluating import TIE, picks, tied
from experiments.votes import tables as voting_tables
from experiments.votes.rules import ranked, vote
from experiments.votes.scoring import ARCHIVE
from experiments.votes.train import EMPTY
from wellsep.spaces import holm

MEASURES = ("ari", "nmi", "acc")
# Task -> the ranges of K, in shares of the number of classes, that are judged.
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "vary": {"K varies": (0, np.inf), "K low": (0, 1.2), "K high": (0.85, np.inf)},
    "fixed": {"K fixed": (0, np.inf)},
    "noise": {"with noise": (0, np.inf)},
}
FEWEST = 10
SHUFFLED = (0.0, 0.02, 0.05)  # shares of the labels in which a copy differs


@dataclasses.dataclass(frozen=True, eq=False)
class Judged:
    """Some runs of one experiment, and what judges need of them."""

    labels: np.ndarray  # (M, n)
    scores: ws.Scores  # silhouettes, of the spaces these runs were made in
    rivals: dict[str, np.ndarray]
    truth: dict[str, np.ndarray]  # measure -> (M,)

    @classmethod
    def of(cls, entry: Entry) -> Judged:
        """All runs of one experiment."""
        scores = entry.scores()
        scores = dataclasses.replace(
            scores, values={name: matrix.astype(float) for name, matrix in scores.values.items()}
        )
        rows = entry.rows("runs.csv")
        truth = {m: np.array([row[m] for row in rows], float) for m in MEASURES}
        labels = entry.arrays("labels.npz")["labels"].T.astype(int)
        return cls(labels, scores, entry.arrays("rivals.npz"), truth)

    def part(self, runs: np.ndarray) -> Judged:
        """Some of the runs, with the spaces that they were made in."""
        if len(runs) == len(self.labels):
            return self
        spaces = np.unique(self.scores.made_in[runs])
        scores = subset(self.scores, spaces, runs)
        of_runs = {name: self.rivals[name][runs] for name in ("plane", "input")}
        of_spaces = {name: self.rivals[name][spaces] for name in ("cloud", "rankme", "alpha_req")}
        rivals = {
            **of_runs,
            **of_spaces,
            "learned": self.rivals["learned"][np.ix_(spaces, runs)],
            "cloud_counts": self.rivals["cloud_counts"],
        }
        truth = {measure: values[runs] for measure, values in self.truth.items()}
        return Judged(self.labels[runs], scores, rivals, truth)

    @cached_property
    def counts(self) -> np.ndarray:
        """(M,) clusters of each run, without noise."""
        return np.array([len(np.unique(one[one >= 0])) for one in self.labels])

    @cached_property
    def plain(self) -> Any:
        """The consensus in which all votes weigh the same."""
        return ws.consensus(self.labels)

    @property
    def varies(self) -> bool:
        """Whether K varies, by the proposed rule."""
        first = self.plain.classes.first
        counts = self.counts[first]
        counts = counts[counts >= 2]
        low, high = np.quantile(counts, [0.1, 0.9])
        return bool(len(np.unique(counts)) >= 3 and high >= 1.5 * low)

    @property
    def above_cloud(self) -> np.ndarray:
        """(L, M) silhouettes above those of k-means on a cloud; -1 for an undefined silhouette."""
        matrix = np.nan_to_num(self.scores.values["silhouette"], nan=-1.0)
        tried = self.rivals["cloud_counts"]
        return matrix - np.array(
            [np.interp(self.counts, tried, row) for row in self.rivals["cloud"]]
        )

    @property
    def gain(self) -> float:
        """E: the median over distinct spaces of the best own silhouette above that of clouds."""
        above, made_in = self.above_cloud, self.scores.made_in
        kept = np.intersect1d(distinct_spaces(self.scores), made_in)
        return float(np.median([above[i, made_in == i].max() for i in kept]))

    @property
    def own_space(self) -> np.ndarray:
        """(M,) silhouette in the space a run was made in; the mean over equal runs and spaces."""
        matrix = self.scores.values["silhouette"]
        worst = np.where(np.isfinite(matrix).any(1), np.nanmin(matrix, axis=1, initial=1.0), -1.0)
        own = np.where(np.isfinite(matrix), matrix, worst[:, None])
        first = first_equal(self.scores)[self.scores.made_in]
        found = np.empty(len(self.labels))
        for number in np.unique(self.plain.classes.of):
            mine = np.flatnonzero(self.plain.classes.of == number)
            found[mine] = np.mean([own[i, mine[0]] for i in np.unique(first[mine])])
        return found

    def judges(self) -> dict[str, np.ndarray]:
        """Scores of every run by every judge; larger is better."""
        class_of, first = self.plain.classes.of, self.plain.classes.first
        distinct = subset(self.scores, distinct_spaces(self.scores), first)
        by_ace = ws.ace(distinct)
        ace, plain = by_ace.scores[class_of], earlier_vote(self.plain)
        seeded = earlier_vote(self.plain, ace)
        counts = self.counts
        means = {name: by_ace.baselines[f"mean_{name}"][class_of] for name in ("admitted", "all")}
        found = {
            "ACE": ace,
            "plain": plain,
            "seeded": seeded,
            "self-seeded": earlier_vote(self.plain, plain),
            "two rounds": earlier_vote(self.plain, seeded),
            "the rule": seeded if self.varies else ace,
            "plain, NMI": earlier_vote(ws.consensus(self.labels, agreement="nmi")),
            "ACE, no dip test": ws.ace(distinct, dip=False).scores[class_of],
            "input": self.rivals["input"],
            "own space": self.own_space,
            "mean of admitted spaces": means["admitted"],
            "mean of all spaces": means["all"],
            "more clusters": counts,
            "middle K": -np.abs(counts - np.median(counts)),
        }
        if "plane" in self.rivals:
            found |= self.rivals_judge()
        return {name: np.asarray(values, float) for name, values in found.items()}

    def rivals_judge(self) -> dict[str, np.ndarray]:
        """What the rivals of ACE and consensus say."""
        own = self.scores.made_in
        above = self.above_cloud.mean(0)
        return {
            "UMAP silhouette": self.rivals["plane"],
            "generalisation": self.rivals["learned"].mean(0),
            "seeded above clouds": earlier_vote(self.plain, above),
            "RankMe": self.rivals["rankme"][own],
            "α-ReQ": -np.abs(self.rivals["alpha_req"][own] - 1),
        }


def earlier_vote(agreed: Any, liked: np.ndarray | None = None) -> np.ndarray:
    """(M,) scores of the vote of this study: weights are squared ranks by a first judge, or 1."""
    classes = agreed.classes
    weight = np.ones(len(classes))
    if liked is not None:
        weight = ranked(np.bincount(classes.of, liked) / classes.sizes) ** 2
    return vote(np.asarray(agreed.agreement), weight)[classes.of]


def subset(scores: ws.Scores, spaces: np.ndarray, runs: np.ndarray) -> ws.Scores:
    """The scores of some runs in some spaces; a run made in none of them counts as made nowhere."""
    place = np.full(len(scores.spaces), -1)
    place[spaces] = np.arange(len(spaces))
    dip = dataclasses.replace(
        scores.dip,
        statistic=scores.dip.statistic[spaces],
        pvalue=scores.dip.pvalue[spaces],
        notes=tuple(scores.dip.notes[i] for i in spaces) if scores.dip.notes else (),
    )
    return dataclasses.replace(
        scores,
        values={name: matrix[np.ix_(spaces, runs)] for name, matrix in scores.values.items()},
        spaces=tuple(scores.spaces[i] for i in spaces),
        partitions=tuple(scores.partitions[i] for i in runs),
        made_in=place[scores.made_in[runs]],
        coverage=scores.coverage[runs],
        n_clusters=scores.n_clusters[runs],
        dims=scores.dims[spaces],
        dip=dip,
    )


def first_equal(scores: ws.Scores) -> np.ndarray:
    """(L,) the first space that scores every run alike; undefined or constant rows have no copy."""
    matrix = scores.values["silhouette"]
    first = np.arange(len(matrix))
    telling = np.isfinite(matrix).all(1) & (np.ptp(matrix, axis=1) > 0)
    for i in range(len(matrix)):
        for j in np.flatnonzero((first[:i] == np.arange(i)) & telling[:i]):
            scale = max(np.abs(matrix[i]).max(), np.abs(matrix[j]).max())
            if telling[i] and (np.abs(matrix[i] - matrix[j]) <= TIE * scale).all():
                first[i] = j
                break
    return first


def distinct_spaces(scores: ws.Scores) -> np.ndarray:
    """Places of the spaces that are no copy of an earlier one."""
    first = first_equal(scores)
    return np.flatnonzero(first == np.arange(len(first)))


def ends(score: np.ndarray, truth: dict[str, np.ndarray]) -> dict[str, float]:
    """Order and pick of one judge, by every measure."""
    found = {}
    for measure, values in truth.items():
        found[f"r_s_{measure}"] = spearman(score, values)
        found[f"regret_{measure}"] = float(values.max() - values[picks(score)].mean())
    return found


def spearman(score: np.ndarray, truth: np.ndarray) -> float:
    """r_s; 0 where a judge tells nothing apart."""
    a, b = tied(score), tied(truth)
    constant = len(np.unique(a)) < 2 or len(np.unique(b)) < 2
    return 0.0 if constant else float(stats.spearmanr(a, b).statistic)


def rows_of(entry: Entry) -> list[dict[str, Any]]:
    """One row per judge and range of K of an experiment; none with fewer than ten runs."""
    made, everything = entry.json("made.json"), Judged.of(entry)
    asked = [
        (row.get("n_clusters") or made["classes"]) / made["classes"]
        for row in entry.rows("runs.csv")
    ]
    found = []
    for kind, (low, high) in RANGES[made["task"]].items():
        runs = np.flatnonzero([low <= share <= high for share in asked])
        if len(runs) < FEWEST:
            continue
        some = everything.part(runs)
        spread = float(np.ptp(some.truth["ari"]))
        for judge, score in some.judges().items():
            told = {"set": made["set"], "kind": kind, "judge": judge, "runs": len(runs)}
            found.append(
                told
                | ends(score, some.truth)
                | {"spread_ari": spread, "k_varies": int(some.varies)}
            )
    return found


def with_copies(labels: np.ndarray, run: int, share: float) -> np.ndarray:
    """The labels, and half as many copies of one run with a share of their labels shuffled."""
    rng = np.random.default_rng(0)
    copies = np.repeat(labels[[run]], len(labels) // 2, axis=0)
    n = labels.shape[1]
    for copy in copies:
        some = rng.choice(n, round(share * n), replace=False)
        copy[some] = copy[rng.permutation(some)]
    return np.concatenate([labels, copies])


def copied_rows(entry: Entry) -> list[dict[str, Any]]:
    """Whether a candidate picks the worst run, or a copy of it, once it was copied.

    Copies have the score that ACE gave to the run.
    """
    made, some = entry.json("made.json"), Judged.of(entry)
    worst, n = int(np.argmin(some.truth["ari"])), len(some.labels)
    ace = some.judges()["ACE"]
    given = np.concatenate([ace, np.full(n // 2, ace[worst])])
    found = []
    for share in SHUFFLED:
        labels = with_copies(some.labels, worst, share)
        agreed = ws.consensus(labels)
        plain, seeded = earlier_vote(agreed), earlier_vote(agreed, given)
        votes = {
            "plain": plain,
            "seeded": seeded,
            "self-seeded": earlier_vote(agreed, plain),
            "two rounds": earlier_vote(agreed, seeded),
        }
        for judge, scores in votes.items():
            best = picks(scores)
            taken = int(((best == worst) | (best >= n)).any())
            told = {"set": made["set"], "task": made["task"], "shuffled": share}
            found.append(told | {"judge": judge, "picked": taken})
    return found


def nothing_rows(entries: list[Entry]) -> list[dict[str, Any]]:
    """E of every experiment, beside how many of its spaces pass the dip test."""
    found = []
    for entry in entries:
        made, some = entry.json("made.json"), Judged.of(entry)
        passed = holm(np.nan_to_num(some.scores.dip.pvalue, nan=0.0), 0.05).reject
        found.append(
            {
                "set": made["set"],
                "empty": int(made["set"] in EMPTY),
                "task": made["task"],
                "runs": len(some.labels),
                "failed": made["failed"],
                "spaces": len(some.scores.spaces),
                "past_dip": int(passed.sum()),
                "E": some.gain,
            }
        )
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.6f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


def main(say: Callable[[str], None] = print) -> None:
    entries = [Entry(ARCHIVE, name) for name in names(ARCHIVE)]
    real = [entry for entry in entries if entry.name.split("-", 1)[1] not in EMPTY]
    rows = [row for entry in real for row in rows_of(entry)]
    write(voting_tables.TABLE, rows)
    write(voting_tables.NOTHING_TABLE, nothing_rows(entries))
    write(voting_tables.COPIES_TABLE, [row for entry in real for row in copied_rows(entry)])
    for title, text in voting_tables.blocks(ARCHIVE.parent).items():
        say(f"\n{title}\n\n{text}")


if __name__ == "__main__":
    main()
