"""The report on choosing K says what its results say, and its sets can be made again."""

from __future__ import annotations

import numpy as np

from experiments.bookkeeping import markdown, read
from experiments.choose_k import run, sets


def test_the_tables_of_the_report_are_those_of_the_results():
    rows, text = read(run.RESULTS), run.REPORT.read_text(encoding="utf-8")
    for group in ("battery", "fresh"):
        some = [row for row in rows if row["group"] == group]
        lines = run.summary(some)
        assert markdown(lines, list(lines[0])) in text
        assert run.by_set(some) in text
    assert run.emptiness([row for row in rows if row["group"] == "empty"]) in text


def test_the_sets_generated_anew_are_those_of_the_results():
    rows = {row["set"]: row for row in read(run.RESULTS) if row["group"] == "fresh"}
    made = list(sets.fresh())
    assert [one.name for one in made] == list(rows)
    assert all((one.k, len(one.X)) == (rows[one.name]["k"], rows[one.name]["n"]) for one in made)
    np.testing.assert_array_equal(sets.mixture(3).X, sets.mixture(3).X)
