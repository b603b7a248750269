"""Agreement of many partitions is scikit-learn's, however and wherever their tables are counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import wellsep as ws
from wellsep import partitions
from wellsep.compute.statistics.contingency import GroupCounts, PairCounts
from wellsep.indices.external import AGREEMENTS, adjusted_rand
from wellsep.partitions import Partitions

ORACLES = Path(__file__).parents[1] / "oracles"
SCIKIT_LEARN = {
    "ari": metrics.adjusted_rand_score,
    "ami": metrics.adjusted_mutual_info_score,
    "nmi": metrics.normalized_mutual_info_score,
}


def ugly_labels(n=300):
    """Few and many clusters, one cluster, singletons, noise, nothing but noise, a copy."""
    rng = np.random.default_rng(0)
    labels = {f"k{k}": rng.integers(0, k, n) for k in (2, 7, 40)}
    labels["split"] = labels["k7"] * 2 + (rng.random(n) < 0.1)
    labels["noisy"] = np.where(rng.random(n) < 0.2, -1, labels["k2"])
    labels["one"] = np.zeros(n, dtype=int)
    labels["alone"] = rng.permutation(n)
    labels["all noise"] = np.full(n, -1)
    labels["copy"] = 50 - labels["k7"]
    return labels


def counts_of(labels, noise="cluster", **options):
    partitions = Partitions.from_labels(labels, noise=noise)
    return PairCounts.of_codes(partitions.codes, **options)


@pytest.mark.parametrize("measure", AGREEMENTS)
def test_all_pairs_are_scikit_learns(measure):
    labels = ugly_labels()
    found = AGREEMENTS[measure](counts_of(labels))
    theirs = [[SCIKIT_LEARN[measure](a, b) for a in labels.values()] for b in labels.values()]
    np.testing.assert_allclose(found, theirs, atol=1e-12)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("measure", AGREEMENTS)
@pytest.mark.parametrize("case", ["ecoli", "glass"])
def test_real_runs_have_the_recorded_agreement(case, measure):
    labels = np.load(ORACLES / "agreement.npz")[case]
    expected = json.loads((ORACLES / "agreement.json").read_text())["values"][case][measure]
    found = AGREEMENTS[measure](counts_of(labels))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("measure", AGREEMENTS)
def test_two_vectors_and_many_have_the_same_formula(measure):
    labels = ugly_labels(80)
    score = getattr(ws, f"{measure}_score")
    found = AGREEMENTS[measure](counts_of(labels))
    for i, a in enumerate(labels.values()):
        for j, b in enumerate(labels.values()):
            assert score(a, b) == pytest.approx(found[i, j], abs=1e-14)


def assert_same_counts(found, expected):
    assert found.n == expected.n
    assert np.array_equal(found.squares, expected.squares)
    np.testing.assert_allclose(found.logs, expected.logs, rtol=1e-13, atol=1e-9)
    for ours, theirs in zip(found.sizes, expected.sizes, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_and_sorting_change_no_count(n_jobs, monkeypatch):
    labels = ugly_labels()
    expected = counts_of(labels)
    monkeypatch.setattr(partitions, "DENSE", 0)  # every table is sorted
    assert_same_counts(counts_of(labels, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("noise", ["cluster", "singletons"])
def test_labels_in_chunks_count_the_same(noise):
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    labels = ugly_labels()
    chunked = {name: da.from_array(v, chunks=70) for name, v in labels.items()}
    assert_same_counts(counts_of(chunked, noise), counts_of(labels, noise))


def test_an_array_of_labels_in_chunks_has_a_partition_per_row():
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    labels = np.stack(list(ugly_labels().values()))
    assert_same_counts(counts_of(da.from_array(labels, chunks=(4, 90))), counts_of(labels))


def test_equal_partitions_are_found_by_their_tables_and_by_their_codes():
    labels = ugly_labels()
    names = list(labels)
    expected = list(range(len(names)))
    expected[names.index("copy")] = names.index("k7")
    expected[names.index("all noise")] = names.index("one")
    assert counts_of(labels).first_equal.tolist() == expected
    found = Partitions.from_labels(labels, noise="cluster").distinct
    assert found.first[found.of].tolist() == expected
    expected[names.index("all noise")] = names.index("all noise")
    found = Partitions.from_labels(labels, noise="exclude").distinct
    assert found.first[found.of].tolist() == expected


@pytest.mark.parametrize("noise", ["exclude", "cluster", "singletons"])
def test_noise_becomes_one_cluster_however_it_was_encoded(noise):
    labels = ugly_labels()
    found = ws.consensus(Partitions.from_labels(labels, noise=noise))
    expected = ws.consensus(labels, noise="cluster")
    assert np.array_equal(found.agreement, expected.agreement)
    assert found.classes.members == expected.classes.members
    assert found.n_clusters.tolist() == expected.n_clusters.tolist()
    np.testing.assert_allclose(found.coverage, expected.coverage)


def test_singletons_need_no_table_of_their_square():
    n = 100_000
    both = np.stack([np.arange(n), np.arange(n)[::-1]])
    counts = PairCounts.of_codes(both)  # 10^10 cells would not fit
    assert counts.squares.tolist() == [[n, n], [n, n]]


def test_partitions_of_different_objects_are_both_named():
    with pytest.raises(ValueError, match="'short' must have the 3 objects that 'long' has, got 2"):
        ws.consensus({"long": [0, 1, 1], "short": [0, 1]})


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_tables_by_group_add_up_to_those_of_any_choice_of_groups(n_jobs):
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, k, 500) for k in (1, 2, 5, 30, 400)]
    codes = np.stack([np.unique(one, return_inverse=True)[1] for one in drawn])
    group = rng.permutation(np.arange(500) % 12)
    tables = GroupCounts.of_codes(codes, group, 12, n_jobs=n_jobs)
    choices = [np.ones(12, dtype=bool), np.arange(12) % 3 == 0, np.arange(12) == 5]
    choices += list(rng.random((20, 12)) < 0.5)
    for chosen, found in zip(choices, tables.counts(np.stack(choices)), strict=True):
        here = chosen[group]
        part = np.stack([np.unique(one[here], return_inverse=True)[1] for one in codes])
        expected = PairCounts.of_codes(part)
        assert found.n == expected.n
        assert found.squares.tolist() == expected.squares.tolist()
        np.testing.assert_allclose(adjusted_rand(found), adjusted_rand(expected), rtol=1e-12)
