"""`explore` goes from data of any kind to one clustering, and says what it did."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import AgglomerativeClustering, Birch, MeanShift
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score as ari

import wellsep as ws
from wellsep.explorer import candidates, given
from wellsep.explorer.candidates import (
    embed,
    embedding_kinds,
    first_grid,
    follow,
    list_jobs,
    most_clusters,
    next_grid,
)

QUICK = {"methods": ["k-means", "ward"], "k": range(2, 6), "n_draws": 0}
PAIRS = {"k": range(2, 6), "n_draws": 0}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 4, centers=3, cluster_std=0.6, random_state=2)


@pytest.fixture(scope="module")
def found(blobs):
    return ws.explore(blobs[0], **QUICK)


def test_the_clusters_of_three_clouds_are_found(blobs, found):
    _, y = blobs
    assert found.n_clusters == 3
    assert ari(y, found.labels_) == 1
    assert found.labels_.shape == (90,)
    assert found.judgement.ranking.best == found.best in found.runs.partitions
    assert not found.one_cluster


def test_the_candidates_are_runs_in_embeddings_of_the_data(found):
    assert list(found.runs.spaces) == ["data", "pca", "tsne"] or "umap" in found.runs.spaces
    assert len(found.runs.partitions) == len(found.runs.spaces) * 2 * 4
    run = found.runs["pca ward 4"]
    assert run.space == "pca"
    assert run.params == {"embedding": "pca", "method": "ward", "n_clusters": 4}
    assert len(np.unique(run.labels)) == 4


def test_the_answer_names_sizes_and_the_number_of_candidates(found):
    assert str(found).startswith(f"3 clusters of 90 objects: {found.best!r}, chosen from 24 candi")
    assert "Sizes: 30, 30 and 30." in str(found)
    assert found.to_dict()["n_clusters"] == 3
    assert found.columns()["partition"][0] == found.best


def test_the_same_seed_gives_the_same_answer_with_any_number_of_jobs(blobs, found):
    again = ws.explore(blobs[0], **QUICK, n_jobs=2)
    assert again.best == found.best
    np.testing.assert_array_equal(again.labels_, found.labels_)


def test_an_object_that_was_clustered_is_predicted_as_it_was(blobs, found):
    X, _ = blobs
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    np.testing.assert_array_equal(found.predict(X + 1e-3), found.labels_)
    assert found.predict(X[:0]).shape == (0,)


def test_a_new_row_must_have_the_columns_that_were_explored(found):
    with pytest.raises(ValueError, match=r"X must have the 4 features .*, got shape \(5, 3\)"):
        found.predict(np.ones((5, 3)))


def test_it_is_saved_with_labels_and_runs_and_opened_again(blobs, found, tmp_path):
    folder = found.save(tmp_path / "found")
    labels = pd.read_csv(folder / "labels.csv")["label"]
    np.testing.assert_array_equal(labels, found.labels_)
    opened = ws.load(folder)
    np.testing.assert_array_equal(opened.labels_, found.labels_)
    np.testing.assert_array_equal(opened.predict(blobs[0]), found.labels_)
    assert opened.explain() == found.explain()
    ranked = ws.judge(ws.load_runs(folder / "runs"), n_draws=0)
    assert ranked.ranking.best == found.best


def test_the_page_of_an_exploration_has_its_answer(found, tmp_path):
    page = ws.render_report(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "3 clusters of 90 objects" in page
    assert "3 clusters of 90 objects" in found._repr_html_()


# --------------------------------------------------------------------------- kinds of data


def test_columns_in_other_units_are_scaled_and_said_so(blobs):
    X = blobs[0] * [1, 1, 1000, 1]
    found = ws.explore(X, **QUICK)
    assert any("scaled" in note for note in found.notes)
    np.testing.assert_allclose(found.runs.spaces["data"].std(axis=0), 1)
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_columns_of_one_unit_and_constant_columns_are_left_as_they_are(blobs, found):
    X = blobs[0]
    np.testing.assert_array_equal(found.runs.spaces["data"], X)
    with_constant = ws.explore(np.column_stack([X, np.ones(90)]), **QUICK)
    assert with_constant.runs.spaces["data"].shape == (90, 4)
    np.testing.assert_array_equal(with_constant.labels_, found.labels_)


def test_a_frame_names_the_features_of_the_clusters(blobs):
    frame = pd.DataFrame(blobs[0], columns=["age", "pay", "size", "mood"])
    found = ws.explore(frame, **QUICK)
    described = found.judgement.clusters.descriptions[found.best]
    assert set(described.features) <= {"age", "pay", "size", "mood"}
    np.testing.assert_array_equal(found.predict(frame), found.labels_)


def test_a_frame_whose_columns_have_numbers_for_names_is_explored(blobs):
    X, _ = blobs
    options = {"methods": ["ward"], "k": [2, 3], "embeddings": [], "n_draws": 0}
    frame = pd.DataFrame(X)
    assert ws.explore({"one": frame, "two": frame}, **options).n_clusters == 3
    gappy = frame.copy()
    gappy.iloc[3, 1] = np.nan
    assert "1 has gaps" in ws.explore(gappy, k=[2, 3], n_draws=0).notes[0]


def test_a_single_column_has_a_neighbour_embedding(blobs):
    X, _ = blobs
    found = ws.explore(X[:, :1], methods=["ward"], k=[2, 3], embeddings=["tsne"], n_draws=0)
    assert found.runs.spaces["tsne"].shape == (len(X), 2)


def test_words_and_gaps_in_a_frame_are_compared_by_gower(blobs):
    X, y = blobs
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    frame["kind"] = np.array(["x", "y", "z"])[y]
    frame.loc[4, "a"] = None
    found = ws.explore(frame, **PAIRS)
    assert any("Gower" in note and "'kind'" in note for note in found.notes)
    assert ari(y, found.labels_) == 1
    np.testing.assert_array_equal(found.predict(frame[:9]), found.labels_[:9])
    gaps = ws.explore(frame[list("abcd")], **PAIRS)
    assert any("'a' has gaps" in note for note in gaps.notes)


def test_distances_are_explored_without_coordinates(blobs):
    X, y = blobs
    found = ws.explore(ws.Distances(pdist(X)), **PAIRS)
    assert ari(y, found.labels_) == 1
    assert {run.params.get("method") for run in found.runs} >= {"k-medoids", "average"}
    np.testing.assert_array_equal(found.predict(cdist(X[:9], X)), found.labels_[:9])
    with pytest.raises(ValueError, match="distances to the 90 objects"):
        found.predict(X)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_a_plain_matrix_of_distances_is_warned_of_once(blobs, form):
    distances = form(cdist(blobs[0], blobs[0]))
    with pytest.warns(UserWarning, match="Distances") as told:
        ws.explore(distances, **QUICK)
    assert [str(one.message)[:34] for one in told] == ["X looks like a matrix of distances"]


def test_sparse_rows_are_compared_by_their_cosine():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(3), 20, axis=1)
    y = np.repeat([0, 1, 2], 30)
    X = sp.csr_array(rng.poisson(0.1 + 2 * topics[y]).astype(float))
    found = ws.explore(X, **QUICK)
    assert any("cosine" in note for note in found.notes)
    assert ari(y, found.labels_) > 0.8
    lengths = rng.uniform(0.5, 20, 90)  # of texts: they do not matter
    longer = sp.csr_array(X.multiply(lengths[:, None]))
    np.testing.assert_array_equal(found.predict(longer), found.labels_)


def test_several_embeddings_are_taken_as_they_are(blobs):
    X, _ = blobs
    spaces = {"clip": X, "dino": 1000 * X[:, :2]}
    found = ws.explore(spaces, **QUICK)
    assert {"clip", "dino"} <= set(found.runs.spaces)
    assert not any("scaled" in note for note in found.notes)
    assert found.origin in spaces
    np.testing.assert_array_equal(found.predict(spaces), found.labels_)
    np.testing.assert_array_equal(found.predict(spaces[found.origin]), found.labels_)


def test_anndata_is_explored_in_its_obsm_without_drawings(blobs, tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    X, _ = blobs
    cells = anndata.AnnData(obsm={"X_pca": X, "X_umap": X[:, :2]})
    found = ws.explore(cells, embeddings=[], **QUICK)
    assert list(found.runs.spaces) == ["X_pca"]
    assert any("'X_umap' of obsm" in note for note in found.notes)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = ws.explore(tmp_path / "cells.h5ad", embeddings=[], **QUICK)
    np.testing.assert_array_equal(again.labels_, found.labels_)
    np.testing.assert_array_equal(again.ids, cells.obs_names)


@pytest.mark.parametrize("in_chunks", [False, True])
def test_many_objects_are_sampled_and_all_have_a_label(monkeypatch, in_chunks):
    monkeypatch.setattr(given, "MOST_ROWS", 60)
    X, y = make_blobs(300, 3, centers=3, cluster_std=0.5, random_state=2)
    data = X
    if in_chunks:
        da = pytest.importorskip("dask.array", reason="needs the extra dask")
        data = da.from_array(X, chunks=(100, 3))
    found = ws.explore(data, **(QUICK | {"k": [3]}))
    assert any("60 of 300 objects" in note for note in found.notes)
    assert ari(y, found.labels_) == 1
    assert found.runs.n_objects == 60 == len(found.objects)
    np.testing.assert_array_equal(found.labels_[found.objects], found.runs.partitions[found.best])


def test_a_method_for_few_objects_is_fitted_on_some_and_the_others_follow(monkeypatch, blobs):
    monkeypatch.setitem(candidates.FITTED, "ward", 40)
    X, y = blobs
    (job,) = list_jobs({"data": X}, {"ward": None}, [3], first=True)
    (labels,) = candidates.fit_job(job, X, 0)
    assert ari(y, labels) == 1


# --------------------------------------------------------------------------- one cluster


@pytest.mark.parametrize("seed", [0, 1])
def test_a_cloud_without_structure_is_one_cluster(seed):
    X = np.random.default_rng(seed).normal(size=(150, 3))
    found = ws.explore(X, **QUICK)
    assert found.one_cluster
    assert found.n_clusters == 1
    assert not found.labels_.any()
    assert not found.predict(X[:5]).any()
    assert str(found).startswith("One cluster: ")


def test_equal_objects_are_refused():
    with pytest.raises(ValueError, match="X must have objects that differ"):
        ws.explore(np.ones((20, 3)))


# --------------------------------------------------------------------------- candidates


def test_the_grid_goes_to_the_root_of_n_in_equal_ratios():
    assert first_grid(4) == [2]
    assert first_grid(400) == [2, 3, 4, 5, 6, 8, 10, 12, 15, 19]
    assert next_grid(first_grid(400), 400) == [24, 30, 38]
    assert next_grid([2, 3, 4], 16) == []


def test_n_bounds_the_numbers_of_clusters_that_a_grid_is_extended_to():
    assert [most_clusters(n) for n in (16, 96, 400, 500, 10_000)] == [4, 18, 40, 50, 1_000]
    assert next_grid(next_grid(first_grid(500), 500), 500) == [48]
    assert next_grid([2, 48], 500) == []


def test_k_is_extended_where_the_best_is_at_the_end():
    centers = 10 * np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)
    X, _ = make_blobs(96, centers=centers, cluster_std=0.3, random_state=0)
    assert first_grid(96)[-1] < 16
    found = ws.explore(X, methods=["ward"], embeddings=[], n_draws=0)
    tried = {run.params.get("n_clusters") for run in found.runs if run.has_labels}
    assert max(tried) > first_grid(96)[-1]
    extended = f"K was extended to {max(tried)}, since"
    assert any(extended in note and "96 objects allow K up to 18" in note for note in found.notes)
    asked = ws.explore(X, methods=["ward"], embeddings=[], k=[2, 3, 4], n_draws=0)
    assert {run.params.get("n_clusters") for run in asked.runs if run.has_labels} == {2, 3, 4}


def test_the_first_jobs_are_spread_over_k():
    jobs = list_jobs({"data": np.eye(8)}, {"k-means": None}, list(range(2, 10)), first=True)
    first = [job.values[0] for job in jobs[:4]]
    assert max(first) - min(first) >= 4


def test_estimators_may_be_given_by_name(blobs):
    models = {"birch": Birch(), "complete": AgglomerativeClustering(linkage="complete")}
    found = ws.explore(blobs[0], methods=models, embeddings=[], k=[2, 3, 4], n_draws=0)
    assert sorted(found.runs.partitions) == sorted(
        f"data {name} {k}" for name in models for k in (2, 3, 4)
    )


def test_a_candidate_that_cannot_be_made_is_told_and_the_others_are_judged(blobs):
    class Failing(Birch):
        def fit(self, X, y=None):
            if self.n_clusters == 3:
                raise RuntimeError("no three")
            return super().fit(X)

    found = ws.explore(blobs[0], methods={"b": Failing()}, embeddings=[], k=[2, 3, 4], n_draws=0)
    assert sorted(found.runs.partitions) == ["data b 2", "data b 4"]
    assert any("'data b 3' since: no three" in note for note in found.notes)


def test_the_neighbour_embedding_keeps_clouds_apart(blobs):
    X, y = blobs
    Z = embed(X, "tsne", 0)
    assert Z.shape == (90, 2)
    assert ws.silhouette_score(Z, y) > 0.5
    assert embed(X[:10], "tsne", 0) is None


def test_components_hold_nine_tenths_of_the_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)) * [10, 9, 8, 1, 1, 1, 1, 1, 1, 1]
    Z = embed(X, "pca", 0)
    assert Z.shape == (200, 3)
    np.testing.assert_allclose(Z.var(axis=0).sum() / X.var(axis=0).sum(), 0.97, atol=0.02)
    assert embed(X[:, :3], "pca", 0) is None  # as it is


def test_many_given_embeddings_get_no_others():
    assert embedding_kinds(None, 4) == ()
    assert embedding_kinds("pca", 4) == ("pca",)


# --------------------------------------------------------------------------- placing


def test_nearest_neighbours_vote_by_the_inverse_of_their_distance():
    labels = np.array([0, 1, 1])
    rows = np.array([[0.0], [3.0], [4.0]])
    # 1 / 1 for cluster 0, 1 / 2 + 1 / 3 for cluster 1
    assert follow(rows, labels, np.array([[1.0], [2.0]])).tolist() == [0, 1]
    assert follow(None, labels, np.array([[1.0, 2, 3], [0, 9, 9]])).tolist() == [0, 0]


# --------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.eye(3), {}, "X must have at least 4 objects"),
        (np.eye(9), {"k": [1, 2]}, "k must be at least 2, got 1"),
        (np.eye(9), {"k": [9]}, "k must be at most 8, got 9"),
        (np.eye(9), {"k": []}, "k must hold at least one number"),
        (np.eye(9), {"methods": ["kmeans"]}, "methods must be one of"),
        (np.eye(9), {"methods": []}, "methods must hold at least one"),
        (np.eye(9), {"embeddings": ["isomap"]}, "embeddings must be one of"),
        (np.eye(9), {"budget": -1}, "budget must be at least 0"),
        (np.eye(9), {"n_draws": -1}, "n_draws must be at least 0"),
        ({}, {}, "X must hold at least one embedding"),
        ({"a": np.eye(9), "b": np.eye(8)}, {}, "embeddings of the same objects, got 8 in 'b'"),
        (np.full((9, 2), np.nan), {}, "X must be finite"),
        (np.eye(9), {"methods": ["average"]}, "methods must suit X, got average: k-medoids and"),
        (np.eye(9), {"methods": {"a": MeanShift()}}, r"methods\['a'\] must have a parameter"),
        (np.eye(9), {"methods": {"kmeans": 3}}, r"methods\[.*\] must be a scikit-learn estimator"),
    ],
)
def test_wrong_input_is_refused_with_its_name(X, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ws.explore(X, **options)


@pytest.mark.parametrize("n", [4, 5, 6, 9])
def test_the_smallest_data_have_an_answer(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    X[: n // 2] += 20
    found = ws.explore(X, n_draws=0)
    assert found.n_clusters >= 2
    json.dumps(found.to_rows())
