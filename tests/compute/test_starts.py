"""Starts: drawn with the right chances, the same in every array library, bad ones refused."""

from __future__ import annotations

import numpy as np
import pytest
from libraries import converter
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.compute.kmeans.lloyd import draw_far, plus_plus, start_centers
from wellsep.compute.kmeans.prepared_points import Points, prepare

random_rows = Points.random_rows


@pytest.fixture(scope="module")
def X():
    return make_blobs(300, 3, centers=8, cluster_std=0.1, random_state=0)[0]


def test_plus_plus_finds_every_well_separated_blob(X):
    rows = plus_plus(prepare(X), 8, np.random.RandomState(0))
    nearest = ((X[:, None] - X[rows][None]) ** 2).sum(axis=2).min(axis=1)
    assert nearest.max() < 1.0


def test_plus_plus_leaves_less_than_random_starts(X):
    points = prepare(X)
    left = {
        choose: np.mean(
            [
                (points.distances(points.X[choose(points, 8, np.random.RandomState(s))]) ** 2)
                .min(axis=1)
                .sum()
                for s in range(10)
            ]
        )
        for choose in (plus_plus, random_rows)
    }
    assert left[plus_plus] < 0.1 * left[random_rows]


@pytest.mark.parametrize("choose", [plus_plus, random_rows])
def test_rows_of_weight_zero_are_never_drawn(X, choose):
    weights = (np.arange(len(X)) % 3 == 0).astype(float)
    points = prepare(X, weights)
    drawn = np.concatenate([choose(points, 8, np.random.RandomState(s)) for s in range(20)])
    assert set(drawn % 3) == {0}


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("choose", [plus_plus, random_rows])
def test_the_same_draws_give_the_same_rows_in_every_library(X, choose, library):
    plain, other = (
        choose(prepare(converter(name)(X)), 8, np.random.RandomState(5)).tolist()
        for name in ("numpy", library)
    )
    assert other == plain


def test_far_points_are_drawn_in_proportion_to_weight_times_distance():
    points = prepare(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 1.0]))
    closest = np.array([0.0, 1.0, 2.0])
    rows = draw_far(points, closest, 20_000, np.random.RandomState(0))
    share = np.bincount(rows, minlength=3) / len(rows)
    np.testing.assert_allclose(share, [0.0, 0.5, 0.5], atol=0.015)


def test_random_rows_are_distinct(X):
    rows = random_rows(prepare(X), 300, np.random.RandomState(0))
    assert sorted(rows) == list(range(300))


def test_fewer_counted_rows_than_centres_are_filled_up(X):
    weights = np.zeros(len(X))
    weights[:3] = 1.0
    rows = random_rows(prepare(X, weights), 5, np.random.RandomState(0))
    assert sorted(rows) == [0, 1, 2, 3, 4]


def test_more_centres_than_distinct_points_still_start():
    points = prepare(np.array([[0.0], [0.0], [1.0], [1.0]]))
    rows = plus_plus(points, 4, np.random.RandomState(0))
    assert set(np.array([0, 0, 1, 1])[rows]) == {0, 1}


def test_a_function_may_choose_the_start(X):
    def first_rows(X, n_clusters, random_state):
        return X[:n_clusters]

    points = prepare(X)
    start = start_centers(points, 5, first_rows, np.random.RandomState(0))
    np.testing.assert_allclose(points.frame.leave(start), X[:5])
    by_function = ws.KMeans(5, init=first_rows, n_init=1).fit(X)
    by_array = ws.KMeans(5, init=X[:5]).fit(X)
    np.testing.assert_array_equal(by_function.labels_, by_array.labels_)


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        ("k-means", "init must be one of 'k-means\\+\\+', 'random', got 'k-means'"),
        ([[0.0, 1.0]], "init must have shape"),
        (np.full((4, 3), np.inf), "init must be finite"),
    ],
)
def test_a_bad_start_is_refused(X, init, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.KMeans(4, init=init).fit(X)
