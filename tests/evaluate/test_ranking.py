"""A ranking orders the partitions with ties, beside the baselines, and explains itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wellsep as ws
from wellsep._text.sentences import listing
from wellsep.evaluate import Ranking, Scores, ace, rank
from wellsep.evaluate.certainty.confidence import summarise
from wellsep.evaluate.clusters.objects import object_details
from wellsep.evaluate.ranks import rank_correlation, ranks
from wellsep.partitions import encode
from wellsep.runs import Run, Runs

MATRIX = np.array([[0.1, 0.5, 0.3, 0.5], [0.2, 0.6, 0.35, 0.6], [0.0, 0.4, 0.3, 0.4]])
NAMES = ["k2", "k3", "k4", "again k3"]


def table(matrix=MATRIX, **options) -> Scores:
    return Scores.from_matrix(matrix, partitions=NAMES, paired=False, **options)


def test_ties_share_the_better_rank_and_the_best_is_the_first_by_name():
    ranking = rank(ace(table(), dip=False))
    assert ranking.rank.tolist() == [4, 1, 3, 1]
    assert ranking.winners == ("again k3", "k3")
    assert ranking.best == "again k3"
    assert [ranking.names[i] for i in ranking.order] == ["again k3", "k3", "k4", "k2"]


def test_rounding_does_not_break_a_tie():
    matrix = MATRIX.copy()
    matrix[:, 3] *= 1 + 1e-15
    assert rank(ace(table(matrix), dip=False)).rank.tolist() == [4, 1, 3, 1]
    assert ranks(np.array([0.3, 0.1 + 0.2, 0.5])).tolist() == [2, 2, 1]


def test_baselines_and_other_indices_stand_beside():
    first = ace(table(), dip=False)
    second = ace(table(-MATRIX, index="calinski_harabasz"), dip=False)
    ranking = rank(first, others=[second], input_scores=[0.4, 0.3, 0.2, np.nan])
    assert ranking.ranks_by("calinski_harabasz").tolist() == [1, 3, 2, 3]
    assert ranking.ranks_by("input").tolist() == [1, 2, 3, 4]
    assert ranking.ranks_by("mean_admitted").tolist() == [4, 1, 3, 1]
    columns = ranking.columns()
    assert columns["partition"][0] == "again k3"
    assert columns["rank_input"] == [4, 2, 3, 1]
    with pytest.raises(ValueError, match="name must be one of"):
        ranking.ranks_by("dunn")


def test_other_partitions_cannot_stand_beside():
    other = ace(Scores.from_matrix(MATRIX, paired=False), dip=False)
    with pytest.raises(ValueError, match="same clusterings"):
        rank(ace(table(), dip=False), others=[other])
    with pytest.raises(ValueError, match="one score per clustering"):
        rank(ace(table(), dip=False), input_scores=[0.1])
    with pytest.raises(TypeError, match="must be an AceResult or a Consensus, got Scores"):
        rank(table())


def test_confidence_appears_in_table_and_story():
    sure = summarise(np.array([[4, 1, 3, 1], [4, 2, 3, 1], [3, 1, 4, 2], [4, 1, 3, 2]]), 0.9, 12, 1)
    ranking = rank(ace(table(), dip=False), confidence=sure)
    assert ranking.confidence.first_in.tolist() == [0, 0.625, 0, 0.375]
    assert ranking.confidence.interval.tolist() == [[3, 4], [1, 2], [3, 4], [1, 2]]
    assert "'k3' comes first in 62% of them (rank 1 to 2 in 90%)" in ranking.explain()
    assert (ranking.columns()["rank_low"][0], ranking.columns()["rank_high"][0]) == (1, 2)
    short = summarise(np.array([[1, 2]]), 0.9, 12, 1)
    with pytest.raises(ValueError, match="same 4 clusterings, got 2"):
        rank(ace(table(), dip=False), confidence=short)


def test_the_ranking_survives_the_disk(tmp_path):
    sure = summarise(np.array([[4, 1, 3, 1]]), 0.9, 12, 1)
    first = rank(ace(table(), dip=False), confidence=sure)
    again = Ranking.load(first.save(tmp_path / "ranking"))
    assert again.columns() == first.columns()
    assert again.explain() == first.explain()


def test_frame_and_notebook_table_list_best_first():
    names = ["<script>", "b", "c", "d"]
    ranking = rank(ace(Scores.from_matrix(MATRIX, partitions=names, paired=False), dip=False))
    assert ranking.to_frame()["partition"].tolist() == ["b", "d", "c", "<script>"]
    html = ranking._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html


def test_the_story_names_what_fell_out_what_won_and_what_others_pick():
    rng = np.random.default_rng(0)
    quality = np.linspace(0, 1, 8)
    rows = [quality + rng.normal(0, 0.02, 8) for _ in range(4)] + [quality[::-1], np.full(8, 0.5)]
    scores = Scores.from_matrix(
        np.array(rows),
        paired=False,
        spaces=["a", "b", "c", "d", "unimodal", "constant"],
        dip_pvalues=[0, 0, 0, 0, 0.7, 0],
    )
    story = ace(scores).explain()
    assert "5 of 6 embeddings pass the dip test" in story
    assert "'unimodal' (adjusted p = 0.7)" in story
    assert "every clustering scores the same there: 'constant'" in story
    assert "6 of 6 pairs" in story
    assert "Best: 'partition 7'" in story
    assert "pick the same" in story
    assert "Confidence" in story


def test_a_winner_that_drops_objects_is_pointed_out():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 4 * np.eye(3, 2)[truth]
    core = np.where(ws.silhouette_samples(X, truth) > 0.5, truth, -1)
    runs = Runs.from_parts({"s": X, "t": X + 1}, {"all": truth, "core": core})
    result = ace(ws.score_runs(runs, noise="exclude"), dip=False)
    assert rank(result).best == "core"
    share = (core >= 0).mean()
    assert f"puts {share:.0%} of the objects into clusters" in result.explain()


def test_long_lists_of_names_are_cut():
    assert listing(["a"]) == "a"
    assert listing(["a", "b"]) == "a and b"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(map(str, range(12)), most=3) == "0, 1, 2 and 9 more"


def choice_runs() -> Runs:
    rng = np.random.default_rng(1)
    truth = np.arange(60) % 3
    spaces = {f"s{i}": rng.normal(size=(60, 3)) + 6 * np.eye(3)[truth] for i in range(3)}
    return Runs.from_parts(spaces, {"good": truth, "bad": rng.integers(0, 3, 60)})


def test_the_best_partition_is_described_object_by_object(tmp_path):
    runs = choice_runs()
    judgement = ws.judge(runs, judge="ace", n_draws=0)
    details, result = judgement.details, judgement.by_ace
    assert details.partition == "good"
    heaviest = result.winner.spaces[int(np.argmax(result.winner.weights))]
    assert details.space == result.spaces[heaviest]
    X = runs.spaces[details.space]
    np.testing.assert_allclose(details.widths, ws.silhouette_samples(X, runs.partitions["good"]))
    np.testing.assert_allclose(details.margins, ws.margins(X, runs.partitions["good"]))
    assert details.clusters == ("0", "1", "2")
    again = type(details).load(details.save(tmp_path / "details"))
    assert (again.partition, again.space) == (details.partition, details.space)
    np.testing.assert_array_equal(again.widths, details.widths)


def test_what_cannot_be_computed_is_noted_not_raised():
    details = object_details(choice_runs().spaces["s0"], encode(np.zeros(60, int)), "s0")
    assert np.isnan(details.widths).all()
    assert any("Silhouette widths are undefined" in note for note in details.notes)


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_rank_correlation_is_scipys_where_both_are_finite(kind):
    rng = np.random.default_rng(3)
    function = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    for _ in range(20):
        first, second = rng.integers(0, 6, (2, 12)).astype(float)
        expected = function(first, second).statistic
        assert rank_correlation(kind, first, second) == pytest.approx(expected, abs=1e-14)
        gap = rank_correlation(kind, [*first, np.nan, 0.0], [*second, 3.0, np.inf])
        assert gap == rank_correlation(kind, first, second)


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_a_constant_has_no_rank_correlation(kind):
    assert np.isnan(rank_correlation(kind, [0.3, 0.1 + 0.2], [1.0, 2.0]))
    assert np.isnan(rank_correlation(kind, [np.nan, 1.0], [1.0, 2.0]))


def test_runs_that_tie_stand_in_the_order_of_their_numbers():
    labels = {f"run {i}": np.arange(60) % 3 for i in (10, 2, 1)} | {"other": np.arange(60) % 2}
    spaces = {"a": np.random.default_rng(0).normal(size=(60, 2)) + np.eye(3)[np.arange(60) % 3, :2]}
    ranking = ws.judge(ws.Runs.from_parts(spaces, labels), n_draws=0, judge="ace").ranking
    tied = [name for name in ranking.columns()["partition"] if name != "other"]
    assert tied == ["run 1", "run 2", "run 10"]


@pytest.mark.parametrize("judge", ["auto", "consensus", "ace"])
def test_whoever_decides_explain_tells_why_a_score_is_undefined(judge):
    runs = Runs([*choice_runs(), Run("lump", labels=np.zeros(60, int))])
    text = ws.judge(runs, n_draws=0, judge=judge).explain()
    assert text.count("are undefined and count as the worst score") == 1
    assert "For instance 'lump' in " in text
