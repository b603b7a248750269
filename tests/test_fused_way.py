"""Which way the card takes over many partitions: together, apart, or neither."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wellsep.compute.kernels import fused_way, spread_evenly  # noqa: E402

FEW = np.array([3, 4])


def rows(far=0.0):
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 4))).float()
    X[7] += far
    return X


def test_partitions_go_together_over_ordinary_data():
    assert fused_way(rows(), FEW, weighted=False) == "together"


@pytest.mark.parametrize(("n_clusters", "weighted"), [(FEW, True), (FEW[:1], False)])
def test_weights_and_single_partitions_go_apart(n_clusters, weighted):
    assert fused_way(rows(), n_clusters, weighted) == "apart"


def test_an_object_far_out_keeps_half_precision_away():
    assert spread_evenly(rows(far=100.0))
    assert not spread_evenly(rows(far=1e6))
    assert fused_way(rows(far=1e6), FEW, weighted=False) == "apart"


def test_a_table_that_would_fill_the_card_is_not_made(monkeypatch):
    class OnCard:
        is_cuda, device = True, "cuda:0"

        def __len__(self):
            return 100_000

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (80_000_000_000, 0))
    assert fused_way(OnCard(), np.array([20]), weighted=False) == "apart"
    assert fused_way(OnCard(), np.array([10_000]), weighted=False) is None
