"""Half-samples: their scores are exact, come from one pass, and say how sure a ranking is."""

from __future__ import annotations

import numpy as np
import pytest
from halved import score_halves

import wellsep as ws
from wellsep.compute.statistics import half_samples as half_sums
from wellsep.evaluate import (
    NothingToRank,
    RankConfidence,
    Scores,
    ace,
    rank,
    rank_confidence,
    score_runs,
)
from wellsep.evaluate.certainty.confidence import summarise
from wellsep.evaluate.certainty.half_samples import draw_halves
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs
from wellsep.spaces.dip_half_samples import half_dips

N = 103


def points(seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4)) + 4 * np.eye(4)[np.arange(N) % 4]
    X[3] = 0.0  # no direction
    X[5:9] = X[5]  # duplicates
    return X.astype(dtype)


def partitions():
    rng = np.random.default_rng(1)
    truth = np.arange(N) % 4
    return Partitions.from_labels(
        {
            "true": truth,
            "random": rng.integers(0, 6, N),
            "one cluster": np.zeros(N, int),
            "with noise": np.where(rng.random(N) < 0.2, -1, truth),
            "two objects": np.arange(N) < 2,
            "pairs": np.arange(N) // 2,
        }
    )


SPECS = [
    ("silhouette", {}),
    ("silhouette", {"average": "cluster"}),
    ("silhouette", {"singleton": 1.0}),
    ("silhouette", {"metric": "cosine"}),
    ("silhouette", {"metric": "sqeuclidean"}),
    ("silhouette", {"metric": "manhattan"}),
    ("silhouette_cosine", {}),
    ("calinski_harabasz", {}),
    ("davies_bouldin", {}),
    ("davies_bouldin", {"q": 2}),
    ("cfq", {}),
]


