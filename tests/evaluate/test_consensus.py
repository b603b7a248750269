"""Partitions vote for each other: hand arithmetic, copies, order, traps, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import wellsep as ws
from wellsep.evaluate import NothingToRank, consensus
from wellsep.evaluate.vote import rule
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


def good_and_bad(n=600, copies=0, shuffled=0.0, seed=0, good=6):
    """Some runs near the truth, one bad run, and copies of it with some labels shuffled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 5

    def changed(labels, share):
        at = rng.random(n) < share
        return np.where(at, rng.permutation(labels), labels)

    labels = {f"good {i}": changed(truth, 0.2) for i in range(good)}
    bad = rng.integers(0, 5, n)
    labels["bad 0"] = bad
    labels |= {f"bad {i + 1}": changed(bad, shuffled) for i in range(copies)}
    return labels


@pytest.mark.parametrize(
    ("agreement", "pairs", "scores"),
    [
        ("ari", [0.242424, 0.324324, 0.444444], [0.297024, 0.377104, 0.404404, 0.297024]),
        ("ami", [0.298792, 0.355245, 0.615385], [0.336427, 0.509854, 0.528672, 0.336427]),
        ("nmi", [0.515804, 0.478704, 0.733680], [0.503437, 0.661055, 0.648688, 0.503437]),
    ],
)
def test_three_partitions_and_a_copy_by_hand(agreement, pairs, scores):
    # Two votes each, of which half a vote is left out: (low / 2 + high) / 1.5.
    found = consensus(SIX, agreement=agreement)
    np.testing.assert_allclose(found.agreement[PAIRS], pairs, atol=1e-6)
    np.testing.assert_allclose(found.scores, scores, atol=1e-6)
    assert found.classes.members == (("a", "d"), ("b",), ("c",))


def test_the_index_multiplies_agreement_and_counts_as_its_median_where_it_is_below():
    found = consensus(SIX, index=[0.5, 0.3, 0.2, 0.5])
    # a, b, c have .5, .3, .2, so the factors are 1 + 2 · .5, 1 + 2 · .3 and 1 + 2 · .3.
    agreed = [0.297024, 0.377104, 0.404404]
    np.testing.assert_allclose(found.agreed, agreed, atol=1e-6)
    np.testing.assert_allclose(found.distinct_scores, np.multiply(agreed, [2, 1.6, 1.6]), atol=2e-6)


def test_an_index_without_bounds_counts_by_half_its_rank():
    found = consensus(SIX, index=[50.0, 3.0, 2.0, 50.0])
    np.testing.assert_allclose(found.index_scores, [3 / 6, 2 / 6, 1 / 6])
    assert not found.bounded


def plain_rule(labels, index):
    """The rule as the guide says it, in loops, with scikit-learn's ARI."""
    n = len(labels)
    agreement = [[adjusted_rand_score(a, b) for b in labels] for a in labels]
    clusters = [len(set(one)) for one in labels]
    votes = [min(1, 4 / sum(a >= 0.9 for a in row)) for row in agreement]
    scores = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        far = {j: abs(np.log(clusters[j]) - np.log(clusters[i])) for j in others}
        edge = next(
            (d for d in sorted(far.values())
             if sum(votes[j] for j in others if far[j] <= d + 1e-12) >= 30 - 1e-9),
            max(far.values()),
        )  # fmt: skip
        band = sorted((agreement[i][j], votes[j]) for j in others if far[j] <= edge + 1e-12)
        left_out = sum(vote for _, vote in band) / 4
        total = weight = 0.0
        for value, vote in band:
            counted = max(0.0, vote - max(left_out, 0.0))
            left_out -= vote
            total, weight = total + counted * value, weight + counted
        scores.append(total / weight * (1 + 2 * max(index[i], np.median(index))))
    return scores


def test_the_rule_equals_plain_loops_over_the_agreements_of_scikit_learn():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 6, 150)
    labels = []
    for k in np.repeat([2, 3, 4, 5, 6, 8, 10, 15], 7):
        noisy = np.where(rng.random(150) < rng.uniform(0.02, 0.6), rng.integers(0, k, 150), truth)
        labels.append(np.r_[np.arange(k), noisy[k:] % k])
    for i in range(9):  # near copies
        labels.append(np.where(np.arange(150) == 20 + i, labels[-1] + 1, labels[-1]) % 15)
    index = rng.uniform(-0.1, 0.6, len(labels))
    found = consensus(np.array(labels), index=index)
    assert found.n_distinct == len(labels) and (found.weights < 1).any()
    assert (found.shares > 0).sum(axis=1).max() < len(labels) - 1  # bands are narrower than all
    np.testing.assert_allclose(found.scores, plain_rule(labels, index), atol=1e-9)


