"""Indices of tiny sets of whole numbers are those of exact arithmetic.

Such sets are full of objects that coincide, lie on centres of two clusters or on the plane between
them. All numbers are multiplied by the least common multiple of the sizes of the clusters: centres
are then whole numbers too, and the reference knows every zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import exact
import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws

SPECS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in exact.INDICES if name not in ("silhouette_cosine", "s_dbw")),
    ("cfq", {"wrong_side": "squared"}),
    ("davies_bouldin", {"q": 2}),
    ("generalized_dunn", {"separation": "to-centroids", "diameter": "centroid"}),
    ("generalized_dunn", {"separation": "own-centroids", "diameter": "complete"}),
    ("generalized_dunn", {"separation": "centroid", "diameter": "complete"}),
]
NAMES = [f"{name} {' '.join(map(str, options.values()))}".strip() for name, options in SPECS]


def tiny_sets(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 10)), int(rng.integers(2, 5))
        k = min(k, n - 1)
        X = rng.integers(0, rng.integers(2, 5), (n, int(rng.integers(1, 4))))
        labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
        if len(np.unique(X, axis=0)) > 1:
            yield X.astype(float), rng.permutation(labels)


def in_whole_numbers(X: np.ndarray, labels: np.ndarray) -> exact.Exact:
    return exact.Exact(X * math.lcm(*np.bincount(labels).tolist()), labels)


def compare(turn: Any = np.asarray, count: int = 100, tolerance: float = 1e-9) -> dict[str, Any]:
    """(found, expected) of each value that is off by more, for sets that define it."""
    differ: dict[str, Any] = {}
    for number, (X, labels) in enumerate(tiny_sets(count)):
        truth = in_whole_numbers(X, labels)
        coincide = not exact.off_diagonal(truth.apart).all()  # then DB and CFQ leave pairs out
        found = ws.score_partitions(turn(X), [labels], SPECS).values[0]
        for value, name, (index, given) in zip(found, NAMES, SPECS, strict=True):
            if np.isnan(value) or (coincide and index in ("davies_bouldin", "cfq")):
                continue
            expected = exact.value(index, truth, **given)
            if not abs(value - expected) <= tolerance * max(abs(expected), 1):
                differ[f"{name} of set {number}"] = value, expected
    return differ


def test_indices_of_whole_numbers_are_those_of_exact_arithmetic():
    assert compare(count=600) == {}


@pytest.mark.parametrize("offset", [0.1, 1e4])
def test_an_offset_changes_none_of_them(offset):
    assert compare(lambda X: X + offset) == {}


def test_float32_has_them_too():
    assert compare(np.float32, tolerance=1e-6) == {}


def test_tensors_have_them_too():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    assert compare(torch.tensor) == {}


def test_an_object_on_its_own_centre_and_on_a_rivals_has_width_0():
    X = [[0, 0], [0, 2], [1, 3], [1, 0], [1, 2], [1, 1]]
    side = 1 - 1 / math.sqrt(2)  # 1 from the own centre, √2 from the nearest other
    widths = [side, side, 1, 0, 0, 0]  # alone; 1 from the centres of two; on the centres of two
    found = ws.simplified_silhouette_score(X, [0, 0, 1, 2, 2, 3])
    assert found == pytest.approx(sum(widths) / 6, abs=1e-12)


REPEATED = ("simplified_silhouette", "calinski_harabasz", "davies_bouldin", "cfq")


def test_weights_are_repetitions_also_where_objects_lie_on_centres():
    differ = {}
    for number, (X, labels) in enumerate(tiny_sets(200)):
        weights = np.random.default_rng(number).integers(1, 4, len(X))
        many, kept = np.repeat(np.arange(len(X)), weights), {"sample_weight": weights}
        for turn in (np.asarray, sp.csr_array):
            weighed = ws.score_partitions(turn(X), [labels], REPEATED, **kept).values[0]
            repeated = ws.score_partitions(turn(X[many]), [labels[many]], REPEATED).values[0]
            if weighed != pytest.approx(repeated, rel=1e-9, abs=1e-9, nan_ok=True):
                differ[number, turn.__name__] = weighed, repeated
    assert differ == {}


def bundles(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Multiples of one or two directions, the directions that they are of, and labels."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(5, 14)), int(rng.integers(1, 5))
        which = rng.integers(0, 1 + seed % 2, n)
        X = (rng.random(n) + 0.1)[:, None] * rng.normal(size=(2, d))[which]
        yield X, which, np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])


@pytest.mark.parametrize("turn", [np.asarray, sp.csr_array])
def test_parallel_rows_are_at_cosine_distance_0(turn):
    differ = {}
    for number, (X, which, labels) in enumerate(bundles(200)):
        unit = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
        distances = exact.gaps(unit, unit) ** 2 / 2 * (which[:, None] != which)
        expected = ws.silhouette_score(distances, labels, metric="precomputed")
        found = ws.score_partitions(turn(X), labels, "silhouette_cosine").values[0, 0]
        if found != pytest.approx(expected, abs=1e-9):
            differ[number] = found, expected
    assert differ == {}