@pytest.mark.parametrize(("name", "given"), SPECS)
def test_values_on_half_samples_are_those_of_the_index(name, given):
    X, parts = points(), partitions()
    halves = draw_halves(N, 7, 6, np.random.default_rng(2))
    found = score_halves(X, parts, name, ws.INDICES[name].with_params(given), halves)
    expected = np.stack(
        [
            ws.score_partitions(X[chosen], parts.take(chosen), [(name, given)]).values[:, 0]
            for chosen in map(halves.objects, range(7))
        ]
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 2.0**-600, 2.0**600])
@pytest.mark.parametrize("projection", ["pca-scaled", "pca", "components"])
def test_dips_of_half_samples_are_those_of_the_test(projection, unit):
    X = (points() + 100) * unit
    halves = draw_halves(N, 5, 6, np.random.default_rng(2))
    found = half_dips(X, halves, np.arange(5), projection)
    expected = [
        ws.multimodality(X[halves.objects(draw)], projection=projection).pvalue for draw in range(5)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_a_column_constant_in_the_half_switches_scaling_off_there():
    X = points()
    X[:, 2] = 0.0
    X[0, 2] = 1.0
    halves = draw_halves(N, 2, 6, np.random.default_rng(2))
    found = half_dips(X, halves, np.arange(2), "pca-scaled")
    expected = [
        ws.multimodality(X[halves.objects(draw)], projection="pca-scaled").pvalue
        for draw in range(2)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert half_dips(np.ones((N, 2)), halves, np.arange(2), "pca-scaled").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("seed", [22, 52, 103, 151, 196, 198, 210, 247])
def test_whitened_columns_have_no_first_component(seed):
    """All eigenvalues are equal up to rounding, where LAPACK's search by index may find none."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(seed).normal(size=(300, 25))
    white = StandardScaler().fit_transform(PCA(20, svd_solver="full").fit_transform(X))
    found = ws.multimodality(white)
    assert not found.defined
    halves = draw_halves(600, 2, 2, np.random.default_rng(0))
    twice = np.empty((600, 20))
    twice[halves.objects(0)] = twice[halves.objects(1)] = white
    assert np.isnan(half_dips(twice, halves, np.arange(2), "pca-scaled")).all()


def test_halves_are_halves_without_replacement_and_come_with_their_complement():
    halves = draw_halves(1000, 20, 12, np.random.default_rng(0))
    for draw in range(0, 20, 2):
        first, second = halves.objects(draw), halves.objects(draw + 1)
        assert abs(len(first) - 500) <= 6
        assert sorted([*first, *second]) == list(range(1000))
    assert len(np.unique(halves.chosen, axis=0)) > 15


def test_distances_are_computed_once_for_all_draws(monkeypatch):
    calls = []
    original = half_sums.pair_sums_by_group
    monkeypatch.setattr(half_sums, "pair_sums_by_group", lambda *a: calls.append(1) or original(*a))
    halves = draw_halves(N, 50, 6, np.random.default_rng(2))
    score_halves(points(), partitions(), "silhouette", {"metric": "euclidean"}, halves)
    assert len(calls) == 1


def test_sums_that_exceed_the_memory_budget_are_made_in_portions():
    from sklearn import config_context

    halves = draw_halves(N, 4, 6, np.random.default_rng(2))
    job = (points(), partitions(), "silhouette", {"metric": "euclidean"}, halves)
    plain = score_halves(*job)
    with config_context(working_memory=0.05):
        np.testing.assert_allclose(score_halves(*job), plain, rtol=1e-12)


def made(wrong=(0.0, 0.1, 0.5), n=120, spaces=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    runs = Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, 3)) + 5 * np.eye(3)[truth] for i in range(spaces)},
        {
            f"{p:.0%} wrong": np.where(rng.random(n) < p, rng.integers(0, 3, n), truth)
            for p in wrong
        },
    )
    scores = score_runs(runs, details=False)
    return runs, scores, ace(scores)


def test_a_clear_winner_is_sure():
    runs, scores, result = made(wrong=(0.0, 0.25, 0.6))
    sure = rank_confidence(runs, scores, result, n_draws=20)
    assert sure.ranks.shape == (20, 3)
    assert sure.first_in.tolist() == [1, 0, 0]
    assert sure.interval.tolist() == [[1, 1], [2, 2], [3, 3]]
    assert sure.spaces_left_out == 1


def test_equals_share_the_chance_of_being_best():
    """Ten random partitions of pure noise: none may look sure."""
    rng = np.random.default_rng(5)
    runs = Runs.from_parts(
        {f"s{i}": rng.normal(size=(200, 3)) for i in range(4)},
        {f"p{j}": rng.integers(0, 3, 200) for j in range(10)},
    )
    scores = score_runs(runs, details=False)
    sure = rank_confidence(runs, scores, ace(scores), n_draws=60)
    assert sure.first_in.sum() == pytest.approx(1)
    assert sure.first_in.max() < 0.6
    assert (sure.interval[:, 1] - sure.interval[:, 0]).mean() > 3


def test_the_same_state_gives_the_same_answer_and_another_another():
    runs, scores, result = made(wrong=(0.2, 0.21, 0.22))
    first, again, other = (
        rank_confidence(runs, scores, result, n_draws=12, random_state=s) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.ranks, again.ranks)
    assert not np.array_equal(first.ranks, other.ranks)


def test_threads_do_not_change_the_answer():
    runs, scores, result = made(wrong=(0.2, 0.21, 0.22))
    one, two = (rank_confidence(runs, scores, result, n_draws=10, n_jobs=j) for j in (1, 2))
    np.testing.assert_array_equal(one.ranks, two.ranks)


def test_progress_counts_the_spaces_and_then_the_half_samples():
    told = []
    runs, scores, result = made()
    rank_confidence(runs, scores, result, n_draws=2, progress=lambda *seen: told.append(seen[:2]))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (0, 2), (1, 2), (2, 2)]


def test_confidence_survives_the_disk(tmp_path):
    first = rank_confidence(*made(), n_draws=4)
    again = RankConfidence.load(first.save(tmp_path / "sure"))
    np.testing.assert_array_equal(again.ranks, first.ranks)
    assert again.level == first.level


def test_scores_of_other_runs_are_refused():
    runs, scores, result = made()
    others, _, _ = made(wrong=(0.3, 0.4))
    with pytest.raises(ValueError, match="must be of these runs"):
        rank_confidence(others, scores, result)
    bare = Scores.from_matrix(
        scores.values["silhouette"], spaces=scores.spaces, partitions=scores.partitions
    )
    with pytest.raises(ValueError, match="must come from score_runs"):
        rank_confidence(runs, bare, ace(bare, dip=False))


def test_three_objects_have_no_halves():
    runs = Runs.from_parts({"s": [[0.0], [1.0], [5.0]]}, {"a": [0, 0, 1], "b": [0, 1, 1]})
    scores = score_runs(runs, details=False)
    with pytest.raises(NothingToRank, match="at least 4 objects, got 3"):
        rank_confidence(runs, scores, ace(scores, dip=False))


WRONG = tuple(i / 20 for i in range(12))


def test_in_each_draw_half_of_the_runs_choose_the_spaces_that_score_all():
    from wellsep.evaluate.certainty.confidence import FEWEST_RUNS
    from wellsep.evaluate.certainty.half_samples import draw_panels, draw_plan
    from wellsep.evaluate.ranks import ranks

    runs, scores, _ = made(wrong=WRONG)
    result = ace(scores, dip=False)
    found = rank_confidence(runs, scores, result, n_draws=8)
    assert (found.runs_per_draw, found.spaces_left_out) == (6, 1)
    parts = Partitions.from_labels(dict(runs.partitions))
    plan = draw_plan(parts, scores.spaces, 8, 0)
    panels = draw_panels(parts.codes, 8, least=FEWEST_RUNS, seed=plan.seed)
    assert len({tuple(panel) for panel in panels}) > 1
    spaces = [np.asarray(X) for X in runs.spaces.values()]
    for draw in range(8):
        objects = plan.halves.objects(draw)
        half = parts.take(objects)
        values = np.stack(
            [
                ws.score_partitions(spaces[i][objects], half, ["silhouette"]).values[:, 0]
                for i in plan.kept[draw]
            ]
        )
        told = ace(Scores.from_matrix(values[:, panels[draw]], paired=False), dip=False)
        expected = told.winner.weights @ values[list(told.winner.spaces)]
        assert found.ranks[draw].tolist() == ranks(expected).tolist()


@pytest.mark.parametrize("extra", [0, 8], ids=["all runs choose", "half of the runs choose"])
def test_a_run_without_a_score_comes_after_all_others_in_every_draw(extra):
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    spaces = {f"s{i}": 7 * np.eye(3)[truth] + rng.normal(size=(90, 3)) for i in range(3)}
    labels = {"true": truth, "shuffled": rng.permutation(truth), "one cluster": np.zeros(90, int)}
    for i in range(extra):
        moved = rng.random(90) < (i + 1) / 10
        labels[f"moved {i}"] = np.where(moved, rng.integers(0, 3, 90), truth)
    runs = Runs.from_parts(spaces, labels)
    ranking = ws.judge(runs, n_draws=8, judge="ace").ranking
    last = ranking.names.index("one cluster")
    assert np.isnan(ranking.score[last])
    assert (ranking.confidence.ranks[:, last] == len(labels)).all()
    assert ranking.confidence.interval[last].tolist() == [len(labels), len(labels)]


def test_few_runs_all_choose_the_spaces():
    runs, scores, result = made(wrong=WRONG[:5])
    assert rank_confidence(runs, scores, result, n_draws=4).runs_per_draw == 0


def test_drawing_runs_changes_neither_order_nor_scores():
    runs, _, _ = made(wrong=WRONG)
    without, drawn = (ws.judge(runs, n_draws=n, judge="ace", details=False) for n in (0, 10))
    assert drawn.ranking.score.tolist() == without.ranking.score.tolist()
    assert drawn.ranking.order.tolist() == without.ranking.order.tolist()
    assert drawn.confidence.runs_per_draw == 6
    assert "let 6 different clusterings choose the embeddings" in drawn.explain()


def test_the_same_runs_are_drawn_whatever_their_order_names_and_copies():
    runs, _, _ = made(wrong=WRONG)
    spaces, labels = dict(runs.spaces), {k: np.asarray(v) for k, v in runs.partitions.items()}
    plain = ws.judge(Runs.from_parts(spaces, labels), n_draws=10, judge="ace", details=False)
    turned = {f"{i:02d}": (labels[k] + 1) % 3 for i, k in enumerate(reversed(labels))}
    turned = {"a copy": labels["10% wrong"], **turned}
    other = ws.judge(Runs.from_parts(spaces, turned), n_draws=10, judge="ace", details=False)
    mine = plain.confidence.first_in[::-1]
    np.testing.assert_array_equal(other.confidence.first_in[1:], mine)
    np.testing.assert_array_equal(other.confidence.interval[1:], plain.confidence.interval[::-1])


def test_the_draws_of_a_vote_are_votes_on_the_halves():
    """Each draw is a consensus of half of the partitions on half of the objects, counted anew."""
    from wellsep.compute.statistics.contingency import PairCounts
    from wellsep.evaluate.certainty.confidence import repeat_vote, summarise_draws
    from wellsep.evaluate.certainty.half_samples import draw_plan
    from wellsep.indices.external import adjusted_rand
    from wellsep.partitions import Partitions

    rng = np.random.default_rng(0)
    truth = np.arange(96) % 4
    labels = {f"{i}": np.where(rng.random(96) < i / 8, rng.integers(0, 4, 96), truth)
              for i in range(7)}  # fmt: skip
    partitions = Partitions.from_labels(labels)
    plan = draw_plan(partitions, (), 6, 0)
    vote = ws.consensus(labels)
    found = summarise_draws(repeat_vote(vote, partitions, plan), vote, plan)
    assert found.runs_per_draw == 4
    keys = [
        np.unique(one, return_index=True)[1].argsort().argsort()[one] for one in partitions.codes
    ]
    by_content = sorted(range(7), key=lambda m: keys[m].astype(np.int32).tobytes())
    drawn = np.random.default_rng(plan.seed)
    for draw in range(6):
        objects = plan.halves.objects(draw)
        agreement = adjusted_rand(PairCounts.of_codes(partitions.take(objects).codes))
        voters = [by_content[i] for i in drawn.permutation(7)[:4]]
        scores = []
        for m in range(7):  # without the quarter of the votes that agrees least
            values = sorted(agreement[m, v] for v in voters if v != m)
            counted = np.clip(np.arange(1, len(values) + 1) - len(values) / 4, 0, 1)
            scores.append(counted @ values / counted.sum())
        expected = 1 + (np.array(scores)[:, None] < np.array(scores) - 1e-12).sum(axis=1)
        assert found.ranks[draw].tolist() == expected.tolist()


def test_the_draws_of_a_vote_count_a_bounded_number_of_objects(monkeypatch):
    from wellsep.evaluate.certainty import confidence

    monkeypatch.setattr(confidence, "MOST", 10 * 120)
    monkeypatch.setattr(confidence, "FEWEST_OBJECTS", 60)
    rng = np.random.default_rng(0)
    labels = {f"{i}": rng.integers(0, 3, 400) for i in range(5)}
    runs = ws.Runs.from_parts(None, labels)
    sure = ws.judge(runs, n_draws=4).confidence
    assert sure.notes == ("The half-samples count the votes of 120 of 400 objects.",)


def test_an_index_that_grows_trees_takes_at_most_twenty_half_samples():
    runs = made()[0].subset(spaces=list(made()[0].spaces)[:2])
    found = ws.judge(runs, "dbcv", judge="ace", n_draws=30, dip=False, details=False)
    assert found.confidence.n_draws == 20
    assert "dbcv grows trees anew in every half-sample, so 20 are drawn." in found.explain()
    few = ws.judge(runs, "dbcv", n_draws=4, dip=False, details=False)
    assert few.confidence.n_draws == 4
    again = rank_confidence(runs, found.scores, found.by_ace, n_draws=30)
    assert again.n_draws == 20


def test_a_run_that_comes_first_more_often_than_the_best_is_not_called_next():
    places = np.array([[1, 2], [2, 1], [2, 1], [2, 1]])
    table = ws.Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["a", "b"], paired=False)
    ranking = rank(ws.ace(table, dip=False), confidence=summarise(places, 0.9, 12, 0))
    assert "'b' comes first more often, in 75%." in ranking.explain()


def test_the_first_of_each_draw_is_kept_and_ties_go_to_the_first_by_name():
    classes = Classes(("k10", "k2", "copy of k10", "a"), np.array([0, 1, 0, 2]))
    places = np.array([[1, 1, 3], [3, 1, 2], [2, 3, 1]])  # of the three distinct partitions
    sure = summarise(places, 0.9, 12, 0, classes=classes)
    assert sure.first_in_draw.tolist() == [1, 1, 2]
    assert sure.ranks.tolist() == [[1, 1, 1, 3], [3, 1, 3, 2], [2, 3, 2, 1]]
    np.testing.assert_allclose(sure.first_in, [1 / 6, 1 / 2, 1 / 6, 1 / 3])
