"""The C index: goldens, hand arithmetic, and sums that do not depend on how they are found."""

from __future__ import annotations

import numpy as np
import pytest
from golden import labelled_cases, read_case
from libraries import converter
from scipy.spatial.distance import cdist, pdist

import wellsep as ws
from wellsep._checks.arrays import is_torch
from wellsep.compute.statistics import ranked_sums as selection

CLAIMS = {
    "clusterSim.index.C": ws.c_index_score,
    "clusterCrit.C_index": ws.c_index_score,
    "NbClust.cindex": lambda X, y: ws.c_index_score(X, y, variant="nbclust"),
    "clusterSim.index.G3": lambda X, y: ws.c_index_score(X, y, variant="nbclust"),
    "NbClust.cindex_cosine": lambda X, y: ws.c_index_score(
        X, y, variant="nbclust", metric="cosine"
    ),
}


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_every_claimed_value_is_reproduced(name, labelling):
    case = read_case(name)
    X, y = case.X, case.labels[labelling]
    stored = {k: v for k, v in case.values[labelling]["c_index"].items() if isinstance(v, float)}
    assert set(stored) == set(CLAIMS)
    tolerance = 1e-8 if name.startswith("offset") else 1e-10
    ours = {software: claim(X, y) for software, claim in CLAIMS.items()}
    assert ours == pytest.approx(stored, rel=tolerance, abs=1e-13)


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_the_cosine_variant_follows_the_definition(name, labelling):
    case = read_case(name)
    expected = case.definition[labelling]["c_index_cosine"]
    ours = ws.c_index_score(case.X, case.labels[labelling], metric="cosine")
    assert ours == pytest.approx(expected, rel=1e-7 if name.startswith("offset") else 1e-9)


def test_the_hand_computes_the_same():
    X = [[0.0], [1], [5], [7], [20]]
    # within 1 + 2 = 3; smallest two 1 + 2, largest two 20 + 19
    assert ws.c_index_score(X, [0, 0, 1, 1, 2]) == pytest.approx(0, abs=1e-13)
    # within 5 + 6 = 11
    assert ws.c_index_score(X, [0, 1, 0, 1, 2]) == pytest.approx((11 - 3) / (39 - 3))
    # NbClust's: (11 - 2·min(5, 1))/(2·(6 - 1)); the singleton puts a 1 among the distances
    nbclust = ws.c_index_score(X, [0, 1, 0, 1, 2], variant="nbclust")
    assert nbclust == pytest.approx((11 - 2 * 1) / (2 * (6 - 1)))


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("variant", ["hubert-levin", "nbclust"])
def test_cosine_distances_far_from_the_origin_keep_their_digits(variant, offset, library):
    rng = np.random.default_rng(8)
    y = rng.integers(0, 5, 150)
    X = (rng.normal(size=(150, 4)) + 3 * rng.normal(size=(5, 4))[y] + offset).astype(np.float32)
    if offset == 0:
        X[:3] = 0  # at distance 1 from all others, also from each other
    unit = X.astype(np.longdouble)
    unit /= np.maximum(np.sqrt((unit**2).sum(axis=1)), 1e-300)[:, None]
    D = ((unit[:, None] - unit) ** 2).sum(axis=-1) / 2
    zero = (X == 0).all(axis=1)
    D[zero[:, None] | zero] = 1
    D = D[np.triu_indices(150, 1)].astype(float)
    within, ordered = D[(y[:, None] == y)[np.triu_indices(150, 1)]], np.sort(D)
    low, high = ordered[: len(within)].sum(), ordered[-len(within) :].sum()
    if variant == "nbclust":
        low, high = len(within) * within.min(), len(within) * within.max()
    rows = converter(library)(X)
    ours = ws.c_index_score(rows, y, metric="cosine", variant=variant)
    assert ours == pytest.approx((within.sum() - low) / (high - low), rel=1e-6)


@pytest.mark.parametrize("way", ["host", "card", "dask"])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_bins_resolve_the_directions_of_data_far_from_the_origin(offset, way, monkeypatch):
    rng = np.random.default_rng(9)
    y = rng.integers(0, 5, 250)
    X = rng.normal(size=(250, 4)) + 3 * rng.normal(size=(5, 4))[y] + offset
    if offset == 0:
        X[:2] = 0  # at distance 1 from all but each other
    y[y == 4] = -1
    sorting = ws.c_index_score(X, y, metric="cosine")
    monkeypatch.setattr(selection, "SORTABLE", 0)
    if way == "card":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        monkeypatch.setattr("wellsep._checks.arrays.on_device", is_torch)
        X = torch.asarray(X)
    if way == "dask":
        reason = "Dask is not installed"
        X = pytest.importorskip("dask.array", reason=reason).from_array(X, chunks=(60, 4))
    assert ws.c_index_score(X, y, metric="cosine") == pytest.approx(sorting, rel=1e-6)


def test_squared_distances_stay_squared():
    X, y = [[0.0], [1], [3], [10], [12]], [0, 0, 0, 1, 1]
    # within 1, 4, 9 and 4: the four smallest of all
    assert ws.c_index_score(X, y, metric="sqeuclidean") == pytest.approx(0, abs=1e-13)
    nbclust = ws.c_index_score(X, y, variant="nbclust", metric="sqeuclidean")
    assert nbclust == pytest.approx((18 - 4 * 1) / (4 * (9 - 1)))


