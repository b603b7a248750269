"""RankMe and alpha-ReQ equal hand arithmetic and NumPy's, whatever the shape, scale or offset."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wellsep.spaces import effective_rank as spectrum
from wellsep.spaces.effective_rank import spectrum_of

CROSS = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])  # scatter 8 and 2, singular values 2 : 1


def by_numpy(X):
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    values = values[values > 1e-6 * values[0]]
    share = values / values.sum()
    entropy = -(share * np.log(share)).sum()
    slope = np.polyfit(np.log(np.arange(1, len(values) + 1)), 2 * np.log(values), 1)[0]
    return np.exp(entropy), -slope


def test_two_directions_by_hand():
    found = spectrum_of(CROSS)
    assert found.rankme == pytest.approx(3 / 2 ** (2 / 3), abs=1e-12)  # shares 2/3 and 1/3
    assert found.alpha_req == pytest.approx(2.0, abs=1e-12)  # ln(8 / 2) over ln 2
    assert found.n_objects == 4


@pytest.mark.parametrize("shape", [(60, 5), (5, 60), (40, 40), (30, 1)])
def test_numpy_finds_the_same(shape):
    rng = np.random.default_rng(sum(shape))
    X = rng.normal(size=shape) * rng.uniform(0.1, 3, shape[1]) + 5
    found = spectrum_of(X)
    if shape[1] == 1:
        assert found.rankme == 1
        assert math.isnan(found.alpha_req)
    else:
        np.testing.assert_allclose(found[:2], by_numpy(X), rtol=1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(1e-200, 0), (1e200, 0), (1, 1e6)])
def test_neither_scale_nor_place_matters(scale, shift):
    np.testing.assert_allclose(spectrum_of(CROSS * scale + shift)[:2], spectrum_of(CROSS)[:2])


def test_equal_directions_are_all_counted_and_do_not_fall():
    found = spectrum_of(np.vstack([np.eye(7), -np.eye(7)]))
    assert found.rankme == pytest.approx(7)
    assert found.alpha_req == pytest.approx(0)


def test_a_space_where_nothing_varies_has_no_spectrum():
    found = spectrum_of(np.ones((5, 3)))
    assert math.isnan(found.rankme)
    assert math.isnan(found.alpha_req)


def test_large_spaces_are_seen_by_some_objects(monkeypatch):
    monkeypatch.setattr(spectrum, "MOST_OBJECTS", 500)
    monkeypatch.setattr(spectrum, "WIDE", 50)
    X = np.random.default_rng(0).normal(size=(2000, 60)) * np.linspace(1, 2, 60)
    narrow, wide = spectrum_of(X[:, :10]), spectrum_of(X)
    assert (narrow.n_objects, wide.n_objects) == (500, 50)
    assert narrow.rankme == pytest.approx(by_numpy(X[:, :10])[0], rel=0.02)
    assert wide.rankme < 50
