"""ACE's answer knows neither the order nor the names of the runs, on every golden cell.

In the cells that are not `robust` the authors' answer does; `data/ace_pins.json` keeps what ours is
there: the winning spaces and the mean score.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ace_golden import case_names, cells, filled, matrices, record

from wellsep.evaluate import NothingToRank, Scores, ace

PINS = json.loads((Path(__file__).parents[1] / "data" / "ace_pins.json").read_text())
OPEN = [c for c in cells() if c.stored.get("robust") is False]


def outcome(scores: Scores, options: dict) -> tuple[list[int], np.ndarray] | None:
    try:
        result = ace(scores, **options)
    except NothingToRank:
        return None
    return sorted(result.winner.spaces), result.scores


def shuffled(scores: Scores, rng: np.random.Generator) -> tuple[Scores, np.ndarray, np.ndarray]:
    rows, columns = (rng.permutation(len(n)) for n in (scores.spaces, scores.partitions))
    other = Scores.from_matrix(
        scores.oriented()[np.ix_(rows, columns)],
        spaces=[f"s{rng.integers(1 << 60)}" for _ in rows],
        partitions=[f"p{rng.integers(1 << 60)}" for _ in columns],
        dip_pvalues=scores.dip.pvalue[rows],
        paired=False,
    )
    return other, rows, columns


@pytest.mark.parametrize("cell", OPEN, ids=str)
def test_a_cell_the_authors_leave_to_order_is_pinned(cell):
    found = outcome(filled(*cell[:3]), cell.options)
    pinned = PINS[str(cell)]
    assert (found is None) == (pinned is None)
    assert found is None or found[0] == pinned[0]
    assert found is None or found[1].mean() == pytest.approx(pinned[1], rel=1e-9)


@pytest.mark.parametrize("n_orders", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("case", "part", "index"), matrices())
def test_order_and_names_of_runs_change_nothing(case, part, index, n_orders):
    rng = np.random.default_rng(sum(map(ord, case + index)))
    scores = filled(case, part, index)
    wrong = []
    for cell in (c for c in cells() if c[:3] == (case, part, index)):
        first = outcome(scores, cell.options)
        for _ in range(n_orders):
            other, rows, columns = shuffled(scores, rng)
            found = outcome(other, cell.options)
            if (first is None) != (found is None):
                wrong.append((cell.variant, "one can be ranked, the other not"))
            elif first is not None and found is not None:
                back = sorted(rows[list(found[0])].tolist())
                scale = np.abs(first[1]).max()
                if back != first[0] or np.abs(found[1] - first[1][columns]).max() > 1e-12 * scale:
                    wrong.append((cell.variant, first[0], back))
    assert wrong == []


@pytest.mark.parametrize("case", case_names())
def test_rounding_of_the_scores_changes_nothing(case):
    rng = np.random.default_rng(7)
    wrong = []
    for index in record(case)["indices"]:
        scores = filled(case, "", index)
        matrix = scores.oriented()
        noisy = Scores.from_matrix(
            matrix * (1 + 2e-16 * rng.integers(-2, 3, matrix.shape)),
            dip_pvalues=scores.dip.pvalue,
        )
        for variant in ({}, {"dip": False}):
            first, found = outcome(scores, variant), outcome(noisy, variant)
            if (first is None) != (found is None) or (first and first[0] != found[0]):
                wrong.append((index, variant, first, found))
    assert wrong == []
