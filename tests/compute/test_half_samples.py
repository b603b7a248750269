"""Half-samples score as the half-sample itself would, and one pass serves them and the scores."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from halved import score_halves
from sklearn.metrics import pairwise_distances

import wellsep as ws
from wellsep._checks.arrays import is_torch
from wellsep.compute.data.opening import open_space
from wellsep.compute.engine import kernel_choice as twins
from wellsep.compute.metrics.table import find
from wellsep.compute.statistics import distance_sums as sums
from wellsep.compute.statistics import half_samples as half_sums
from wellsep.evaluate import rank_confidence
from wellsep.evaluate.certainty.half_samples import draw_halves
from wellsep.partitions import Partitions
from wellsep.runs import Runs

scoring = importlib.import_module("wellsep.indices.scoring")

N = 151
SPECS = [
    ("silhouette", {}),
    ("silhouette", {"average": "cluster"}),
    ("silhouette", {"singleton": 1.0}),
    ("silhouette", {"metric": "sqeuclidean"}),
    ("silhouette", {"metric": "cosine"}),
    ("silhouette_cosine", {"average": "cluster"}),
    ("calinski_harabasz", {}),
    ("davies_bouldin", {}),
    ("davies_bouldin", {"q": 2}),
    ("dunn", {}),
]


def ugly(n=N, seed=0, offset=0.0, noise="exclude"):
    """Two zero rows, duplicates, noise, clusters of one and two; far away if so told."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 5
    X = rng.normal(size=(n, 4)) + 3 * rng.normal(size=(5, 4))[truth] + offset
    X[5:9] = X[5]
    X[[3, 40]] = 0.0
    labels = {
        "true": truth,
        "noisy": np.where(rng.random(n) < 0.2, -1, truth),
        "one alone": np.where(np.arange(n) == 7, 9, truth),
        "two apart": (np.arange(n) < 2).astype(int),  # absent from some halves
        "random": rng.integers(0, 11, n),
        "one cluster": np.zeros(n, int),
        "pairs": np.arange(n) // 2,
        "duplicates": np.where((np.arange(n) >= 5) & (np.arange(n) < 9), 7, truth),
    }
    return X, Partitions.from_labels(labels, noise=noise)


def on_the_halves_themselves(X, parts, spec, halves):
    values = []
    for objects in map(halves.objects, range(len(halves.chosen))):
        values.append(ws.score_partitions(X[objects], parts.take(objects), [spec]).values[:, 0])
    return np.stack(values)


def drawn(n=N, n_draws=8, n_groups=6, seed=2):
    return draw_halves(n, n_draws, n_groups, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["numpy", "float32", "tensor", "compiled", "penalize"])
@pytest.mark.parametrize(("name", "given"), SPECS)
def test_a_half_scores_as_if_it_were_all_there_is(name, given, kind, monkeypatch):
    priced = kind == "penalize" and ws.INDICES[name].price is not None
    X, parts = ugly(noise="penalize" if priced else "exclude")
    expected_of = X
    if kind == "float32":
        X = expected_of = X.astype(np.float32)
    elif kind == "tensor":
        X = pytest.importorskip("torch", reason="PyTorch is not installed").as_tensor(X)
    elif kind == "compiled":
        pytest.importorskip("numba", reason="numba is not installed")
        monkeypatch.setattr(twins, "_additions_so_far", 1e12)
    halves = drawn()
    params = ws.INDICES[name].with_params(given)
    found = score_halves(X, parts, name, params, halves)
    expected = on_the_halves_themselves(expected_of, parts, (name, given), halves)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    tolerance = 2e-4 if kind == "float32" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def beside_a_far_cluster(far):
    """Blobs, one of them far away, and partitions that keep it whole."""
    X, parts = ugly()
    X[np.arange(N) % 5 == 2] += far
    names = ("true", "noisy", "one alone", "duplicates")
    return X, parts.subset([parts.names.index(name) for name in names])


@pytest.mark.parametrize("far", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "given"), [s for s in SPECS if "cosine" not in str(s)])
def test_small_distances_of_a_half_are_not_lost_beside_a_far_cluster(name, given, dtype, far):
    X, parts = beside_a_far_cluster(far)
    X, halves = X.astype(dtype), drawn()
    found = score_halves(X, parts, name, ws.INDICES[name].with_params(given), halves)
    expected = on_the_halves_themselves(X.astype(np.float64), parts, (name, given), halves)
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype is np.float32 else 1e-6)


