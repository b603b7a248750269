"""Partitions vote for each other: hand arithmetic, copies, order, traps, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate import NothingToRank, consensus
from wellsep.evaluate.vote import answer as weights
from wellsep.runs import Run, Runs

# n = 6; d is a under other names. ARI(a, b): 2 pairs in common, 6 and 3 pairs, chance 6·3/15 = 1.2,
# mean 4.5, so .8/3.3.
SIX = {
    "a": [0, 0, 0, 1, 1, 1],
    "b": [0, 0, 1, 1, 2, 2],
    "c": [0, 0, 0, 0, 1, 1],
    "d": [5, 5, 5, 2, 2, 2],
}
# n = 12: a good run, one near it, one across, singletons, one cluster.
TWELVE = {
    "p": [0] * 6 + [1] * 6,
    "q": [0] * 5 + [1] * 6 + [0],
    "r": [0, 1] * 6,
    "s": list(range(12)),
    "t": [0] * 12,
}
NOISY = {
    "u": [0, 0, 0, 1, 1, 1, -1, -1],
    "v": [0, 0, 0, 1, 1, 1, 1, -1],
    "w": [0, 0, -1, -1, 1, 1, 0, 0],
}
PAIRS = np.triu_indices(3, 1)


def good_and_bad(n=600, copies=0, shuffled=0.0, seed=0):
    """Six runs near the truth, one bad run, and copies of it with some labels shuffled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 5

    def changed(labels, share):
        at = rng.random(n) < share
        return np.where(at, rng.permutation(labels), labels)

    labels = {f"good {i}": changed(truth, 0.2) for i in range(6)}
    bad = rng.integers(0, 5, n)
    labels["bad 0"] = bad
    labels |= {f"bad {i + 1}": changed(bad, shuffled) for i in range(copies)}
    return labels


@pytest.mark.parametrize(
    ("agreement", "pairs", "scores"),
    [
        ("ari", [0.242424, 0.324324, 0.444444], [0.283374, 0.343434, 0.384384, 0.283374]),
        ("ami", [0.298792, 0.355245, 0.615385], [0.327019, 0.457089, 0.485315, 0.327019]),
        ("nmi", [0.515804, 0.478704, 0.733680], [0.497254, 0.624742, 0.606192, 0.497254]),
    ],
)
def test_three_partitions_and_a_copy_by_hand(agreement, pairs, scores):
    found = consensus(SIX, agreement=agreement)
    np.testing.assert_allclose(found.agreement[PAIRS], pairs, atol=1e-6)
    np.testing.assert_allclose(found.scores, scores, atol=1e-6)
    assert found.classes.members == (("a", "d"), ("b",), ("c",))


def test_ranks_of_a_first_judge_weigh_the_votes():
    found = consensus(SIX, first_judge=[0.5, 0.3, 0.2, 0.5])
    np.testing.assert_allclose(found.weights, [1, (2 / 3) ** 2, (1 / 3) ** 2])
    np.testing.assert_allclose(found.scores, [0.258804, 0.262626, 0.361284, 0.258804], atol=1e-6)


@pytest.mark.parametrize(
    ("agreement", "plain", "weighed"),
    [
        ("ari", [0.072222, 0.072222, -0.05, 0, 0], [0.177407, 0.226211, -0.08913, 0, 0]),
        ("ami", [0.056814, 0.056814, -0.037188, 0, 0], [0.138558, 0.17619, -0.066291, 0, 0]),
        ("nmi", [0.196547, 0.196547, 0.109052, 0.327156, 0],
         [0.244816, 0.269084, 0.037931, 0.427655, 0]),
    ],
)  # fmt: skip
def test_singletons_and_one_cluster_by_hand(agreement, plain, weighed):
    found = consensus(TWELVE, agreement=agreement)
    np.testing.assert_allclose(found.scores, plain, atol=1e-6)
    found = consensus(TWELVE, agreement=agreement, first_judge=[0.4, 0.3, 0.2, 0.1, 0.0])
    np.testing.assert_allclose(found.weights, [1, 0.64, 0.36, 0.16, 0.04])
    np.testing.assert_allclose(found.scores, weighed, atol=1e-6)
    assert found.reasons == {"t": "It has one cluster, so it tells no objects apart."}


