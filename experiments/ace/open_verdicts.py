"""How often each of the five verdicts occurs: open_verdicts.csv, and a table of the report.

    python experiments/ace/open_verdicts.py             the experiments that are kept here, a minute
    python experiments/ace/open_verdicts.py FOLDER      and whole runs, one archive per experiment

Of the kept experiments there are labels and silhouettes, no embeddings. Their draws take half of
the objects for agreement, half of the runs and four fifths of the spaces; silhouettes stay those of
all objects, so where ACE decides the verdicts are surer than `wellsep.judge` would be. Whether
there is anything to cluster is known for the fresh runs, by their kept clouds. Whole runs are
judged by `wellsep.judge` with 40 draws; without FOLDER their rows stay as they were.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace import open_study, verdict_tables, voting_scoring
from experiments.ace.archive import Entry, names
from experiments.ace.open_runs import ARCHIVE
from experiments.ace.verdict_tables import WHOLE
from experiments.ace.voting_study import Judged, write
from experiments.ace.voting_train import EMPTY
from experiments.bookkeeping import read, say
from wellsep.compute.contingency import count_labels
from wellsep.evaluate.confidence import ace_draws, rank_draws
from wellsep.evaluate.copies import class_numbers, judge_distinct, rows_once
from wellsep.evaluate.halves import Resampled
from wellsep.evaluate.options import AceOptions, ConfidenceOptions
from wellsep.evaluate.plans import draw_plan
from wellsep.evaluate.structure import Structure
from wellsep.evaluate.vote_draws import confidence_of_vote
from wellsep.evaluate.votes import first_of_class, k_varies
from wellsep.evaluate.voting import plain_votes, vote_by_ace
from wellsep.partitions import Partitions

DRAWS, DRAWS_OF_WHOLE = 100, 40
TASKS = {"fixed": "fresh, K fixed", "vary": "fresh, K varies", "noise": "fresh, with noise"}


def judgement_of(some: Judged, gain: float | None = None) -> ws.Judgement:
    """The judgement that labels and silhouettes allow; ``gain`` is that above clouds, if known."""
    labels = dict(zip(some.scores.partitions, some.labels, strict=True))
    partitions = Partitions.from_labels(labels, noise="priced")
    scores = dataclasses.replace(
        rows_once(some.scores),
        class_of=class_numbers(partitions.first_equal),
        n_clusters=partitions.n_clusters,
        coverage=partitions.coverage,
    )
    answer = judge_distinct(scores, AceOptions())
    counted = count_labels(partitions)
    vote = vote_by_ace(counted, answer)
    first = first_of_class(vote.class_of)
    plan = draw_plan(partitions, scores.spaces, ConfidenceOptions(n_draws=DRAWS), 0)
    params = ws.INDICES["silhouette"].params
    job = plan.resampling("silhouette", params, scores.spaces, "pca", test=False)
    rows = dict(zip(scores.spaces, scores.values[answer.index], strict=True))
    same = {
        space: Resampled(np.tile(rows[space], (len(job.draws[space]), 1)), None, 0.0)
        for space in scores.spaces
    }
    varies = k_varies(partitions.n_clusters[first])
    if varies:
        by_ace = ace_draws(plan, job, scores, answer, same, vote.class_of)
        confidence = confidence_of_vote(vote, partitions, plan, by_ace)
    else:
        confidence = rank_draws(plan, job, scores, answer, same, partitions.codes[first])
    known = None if gain is None else Structure((), np.empty(0), (), gain, partitions.n_objects)
    return ws.Judgement(
        scores,
        {"ace": {answer.index: answer}, "consensus": {answer.index: vote},
         "plain_consensus": plain_votes(counted)},
        confidence,
        judge="consensus" if varies else "ace",
        structure=known,
    )  # fmt: skip


def row_of(group: str, experiment: str, found: ws.Judgement) -> dict[str, Any]:
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
        options = {"n_draws": DRAWS_OF_WHOLE, "n_plotted": 0, "details": False, "n_jobs": 1}
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
