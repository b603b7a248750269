"""Small distances are not lost where a set has two scales: clusters that lie up to 1e8 apart.

What may be lost, and why:

* float64: means are rounded to eps·far, and rows about them: 1e-15 of the greatest distance. Of
  squares from products 2e-9 is lost where a pair is just far enough not to be computed again.
* float32 is held against float64 on the same numbers: what the input was rounded by is no error.
  Passes over rows run in float64: nothing is lost. Sums over pairs are taken in float32 unless
  pairs are close: 6e-4 of a square at worst, 1e-4 of a mean of some hundred distances.
* The C index is a difference of two sums of distances over another: 1e-4 of its range is meant.
* cosine: a distance of directions is off by 1e-16, and below 1e-14 counts as 0, unless most rows
  point the same way. Two clusters 3 apart at 1e7 are 1e-13 apart: they are not compared here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import exact
import numpy as np
import pytest
from compute.test_parity import as_on_an_accelerator, in_many_pieces, without_kernels

import wellsep as ws
from wellsep.compute.statistics import centre_pairs

SCALES = [10.0**e for e in range(9)]
Spec = tuple[str, dict[str, Any]]
OPTIONS: list[Spec] = [
    ("c_index", {"variant": "nbclust"}),
    ("silhouette", {"metric": "sqeuclidean"}),
    ("cfq", {"wrong_side": "squared"}),
    ("davies_bouldin", {"q": 2}),
    *(
        ("generalized_dunn", {"separation": separation, "diameter": diameter})
        for separation, diameter in (
            ("single", "average"),
            ("complete", "half-average"),
            ("centroid", "complete"),
            ("to-centroids", "centroid"),
            ("own-centroids", "complete"),
            ("hausdorff", "average"),
        )
    ),
]
SPECS: list[Spec] = [*((name, {}) for name in ws.INDICES), *OPTIONS]
DEFINED = [spec for spec in SPECS if spec[0] in exact.INDICES]
PAIRWISE = ("silhouette", "generalized_dunn", "c_index")  # sums of distances, in float32 if X is
# Where the clusters lie, in units of the distance between the two scales, and 3 apart otherwise.
PLACES = {
    "one far cluster": [0, 0, 1],
    "two far clusters": [0, 0, 1, 1],
    "opposite clusters": [-1, -1, 1, 1],
}


def two_scales(places: str, far: float, n: int = 12, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of about n objects of unit spread; numbers are multiples of 2⁻²⁰."""
    rng = np.random.default_rng([n, d])
    steps = 3.0 * (np.arange(len(PLACES[places])) % 2)
    sizes = n + np.arange(len(steps))
    labels = np.repeat(np.arange(len(steps)), sizes)
    middle = far * np.array(PLACES[places])[labels] + steps[labels]
    X = np.round((rng.normal(size=(len(labels), d)) + middle[:, None]) * 2**20) / 2**20
    order = rng.permutation(len(X))
    return X[order], labels[order]


def scores(X: Any, labels: Any, specs: list[Spec]) -> np.ndarray:
    return ws.score_partitions(X, [labels], specs).values[0]


def scale(spec: Spec, value: float) -> float:
    """What an error is held against: the value, or the range of what is a difference of sums.

    Radii of clusters that float32 rounds to one place are rounding only.
    """
    in_range = spec[0] == "c_index" or spec[1].get("separation") == "own-centroids"
    return 1.0 if in_range else abs(value)


def wrong(found: np.ndarray, expected: Any, specs: list[Spec], rtol: Any) -> dict[str, Any]:
    """The values that differ."""
    away = np.abs(found - np.asarray(expected, float))
    most = np.asarray(rtol) * [scale(*pair) for pair in zip(specs, expected, strict=True)]
    far = ~(away <= most) & ~(np.isnan(found) & np.isnan(expected))
    return {str(specs[i]): (found[i], expected[i]) for i in np.flatnonzero(far)}


