"""Rows of mapped files are read, not touched: a file cut short meanwhile is an error."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import wellsep as ws
from wellsep._files import maps as _mapped
from wellsep._files.arrays import stored_npy

LABELS = np.arange(1700) % 4


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(1700, 6)) + 3 * np.eye(4, 6)[LABELS]


@pytest.fixture
def by_blocks(monkeypatch):
    """Files of a few kilobytes count as large."""
    monkeypatch.setattr(_mapped, "AT_ONCE", 4096)


def _opened(path, X):
    np.save(path, X)
    return stored_npy(path, "X").open()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize(
    "take",
    [
        lambda A: A[3:900], lambda A: A[::50, :], lambda A: A[5], lambda A: A[-1, 2:4],
        lambda A: A[np.array([5, 1, -1])], lambda A: A[[7, 2]], lambda A: A[LABELS == 2],
        lambda A: A[:, 1:3], lambda A: A[5:8, 1], lambda A: A[3, 4], lambda A: A[900:3],
        lambda A: A.sum(), lambda A: A.mean(axis=0, dtype=np.float64), lambda A: A.max(axis=0),
        lambda A: A.min(), lambda A: A.max(axis=1), lambda A: A - 1, lambda A: A.T @ A,
        lambda A: A.astype(np.float64), lambda A: A.copy(), lambda A: np.sqrt(A * A).sum(axis=0),
    ],
)  # fmt: skip
def test_what_is_taken_from_a_file_is_what_the_array_has(X, dtype, take, tmp_path, by_blocks):
    X = (9 * X).astype(dtype)
    found, right = take(_opened(tmp_path / "x.npy", X)), take(X)
    assert not isinstance(found, np.memmap)
    assert np.shape(found) == np.shape(right) and np.asarray(found).dtype == right.dtype
    np.testing.assert_allclose(found, right, rtol=1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("index", [name for name in ws.INDICES if name not in ("gap", "s_dbw")])
def test_an_index_of_a_file_is_that_of_the_array(X, dtype, index, tmp_path, by_blocks):
    X = X.astype(dtype)
    right = ws.score_partitions(X, LABELS, [index]).values
    read = ws.score_partitions(_opened(tmp_path / "x.npy", X), LABELS, [index]).values
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    exact = {"rel": 1e-6 if dtype == "f4" else 1e-12}
    assert read == pytest.approx(right, **exact)
    assert ws.score_partitions(mapped, LABELS, [index]).values == pytest.approx(right, **exact)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "manhattan"])
def test_a_silhouette_of_a_file_is_that_of_the_array_under_any_metric(
    X, metric, tmp_path, by_blocks
):
    X[3] = 0
    found = ws.silhouette_score(_opened(tmp_path / "x.npy", X), LABELS, metric=metric)
    assert found == pytest.approx(ws.silhouette_score(X, LABELS, metric=metric), abs=1e-12)


CUT = """
import os, sys, numpy as np, wellsep as ws
from wellsep._files import maps as _mapped
folder = sys.argv[1]
rng = np.random.default_rng(0)
y = np.arange(600) % 2
for case in sys.argv[2:]:
    how, at_once, when = case.split("-")
    _mapped.AT_ONCE = int(at_once)
    path = ws.save_run(folder, rng.normal(size=(600, 4)), y, name=case) / "embedding.npy"
    X = ws.load_runs(folder).open_space(case)
    done = []
    def cut():
        if not done:
            done.append(True)
            os.truncate(path, 9000) if how == "cut" else os.utime(path, (1, 1))
    def metric(a, b):
        cut()
        return abs(a[0] - b[0])
    try:
        if when == "before":
            cut()
            ws.calinski_harabasz_score(X, y)
        else:
            ws.silhouette_score(X, y, metric=metric)
        print("nothing was said", flush=True)
    except OSError as error:
        print(error, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not cut a mapped file")
def test_a_file_that_is_changed_while_it_is_read_is_named(tmp_path):
    """In one process of its own: a cut file that is read on kills it."""
    cases = [
        f"{how}-{way}"
        for how in ("cut", "rewritten")
        for way in (f"{64 << 20}-before", "4096-before", "4096-meanwhile")
    ]
    words = [sys.executable, "-c", CUT, str(tmp_path), *cases]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"ended by {done.returncode}: {done.stdout}{done.stderr}"
    for case, said in zip(cases, done.stdout.splitlines(), strict=True):
        assert "the file was changed while it was being read" in said, case
        assert case in said and "embedding.npy" in said


@pytest.mark.parametrize("at_once", [4096, 64 << 20])
def test_a_file_that_another_was_put_in_place_of_is_still_read(X, at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(_mapped, "AT_ONCE", at_once)
    found = _opened(tmp_path / "x.npy", X)
    np.save(tmp_path / "other.npy", np.zeros((3, 6)))
    os.replace(tmp_path / "other.npy", tmp_path / "x.npy")
    right = ws.calinski_harabasz_score(X, LABELS)
    assert ws.calinski_harabasz_score(found, LABELS) == pytest.approx(right, rel=1e-12)
    (tmp_path / "x.npy").unlink()
    assert (found[1690:] == X[1690:]).all() and (found[[3, 1]] == X[[3, 1]]).all()
