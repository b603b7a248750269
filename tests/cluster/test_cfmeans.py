"""cf-means: the gradients, the steps, the moves and the safeguard are what they say they are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from libraries import converter
from sklearn.datasets import load_digits, make_blobs

import wellsep as ws
from wellsep.cluster.cf_means.gradient_steps import SCHEDULES, pull, step, weights_of
from wellsep.compute.kmeans.nearest_centres import Nearest
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.compute.kmeans.search_state import CentreState


@pytest.fixture(scope="module")
def X():
    return make_blobs(400, 3, centers=9, cluster_std=2.0, random_state=5)[0]


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(3).uniform(0.0, 3.0, 400)


def _objective(X, centers, weight, unit):
    """SSE + λΣq from the definition, one point after the other."""
    total = 0.0
    for x, w in zip(X, unit, strict=True):
        squared = ((x - centers) ** 2).sum(axis=1)
        c, a = np.argsort(squared)[:2]
        v = centers[c] - centers[a]
        b = 0.5 * (centers[c] @ centers[c] - centers[a] @ centers[a])
        total += w * (squared[c] + weight * (v @ x - b) ** 2 / (v @ v))
    return total


@pytest.mark.parametrize("weight", [-1.3, -0.2, 0.0, 0.7, 1.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_equal_finite_differences(X, weights, weight, weighted):
    points = prepare(X[:60], weights[:60] if weighted else None)
    values, unit = points.X, weights[:60] if weighted else np.ones(60)
    centers = values[:5] + 0.1
    force = pull(points, points.nearest_two(centers), centers, weight)
    assert force.objective == pytest.approx(_objective(values, centers, weight, unit), rel=1e-12)
    numeric = np.empty_like(centers)
    h = 1e-5
    for place in np.ndindex(*centers.shape):
        shift = np.zeros_like(centers)
        shift[place] = h
        numeric[place] = (
            _objective(values, centers + shift, weight, unit)
            - _objective(values, centers - shift, weight, unit)
        ) / (2 * h)
    scale = np.abs(numeric).max()
    np.testing.assert_allclose(-2.0 * force.direction / scale, numeric / scale, atol=1e-6)


def test_a_step_follows_the_written_formula(X):
    points = prepare(X)
    centers, lam = points.X[:6] * 0.9, 0.8
    top = np.zeros_like(centers)
    mass = np.zeros(6)
    for x in points.X:
        squared = ((x - centers) ** 2).sum(axis=1)
        c, a = np.argsort(squared)[:2]
        v = centers[c] - centers[a]
        w = 0.5 * (squared[a] - squared[c]) / (v @ v)
        top[c] += (1 - lam * w) * (x - centers[c]) + lam * w**2 * v
        top[a] += lam * w * (x - centers[a]) - lam * w**2 * v
        mass[c] += 1
        mass[a] += lam * w
    moved, _ = step(points, centers, lam)
    np.testing.assert_allclose(moved, centers + top / mass[:, None], rtol=1e-9)


def test_a_step_of_weight_zero_is_lloyd_s(X, weights):
    for unit in (None, weights):
        points = prepare(X, unit)
        centers = points.X[:9]
        for _ in range(5):
            moved, _ = step(points, centers, 0.0)
            plain = points.update(points.assign(centers), centers)
            np.testing.assert_array_equal(moved, plain)
            centers = moved


def test_a_small_weight_is_a_small_step_away_from_lloyd_s(X):
    points = prepare(X)
    centers = points.X[:9]
    plain, _ = step(points, centers, 0.0)
    gaps = [np.abs(step(points, centers, lam)[0] - plain).max() for lam in (1e-2, 1e-4, 1e-6)]
    assert gaps[2] < 1e-4
    assert gaps[0] > gaps[1] > gaps[2] > 0.0


@pytest.mark.parametrize("lam", [-1.0, 1.0])
def test_a_step_does_not_know_the_unit_of_the_data(X, lam):
    points, large = prepare(X), prepare(1000.0 * X)
    moved, _ = step(points, points.X[:7], lam)
    moved_large, _ = step(large, 1000.0 * points.X[:7], lam)
    np.testing.assert_allclose(moved_large, 1000.0 * moved, rtol=1e-9)


def test_coinciding_centres_are_skipped_and_stay_finite(X):
    points = prepare(X)
    centers = points.X[[0, 0, 1, 2]]
    for lam in (-1.0, 1.0):
        moved, force = step(points, centers, lam)
        assert np.isfinite(moved).all()
        assert np.isfinite(force.objective)


@pytest.mark.parametrize("lam", [-1.0, 1.0])
def test_a_centre_without_points_is_reseeded_as_in_lloyd_s(X, lam):
    points = prepare(X)
    centers = np.vstack([points.X[:4], np.full((1, 3), 1e4)])
    moved, force = step(points, centers, lam)
    assert force.caught[4] == 0.0
    farthest = points.X[np.argmax(points.nearest_two(centers).near)]
    np.testing.assert_allclose(moved[4], farthest)


def test_attract_draws_the_second_nearest_centre_and_repel_drives_it_away():
    points = prepare(np.array([[-1.0]] * 5 + [[1.0]]))
    centers = points.frame.enter(np.array([[-1.0], [1.0]]))
    attracted, left_alone, repelled = (step(points, centers, lam)[0] for lam in (0.3, 0.0, -0.3))
    assert attracted[1, 0] < left_alone[1, 0] < repelled[1, 0]


def test_schedules_start_at_the_weight_and_die_away():
    for schedule in SCHEDULES:
        course = weights_of(schedule, 1.5, 40)
        assert abs(course[0]) == 1.5
        assert abs(course[-1]) < 0.06
    assert (weights_of("attract", 1.0, 9) > 0.0).all()
    assert (weights_of("repel", 1.0, 9) < 0.0).all()
    assert {-1.0, 1.0} <= set(np.sign(weights_of("oscillate", 1.0, 16)))
    t = np.arange(80)
    written = 1.5 * (1 - t / 80) * np.cos(4 * np.pi * t / 80)
    np.testing.assert_allclose(weights_of("oscillate", 1.5, 80), written)


def test_a_removal_costs_what_the_inertia_rises_by(X, weights):
    for unit in (None, weights):
        points = prepare(X, unit)
        centers = points.X[:9]
        count = np.ones(len(X)) if unit is None else unit
        costs, _ = CentreState(points, centers).losses()
        whole = points.assign(centers).near @ count
        for code in range(9):
            without = points.assign(np.delete(centers, code, axis=0)).near @ count
            assert costs[code] == pytest.approx(without - whole, rel=1e-9)


@pytest.mark.parametrize("chunked", [False, True])
def test_moves_never_raise_the_inertia_and_mend_a_bad_start(X, weights, chunked):
    rows = X
    if chunked:
        rows = pytest.importorskip("dask.array", reason="needs the extra dask").from_array(X, 100)
    start = X[np.argsort(X[:, 0])[:9]]  # all on one side
    for unit in (None, weights):
        plain = ws.KMeans(9, init=start, max_iter=1).fit(X, sample_weight=unit)
        moved = ws.CFMeans(9, init=start, n_init=1, random_state=0).fit(rows, sample_weight=unit)
        assert moved.inertia_ < 0.7 * plain.inertia_
        assert moved.n_moves_ > 0


@pytest.mark.parametrize("schedule", ["search", *SCHEDULES])
def test_the_inertia_is_never_above_that_of_k_means_from_the_same_start(schedule):
    X = load_digits().data[:300]
    for seed in range(3):
        start = X[np.random.default_rng(seed).choice(len(X), 10, replace=False)]
        plain = ws.KMeans(10, init=start).fit(X).inertia_
        for max_moves in (0, 20):
            options = {"max_moves": max_moves, "init": start, "random_state": 0}
            model = ws.CFMeans(10, schedule=schedule, **options)
            assert model.fit(X).inertia_ <= plain * (1 + 1e-12)


def test_the_safeguard_says_when_it_was_needed():
    X = load_digits().data[:500]
    outcomes = []
    for seed in range(12):
        options = {"schedule": "repel", "max_moves": 0, "init": X[seed * 10 : seed * 10 + 10]}
        guarded = ws.CFMeans(10, **options).fit(X)
        alone = ws.CFMeans(10, safeguard=False, **options).fit(X)
        plain = ws.KMeans(10, init=options["init"]).fit(X)
        assert guarded.inertia_ == min(alone.inertia_, plain.inertia_)
        assert guarded.safeguarded_ == (plain.inertia_ < alone.inertia_)
        outcomes.append(guarded.safeguarded_)
    assert set(outcomes) == {True, False}


def test_on_real_digits_it_beats_k_means_and_k_means_plus_plus_on_average():
    X = load_digits().data
    found = {"k-means": [], "k-means++": [], "cf-means": []}
    for seed in range(5):
        start = X[np.random.default_rng(seed).choice(len(X), 10, replace=False)]
        found["k-means"].append(ws.KMeans(10, init=start).fit(X).inertia_)
        found["k-means++"].append(ws.KMeans(10, random_state=seed).fit(X).inertia_)
        found["cf-means"].append(ws.CFMeans(10, init=start, random_state=seed).fit(X).inertia_)
    mean = {name: np.mean(values) for name, values in found.items()}
    assert mean["cf-means"] < mean["k-means++"]
    assert mean["cf-means"] < mean["k-means"]
    assert np.std(found["cf-means"]) < np.std(found["k-means"])


def test_weight_zero_is_k_means_step_for_step(X, weights):
    for unit in (None, weights):
        plain = ws.KMeans(9, random_state=2).fit(X, sample_weight=unit)
        model = ws.CFMeans(9, weight=0.0, random_state=2).fit(X, sample_weight=unit)
        np.testing.assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert (model.inertia_, model.n_iter_) == (plain.inertia_, plain.n_iter_)


def test_one_cluster_falls_back_to_k_means_and_says_so(X):
    with pytest.warns(UserWarning, match="n_clusters=1 .* falls back to k-means"):
        model = ws.CFMeans(1).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0))
    assert np.isnan(model.cfq_)
    assert np.isnan(model.margins_).all()


def test_history_margins_and_cfq_describe_the_fit(X):
    model = ws.CFMeans(9, schedule="attract", weight=0.5, n_steps=6, random_state=0).fit(X)
    steps = model.steps_
    np.testing.assert_allclose(steps["weight"], weights_of("attract", 0.5, 6))
    assert steps["objective"].shape == steps["inertia"].shape == (6,)
    assert (steps["objective"] > steps["inertia"]).all()
    centers = model.cluster_centers_
    assert model.cfq_ == pytest.approx(ws.cfq_score(X, model.labels_, centers=centers))
    np.testing.assert_allclose(
        model.margins_, ws.margins(X, model.labels_, centers=centers), rtol=1e-9
    )
    assert (model.margins_ > 0.0).all()


def test_a_weight_counts_like_that_many_copies_in_every_step(X):
    counts = np.random.default_rng(4).integers(1, 4, len(X))
    weighted, copied = prepare(X, counts.astype(float)), prepare(np.repeat(X, counts, axis=0))
    centers = weighted.X[:8]
    for lam in (-0.7, 0.7):
        ours, force = step(weighted, centers, lam)
        theirs, forces = step(copied, centers, lam)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
        assert force.objective == pytest.approx(forces.objective, rel=1e-9)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_every_array_library_takes_the_same_step(X, weights, library):
    plain = prepare(X, weights)
    centers = plain.X[:9]
    expected, _ = step(plain, centers, 0.6)
    points = prepare(converter(library)(X), weights)
    np.testing.assert_allclose(step(points, centers, 0.6)[0], expected, rtol=1e-9)


def test_sparse_rows_take_the_same_step(X, weights):
    plain, sparse = prepare(X, weights), prepare(sp.csr_array(X), weights)
    centers = plain.X[:9]
    expected, _ = step(plain, centers, 0.6)
    moved, _ = step(sparse, centers + plain.frame.offset, 0.6)
    np.testing.assert_allclose(moved - plain.frame.offset, expected, rtol=1e-7)


def test_the_first_of_the_two_nearest_centres_is_the_one_that_points_are_assigned_to(X):
    points = prepare(X)
    plain = points.assign(points.X[:9])
    assert isinstance(plain, Nearest)
    np.testing.assert_array_equal(points.nearest_two(points.X[:9]).first, plain.first)


def test_several_starts_keep_the_lowest(X):
    draws = np.random.RandomState(0)
    options = {"schedule": "oscillate", "max_moves": 0, "init": "random"}
    singles = [ws.CFMeans(9, random_state=draws, **options).fit(X).inertia_ for _ in range(4)]
    many = ws.CFMeans(9, n_init=4, random_state=np.random.RandomState(0), **options).fit(X)
    assert many.inertia_ == min(singles)
    assert min(singles) < max(singles)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"schedule": "swing"},
            "schedule must be one of 'search', 'oscillate', 'attract', 'repel'",
        ),
        ({"weight": -1.0}, "weight must be at least 0"),
        ({"n_steps": -1}, "n_steps must be at least 0, got -1"),
        ({"max_moves": -1}, "max_moves must be at least 0, got -1"),
        ({"max_seconds": -1.0}, "max_seconds must be at least 0.0, got -1.0"),
        ({"metric": "cosine", "schedule": "repel"}, "metric must be 'euclidean' for gradient"),
        ({"safeguard": "yes"}, "safeguard must be one of True, False, got 'yes'"),
    ],
)
def test_bad_settings_are_named(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.CFMeans(3, **options).fit(X)
