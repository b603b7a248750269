"""Which embedding? Each is ranked once, by its agreement with the vote of the clusterings."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import wellsep as ws
from wellsep.cli.main import main
from wellsep.evaluate.scores import Dip
from wellsep.records import Judgement
from wellsep.spaces.effective_rank import spectrum_of

WRONG = (0.0, 0.1, 0.2, 0.4, 0.7)


def made_runs(seed=0, n=150):
    """Three good embeddings, a copy, one with a group that means nothing, one without groups."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    centres = np.array([[0, 0, 0], [8, 0, 3], [16, 5, 0]])
    spaces = {f"good {i}": rng.normal(size=(n, 3)) + centres[truth] for i in range(3)}
    spaces["copy"] = spaces["good 1"].copy()
    spurious = rng.normal(size=(n, 2))
    spurious[rng.permutation(n)[: n // 3]] += 12
    spaces["spurious"] = spurious
    spaces["empty"] = rng.normal(size=(n, 4))
    labels = [np.where(rng.random(n) < p, rng.integers(0, 3, n), truth) for p in WRONG]
    labels.append((spurious[:, 0] > 6).astype(int))
    names = ["good 0", "good 1", "good 2", "copy", "empty", "spurious"]
    own = dict(zip(names, labels, strict=True))
    return ws.Runs([ws.Run(name=n, embedding=z, labels=own[n]) for n, z in spaces.items()])


@pytest.fixture(scope="module")
def judgement():
    return ws.judge(made_runs(), n_draws=0)


@pytest.fixture(scope="module")
def found(judgement):
    return judgement.embeddings


def of(found, name):
    """The values of one embedding, by the name of their field."""
    each = {f.name: getattr(found, f.name) for f in fields(found)}
    rows = {key: values for key, values in each.items() if not isinstance(values, str | int)}
    return {key: values[found.embeddings.index(name)] for key, values in rows.items()}


def test_every_distinct_embedding_is_ranked_once(found):
    assert found.embeddings == ("good 0", "good 1", "good 2", "spurious", "empty")
    assert found.copies == ((), ("copy",), (), (), ())
    assert sorted(found.rank.tolist())[0] == 1
    assert found.dims.tolist() == [3, 3, 3, 2, 4]
    assert found.n_objects == 150


def test_the_order_is_that_of_agreement_with_the_vote(judgement, found):
    scores = judgement.scores.oriented()
    vote = judgement.vote.agreed[judgement.vote.classes.of]
    expected = [spearmanr(row, vote).statistic for row in scores]
    np.testing.assert_allclose(found.agreement, expected, atol=1e-12)
    ordered = found.agreement[found.order]
    assert (np.diff(ordered) <= 0).all()
    assert found.best.startswith("good")
    assert {found.embeddings[i] for i in found.order[-2:]} == {"spurious", "empty"}


def test_an_embedding_that_decides_alone_is_not_the_best_for_that():
    """Only the meaningless group passes the dip test; ACE follows it, the vote does not."""
    runs = made_runs()
    found = ws.judge(runs, judge="ace", n_draws=0)
    p = np.where(np.array(found.scores.spaces) == "spurious", 0.0, 1.0)
    scores = replace(found.scores, dip=Dip(p, p, ("",) * len(p)))
    answer = ws.ace(scores)
    alone = replace(found, scores=scores, answers={**found.answers, "ace": {"silhouette": answer}})
    row = of(alone.embeddings, "spurious")
    assert row["admitted"]
    assert row["weight"] == 1
    assert row["agreement_ranking"] == 1
    assert alone.embeddings.rank[alone.embeddings.embeddings.index("spurious")] > 3
    assert "'spurious', which weighs most in ACE's answer, has rank" in alone.explain()


def test_each_says_what_admits_it_and_what_it_likes(judgement, found):
    empty, good = of(found, "empty"), of(found, "good 0")
    assert not empty["admitted"]
    assert "cannot rule out a single mode" in empty["why"]
    assert good["admitted"]
    assert "finds more than one mode" in good["why"]
    assert good["favourite"] == "good 0"
    row = judgement.scores.values["silhouette"][0]
    assert good["favourite_score"] == row.max()
    assert good["dip_pvalue"] == judgement.scores.dip.pvalue[0]
    assert found.weight.sum() == pytest.approx(1)
    assert found.group[found.embeddings.index("empty")] == 0


def test_an_undefined_dip_test_is_said_and_admits():
    rng = np.random.default_rng(0)
    labels = {"a": np.arange(40) % 2, "b": np.arange(40) % 3, "c": np.arange(40) // 20}
    square = np.vstack([np.eye(2), -np.eye(2)])[np.arange(40) % 4]  # equal eigenvalues
    runs = ws.Runs.from_parts({"square": square, "other": rng.normal(size=(40, 2))}, labels)
    row = of(ws.judge(runs, n_draws=0).embeddings, "square")
    assert row["admitted"]
    assert np.isnan(row["dip_pvalue"])
    assert "undefined" in row["why"]


def test_the_votes_for_the_runs_made_in_an_embedding_are_averaged(judgement, found):
    vote = judgement.vote.agreed[judgement.vote.classes.of]
    names = list(judgement.scores.partitions)
    both = of(found, "good 1")
    assert both["own_runs"] == 2  # its own and that of its copy
    assert both["own_vote"] == pytest.approx(
        np.mean([vote[names.index("good 1")], vote[names.index("copy")]])
    )


def test_the_spectrum_is_that_of_each_embedding(found):
    runs = made_runs()
    for name, rankme, alpha in zip(found.embeddings, found.rankme, found.alpha_req, strict=True):
        assert (rankme, alpha) == spectrum_of(runs.spaces[name])[:2]


def test_two_clusterings_have_no_vote_and_the_ranking_decides():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    mixed = rng.integers(0, 2, 60)
    spaces = {f"good {i}": rng.normal(size=(60, 2)) + 9 * truth[:, None] for i in range(2)}
    spaces["bad"] = rng.normal(size=(60, 2)) + 2 * mixed[:, None]
    runs = ws.Runs.from_parts(spaces, {"true": truth, "mixed": mixed})
    found = ws.judge(runs, n_draws=0, dip=False).embeddings
    assert np.isnan(found.agreement).all()
    assert found.deciding is found.agreement_ranking
    assert found.rank.tolist() == [1, 1, 3]
    said = "'good 0' and 'good 1' rank the clusterings most as the ranking does (Spearman 1.00)"
    assert said in found.explain()


def test_scores_of_elsewhere_have_no_vote_no_spectrum_and_no_columns():
    scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.6, 0.2, 0.3]], paired=False)
    answer = ws.ace(scores, dip=False)
    found = Judgement(scores, {"ace": {"score": answer}}).embeddings
    assert np.isnan(found.rankme).all()
    assert found.columns()["dims"] == [None, None]
    assert "own_vote" not in found.columns()
    assert found.favourite == ("partition 1", "partition 0")


