"""Does any screen stop spaces whose groups have nothing to do with the classes?

    python experiments/votes/screens.py

Reads the kept fresh runs (voting_runs.zip). For each screen: how well it ranks the spaces by the
ARI of the runs made there, and what ACE does without the quarter of the spaces it likes least.
Written after the declared run; it decides nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.ace.evaluating import correlation, regret
from experiments.votes.scoring import ARCHIVE
from experiments.votes.study import Judged, distinct_spaces, subset
from experiments.votes.train import SETS


def screens(judged: Judged) -> dict[str, np.ndarray]:
    """(L,) what each screen thinks of the spaces; larger is better."""
    matrix = np.nan_to_num(judged.scores.values["silhouette"], nan=-1.0)
    above, made_in = judged.above_cloud, judged.scores.made_in
    own = np.array([above[i, made_in == i].max() for i in range(len(matrix))])
    vote = judged.plain.scores
    agree = np.array([correlation(row, vote)[0] for row in matrix])
    return {
        "dip test": -judged.scores.dip.pvalue,
        "RankMe": judged.rivals["rankme"],
        "α-ReQ": -np.abs(judged.rivals["alpha_req"] - 1),
        "silhouette above clouds": own,
        "agreement with the plain consensus": np.nan_to_num(agree, nan=-1.0),
    }


def ace_without(judged: Judged, liked: np.ndarray | None) -> tuple[float, float]:
    """r_s and regret of ACE on the distinct spaces, without the least liked quarter."""
    places = distinct_spaces(judged.scores)
    if liked is not None:
        order = places[np.argsort(liked[places], kind="stable")]
        places = np.sort(order[len(order) // 4 :])
    class_of, first = judged.plain.classes.of, judged.plain.classes.first
    scores = ws.ace(subset(judged.scores, places, first)).scores[class_of]
    ari = judged.truth["ari"]
    return float(np.nan_to_num(correlation(scores, ari)[0])), regret(scores, ari)


def main() -> None:
    for task in ("vary", "fixed"):
        found: dict[str, list[tuple[float, float, float]]] = {}
        for name in names(ARCHIVE):
            if not name.startswith(f"{task}-") or name.split("-", 1)[1] not in SETS:
                continue
            judged = Judged.of(Entry(ARCHIVE, name))
            made_in, ari = judged.scores.made_in, judged.truth["ari"]
            quality = np.array([ari[made_in == i].mean() for i in range(len(judged.scores.spaces))])
            found.setdefault("none", []).append((np.nan, *ace_without(judged, None)))
            for screen, liked in screens(judged).items():
                order = np.nan_to_num(correlation(liked, quality)[0])
                found.setdefault(screen, []).append((order, *ace_without(judged, liked)))
        print(f"{task}, {len(found['none'])} sets")
        print(
            "| screen | r_s with the ARI of own runs | ACE: r_s | ACE: regret |\n|---|---|---|---|"
        )
        for screen, rows in found.items():
            order, r_s, lost = np.mean(rows, axis=0)
            shown = "" if np.isnan(order) else f"{order:.2f}"
            print(f"| {screen} | {shown} | {r_s:.3f} | {lost:.3f} |")


if __name__ == "__main__":
    main()
