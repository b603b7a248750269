"""S_Dbw: goldens, hand arithmetic, and a warning where nothing is near a centre."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from golden import labelled_cases, read_case
from scipy.spatial.distance import cdist

import wellsep as ws

pytestmark = pytest.mark.filterwarnings("ignore:.*no object within the counting radius")


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_nbclust_and_the_two_definitions_are_reproduced(name, labelling):
    case = read_case(name)
    X, y = case.X, case.labels[labelling]
    stored = (
        case.values[labelling]["s_dbw"]["NbClust.sdbw"],
        case.definition[labelling]["s_dbw_2001_inclusive"],
        case.definition[labelling]["s_dbw_A46_strict"],
    )
    ours = (
        ws.s_dbw_score(X, y, density="own"),
        ws.s_dbw_score(X, y),
        ws.s_dbw_score(X, y, strict=True),
    )
    assert ours == pytest.approx(stored, rel=1e-10)


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_clustercrit_is_reproduced_to_its_single_precision(name, labelling):
    case = read_case(name)
    stored = case.values[labelling]["s_dbw"]["clusterCrit.S_Dbw"]
    scores = ws.score_partitions(
        case.X, case.labels[labelling], [("s_dbw", {"strict": True, "normalise": False})]
    )
    assert scores.values[0, 0] == pytest.approx(stored, rel=1e-6, nan_ok=True)
    undefined = scores.why(0, scores.indices[0]) is not None
    assert undefined == np.isnan(stored)


def _brute(X, y, union=True, weight=None):
    """The definition, with distances to every point spelled out."""
    w = np.ones(len(y)) if weight is None else weight
    parts = [y == k for k in np.unique(y)]
    v = np.array([np.average(X[p], axis=0, weights=w[p]) for p in parts])
    var = [np.average((X[p] - c) ** 2, axis=0, weights=w[p]) for p, c in zip(parts, v, strict=True)]
    norms = np.linalg.norm(var, axis=1)
    whole = np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w)
    radius = np.sqrt(norms.sum()) / len(parts)
    terms = []
    for i in range(len(parts)):
        for j in range(i):
            both = parts[i] | parts[j]

            def count(u, where):
                return (w[where] * (cdist([u], X[where])[0] <= radius)).sum()

            top = count((v[i] + v[j]) / 2, both)
            bottom = max(
                count(v[i], both if union else parts[i]), count(v[j], both if union else parts[j])
            )
            terms.append(top / bottom if bottom else 0)
    return norms.mean() / np.linalg.norm(whole) + np.mean(terms)


def _blobs(seed, n=300, d=2, k=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + 2 * rng.normal(size=(k, d))[y], y


@pytest.mark.parametrize("density", ["union", "own"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_definition_spells_out(density, seed):
    X, y = _blobs(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    assert ws.s_dbw_score(X, y, density=density) == pytest.approx(
        _brute(X, y, density == "union"), rel=1e-10
    )
    assert ws.s_dbw_score(X, y, density=density, sample_weight=weight) == pytest.approx(
        _brute(X, y, density == "union", weight), rel=1e-10
    )


def test_integer_weights_count_as_repetitions():
    X, y = _blobs(7)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = ws.s_dbw_score(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert ws.s_dbw_score(X, y, sample_weight=weight) == pytest.approx(repeated, rel=1e-10)


def test_empty_balls_are_warned_of_with_their_number():
    X, y = _blobs(3, n=200, d=40)
    with pytest.warns(UserWarning, match="^6 of 6 pairs of clusters have no object"):
        value = ws.s_dbw_score(X, y)
    scatter = np.mean([np.linalg.norm(X[y == k].var(axis=0)) for k in range(4)])
    assert value == pytest.approx(scatter / np.linalg.norm(X.var(axis=0)), rel=1e-10)


def test_many_partitions_are_warned_of_once():
    X, y = _blobs(3, n=200, d=40)
    sentence = "13 of 13 pairs of clusters in 3 of 3 partitions"
    with pytest.warns(UserWarning, match=sentence) as caught:
        ws.score_partitions(X, [y, y // 2, y], ["s_dbw"])
    assert len(caught) == 1


def test_balls_that_hold_objects_raise_no_warning():
    X, y = _blobs(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ws.s_dbw_score(X, y) > 0


def test_objects_in_one_place_leave_it_undefined():
    with pytest.raises(ws.UndefinedIndex, match="all objects coincide"):
        ws.s_dbw_score(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    "option", [{"density": "both"}, {"strict": "yes"}, {"normalise": None}], ids=str
)
def test_an_unknown_option_is_named(option):
    X, y = _blobs(0)
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be one of"):
        ws.s_dbw_score(X, y, **option)
