"""Agreed groups, questions and settled labels, on partitions small enough to check by eye."""

from dataclasses import replace

import numpy as np
import pytest
from contested import contested_judgement
from hypothesis import given, settings
from hypothesis import strategies as st

import wellsep as ws
from wellsep.evaluate import Judgement
from wellsep.evaluate.clusters.agreed import AgreedGroups, find_agreed
from wellsep.evaluate.clusters.support import load_curve
from wellsep.evaluate.structure import structure_of
from wellsep.partitions import Partitions


def found(*rows: str, shares=None) -> AgreedGroups:
    """Agreed groups of runs written as letters; '.' is noise."""
    letters = [sorted(set(row) - {"."}) for row in rows]
    codes = [
        [-1 if x == "." else known.index(x) for x in row]
        for row, known in zip(rows, letters, strict=True)
    ]
    shares = np.full(len(rows), 1 / len(rows)) if shares is None else np.array(shares)
    names = tuple(f"run {i}" for i in range(len(rows)))
    return find_agreed(np.array(codes), shares, tuple(letters[0]), names)


def test_a_cluster_that_every_contender_has_is_agreed():
    groups = found("aaaabbbbcccc", "xxxxyyyyyyyy", shares=[0.7, 0.3])
    assert groups.is_agreed.tolist() == [True, False, False]
    assert groups.overlap.tolist() == [1, 0.5, 0.5]
    assert groups.n_objects_agreed == 4
    assert list(groups.sentences()) == [
        "1 group (4 of 12 objects) is found by every contender; 1 question is open."
    ]


def test_three_of_four_objects_in_common_are_the_threshold():
    # {0..3} against {0,1,2}: 3/4. Against {0,1}: 2/4.
    assert found("aaaabbbb", "xxxyyyyy").is_agreed.tolist() == [True, True]
    assert found("aaaabbbb", "xxyyyyyy").is_agreed.tolist() == [False, False]


def test_two_clusters_that_a_contender_joins_are_one_question():
    groups = found("aaaabbbbcccc", "xxxxyyyyyyyy", shares=[0.7, 0.3])
    (question,) = groups.questions
    assert (question.id, question.text) == ("b+c", "b and c: one group or two?")
    two, one = question.sides
    assert (two.words, two.share, two.runs) == ("two groups", 0.7, ("run 0",))
    assert (one.words, one.share, one.runs) == ("one group", pytest.approx(0.3), ("run 1",))
    assert one.groups == ("b+c",)
    assert len(two.moved) == 0 and len(one.moved) == 4


def test_a_small_cluster_may_belong_to_an_agreed_one():
    groups = found("aaaaaaaabbcccc", "xxxxxxxxxxyyyy", shares=[0.4, 0.6])
    assert groups.is_agreed.tolist() == [True, False, True]
    (question,) = groups.questions
    assert (question.text, question.beside) == ("Does b belong to a?", ("a",))
    assert [side.words for side in question.sides] == ["belongs to a", "stays apart"]
    assert question.sides[0].moved.tolist() == [8, 9]


def test_a_cluster_that_a_contender_splits_asks_how_many_groups():
    groups = found("aaaaaabbbb", "xxyyzzwwww", shares=[0.5, 0.5])
    (question,) = groups.questions
    assert question.text == "Is a one group or three?"
    three = question.side("three groups")
    assert three.groups == ("a.1", "a.2", "a.3")
    assert groups.settle({"a": "three groups"}).tolist() == [
        *["a.1"] * 2, *["a.2"] * 2, *["a.3"] * 2, *["b"] * 4,
    ]  # fmt: skip


def test_a_side_that_cuts_across_the_groups_is_told_by_its_sizes_and_a_run():
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(5), 50)
    batches = rng.integers(0, 3, (2, 250))
    halves = kinds // 2
    names = ("kinds", "batch 1", "batch 2", "halves")
    codes = np.array([kinds, *batches, halves])
    (question,) = find_agreed(
        codes, np.array([0.4, 0.3, 0.2, 0.1]), tuple("abcde"), names
    ).questions
    sizes = [np.bincount(side.codes) for side in question.sides]
    assert [side.words for side in question.sides] == [
        "five groups",
        f"three groups: {sizes[1].min()} to {sizes[1].max()} objects each, as in 'batch 1'",
        f"three groups: {sizes[2].min()} to {sizes[2].max()} objects each, as in 'batch 2'",
        "three groups: a with b; c with d; e",
    ]
    moved = np.roll(kinds, 25)  # five groups too, across those of the best run
    (question,) = find_agreed(
        np.array([kinds, moved]), np.array([0.6, 0.4]), *(tuple("abcde"), ("kinds", "moved"))
    ).questions
    assert [side.words for side in question.sides] == [
        "five groups: a, b, c, d and e",
        "five groups: 50 objects each, as in 'moved'",
    ]


