"""Values of a mapped file are those of the array, whether it is read whole or in blocks."""

from __future__ import annotations

import os

import numpy as np
import pytest

import wellsep as ws
from wellsep._checks.arrays import check_data
from wellsep._files import maps
from wellsep._files.arrays import stored_npy

LABELS = np.arange(1700) % 4


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(1700, 6)) + 3 * np.eye(4, 6)[LABELS]


@pytest.fixture
def by_blocks(monkeypatch):
    """Files of a few kilobytes count as large."""
    monkeypatch.setattr(maps, "AT_ONCE", 4096)


def _opened(path, X):
    np.save(path, X)
    return stored_npy(path, "X").open()


@pytest.mark.parametrize(("most", "whole"), [(4096, False), (64 << 20, True)])
def test_a_map_is_read_whole_up_to_a_size(X, most, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "AT_ONCE", most)
    mapped = _opened(tmp_path / "x.npy", X)
    assert isinstance(mapped, np.memmap)
    found = check_data(mapped)
    assert isinstance(found, np.memmap) is not whole
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("index", [name for name in ws.INDICES if name not in ("gap", "s_dbw")])
def test_an_index_of_a_file_is_that_of_the_array(X, dtype, index, tmp_path, by_blocks):
    X = X.astype(dtype)
    right = ws.score_partitions(X, LABELS, [index]).values
    found = ws.score_partitions(_opened(tmp_path / "x.npy", X), LABELS, [index]).values
    assert found == pytest.approx(right, rel=1e-6 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "manhattan"])
def test_a_silhouette_of_a_file_is_that_of_the_array_under_any_metric(
    X, metric, tmp_path, by_blocks
):
    X[3] = 0
    found = ws.silhouette_score(_opened(tmp_path / "x.npy", X), LABELS, metric=metric)
    assert found == pytest.approx(ws.silhouette_score(X, LABELS, metric=metric), abs=1e-12)


@pytest.mark.parametrize("at_once", [4096, 64 << 20])
def test_a_file_that_another_was_put_in_place_of_is_still_read(X, at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "AT_ONCE", at_once)
    found = _opened(tmp_path / "x.npy", X)
    np.save(tmp_path / "other.npy", np.zeros((3, 6)))
    os.replace(tmp_path / "other.npy", tmp_path / "x.npy")
    right = ws.calinski_harabasz_score(X, LABELS)
    assert ws.calinski_harabasz_score(found, LABELS) == pytest.approx(right, rel=1e-12)
    (tmp_path / "x.npy").unlink()
    assert (found[1690:] == X[1690:]).all() and (found[[3, 1]] == X[[3, 1]]).all()
