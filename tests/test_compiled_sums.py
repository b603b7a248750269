"""The compiled cluster sums are those of NumPy, bit for bit, and load only where they pay."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws
from wellsep.compute import kernels

pytest.importorskip("numba", reason="numba is not installed")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sums_equal_those_of_a_sparse_product(dtype, weighted):
    from wellsep.compute._members_numba import member_sums

    rng = np.random.default_rng(0)
    members = (rng.random((23, 61)) < np.linspace(0, 0.6, 23)[:, None]).astype(dtype)
    if weighted:
        members *= rng.random(members.shape).astype(dtype)
    members, table = sp.csr_array(members), rng.random((61, 37)).astype(dtype)
    found = member_sums(members.indptr, members.indices, members.data, table)
    assert found.dtype == dtype
    assert np.array_equal(found, members @ table)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_the_same_with_and_without_them(monkeypatch, dtype, weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1203, 7)).astype(dtype)
    labels = [rng.integers(-1, k, len(X)) for k in range(2, 16)]
    weight = rng.uniform(0.5, 2, len(X)) if weighted else None

    def scores(usable):
        monkeypatch.setattr(kernels, "numba_usable", lambda n, d, m: usable)
        return ws.score_partitions(X, labels, ["silhouette"], sample_weight=weight).values

    assert np.array_equal(scores(True), scores(False))


@pytest.mark.parametrize(
    ("size", "usable"),
    [
        ((20_000, 16, 40), True),  # 1.6e10 additions
        ((20_000, 16, 10), False),  # products and roots take most of the time
        ((2_000, 16, 40), False),  # over before numba is loaded
    ],
)
def test_they_load_only_for_enough_work(monkeypatch, size, usable):
    monkeypatch.setattr(kernels, "_additions_so_far", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert kernels.numba_usable(*size) is usable


def test_earlier_work_counts(monkeypatch):
    monkeypatch.setattr(kernels, "_additions_so_far", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    answers = [kernels.numba_usable(10_000, 160, 42) for _ in range(3)]
    assert answers == [False, False, True]


def test_they_are_switched_off_with_all_kernels(monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    assert kernels.choose("euclidean", np, (50_000, 16, 42)) is not kernels.numba_pair_block
