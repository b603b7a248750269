"""Noise that is priced lowers a score, in every index that has a price, wherever it is computed."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest
from halved import score_halves
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs
from sklearn.pipeline import Pipeline

import wellsep as ws
from wellsep.compute.statistics import half_samples as half_sums
from wellsep.evaluate import input_scores, rank_confidence
from wellsep.evaluate.certainty.half_samples import draw_halves
from wellsep.indices.noise_prices import PRICES
from wellsep.partitions import Partitions
from wellsep.runs import Runs

PRICED = [name for name in ws.INDICES if ws.INDICES[name].price]
UNPRICED = [name for name in ws.INDICES if not ws.INDICES[name].price]
WEIGHTED = [name for name in PRICED if ws.INDICES[name].weighted]

# Four objects in two clusters, one far away: coverage .8, W = 1, N = 44.5² = 1980.25.
LINE, LABELS = [[0.0], [1.0], [10.0], [11.0], [50.0]], [0, 0, 1, 1, -1]
EXCLUDED = {
    "silhouette": (9.5 / 10.5 + 8.5 / 9.5) / 2,
    "simplified_silhouette": (10 / 10.5 + 9 / 9.5) / 2,
    "calinski_harabasz": 200.0,
    "davies_bouldin": 0.1,
    "cfq": 101.0,
    "dbcv": 0.7111111111111111,
    # min_points = 5 reaches the farthest of all: core distances 50, 49, 40, 39, 50. Then dc(0, ·) =
    # dc(50, ·) = 50, dc(1, ·) = 49, dc(10, 11) = 40, and the noise object counts (50 − 50)/50.
    "disco": (0 - 1 / 50 + 2 * (49.5 - 40) / 49.5 + 0) / 5,
}
BY_HAND = {
    "silhouette": 0.8 * EXCLUDED["silhouette"],
    "simplified_silhouette": 0.8 * EXCLUDED["simplified_silhouette"],
    "calinski_harabasz": 200 * 0.8 / 1981.25,
    "davies_bouldin": 1.1 / 0.8 - 1,
    "cfq": 101 * 0.8 / 1981.25,
    "dbcv": EXCLUDED["dbcv"],  # n in its weights counts noise already
    "disco": EXCLUDED["disco"],  # noise objects have values of their own
}


def blobs(seed=0, n=90, noise=0.3):
    """Overlapping blobs away from the origin; some objects at random are noise."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, n - 3)])
    X = rng.normal(size=(n, 3)) + 4 * rng.normal(size=(3, 3))[y] + 7
    return X, np.where((rng.random(n) < noise) & (np.arange(n) > 8), -1, y)


def value(name, X, labels, noise="penalize", **options):
    return float(ws.score_partitions(X, labels, [name], noise=noise, **options).values[0, 0])


def worse_or_equal(name, first, second):
    """Whether the first value is no better than the second, but for rounding."""
    sign = ws.INDICES[name].direction
    return sign * first <= sign * second + 1e-9 * (1 + abs(second))


# ------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize("name", list(BY_HAND))
def test_the_price_is_that_of_the_arithmetic_by_hand(name):
    assert value(name, LINE, LABELS, noise="exclude") == pytest.approx(EXCLUDED[name], rel=1e-12)
    assert value(name, LINE, LABELS) == pytest.approx(BY_HAND[name], rel=1e-12)
    alone = getattr(ws, f"{name}_score")
    assert alone(LINE, LABELS, noise="penalize") == pytest.approx(BY_HAND[name], rel=1e-12)
    assert alone(LINE, LABELS) == pytest.approx(EXCLUDED[name], rel=1e-12)


def test_a_negative_silhouette_gains_nothing_from_noise():
    mixed = [0, 1, 0, 1, -1]
    plain = value("silhouette", LINE, mixed, noise="exclude")
    assert plain < 0
    assert value("silhouette", LINE, mixed) == plain


