"""Nothing that is said of a space depends on the unit of its values, be it 1e-180 or 1e180."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from wellsep import Distances, multimodality
from wellsep.spaces.drawing_planes import place_others, plane
from wellsep.spaces.effective_rank import spectrum_of

KINDS = {
    "rows": lambda X, unit: X * unit,
    "sparse rows": lambda X, unit: sp.csr_array(X * unit),
    "distances": lambda X, unit: Distances(pdist(X) * unit),
}
UNITS = [2.0**-600, 2.0**600]


def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 3)) * [3.0, 2.0, 1.0]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("projection", ["pca", "pca-scaled", "components", "distances"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_dips_are_the_same(kind, projection, unit):
    plain, scaled = (
        multimodality(KINDS[kind](points(), u), projection=projection) for u in (1, unit)
    )
    assert scaled.defined == plain.defined
    assert scaled.statistics == pytest.approx(plain.statistics, rel=1e-9)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_effective_rank_is_the_same(kind, unit):
    plain, scaled = (spectrum_of(KINDS[kind](points(), u)) for u in (1, unit))
    assert scaled == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_is_the_same_but_for_its_scale(kind, unit):
    plain, scaled = (plane(KINDS[kind](points(), u), np.arange(30))[0] for u in (1, unit))
    np.testing.assert_allclose(scaled / np.ptp(scaled), plain / np.ptp(plain), atol=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_other_objects_are_put_between_the_same_neighbours(unit):
    X, objects = points(), np.arange(30)
    xy = plane(X, objects)[0]
    assert (place_others(X * unit, objects, xy) == place_others(X, objects, xy)).all()
