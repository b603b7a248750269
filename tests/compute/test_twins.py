"""A faster twin gives what its reference gives, also on ugly rows; one switch turns all off."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep.compute.kmeans.lloyd
import wellsep.compute.kmeans.nearest_centres
import wellsep.compute.statistics.distance_sums
import wellsep.compute.statistics.extreme_pairs
import wellsep.spaces.dip_null  # noqa: F401  (the lines of the table stand beside the references)
from wellsep.compute.engine import kernel_choice as twins
from wellsep.compute.metrics.row_preparation import Prepared, unit_rows
from wellsep.compute.metrics.squares import Rows, rows_of
from wellsep.compute.metrics.table import METRICS
from wellsep.compute.requests import Block
from wellsep.compute.statistics import half_samples
from wellsep.compute.statistics.distance_sums import (
    numba_pair_block,
    numpy_pair_block,
    pair_block,
    way_to_sum,
)
from wellsep.compute.statistics.silhouette_widths import widths_from_sums

FROM_SQUARES = [m for m in METRICS.values() if m.finish is not None]


def _rows(metric, dtype, at, seed, zeros=True):
    """A block with zero rows, duplicates and a far row, prepared as the metric wants it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(at.stop - at.start, 4)) + 1
    X[3] = X[4]
    X[5] *= 40
    X[[0, 7]] = 0 if zeros else X[8]
    if metric.sums is None:
        return rows_of(X.astype(dtype), at)
    unit, zero = unit_rows(X)
    return rows_of(Prepared(unit.astype(dtype), zero), at)


def _with_members(rows, seed):
    rng = np.random.default_rng(seed)
    members = rng.integers(0, 2, (9, len(rows.X))) * rng.uniform(0.5, 2, len(rows.X))
    dense = members.astype(rows.X.dtype)
    given = (rows.X, rows.square, rows.zero, rows.at)
    return Rows(*given, dense), Rows(*given, sp.csr_array(dense))


without_numba = pytest.mark.skipif(not find_spec("numba"), reason="numba is not installed")
PAIR_TWINS = [numpy_pair_block, pytest.param(numba_pair_block, marks=without_numba)]


@pytest.mark.parametrize("twin", PAIR_TWINS)
@pytest.mark.parametrize("metric", FROM_SQUARES, ids=lambda m: m.name)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("same", [False, True])
def test_sums_of_a_pair_of_blocks(twin, metric, dtype, tolerance, same):
    i, i_sparse = _with_members(_rows(metric, dtype, slice(0, 30), 0), 1)
    j, j_sparse = _with_members(_rows(metric, dtype, slice(30, 51), 2), 3)
    if same:
        j, j_sparse = i, i_sparse
    expected = pair_block(i, j, metric, np)
    found = twin(i_sparse, j_sparse, metric, np)
    assert found.sums_i == pytest.approx(expected.sums_i, rel=tolerance)
    if same:
        assert found.sums_j is None
        assert expected.sums_j is None
    else:
        assert found.sums_j == pytest.approx(expected.sums_j, rel=tolerance)


def test_widths_of_a_cluster_of_one_and_of_coinciding_objects():
    rng = np.random.default_rng(4)
    codes = np.array([0, 0, 1, 2, 2, 2])
    sums = rng.uniform(1, 2, (3, 6))
    sums[:, 4] = 0
    count = np.bincount(codes).astype(float)
    block = Block.of_codes(codes[None], np.array([3]))
    found = widths_from_sums(block, sums, count, count, 0.25)[0]
    for i, own in enumerate(codes):
        if i in (2, 4):
            continue
        a = sums[own, i] / (count[own] - 1)
        b = min(sums[k, i] / count[k] for k in range(3) if k != own)
        assert found[i] == pytest.approx((b - a) / max(a, b), rel=1e-14)
    assert (found[2], found[4]) == (0.25, 0)


def test_one_switch_turns_every_kernel_off(monkeypatch):
    monkeypatch.setattr(twins, "compiled_pays", lambda additions: True)
    monkeypatch.setattr(half_samples, "compiled_pays", lambda additions: True)
    X, euclidean = np.zeros((2, 3)), METRICS["euclidean"]
    assert half_samples.compiled_usable(X, 1.0)
    assert euclidean.numpy_usable(X)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    assert not half_samples.compiled_usable(X, 1.0)
    assert not euclidean.numpy_usable(X)


def test_rows_and_metric_decide_how_pairs_are_summed(monkeypatch):
    monkeypatch.setattr(twins, "_additions_so_far", 0.0)
    X, metric = np.zeros((2, 3)), METRICS["euclidean"]
    assert way_to_sum(X, metric, 1) is numpy_pair_block
    assert way_to_sum(X, METRICS["precomputed"], 1) is pair_block
    assert way_to_sum(object(), metric, 1) is pair_block
