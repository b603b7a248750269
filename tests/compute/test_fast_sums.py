"""Faster ways to cluster sums give the same sums: compiled additions, rows sorted by cluster."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws
from wellsep.compute.data.opening import open_space
from wellsep.compute.engine import kernel_choice as twins
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Task
from wellsep.compute.statistics import distance_sums as sums
from wellsep.compute.statistics.distance_sums import pair_block, way_to_sum
from wellsep.partitions import Partitions

compiled = pytest.mark.skipif(not find_spec("numba"), reason="numba is not installed")


@compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sums_equal_those_of_a_sparse_product(dtype, weighted):
    from wellsep.compute.kernels.numba_sums import member_sums

    rng = np.random.default_rng(0)
    members = (rng.random((23, 61)) < np.linspace(0, 0.6, 23)[:, None]).astype(dtype)
    if weighted:
        members *= rng.random(members.shape).astype(dtype)
    members, table = sp.csr_array(members), rng.random((61, 37)).astype(dtype)
    found = member_sums(members.indptr, members.indices, members.data, table)
    assert found.dtype == dtype
    assert np.array_equal(found, members @ table)


@compiled
@pytest.mark.parametrize(
    ("size", "usable"),
    [
        ((20_000, 16, 40), True),  # 1.6e10 additions
        ((20_000, 16, 10), False),  # products and roots take most of the time
        ((2_000, 16, 40), False),  # over before numba is loaded
    ],
)
def test_they_load_only_for_enough_work(monkeypatch, size, usable):
    monkeypatch.setattr(twins, "_additions_so_far", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert sums.numba_pays(*size) is usable


@compiled
def test_earlier_work_counts(monkeypatch):
    monkeypatch.setattr(twins, "_additions_so_far", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    answers = [sums.numba_pays(10_000, 160, 42) for _ in range(3)]
    assert answers == [False, False, True]


def test_they_are_switched_off_with_all_kernels(monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    X = np.zeros((50_000, 16))
    assert way_to_sum(X, find("euclidean"), 42) is pair_block


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "sqeuclidean"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_partition_sorted_by_cluster_has_the_same_widths(
    monkeypatch, metric, dtype, tolerance, weighted
):
    rng = np.random.default_rng(2)
    y = rng.choice([-1, 0, 1, 2], 1411, p=[0.1, 0.2, 0.3, 0.4])
    X = (rng.normal(size=(len(y), 5)) + 2 * y[:, None] + 1).astype(dtype)
    X[7:9] = 0
    X[20:24] = X[1400]
    weight = rng.uniform(0.5, 2, len(y)) if weighted else None
    options = {"metric": metric, "sample_weight": weight}
    found = ws.silhouette_samples(X, y, **options)
    monkeypatch.setattr(sums, "SMALL", len(y))  # no cluster is large enough to be sorted
    plain = ws.silhouette_samples(X, y, **options)
    assert found == pytest.approx(plain, rel=0, abs=tolerance, nan_ok=True)
    assert np.isnan(found).sum() == (y < 0).sum()


def test_small_clusters_are_not_sorted():
    space = open_space(np.zeros((1000, 2)))
    few, many = (Partitions.from_labels(np.arange(1000) % k) for k in (4, 5))
    assert sums.sorted_usable(Task(space, few, None), find("euclidean"))
    assert not sums.sorted_usable(Task(space, many, None), find("euclidean"))
