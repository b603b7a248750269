"""The main job in one call gives what its steps give, in one record."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep._files import to_json
from wellsep.evaluate import Judgement, NothingToRank
from wellsep.runs import Runs


def made(seed=0, n=120) -> Runs:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    centres = np.array([[0, 0], [8, 0], [16, 5]])
    return Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, 2)) + centres[truth] for i in range(4)},
        {f"{p:.0%} wrong": np.where(rng.random(n) < p, rng.integers(0, 3, n), truth)
         for p in (0.0, 0.2, 0.5)},
    )  # fmt: skip


def test_the_call_equals_its_steps():
    runs = made()
    found = ws.judge(runs, ["silhouette", "davies_bouldin"], n_draws=6, X=runs.spaces["s0"])
    scores = ws.score_runs(runs, ["silhouette", "davies_bouldin"])
    result = ws.ace(scores)
    np.testing.assert_array_equal(found.answer.scores, result.scores)
    sure = ws.rank_confidence(runs, scores, result, n_draws=6)
    np.testing.assert_array_equal(found.ranking.confidence.ranks, sure.ranks)
    np.testing.assert_allclose(
        found.ranking.baselines["input"], ws.input_scores(runs.spaces["s0"], runs)
    )
    assert set(found.ranking.by_other_index) == {"davies_bouldin"}
    assert found.details.partition == found.ranking.best == "0% wrong"


def test_options_of_ace_reach_it():
    found = ws.judge(made(), n_draws=0, dip=False, links="hits", alpha=None)
    assert found.scores.dip is None
    assert found.answer.options.links == "hits"
    assert found.ranking.confidence is None
    with pytest.raises(TypeError, match="unexpected keyword"):
        ws.judge(made(), n_draws=0, colour="red")


def test_the_record_survives_the_disk_and_speaks_json(tmp_path):
    first = ws.judge(made(), ["silhouette", "calinski_harabasz"], n_draws=4)
    again = Judgement.load(first.save(tmp_path / "all"))
    assert again.explain() == first.explain()
    assert to_json(again.to_dict(), nan="null", other=str) == to_json(
        first.to_dict(), nan="null", other=str
    )
    assert again.to_dict()["dip"][0]["space"] == "s0"


def test_an_index_that_cannot_rank_does_not_cost_the_answer(monkeypatch):
    monkeypatch.setattr(ws.INDICES, "_entries", dict(ws.INDICES._entries))
    ws.register_index("always one", lambda X, labels: 1.0, direction=1)
    found = ws.judge(made(), ["silhouette", "always one"], n_draws=0)
    assert found.ranking.best == "0% wrong"
    assert found.ranking.by_other_index == {}
    assert "always one could not rank the runs" in found.explain()
    with pytest.raises(NothingToRank):
        ws.judge(made(), ["always one"], n_draws=0)


def test_a_notebook_shows_table_and_story():
    html = ws.judge(made(), n_draws=0)._repr_html_()
    assert "<table>" in html
    assert "How sure" in html
