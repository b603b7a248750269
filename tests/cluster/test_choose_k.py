"""choose_k fits every K, scores as score_partitions does, and reports votes that add up."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, AgglomerativeClustering, BisectingKMeans
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep.cluster.fitting import cut_tree
from wellsep.records import ChosenK

INDICES = ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"]
QUICK = {"indices": INDICES, "gate": False}  # where neither the gate nor the voters matter


@pytest.fixture(scope="module")
def X():
    return make_blobs(240, 3, centers=4, random_state=1)[0]


def fresh(k, values, directions=(1,), **more):
    """A record with the given scores (R, nK, I) and nothing else to say."""
    values = np.asarray(values, dtype=float)
    shape = values.shape[:2]
    facts = {
        "k": np.array(k),
        "indices": tuple(f"index{i}" for i in range(values.shape[2])),
        "directions": np.array(directions),
        "values": values,
        "n_clusters": np.broadcast_to(np.array(k), shape),
        "coverage": np.ones(shape),
        "seconds": np.zeros(shape),
        "stability": np.ones(len(k)),
        "labels": np.zeros((len(k), 3), dtype=int),
        "objects": np.arange(3),
        "estimator": "KMeans()",
        "parameter": "n_clusters",
        "at_one": np.full(values.shape[2], np.nan),
        "gap_k": np.empty(0, dtype=int),
        "gap": np.empty(0),
        "gap_error": np.empty(0),
        "not_tested": "gate=False",
        "first_end": k[-1],
        "n_sampled": 3,
    }
    return ChosenK(**{**facts, **more})


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        ws.KMeans(),
        SklearnKMeans(),
        AgglomerativeClustering(),
        BisectingKMeans(),
        GaussianMixture(),
        make_pipeline(StandardScaler(), SklearnKMeans()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_four_blobs_are_found_with_any_clusterer(X, estimator):
    chosen = ws.choose_k(X, range(2, 8), estimator=estimator, random_state=0, **QUICK)
    assert chosen.best == 4
    assert set(chosen.picks.values()) == {4}


def test_scores_are_those_of_score_partitions(X):
    chosen = ws.choose_k(X, [2, 4, 5], random_state=0, **QUICK)
    scores = ws.score_partitions(X, list(chosen.labels), INDICES)
    np.testing.assert_allclose(chosen.values[0], scores.values, rtol=1e-12)
    assert chosen.indices == scores.indices
    assert chosen.directions.tolist() == [1, 1, -1, 1]


def test_labels_are_those_of_the_estimator_fitted_alone(X):
    chosen = ws.choose_k(X, [3, 5], estimator=ws.KMeans(random_state=7), **QUICK)
    for k in (3, 5):
        np.testing.assert_array_equal(
            chosen.labels_for(k), ws.KMeans(k, random_state=7).fit_predict(X)
        )


@pytest.mark.parametrize("linkage", ["ward", "average", "single", "complete"])
def test_one_tree_cut_at_every_k_holds_the_partitions_of_separate_fits(X, linkage):
    model = AgglomerativeClustering(linkage=linkage)
    chosen = ws.choose_k(X, range(1, 9), estimator=model, **QUICK)
    for k in range(1, 9):
        alone = AgglomerativeClustering(k, linkage=linkage).fit_predict(X)
        assert adjusted_rand_score(alone, chosen.labels_for(k)) == 1.0


def test_a_tree_is_fitted_once(X, monkeypatch):
    fits = []
    original = AgglomerativeClustering.fit
    monkeypatch.setattr(
        AgglomerativeClustering, "fit", lambda self, *args: fits.append(1) or original(self, *args)
    )
    ws.choose_k(X, range(2, 9), estimator=AgglomerativeClustering(), **QUICK)
    assert len(fits) == 1


def test_cutting_a_small_tree_by_hand():
    # ((0 1) 2) ((3 4)): merges 0-1, 3-4, then 2 to the first, then both.
    children = np.array([[0, 1], [3, 4], [2, 5], [6, 7]])
    assert cut_tree(children, 5).tolist() == [0, 1, 2, 3, 4]
    two = cut_tree(children, 2)
    assert len(set(two[:3])) == 1
    assert len(set(two[3:])) == 1
    assert two[0] != two[3]
    assert cut_tree(children, 1).tolist() == [0] * 5


def test_each_index_votes_once_by_its_mean_over_the_repeats():
    values = [
        [[0.1, 5], [0.9, 3], [0, 9]],
        [[0.8, 4], [0.2, 3], [0, 9]],
        [[0.1, 9], [0.9, 2], [0, 9]],
    ]
    chosen = fresh([2, 3, 4], values, (1, -1))
    assert chosen.picks == {"index0": 3, "index1": 3}
    assert chosen.picks_by_repeat.tolist() == [[3, 3], [2, 3], [3, 3]]
    assert chosen.votes == {2: 0, 3: 2, 4: 0}
    assert chosen.best == 3


def test_mean_and_spread_pass_over_undefined_scores():
    chosen = fresh([2, 3], [[[1.0], [np.nan]], [[3.0], [np.nan]], [[np.nan], [np.nan]]])
    assert chosen.mean[0, 0] == 2.0
    assert chosen.spread[0, 0] == pytest.approx(np.sqrt(2))
    assert np.isnan(chosen.mean[1, 0])
    assert chosen.picks == {"index0": 2}


def test_where_no_index_is_defined_there_is_no_best():
    chosen = fresh([2], [[[np.nan]]], reasons={(2, "index0"): "all objects coincide"})
    assert chosen.picks == {"index0": None}
    with pytest.raises(ValueError, match="all objects coincide"):
        _ = chosen.best


def test_one_cluster_is_undefined_with_its_reason(X):
    chosen = ws.choose_k(X, [1, 2, 4, 5], random_state=0, **QUICK)
    assert np.isnan(chosen.values[:, 0]).all()
    assert "needs at least 2 clusters, got 1" in chosen.reasons[1, "silhouette"]
    assert chosen.best == 4


def test_repeats_with_other_seeds_give_spread_and_stability(X):
    chosen = ws.choose_k(X, [4, 9], estimator=ws.KMeans(init="random", n_init=1), n_repeats=6,
                         random_state=0, **QUICK)  # fmt: skip
    assert chosen.values.shape == (6, 2, 4)
    assert chosen.spread[1, 0] > 0
    assert 0 < chosen.stability[1] < 1


def test_repeats_on_subsamples_score_the_subsample(X):
    chosen = ws.choose_k(X, [3, 4], n_repeats=3, subsample=0.5, random_state=0, **QUICK)
    assert chosen.labels.shape == (2, 120)
    assert len(set(chosen.objects)) == 120
    scores = ws.score_partitions(X[chosen.objects], list(chosen.labels), INDICES)
    np.testing.assert_allclose(chosen.values[0], scores.values, rtol=1e-12)
    assert chosen.stability[1] > 0.9
    assert ws.choose_k(X, [3, 4], subsample=60, random_state=0, **QUICK).labels.shape == (2, 60)


def test_the_same_seed_gives_the_same_record_for_any_number_of_jobs(X):
    options = {"n_repeats": 2, "subsample": 0.7, "random_state": 3}
    options["indices"] = ["silhouette", "prediction_strength", "mixture_bic", "gap", "elbow"]
    one = ws.choose_k(X[:90], [3, 4], **options)
    two = ws.choose_k(X[:90], [3, 4], n_jobs=2, **options)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-9)
    np.testing.assert_allclose(one.gap_error, two.gap_error, rtol=1e-9)


def test_partitions_can_be_scored_in_another_space(X):
    wide = X * [1, 1000, 1]
    pipe = make_pipeline(StandardScaler(), ws.KMeans(random_state=0))
    chosen = ws.choose_k(wide, [3, 4], estimator=pipe, space=StandardScaler(), **QUICK)
    scores = ws.score_partitions(StandardScaler().fit_transform(wide), list(chosen.labels))
    np.testing.assert_allclose(chosen.values[0], scores.values, rtol=1e-9)
    given = ws.choose_k(wide, [3, 4], estimator=pipe, space=X, **QUICK)
    np.testing.assert_allclose(
        given.values[0], ws.score_partitions(X, list(given.labels)).values, rtol=1e-9
    )


def test_weights_reach_the_fit_and_the_scores(X):
    weights = np.random.default_rng(0).uniform(0.1, 3, len(X))
    model = ws.KMeans(random_state=0)
    chosen = ws.choose_k(X, [3], sample_weight=weights, estimator=model, **QUICK)
    labels = ws.KMeans(3, random_state=0).fit_predict(X, sample_weight=weights)
    np.testing.assert_array_equal(chosen.labels[0], labels)
    expected = ws.score_partitions(X, labels, sample_weight=weights).values
    np.testing.assert_allclose(chosen.values[0], expected, rtol=1e-12)
    with pytest.raises(TypeError, match="sample_weight must be None for an estimator"):
        ws.choose_k(X, [3], sample_weight=weights, estimator=AgglomerativeClustering())


def test_the_record_is_the_same_after_save_and_load(X, tmp_path):
    chosen = ws.choose_k(X[:90], [1, 3, 4], n_repeats=2, random_state=0)
    again = ChosenK.load(chosen.save(tmp_path / "record"))
    np.testing.assert_array_equal(again.values, chosen.values)
    np.testing.assert_array_equal(again.labels, chosen.labels)
    assert again.reasons == chosen.reasons
    assert again.explain() == chosen.explain()
    with pytest.raises(FileNotFoundError, match=r"must hold a saved record, got no file record"):
        ChosenK.load(tmp_path)
    (tmp_path / "chosen-k.json").write_text("{}")
    with pytest.raises(ValueError, match="saved by an older version of wellsep; make it again"):
        ChosenK.load(tmp_path)


def test_the_table_has_a_row_per_k(X):
    pytest.importorskip("pandas", reason="to_frame makes a pandas frame")
    chosen = ws.choose_k(X, [2, 3, 4], n_repeats=2, random_state=0, indices="cfq", gate=False)
    frame = chosen.to_frame()
    assert frame.index.tolist() == [2, 3, 4]
    assert frame.columns.tolist() == [
        "cfq", "cfq ±", "stability", "votes", "n_clusters", "coverage", "seconds",
    ]  # fmt: skip
    np.testing.assert_allclose(frame["cfq"], chosen.mean[:, 0])


def test_curves_hold_what_a_plot_needs(X):
    curve = ws.choose_k(X, [2, 3, 4], n_repeats=2, random_state=0, **QUICK).curves()[
        "davies_bouldin"
    ]
    assert curve["k"] == [2, 3, 4]
    assert curve["direction"] == -1
    assert all(low <= m <= high for low, m, high in
               zip(curve["low"], curve["mean"], curve["high"], strict=True))  # fmt: skip


def test_the_explanation_names_votes_and_cautions(X):
    text = ws.choose_k(X, [2, 3, 4, 5], random_state=0, **QUICK).explain()
    assert text.startswith("K = 4 is the median of 4 votes (2 to 5 tried, 1 repeat).")
    assert "silhouette votes for 4 at 0." in text
    shaky = fresh([2, 3, 4], [[[1], [2], [1]]], stability=np.array([1, 0.3, 1])).explain()
    assert "The repeats agree little at K = 3 (adjusted Rand index 0.30)" in shaky


def test_the_html_of_a_notebook_holds_the_table_and_the_sentences(X):
    html = ws.choose_k(X, [3, 4, 5], random_state=0, **QUICK)._repr_html_()
    assert html.count("<tr>") == 4
    assert "votes for 4" in html


@pytest.mark.parametrize(
    ("k_range", "options", "error", "sentence"),
    [
        ([], {}, ValueError, r"k_range must hold a number from 2 on, got \[\]"),
        (5, {}, TypeError, "k_range must be a sequence of integers, such as range.*, got 5"),
        ([0, 2], {}, ValueError, "k_range must be at least 1, got 0"),
        ([2, 241], {}, ValueError, r"k_range must not exceed the number of objects \(240\)"),
        ([2], {"n_repeats": 0}, ValueError, "n_repeats must be at least 1, got 0"),
        ([2], {"subsample": 1.5}, ValueError, "subsample must be a share in"),
        ([2], {"indices": ["best"]}, ValueError, "indices must be among"),
        ([2], {"estimator": DBSCAN()}, ValueError, "estimator must have a parameter 'n_clusters'"),
        ([2], {"space": np.zeros((3, 2))}, ValueError, "space must have one row per object"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(X, k_range, options, error, sentence):
    with pytest.raises(error, match=sentence):
        ws.choose_k(X, k_range, **options)


def test_where_every_fit_fails_the_first_error_names_its_k(X):
    with pytest.raises(ValueError, match="max_iter") as caught:
        ws.choose_k(X, [2, 3], estimator=ws.KMeans(max_iter=0), **QUICK)
    assert "while fitting n_clusters = 2" in caught.value.__notes__


class Fragile(ClusterMixin, BaseEstimator):
    """k-means that cannot make three clusters."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        if self.n_clusters == 3:
            raise ArithmeticError("three is not a number")
        self.labels_ = ws.KMeans(self.n_clusters, random_state=0).fit_predict(X)
        return self


