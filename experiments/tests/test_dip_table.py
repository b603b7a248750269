"""The simulation of the dip test's table makes the table that the package ships."""

from __future__ import annotations

import pytest

from experiments.bookkeeping import ROOT
from experiments.dip_table import simulate


def test_the_script_makes_the_rows_of_the_table_again():
    pytest.importorskip("numba", reason="a million samples need the extra `fast`")
    lines = (ROOT / "src/wellsep/spaces/dip_null.csv").read_text().splitlines()
    header, *rows = [line.split(",") for line in lines]
    stored = rows[simulate.SIZES.index(6)]
    assert simulate.quantiles_of(6) == pytest.approx([float(v) for v in stored[2:]], abs=2e-6)
    assert [float(cell) for cell in header[2:]] == pytest.approx(list(simulate.PROBABILITIES))
    assert [int(row[0]) for row in rows] == list(simulate.SIZES)
