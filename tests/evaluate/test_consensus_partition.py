"""One partition from many runs: by hand, as SciPy has it, whatever the order and the copies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn import config_context

import wellsep as ws
from wellsep.evaluate import NothingToRank
from wellsep.evaluate.vote.merging import (
    Profiles,
    cut_tree,
    find_profiles,
    grow_tree,
    most_profiles,
    votes_together,
)

SIX = {"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 1, 1], "c": [0, 0, 0, 0, 1, 1]}


def noisy(n=300, k=4, shares=(0.3,) * 9, seed=0):
    """A truth, and runs that each get a share of the objects wrong, independently."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    runs = {
        f"run {i}": np.where(rng.random(n) < share, rng.integers(0, k, n), truth)
        for i, share in enumerate(shares)
    }
    return runs, truth


def co_association(labels, weights):
    rows = [np.equal.outer(one, one) * w for one, w in zip(labels, weights, strict=True)]
    return np.sum(rows, axis=0) / np.sum(weights)


def same(first, second):
    return ws.ari_score(first, second) == 1.0


def test_six_objects_by_hand():
    # Together in 3 of 3 runs: 01, 45; in 2: 02, 12, 23, 34, 35; in 1: 03, 13, 24, 25.
    # Average linkage: 2 joins {0, 1} and 3 joins {4, 5} at 2/3 (23 ties and comes later, as its
    # objects are fewer); the halves merge at (1 + 1 + 2 + 1 + 1) / 9 thirds = 2/9.
    codes = np.array(list(SIX.values()))
    profiles = find_profiles(codes, np.ones(3))
    assert sorted(profiles.sizes.tolist()) == [1, 1, 2, 2]
    shares = grow_tree(profiles, np.ones(3)).shares
    np.testing.assert_allclose(shares, [2 / 3, 2 / 3, 2 / 9])
    found = ws.consensus_partition(SIX)
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert (found.n_clusters, found.n_profiles, found.is_sampled) == (2, 4, False)
    # ARI of a with b, Hubert and Arabie: pairs together in both 4, in a 6, in b 7, of 15.
    by_hand = (4 - 6 * 7 / 15) / ((6 + 7) / 2 - 6 * 7 / 15)
    np.testing.assert_allclose(found.agreement, [1, by_hand, by_hand])
    assert found.mean_agreement == pytest.approx((1 + 2 * by_hand) / 3)
    assert found.tried == {2: pytest.approx(found.mean_agreement)}


def test_votes_move_the_answer():
    heavy = ws.consensus_partition(SIX, votes={"a": 1, "b": 5, "c": 1})
    assert same(heavy.labels, SIX["b"])
    assert heavy.weights.tolist() == pytest.approx([1 / 7, 5 / 7, 1 / 7])
    vote = ws.consensus(SIX)
    by_vote = ws.consensus_partition(SIX, votes=vote)
    np.testing.assert_allclose(by_vote.weights, vote.weights / vote.weights.sum())


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_that_of_scipy(seed):
    # Few objects and many weighted runs: no two pairs are together equally often, so no ties.
    rng = np.random.default_rng(seed)
    labels = np.array(
        [np.unique(one, return_inverse=True)[1] for one in rng.integers(0, 3, (14, 18))]
    )
    labels = np.concatenate([labels, labels[:, :3]], axis=1)  # some objects are alike throughout
    weights = rng.uniform(0.2, 1, 14)
    expected = linkage(squareform(1 - co_association(labels, weights), checks=False), "average")
    profiles = find_profiles(labels, weights)
    tree = grow_tree(profiles, weights)
    np.testing.assert_allclose(1 - tree.shares, expected[3:, 2], atol=1e-12)
    for k in (2, 3, 5, 9):
        assert same(cut_tree(tree, k)[profiles.of], fcluster(expected, k, "maxclust"))
    found = ws.consensus_partition(labels, 4, votes=weights)
    assert same(found.labels, fcluster(expected, 4, "maxclust"))


def test_groups_of_equal_objects_give_the_tree_of_all_objects():
    labels = np.array(list(noisy(120, 3, (0.1, 0.2, 0.3, 0.2))[0].values()))
    weights = np.array([1.0, 0.83, 0.71, 0.56])
    profiles = find_profiles(labels, weights)
    assert len(profiles.sizes) < 60
    dense = Profiles(labels, np.ones(120, dtype=int), np.arange(120))
    few, all_of_them = (grow_tree(one, weights) for one in (profiles, dense))
    np.testing.assert_allclose(all_of_them.shares[: 120 - len(profiles.sizes)], 1)
    np.testing.assert_allclose(all_of_them.shares[120 - len(profiles.sizes) :], few.shares)