def test_a_k_that_cannot_be_fitted_is_reported_and_the_rest_stands(X):
    with pytest.warns(FitFailedWarning, match="K = 3 could not be fitted"):
        chosen = ws.choose_k(X, range(2, 7), estimator=Fragile(), random_state=0)
    assert chosen.k.tolist() == [2, 4, 5, 6]
    assert chosen.failures == {3: "ArithmeticError: three is not a number"}
    assert chosen.best == 4
    assert chosen.structure is True
    assert "K = 3 could not be fitted: ArithmeticError: three is not a number" in chosen.explain()


def test_labels_of_an_untried_k_are_refused(X):
    with pytest.raises(ValueError, match=r"k must be among \[2, 3\], got 7"):
        ws.choose_k(X, [2, 3], random_state=0, **QUICK).labels_for(7)


def test_frames_are_taken(X):
    pd = pytest.importorskip("pandas", reason="pandas is an optional input kind")
    frame = ws.choose_k(pd.DataFrame(X, columns=list("abc")), [3, 4, 5], random_state=0, **QUICK)
    assert frame.best == 4


def test_few_objects_with_weight_leave_a_half_without_a_strength():
    X, weights = np.random.default_rng(0).normal(size=(40, 2)), np.zeros(40)
    weights[:2] = 1.0
    options = {"sample_weight": weights, "gate": False, "random_state": 0}
    chosen = ws.choose_k(X, [2, 3], indices=["calinski_harabasz", "prediction_strength"], **options)
    assert "sample_weight must have at least one" in chosen.reasons[2, "prediction_strength"]
