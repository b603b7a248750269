"""DISCO gives ClustPy's values, for clusters and for noise."""

from __future__ import annotations

import numpy as np
import pytest
from golden import read_json

import wellsep as ws

CASES = read_json("disco.json")["cases"]
LINE = np.array([[0.0], [1], [2], [10], [11], [13]])


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_every_object_has_clustpys_value(case):
    found = ws.disco_samples(case["X"], case["labels"], min_points=case["min_points"])
    assert found == pytest.approx(case["samples"], abs=1e-12)
    score = ws.disco_score(case["X"], case["labels"], min_points=case["min_points"])
    assert score == pytest.approx(np.mean(case["samples"]), abs=1e-12)


def test_hand_arithmetic_of_two_clusters_and_a_noise_object():
    """dc is 1 inside {0, 1, 2} and {10, 11}, 8 between them, 2 from 13 to {10, 11}."""
    found = ws.disco_samples(LINE, [0, 0, 0, 1, 1, -1], min_points=2)
    sparse, far = (2 - 1) / 2, (2 - 1) / 2  # its core distance is 2, those of the clusters 1
    assert found.tolist() == [*[(8 - 1) / 8] * 5, min(sparse, far)]


@pytest.mark.parametrize(
    ("labels", "value"), [([-1] * 6, -1.0), ([0] * 6, 0.0), (list(range(6)), 0.0)]
)
def test_trivial_partitions_have_the_values_of_the_paper(labels, value):
    assert ws.disco_samples(LINE, labels, min_points=2).tolist() == [value] * 6
    assert ws.disco_score(LINE, labels, min_points=2) == value


def test_noise_inside_a_cluster_counts_below_zero():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 12])
    labels = np.repeat([0, 1], 60)
    labels[int(np.argmin((X**2).sum(axis=1)))] = -1
    assert ws.disco_samples(X, labels)[labels < 0][0] < 0


def test_one_cluster_has_its_noise_objects_as_rivals_each_by_itself():
    X = np.vstack([LINE[:3], [[10.0], [30.0]]])
    found = ws.disco_samples(X, [0, 0, 0, -1, -1], min_points=1)
    assert found[:3].tolist() == [(8 - 1) / 8] * 3  # to the nearer noise object, not to their mean


def test_moons_score_above_halves_which_the_silhouette_prefers():
    from sklearn.datasets import make_moons

    X, moons = make_moons(300, noise=0.05, random_state=0)
    halves = (X[:, 0] > 0.5).astype(int)
    assert ws.disco_score(X, moons) > ws.disco_score(X, halves)
    assert ws.silhouette_score(X, moons) < ws.silhouette_score(X, halves)


def test_too_few_objects_are_undefined_alone_and_nan_among_many():
    with pytest.raises(ws.UndefinedIndex, match="disco needs at least min_points = 5 objects"):
        ws.disco_score(LINE[:4], [0, 0, 1, 1])
    with pytest.raises(ws.UndefinedIndex, match="disco needs at least min_points = 5 objects"):
        ws.disco_samples(LINE[:4], [0, 0, 1, 1])
    scores = ws.score_partitions(LINE[:4], [0, 0, 1, 1], ["disco", "silhouette"])
    assert np.isnan(scores.values[0, 0]) and np.isfinite(scores.values[0, 1])


@pytest.mark.parametrize("bad", [0, -1, 2.5, "5"])
def test_min_points_must_be_a_count(bad):
    with pytest.raises((TypeError, ValueError), match="min_points must"):
        ws.disco_score(LINE, [0, 0, 0, 1, 1, 1], min_points=bad)


def test_a_price_of_noise_is_part_of_the_value():
    labels = [0, 0, 0, 1, 1, -1]
    given = {"min_points": 2}
    assert ws.disco_score(LINE, labels, **given) == ws.disco_score(
        LINE, labels, noise="penalize", **given
    )


def test_it_is_no_default():
    from wellsep.indices.index_names import DEFAULT_INDICES

    assert "disco" not in DEFAULT_INDICES


def test_a_dask_array_is_refused_with_a_sentence():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = da.from_array(LINE, chunks=3)
    with pytest.raises(TypeError, match="X must be in memory for 'disco'"):
        ws.disco_score(X, da.from_array(np.array([0, 0, 0, 1, 1, 1]), chunks=3))


def test_duplicates_alone_give_no_nan():
    X = np.repeat([[0.0], [5.0]], 6, axis=0)
    labels = np.repeat([0, 1], 6)
    labels[0] = -1
    found = ws.disco_samples(X, labels, min_points=3)
    assert found[0] == 0  # all core distances are 0: neither sparse nor dense
    assert found[1:].tolist() == [1.0] * 11