def test_votes_together_are_co_association():
    labels = np.random.default_rng(0).integers(0, 4, (5, 30))
    weights = np.arange(1.0, 6.0)
    expected = co_association(labels, weights)
    np.testing.assert_allclose(votes_together(labels, labels, weights) / 15, expected)


def test_order_names_and_copies_of_runs_change_nothing():
    runs, _ = noisy(200, 3, (0.2, 0.3, 0.4, 0.3, 0.2))
    found = ws.consensus_partition(runs)
    rng = np.random.default_rng(1)
    for _ in range(3):
        order = rng.permutation(5)
        mixed = {f"other {i}": (list(runs.values())[i] + i) % 3 for i in order}
        again = ws.consensus_partition(mixed)
        assert again.labels.tolist() == found.labels.tolist()
        np.testing.assert_allclose(again.agreement, found.agreement[order])
    copied = ws.consensus_partition({**runs, "copy": (runs["run 2"] + 1) % 3})
    assert copied.labels.tolist() == found.labels.tolist()
    assert copied.tried == found.tried
    assert copied.agreement[-1] == found.agreement[2]


def test_the_order_of_objects_changes_nothing():
    runs, _ = noisy(200, 3, (0.3, 0.3, 0.4, 0.3))
    found = ws.consensus_partition(runs, 3)
    order = np.random.default_rng(1).permutation(200)
    again = ws.consensus_partition({name: one[order] for name, one in runs.items()}, 3)
    assert same(again.labels, found.labels[order])


def test_clusters_are_numbered_from_the_largest():
    found = ws.consensus_partition({"a": [1, 0, 0, 0, 2, 2], "b": [1, 0, 0, 0, 2, 1]}, 3)
    assert found.sizes.tolist() == sorted(found.sizes.tolist(), reverse=True)
    assert found.labels[1] == 0


def test_the_number_of_clusters_has_the_largest_agreement_of_those_tried():
    runs, truth = noisy(300, 4, (0.2,) * 5)
    runs |= {"two": truth // 2, "six": np.where(np.arange(300) % 3 == 0, truth + 4, truth)}
    found = ws.consensus_partition(runs)
    assert list(found.tried) == [2, 4, 8]
    assert found.n_clusters == 4 == max(found.tried, key=found.tried.get)
    for k, mean in found.tried.items():
        assert ws.consensus_partition(runs, k).mean_agreement == pytest.approx(mean)


def test_mistakes_that_differ_leave_a_partition_better_than_every_run():
    runs, truth = noisy(600, 4, (0.35,) * 11)
    best = max(ws.ari_score(truth, one) for one in runs.values())
    assert ws.ari_score(truth, ws.consensus_partition(runs).labels) > best + 0.3


def test_a_mistake_that_most_runs_share_stays():
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    merged = {
        f"merged {i}": np.where(rng.random(300) < 0.05, rng.integers(0, 2, 300), truth // 2)
        for i in range(6)
    }
    found = ws.consensus_partition({**merged, "right": truth})
    assert ws.ari_score(truth, found.labels) < 0.6 < ws.ari_score(truth, truth)
    assert found.columns()["partition"][-1] == "right"


def test_noise_is_what_most_votes_call_noise():
    labels = {
        "a": [0, 0, 0, 1, 1, -1, -1],
        "b": [0, 0, -1, 1, 1, -1, 1],
        "c": [0, 0, 0, 1, 1, 1, -1],
    }
    found = ws.consensus_partition(labels)
    assert found.labels.tolist() == [0, 0, 0, 1, 1, -1, -1]
    assert found.run_clusters.tolist() == [2, 2, 2]
    assert "2 objects are noise (-1): most votes call them so." in found.explain()
    alone = ws.consensus_partition(labels, noise="singletons")
    assert alone.labels.tolist() == found.labels.tolist()


def test_noise_of_a_minority_is_put_into_a_cluster():
    labels = {"a": [0, 0, 0, 1, 1, -1], "b": [0, 0, 0, 1, 1, 1], "c": [0, 0, 1, 1, 1, 1]}
    assert ws.consensus_partition(labels, 2).labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_sample_gives_nearly_the_same_answer_and_says_so():
    runs, truth = noisy(2000, 4, (0.15,) * 12)
    exact = ws.consensus_partition(runs, 4)
    quarter = exact.n_profiles // 4
    with config_context(working_memory=(quarter + 0.5) ** 2 * 8 / 2**20):
        drawn, again = (ws.consensus_partition(runs, 4) for _ in range(2))
    assert not exact.is_sampled
    assert drawn.is_sampled
    assert drawn.n_compared == quarter
    assert f"A sample with {drawn.n_compared:,} of them was clustered" in drawn.explain()
    assert ws.ari_score(drawn.labels, exact.labels) > 0.97
    assert ws.ari_score(drawn.labels, truth) > 0.97
    assert again.labels.tolist() == drawn.labels.tolist()


def test_the_memory_budget_decides_when_a_sample_is_drawn():
    runs, _ = noisy(2000, 4, (0.3,) * 12)
    with config_context(working_memory=1):
        assert most_profiles() == 362
        found = ws.consensus_partition(runs, 4)
    assert found.n_compared == 362 < found.n_profiles


def test_one_run_equal_runs_and_noise_alone_are_refused_in_a_sentence():
    with pytest.raises(NothingToRank, match=r"at least 2 clusterings to compare, got 1 \('a'\)"):
        ws.consensus_partition({"a": [0, 0, 1]})
    with pytest.raises(NothingToRank, match="all 2 runs are the same clustering"):
        ws.consensus_partition({"a": [0, 0, 1], "b": [1, 1, 0]})
    noise = {"a": [-1, -1, -1, -1], "b": [-1, -1, 0, 0], "c": [0, 0, -1, -1], "d": [-1] * 4}
    with pytest.raises(NothingToRank, match=r"Most votes call every object noise \(-1\)"):
        ws.consensus_partition(noise, votes={"a": 3, "b": 1, "c": 1, "d": 1})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n_clusters": 5}, "n_clusters must be at most 4, the groups of objects that some run"),
        ({"n_clusters": 0}, "n_clusters must be at least 1, got 0"),
        ({"noise": "penalize"}, "noise must be one of 'cluster', 'singletons', got 'penalize'"),
        ({"votes": [1, 2]}, r"votes must have one weight per clustering \(3\), got shape \(2,\)"),
        (
            {"votes": {"a": 1, "b": 1}},
            "votes must have a weight for every clustering, got none for 'c'",
        ),
        ({"votes": [1, -1, 1]}, "votes must be finite, not negative and not all 0"),
        ({"votes": [1, np.nan, 1]}, "votes must have finite weights, got none for 'b'"),
        ({"votes": [0, 0, 0]}, "votes must be finite, not negative and not all 0"),
    ],
)
def test_a_wrong_argument_is_named(wrong, sentence):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=sentence):
            ws.consensus_partition(SIX, **wrong)


