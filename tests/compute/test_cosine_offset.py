"""Cosine distances hold their digits where all rows point almost the same way."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import wellsep as ws

LIMITS = {1e3: 1e-11, 1e6: 1e-9, 1e8: 1e-6}


def _bundles(offset: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], 9)
    return rng.normal(size=(18, 2)) + 3 * np.eye(2)[y] + offset, y


def _exact(X: np.ndarray) -> np.ndarray:
    """1 − cos of all pairs, computed with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        rows = [[Decimal(float(v)) for v in row] for row in X]
        norms = [sum(v * v for v in row).sqrt() for row in rows]
        table = [
            [
                float(1 - sum(a * b for a, b in zip(one, two, strict=True)) / (p * q))
                for two, q in zip(rows, norms, strict=True)
            ]
            for one, p in zip(rows, norms, strict=True)
        ]
    np.fill_diagonal(table := np.array(table), 0)
    return table


def _silhouette(apart: np.ndarray, y: np.ndarray) -> float:
    sums = apart @ (y[:, None] == [0, 1])
    counts = np.bincount(y)
    own = sums[np.arange(len(y)), y] / (counts[y] - 1)
    other = sums[np.arange(len(y)), 1 - y] / counts[1 - y]
    return float(((other - own) / np.maximum(own, other)).mean())


def _dunn(apart: np.ndarray, y: np.ndarray) -> float:
    same = y[:, None] == y
    return float(apart[~same].min() / apart[same].max())


def _as_kind(X: np.ndarray, kind: str):
    if kind == "torch":
        return pytest.importorskip("torch", reason="needs the extra deep").asarray(X)
    if kind == "dask":
        return pytest.importorskip("dask.array", reason="needs the extra dask").from_array(
            X, chunks=(7, 2)
        )
    return X


@pytest.mark.parametrize("kind", ["numpy", "torch", "dask"])
@pytest.mark.parametrize("offset", LIMITS)
def test_cosine_indices_are_right_far_from_the_origin(offset, kind):
    X, y = _bundles(offset)
    apart = _exact(X)
    data = _as_kind(X, kind)
    silhouette = ws.silhouette_score(data, y, metric="cosine")
    assert silhouette == pytest.approx(_silhouette(apart, y), abs=LIMITS[offset])
    dunn = ws.dunn_score(data, y, metric="cosine")
    assert dunn == pytest.approx(_dunn(apart, y), rel=100 * LIMITS[offset])


@pytest.mark.parametrize("offset", LIMITS)
def test_cosine_sums_of_pairs_are_right_far_from_the_origin(offset):
    X, y = _bundles(offset)
    apart = _exact(X)
    few = ws.silhouette_estimate(X, y, n_sampled=18, metric="cosine").value
    assert few == pytest.approx(_silhouette(apart, y), abs=LIMITS[offset])
    pairs = np.sort(apart[np.triu_indices(len(y), 1)])
    same = np.triu(y[:, None] == y, 1)
    n, within = int(same.sum()), float(apart[same].sum())
    least, most = pairs[:n].sum(), pairs[-n:].sum()
    value = ws.c_index_score(X, y, metric="cosine")
    assert value == pytest.approx((within - least) / (most - least), abs=LIMITS[offset])


def test_a_zero_row_stays_at_distance_one_far_from_the_origin():
    X, y = _bundles(1e6)
    X[0] = 0
    apart = _exact(np.delete(X, 0, axis=0))
    widths = ws.silhouette_samples(X, y, metric="cosine")
    own = apart[:8, :8].sum(axis=1)
    other = apart[:8, 8:].mean(axis=1)
    own = (own + 1) / 8  # the zero row is at 1 from the other members
    assert widths[1:9] == pytest.approx((other - own) / np.maximum(own, other), abs=1e-9)
    assert widths[0] == pytest.approx(0, abs=1e-15)


def test_an_axis_is_taken_only_where_rows_point_the_same_way():
    from wellsep.compute.data.opening import open_space

    near, _ = _bundles(0)
    assert open_space(near).axis is None
    assert open_space(_bundles(1e6)[0]).axis == pytest.approx([0.5**0.5] * 2)