@pytest.mark.parametrize(
    ("agreement", "plain"),
    [
        ("ari", [0.129630, 0.129630, -0.033333, 0, 0]),
        ("ami", [0.100544, 0.100544, -0.024792, 0, 0]),
        ("nmi", [0.262062, 0.262062, 0.145403, 0.436209, 0]),
    ],
)
def test_singletons_and_one_cluster_by_hand(agreement, plain):
    found = consensus(TWELVE, agreement=agreement)
    np.testing.assert_allclose(found.scores, plain, atol=1e-6)
    found = consensus(TWELVE, agreement=agreement, index=[0.4, 0.3, 0.2, 0.1, 0.0])
    # Of four votes the one that agrees least is left out.
    weighed = np.multiply(plain, [1.8, 1.6, 1.4, 1.4, 1.4])
    np.testing.assert_allclose(found.scores, weighed, atol=2e-6)
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
        np.testing.assert_allclose(found.scores, [0.495389, 0.402654, 0.089083], atol=1e-6)


OPTIONS = [
    {},
    {"agreement": "ami"},
    {"agreement": "nmi"},
    {"index": "given"},
]


def judged(labels, options):
    """Consensus with an index that likes what comes first in the alphabet."""
    if options.get("index") == "given":
        liked = {name: -float(ord(name.split(" of ")[-1][-1])) for name in labels}
        options = {**options, "index": liked}
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


def test_near_copies_have_four_votes_together(monkeypatch):
    labels = good_and_bad(copies=12, shuffled=0.02, good=15)
    found = consensus(labels)
    assert found.best.startswith("good")
    np.testing.assert_allclose(found.weights[-13:].sum(), 4)
    assert "such copies have 4 votes together" in found.explain()
    monkeypatch.setattr(rule, "COPIES", np.inf)
    assert consensus(labels).best.startswith("bad")


def test_support_is_the_share_of_the_best_supported():
    found = consensus(SIX, index=[0.1, 0.2, 0.3, 0.1])
    agreed = consensus(SIX).scores
    np.testing.assert_allclose(found.relative_agreement, agreed / agreed.max())


def made_runs():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    spaces = {s: rng.normal(size=(90, 2)) + 6 * np.eye(3)[truth, :2] for s in "xyz"}
    wrong = {f"{p:.0%}": np.where(rng.random(90) < p, rng.integers(0, 3, 90), truth)
             for p in (0, 0.2, 0.4, 0.7)}  # fmt: skip
    return Runs.from_parts(spaces, wrong, pairs=dict(zip(wrong, "xyzx", strict=True)))


def test_the_index_comes_by_name_and_in_the_order_of_the_runs():
    runs = made_runs()
    scores = ws.score_runs(runs)
    mean = scores.values["silhouette"].mean(axis=0)
    by_name = dict(zip(scores.partitions, mean, strict=True))
    found = consensus(runs, index=dict(reversed(by_name.items())))
    assert found.index == "given"
    assert found.index_scores.tolist() == mean.tolist()
    assert found.scores.tolist() == consensus(runs, index=mean).scores.tolist()
    judgement = ws.judge(runs, judge="consensus", n_draws=0)
    np.testing.assert_allclose(judgement.answer.scores, found.scores, rtol=1e-12)


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
        ({"a": [0, 1]}, NothingToRank, r"at least 2 clusterings to compare, got 1 \('a'\)"),
        (
            {f"{i}": [i, 9, 9] for i in range(7)},
            NothingToRank,
            "all 7 runs are the same clustering",
        ),
        ({"a": [0, 0], "b": [-1, -1]}, NothingToRank, "all 2 runs are the same clustering"),
        ({"a": [0, 1, 1], "b": [0, 1]}, ValueError, "'b' must have the 3 objects that 'a' has"),
        (np.zeros((2000, 5), int), ValueError, "got 2,000 rows of 5 objects; transpose the array"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(labels, error, message):
    with pytest.raises(error, match=message):
        consensus(labels)


def test_runs_without_labels_have_nothing_to_compare():
    runs = Runs([Run("x", embedding=[[0.0], [1.0]])])
    with pytest.raises(NothingToRank, match=r"at least 2 clusterings \(labels\), got none"):
        consensus(runs)


def test_two_partitions_tie_and_this_is_said():
    found = consensus({"a": SIX["a"], "b": SIX["b"], "d": SIX["d"]})
    np.testing.assert_allclose(found.scores, 0.242424, atol=1e-6)
    assert found.winners == ("a", "b", "d")
    assert "both have the same agreement: it ranks neither first" in found.explain()


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
        ({"index": [1, 2]}, r"one score per clustering \(4\), got shape \(2,\)"),
        ({"index": {"a": 1}}, "a score for every clustering, got none for 'b'"),
        ({"index": [1, 2, np.nan, 1]}, "finite scores, got none for 'c'"),
    ],
)
def test_a_bad_option_is_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        consensus(SIX, **options)


def test_the_explanation_names_its_limits():
    text = consensus(SIX).explain()
    assert "Only the numbers of clusters that were tried (2 to 3) can be ranked." in text
    assert "Every method here can be wrong in the same way" in text


@pytest.mark.parametrize(
    "liked", [{"a": "x", "b": 1.0, "c": 0.0}, ["x", "y", "z"], [1.0, 2.0], "ace"]
)
def test_an_index_that_is_no_numbers_is_refused(liked):
    labels = {"a": [0, 0, 1, 1], "b": [0, 1, 1, 1], "c": [0, 1, 0, 1]}
    with pytest.raises((TypeError, ValueError), match="index must"):
        consensus(labels, index=liked)