def test_a_cluster_that_a_contender_calls_noise_asks_whether_it_is_a_group():
    groups = found("aaaabbbb", "....yyyy", shares=[0.6, 0.4])
    (question,) = groups.questions
    assert question.text == "Is a a group?"
    assert groups.settle({"a": "no group"}).tolist() == ["-1"] * 4 + ["b"] * 4


def test_clusters_cut_in_another_way_ask_for_the_border():
    groups = found("aaaabbbb", "xxyyyyxx", shares=[0.6, 0.4])
    (question,) = groups.questions
    assert question.text == "a and b: where is the border?"
    assert len({side.words for side in question.sides}) == 2


def test_unanswered_questions_follow_the_larger_share():
    rows = ("aaaabbbbcccc", "xxxxyyyyyyyy")
    assert set(found(*rows, shares=[0.7, 0.3]).settle()) == {"a", "b", "c"}
    assert set(found(*rows, shares=[0.3, 0.7]).settle()) == {"a", "b+c"}


def test_noise_of_the_best_run_stays_noise():
    groups = found("aaaabbbb..", "xxxxxxxxyy", shares=[0.3, 0.7])
    assert groups.settle().tolist() == ["a+b"] * 8 + ["-1"] * 2


def test_objects_outside_the_overlapping_clusters_go_with_most_of_their_cluster():
    # One object of a is in a small cluster of the other run that overlaps with b alone.
    groups = found("aaaaaaaaaabbbbbbbbbb", "xxxxxyyyyzzzzzzzzzzz", shares=[0.4, 0.6])
    assert groups.settle().tolist() == ["a.1"] * 5 + ["a.2"] * 4 + ["a.1"] + ["b"] * 10


def test_a_cluster_with_other_borders_is_neither_agreed_nor_in_question():
    # Of ten objects seven stay together, the others go to three clusters of ten each.
    groups = found(10 * "a" + 30 * "b", 7 * "x" + "yzw" + 10 * "y" + 10 * "z" + 10 * "w")
    assert groups.overlap[0] == pytest.approx(0.7) and not groups.is_agreed[0]
    assert all("a" not in question.clusters for question in groups.questions)
    assert list(groups.sentences())[1] == "1 group has other borders in some contenders."


def test_equal_contenders_leave_no_question():
    groups = found("aabbcc", "xxyyzz")
    assert groups.is_agreed.all() and not groups.questions
    assert list(groups.sentences()) == [
        "3 groups (6 of 6 objects) are found by every contender; 0 questions are open."
    ]


@pytest.mark.parametrize("answer", ["three groups", 2, -1, None, True])
def test_an_answer_that_no_side_gives_is_refused(answer):
    groups = found("aaaabbbbcccc", "xxxxyyyyyyyy")
    with pytest.raises(
        ValueError, match=r"the answer to question 'b\+c' must be one of 'two groups'"
    ):
        groups.settle({"b+c": answer})


def test_an_answer_to_an_unknown_question_is_refused():
    groups = found("aaaabbbbcccc", "xxxxyyyyyyyy")
    with pytest.raises(ValueError, match=r"answers must be to open questions \('b\+c'\), got 'b'"):
        groups.settle({"b": 0})


def test_numbers_and_words_of_a_side_are_the_same_answer():
    groups = found("aaaabbbbcccc", "xxxxyyyyyyyy", shares=[0.7, 0.3])
    assert groups.settle({"b+c": 1}).tolist() == groups.settle({"b+c": "one group"}).tolist()


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_every_cluster_is_agreed_or_in_one_question_at_most_and_shares_add_up(seed):
    rng = np.random.default_rng(seed)
    n, runs = int(rng.integers(8, 60)), int(rng.integers(1, 6))
    rows = []
    for _ in range(runs):
        raw = np.sort(rng.integers(-1, rng.integers(2, 7), n))
        raw = np.where(rng.random(n) < 0.2, rng.permutation(raw), raw)
        raw[0] = max(raw[0], 0)
        code = np.full(n, -1)
        code[raw >= 0] = np.unique(raw[raw >= 0], return_inverse=True)[1]
        rows.append(code)
    shares = rng.dirichlet(np.ones(runs))
    names = tuple(map(str, range(rows[0].max() + 1)))
    groups = find_agreed(np.array(rows), shares, names, tuple(f"run {i}" for i in range(runs)))
    asked = [label for question in groups.questions for label in question.clusters]
    agreed = [names[c] for c in np.flatnonzero(groups.is_agreed)]
    assert len(asked) == len(set(asked)) and not set(asked) & set(agreed)
    for question in groups.questions:
        assert sum(side.share for side in question.sides) == pytest.approx(1)
        assert len({side.words for side in question.sides}) == len(question.sides)
        assert sorted(run for side in question.sides for run in side.runs) == sorted(
            groups.contenders
        )
        for i, side in enumerate(question.sides):
            labels = groups.settle({question.id: i})
            assert set(side.moved) <= set(question.objects)
            if groups.run in side.runs:
                assert len(side.moved) == 0
                assert set(labels[question.objects]) == set(question.clusters)
    settled = groups.settle()
    untouched = np.isin(groups.codes, np.flatnonzero(groups.is_agreed))
    assert settled[untouched].tolist() == [names[c] for c in groups.codes[untouched]]
    assert ((settled == "-1") >= (groups.codes < 0)).all()


