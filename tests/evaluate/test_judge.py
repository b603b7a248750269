"""The main job in one call gives what its steps give, in one record."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import wellsep as ws
from wellsep._files.arrays import Stored, to_json
from wellsep.evaluate import Judgement, NothingToRank, input_scores, rank_confidence
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
    indices = ["silhouette", "davies_bouldin"]
    found = ws.judge(runs, indices, judge="ace", n_draws=6, X=runs.spaces["s0"])
    scores = ws.score_runs(runs, indices)
    result = ws.ace(scores)
    np.testing.assert_array_equal(found.answer.scores, result.scores)
    sure = rank_confidence(runs, scores, result, n_draws=6)
    np.testing.assert_array_equal(found.ranking.confidence.ranks, sure.ranks)
    np.testing.assert_allclose(
        found.ranking.baselines["input"], input_scores(runs.spaces["s0"], runs)
    )
    assert set(found.ranking.by_other_index) == {"davies_bouldin"}
    assert found.details.partition == found.ranking.best == "0% wrong"


def test_options_of_ace_reach_it():
    switches = ws.Ace(links="hits", alpha=None)
    found = ws.judge(made(), judge="ace", n_draws=0, dip=False, ace=switches)
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
    decided = "The silhouette, its mean over the embeddings, decides: only 3 clusterings differ."
    for judge, sentence, place in (("auto", decided, 0), ("ace", "Confidence", 1)):
        html = ws.judge(made(), judge=judge, n_draws=0)._repr_html_()
        assert "<table>" in html
        assert html.count(sentence) == 1
        assert sentence in html.split("<summary>Why</summary>")[place]


def _in_order(seed: int, data_seed: int) -> ws.Runs:
    """The same runs, some of them tied, some with noise, in an order of their own."""
    rng = np.random.default_rng(data_seed)
    truth = np.repeat([0, 1, 2], 30)
    spread = rng.uniform(0.5, 4, 6)
    spaces = {
        f"s{i}": rng.normal(size=(90, 2)) + s * np.eye(3)[truth, :2] for i, s in enumerate(spread)
    }
    spaces["flat"] = np.tile(np.arange(2.0), (90, 1))
    noisy = np.where(np.arange(90) % 9 == 0, -1, truth)
    labels = {"z": truth, "a": (truth + 1) % 3, "two": truth > 0, "noisy": noisy}
    labels |= {name: rng.integers(0, 3, 90) for name in ("m", "b")}
    order = np.random.default_rng(seed)
    names, parts = list(spaces), list(labels)
    if seed:
        order.shuffle(names)
        order.shuffle(parts)
    return ws.Runs.from_parts({n: spaces[n] for n in names}, {p: labels[p] for p in parts})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data_seed", range(3))
def test_the_words_do_not_depend_on_the_order_of_the_runs(data_seed):
    from wellsep.report.pages.ranking import build_ranking_page

    said = set()
    for seed in range(3):
        runs = _in_order(seed, data_seed)
        found = ws.judge(runs, ["silhouette", "davies_bouldin"], n_draws=10, noise="exclude")
        page = build_ranking_page(found, runs=runs, truth=None, title=None, layout="pca")
        rows = tuple(found.ranking.columns()["partition"])
        said.add((found.explain(), rows, page.lead, page.sure, page.facts))
    assert len(said) == 1


def test_the_clusters_of_equal_runs_bear_the_labels_of_the_run_that_is_named():
    labels = {
        "run 10": [0, 0, 1, 1, 1, 1],
        "run 9": [5, 5, 4, 4, 4, 4],
        "other": [0, 0, 1, 1, 1, 2],
    }
    found = ws.judge(ws.Runs.from_parts(None, labels), n_draws=0)
    own = found.clusters.of("run 9")
    assert [found.clusters.clusters[row] for row in own] == ["4", "5"]
    assert found.clusters.sizes[own].tolist() == [4, 2]
    assert found.codes.labels_of(0) == ("4", "5")
    assert found.codes.sizes_of(0).tolist() == [4, 2]


def test_a_judgement_opens_each_file_of_the_runs_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    for i in range(3):
        labels = np.where(rng.random(60) < 0.1 * i, rng.integers(0, 3, 60), truth)
        X = rng.normal(size=(60, 3)) + 4 * np.eye(3)[truth]
        ws.save_run(tmp_path / "runs", X, labels, name=f"run {i}")
    opened, read = [], Stored.open
    monkeypatch.setattr(Stored, "open", lambda stored: opened.append(stored) or read(stored))
    ws.judge(ws.load_runs(tmp_path / "runs"), n_draws=4)
    assert len(opened) == 6


@pytest.mark.parametrize("n", [1, 5, 13])
@pytest.mark.parametrize("given", [np.asarray, np.ndarray.tolist, pd.DataFrame, sp.csr_array])
def test_an_input_of_other_objects_is_refused(given, n):
    rows = np.random.default_rng(0).normal(size=(12, 2))
    runs = Runs.from_parts({"a": rows}, {f"k{k}": np.arange(12) % k for k in (2, 3, 4)})
    sentence = f"X must have a row for each of the 12 objects of the runs, got {n}."
    with pytest.raises(ValueError, match=re.escape(sentence)):
        ws.judge(runs, X=given(np.zeros((n, 2))), n_draws=0)
