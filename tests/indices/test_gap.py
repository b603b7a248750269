"""The gap statistic: its parts, its rule, and what it chooses where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs

import wellsep as ws


def _blobs(k=4, n=200, seed=1):
    return make_blobs(n, centers=10 * np.eye(k, 3), cluster_std=0.7, random_state=seed)[0]


@pytest.mark.parametrize("reference", ["pca", "uniform"])
def test_separate_blobs_are_counted(reference):
    found = ws.gap_statistic(
        _blobs(3), range(1, 7), n_references=8, reference=reference, random_state=0
    )
    assert found.best == 3
    assert found.decided
    assert found.reference == reference


@pytest.mark.parametrize("reference", ["pca", "uniform"])
def test_uniform_data_are_one_cluster(reference):
    X = np.random.default_rng(0).uniform(size=(200, 2))
    found = ws.gap_statistic(X, range(1, 5), n_references=8, reference=reference, random_state=0)
    assert found.best == 1


def test_a_turned_sliver_is_one_cluster_only_along_its_own_axes():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2)) * [10, 0.1]
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    chosen = {
        reference: ws.gap_statistic(
            X @ turn, range(1, 5), n_references=8, reference=reference, random_state=0
        ).best
        for reference in ("pca", "uniform")
    }
    assert chosen["pca"] == 1
    assert chosen["uniform"] > 1


def test_its_parts_fit_together():
    X = _blobs(3)
    found = ws.gap_statistic(X, [1, 2, 3, 4], n_references=6, random_state=0)
    assert found.k_range.tolist() == [1, 2, 3, 4]
    assert found.log_within_reference.shape == (6, 4)
    assert found.gap == pytest.approx(found.log_within_reference.mean(axis=0) - found.log_within)
    spread = found.log_within_reference.std(axis=0)
    assert found.error == pytest.approx(spread * np.sqrt(1 + 1 / 6))
    assert found.log_within[0] == pytest.approx(np.log(((X - X.mean(axis=0)) ** 2).sum()))
    exact = KMeans(3, n_init=5, random_state=0).fit(X).inertia_
    assert found.log_within[2] == pytest.approx(np.log(exact), rel=1e-9)


def test_references_fill_the_box_of_the_data():
    X = np.random.default_rng(1).normal(size=(500, 2)) * [5, 1] + 100
    found = ws.gap_statistic(X, [1, 2], n_references=30, reference="uniform", random_state=0)
    width = X.max(axis=0) - X.min(axis=0)
    expected = np.log(500 * (width**2 / 12).sum())  # n times the variance of a uniform box
    assert found.log_within_reference[:, 0].mean() == pytest.approx(expected, rel=0.01)


def test_the_smallest_k_within_one_error_of_the_next_is_chosen():
    found = ws.gap_statistic(_blobs(4), range(1, 8), n_references=8, random_state=0)
    within = found.gap[:-1] >= found.gap[1:] - found.error[1:]
    assert found.best == found.k_range[:-1][within][0]
    assert not within[: int(np.flatnonzero(within)[0])].any()


def test_a_range_that_ends_too_early_is_said_to_be_undecided():
    found = ws.gap_statistic(_blobs(4), [1, 2, 3], n_references=5, random_state=0)
    assert not found.decided
    assert found.best == found.k_range[found.gap.argmax()]
    assert "undecided" in str(found)


def test_the_seed_holds():
    X = _blobs(3, n=80)
    first, second = (
        ws.gap_statistic(X, [1, 2, 3], n_references=4, random_state=7) for _ in range(2)
    )
    assert np.array_equal(first.log_within_reference, second.log_within_reference)
    other = ws.gap_statistic(X, [1, 2, 3], n_references=4, random_state=8)
    assert not np.array_equal(first.log_within_reference, other.log_within_reference)


def test_another_clusterer_may_be_used():
    found = ws.gap_statistic(
        _blobs(3), range(1, 6), n_references=5, estimator=AgglomerativeClustering(), random_state=0
    )
    assert found.best == 3


def test_a_table_has_one_row_per_k():
    found = ws.gap_statistic(_blobs(2, n=60), [1, 2, 4], n_references=3, random_state=0)
    frame = found.to_frame()
    assert frame.index.tolist() == [1, 2, 4]
    assert frame["gap"].to_numpy() == pytest.approx(found.gap)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k_range": [3]}, ValueError, "k_range must hold at least 2 numbers"),
        ({"k_range": [0, 1]}, ValueError, "k_range must be at least 1, got 0"),
        ({"k_range": [1, 2.5]}, TypeError, "k_range must be an integer, got 2.5"),
        ({"k_range": [1, 60]}, ValueError, r"below the number of objects \(60\), got 60"),
        ({"n_references": 0}, ValueError, "n_references must be at least 1"),
        ({"reference": "normal"}, ValueError, "reference must be one of 'pca', 'uniform'"),
        ({"estimator": "kmeans"}, TypeError, "estimator must be a scikit-learn estimator, got 'km"),
        ({"estimator": DBSCAN()}, TypeError, "estimator must be a clusterer with a parameter"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        ws.gap_statistic(_blobs(2, n=60), **{"k_range": [1, 2], **options})


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_clusters_that_leave_no_variance_leave_it_undefined():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.raises(ws.UndefinedIndex, match="2 clusters leave no variance"):
        ws.gap_statistic(X, [1, 2], n_references=2, random_state=0)


def test_sparse_data_are_refused():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="X must be dense"):
        ws.gap_statistic(sp.csr_array(np.eye(8)), [1, 2])
