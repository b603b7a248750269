"""Which way the card takes over many partitions: together, apart, or neither."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.compute.data.device_rows import DeviceSpace
from wellsep.compute.kernels import triton_use as fused
from wellsep.compute.kernels.triton_use import about_median, cluster_reach, fused_way

FEW = np.array([3, 4])


def rows(far=0.0):
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 4))).float()
    X[7] += far
    return X


def way(X, n_clusters=FEW, weighted=False):
    return fused_way(*about_median(X), 1.0, n_clusters, weighted)


def test_partitions_go_together_over_ordinary_data():
    assert way(rows()) == "together"


@pytest.mark.parametrize(("n_clusters", "weighted"), [(FEW, True), (FEW[:1], False)])
def test_weights_and_single_partitions_go_apart(n_clusters, weighted):
    assert way(rows(), n_clusters, weighted) == "apart"


@pytest.mark.parametrize(("far", "taken"), [(1e2, "together"), (1e5, "apart"), (1e8, None)])
def test_an_object_far_out_keeps_low_precision_away(far, taken):
    assert way(rows(far=far)) == taken


def test_an_object_far_out_does_not_drag_the_others_from_the_origin():
    placed, reach = about_median(rows(far=1e6))
    assert placed.norm(dim=1).median() < 4
    assert reach > 1e5


def test_objects_that_mostly_coincide_are_measured_by_the_others():
    X = torch.zeros((500, 4))
    assert way(X) == "together"
    X[::50] = 1.0
    assert way(X) == "together"


@pytest.mark.parametrize(("far", "taken"), [(10.0, "together"), (1e2, None)])
def test_clusters_far_from_each_other_keep_low_precision_away(far, taken):
    X = rows()
    X[::2] += far  # half of them: the median lies in one cluster, or between the two
    codes = torch.stack([torch.arange(500) % 2, torch.arange(500) % 4])
    codes[:, :3] = -1
    placed, reach = about_median(X)
    distant = cluster_reach(DeviceSpace(placed, 1), codes, np.array([2, 4]))
    assert fused_way(placed, reach, distant, FEW, weighted=False) == taken


def test_one_object_far_out_is_no_distant_cluster():
    X, codes = about_median(rows(far=1e6))[0], torch.arange(500)[None] % 3
    codes[0, 7] = 3  # a cluster of one has no extent
    assert cluster_reach(DeviceSpace(X, 1), codes, np.array([4])) < 2


def test_several_objects_on_one_spot_far_out_are_a_distant_cluster():
    X, codes = rows(), torch.arange(500)[None] % 3
    X[:5], codes[0, :5] = X[7], 3
    assert cluster_reach(DeviceSpace(X, 1), codes, np.array([4])) == np.inf
    X[:5] = 0.0  # on the origin nothing is lost
    assert cluster_reach(DeviceSpace(X, 1), codes, np.array([4])) < 2


def test_the_reach_of_clusters_is_the_same_for_any_blocks_of_rows(monkeypatch):
    X, codes = rows() + 3.0, torch.stack([torch.arange(500) % 2, torch.arange(500) % 4 - 1])
    expected = 0.0
    for code, k in zip(codes, (2, 3), strict=True):
        for c in range(k):
            members = X[code == c].to(torch.float64)
            extent = (members - members.mean(dim=0)).square().sum(dim=1).mean().sqrt()
            expected = max(expected, float(members.mean(dim=0).norm() / extent))
    for most in (DeviceSpace.most_rows, 70):
        monkeypatch.setattr(DeviceSpace, "most_rows", most)
        reach = cluster_reach(DeviceSpace(X, 1), codes, np.array([2, 3]))
        assert reach == pytest.approx(expected, rel=1e-6)


def test_a_table_that_would_fill_the_card_is_not_made(monkeypatch):
    class OnCard:
        is_cuda, device = True, "cuda:0"

        def __len__(self):
            return 100_000

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (80_000_000_000, 0))
    assert fused_way(OnCard(), 1.0, 1.0, np.array([20]), weighted=False) == "apart"
    assert fused_way(OnCard(), 1.0, 1.0, np.array([10_000]), weighted=False) is None


@pytest.mark.parametrize(("version", "usable"), [("3.6rc1", True), ("3.1.0", False), ("4.0", True)])
def test_kernels_are_left_to_a_triton_that_they_were_tested_with(monkeypatch, version, usable):
    monkeypatch.setitem(
        sys.modules,
        "triton",
        SimpleNamespace(__version__=version, __spec__=ModuleSpec("triton", None)),
    )
    fused.triton_version.cache_clear()
    X = SimpleNamespace(is_cuda=True, dtype=torch.float32)
    monkeypatch.setattr(fused, "is_torch", lambda X: True)
    assert fused.fused_usable(X) == usable
    fused.triton_version.cache_clear()