@pytest.mark.parametrize(
    ("noise", "agreement", "pairs"),
    [
        ("cluster", "ari", [0.652174, 0.181818, -0.096386]),
        ("cluster", "ami", [0.666115, 0.274542, -0.092910]),
        ("cluster", "nmi", [0.779017, 0.530026, 0.279208]),
        ("singletons", "ari", [0.730769, 0.1, -0.043478]),
        ("singletons", "ami", [0.783588, 0.169900, -0.009486]),
    ],
)
def test_noise_is_one_cluster_or_singletons_by_hand(noise, agreement, pairs):
    found = consensus(NOISY, noise=noise, agreement=agreement)
    np.testing.assert_allclose(found.agreement[PAIRS], pairs, atol=1e-6)
    assert found.n_clusters.tolist() == [2, 2, 2]
    assert found.coverage.tolist() == [0.75, 0.875, 0.75]
    if (noise, agreement) == ("cluster", "ari"):
        np.testing.assert_allclose(found.scores, [0.416996, 0.277894, 0.042716], atol=1e-6)


OPTIONS = [
    {},
    {"agreement": "ami"},
    {"agreement": "nmi"},
    {"first_judge": "given"},
]


def judged(labels, options):
    """Consensus with a first judge that likes what comes first in the alphabet."""
    if options.get("first_judge") == "given":
        liked = {name: -float(ord(name.split(" of ")[-1][-1])) for name in labels}
        options = {**options, "first_judge": liked}
    return consensus(labels, **options)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("copies", [1, 10])
def test_copies_change_no_other_score_nor_the_order(options, copies):
    labels = good_and_bad(copies=3, shuffled=0.3)
    first = judged(labels, options)
    for name in labels:
        renamed = {f"{i} of {name}": np.add(labels[name], 7) for i in range(copies)}
        again = judged({**renamed, **labels}, options)
        np.testing.assert_allclose(again.scores[copies:], first.scores, rtol=1e-12)
        np.testing.assert_allclose(
            again.relative_agreement[copies:], first.relative_agreement, rtol=1e-12
        )
        assert again.rank[copies:].tolist() == first.rank.tolist()
        np.testing.assert_allclose(again.scores[:copies], first.scores[list(labels).index(name)])


@pytest.mark.parametrize("options", OPTIONS)
def test_the_order_of_runs_and_objects_changes_nothing(options):
    labels = good_and_bad(copies=3, shuffled=0.3)
    first = judged(labels, options)
    rng = np.random.default_rng(1)
    names, objects = rng.permutation(list(labels)), rng.permutation(600)
    again = judged({str(name): labels[name][objects] for name in names}, options)
    place = [again.partitions.index(name) for name in first.partitions]
    np.testing.assert_allclose(again.scores[place], first.scores, rtol=1e-12)
    assert again.rank[place].tolist() == first.rank.tolist()


def test_many_clusters_please_nmi_and_nobody_else():
    rng = np.random.default_rng(0)
    clusters = np.arange(2, 61, 4)
    labels = {f"{k}": rng.integers(0, k, 500) for k in clusters}
    nmi = consensus(labels, agreement="nmi").scores
    assert (np.diff(nmi) > 0).all()
    for agreement in ("ari", "ami"):
        assert np.abs(consensus(labels, agreement=agreement).scores).max() < 0.01


def test_copies_of_a_bad_run_do_not_elect_it():
    for copies in (0, 5, 20):
        assert consensus(good_and_bad(copies=copies)).best.startswith("good")


def test_near_copies_share_a_vote(monkeypatch):
    labels = good_and_bad(copies=8, shuffled=0.02)
    assert consensus(labels).best.startswith("good")
    assert "share a vote" in consensus(labels).explain()
    monkeypatch.setattr(weights, "NEAR", 1.0)
    assert consensus(labels).best.startswith("bad")


def test_support_is_the_share_of_the_best_supported():
    found = consensus(SIX, first_judge=[1, 2, 3, 1])
    plain = consensus(SIX).scores
    np.testing.assert_allclose(found.relative_agreement, plain / plain.max())


def made_runs():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    spaces = {s: rng.normal(size=(90, 2)) + 6 * np.eye(3)[truth, :2] for s in "xyz"}
    wrong = {f"{p:.0%}": np.where(rng.random(90) < p, rng.integers(0, 3, 90), truth)
             for p in (0, 0.2, 0.4, 0.7)}  # fmt: skip
    return Runs.from_parts(spaces, wrong, pairs=dict(zip(wrong, "xyzx", strict=True)))


