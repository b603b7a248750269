"""Equal embeddings and equal partitions count once in a judgement, whatever their order."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import ortho_group

import wellsep as ws
from wellsep.evaluate import NothingToRank, rank_confidence
from wellsep.evaluate.problem import spaces_once
from wellsep.evaluate.scoring.spaces import first_alike, trace_copies
from wellsep.runs import Run, Runs

N = 120


def made_runs():
    """Four spaces of different quality, six partitions; each made in one of the spaces."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 3
    runs = []
    for i, far in enumerate((9.0, 7.0, 5.0, 2.0)):
        runs.append(Run(f"space {i}", embedding=rng.normal(size=(N, 3)) + far * np.eye(3)[truth]))
    for m, wrong in enumerate((0.0, 0.1, 0.2, 0.3, 0.5, 0.8)):
        labels = np.where(rng.random(N) < wrong, rng.integers(0, 3 + m % 2, N), truth)
        runs.append(Run(f"run {m}", labels=labels, space=f"space {m % 4}"))
    return Runs(runs)


def judged(runs, **options):
    return ws.judge(runs, ["silhouette", "davies_bouldin"], n_draws=12, **options, judge="ace")


@pytest.fixture(scope="module")
def plain():
    return judged(made_runs())


def same_answer(found, expected):
    """The same scores, ranks, chances and baselines for every run of the first judgement."""
    names = expected.ranking.names
    at = [found.ranking.names.index(name) for name in names]
    np.testing.assert_allclose(found.ranking.score[at], expected.ranking.score, rtol=1e-9)
    assert found.ranking.rank[at].tolist() == expected.ranking.rank.tolist()
    assert list(found.ranking.baselines) == list(expected.ranking.baselines)
    for name, scores in expected.ranking.baselines.items():
        np.testing.assert_allclose(found.ranking.baselines[name][at], scores, rtol=1e-9)
    assert len(found.scores.spaces) == len(expected.scores.spaces)
    dips = found.answer.screen.adjusted, expected.answer.screen.adjusted
    np.testing.assert_allclose(*map(np.sort, dips))  # Holm pays for no copy
    np.testing.assert_allclose(
        np.sort(found.answer.winner.weights), np.sort(expected.answer.winner.weights)
    )


@pytest.mark.parametrize("copies", [1, 10])
@pytest.mark.parametrize("which", ["run 0", "run 5"])
def test_a_copy_of_a_partition_changes_no_other_score(which, copies, plain):
    runs = list(made_runs())
    run = next(r for r in runs if r.name == which)
    more = [Run(f"copy {i}", labels=run.labels + 4, space=run.space) for i in range(copies)]
    found = judged(Runs([*runs, *more]))
    same_answer(found, plain)
    chance = found.confidence.first_in
    assert len(set(chance[[found.ranking.names.index(which), -1]])) == 1
    np.testing.assert_allclose(chance[:6], plain.confidence.first_in)
    assert f"{6 + copies} clusterings (6 different ones" in found.explain()


@pytest.mark.parametrize("copies", [1, 10])
def test_a_copy_of_a_space_changes_nothing(copies, plain):
    runs = list(made_runs())
    more = [Run(f"copy {i}", embedding=runs[2].embedding.copy()) for i in range(copies)]
    found = judged(Runs([*runs, *more]))
    same_answer(found, plain)
    np.testing.assert_allclose(found.confidence.first_in, plain.confidence.first_in)
    assert found.scores.copies == {f"copy {i}": "space 2" for i in range(copies)}
    assert "count once: 'copy 0' of 'space 2'" in found.explain()


def test_runs_that_each_bring_the_same_space_share_it():
    runs = made_runs()
    each = [
        Run(r.name, labels=r.labels, embedding=np.array(runs.spaces[r.space]))
        for r in runs
        if r.has_labels
    ]
    found = judged(Runs(each))
    assert len(found.scores.spaces) == 4
    assert "6 clusterings were judged in 4 embeddings" in found.explain()
    named = judged(runs)
    np.testing.assert_allclose(np.sort(found.ranking.score), np.sort(named.ranking.score))