@pytest.mark.parametrize("far", [1e2, 1e5, 1e8])
def test_an_estimate_of_halves_has_them_too(far, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(half_sums, "SEEN", 60)  # fewer than all: in single precision on the host
    X, parts = beside_a_far_cluster(far)
    job = (parts, "silhouette", ws.INDICES["silhouette"].with_params({}), drawn())
    np.testing.assert_allclose(
        score_halves(X, *job), score_halves(torch.as_tensor(X), *job), rtol=1e-4
    )


@pytest.mark.parametrize("n_groups", [2, 6, 12, 20])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_compiled_totals_are_those_of_the_reference(n_groups, offset):
    pytest.importorskip("numba", reason="numba is not installed")
    X, parts = ugly(offset=offset)
    halves = drawn(n_groups=n_groups, n_draws=7)
    order = halves.seen
    space = open_space(X, n_jobs=1)
    task = half_sums.Task(space, parts, None)
    sums = half_sums.pair_sums_by_group(task, find("euclidean"), halves.group, n_groups)(order)
    counts = halves.chosen @ half_sums.sums_by_group(
        parts.codes, parts.n_clusters, halves.group, n_groups
    )
    draws = half_sums.Draws(halves.chosen, counts)
    assert (counts == 0).any() and (counts == 1).any()
    for edges in (np.array([0, 20]), np.array([20, N])):
        job = (space, sums, edges, draws, parts.codes[:, order].copy(), parts.offsets, 0.5)
        before = sums.copy()
        np.testing.assert_allclose(
            half_sums.compiled_widths(*job), half_sums.add_widths(*job), rtol=1e-10, atol=1e-12
        )
        np.testing.assert_array_equal(sums, before)


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_threads_do_not_change_a_bit(wanted, monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", wanted)
    monkeypatch.setattr(half_sums, "SEEN", 60)
    X, parts = ugly()
    one, two = (
        score_halves(X, parts, "silhouette", {"metric": "euclidean"}, drawn(), n_jobs=j)
        for j in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_the_objects_seen_come_in_equal_numbers_from_every_group(monkeypatch):
    halves = drawn(5000, n_groups=12)
    seen = halves.seen
    assert len(np.unique(seen)) == len(seen) == 12 * (half_sums.SEEN // 12)
    assert (np.bincount(halves.group[seen]) == half_sums.SEEN // 12).all()
    assert (np.diff(halves.group[seen]) >= 0).all()
    assert sorted(drawn(half_sums.SEEN).seen) == list(range(half_sums.SEEN))


@pytest.mark.parametrize("given", [{}, {"average": "cluster"}, {"metric": "cosine"}])
def test_a_subset_of_the_objects_tells_nearly_what_all_would(given, monkeypatch):
    rng = np.random.default_rng(3)
    n = 900
    truth = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 4)) + 2.5 * np.eye(4)[truth]
    labels = [np.where(rng.random(n) < 0.1 * j, rng.integers(0, 4, n), truth) for j in range(1, 6)]
    parts, halves = Partitions.from_labels(labels), drawn(n, 40, 12)
    params = ws.INDICES["silhouette"].with_params(given)
    exact = score_halves(X, parts, "silhouette", params, halves)
    monkeypatch.setattr(half_sums, "SEEN", 300)
    found = score_halves(X, parts, "silhouette", params, halves)
    assert not np.array_equal(found, exact)
    error = (found - exact)[:, :, None] - (found - exact)[:, None, :]
    spread = (exact[:, :, None] - exact[:, None, :]).std(axis=0)
    pair = np.triu_indices(len(labels), 1)
    assert (error.std(axis=0)[pair] < 0.35 * spread[pair]).all()
    assert (np.abs(error.mean(axis=0))[pair] < 0.2 * spread[pair]).all()


@pytest.mark.parametrize("name", ["silhouette", "silhouette_cosine"])
def test_widths_that_stay_on_an_accelerator_give_the_hosts_values(name, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(half_sums, "SEEN", 60)
    X, parts = ugly()
    job = (parts, name, ws.INDICES[name].with_params({}), drawn())
    host = score_halves(X, *job)
    monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
    there = score_halves(torch.as_tensor(X), *job)
    np.testing.assert_allclose(there, host, rtol=1e-5, atol=1e-6)  # single on the host


def made(n=240, dtype=float):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    return Runs.from_parts(
        {f"s{i}": (rng.normal(size=(n, 3)) + 4 * np.eye(3)[truth]).astype(dtype) for i in range(4)},
        {
            f"{p:.0%}": np.where(rng.random(n) < p, rng.integers(0, 3, n), truth)
            for p in (0.1, 0.2, 0.4)
        },
    )


@pytest.mark.parametrize("seen", [60, 1000])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_judgement_has_the_scores_of_score_runs_to_the_bit(seen, dtype, monkeypatch):
    monkeypatch.setattr(half_sums, "SEEN", seen)
    runs, indices = made(dtype=dtype), ["silhouette", "davies_bouldin", "dunn"]
    found, alone = ws.judge(runs, indices, n_draws=6).scores, ws.score_runs(runs, indices)
    for name in alone.indices:
        np.testing.assert_array_equal(found.values[name], alone.values[name])
    np.testing.assert_array_equal(found.dip.pvalue, alone.dip.pvalue)


@pytest.mark.parametrize("seen", [60, 1000])
def test_a_judgement_passes_once_over_each_space(seen, monkeypatch):
    monkeypatch.setattr(half_sums, "SEEN", seen)
    runs, passes, strips = made(), [], []
    whole, part = sums.strips, half_sums.pair_sums_by_group
    monkeypatch.setattr(sums, "strips", lambda *a: passes.append(1) or whole(*a))
    monkeypatch.setattr(half_sums, "pair_sums_by_group", lambda *a: strips.append(1) or part(*a))
    ws.judge(runs, n_draws=20, details=False)
    assert len(passes) == len(strips) == len(runs.spaces)


def test_scores_in_a_cache_change_neither_scores_nor_confidence(tmp_path, monkeypatch):
    monkeypatch.setattr(half_sums, "SEEN", 60)
    runs = made()
    plain = ws.judge(runs, n_draws=8)
    ws.score_runs(Runs.from_parts(dict(runs.spaces), {"10%": runs.partitions["10%"]}),
                  cache=tmp_path)  # fmt: skip
    for _ in range(2):  # one partition is known, then all are
        found = ws.judge(runs, n_draws=8, cache=tmp_path)
        np.testing.assert_allclose(
            found.scores.values["silhouette"], plain.scores.values["silhouette"], rtol=1e-12
        )
        np.testing.assert_array_equal(found.confidence.ranks, plain.confidence.ranks)


def test_record_and_explanation_state_how_many_objects_were_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(half_sums, "SEEN", 60)
    found = ws.judge(made(), n_draws=6, judge="ace")
    assert found.confidence.objects_per_draw == 30
    assert "estimated from 30 of its 120 objects" in found.explain()
    again = type(found).load(found.save(tmp_path / "all"))
    assert again.confidence.objects_per_draw == 30
    other = ws.judge(made(), "calinski_harabasz", n_draws=6)
    assert other.confidence.objects_per_draw == 120
    assert "computed anew" not in other.explain()


def test_the_first_index_decides_the_half_samples():
    runs = made()
    found = ws.judge(runs, ["calinski_harabasz", "silhouette"], n_draws=6)
    alone = ws.judge(runs, "calinski_harabasz", n_draws=6)
    np.testing.assert_array_equal(found.confidence.ranks, alone.confidence.ranks)
    np.testing.assert_array_equal(found.confidence.gap_sd, alone.confidence.gap_sd)


@pytest.mark.parametrize("index", ["silhouette", "dunn", "c_index"])
def test_half_samples_of_a_matrix_of_distances_cut_rows_and_columns(index):
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], 20)
    made = {f"s{i}": rng.normal(size=(40, 3)) + 2.0 * truth[:, None] for i in range(3)}
    parts = {"truth": truth, "random": rng.integers(0, 2, 40), "third": np.arange(40) % 3}
    options = {"judge": "ace", "dip": False, "details": False, "n_draws": 8}
    plain = ws.judge(ws.Runs.from_parts(made, parts), [index], **options)
    distances = {name: pairwise_distances(X) for name, X in made.items()}
    spec = (index, {"metric": "precomputed"})
    given = ws.judge(ws.Runs.from_parts(distances, parts), [spec], **options)
    np.testing.assert_array_equal(given.confidence.ranks, plain.confidence.ranks)
    again = rank_confidence(
        ws.Runs.from_parts(distances, parts), given.scores, given.answer, n_draws=8
    )
    np.testing.assert_array_equal(again.ranks, plain.confidence.ranks)
