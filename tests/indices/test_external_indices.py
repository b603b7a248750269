"""Agreement with known classes equals scikit-learn's and hand arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import wellsep as ws
from wellsep.compute.statistics.contingency import PairCounts
from wellsep.indices.external import (
    AVERAGES,
    adjusted_information,
    adjusted_rand,
    normalized_information,
)

labellings = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), min_size=2, max_size=40)


@given(labellings)
def test_information_and_pair_indices_are_scikit_learns(pairs):
    truth, found = map(list, zip(*pairs, strict=True))
    ours = ws.nmi_score(truth, found), ws.ari_score(truth, found), ws.ami_score(truth, found)
    theirs = (
        metrics.normalized_mutual_info_score(truth, found),
        metrics.adjusted_rand_score(truth, found),
        metrics.adjusted_mutual_info_score(truth, found),
    )
    assert ours == pytest.approx(theirs, abs=1e-12)


@given(labellings)
def test_accuracy_is_the_best_over_all_matches(pairs):
    from itertools import permutations

    truth, found = (np.array(v) for v in zip(*pairs, strict=True))
    classes, clusters = np.unique(truth), np.unique(found)
    slots = [*classes, *[None] * max(0, len(clusters) - len(classes))]
    best = max(
        sum(((found == c) & (truth == t)).sum() for c, t in zip(clusters, match, strict=False))
        for match in permutations(slots, len(clusters))
    )
    assert ws.clustering_accuracy(truth, found) == pytest.approx(best / len(truth))


@given(labellings)
def test_purity_lies_between_accuracy_and_one(pairs):
    truth, found = map(list, zip(*pairs, strict=True))
    purity = ws.purity_score(truth, found)
    assert ws.clustering_accuracy(truth, found) <= purity <= 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_cluster_shares_exactly_no_information_with_any_other_partition(n_jobs):
    for n in range(2, 201):
        i = np.arange(n)
        counts = PairCounts.of_codes(np.stack([0 * i, i % 2, i % 7, i < 1, i]), n_jobs=n_jobs)
        tables = [adjusted_rand(counts)]
        for average in AVERAGES:
            tables.append(normalized_information(counts, average=average))
            tables.append(adjusted_information(counts, average=average))
        for table in tables:
            assert table[0].tolist() == table[:, 0].tolist() == [1, 0, 0, 0, 0], n


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("n", [23, 39, 43])
def test_one_cluster_scores_zero_with_every_average(n, average):
    assert ws.nmi_score([0] * n, np.arange(n) % 2, average_method=average) == 0
    assert ws.ami_score([0] * n, np.arange(n) % 2, average_method=average) == 0


def test_purity_of_the_information_retrieval_books_example():
    # Manning, Raghavan & Schütze (2008), figure 16.4: 17 objects, purity 12/17
    found = [1] * 6 + [2] * 6 + [3] * 5
    truth = list("xxxxxo") + list("xooood") + list("xxddd")
    assert ws.purity_score(truth, found) == pytest.approx(12 / 17)
    assert round(ws.nmi_score(truth, found), 2) == 0.36


def test_clusters_may_outnumber_classes():
    assert ws.clustering_accuracy([0, 0, 0, 1], [5, 6, 7, 8]) == 0.5


def test_lengths_that_differ_are_named():
    with pytest.raises(ValueError, match=r"one entry per object \(3\), got 2"):
        ws.nmi_score([0, 1, 1], [0, 1])
