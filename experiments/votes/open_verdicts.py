"""How often each of the five verdicts occurs: open_verdicts.csv, and a table of the report.

    python experiments/votes/open_verdicts.py            the experiments that are kept here, minutes
    python experiments/votes/open_verdicts.py FOLDER     and whole runs, one archive per experiment

Of the kept experiments there are labels and silhouettes, no embeddings. Their draws take half of
the objects for agreement, half of the runs and four fifths of the spaces; silhouettes stay those of
all objects, so where ACE decides the verdicts are surer than `wellsep.judge` would be. Whether
there is anything to cluster is known for the fresh runs, by their kept clouds. Whole runs are
judged by `wellsep.judge` with 40 draws; without FOLDER their rows stay as they were.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.bookkeeping import read, say
from experiments.votes import open_study, verdict_tables
from experiments.votes import scoring as voting_scoring
from experiments.votes.open_runs import ARCHIVE
from experiments.votes.study import Judged, distinct_spaces, subset, write
from experiments.votes.train import EMPTY
from experiments.votes.verdict_tables import WHOLE
from wellsep.evaluate import NothingToRank, Structure
from wellsep.partitions import Classes
from wellsep.records import Judgement, RankConfidence

DRAWS, DRAWS_OF_WHOLE = 100, 40
LEVEL, LEFT_OUT = 0.9, 0.2
FEWEST = {"ace": 5, "consensus": 3}  # runs that take part in a draw, as in `wellsep.judge`
TASKS = {"fixed": "fresh, K fixed", "vary": "fresh, K varies", "noise": "fresh, with noise"}


def judgement_of(some: Judged, gain: float | None = None) -> Judgement:
    """The judgement that labels and silhouettes allow; ``gain`` is that above clouds, if known.

    It is of the distinct runs in the distinct spaces: copies change no verdict.
    """
    first = some.plain.classes.first
    labels = dict(zip((some.scores.partitions[i] for i in first), some.labels[first], strict=True))
    scores = subset(some.scores, distinct_spaces(some.scores), first)
    answer = ws.ace(scores)
    vote = ws.consensus(labels, first_judge=answer.scores)
    plain = {m: ws.consensus(labels, agreement=m) for m in ("ari", "nmi")}
    judge = "consensus" if some.varies else "ace"
    draw = vote_in_draw if some.varies else ace_in_draw
    full = (vote if some.varies else answer).scores
    rng = np.random.default_rng(0)
    found = [one for _ in range(DRAWS) if (one := draw(labels, scores, rng)) is not None]
    known = None if gain is None else Structure((), np.empty(0), (), gain, some.labels.shape[1])
    return Judgement(
        scores,
        {"ace": {answer.index: answer}, "consensus": {answer.index: vote},
         "plain_consensus": plain},
        summary(np.array(found), full, tuple(labels)),
        judge=judge,
        structure=known,
    )  # fmt: skip


def some_spaces(scores: ws.Scores, rng: np.random.Generator) -> np.ndarray:
    """Spaces of one draw: a fifth is left out where there are three or more."""
    n = len(scores.spaces)
    left_out = max(1, round(LEFT_OUT * n)) if n > 2 else 0
    return np.sort(rng.permutation(n)[left_out:])


def some_runs(n: int, judge: str, rng: np.random.Generator) -> np.ndarray:
    """Runs that take part in one draw."""
    return np.sort(rng.permutation(n)[: max(FEWEST[judge], -(-n // 2))])


def ace_in_draw(
    labels: dict[str, np.ndarray], scores: ws.Scores, rng: np.random.Generator
) -> np.ndarray | None:
    """Scores of all runs in the spaces that half of them choose; None if none can be chosen."""
    spaces, runs = some_spaces(scores, rng), some_runs(len(labels), "ace", rng)
    try:
        told = ws.ace(subset(scores, spaces, runs))
    except NothingToRank:
        return None
    matrix = scores.values[told.index][spaces]
    matrix = np.where(np.isnan(matrix), np.nanmin(matrix), matrix)
    return told.winner.weights @ matrix[list(told.winner.spaces)]


def vote_in_draw(
    labels: dict[str, np.ndarray], scores: ws.Scores, rng: np.random.Generator
) -> np.ndarray | None:
    """Agreement of all runs with half of them on half of the objects; None without a vote."""
    whole = np.array(list(labels.values()))
    n, n_objects = whole.shape
    spaces, voters = some_spaces(scores, rng), some_runs(n, "consensus", rng)
    half = whole[:, np.sort(rng.permutation(n_objects)[: n_objects // 2])]
    try:
        by_ace = ws.ace(subset(scores, spaces, np.arange(n))).scores
        agreement = ws.consensus(half).matrix()
        vote = ws.consensus(half[voters], first_judge=by_ace[voters])
    except NothingToRank:
        return None
    weights = np.zeros(n)  # runs that are equal on this half share a vote
    weights[voters] = (vote.weights / vote.classes.sizes)[vote.classes.of]
    shares = np.tile(weights, (n, 1))
    np.fill_diagonal(shares, 0.0)
    return np.average(agreement, axis=1, weights=shares)


def summary(found: np.ndarray, full: np.ndarray, partitions: tuple[str, ...]) -> RankConfidence:
    """Ranks over the draws, as `wellsep.judge` keeps them."""
    places = stats.rankdata(np.round(-found, 12), method="min", axis=1)
    best = places == 1
    tail = (1 - LEVEL) / 2
    ends = [np.quantile(places, q, axis=0, method="inverted_cdf") for q in (tail, 1 - tail)]
    gaps = found[:, [int(np.argmax(full))]] - found
    return RankConfidence(
        ranks=places,
        probability_best=(best / best.sum(axis=1, keepdims=True)).mean(axis=0),
        interval=np.column_stack(ends),
        level=LEVEL,
        n_draws=len(found),
        n_groups=2,
        spaces_left_out=1,
        classes=Classes.all_differ(partitions),
        first_in_draw=places.argmin(axis=1),
        gap_sd=gaps.std(axis=0),
    )


def row_of(group: str, experiment: str, found: Judgement) -> dict[str, Any]:
    """What is kept of one verdict."""
    said = found.verdict
    return {
        "group": group,
        "experiment": experiment,
        "judge": found.judge,
        "runs": len(found.ranking.names),
        "verdict": said.kind,
        "first_in": float(said.facts["first_in"]),
    }


def kept_rows() -> list[dict[str, Any]]:
    """The experiments that lie here: those looked at before the rule, and the fresh ones."""
    found = []
    for name in names(ARCHIVE):
        entry = Entry(ARCHIVE, name)
        made = entry.json("made.json")
        group = open_study.KINDS[made["group"], made["task"]]
        found.append(row_of(group, name, judgement_of(open_study.judged(entry))))
    for name in names(voting_scoring.ARCHIVE):
        entry = Entry(voting_scoring.ARCHIVE, name)
        made, some = entry.json("made.json"), Judged.of(entry)
        empty = made["set"] in EMPTY
        group = "nothing to find" if empty else TASKS[made["task"]]
        found.append(row_of(group, name, judgement_of(some, some.gain)))
    return found


def whole_rows(folder: Path) -> list[dict[str, Any]]:
    """Runs with their embeddings, one archive or folder per experiment, by the whole judge."""
    found = []
    for path in sorted(folder.iterdir()):
        options = {"n_draws": DRAWS_OF_WHOLE, "details": False, "n_jobs": 1}
        judgement = ws.judge(ws.load_runs(path), **options)
        varies = "varies" if judgement.judge == "consensus" else "fixed"
        found.append(row_of(f"{WHOLE}, K {varies}", path.stem, judgement))
        say(f"{path.stem}: {found[-1]['verdict']}")
    return found


def main(arguments: list[str]) -> None:
    if arguments:
        whole: list[dict[str, Any]] = whole_rows(Path(arguments[0]))
    else:
        whole = [row for row in read(verdict_tables.TABLE) if row["group"].startswith(WHOLE)]
    write(verdict_tables.TABLE, [*kept_rows(), *whole])
    for title, text in verdict_tables.blocks(verdict_tables.HERE).items():
        print(f"\n{title}\n\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
