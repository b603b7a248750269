"""A space of distances from its source to the answer: dip test, AnnData, choose_k, page."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import wellsep as ws
from wellsep.adapters import runs_from_anndata
from wellsep.cli.main import main

QUICK = ["--draws", "4", "--cache", "none"]


def share_of_alarms(draw, n_draws=60, level=0.05):
    """How often the dip test finds more than one mode in distances of drawn rows."""
    found = [
        ws.multimodality(ws.Distances(pdist(draw(np.random.default_rng(seed))))).pvalue
        for seed in range(n_draws)
    ]
    return float(np.mean(np.array(found) <= level))


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_the_dip_test_of_distances_of_one_cloud_keeps_its_level(kind, d):
    # With 60 draws at the level .05 more than 8 alarms have a probability below .01.
    assert share_of_alarms(lambda rng: getattr(rng, kind)(size=(120, d))) <= 8 / 60


@pytest.mark.parametrize(("k", "d", "apart", "least"), [(2, 2, 4, 0.9), (3, 10, 8, 0.8)])
def test_the_dip_test_of_distances_finds_blobs_that_lie_apart(k, d, apart, least):
    def blobs(rng):
        centers = apart * np.eye(k, d)[np.arange(120) % k] / np.sqrt(2)
        return rng.normal(size=(120, d)) + centers

    assert share_of_alarms(blobs, 30) >= least


def test_the_dip_test_of_whole_number_distances_of_one_cloud_keeps_its_level():
    def words(rng):  # Hamming distances of random words
        return rng.integers(0, 3, (80, 12))

    found = [
        ws.multimodality(
            ws.Distances(pdist(words(np.random.default_rng(seed)), "hamming") * 12), random_state=0
        ).pvalue
        for seed in range(30)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 5 / 30


def case():
    X, _ = make_blobs(120, 4, centers=8 * np.eye(3, 4), random_state=0)
    wrong = np.random.default_rng(0).permutation(120) % 3
    labels = {
        "k2": ws.KMeans(2, random_state=0).fit_predict(X),
        "k3": ws.KMeans(3, random_state=0).fit_predict(X),
        "by_chance": wrong,
    }
    return X, labels


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    X, labels = case()
    made = anndata.AnnData(obsm={"X_pca": X})
    for name, values in labels.items():
        made.obs[name] = values.astype(str)
    made.obsp["dtw"] = cdist(X, X)
    made.obsp["flat"] = cdist(X[:, :3], X[:, :3]).astype(np.float32)
    made.obsp["distances"] = sp.csr_matrix(kneighbors_graph(X, 8, mode="distance"))
    made.obsp["connectivities"] = sp.csr_matrix(kneighbors_graph(X, 8))
    made.write_h5ad(tmp_path / "cells.h5ad")
    return made, tmp_path / "cells.h5ad"


def run(capsys, *words):
    code = main([*map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize("as_file", [False, True])
def test_a_matrix_in_obsp_is_judged_as_its_coordinates_are(cells, as_file):
    source = cells[1] if as_file else cells[0]
    options = {"n_draws": 6, "random_state": 0}
    given = runs_from_anndata(source, spaces=["obsp/dtw"], labels=["k*", "by_chance"])
    assert repr(given.spaces["obsp/dtw"]) == "Distances(120 objects, square, float64)"
    rows = runs_from_anndata(source, spaces=["X_pca"], labels=["k*", "by_chance"])
    first, second = ws.judge(given, **options), ws.judge(rows, **options)
    assert first.ranking.best == second.ranking.best == "k3"
    np.testing.assert_allclose(first.answer.scores, second.answer.scores, rtol=1e-9)
    np.testing.assert_array_equal(first.confidence.ranks, second.confidence.ranks)


def test_a_matrix_in_obsp_is_ranked_from_the_command_line(cells, capsys):
    words = ["rank", cells[1], "--spaces", "obsp/dtw,obsp/flat", "--labels", "k2,k3,by_chance"]
    code, out, err = run(capsys, *words, *QUICK, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["best"] == ["k3"]
    assert {one["embedding"] for one in found["embeddings"]} == {"obsp/dtw", "obsp/flat"}
    assert {one["dims"] for one in found["embeddings"]} == {"distances"}


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("distances", "a graph of neighbours whose absent pairs are unknown"),
        ("connectivities", "which holds similarities"),
        ("nothing", "there are .*'dtw'"),
    ],
)
def test_what_in_obsp_holds_no_distances_of_all_pairs_is_refused(cells, capsys, key, sentence):
    words = ["rank", cells[1], "--spaces", f"obsp/{key}", "--labels", "k2,k3"]
    code, out, err = run(capsys, *words, *QUICK)
    assert (code, out) == (2, "")
    assert re.search(sentence, " ".join(err.split()))


@pytest.mark.parametrize("form", ["condensed", "square", "plain"])
def test_a_subsample_of_a_matrix_cuts_rows_and_columns(form):
    X, _ = case()
    model = AgglomerativeClustering(metric="precomputed", linkage="average")
    options = {"estimator": model, "random_state": 0}
    D = cdist(X, X)
    given = {"condensed": ws.Distances(pdist(X)), "square": ws.Distances(D), "plain": D}[form]
    part = ws.choose_k(given, [2, 3, 4], subsample=70, **options)
    rows = part.objects
    assert len(rows) == 70
    assert part.labels.shape == (3, 70)
    whole = ws.choose_k(ws.Distances(D[np.ix_(rows, rows)]), [2, 3, 4], **options)
    np.testing.assert_array_equal(part.labels, whole.labels)
    np.testing.assert_allclose(part.values[0, :, 0], whole.values[0, :, 0], rtol=1e-12)
    assert part.picks == whole.picks
    assert part.picks["silhouette(metric=precomputed)"] == 3


@pytest.mark.parametrize("form", ["condensed", "square", "sparse"])
def test_a_page_of_a_folder_of_distances_says_distances(tmp_path, capsys, form):
    X, labels = case()
    made = {
        "condensed": lambda X: ws.Distances(pdist(X)),
        "square": lambda X: ws.Distances(cdist(X, X).astype(np.float32)),
        "sparse": lambda X: ws.Distances(sp.csr_array(cdist(X, X)), absent=9.0),
    }[form]
    spaces = {"full": made(X), "flat": made(X[:, :2])}
    ws.Runs.from_parts(spaces, labels).save(tmp_path / "runs")
    page = tmp_path / "page.html"
    code, out, err = run(capsys, "rank", tmp_path / "runs", *QUICK, "--report", page)
    assert code == 0, err
    assert "distances" in out
    text = page.read_text()
    table = text[text.index(">columns<") :]
    assert ">distances<" in table
    assert "120 features" not in text


def test_a_page_of_sparse_embeddings_is_written(tmp_path):
    X, labels = case()
    X = sp.csr_array(X * (X > 0))
    runs = ws.Runs.from_parts({"words": X}, labels)
    ws.render_report(ws.judge(runs, n_draws=4), tmp_path / "page.html", runs=runs)
    assert "SHA-256" in (tmp_path / "page.html").read_text()


def forms():
    X, _ = case()
    near = sp.csr_array(np.where(cdist(X, X) < 7, cdist(X, X), 0.0))
    return {
        "square": ws.Distances(cdist(X, X)),
        "condensed": ws.Distances(pdist(X)),
        "graph": ws.Distances(near, absent=20.0),
        "mixed": ws.MixedTable(X),
    }


@pytest.mark.parametrize("form", ["square", "condensed", "graph", "mixed"])
def test_searches_and_stability_take_every_form_of_distances_by_kmedoids(form):
    D = forms()[form]
    options = {"random_state": 0}
    assert ws.choose_k(D, [2, 3, 4], subsample=0.6, n_repeats=2, **options).best == 3
    search = ws.ClusterSearch(ws.KMedoids(**options), {"n_clusters": [2, 3, 4]}).fit(D)
    assert search.best_params_ == {"n_clusters": 3}
    medoids = ws.KMedoids(3, **options).fit(D)
    np.testing.assert_array_equal(search.labels_, medoids.labels_)
    found = ws.stability(ws.KMedoids(3, **options), D, n_draws=3, **options)
    assert found.values.min() == 1.0
    assert found.prediction_strengths.min() == 1.0


@pytest.mark.parametrize("stand_in", ["nearest-neighbours", "nearest-mean"])
def test_finished_labels_are_judged_from_distances_and_not_from_rows_of_the_matrix(stand_in):
    X, labels = case()
    options = {"n_draws": 8, "random_state": 0, "stand_in": stand_in}
    chance = labels["by_chance"] // 2 + labels["k2"]
    expected = ws.stability(None, cdist(X, X), chance, metric="precomputed", **options)
    for form in (ws.Distances(pdist(X)), ws.Distances(cdist(X, X))):
        given = ws.stability(None, form, chance, **options)  # a warning would be an error
        np.testing.assert_allclose(given.values, expected.values)
    if stand_in == "nearest-neighbours":
        rows = ws.stability(None, X, chance, **options)
        np.testing.assert_allclose(given.values, rows.values)
    with pytest.raises(ValueError, match="metric must be .*'precomputed'"):
        ws.stability(None, form, chance, metric="cosine", **options)


@pytest.mark.parametrize(
    "function",
    [
        lambda D: ws.choose_k(D, [2, 3], estimator=ws.KMeans()),
        lambda D: ws.ClusterSearch(ws.KMeans(), {"n_clusters": [2, 3]}).fit(D),
        lambda D: ws.stability(ws.KMeans(2), D, n_draws=3),
    ],
)
def test_a_clusterer_of_rows_never_takes_distances_for_rows(function):
    with pytest.raises(ValueError, match="estimator must take distances .* got KMeans; .*KMedoids"):
        function(forms()["square"])


def test_a_grid_may_say_that_a_clusterer_takes_distances():
    grid = {"metric": ["precomputed"], "eps": [2.5, 3.0], "min_samples": [4]}
    search = ws.ClusterSearch(DBSCAN(), grid).fit(forms()["condensed"])
    assert search.n_clusters == 3


def test_a_graph_with_unknown_pairs_is_refused_by_searches():
    X, _ = case()
    graph = ws.Distances(kneighbors_graph(X, 8, mode="distance"))
    for function in (
        lambda: ws.choose_k(graph, [2, 3]),
        lambda: ws.ClusterSearch(ws.KMedoids(), {"n_clusters": [2, 3]}).fit(graph),
        lambda: ws.stability(ws.KMedoids(2), graph, n_draws=3),
        lambda: ws.multimodality(graph),
    ):
        with pytest.raises(ValueError, match="X must have every distance, got a graph"):
            function()


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array])
def test_files_that_scipy_writes_are_read_as_distances_and_as_coordinates(tmp_path, make):
    X, _ = case()
    graph = make(kneighbors_graph(X, 8, mode="distance"))
    for name in ("distances", "embedding"):
        (tmp_path / name).mkdir()
        sp.save_npz(tmp_path / name / f"{name}.npz", graph)
    runs = ws.load_runs(tmp_path)
    given = runs.spaces["distances"]
    assert (given.kind, given.absent) == ("graph", None)
    np.testing.assert_array_equal(given.values.toarray(), ws.Distances(graph).values.toarray())
    np.testing.assert_array_equal(runs.spaces["embedding"].toarray(), graph.toarray())


def test_a_sparse_file_of_another_format_is_refused_with_its_format(tmp_path):
    (tmp_path / "a").mkdir()
    sp.save_npz(tmp_path / "a" / "distances.npz", sp.bsr_array(np.eye(4)))
    with pytest.raises(ValueError, match="must be in CSR or CSC format, got 'bsr'"):
        ws.load_runs(tmp_path).spaces["a"]
