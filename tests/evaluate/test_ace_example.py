"""The reduced simulation study runs, and ranks runs much better than chance."""

from __future__ import annotations

import importlib.util

import pytest
from golden import ROOT


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location(
        "study", ROOT / "examples" / "simulation_study.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_study_prints_a_table_in_which_ace_beats_paired_scores(study, capsys):
    table = study.main(seeds=(0, 1, 2))
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(table)
    ahead = [row["ace"] > row["own_space"] for row in table.values()]
    assert sum(ahead) >= len(ahead) - 2
    assert min(row["ace"] for row in table.values()) > 0.4


def test_one_small_data_set_goes_all_the_way(study, monkeypatch):
    monkeypatch.setattr(study, "N_OBJECTS", 100)
    monkeypatch.setattr(study, "N_FEATURES", 300)
    monkeypatch.setitem(study.INFORMATIVE, 1.0, (10, 25))
    found = study.study(1.0, seed=0)
    assert set(found) == set(study.INDICES)
    assert found["calinski_harabasz"]["ace"] > 0.3
