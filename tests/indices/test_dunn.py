"""Dunn's index and its generalisations: goldens, hand arithmetic, and one value by every way."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from golden import labelled_cases, read_case
from libraries import converter
from scipy.spatial.distance import cdist

import wellsep as ws
from wellsep.compute.data.opening import open_space
from wellsep.compute.plan import gather
from wellsep.compute.requests import Task, want
from wellsep.compute.statistics import extreme_pairs as extremes
from wellsep.compute.statistics import linkage_distances as linkage
from wellsep.compute.statistics.extreme_pairs import NAMES
from wellsep.partitions import encode

pytestmark = pytest.mark.filterwarnings("ignore:.*no object within the counting radius")


def _family(separation, diameter):
    return lambda X, y: ws.generalized_dunn_score(X, y, separation=separation, diameter=diameter)


DELTA = {"1": "single", "2": "complete", "3": "average", "4": "centroid"}
DIAMETER = {"1": "complete", "2": "half-average", "3": "centroid"}
PAIRS = ("12", "13", "21", "31", "33", "41", "43")
CLAIMS = {
    "NbClust.dunn": ws.dunn_score,
    "clValid.dunn": ws.dunn_score,
    "fpc.cluster.stats.dunn": ws.dunn_score,
    "clusterCrit.Dunn": ws.dunn_score,
    "genieclust.generalised_dunn_11": _family("single", "complete"),
    "permetrics.dunn_index.use_modifiedF": ws.dunn_score,
    "NbClust.dunn_cosine": lambda X, y: ws.dunn_score(X, y, metric="cosine"),
    "fpc.cluster.stats.dunn2": ws.generalized_dunn_score,
    **{f"clusterCrit.GDI{i}{j}": _family(DELTA[i], DIAMETER[j]) for i, j in PAIRS},
    **{f"genieclust.generalised_dunn_{i}{j}": _family(DELTA[i], DIAMETER[j]) for i, j in PAIRS},
}


def _stored(name, labelling):
    for group in read_case(name).values[labelling].values():
        for software, value in group.items():
            if software in CLAIMS and isinstance(value, float):
                yield software, value


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_every_claimed_value_is_reproduced(name, labelling):
    case = read_case(name)
    X, y = case.X, case.labels[labelling]
    tolerance = 1e-8 if name.startswith("offset") else 1e-10
    wrong = {
        software: (ours, value)
        for software, value in _stored(name, labelling)
        if (ours := CLAIMS[software](X, y)) != pytest.approx(value, rel=tolerance, abs=1e-13)
    }
    assert wrong == {}


def test_the_claims_meet_stored_values_in_every_software():
    met = {software for case in labelled_cases() for software, _ in _stored(*case)}
    assert met == set(CLAIMS)


# Three clusters on a line: {0, 1}, {4, 6}, {9}
LINE = np.array([[0.0], [1], [4], [6], [9]])
LINE_LABELS = [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("separation", "expected"),
    [
        ("single", 3.0),  # 1–4 and 6–9
        ("complete", 5.0),  # 4–9
        ("average", 4.0),  # (5 + 3) / 2
        ("centroid", 4.0),  # 5–9
        ("to-centroids", (5 + 3 + 4) / 3),  # 4 and 6 to 9, 9 to 5
        ("own-centroids", (0.5 + 0.5 + 0) / 3),  # 0 and 1 to 0.5, 9 to 9
        ("hausdorff", 5.0),  # 4 lies 5 from {9}, and 0 lies 4 from {4, 6}, 6 lies 5 from {0, 1}
    ],
)
def test_a_separation_is_what_the_hand_computes(separation, expected):
    value = ws.generalized_dunn_score(LINE, LINE_LABELS, separation=separation, diameter="complete")
    assert value == pytest.approx(expected / 2)


@pytest.mark.parametrize("kernels", ["1", "0"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_squared_distances_stay_squared(kernels, partitions, monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", kernels)
    spec = ("dunn", {"metric": "sqeuclidean"})
    values = ws.score_partitions(LINE, [LINE_LABELS] * partitions, [spec]).values
    assert values == pytest.approx(np.full((partitions, 1), 3.0**2 / 2**2))


@pytest.mark.parametrize(
    ("diameter", "expected"),
    [("complete", 2.0), ("average", 2.0), ("half-average", 1.0), ("centroid", 2.0)],
)
def test_a_diameter_is_what_the_hand_computes(diameter, expected):
    value = ws.generalized_dunn_score(LINE, LINE_LABELS, separation="single", diameter=diameter)
    assert value == pytest.approx(3 / expected)


@pytest.mark.parametrize(
    ("diameter", "expected"),
    [
        ("complete", 0.40180088258625385),
        ("half-average", 1.1439428732428378),
        ("centroid", 0.47229897071577476),
    ],
)
def test_own_centroids_are_what_genieclust_measures_to(diameter, expected):
    """`generalised_dunn_index(X, y, 5, j)` of genieclust 1.3.0, j = 1, 2, 3."""
    X = (np.arange(24) ** 2 % 17).reshape(12, 2).astype(float)
    y = np.repeat([0, 1, 2], [5, 4, 3])
    value = ws.generalized_dunn_score(X, y, separation="own-centroids", diameter=diameter)
    assert value == pytest.approx(expected, rel=1e-12)


def test_hausdorff_equals_scipys():
    from scipy.spatial.distance import directed_hausdorff

    X, y = _blobs(700, 3, 4, seed=1)
    parts = [X[y == k] for k in range(4)]
    expected = min(
        max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])
        for i, a in enumerate(parts)
        for b in parts[:i]
    )
    diameter = max(cdist(p, p).max() for p in parts)
    value = ws.generalized_dunn_score(X, y, separation="hausdorff", diameter="complete")
    assert value == pytest.approx(expected / diameter, rel=1e-9)


def _blobs(n, d, k, seed, spread=4.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(k, d))[y], y


def _brute(X, y, metric="euclidean"):
    D = cdist(X, X, metric)
    keep = y >= 0
    same = (y[:, None] == y) & keep[:, None] & keep
    across = (y[:, None] != y) & keep[:, None] & keep
    return D[across].min() / D[same].max()


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_one_tree_for_many_partitions_finds_what_brute_force_finds(spread, metric):
    X, y = _blobs(1300, 4, 6, seed=2, spread=spread)
    rng = np.random.default_rng(0)
    many = [y, y // 2, y // 3, *(np.where(rng.random(1300) < 0.01, 0, y) for _ in range(5))]
    many += [rng.integers(0, 3, 1300)]
    found = ws.score_partitions(X, many, [("dunn", {"metric": metric})]).values[:, 0]
    assert found == pytest.approx([_brute(X, labels, metric) for labels in many], rel=1e-9)


def test_noise_that_differs_between_partitions_is_left_out_of_each():
    X, y = _blobs(900, 3, 5, seed=3)
    rng = np.random.default_rng(1)
    shared_noise = np.where(rng.random(900) < 0.2, -1, y)
    many = [shared_noise, *(np.where(shared_noise < 0, -1, (y + i) % 4) for i in range(7))]
    many += [np.where(rng.random(900) < 0.3, -1, y) for _ in range(3)]
    found = ws.score_partitions(X, many, ["dunn"]).values[:, 0]
    assert found == pytest.approx([_brute(X, labels) for labels in many], rel=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_kernels_equal_the_reference_blocks(monkeypatch, metric):
    X, y = _blobs(1100, 5, 4, seed=4)
    many = [y, y % 2, np.where(y == 3, -1, y)]
    specs = [("dunn", {"metric": metric}), ("c_index", {"variant": "nbclust", "metric": metric})]
    specs = specs if metric != "manhattan" else specs[:1]
    fast = ws.score_partitions(X, many, specs).values
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    slow = ws.score_partitions(X, many, specs).values
    assert fast == pytest.approx(slow, rel=1e-9)
    name = {"manhattan": "cityblock"}.get(metric, metric)
    assert fast[:, 0] == pytest.approx([_brute(X, labels, name) for labels in many], rel=1e-9)


def _as(library, X):
    return converter(library)(X)


REPEATED = ["dunn", ("dunn", {"metric": "cosine"}), ("dunn", {"metric": "sqeuclidean"}),
            "generalized_dunn", ("c_index", {"variant": "nbclust"})]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("kernels", ["1", "0"])
def test_clusters_of_one_place_have_no_diameter(kernels, library, dtype, monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", kernels)
    X = np.repeat(np.random.default_rng(7).normal(size=(20, 3)), 40, axis=0).astype(dtype)
    labels = [np.repeat(np.arange(20), 40)]
    found = ws.score_partitions(_as(library, X), labels, REPEATED)
    assert np.isnan(found.values).all(), found.values
    same = ws.score_partitions(_as(library, X[:40] + 1), [np.arange(40) % 2], REPEATED)
    assert np.isnan(same.values).all(), same.values


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_reference_blocks_keep_pairs_that_products_would_cancel(library, monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    near = 2.0**-30  # beside lengths of 2⁴: its square is below the rounding of theirs
    X = np.array([[16.0, 0], [16 + near, 0], [-16, 0], [-16, 2 * near], [0, 8], [0, 8]])
    value = ws.dunn_score(_as(library, X), [0, 1, 2, 2, 3, 3])
    assert value == pytest.approx(1 / 2, rel=1e-5)  # what centring leaves of them


def test_given_distances_give_the_same_value():
    X, y = _blobs(300, 3, 3, seed=5)
    assert ws.dunn_score(cdist(X, X), y, metric="precomputed") == pytest.approx(
        ws.dunn_score(X, y), rel=1e-12
    )


def test_given_distances_that_are_not_square_are_refused():
    with pytest.raises(ValueError, match="square matrix of distances"):
        ws.dunn_score(np.zeros((3, 2)), [0, 0, 1], metric="precomputed")


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("n_partitions", [1, 9])
def test_float32_agrees_with_float64_to_five_digits(offset, n_partitions):
    X, y = _blobs(1500, 8, 5, seed=6, spread=20)
    X = (X + offset).astype(np.float32)
    many = [np.roll(y, i) if i else y for i in range(n_partitions)]
    single = ws.score_partitions(X, many, ["dunn"]).values
    double = ws.score_partitions(X.astype(np.float64), many, ["dunn"]).values
    assert single == pytest.approx(double, rel=1e-5)


def test_a_float32_tensor_agrees_with_float64_to_five_digits():
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    X, y = _blobs(600, 8, 5, seed=6, spread=20)
    X = X.astype(np.float32)
    assert ws.dunn_score(torch.asarray(X), y) == pytest.approx(
        ws.dunn_score(X.astype(np.float64), y), rel=1e-5
    )


def test_almost_parallel_rows_keep_their_cosine_distance():
    angles = np.array([0.0, 1e-7, 0.3, 0.3 + 3e-7])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    value = ws.dunn_score(X, [0, 1, 0, 1], metric="cosine")
    assert value == pytest.approx(1e-7**2 / 2 / (1 - np.cos(0.3 + 2e-7)), rel=1e-6)


def test_a_zero_row_is_at_cosine_distance_one():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.1], [0.0, 2.0], [0.1, 2.0]])
    value = ws.dunn_score(X, [0, 1, 1, 2, 2], metric="cosine")
    expected = cdist(X[1:], X[1:], "cosine")
    assert value == pytest.approx(expected[:2, 2:].min() / max(expected[0, 1], expected[2, 3]))


def test_objects_in_one_place_across_clusters_make_it_zero():
    X = np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 20, axis=0)
    y = np.arange(800) % 2
    many = [y] * 7 + [np.arange(800) // 20 % 2]
    values = ws.score_partitions(X, many, ["dunn"]).values[:, 0]
    assert (values[:7] == 0).all()
    assert values[7] == pytest.approx(_brute(X, many[7]), rel=1e-9)


@pytest.mark.parametrize("diameter", ["complete", "average", "half-average", "centroid"])
def test_clusters_without_extent_leave_it_undefined(diameter):
    X = np.repeat([[3.3, 3.3], [7.1, 7.1]], 5, axis=0)  # their means are rounded
    with pytest.raises(ws.UndefinedIndex, match="single location"):
        ws.dunn_score(X, np.repeat([0, 1], 5))
    with pytest.raises(ws.UndefinedIndex, match="single location"):
        ws.generalized_dunn_score(X, np.repeat([0, 1], 5), diameter=diameter)


def test_repeating_objects_changes_nothing():
    X, y = _blobs(200, 3, 3, seed=8)
    assert ws.dunn_score(np.repeat(X, 2, axis=0), np.repeat(y, 2)) == pytest.approx(
        ws.dunn_score(X, y), rel=1e-12
    )


def test_the_number_of_threads_changes_no_bit():
    X, y = _blobs(2600, 6, 5, seed=9)
    many = [y, *(np.roll(y, i) for i in range(1, 8))]
    one = ws.score_partitions(X, many, ["dunn"], n_jobs=1).values
    three = ws.score_partitions(X, many, ["dunn"], n_jobs=3).values
    assert np.array_equal(one, three)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_odd_partitions_among_others_disturb_none(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    many = {
        "one": np.zeros(n, int),
        "each": np.arange(n),
        "noise": np.full(n, -1),
        "rest": np.where(np.arange(n) > 0, -1, 0),
        "half": np.arange(n) % 2,
    }
    names = ["dunn", "generalized_dunn", "c_index", "s_dbw", "cdbw", "ccc", "dbcv", "cfq_mixture"]
    scores = ws.score_partitions(X, many, names)
    undefined = np.array([[scores.why(p, i) is not None for i in names] for p in scores.names])
    assert np.array_equal(undefined, np.isnan(scores.values))
    alone = ws.score_partitions(X, many["half"], names).values[0]
    assert scores.values[-1] == pytest.approx(alone, nan_ok=True)


@pytest.mark.parametrize("option", ["separation", "diameter"])
def test_an_unknown_option_is_answered_with_the_known_ones(option):
    with pytest.raises(ValueError, match=f"{option} must be one of .*'average'"):
        ws.generalized_dunn_score(LINE, LINE_LABELS, **{option: "wide"})


def test_sparse_data_are_refused_for_the_cosine_too():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="X must be dense"):
        ws.dunn_score(sp.csr_array(LINE + 1), LINE_LABELS, metric="cosine")


def _extremes(X, y):
    names = [want(name, metric="euclidean") for name in NAMES]
    task = Task(open_space(X), encode(y), None)
    found = gather(task, names)
    return [found[w][0] for w in names]


@pytest.mark.parametrize("shape", ["small", "mixed", "lonely", "noisy", "alternating"])
def test_small_clusters_that_share_blocks_have_the_extremes_of_brute_force(shape, monkeypatch):
    monkeypatch.setattr(extremes, "ROWS", 40)
    monkeypatch.setattr(extremes, "SMALL", 12)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = {
        "small": np.arange(300) // 3,
        "mixed": np.minimum(np.arange(300) // 5, 30),
        "lonely": np.where(np.arange(300) < 290, 0, np.arange(300)),
        "noisy": np.where(rng.random(300) < 0.2, -1, np.arange(300) // 4),
        "alternating": np.repeat(np.arange(40), [2, 13] * 20),
    }[shape]
    D, same = cdist(X, X), y[:, None] == y
    counted = (y >= 0)[:, None] & (y >= 0)
    off = counted & ~np.eye(300, dtype=bool)
    expected = [D[counted & ~same].min(), D[off & same].min(), D[counted & same].max()]
    np.testing.assert_allclose(_extremes(X, y), expected, rtol=1e-12)


def test_the_number_of_blocks_does_not_grow_with_the_clusters():
    n = 2500
    counts = {k: len(extremes.cut_clusters(np.sort(np.arange(n) % k))) for k in (50, 250, 1250)}
    assert max(counts.values()) <= 2 * n // extremes.ROWS
    blocks = extremes.cut_clusters(np.repeat(np.arange(40), [2, 200] * 20))
    covered = np.concatenate([np.arange(b.start, b.stop) for b in blocks])
    assert covered.tolist() == list(range(20 * 202))
    assert max(b.stop - b.start for b in blocks) <= extremes.ROWS


@pytest.mark.parametrize("shape", ["small", "mixed", "lonely", "noisy", "alternating", "large"])
def test_small_clusters_that_share_blocks_lie_apart_as_brute_force_says(shape, monkeypatch):
    for module in (extremes, linkage):
        monkeypatch.setattr(module, "ROWS", 40)
    monkeypatch.setattr(extremes, "SMALL", 12)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + 1e3
    X[:4] = X[4:8]  # clusters in the same places
    y = {
        "small": np.arange(300) // 3,
        "mixed": np.minimum(np.arange(300) // 5, 30),
        "lonely": np.where(np.arange(300) < 290, 0, np.arange(300)),
        "noisy": np.where(rng.random(300) < 0.2, -1, np.arange(300) // 4),
        "alternating": np.repeat(np.arange(40), [2, 13] * 20),
        "large": np.arange(300) % 3,
    }[shape]
    D = cdist(X, X)
    groups = [np.flatnonzero(y == k) for k in np.unique(y[y >= 0])]
    tables = [D[np.ix_(a, b)] for a, b in combinations(groups, 2)]
    expected = {
        "complete": min(t.max() for t in tables),
        "hausdorff": min(max(t.min(axis=0).max(), t.min(axis=1).max()) for t in tables),
    }
    diameter = max(D[np.ix_(g, g)].max() for g in groups)
    for separation, apart in expected.items():
        found = ws.generalized_dunn_score(X, y, separation=separation, diameter="complete")
        assert found == pytest.approx(apart / diameter, rel=1e-9)


def test_the_work_for_clusters_apart_does_not_grow_with_their_number(monkeypatch):
    products = []
    whole = linkage._tables
    monkeypatch.setattr(linkage, "_tables", lambda *a: (products.append(1), whole(*a))[1])
    X = np.random.default_rng(0).normal(size=(2500, 4))
    counts = []
    for k in (50, 250, 1250):
        products.clear()
        ws.generalized_dunn_score(X, np.arange(2500) % k, separation="hausdorff")
        counts.append(len(products))
    assert max(counts) <= (2500 // extremes.ROWS + 2) ** 2