def test_a_perfect_davies_bouldin_value_is_paid_for_too():
    # All objects lie on their centres: DB = 0, and DB / c would stay 0. Half of them are noise.
    X, labels = [[0.0], [0.0], [9.0], [9.0], [4.0], [5.0], [6.0], [7.0]], [0, 0, 1, 1] + [-1] * 4
    assert value("davies_bouldin", X, labels, noise="exclude") == 0
    assert value("davies_bouldin", X, labels) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_price_is_that_of_plain_numpy(weighted):
    X, y = blobs(3)
    w = np.random.default_rng(1).uniform(0.5, 3, len(y)) if weighted else np.ones(len(y))
    kept = y >= 0
    mean = np.average(X[kept], axis=0, weights=w[kept])
    centres = np.array([np.average(X[y == k], axis=0, weights=w[y == k]) for k in range(3)])
    W = (w[kept] * ((X[kept] - centres[y[kept]]) ** 2).sum(axis=1)).sum()
    N = (w[~kept] * ((X[~kept] - mean) ** 2).sum(axis=1)).sum()
    share = w[kept].sum() / w.sum() * W / (W + N)
    given = {"sample_weight": w} if weighted else {}
    for name in ("calinski_harabasz", "cfq"):
        plain = value(name, X, y, noise="exclude", **given)
        assert value(name, X, y, **given) == pytest.approx(plain * share, rel=1e-12)


# ------------------------------------------------------------------------------ laws


@pytest.mark.parametrize("name", list(ws.INDICES))
def test_without_noise_a_price_changes_no_bit(name):
    X, y = blobs(1, noise=0.0)
    assert value(name, X, y) == value(name, X, y, noise="exclude")


@pytest.mark.parametrize("name", PRICED)
@given(seed=st.integers(0, 10_000), noise=st.floats(0.05, 0.9))
def test_a_priced_value_is_never_better_than_the_excluded_one(name, seed, noise):
    X, y = blobs(seed, n=50, noise=noise)
    assert worse_or_equal(name, value(name, X, y), value(name, X, y, noise="exclude"))


@pytest.mark.parametrize("name", [n for n in PRICED if ws.INDICES[n].price != "included"])
@given(seed=st.integers(0, 10_000))
def test_more_noise_around_the_same_clusters_never_helps(name, seed):
    X, y = blobs(seed, n=40, noise=0.0)
    more = np.random.default_rng(seed).normal(7, 4, (20, 3))
    found = [
        value(name, np.vstack([X, more[:m]]), np.concatenate([y, np.full(m, -1)]))
        for m in (0, 1, 5, 20)
    ]
    for fewer, many in pairwise(found):
        assert worse_or_equal(name, many, fewer)


@pytest.mark.parametrize("name", [n for n in PRICED if ws.INDICES[n].price != "included"])
def test_a_few_dense_objects_do_not_win(name):
    """The objects next to the means, or all of them: the price must turn the order."""
    X, y = make_blobs(600, 2, centers=6, cluster_std=1.2, random_state=4)
    far = ((X - np.array([X[y == k].mean(axis=0) for k in range(6)])[y]) ** 2).sum(axis=1)
    few = np.where(far < np.quantile(far, 0.1), y, -1)
    partitions = {"few": few, "all": y}
    best = [
        ws.score_partitions(X, partitions, [name], noise=noise).best()
        for noise in ("exclude", "penalize")
    ]
    assert best == ["few", "all"]