def test_terminal_json_and_page_show_the_table(tmp_path, capsys):
    runs = made_runs()
    for run in runs:
        ws.save_run(tmp_path / "runs", run.embedding, run.labels, name=run.name)
    page = tmp_path / "page.html"
    args = ["rank", str(tmp_path / "runs"), "--draws", "0", "--cache", "none"]
    assert main([*args, "--report", str(page)]) == 0
    text = capsys.readouterr().out
    assert "Embeddings" in text
    assert text.index("Ranking by") < text.index("Embeddings")
    assert "the clusterings most as their vote does" in text
    assert main([*args, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["embeddings"]
    assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)
    assert {"embedding", "admitted", "why", "rankme", "alpha_req", "copies"} <= set(rows[0])
    assert sum(len(row["copies"]) for row in rows) == 1
    assert 'id="embeddings"' in page.read_text("utf-8")


def test_kept_scores_keep_the_spectrum(tmp_path):
    runs = made_runs()
    first = ws.judge(runs, n_draws=0, cache=tmp_path).embeddings
    again = ws.judge(runs, n_draws=0, cache=tmp_path).embeddings
    np.testing.assert_array_equal(first.rankme, again.rankme)
    assert first.explain() == again.explain()


def test_the_coverage_of_a_favourite_with_noise_is_shown(found):
    assert "coverage" not in found.columns()
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    spaces = {f"s{i}": rng.normal(size=(60, 2)) + 9 * truth[:, None] for i in range(2)}
    labels = {"noisy": np.where(np.arange(60) < 6, -1, truth), "mixed": rng.integers(0, 2, 60)}
    judged = ws.judge(ws.Runs.from_parts(spaces, labels), n_draws=0, dip=False).embeddings
    assert judged.favourite == ("noisy", "noisy")
    assert judged.columns()["coverage"] == [0.9, 0.9]
