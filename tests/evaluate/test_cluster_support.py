"""Support of clusters and objects: hand arithmetic, a loop as the oracle, what it ignores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellsep.evaluate.clusters import support as supporting
from wellsep.evaluate.clusters.support import better_half, cluster_support, object_support
from wellsep.partitions import best_matches


def jaccard(first: set, second: set) -> float:
    return len(first & second) / len(first | second)


def clusters_of(codes: np.ndarray) -> list[set]:
    return [set(np.flatnonzero(codes == c).tolist()) for c in range(codes.max() + 1)]


def random_codes(rng, runs, n, most):
    """Partitions without gaps, some objects noise."""
    rows = []
    for _ in range(runs):
        raw = rng.integers(-1, rng.integers(2, most + 1), n)
        codes = np.full(n, -1)
        codes[raw >= 0] = np.unique(raw[raw >= 0], return_inverse=True)[1]
        rows.append(codes)
    return np.array(rows)


def test_support_is_the_mean_of_the_best_jaccards_by_hand():
    # Cluster {0,1,2} meets {0,1,2} (1) and {0,1} (2/3); cluster {3,4,5} meets {3,4} (2/3) and
    # {2,3,4,5} (3/4).
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]])
    rank, weights = np.array([1, 2, 2]), np.ones(3)
    assert cluster_support(codes, rank, weights)[0] == pytest.approx([5 / 6, (2 / 3 + 3 / 4) / 2])


def test_near_copies_share_a_weight_by_hand():
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]])
    found = cluster_support(codes, np.array([1, 2, 2]), np.array([1, 0.5, 1]))[0]
    assert found[0] == pytest.approx((0.5 * 1 + 1 * 2 / 3) / 1.5)


def test_noise_is_no_cluster_but_its_objects_count_in_the_other_side():
    # {0,1,2} meets {0,1}, whose third object is noise there: 2 of 3. Nothing matches the noise.
    codes = np.array([[0, 0, 0, -1, -1], [0, 0, -1, -1, 1]])
    found = cluster_support(codes, np.array([1, 2]), np.ones(2))
    assert found[0] == pytest.approx([2 / 3])
    assert found[1] == pytest.approx([2 / 3, 0])


def test_an_object_stays_where_the_match_of_its_cluster_has_it():
    codes = np.array([[0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0], [0, 0, 0, -1, -1, -1]])
    found = object_support(codes, np.array([1, 2, 2]), np.ones(3), 0)
    # {0,1,2} matches {0,1} and {0,1,2}; {3,4} matches {2,3,4,5} and, in the third run, nothing.
    assert found[:5].tolist() == [1, 1, 0.5, 0.5, 0.5]
    assert np.isnan(found[5])


def test_the_better_half_leaves_out_the_run_itself_and_keeps_ties():
    assert better_half(np.array([1, 2, 3, 4, 5]), np.ones(5), 0).runs.tolist() == [1, 2]
    assert better_half(np.array([1, 2, 3, 4, 5]), np.ones(5), 4).runs.tolist() == [0, 1]
    assert better_half(np.array([1, 2, 2, 2, 5]), np.ones(5), 0).runs.tolist() == [1, 2, 3]


def test_one_run_alone_has_no_support():
    codes = np.array([[0, 0, 1, 1]])
    assert np.isnan(cluster_support(codes, np.array([1]), np.ones(1))[0]).all()
    assert np.isnan(object_support(codes, np.array([1]), np.ones(1), 0)).all()


def test_many_better_runs_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr(supporting, "MOST_RUNS", 3)
    voters = better_half(np.arange(1, 12), np.ones(11), 10)
    assert voters.runs.tolist() == [0, 2, 4]
    assert voters.weights.sum() == pytest.approx(1)


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_support_equals_a_loop_over_sets(seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, int(rng.integers(2, 7)), int(rng.integers(4, 30)), 5)
    codes = codes[codes.max(axis=1) >= 0]
    if len(codes) < 2:
        return
    rank, weights = rng.permutation(len(codes)) + 1, rng.uniform(0.2, 1, len(codes))
    found = cluster_support(codes, rank, weights)
    for run, own in enumerate(codes):
        others = sorted((r for r in range(len(codes)) if r != run), key=lambda r: rank[r])
        better = others[: (len(others) + 1) // 2]
        for c, members in enumerate(clusters_of(own)):
            best = [
                max((jaccard(members, g) for g in clusters_of(codes[r])), default=0) for r in better
            ]
            expected = np.average(best, weights=weights[better])
            assert found[run][c] == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_best_matches_are_the_largest_similarities_of_sets_of_objects(seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, 5, 40, 6)
    similarity, match = best_matches(codes[0], codes[1:])
    n_first = codes[0].max() + 1
    for b, other in enumerate(codes[1:]):
        theirs = clusters_of(other)
        for c, members in enumerate(clusters_of(codes[0])):
            expected = max((jaccard(members, g) for g in theirs), default=0)
            assert similarity[c, b] == pytest.approx(expected, abs=1e-12)
        for c in range(n_first):
            if match[c, b] >= 0:
                matched = jaccard(
                    *(
                        set(np.flatnonzero(v).tolist())
                        for v in (codes[0] == c, other == match[c, b])
                    )
                )
                assert matched == pytest.approx(similarity[c, b], abs=1e-12)


def test_names_and_the_order_of_clusters_do_not_change_support():
    rng = np.random.default_rng(1)
    codes = random_codes(rng, 6, 60, 5)
    rank, weights = np.array([1, 2, 2, 4, 5, 6]), np.ones(6)
    before = cluster_support(codes, rank, weights)
    order = rng.permutation(6)
    turned = np.where(codes >= 0, codes.max(axis=1, keepdims=True) - codes, -1)
    after = cluster_support(turned[order], rank[order], weights)
    for place, run in enumerate(order):
        assert after[place][::-1] == pytest.approx(before[run], abs=1e-12)