def _brute(X, y, metric="euclidean"):
    D = cdist(X, X, metric)[np.triu_indices(len(X), 1)]
    within = (y[:, None] == y)[np.triu_indices(len(X), 1)]
    n, ordered = within.sum(), np.sort(D)
    low, high = ordered[:n].sum(), ordered[-n:].sum()
    return (D[within].sum() - low) / (high - low)


def _data(shape, n=1600):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    if shape == "outlier":
        X[0] = 1e7
    if shape == "grid":
        X = np.round(X)
    if shape == "duplicates":
        X = X[rng.integers(0, 60, n)]
    many = [rng.integers(0, k, n) for k in (2, 7, 300)] + [(X[:, 0] > 0).astype(int)]
    return X, many


@pytest.mark.parametrize("shape", ["blob", "outlier", "grid", "duplicates"])
def test_counting_in_bins_gives_what_sorting_gives(monkeypatch, shape):
    X, many = _data(shape)
    sorting = ws.score_partitions(X, many, ["c_index"]).values[:, 0]
    monkeypatch.setattr(selection, "SORTABLE", 0)
    counting = ws.score_partitions(X, many, ["c_index"]).values[:, 0]
    assert counting == pytest.approx(sorting, abs=1e-10)
    assert sorting == pytest.approx([_brute(X, y) for y in many], abs=1e-10)


@pytest.mark.parametrize("sortable", [0, 1 << 30])
def test_sums_of_the_smallest_and_largest_are_those_of_the_sorted_distances(monkeypatch, sortable):
    monkeypatch.setattr(selection, "SORTABLE", sortable)
    X = np.random.default_rng(5).normal(size=(700, 3))
    D, ordered = cdist(X, X), np.sort(pdist(X))
    counts = np.array([0, 1, 2, 1000, len(ordered) - 1, len(ordered)])
    low, high = selection.select(lambda i, j: D[i, j].copy(), None, 700, counts, 1)
    assert low == pytest.approx([ordered[:c].sum() for c in counts], rel=1e-9)
    assert high == pytest.approx([ordered[len(ordered) - c :].sum() for c in counts], rel=1e-9)


@pytest.mark.parametrize("metric", ["manhattan", "precomputed", "cosine"])
@pytest.mark.parametrize("sortable", [0, 1 << 30])
def test_other_metrics_give_the_same_by_either_way(monkeypatch, metric, sortable):
    monkeypatch.setattr(selection, "SORTABLE", sortable)
    X, many = _data("blob", n=620)
    name = {"manhattan": "cityblock", "precomputed": "euclidean"}.get(metric, metric)
    given = cdist(X, X) if metric == "precomputed" else X
    ours = [ws.c_index_score(given, y, metric=metric) for y in many]
    assert ours == pytest.approx([_brute(X, y, name) for y in many], rel=1e-9)


def test_excluded_objects_take_no_part_in_the_selection(monkeypatch):
    monkeypatch.setattr(selection, "SORTABLE", 0)
    X, many = _data("blob", n=900)
    noisy = [np.where(np.arange(900) % 4 == 0, -1, many[0]), np.where(many[0] == 1, -1, many[1])]
    ours = ws.score_partitions(X, noisy, ["c_index"]).values[:, 0]
    expected = [_brute(X[y >= 0], y[y >= 0]) for y in noisy]
    assert ours == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_nbclust_variant_of_many_partitions_equals_each_alone(metric):
    X, many = _data("blob", n=800)
    many = [np.roll(y, i) for i in range(3) for y in many]
    spec = [("c_index", {"variant": "nbclust", "metric": metric})]
    together = ws.score_partitions(X, many, spec).values[:, 0]
    alone = [ws.c_index_score(X, y, variant="nbclust", metric=metric) for y in many]
    assert together == pytest.approx(alone, rel=1e-10)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(selection, "SORTABLE", 0)
    X, many = _data("blob", n=2600)
    one = ws.score_partitions(X, many, ["c_index"], n_jobs=1).values
    three = ws.score_partitions(X, many, ["c_index"], n_jobs=3).values
    assert np.array_equal(one, three)


@pytest.mark.parametrize("variant", ["hubert-levin", "nbclust"])
@pytest.mark.parametrize("sortable", [0, 1 << 30])
def test_distances_that_are_all_equal_leave_it_undefined(monkeypatch, variant, sortable):
    monkeypatch.setattr(selection, "SORTABLE", sortable)
    with pytest.raises(ws.UndefinedIndex, match="distances .*are equal"):
        ws.c_index_score(np.eye(6), [0, 0, 0, 1, 1, 1], variant=variant)
    with pytest.raises(ws.UndefinedIndex, match="distances .*are equal"):
        ws.c_index_score(np.zeros((6, 2)), [0, 0, 0, 1, 1, 1], variant=variant)


def test_an_unknown_variant_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="variant must be one of 'hubert-levin', 'nbclust'"):
        ws.c_index_score(np.eye(4), [0, 0, 1, 1], variant="dalrymple")


def test_sparse_data_are_refused_for_the_cosine_too():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="X must be dense"):
        ws.c_index_score(sp.csr_array(np.eye(4)), [0, 0, 1, 1], metric="cosine")