def test_a_judgement_tells_its_groups_questions_and_clusters(tmp_path):
    judgement = contested_judgement()
    agreed = judgement.agreed
    assert agreed.run == judgement.ranking.best == judgement.clusters.runs[0]
    assert agreed.shares.tolist() == [0.6, 0.4]
    assert int(agreed.is_agreed.sum()) == 2
    (question,) = judgement.questions
    assert [side.share for side in question.sides] == [0.6, 0.4]
    assert judgement.verdict.groups == " ".join(agreed.sentences())
    assert next(iter(judgement.verdict.sentences())) == judgement.verdict.groups
    told = judgement.to_dict()
    assert told["questions"][0]["text"] == question.text
    assert told["verdict"]["facts"]["agreed_groups"] == 2
    again = Judgement.load(judgement.save(tmp_path))
    assert again.settle({question.id: 1}).tolist() == judgement.settle({question.id: 1}).tolist()


def test_of_equal_runs_the_one_that_the_ranking_names_is_the_best_run():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 20)
    noisy = {f"z {i}": np.where(rng.random(60) < 0.1, 0, codes) for i in range(6)}
    labels = {**noisy, **{f"a {name}": vector for name, vector in noisy.items()}}
    judgement = ws.judge(ws.Runs.from_parts(None, labels), n_draws=10)
    assert judgement.ranking.best.startswith("a ")
    assert judgement.agreed.run == judgement.ranking.best == judgement.clusters.runs[0]


def test_settled_labels_can_be_scored_and_described():
    judgement = contested_judgement()
    settled = judgement.settle()
    assert set(settled) == set(judgement.agreed.clusters)
    X = np.random.default_rng(0).normal(size=(len(settled), 2))
    assert np.isfinite(ws.silhouette_score(X, settled))


def test_the_clusters_of_a_judgement_have_support_and_a_share_of_classes():
    clusters = contested_judgement().clusters
    columns = clusters.columns()
    assert set(columns) >= {"run", "cluster", "size", "support", "class_share", "width", "lcd"}
    best = clusters.of(clusters.runs[0])
    assert columns["size"][: len(best)] == clusters.sizes[best].tolist()
    assert ((clusters.support > 0) & (clusters.support <= 1)).all()
    curve = load_curve(one_embedding=False)
    assert clusters.class_share == pytest.approx(curve.class_share(clusters.support))
    assert f"of 100 cases on {curve.sets} labelled data sets" in clusters.explain()
    assert clusters.object_support.shape == (160,)


def test_runs_of_one_embedding_have_a_curve_of_their_own():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), {f"run {i}": rng.integers(0, 3, 60) for i in range(6)}
    of_one = ws.judge(ws.Runs.from_parts({"s": X}, labels), n_draws=0).clusters
    curve = load_curve(one_embedding=True)
    assert of_one.class_share == pytest.approx(curve.class_share(of_one.support))
    of_labels = ws.judge(ws.Runs.from_parts(None, labels), n_draws=0).clusters
    assert of_labels.n_sets == 0 and np.isnan(of_labels.class_share).all()


def test_without_draws_there_are_no_agreed_groups_and_the_verdict_says_why():
    rng = np.random.default_rng(0)
    labels = {f"run {i}": rng.integers(0, 3, 60) for i in range(6)}
    judgement = ws.judge(ws.Runs.from_parts(None, labels), n_draws=0)
    assert not judgement.agreed.is_agreed.any() and not judgement.questions
    assert judgement.agreed.why in judgement.verdict.second
    assert judgement.verdict.groups == ""
    with pytest.raises(ValueError, match="There are no questions to settle"):
        judgement.settle()


def test_where_there_is_nothing_to_cluster_no_group_is_agreed():
    judgement = contested_judgement()
    noise = np.random.default_rng(0).normal(size=(judgement.scores.n_objects, 3))
    labels = Partitions.from_labels({"halves": noise[:, 0] > 0})
    nothing = replace(judgement, structure=structure_of(noise, labels))
    assert nothing.verdict.kind == "nothing to cluster"
    assert nothing.agreed.why == "No group counts as agreed, since there is nothing to cluster."


def test_where_the_index_decides_alone_no_group_is_agreed():
    judgement = contested_judgement()
    answers = {**judgement.answers, "index": judgement.answers["consensus"]}
    alone = replace(judgement, judge="index", answers=answers)
    assert alone.agreed.why.endswith("because the index decides alone.")
    assert not alone.questions and not alone.agreed.is_agreed.any()


def test_one_contender_is_contested_by_none():
    groups = found("aabbcc")
    assert list(groups.sentences()) == [
        "'run 0' is first in all half-samples, so no other run contests its groups."
    ]
