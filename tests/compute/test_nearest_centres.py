"""Nearest centres are those a plain table of distances shows, whatever the array library."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from libraries import converter

import wellsep as ws
from wellsep._checks.arrays import is_torch, to_numpy
from wellsep.compute.data.opening import open_space
from wellsep.compute.kmeans.nearest_centres import WIDE, host_labels


def _table(X, centers):
    return ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


@pytest.fixture(params=["numpy", "csr_array", "torch", "on a card"])
def convert(request, monkeypatch):
    if request.param == "on a card":
        monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
        return converter("torch")
    return converter(request.param)


@pytest.mark.parametrize("k", [2, 7, WIDE, WIDE + 1, 300])
@pytest.mark.parametrize("n", [1, 500])
def test_the_nearest_two_are_those_of_the_full_table(convert, n, k):
    rng = np.random.default_rng(k + n)
    X, centers = rng.normal(size=(n, 3)), rng.normal(size=(k, 3))
    order = np.argsort(_table(X, centers), axis=1)
    squared = np.sort(_table(X, centers), axis=1)
    found = open_space(convert(X)).nearest_two(centers)
    np.testing.assert_array_equal(to_numpy(found.first), order[:, 0])
    np.testing.assert_array_equal(to_numpy(found.second), order[:, 1])
    np.testing.assert_allclose(to_numpy(found.near), squared[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(to_numpy(found.far), squared[:, 1], rtol=1e-9, atol=1e-12)


def test_the_nearest_is_the_first_of_the_nearest_two(convert):
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(2000, 4)), rng.normal(size=(9, 4))
    one = open_space(convert(X)).nearest(centers)
    two = open_space(convert(X)).nearest_two(centers)
    np.testing.assert_array_equal(to_numpy(one.first), to_numpy(two.first))
    np.testing.assert_array_equal(to_numpy(one.near), to_numpy(two.near))


@pytest.mark.parametrize("k", [3, WIDE + 3])
def test_of_equal_centres_the_first_is_nearest_and_the_next_is_second(k):
    found = open_space(np.zeros((4, 2))).nearest_two(np.ones((k, 2)))
    assert found.first.tolist() == [0] * 4
    assert found.second.tolist() == [1] * 4


def test_many_blocks_give_what_one_block_gives(monkeypatch):
    rng = np.random.default_rng(1)
    X, centers = rng.normal(size=(1000, 4)), rng.normal(size=(6, 4))
    whole = open_space(X).nearest_two(centers)
    monkeypatch.setattr("wellsep.compute.kmeans.nearest_centres.HOST_BLOCK", 6 * 64)
    np.testing.assert_array_equal(open_space(X).nearest_two(centers).second, whole.second)


def test_sums_by_code_count_each_row_under_each_of_its_codes(convert):
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    codes = np.array([[0, 1], [1, 1], [2, 0]])
    weights = np.array([[1.0, 10.0], [1.0, 2.0], [0.5, -1.0]])
    like = convert if convert is not sp.csr_array else np.asarray
    sums = open_space(convert(X)).code_sums(like(codes), like(weights), 4)
    np.testing.assert_allclose(sums, [[-4, -4], [19, 32], [2.5, 3], [0, 0]])


def test_float32_rows_are_summed_in_float64():
    X = np.full((100_000, 1), 0.1, dtype=np.float32)
    sums = open_space(X).code_sums(np.zeros(len(X), dtype=np.int32), None, 1)
    assert sums[0, 0] == pytest.approx(100_000 * float(np.float32(0.1)), rel=1e-12)


# (d, k) that lead to each of the compiled ways, and to the product followed by a sweep.
SHAPES = [(2, 3), (16, 100), (11, 45), (16, 40), (128, 10), (130, 16), (128, 5), (40, 300), (3, 1)]


@pytest.fixture(params=["numpy", "compiled"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setenv("WELLSEP_KERNELS", "0")
    else:
        pytest.importorskip("numba", reason="needs numba")
    return request.param


def _labels(X, centers):
    offset = centers.mean(axis=0)
    return host_labels(X, centers - offset, offset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), SHAPES)
@pytest.mark.parametrize("away", [0.0, 1000.0])
def test_labels_are_those_of_the_full_table(way, dtype, d, k, away):
    rng = np.random.default_rng(d + k)
    X = (rng.normal(size=(2501, d)) + away).astype(dtype)
    centers = rng.normal(size=(k, d)) + away
    if k == 1:
        assert _labels(X, centers) is None  # left to the way that takes any unit
        return
    squared = _table(X.astype(np.float64), centers)
    found = _labels(X, centers)
    assert found.dtype == np.int32
    rounding = 200 * np.finfo(dtype).eps * (1.0 + away) * d
    own = squared[np.arange(len(X)), found]
    assert np.all(own <= squared.min(axis=1) + rounding)
    np.testing.assert_array_equal(found[:700], _labels(X[:700].copy(), centers))


@pytest.mark.parametrize(("d", "k"), [(2, 7), (16, 100), (128, 10), (40, 300)])
def test_of_equal_centres_the_first_is_the_label(way, d, k):
    rng = np.random.default_rng(0)
    centers = np.repeat(rng.integers(-9, 9, size=(k // 2 + 1, d)).astype(float), 2, axis=0)[:k]
    found = _labels(rng.normal(size=(600, d)), centers)
    assert np.all(found % 2 == 0)


@pytest.mark.parametrize("d", [16, 128])
def test_nan_infinity_and_extreme_units_have_no_quick_labels(way, d):
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(3000, d)), rng.normal(size=(10, d))
    for entry in (np.nan, np.inf, 1e200):
        for row in (0, 2999):
            bad = X.copy()
            bad[row, 3] = entry
            assert _labels(bad, centers) is None
    assert _labels(X * 1e-200, centers * 1e-200) is None
    assert _labels(X, centers) is not None


@pytest.mark.parametrize(("d", "k"), [(16, 100), (128, 10), (40, 300)])
def test_labels_do_not_depend_on_the_number_of_threads(way, d, k):
    rng = np.random.default_rng(1)
    X, centers = rng.normal(size=(30_000, d)).astype(np.float32), rng.normal(size=(k, d))
    alone = _labels(X, centers)
    with mock.patch("wellsep.compute.kmeans.nearest_centres.effective_jobs", return_value=3):
        np.testing.assert_array_equal(_labels(X, centers), alone)


def test_a_fit_does_not_depend_on_whether_numba_is_loaded(monkeypatch):
    pytest.importorskip("numba", reason="needs numba")
    X = np.random.default_rng(0).normal(size=(30_000, 12)).astype(np.float32)
    with_numba = ws.KMeans(60, random_state=0, max_iter=5).fit(X)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    again = open_space(X).nearest(with_numba.cluster_centers_.astype(float))
    monkeypatch.delenv("WELLSEP_KERNELS")
    found = open_space(X).nearest(with_numba.cluster_centers_.astype(float))
    np.testing.assert_array_equal(found.first, again.first)
    np.testing.assert_array_equal(found.near, again.near)