def compared(places: str, specs: list[Spec]) -> list[Spec]:
    """Directions of two far clusters differ by less than 1 − cos can tell."""
    hidden = "silhouette_cosine" if places != "one far cluster" else ""
    return [spec for spec in specs if spec[0] != hidden]


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize("far", SCALES)
@pytest.mark.parametrize("places", PLACES)
def test_float64_has_the_values_of_80_bit_floats(places, far):
    X, labels = two_scales(places, far)
    specs = compared(places, DEFINED)
    truth = exact.Exact(X, labels)
    expected = [exact.value(name, truth, **options) for name, options in specs]
    assert wrong(scores(X, labels, specs), expected, specs, 1e-8 + 1e-15 * far) == {}


def elsewhere(X: np.ndarray) -> np.ndarray:
    """The same set with columns in another order, moved by what its numbers hold exactly."""
    return X[:, ::-1] + 2.0**12


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize("far", SCALES)
@pytest.mark.parametrize(
    ("places", "n", "d"), [(p, 12, 4) for p in PLACES] + [("two far clusters", 130, 20)]
)
def test_every_index_is_the_same_elsewhere(places, n, d, far):
    X, labels = two_scales(places, far, n, d)
    specs = [spec for spec in SPECS if spec[0] != "silhouette_cosine"]  # angles change
    expected = scores(X, labels, specs)
    assert np.isfinite(expected).all()
    assert wrong(scores(elsewhere(X), labels, specs), expected, specs, 1e-8 + 1e-15 * far) == {}


def torch_tensor(X: np.ndarray) -> Any:
    return pytest.importorskip("torch", reason="needs the extra deep").tensor(X)


def dask_array(X: np.ndarray) -> Any:
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    return da.from_array(X, chunks=(len(X) // 3, -1))


@contextlib.contextmanager
def with_many_centres() -> Iterator[None]:
    """No table of all pairs of centres is made, as if there were thousands."""
    with mock.patch.object(centre_pairs, "MANY", 2):
        yield


WAYS: dict[str, tuple[Any, Any]] = {
    "NumPy": (np.asarray, contextlib.nullcontext),
    "NumPy without kernels": (np.asarray, without_kernels),
    "many centres": (np.asarray, with_many_centres),
    "tensor": (torch_tensor, contextlib.nullcontext),
    "accelerator": (torch_tensor, as_on_an_accelerator),
    "dask": (dask_array, in_many_pieces),
}
IN_MEMORY = ("cdbw", "dbcv", "disco", "lcd", "cfq_mixture")


def ways() -> Iterator[Any]:
    for way in WAYS:
        for dtype in ("float32", "float64"):
            for far in SCALES:
                first = way == "NumPy" if dtype == "float32" else far in (1e5, 1e8)
                first = first or far in (1e2, 1e6)
                yield pytest.param(way, dtype, far, marks=[] if first else pytest.mark.slow)


def tolerance(spec: Spec, dtype: str, far: float) -> float:
    if dtype == "float32" and spec[0] in PAIRWISE:
        return 1e-4
    return 1e-9 + 1e-15 * far


@pytest.mark.filterwarnings("ignore:.*pairs of clusters")
@pytest.mark.parametrize(("way", "dtype", "far"), list(ways()))
@pytest.mark.parametrize("places", PLACES)
def test_every_way_has_the_values_of_float64(way, dtype, places, far):
    turn, during = WAYS[way]
    X, labels = two_scales(places, far)
    X = X.astype(dtype)
    specs = compared(places, SPECS)
    if way == "dask":
        kinds = ("complete", "hausdorff")
        specs = [s for s in specs if s[0] not in IN_MEMORY and s[1].get("separation") not in kinds]
    expected = scores(X.astype(np.float64), labels, specs)
    turned = turn(X)
    with during():
        found = scores(turned, labels, specs)
    # Where float32 rounds a cluster to a few places it has no density; float64 cannot know.
    found = np.where(
        [name == "cfq_mixture" for name, _ in specs] & np.isnan(found), expected, found
    )
    assert wrong(found, expected, specs, [tolerance(spec, dtype, far) for spec in specs]) == {}