def test_scores_of_ace_weigh_the_votes_by_name_and_in_the_order_of_the_runs():
    runs = made_runs()
    result = ws.ace(ws.score_runs(runs))
    by_name = dict(zip(result.partitions, result.scores, strict=True))
    found = consensus(runs, first_judge=dict(reversed(by_name.items())))
    assert found.first_judge == "given"
    assert found.first_scores.tolist() == result.scores.tolist()
    assert found.scores.tolist() == consensus(runs, first_judge=result.scores).scores.tolist()
    judgement = ws.judge(runs, judge="consensus", n_draws=0)
    assert judgement.answer.scores.tolist() == found.scores.tolist()


def test_labels_alone_suffice_in_every_shape():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    expected = consensus(SIX)
    shapes = [
        pd.DataFrame(SIX),
        np.array(list(SIX.values())),
        list(SIX.values()),
        Runs([Run(name, labels=labels) for name, labels in SIX.items()]),
        {name: np.array(labels).astype(str) for name, labels in SIX.items()},
    ]
    for labels in shapes:
        assert consensus(labels).scores.tolist() == expected.scores.tolist()
    assert consensus(shapes[0]).partitions == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ({"a": [0, 1]}, NothingToRank, r"at least 2 partitions to compare, got 1 \('a'\)"),
        ({f"{i}": [i, 9, 9] for i in range(7)}, NothingToRank, "all 7 runs are the same partition"),
        ({"a": [0, 0], "b": [-1, -1]}, NothingToRank, "all 2 runs are the same partition"),
        ({"a": [0, 1, 1], "b": [0, 1]}, ValueError, "'b' must have the 3 objects that 'a' has"),
        (np.zeros((2000, 5), int), ValueError, "got 2,000 rows of 5 objects; transpose the array"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(labels, error, message):
    with pytest.raises(error, match=message):
        consensus(labels)


def test_runs_without_labels_have_nothing_to_compare():
    runs = Runs([Run("x", embedding=[[0.0], [1.0]])])
    with pytest.raises(NothingToRank, match=r"at least 2 partitions \(labels\), got none"):
        consensus(runs)


def test_two_partitions_tie_and_this_is_said():
    found = consensus({"a": SIX["a"], "b": SIX["b"], "d": SIX["d"]})
    np.testing.assert_allclose(found.scores, 0.242424, atol=1e-6)
    assert found.winners == ("a", "b", "d")
    assert "both have the same score: no ranking is possible" in found.explain()


def test_a_run_of_noise_alone_comes_last_and_is_named():
    found = consensus({**good_and_bad(n=200), "noise": np.full(200, -1)})
    assert found.reasons == {"noise": "It calls every object noise, so it tells no objects apart."}
    assert found.scores[-1] == 0
    assert "'noise': It calls every object noise" in found.explain()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agreement": "rand"}, "agreement must be one of"),
        ({"noise": "exclude"}, "noise must be one of"),
        ({"noise": "singletons", "agreement": "nmi"}, "NMI rewards many small clusters"),
        ({"first_judge": [1, 2]}, r"one score per partition \(4\), got shape \(2,\)"),
        ({"first_judge": {"a": 1}}, "a score for every partition, got none for 'b'"),
        ({"first_judge": [1, 2, np.nan, 1]}, "finite scores, got none for 'c'"),
    ],
)
def test_a_bad_option_is_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        consensus(SIX, **options)


def test_the_explanation_names_its_limits():
    text = consensus(SIX).explain()
    assert "no number of clusters beyond those that were tried (2 to 3)" in text
    assert "all judges can be wrong together" in text


@pytest.mark.parametrize(
    "liked", [{"a": "x", "b": 1.0, "c": 0.0}, ["x", "y", "z"], [1.0, 2.0], "ace"]
)
def test_scores_of_a_first_judge_that_are_no_numbers_are_refused(liked):
    labels = {"a": [0, 0, 1, 1], "b": [0, 1, 1, 1], "c": [0, 1, 0, 1]}
    with pytest.raises((TypeError, ValueError), match="first_judge must"):
        consensus(labels, first_judge=liked)
