"""Scoring many partitions: undefined values have reasons, noise has a policy, names are kept."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics

import wellsep as ws

X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [2, 3], [2, 4]])
Y = np.array([0, 0, 1, 1, 2, 2])
FIRST = ["silhouette", "silhouette_cosine", "simplified_silhouette", "calinski_harabasz",
         "davies_bouldin", "cfq"]  # fmt: skip


def test_an_undefined_value_is_nan_with_a_reason_and_the_others_are_untouched():
    scores = ws.score_partitions(
        X, {"good": Y, "one": [0] * 6, "all": range(6)}, ["silhouette", "cfq"]
    )
    assert np.isnan(scores.values[1:]).all()
    assert scores.values[0, 0] == pytest.approx(ws.silhouette_score(X, Y))
    assert scores.why("one", "cfq") == "cfq needs at least 2 clusters, got 1"
    assert "cluster of its own" in scores.why("all", "silhouette")
    assert scores.why("good", "cfq") is None


def test_partitions_that_are_all_undefined_still_give_a_table():
    scores = ws.score_partitions(X, [[0] * 6, [1] * 6], FIRST)
    assert np.isnan(scores.values).all()
    with pytest.raises(ws.UndefinedIndex, match="for every clustering"):
        scores.best("cfq")


def test_the_best_partition_follows_the_direction_of_the_index():
    bad = [0, 1, 0, 1, 0, 1]
    scores = ws.score_partitions(X, {"bad": bad, "good": Y}, ["davies_bouldin", "silhouette"])
    assert scores.directions.tolist() == [-1, 1]
    assert scores.best() == scores.best("silhouette") == "good"


def test_parameters_that_differ_from_the_default_are_spelled_out():
    scores = ws.score_partitions(
        X, Y, ["davies_bouldin", ("davies_bouldin", {"q": 2}), ("davies_bouldin", {"q": 1})]
    )
    assert scores.indices == ("davies_bouldin", "davies_bouldin(q=2)")
    assert scores.values[0, 1] == pytest.approx(ws.davies_bouldin_score(X, Y, q=2))


def test_a_single_pair_of_name_and_parameters_is_one_index():
    scores = ws.score_partitions(X, Y, ("davies_bouldin", {"q": 2}))
    assert scores.indices == ("davies_bouldin(q=2)",)


NOISY = np.array([0, 0, 1, 1, -1, -1])


def test_noise_can_be_left_out():
    scores = ws.score_partitions(X, NOISY, FIRST)
    expected = ws.score_partitions(X[:4], NOISY[:4], FIRST)
    assert scores.values == pytest.approx(expected.values)
    assert scores.coverage.tolist() == [pytest.approx(4 / 6)]


def test_noise_can_be_one_more_cluster():
    scores = ws.score_partitions(X, NOISY, FIRST, noise="cluster")
    assert scores.values == pytest.approx(ws.score_partitions(X, Y, FIRST).values)
    assert scores.coverage.tolist() == [1.0]


def test_noise_can_be_clusters_of_one():
    scores = ws.score_partitions(X, NOISY, FIRST, noise="singletons")
    alone = [0, 0, 1, 1, 2, 3]
    assert scores.values == pytest.approx(ws.score_partitions(X, alone, FIRST).values)
    assert scores.n_clusters.tolist() == [4]


def test_noise_can_be_an_error():
    with pytest.raises(ValueError, match=r"\(-1, -2 or -3\), got 2 such objects; choose noise="):
        ws.score_partitions(X, NOISY, FIRST, noise="error")


def test_samples_of_excluded_objects_are_nan():
    widths = ws.silhouette_samples(X, NOISY)
    assert np.isnan(widths[4:]).all()
    assert widths[:4] == pytest.approx(ws.silhouette_samples(X[:4], NOISY[:4]))
    assert np.isnan(ws.margins(X, NOISY)[4:]).all()


def test_names_come_from_the_frames_columns():
    import pandas as pd

    scores = ws.score_partitions(X, pd.DataFrame({"leiden": Y, "kmeans": Y[::-1]}), ["cfq"])
    frame = scores.to_frame()
    assert list(frame.index) == ["leiden", "kmeans"]
    assert list(frame.columns) == ["cfq", "n_clusters", "coverage"]
    assert frame.loc["leiden", "cfq"] == scores.values[0, 0]


def test_an_index_of_ones_own_is_scored_among_the_others():
    ws.register_index(
        "largest_share", lambda X, y: np.bincount(y).max() / len(y), direction=-1, overwrite=True
    )
    scores = ws.score_partitions(X, {"a": Y, "b": NOISY}, ["largest_share", "cfq"])
    assert scores.column("largest_share").tolist() == [pytest.approx(1 / 3), 0.5]
    assert scores.directions.tolist() == [-1, 1]


def test_a_registered_name_is_not_overwritten_by_accident():
    with pytest.raises(ValueError, match="exists already"):
        ws.register_index("cfq", lambda X, y: 0.0, direction=1)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "correlation"])
def test_any_metric_of_scikit_learn_gives_its_silhouette(metric):
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(700, 5)), rng.integers(0, 4, 700)
    ours = ws.silhouette_score(data, labels, metric=metric)
    assert ours == pytest.approx(silhouette_score(data, labels, metric=metric), rel=1e-10)


def test_a_precomputed_matrix_gives_the_silhouette_of_its_data():
    from sklearn.metrics import pairwise_distances

    rng = np.random.default_rng(1)
    data, labels = rng.normal(size=(620, 4)), rng.integers(0, 3, 620)
    ours = ws.silhouette_score(pairwise_distances(data), labels, metric="precomputed")
    assert ours == pytest.approx(ws.silhouette_score(data, labels), rel=1e-10)


def test_an_asymmetric_metric_is_taken_as_it_is():
    def uphill(a, b):
        return max(0.0, (b - a).sum()) * 2 + abs(a - b).sum()

    rng = np.random.default_rng(2)
    data, labels = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    table = np.array([[uphill(a, b) for b in data] for a in data])
    direct = sklearn.metrics.silhouette_score(table, labels, metric="precomputed")
    assert ws.silhouette_score(data, labels, metric=uphill) == pytest.approx(direct)


def test_weighted_silhouette_equals_hand_arithmetic():
    data, labels, w = [[0.0], [1], [3], [7]], [0, 0, 0, 1], [1, 2, 3, 4]
    a = [(2 * 1 + 3 * 3) / 5, (1 * 1 + 3 * 2) / 4, (1 * 3 + 2 * 2) / 3]
    b = [7, 6, 4]
    widths = [(y - x) / max(x, y) for x, y in zip(a, b, strict=True)] + [0]
    expected = np.average(widths, weights=w)
    assert ws.silhouette_score(data, labels, sample_weight=w) == pytest.approx(expected)
    assert ws.silhouette_samples(data, labels, sample_weight=w) == pytest.approx(widths)


def test_scaling_all_weights_leaves_the_silhouette_alone():
    rng = np.random.default_rng(3)
    data, labels = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    w = rng.uniform(0.1, 3, 60)
    for metric in ("euclidean", "cosine"):
        one = ws.silhouette_score(data, labels, sample_weight=w, metric=metric)
        assert one == pytest.approx(
            ws.silhouette_score(data, labels, sample_weight=100 * w, metric=metric)
        )


def test_weighted_cosine_widths_agree_with_the_pairwise_route():
    rng = np.random.default_rng(4)
    data, labels = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    data[5] = 0
    w = rng.uniform(0.1, 3, 80)
    from sklearn.metrics.pairwise import cosine_distances

    direct = ws.silhouette_samples(
        cosine_distances(data), labels, metric="precomputed", sample_weight=w
    )
    assert ws.silhouette_samples(data, labels, metric="cosine", sample_weight=w) == pytest.approx(
        direct, abs=1e-12
    )


def test_cfq_with_given_centres_equals_hand_arithmetic():
    data, labels = [[0.0], [2], [6], [9]], ["l", "l", "r", "r"]
    centers = [[1.0], [8.0]]  # plane at 4.5
    separation = 4.5**2 + 2.5**2 + 1.5**2 + 4.5**2
    spread = 1 + 1 + 4 + 1
    assert ws.cfq_score(data, labels, centers=centers) == pytest.approx(separation / spread)
    assert ws.margins(data, labels, centers=centers) == pytest.approx([4.5, 2.5, 1.5, 4.5])
    per_cluster = ws.cfq_clusters(data, labels, centers=centers)
    assert per_cluster == pytest.approx([(4.5**2 + 2.5**2) / 2, (1.5**2 + 4.5**2) / 5])


def test_a_point_on_the_wrong_side_counts_zero_or_its_square():
    data, labels = [[0.0], [1], [8], [9], [2]], [0, 0, 1, 1, 1]
    centers = [[0.5], [8.5]]  # plane at 4.5; the last point is 2.5 beyond it
    spread = 0.25 * 4 + 6.5**2
    right = 4.5**2 + 3.5**2 + 3.5**2 + 4.5**2
    assert ws.cfq_score(data, labels, centers=centers) == pytest.approx(right / spread)
    squared = ws.cfq_score(data, labels, centers=centers, wrong_side="squared")
    assert squared == pytest.approx((right + 2.5**2) / spread)
    assert ws.margins(data, labels, centers=centers)[4] == pytest.approx(-2.5)


def test_a_pair_of_coinciding_centres_is_left_out_of_cfq():
    data = [[-1.0], [1], [-2], [2], [9], [11]]
    labels = [0, 0, 1, 1, 2, 2]
    third = (9 - 5) ** 2 + (11 - 5) ** 2
    own = (5 + 1) ** 2 + (5 - 1) ** 2 + (5 + 2) ** 2 + (5 - 2) ** 2
    assert ws.cfq_score(data, labels) == pytest.approx((own + third) / (2 + 8 + 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_cosine_silhouette_of_one_direction_is_zero(dtype):
    rng = np.random.default_rng(5)
    data = np.tile(np.array([0.3, 0.7, 0.1, 0.9], dtype=dtype), (350, 1))
    assert ws.silhouette_score(data, rng.integers(0, 3, 350), metric="cosine") == 0


def test_narrow_cones_are_told_apart_in_float32():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 600)
    axes = rng.normal(size=(3, 8))
    data = (axes[labels] + 1e-3 * rng.normal(size=(600, 8))).astype(np.float32)
    exact = ws.silhouette_score(data.astype(np.float64), labels, metric="cosine")
    assert ws.silhouette_score(data, labels, metric="cosine") == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_cosine_does_not_care_for_the_length_of_rows_however_extreme(factor):
    rng = np.random.default_rng(7)
    data, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    assert ws.silhouette_score(factor * data, labels, metric="cosine") == pytest.approx(
        ws.silhouette_score(data, labels, metric="cosine"), rel=1e-9
    )


def test_why_refuses_what_was_not_scored():
    scores = ws.score_partitions([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, 1], ["silhouette"])
    assert scores.why(0, "silhouette") is None
    with pytest.raises(ValueError, match="index must be one of 'silhouette', got 'nonsense'"):
        scores.why(0, "nonsense")
    with pytest.raises(ValueError, match="name must be one of 'labels', got 'x'"):
        scores.why("x", "silhouette")
    with pytest.raises(ValueError, match="name must be at most 0, got 7"):
        scores.why(7, "silhouette")
