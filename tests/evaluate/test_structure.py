"""Nothing to cluster: the input is compared with clouds that follow its covariance and its skew."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.evaluate import structure
from wellsep.evaluate.structure import NOTHING, Structure, structure_of
from wellsep.partitions import Partitions
from wellsep.spaces import dip_statistic
from wellsep.spaces.dip import nearest_unimodal

ROOT = Path(__file__).parents[2]


def kmeans_runs(X, ks=(2, 3, 5)):
    fitted = {f"K={k}": KMeans(k, n_init=2, random_state=0).fit_predict(X) for k in ks}
    return Partitions.from_labels(fitted)


def structure_in(X, **options) -> Structure:
    return structure_of(X, kmeans_runs(X, **options), 1)


@pytest.mark.parametrize("kind", ["normal", "uniform", "standard_exponential"])
def test_clouds_without_clusters_are_nothing(kind):
    X = getattr(np.random.default_rng(5), kind)(size=(300, 4))
    found = structure_in(X)
    assert found.gain < NOTHING and found.is_nothing


def test_blobs_are_something_and_the_clearest_clustering_is_named():
    X, _ = make_blobs(300, 4, centers=3, random_state=0)
    found = structure_in(X)
    assert found.gain > 0.2
    assert found.best in ("K=3", "k-means, K = 3")
    assert found.n_clusters.tolist() == [2, 3, 5]
    assert f"{found.best!r}, has a silhouette {found.gain:.2f} above" in found.explain()


def test_skewed_columns_are_not_taken_for_clusters():
    skewed = np.exp(np.random.default_rng(3).normal(size=(400, 2)))
    found = structure_in(skewed)
    assert found.gain < NOTHING
    gaussian_alone = np.nanmax(found.of_input - found.gaussian)
    assert gaussian_alone > NOTHING  # a Gaussian cloud alone would call it structure


def test_an_outlier_is_no_structure():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[0] = 50
    alone = (np.arange(200) == 0).astype(int)
    assert ws.silhouette_score(X, alone) > 0.9
    found = structure_of(X, Partitions.from_labels({"outlier": alone}), 1)
    assert np.isnan(found.gain) and not found.is_nothing
    assert "two clusters with 5 %" in found.explain()


def test_the_gaussian_clouds_have_the_covariance_of_the_rows():
    rows = np.random.default_rng(0).normal(size=(500, 3)) @ np.array(
        [[9.0, 3, 0], [0, 1, 1], [0, 0, 2]]
    )
    rows -= rows.mean(axis=0)
    for cloud in structure._gaussian_clouds(rows):
        np.testing.assert_allclose(np.cov(cloud.T), np.cov(rows.T), atol=12)


def test_the_skewed_clouds_have_the_rank_correlations_and_ranges_of_the_columns():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(500, 1))
    rows = np.exp(0.8 * common + 0.6 * rng.normal(size=(500, 3)))
    for cloud in structure._skewed_clouds(rows):
        np.testing.assert_allclose(spearmanr(cloud)[0], spearmanr(rows)[0], atol=0.12)
        assert (cloud.min(axis=0) >= rows.min(axis=0)).all()
        assert (cloud.max(axis=0) <= rows.max(axis=0)).all()
        np.testing.assert_allclose(np.median(cloud, axis=0), np.median(rows, axis=0), rtol=0.25)


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_unimodal_distribution_is_unimodal_and_as_near_as_the_dip_says(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(size=60), rng.normal(6, 1, size=40)]).round(seed % 3)
    heights, places = nearest_unimodal(values)
    assert heights[0] == 0 and heights[-1] == 1 and (np.diff(heights) >= 0).all()
    steps = np.diff(places)
    slopes = np.diff(heights)[steps > 0] / steps[steps > 0]
    mode = int(slopes.argmax())
    assert (np.diff(slopes[: mode + 1]) >= -1e-9).all() and (np.diff(slopes[mode:]) <= 1e-9).all()
    ordered = np.sort(values)
    upto = np.searchsorted(ordered, ordered, side="right") / len(values)
    # Cut to the range of the values, it may be farther than the dip by as much as the cut takes.
    assert np.abs(np.interp(ordered, places, heights) - upto).max() <= 3 * dip_statistic(values)


def test_the_gain_does_not_depend_on_place_turn_or_unit():
    X, _ = make_blobs(200, 3, centers=4, cluster_std=3, random_state=1)
    runs = kmeans_runs(X)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    gain = structure_of(X, runs, 1).gain
    assert structure_of(X + 1e6, runs, 1).gain == pytest.approx(gain, abs=1e-6)
    assert structure_of(X * 2.0**600, runs, 1).gain == pytest.approx(gain, abs=1e-9)
    assert structure_of(X @ turn, runs, 1).gain == pytest.approx(gain, abs=0.06)


def test_distances_and_very_wide_rows_are_seen_by_their_axes(monkeypatch):
    X, _ = make_blobs(150, 5, centers=3, random_state=2)
    runs = kmeans_runs(X)
    rows, given = structure_of(X, runs, 1), structure_of(ws.Distances(pdist(X)), runs, 1)
    monkeypatch.setattr(structure, "WIDE", 5)
    for seen in (given, structure_of(X, runs, 1)):
        np.testing.assert_allclose(seen.of_input, rows.of_input, atol=1e-6)
        np.testing.assert_allclose(seen.gaussian, rows.gaussian, atol=0.05)
        assert seen.gain > 0.1


def test_the_answer_does_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).normal(size=(120, 3))
    one, four = (structure_of(X, kmeans_runs(X), jobs) for jobs in (1, 4))
    np.testing.assert_array_equal(one.of_input, four.of_input)
    np.testing.assert_array_equal(one.skewed, four.skewed)
    assert one.gain == four.gain


def test_equal_objects_and_very_few_are_no_error():
    parts = Partitions.from_labels({"two": [0, 0, 1, 1], "three": [0, 1, 2, 2]})
    for X in (np.ones((4, 2)), np.arange(8.0).reshape(4, 2)):
        assert isinstance(structure_of(X, parts, 1).explain(), str)


def test_the_guide_shows_the_error_rates_that_were_measured():
    with (ROOT / "experiments" / "nothing" / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    guide = (ROOT / "docs" / "guides" / "verdict.md").read_text(encoding="utf-8")
    for family in ("open set", "fresh2"):
        gains = [float(row["gain"]) for row in rows if row["family"] == family]
        called = sum(gain < NOTHING for gain in gains)
        assert f"{called} of {len(gains)}" in guide


@pytest.mark.parametrize("kind", ["coo", "dask", "dask frame", "frame", "torch"])
def test_the_input_may_be_of_any_kind(kind):
    X, _ = make_blobs(90, 5, centers=3, random_state=0)
    runs = kmeans_runs(X)
    if kind == "coo":
        assert structure_of(sp.coo_matrix(X), runs, 1).gain > 0.1
        return
    if kind == "torch":
        given = pytest.importorskip("torch", reason="needs the extra deep").tensor(X)
    else:
        given = pytest.importorskip("pandas", reason="needs the extra frames").DataFrame(X)
    if kind.startswith("dask"):
        given = pytest.importorskip("dask.dataframe", reason="needs the extra dask").from_pandas(
            given, npartitions=3
        )
    if kind == "dask":
        given = given.to_dask_array(lengths=True)
    assert structure_of(given, runs, 1).gain == structure_of(X, runs, 1).gain


@pytest.mark.parametrize("form", ["memory", "dense file", "sparse file"])
def test_the_features_of_anndata_are_the_input(form, tmp_path):
    anndata, pd = (
        pytest.importorskip("anndata", reason="needs the extra anndata"),
        pytest.importorskip("pandas", reason="needs the extra frames"),
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    embedding = rng.normal(size=(120, 3)) + 8 * np.eye(3)[np.arange(120) % 3]
    labels = {f"k{k}": KMeans(k, random_state=0).fit_predict(embedding).astype(str) for k in (2, 3)}
    cells = anndata.AnnData(
        X=sp.csr_matrix(X) if form == "sparse file" else X,
        obs=pd.DataFrame(labels, index=[f"c{i}" for i in range(120)]),
        obsm={"X_net": embedding},
    )
    source = cells
    if form != "memory":
        source = tmp_path / "cells.h5ad"
        cells.write_h5ad(source)
    found = ws.judge(source, labels="k*", n_draws=0, details=False)
    assert found.verdict.kind == "nothing to cluster"
    bare = anndata.AnnData(obs=cells.obs, obsm=dict(cells.obsm))
    assert ws.judge(bare, labels="k*", n_draws=0, details=False).structure is None


def test_features_that_cannot_be_tested_are_a_note():
    anndata, pd = (
        pytest.importorskip("anndata", reason="needs the extra anndata"),
        pytest.importorskip("pandas", reason="needs the extra frames"),
    )
    obs = pd.DataFrame({"a": list("0011"), "b": list("0111")}, index=list("wxyz"))
    cells = anndata.AnnData(
        X=np.full((4, 2), np.nan), obs=obs, obsm={"X_net": np.arange(12.0).reshape(4, 3) ** 2}
    )
    found = ws.judge(cells, labels="*", n_draws=0, details=False)
    assert found.structure is None
    assert "could not be tested: X must be finite" in " ".join(found.notes)
