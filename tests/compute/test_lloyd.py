"""The one Lloyd loop: right on paper, equal to scikit-learn, the same in every array library."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from libraries import converter
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.datasets import make_blobs

from wellsep._checks.arrays import is_torch, to_numpy
from wellsep.cluster import lloyd
from wellsep.compute.kmeans import lloyd as module
from wellsep.compute.kmeans.prepared_points import prepare


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(600, 4, centers=7, cluster_std=2.0, random_state=3)
    return X, X[:7].copy()


@pytest.fixture(params=["scikit-learn's loop", "our loop"])
def loop(request, monkeypatch):
    if request.param == "our loop":
        monkeypatch.setattr(module, "_compiled_usable", lambda *given: False)


def test_hand_arithmetic(loop):
    result = lloyd([[0.0], [2.0], [10.0]], [[0.0], [2.0]])
    assert result.centers.ravel().tolist() == [1.0, 10.0]
    assert result.labels.tolist() == [0, 0, 1]
    assert result.inertia == 2.0


@pytest.mark.parametrize("tol", [0.0, 1e-4, 1e-1])
def test_it_goes_step_for_step_with_scikit_learn(blobs, loop, tol):
    X, start = blobs
    theirs = TheirKMeans(7, init=start, n_init=1, tol=tol).fit(X)
    ours = lloyd(X, start, tol=tol)
    np.testing.assert_array_equal(ours.labels, theirs.labels_)
    assert ours.n_iter == theirs.n_iter_
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-12)
    np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, rtol=1e-10)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("library", ["torch", "array_api_strict", "csr_matrix", "csr_array"])
def test_every_array_library_gives_the_same(blobs, metric, weighted, library):
    X, start = blobs
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    plain = lloyd(X, start, metric=metric, sample_weight=weights)
    other = lloyd(converter(library)(X), start, metric=metric, sample_weight=weights)
    np.testing.assert_array_equal(to_numpy(other.labels), plain.labels)
    np.testing.assert_allclose(to_numpy(other.centers), plain.centers, rtol=1e-9)
    assert other.inertia == pytest.approx(plain.inertia, rel=1e-9)
    assert other.n_iter == plain.n_iter


def test_centres_keep_the_float_type_of_the_data(blobs):
    X, start = blobs
    assert lloyd(X.astype(np.float32), start).centers.dtype == np.float32


def test_centres_of_tensors_are_tensors_of_their_float_type(blobs):
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    X, start = blobs
    tensor = lloyd(torch.from_numpy(X).float(), start)
    assert tensor.centers.dtype == torch.float32
    assert isinstance(tensor.labels, torch.Tensor)


def test_a_weight_counts_like_that_many_copies(blobs, loop):
    X, start = blobs
    counts = np.random.default_rng(1).integers(1, 4, len(X))
    copies = lloyd(np.repeat(X, counts, axis=0), start, tol=0.0)
    weighted = lloyd(X, start, sample_weight=counts, tol=0.0)
    np.testing.assert_allclose(weighted.centers, copies.centers, rtol=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels, counts), copies.labels)
    assert weighted.inertia == pytest.approx(copies.inertia, rel=1e-12)


def test_points_of_weight_zero_do_not_count(blobs):
    X, start = blobs
    far = np.vstack([X, np.full((20, 4), 1e3)])
    weights = np.r_[np.ones(len(X)), np.zeros(20)]
    without, within = lloyd(X, start), lloyd(far, start, sample_weight=weights)
    np.testing.assert_allclose(within.centers, without.centers, rtol=1e-9)
    assert within.inertia == pytest.approx(without.inertia, rel=1e-12)


def test_an_empty_cluster_takes_the_farthest_point(loop):
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    result = lloyd(X, [[1.0], [1000.0]])
    assert sorted(result.centers.ravel().tolist()) == [1.0, 50.0]
    assert len(np.unique(result.labels)) == 2


def test_an_empty_cluster_never_takes_a_point_of_weight_zero():
    X = np.array([[0.0], [1.0], [5.0], [50.0]])
    result = lloyd(X, [[1.0], [1000.0]], sample_weight=[1.0, 1.0, 1.0, 0.0])
    assert sorted(result.centers.ravel().tolist()) == [0.5, 5.0]


def test_inertia_falls_with_every_iteration(blobs, loop):
    X, start = blobs
    course = [lloyd(X, start, max_iter=m, tol=0.0).inertia for m in range(1, 12)]
    assert all(after <= before for before, after in itertools.pairwise(course))
    assert course[-1] < course[0]


def test_labels_are_the_nearest_centres_even_if_stopped_early(blobs, loop):
    X, start = blobs
    result = lloyd(X, start, max_iter=2)
    table = ((X[:, None] - result.centers[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(result.labels, table.argmin(axis=1))
    assert result.inertia == pytest.approx(table.min(axis=1).sum(), rel=1e-12)


def test_scale_and_shift_change_no_label(blobs, loop):
    X, start = blobs
    labels = lloyd(X, start).labels
    np.testing.assert_array_equal(lloyd(1000.0 * X, 1000.0 * start).labels, labels)
    np.testing.assert_array_equal(lloyd(X + 1e6, start + 1e6).labels, labels)


def test_float32_far_from_zero_keeps_its_inertia(blobs):
    X, start = blobs
    moved = (X + 1e4).astype(np.float32)
    right = lloyd(moved.astype(np.float64), start + 1e4)
    ours = lloyd(moved, start + 1e4)
    np.testing.assert_array_equal(ours.labels, right.labels)
    assert ours.inertia == pytest.approx(right.inertia, rel=1e-5)


def test_spherical_centres_are_the_directions_of_their_points(blobs):
    X, start = blobs
    result = lloyd(X, start, metric="cosine", tol=0.0)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = rows @ result.centers.T
    np.testing.assert_array_equal(result.labels, cosines.argmax(axis=1))
    np.testing.assert_allclose(np.linalg.norm(result.centers, axis=1), 1.0)
    for code in range(7):
        mean = rows[result.labels == code].sum(axis=0)
        np.testing.assert_allclose(result.centers[code], mean / np.linalg.norm(mean), rtol=1e-9)
    assert result.inertia == pytest.approx((1.0 - cosines.max(axis=1)).sum(), rel=1e-9)


def test_spherical_labels_ignore_the_length_of_rows(blobs):
    X, start = blobs
    lengths = np.random.default_rng(2).uniform(0.1, 10.0, (len(X), 1))
    same = lloyd(X * lengths, start, metric="cosine")
    np.testing.assert_array_equal(same.labels, lloyd(X, start, metric="cosine").labels)


def test_one_thread_and_two_give_the_same(blobs):
    from threadpoolctl import threadpool_limits

    X, start = blobs
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(lloyd(X, start))
    np.testing.assert_array_equal(results[0].labels, results[1].labels)
    assert results[0].inertia == pytest.approx(results[1].inertia, rel=1e-9)


def test_inertia_of_tight_far_clusters_is_not_lost_to_cancellation():
    X = np.array([[1e8], [1e8 + 1.0], [-1e8], [-1e8 - 1.0]])
    points = prepare(X)
    centers = np.array([[1e8 + 0.5], [-1e8 - 0.5]]) - points.frame.offset
    assert points.inertia(points.assign(centers).first, centers) == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"centers": [[0.0, 1.0]]}, r"centers must have shape \(k, 1\), got \(1, 2\)"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must not be negative"),
        ({"X": [[0.0], [np.nan], [1.0]]}, "X must be finite"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": -1.0}, "tol must be at least 0"),
        ({"metric": "cityblock"}, "metric must be one of 'euclidean', 'cosine', got 'cityblock'"),
        ({"metric": "cosine"}, "centers must have no row of zeros"),
    ],
)
def test_bad_input_is_named(change, sentence):
    given = {"X": [[0.0], [2.0], [10.0]], "centers": [[0.0], [2.0]], **change}
    with pytest.raises(ValueError, match=sentence):
        lloyd(**given)


@pytest.mark.parametrize(
    ("library", "card", "usable"),
    [
        ("numpy", False, True),
        ("csr_array", False, True),
        ("torch", False, True),
        ("torch", True, False),
    ],
)
def test_the_compiled_loop_is_used_in_host_memory_only(blobs, monkeypatch, library, card, usable):
    X = converter(library)(blobs[0])
    if card:
        monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
    assert module._compiled_usable(prepare(X), np.zeros((2, 4))) is usable


def test_the_compiled_loop_is_used_for_euclidean_distances_only(blobs):
    assert not module._compiled_usable(prepare(blobs[0], metric="cosine"), np.zeros((2, 4)))


def test_wide_sparse_data_are_never_made_dense():
    import tracemalloc

    n, d = 3000, 20_000  # 480 MB if dense
    rng = np.random.default_rng(0)
    filled = (rng.random(20 * n), rng.integers(0, d, 20 * n), np.arange(n + 1) * 20)
    X = sp.csr_matrix(filled, shape=(n, d))
    start = X[:4].toarray()
    tracemalloc.start()
    result = lloyd(X, start, max_iter=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
    assert result.labels.shape == (n,)