def test_runs_over_different_objects_are_refused():
    with pytest.raises(ValueError, match="'b' must have the 3 objects that 'a' has, got 2"):
        ws.consensus_partition({"a": [0, 0, 1], "b": [0, 1]})


def test_one_cluster_in_one_run_is_tried_too():
    found = ws.consensus_partition({"one": [0] * 6, **SIX})
    assert list(found.tried) == [1, 2]
    assert found.n_clusters == 2


def test_it_is_judged_as_one_more_run_and_moves_no_score_of_the_others():
    labels, truth = noisy(90, 3, (0.3, 0.3, 0.3, 0.4))
    X = np.random.default_rng(1).normal(size=(90, 3)) + 4 * np.eye(3)[truth]
    runs = ws.Runs.from_parts({"s": X}, labels)
    made = ws.consensus_partition(runs)
    before, after = (ws.judge(r, n_draws=0, dip=False) for r in (runs, made.added_to(runs)))
    assert after.ranking.names == (*before.ranking.names, "consensus")
    assert after.scores.params["consensus"]["made_by"] == "wellsep.consensus_partition"
    scores = after.scores.values["silhouette"]
    np.testing.assert_array_equal(scores[:, :-1], before.scores.values["silhouette"])
    assert scores[0, -1] == pytest.approx(ws.silhouette_score(X, made.labels))


def test_runs_that_hold_one_of_its_name_are_refused():
    runs = ws.Runs.from_parts(partitions={**SIX, "consensus": [0, 1, 0, 1, 0, 1]})
    with pytest.raises(ValueError, match="must not hold a run called 'consensus' where one is"):
        ws.consensus_partition(runs).added_to(runs)


def test_a_judgement_keeps_the_agreement_of_all_runs(tmp_path):
    plain = ws.judge(ws.Runs.from_parts(partitions=SIX), n_draws=0)
    kept = plain.answers["consensus"]["ari"]
    again = ws.load(plain.save(tmp_path)).answers["consensus"]["ari"]
    np.testing.assert_array_equal(again.agreement, kept.agreement)
    assert again.matrix().shape == (3, 3)
