"""Stability is that of R's fpc and of hand arithmetic; bad input gets a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.cluster import KMeans as SkKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep.cluster.resampling import measure as resampling
from wellsep.partitions import best_matches
from wellsep.records import Stability

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "stability.json").read_text())
CASES = {f"{case['set']}-{case['k']}": case for case in ORACLE["cases"]}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, 2, centers=[[0, 0], [9, 0], [9, 6]], random_state=0)


class Fails(ClusterMixin, BaseEstimator):
    """Cannot cluster draws without the objects that lie at `needed`."""

    def __init__(self, needed=0.0):
        self.needed = needed

    def fit(self, X, y=None):
        if not (X[:, 0] == self.needed).any():
            raise RuntimeError("the object at the start is missing")
        self.labels_ = (X[:, 0] > 5).astype(int)
        return self


@pytest.mark.parametrize("scheme", ["boot", "subset"])
@pytest.mark.parametrize("name", CASES)
def test_the_similarities_are_those_of_fpc_end_to_end(name, scheme, monkeypatch):
    case, expected = CASES[name], CASES[name][scheme]
    X = np.array(ORACLE["inputs"][case["set"]])
    draws = iter([np.array(rows) for rows in expected["resamples"]])
    monkeypatch.setattr(resampling, "draw_rows", lambda n, size, rng: next(draws))
    found = ws.stability(
        AgglomerativeClustering(case["k"]), X, case["labels"], n_draws=expected["B"], n_splits=0
    )
    np.testing.assert_allclose(found.values, expected["jaccard"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.jaccard, expected["mean"], rtol=0, atol=1e-14)
    assert found.dissolved.tolist() == expected["dissolved"]
    assert found.recovered.tolist() == expected["recovered"]


@pytest.mark.parametrize("name", CASES)
def test_the_prediction_strengths_are_those_of_fpc(name, monkeypatch):
    case, expected = CASES[name], CASES[name]["prediction_strength"]
    X, first = np.array(ORACLE["inputs"][case["set"]]), expected["first_half"]
    halves = iter([(np.array(p[:first]), np.array(p[first:])) for p in expected["permutations"]])
    monkeypatch.setattr(resampling, "draw_halves", lambda n, rng: next(halves))
    found = ws.stability(AgglomerativeClustering(case["k"]), X, n_draws=1, n_splits=expected["M"])
    np.testing.assert_allclose(found.prediction_strengths, expected["fpc"], atol=1e-7)


@pytest.mark.parametrize("hand", [h for h in ORACLE["hand"] if "jaccard" in h])
def test_the_similarities_are_those_of_the_hand_cases(hand):
    labels, rows = np.array(hand["labels"]), np.array(hand["resample"])
    of_draw = np.array(hand["resample_labels"])
    found, _ = best_matches(labels[rows], [of_draw], labels.max() + 1)
    np.testing.assert_allclose(found[:, 0], hand["jaccard"], rtol=0, atol=1e-15)


def test_noise_is_no_cluster_but_its_objects_enlarge_the_other_side():
    # A = {0, 1}, the draw has {0, 1, 2} and object 2 was noise: 2/3. B = {3, 4}, 4 is noise: 1/2.
    found, _ = best_matches(np.array([0, 0, -1, 1, 1]), [np.array([0, 0, 0, 1, -1])])
    np.testing.assert_allclose(found[:, 0], [2 / 3, 1 / 2])


def test_a_weight_of_two_is_an_object_twice():
    first, second, weights = (
        np.array([0, 0, 1, 1]),
        np.array([0, 1, 1, 1]),
        np.array([2.0, 1, 1, 3]),
    )
    repeated = np.repeat(np.arange(4), weights.astype(int))
    np.testing.assert_allclose(
        best_matches(first, [second], weights=weights)[0],
        best_matches(first[repeated], [second[repeated]])[0],
    )


def test_clusters_as_many_as_objects_make_no_table_of_all_their_pairs():
    first = np.arange(100_000)  # a table would take 80 GB
    similarity, match = best_matches(first, [first[::-1], first // 2])
    assert similarity[:, 0].tolist() == [1.0] * len(first)
    assert match[:, 0].tolist() == first[::-1].tolist()
    assert similarity[:, 1].tolist() == [0.5] * len(first)
    assert match[:, 1].tolist() == (first // 2).tolist()


def test_dissolved_counts_one_half_and_recovered_does_not_count_three_quarters():
    values = np.array([[0.5, 0.51, 0.75, 0.76, np.nan]])
    found = Stability(
        np.array([0]), np.zeros(4, int), values, np.ones(5, int), np.full(5, np.nan), "bootstrap",
        4, "x",
    )  # fmt: skip
    assert (found.dissolved[0], found.recovered[0], found.n_draws[0]) == (1, 1, 4)
    assert found.jaccard[0] == pytest.approx(np.nanmean(values))


def test_the_words_name_both_steps_that_an_interval_touches():
    values = np.stack(
        [np.full(50, 0.3), np.full(50, 0.7), np.full(50, 0.9), np.tile([0.7, 0.98], 25)]
    )
    labels = np.repeat(np.arange(4), 3)
    found = Stability(
        np.arange(4), labels, values, np.full(50, 4), np.full(50, np.nan), "bootstrap", 12, "x"
    )
    assert found.words == (
        "not to be trusted", "doubtful", "highly stable", "between stable and highly stable",
    )  # fmt: skip
    lines = found.explain().splitlines()
    assert lines[0].endswith(
        "2 of 4 clusters are stable over 50 bootstraps; not surely stable: 0 and 1."
    )
    assert lines[1].startswith("Cluster 0 (3 objects) dissolves in 50 of 50 bootstraps")
    assert lines[1].endswith("Do not trust this cluster.")


def test_clear_clusters_are_recovered_and_halves_of_a_cloud_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    X[80:] = 0.3 * X[80:] + 20
    found = ws.stability(SkKMeans(3, n_init=10), X, n_draws=30, random_state=0)
    clear = int(np.flatnonzero(found.sizes == 40)[0])
    assert found.recovered[clear] == 30
    others = np.delete(np.arange(3), clear)
    assert (found.jaccard[others] < found.jaccard[clear]).all()
    assert found.prediction_strength < 0.8


def test_the_clustering_is_that_of_the_clusterer_with_its_own_seed(blobs):
    X, _ = blobs
    model = SkKMeans(5, n_init=1, random_state=3)
    found = ws.stability(model, X, n_draws=2, n_splits=0, random_state=0)
    np.testing.assert_array_equal(
        found.labels, SkKMeans(5, n_init=1, random_state=3).fit_predict(X)
    )
    assert not hasattr(model, "labels_")


def test_a_seed_gives_the_same_result_whatever_the_number_of_jobs(blobs):
    X, _ = blobs
    with joblib.parallel_config(backend="threading"):
        found = ws.stability(SkKMeans(4, n_init=1), X, n_draws=6, random_state=5, n_jobs=2)
    again = ws.stability(SkKMeans(4, n_init=1), X, n_draws=6, random_state=5)
    np.testing.assert_array_equal(found.values, again.values)
    np.testing.assert_array_equal(found.prediction_strengths, again.prediction_strengths)
    other = ws.stability(SkKMeans(4, n_init=1), X, n_draws=6, random_state=6)
    assert (found.values != other.values).any()


def test_distances_are_cut_by_rows_and_columns(blobs):
    X, _ = blobs
    options = {"n_draws": 8, "n_splits": 3, "random_state": 0}
    plain = ws.stability(AgglomerativeClustering(4, linkage="average"), X, **options)
    far = pairwise_distances(X)
    given = ws.stability(
        AgglomerativeClustering(4, linkage="average", metric="precomputed"), far, **options
    )
    np.testing.assert_array_equal(given.values, plain.values)
    near = DBSCAN(0.7, metric="precomputed")
    graph = sp.csr_array(np.where(far < 0.7, far, 0))
    of_graph = ws.stability(near, graph, **options)
    np.testing.assert_array_equal(of_graph.values, ws.stability(near, far, **options).values)
    assert "X holds some of the distances" in of_graph.explain()


def test_similarities_are_cut_and_give_no_prediction_strength(blobs):
    X, _ = blobs
    model = SpectralClustering(3, affinity="precomputed", random_state=0)
    near = np.exp(-(pairwise_distances(X) ** 2) / 2) + 1e-6
    found = ws.stability(model, near, n_draws=5, random_state=0)
    assert (found.jaccard > 0.9).all()
    assert not len(found.prediction_strengths)
    assert "X holds similarities" in found.explain()


def test_sparse_data_and_frames_give_the_values_of_dense_data(blobs):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = np.abs(np.round(blobs[0]))
    options = {"n_draws": 5, "n_splits": 2, "random_state": 0}
    dense = ws.stability(SkKMeans(3, n_init=2, random_state=0), X, **options)
    for other in (sp.csr_matrix(X), pd.DataFrame(X, columns=["a", "b"]), X.tolist()):
        found = ws.stability(SkKMeans(3, n_init=2, random_state=0), other, **options)
        np.testing.assert_allclose(found.values, dense.values)
        np.testing.assert_allclose(found.prediction_strengths, dense.prediction_strengths)


@pytest.mark.parametrize(
    "clusterer",
    [
        GaussianMixture(3),
        make_pipeline(StandardScaler(), SkKMeans(3, n_init=2)),
        make_pipeline(StandardScaler().set_output(transform="pandas"), SkKMeans(3, n_init=2)),
        HDBSCAN(min_cluster_size=10, copy=True),
        ws.KMeans(3, metric="cosine"),
        ws.CFMeans(3),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_clusterer_is_taken(clusterer, blobs):
    X, _ = blobs
    found = ws.stability(clusterer, X + 9, n_draws=4, n_splits=2, random_state=0)
    assert found.values.shape == (len(found.clusters), 4)
    assert not found.failures
    assert len(found.prediction_strengths) == 2
    assert type(clusterer).__name__ in found.clusterer


def test_the_means_of_a_pipeline_are_taken_where_it_clusters(blobs):
    X = blobs[0] * [1, 1000]
    scaled = StandardScaler().fit_transform(X)
    options = {"n_draws": 1, "n_splits": 4, "random_state": 0}
    inside = ws.stability(make_pipeline(StandardScaler(), AgglomerativeClustering(3)), X, **options)
    plain = ws.stability(AgglomerativeClustering(3), X, **options)
    outside = ws.stability(AgglomerativeClustering(3), scaled, **options)
    assert inside.prediction_strength == pytest.approx(outside.prediction_strength, abs=0.1)
    assert abs(plain.prediction_strength - outside.prediction_strength) > 0.1


def test_noise_has_its_own_line_and_no_row(blobs):
    X, _ = blobs
    X = np.vstack([X, [[30.0, 30], [-30, 30], [30, -30]]])
    found = ws.stability(DBSCAN(1.5, min_samples=4), X, n_draws=10, n_splits=2, random_state=0)
    assert -1 not in found.clusters
    assert (found.labels[-3:] == -1).all()
    again = found.noise_again[~np.isnan(found.noise_again)]
    assert again.min() > 0.4
    assert "noise objects" in found.explain()


def test_weights_reach_the_clusterer_and_the_similarities(blobs):
    X, _ = blobs
    options = {"n_draws": 4, "n_splits": 1, "random_state": 0}
    plain = ws.stability(SkKMeans(4, n_init=1), X, **options)
    ones = ws.stability(SkKMeans(4, n_init=1), X, sample_weight=np.ones(len(X)), **options)
    np.testing.assert_allclose(ones.values, plain.values)
    weights = np.where(X[:, 0] > 4, 5.0, 1.0)
    heavy = ws.stability(SkKMeans(4, n_init=1), X, sample_weight=weights, **options)
    assert (heavy.values != plain.values).any()
    with pytest.raises(TypeError, match="sample_weight must be None for an estimator that cannot"):
        ws.stability(AgglomerativeClustering(2), X, sample_weight=weights)


def test_progress_counts_the_draws(blobs):
    told = []
    ws.stability(SkKMeans(2), blobs[0], n_draws=3, n_splits=0, progress=lambda *t: told.append(t))
    assert told == [(done, 3, "samples") for done in range(4)]


def test_a_draw_that_fails_is_reported_and_the_rest_stands():
    X = np.concatenate([[0.0], np.arange(1, 5), np.arange(10, 15)])[:, None]
    found = ws.stability(Fails(), X, n_draws=30, n_splits=4, random_state=0)
    assert 0 < len(found.failures) < 30
    failed = sorted(found.failures)
    assert np.isnan(found.values[:, failed]).all()
    assert (found.n_draws == 30 - len(failed)).all()
    assert f"{len(failed)} of 30 fits failed" in found.explain()
    assert "RuntimeError: 'the object at the start is missing'" in found.explain()
    assert "4 of 4 splits for the prediction strength failed" in found.explain()


def test_only_failures_are_an_error():
    X = np.arange(10.0)[:, None]
    with pytest.raises(ValueError, match="clusterer must fit at least one of 3 samples, got only"):
        ws.stability(SkKMeans(10, n_init=1), X, n_draws=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: ws.stability(SkKMeans(2), np.ones((9, 2))), "X must hold at least two"),
        (lambda X: ws.stability(SkKMeans(2), X[:1]), r"X must have at least 2 row\(s\), got 1"),
        (lambda X: ws.stability(SkKMeans(9), X[:4]), "n_clusters must not exceed the number of"),
        (lambda X: ws.stability(DBSCAN(1e-9), X), "clusterer must find a cluster in X, got noise"),
        (lambda X: ws.stability(None, X, [-1] * len(X)), "labels must hold at least one cluster"),
        (lambda X: ws.stability(None, X), "labels must be given where clusterer is None"),
        (lambda X: ws.stability(SkKMeans(2), X, [0, 1]), "labels must have one entry per object"),
        (lambda X: ws.stability([0] * len(X), X), "labels third: stability.None, X, labels"),
        (lambda X: ws.stability(SkKMeans, X), "clusterer must be a scikit-learn estimator, got"),
        (lambda X: ws.stability(SkKMeans(2), X, n_draws=0), "n_draws must be at least 1"),
        (lambda X: ws.stability(SkKMeans(2), X, subsample=1.5), "subsample must be a share in"),
        (lambda X: ws.stability(SkKMeans(2), X, metric="precomputed"), "X must have a row and"),
        (lambda X: ws.stability(None, X, X[:, 0] > 4, stand_in="svm"), "stand_in must be one of"),
        (lambda X: ws.stability(SkKMeans(2), X, progress=3), "progress must be a function"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_refused_with_a_sentence(call, message, blobs):
    with pytest.raises((TypeError, ValueError), match=message):
        call(blobs[0])


def test_one_cluster_is_said_to_mean_nothing(blobs):
    found = ws.stability(SkKMeans(1), blobs[0], n_draws=3, random_state=0)
    assert found.jaccard.tolist() == [1.0]
    assert found.explain().startswith("There is one cluster only.")


@pytest.mark.parametrize("stand_in", ["nearest-neighbours", "nearest-mean"])
def test_a_stand_in_finds_clear_labels_again_and_random_ones_not(stand_in, blobs):
    X, truth = blobs
    options = {"stand_in": stand_in, "random_state": 0, "n_draws": 20}
    clear = ws.stability(None, X, truth, **options)
    assert (clear.jaccard > 0.9).all()
    assert "No clusterer was given" in clear.explain()
    assert not len(clear.prediction_strengths)
    shuffled = np.random.default_rng(0).permutation(truth)
    assert (ws.stability(None, X, shuffled, **options).jaccard < 0.5).all()


@pytest.mark.parametrize("stand_in", ["nearest-neighbours", "nearest-mean"])
def test_a_stand_in_takes_distances_and_draws_without_replacement(stand_in, blobs):
    X, truth = blobs
    found = ws.stability(
        None, pairwise_distances(X), truth, stand_in=stand_in, metric="precomputed", subsample=0.5,
        random_state=0,
    )  # fmt: skip
    assert (found.scheme, found.n_drawn) == ("subsample", 60)
    assert (found.jaccard > 0.9).all()


def test_the_neighbours_of_distances_are_those_of_coordinates(blobs):
    X, truth = blobs
    shuffled = np.random.default_rng(1).permutation(truth)
    options = {"random_state": 0, "n_draws": 5}
    plain = ws.stability(None, X, shuffled, **options)
    given = ws.stability(None, pairwise_distances(X), shuffled, metric="precomputed", **options)
    np.testing.assert_array_equal(plain.values, given.values)


def test_a_stand_in_is_judged_on_objects_whose_labels_it_did_not_see():
    # Each object is its own nearest neighbour; judged on drawn objects, all would be right.
    X = np.arange(40.0)[:, None]
    labels = np.arange(40) % 2
    found = ws.stability(None, X, labels, n_neighbors=1, n_draws=30, random_state=0)
    assert (found.jaccard < 0.5).all()


def test_a_cluster_without_an_object_to_judge_by_is_left_out_of_its_mean():
    X = np.array([[0.0], [1], [2], [3], [50]])
    found = ws.stability(None, X, [0, 0, 0, 0, 1], n_draws=40, random_state=0)
    alone = found.values[1]
    assert np.isnan(alone).any()
    assert (alone[~np.isnan(alone)] == 0).all()  # none of it was drawn to tell of it


def test_names_of_clusters_are_kept(blobs):
    X, truth = blobs
    names = np.array(["east", "north", "west"])[truth]
    found = ws.stability(None, X, names, n_draws=3, random_state=0)
    assert found.clusters.tolist() == ["east", "north", "west"]
    assert found.columns()["cluster"] == ["east", "north", "west"]
    assert found.sizes.tolist() == [40, 40, 40]


def test_a_sample_without_weight_has_no_nearest_means(blobs):
    X, labels = blobs
    weights = np.zeros(len(X))
    weights[:2] = 1.0
    options = {"stand_in": "nearest-mean", "n_draws": 20, "random_state": 0}
    found = ws.stability(None, X, labels, sample_weight=weights, **options)
    assert set(found.failures.values()) == {"no object on one side of the split has weight"}