@pytest.mark.parametrize("name", WEIGHTED)
def test_integer_weights_count_as_repetitions_in_the_price(name):
    X, y = blobs(5)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    if name.startswith("silhouette"):  # a copy is a neighbour at distance 0: weigh noise alone
        weight[y >= 0] = 1
    repeated = value(name, np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert value(name, X, y, sample_weight=weight) == pytest.approx(repeated, rel=1e-9)


@pytest.mark.parametrize("name", WEIGHTED)
def test_noise_without_weight_costs_nothing(name):
    X, y = blobs(6)
    weight = np.where(y < 0, 0.0, 1.0)
    assert value(name, X, y, sample_weight=weight) == value(
        name, X, y, noise="exclude", sample_weight=weight
    )


@pytest.mark.parametrize("name", [n for n in ws.INDICES if ws.INDICES[n].minimum_clusters > 0])
def test_all_noise_is_undefined_with_its_reason(name):
    scores = ws.score_partitions(
        LINE, [-1] * 5, [name], noise="penalize" if name in PRICED else "exclude"
    )
    assert np.isnan(scores.values[0, 0])
    assert scores.why("labels", scores.indices[0]) == "no object is counted"


def test_all_noise_is_the_worst_value_of_an_index_that_judges_noise():
    judges = [name for name in ws.INDICES if ws.INDICES[name].minimum_clusters == 0]
    assert {name: value(name, LINE, [-1] * 5) for name in judges} == {"disco": -1}


def test_all_noise_alone_raises():
    with pytest.raises(ws.UndefinedIndex, match="no object is counted"):
        ws.silhouette_score(LINE, [-1] * 5, noise="penalize")


# ------------------------------------------------------------------------------ refused


@pytest.mark.parametrize("name", UNPRICED)
def test_an_index_without_a_price_is_refused_where_there_is_noise(name):
    X, y = blobs(2)
    with pytest.raises(ValueError, match="no rule for the noise .* in 'noisy'.*exclude.*cfq"):
        ws.score_partitions(X, {"full": np.abs(y), "noisy": y}, [name], noise="penalize")
    whole = ws.score_partitions(X, np.abs(y), [name], noise="penalize")
    assert whole.values.shape == (1, 1)


def test_an_index_without_a_price_is_refused_alone_and_by_judge_before_any_work(tmp_path):
    X, y = blobs(2)
    with pytest.raises(ValueError, match="noise must not be 'penalize' for 'dunn'"):
        ws.dunn_score(X, y, noise="penalize")
    runs = Runs.from_parts({"s": X}, {"noisy": y, "full": np.abs(y)})
    with pytest.raises(ValueError, match="noise must not be 'penalize' for 'dunn'"):
        ws.judge(runs, ["silhouette", "dunn"], cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    kept = ws.judge(runs, ["silhouette", "dunn"], noise="exclude", n_draws=0, dip=False)
    assert kept.scores.indices == ("silhouette", "dunn")


@pytest.mark.parametrize(
    "function",
    [
        ws.silhouette_samples,
        ws.margins,
        ws.dbcv_clusters,
        ws.local_connectivity,
        ws.silhouette_estimate,
    ],
)
def test_values_of_objects_have_no_price(function):
    X, y = blobs(2)
    with pytest.raises(ValueError, match="noise must be one of 'exclude'"):
        function(X, y, noise="penalize")


def test_a_price_must_suit_the_index():
    X, y = blobs(2)

    def share(X, labels):
        return float(len(X) > 0)

    given = {"direction": 1, "range": (0.0, 1.0)}
    ws.register_index("one for each", share, price="zero", **given)
    try:
        assert value("one for each", X, y) == pytest.approx((y >= 0).mean())
        for wrong in (
            {"price": "coverage", "direction": 1},
            {"price": "zero", "direction": 1},  # unbounded: a few dense objects would win
            {"price": "zero", "direction": -1, "range": (0.0, 1.0)},
            {"price": "variance", "direction": 1},
            {"price": "inverse", "direction": 1, "range": (0.0, np.inf)},
        ):
            with pytest.raises(ValueError, match="price must"):
                ws.register_index("wrong", share, **wrong)
        assert "wrong" not in ws.INDICES
    finally:
        ws.INDICES._entries.pop("one for each")


def test_every_price_is_used_and_every_index_with_one_is_listed_here():
    assert {ws.INDICES[name].price for name in PRICED} == set(PRICES)
    assert set(PRICED) == {*BY_HAND, "silhouette_cosine", "cfq_mixture"}


# ------------------------------------------------------------------------------ wherever


def test_precomputed_distances_have_the_price_of_the_data():
    X, y = blobs(4)
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    for spec in ({"metric": "precomputed"}, {"metric": "precomputed", "average": "cluster"}):
        plain = {**spec, "metric": "euclidean"}
        found = ws.score_partitions(D, y, [("silhouette", spec)], noise="penalize").values
        expected = ws.score_partitions(X, y, [("silhouette", plain)], noise="penalize").values
        assert found == pytest.approx(expected, rel=1e-9)


def test_given_centres_are_priced_by_the_scatter_about_them():
    X, y = blobs(4)
    kept = y >= 0
    centers = np.array([X[y == k].mean(axis=0) for k in range(3)]) + 0.3
    W = ((X[kept] - centers[y[kept]]) ** 2).sum()
    N = ((X[~kept] - X[kept].mean(axis=0)) ** 2).sum()
    plain = ws.cfq_score(X, y, centers=centers)
    priced = ws.cfq_score(X, y, centers=centers, noise="penalize")
    assert priced == pytest.approx(plain * kept.mean() * W / (W + N), rel=1e-12)


@pytest.mark.parametrize("name", ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"])
def test_half_samples_pay_as_if_they_were_all_there_is(name):
    X, y = blobs(7, n=120)
    labels = {"noisy": y, "full": np.abs(y), "all noise": np.full(120, -1)}
    parts = Partitions.from_labels(labels, noise="penalize")
    halves = draw_halves(120, 6, 6, np.random.default_rng(0))
    found = score_halves(X, parts, name, ws.INDICES[name].with_params({}), halves)
    for row, objects in zip(found, map(halves.objects, range(6)), strict=True):
        part = {k: v[objects] for k, v in labels.items()}
        expected = ws.score_partitions(X[objects], part, [name], noise="penalize").values[:, 0]
        np.testing.assert_allclose(row, expected, rtol=1e-9)


def test_half_samples_that_are_estimated_pay_the_share_of_their_own_noise(monkeypatch):
    monkeypatch.setattr(half_sums, "SEEN", 60)
    X, y = blobs(8, n=200)
    halves = draw_halves(200, 6, 6, np.random.default_rng(0))
    params = ws.INDICES["silhouette"].with_params({})
    plain, priced = (
        score_halves(X, Partitions.from_labels(y, noise=noise), "silhouette", params, halves)[:, 0]
        for noise in ("exclude", "penalize")
    )
    share = np.array([(y[halves.objects(b)] >= 0).mean() for b in range(6)])
    assert len(halves.seen) < 200 and (plain > 0).all()
    np.testing.assert_allclose(priced, plain * share, rtol=1e-12)


# ------------------------------------------------------------------------------ defaults


def test_searches_and_rankings_price_noise_and_single_scores_exclude_it():
    def default(function):
        return inspect.signature(function).parameters["noise"].default

    for function in (ws.ClusterSearch, ws.choose_k, ws.judge, ws.score_runs, input_scores):
        assert default(function) == "penalize"
    for function in (ws.score_partitions, ws.silhouette_score, ws.cfq_score, ws.dunn_score):
        assert default(function) == "exclude"


@pytest.mark.parametrize("index", ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"])
def test_the_search_no_longer_prefers_a_dbscan_that_calls_98_percent_noise(index):
    X, y = make_blobs(600, 2, centers=4, cluster_std=1.5, random_state=3)
    dense = DBSCAN(eps=0.21, min_samples=5)
    assert 0.975 < (dense.fit_predict(X) < 0).mean() < 0.99
    grid = {"clusterer": [dense, ws.KMeans(4, n_init=3, random_state=0)]}
    search = ws.ClusterSearch(Pipeline([("clusterer", dense)]), grid, scoring=index).fit(X)
    assert isinstance(search.best_params_["clusterer"], ws.KMeans)
    assert ws.ari_score(y, search.labels_) > 0.9
    assert search.results_["coverage"].min() < 0.03
    with pytest.warns(UserWarning, match=r"is judged on 2% of the objects"):
        before = ws.ClusterSearch(
            Pipeline([("clusterer", dense)]), grid, scoring=index, noise="exclude"
        ).fit(X)
    assert before.best_params_["clusterer"] is dense


class Trimmed(ClusterMixin, BaseEstimator):
    """k-means that calls the objects far from their centres noise, the more the larger K."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        model = ws.KMeans(self.n_clusters, random_state=0).fit(X)
        far = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
        keep = far <= np.quantile(far, 1.0 if self.n_clusters < 6 else 0.1)
        self.labels_ = np.where(keep, model.labels_, -1)
        return self


def test_choose_k_does_not_follow_the_k_that_calls_most_objects_noise():
    X, _ = make_blobs(300, 2, centers=4, cluster_std=1.2, random_state=1)
    options = {"estimator": Trimmed(), "gate": False, "random_state": 0}
    options["indices"] = ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"]
    chosen = ws.choose_k(X, range(2, 8), **options)
    assert chosen.best <= 5
    assert chosen.coverage[0].tolist() == pytest.approx([1, 1, 1, 1, 0.1, 0.1])
    excluded = ws.choose_k(X, range(2, 8), noise="exclude", **options)
    assert excluded.best >= 6
    assert f"K = {excluded.best} is judged on 10% of the objects" in excluded.explain()
    assert "coverage" in chosen.columns()


def runs_with_noise():
    """The objects of a run lie around three points; one run keeps those near them only."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    flat = rng.normal(size=(120, 2)) + 3.5 * np.eye(3, 2)[truth]
    other = flat + 0.1 * rng.normal(size=flat.shape)
    means = np.array([flat[truth == k].mean(axis=0) for k in range(3)])
    far = ((flat - means[truth]) ** 2).sum(axis=1)
    core = np.where(far < np.quantile(far, 0.2), truth, -1)
    wrong = np.where(np.arange(120) < 40, (truth + 1) % 3, truth)
    return Runs.from_parts({"s": flat, "t": other}, {"all": truth, "core": core, "wrong": wrong})


@pytest.mark.parametrize("index", ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"])
def test_a_run_that_calls_most_objects_noise_no_longer_wins(index):
    runs = runs_with_noise()
    options = {"dip": False, "n_draws": 10, "judge": "ace"}
    priced = ws.judge(runs, index, **options)
    assert priced.ranking.best == "all"
    assert priced.confidence.first_in[0] > 0.9
    excluded = ws.judge(runs, index, noise="exclude", **options)
    assert excluded.ranking.best == "core"
    assert excluded.confidence.first_in[1] > 0.7
    by_itself = rank_confidence(runs, priced.scores, priced.answer, n_draws=10, random_state=0)
    np.testing.assert_array_equal(by_itself.ranks, priced.confidence.ranks)


def test_the_cache_keeps_priced_and_excluded_scores_apart(tmp_path):
    runs = runs_with_noise()
    found = [
        ws.score_runs(runs, noise=noise, dip=False, cache=tmp_path).values["silhouette"]
        for noise in ("exclude", "penalize", "exclude")
    ]
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[1][:, 1], found[0][:, 1] * 0.2, rtol=1e-12)


def test_coverage_stands_beside_the_scores_of_runs_with_noise():
    judgement = ws.judge(runs_with_noise(), judge="ace", dip=False, n_draws=0)
    columns = list(judgement.ranking.columns())
    assert columns[columns.index("score") + 1] == "coverage"
    assert list(judgement.answer.to_frame().columns[:2]) == ["ace", "coverage"]
    excluded = ws.judge(runs_with_noise(), dip=False, n_draws=0, noise="exclude")
    assert "calls the other 80% noise, which is not scored." in excluded.explain()


def test_a_best_run_with_noise_is_said_to_have_paid_for_it():
    runs = runs_with_noise()
    labels = np.where(np.arange(120) < 6, -1, runs.partitions["all"])
    few = Runs.from_parts(dict(runs.spaces), {"few": labels, "wrong": runs.partitions["wrong"]})
    told = ws.judge(few, dip=False, n_draws=0).explain()
    assert "calls the other 5% noise, which lowers its scores." in told


def test_a_run_of_noise_only_is_last_with_its_reason():
    runs = runs_with_noise()
    more = {**runs.partitions, "nothing": np.full(120, -1)}
    judgement = ws.judge(Runs.from_parts(dict(runs.spaces), more), dip=False, n_draws=6)
    assert judgement.ranking.columns()["partition"][-1] == "nothing"
    assert judgement.scores.why("s", "nothing") == "no object is counted"