def test_a_turned_moved_and_rescaled_space_is_a_copy(plain):
    runs = list(made_runs())
    turn = ortho_group.rvs(3, random_state=0)
    turned = Run("turned", embedding=3 * (runs[1].embedding @ turn) + 5)
    found = ws.judge(Runs([*runs, turned]), "silhouette", n_draws=6, judge="ace")
    expected = ws.judge(Runs(runs), "silhouette", n_draws=6, judge="ace")
    same_answer(found, expected)
    assert found.scores.copies == {"turned": "space 1"}
    assert found.confidence.n_draws == 6


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_runs_changes_no_score(seed, plain):
    runs = list(made_runs())
    more = [Run("copy", labels=runs[5].labels + 1, embedding=runs[1].embedding.copy())]
    order = np.random.default_rng(seed).permutation(len(runs) + 1)
    found = judged(Runs([[*runs, *more][i] for i in order]))
    names = plain.ranking.names
    at = [found.ranking.names.index(name) for name in names]
    np.testing.assert_allclose(found.ranking.score[at], plain.ranking.score, rtol=1e-9)
    assert found.ranking.rank[at].tolist() == plain.ranking.rank.tolist()


def test_ace_itself_judges_the_scores_as_they_are():
    runs = list(made_runs())
    copy = Run("copy", embedding=runs[2].embedding.copy())
    scores = ws.score_runs(Runs([*runs, copy]))
    assert len(scores.spaces) == 5
    assert len(ws.ace(scores).spaces) == 5
    assert len(ws.ace(scores).classes) == len(scores.partitions)


def test_spaces_that_differ_in_one_value_are_no_copies():
    X = np.random.default_rng(0).normal(size=(N, 3))
    Y = X.copy()
    Y[17, 1] += 1e-9
    runs = Runs([Run("x", embedding=X), Run("y", embedding=Y), Run("z", embedding=X.copy())])
    once, copies = spaces_once(runs)
    assert list(once.spaces) == ["x", "y"]
    assert copies == {"z": "x"}


@pytest.mark.parametrize("row", [[0.5, 0.5, 0.5], [0.5, np.nan, 0.2], [0.5, np.inf, 0.2]])
def test_constant_and_undefined_scores_mark_no_copy(row):
    scores = np.array([row, row, [0.1, 0.2, 0.3]])[:, :, None]
    assert first_alike(scores).tolist() == [0, 1, 2]
    twice = np.array([[0.1, 0.2, 0.3], row, [0.1, 0.2, 0.3]])[:, :, None]
    assert first_alike(twice).tolist() == [0, 1, 0]


def test_a_copy_by_scores_of_a_copy_by_digest_is_traced_to_the_first():
    first = first_alike(np.array([[0.1, 0.2, 0.4], [0.1, 0.2, 0.4]])[:, :, None])
    found = trace_copies({"other": "space 1"}, ("space 0", "space 1"), first)
    assert found == {"other": "space 0", "space 1": "space 0"}


def test_equal_partitions_share_the_mean_of_their_own_spaces():
    runs = list(made_runs())
    again = [Run(f"again {i}", labels=runs[4].labels, space="space 1") for i in range(3)]
    found = ws.judge(Runs([*runs, *again]), n_draws=0, judge="ace")
    matrix = found.scores.values["silhouette"]
    expected = matrix[[0, 1], 0].mean()  # run 0 in space 0, its copies in space 1: each once
    own = found.ranking.baselines["own_space"]
    np.testing.assert_allclose(own[[0, -3, -2, -1]], expected)


def test_runs_that_are_all_the_same_partition_are_not_ranked_by_a_vote():
    runs = list(made_runs())[:4]
    labels = np.arange(N) % 3
    same = [Run(f"same {i}", labels=(labels + i) % 3) for i in range(7)]
    with pytest.raises(NothingToRank, match="all 7 runs are the same clustering"):
        ws.consensus(Runs([*runs, *same]))
    scores = ws.score_runs(Runs([*runs, *same]))
    with pytest.raises(NothingToRank, match="identical"):
        ws.ace(scores)


def test_the_page_says_the_best_partition_once():
    runs = list(made_runs())
    copy = Run("run 00", labels=runs[4].labels + 1, space="space 0")
    judgement = ws.judge(Runs([*runs, copy]), n_draws=4, judge="ace")
    assert judgement.ranking.winners == ("run 0", "run 00")
    assert re.search(
        r"Best: 'run 0' \(score [.\d]+; the same clustering: 'run 00'\)", judgement.explain()
    )
    from wellsep.report.pages.ranking import _lead

    lead = "".join(text for _, text in _lead(judgement))
    assert lead == judgement.verdict.headline
    assert lead.startswith("'run 0' (K = ")
    assert " 2 runs found it." in lead


def test_confidence_can_be_asked_for_anew_where_copies_left(plain):
    runs = list(made_runs())
    copies = [Run("x", embedding=runs[0].embedding.copy()), Run("y", labels=runs[5].labels)]
    runs = Runs([*runs, *copies])
    found = judged(runs)
    again = rank_confidence(runs, found.scores, found.answer, n_draws=12)
    np.testing.assert_allclose(again.first_in, found.confidence.first_in)
    assert again.partitions == found.ranking.names
