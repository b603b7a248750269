"""A judgement keeps the clusters of the drawn objects and of the contenders."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate.clusters import judged
from wellsep.evaluate.scoring import spaces as scoring
from wellsep.records import Judgement


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    found = {"true": np.array(["x", "y", "z"])[truth], "copy": truth + 5}
    for i in range(4):
        found[f"moved {i}"] = np.where(rng.random(90) < 0.1 + i / 10, rng.integers(0, 4, 90), truth)
    found["noisy"] = np.where(np.arange(90) < 9, -1, truth * 10)
    return found


@pytest.fixture(scope="module")
def judgement(labels):
    truth = np.arange(90) % 3
    rng = np.random.default_rng(1)
    spaces = {f"s{i}": 6 * np.eye(3)[truth] + rng.normal(size=(90, 3)) for i in range(3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "N_PLOTTED", 20)
        return ws.judge(ws.Runs.from_parts(spaces, labels), n_draws=10)


def test_the_clusters_of_the_drawn_objects_are_those_of_the_runs(judgement, labels):
    codes, classes = judgement.codes, judgement.answer.classes
    assert codes.objects.tolist() == judgement.scores.plot_coordinates.objects.tolist()
    assert codes.drawn.shape == (6, 20) and codes.drawn.dtype == np.int8
    for first in judgement.answer.first_of_each:  # of equal runs the one that is named
        m, given = classes.of[first], labels[classes.names[first]]
        named = np.array([*codes.labels_of(m), "-1"])  # the last: noise
        assert named[codes.drawn[m]].tolist() == given[codes.objects].astype(str).tolist()
        counted = given[given.astype(str) != "-1"]
        assert codes.sizes_of(m).tolist() == np.unique(counted, return_counts=True)[1].tolist()


def test_all_objects_are_kept_of_the_best_and_of_each_that_comes_first(judgement, labels):
    codes, classes = judgement.codes, judgement.answer.classes
    best = classes.of[classes.names.index(judgement.ranking.best)]
    assert set(codes.contenders) == {best, *judgement.confidence.first_in_draw}
    given = labels[judgement.ranking.best]
    named = np.array([*codes.labels_of(best), "-1"])
    assert named[codes.whole_of(best)].tolist() == given.astype(str).tolist()
    other = next(m for m in range(len(classes)) if m not in codes.contenders)
    assert codes.whole_of(other) is None


@pytest.mark.parametrize("noise", ["exclude", "cluster", "singletons"])
def test_noise_is_no_cluster_however_it_was_judged(labels, noise):
    codes = ws.judge(labels, noise=noise, n_draws=0).codes
    m = len(codes.n_clusters) - 1  # "noisy" is the last
    assert codes.labels_of(m) == ("0", "10", "20")
    assert (codes.drawn[m] == -1).sum() == 9


def test_they_come_back_with_a_saved_judgement(judgement, tmp_path):
    again = Judgement.load(judgement.save(tmp_path / "kept")).codes
    np.testing.assert_array_equal(again.drawn, judgement.codes.drawn)
    assert again.whole.dtype == judgement.codes.whole.dtype
    assert judgement.ranking.best == "copy"
    assert again.labels_of(0) == ("5", "6", "7")


def test_too_many_are_not_kept_and_the_explanation_says_so(labels, monkeypatch):
    monkeypatch.setattr(judged, "MOST_BYTES", 500)
    judgement = ws.judge(labels, n_draws=0)
    assert judgement.codes is None
    assert "The page and settling need the runs" in judgement.explain().replace(
        "the page", "The page"
    )
    monkeypatch.setattr(judged, "MOST_BYTES", 5000)
    assert ws.judge(labels, n_draws=0).codes is not None
