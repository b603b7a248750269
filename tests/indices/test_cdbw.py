"""CDbw: fpc's values, the paper's, and an independent spelling of both."""

from __future__ import annotations

import numpy as np
import pytest
from golden import labelled_cases, read_case, read_json
from scipy.spatial.distance import cdist

import wellsep as ws
from wellsep.compute.statistics.cluster_representatives import farthest_first, ordered_codes

# Two objects of iris tie for a representative; rounding decides, and decided otherwise there.
TIED = {("iris", "true")}
CLEAR = [case for case in labelled_cases() if case not in TIED]


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
@pytest.mark.parametrize("order", ["sorted", "first"])
def test_fpc_is_reproduced_in_either_order_of_clusters(name, labelling, order):
    case = read_case(name)
    key = {"sorted": "fpc.cdbw.sorted", "first": "fpc.cdbw.first_appearance"}[order]
    stored = case.values[labelling]["cdbw"][key]
    scores = ws.score_partitions(
        case.X, case.labels[labelling], [("cdbw", {"flavour": "fpc", "order": order})]
    )
    assert scores.values[0, 0] == pytest.approx(stored, rel=1e-10, nan_ok=True)


@pytest.mark.parametrize(("name", "labelling"), CLEAR)
def test_the_papers_definition_is_reproduced(name, labelling):
    case = read_case(name)
    expected = case.definition[labelling]["cdbw_A48"]
    assert ws.cdbw_score(case.X, case.labels[labelling]) == pytest.approx(expected, rel=1e-10)


def test_only_the_tied_case_is_left_out():
    assert set(labelled_cases()) - set(CLEAR) == TIED


def _brute(X, y, r=10):
    """Equations 37 to 45 with every loop written out."""
    parts = [X[y == k] for k in np.unique(y)]
    centres = [p.mean(axis=0) for p in parts]
    sd = [
        np.sqrt(((p - c) ** 2).sum() / max(len(p) - 1, 1))
        for p, c in zip(parts, centres, strict=True)
    ]
    reps = []
    for p, c in zip(parts, centres, strict=True):
        chosen = [p[np.argmax(cdist([c], p)[0])]]
        while len(chosen) < min(r, len(p)):
            chosen.append(p[np.argmax(cdist(p, chosen).min(axis=1))])
        reps.append(np.array(chosen))
    k, stdev = len(parts), np.mean(sd)
    dist, dens = np.full((k, k), np.inf), np.full((k, k), -np.inf)
    for i in range(k):
        for j in range(k):
            if i == j:
                continue
            D = cdist(reps[i], reps[j])
            mutual = [
                (a, D[a].argmin()) for a in range(len(D)) if D[:, D[a].argmin()].argmin() == a
            ]
            radius = (sd[i] + sd[j]) / 2
            both = np.vstack([parts[i], parts[j]])
            dist[i, j] = np.mean([D[a, b] for a, b in mutual])
            dens[i, j] = np.mean(
                [
                    D[a, b]
                    / (2 * radius)
                    * (cdist([(reps[i][a] + reps[j][b]) / 2], both) < radius).mean()
                    for a, b in mutual
                ]
            )
    intra = []
    for s in np.arange(1, 9) / 10:
        shares = [
            (cdist((1 - s) * rep + s * c, p) < stdev).mean()
            for rep, c, p in zip(reps, centres, parts, strict=True)
        ]
        intra.append(np.sum(shares) / (k * stdev))
    compactness = np.mean(intra)
    separation = dist.min(axis=1).mean() / (1 + dens.max(axis=1).mean())
    cohesion = compactness / (1 + np.abs(np.diff(intra)).sum() / 7)
    return cohesion * separation * compactness


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("r", [1, 4, 10])
def test_it_is_what_the_equations_spell_out(seed, r):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 200)
    X = rng.normal(size=(200, 3)) + 3 * rng.normal(size=(4, 3))[y]
    ours = ws.cdbw_score(X, y, n_representatives=r)
    assert ours == pytest.approx(_brute(X, y, r), rel=1e-10)


def test_clusters_can_be_numbered_by_first_appearance():
    codes = [[2, 0, -1, 2, 1, 0], [1, 1, 0, 2, -1, 0]]
    fresh = [ordered_codes(np.array(own), "first").tolist() for own in codes]
    assert fresh == [[0, 1, -1, 0, 2, 1], [0, 0, 1, 2, -1, 1]]


def test_representatives_are_chosen_farthest_first():
    X = np.array([[0.0, 0], [1, 0], [3, 0], [-4, 0], [0, 2]])
    square = (X**2).sum(axis=1)
    assert farthest_first(X, square, 10).tolist() == [3, 2, 4, 0, 1]
    assert farthest_first(X, square, 2).tolist() == [3, 2]


def test_objects_in_one_place_are_represented_once():
    X = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 5, axis=0)
    assert farthest_first(X, (X**2).sum(axis=1), 10).tolist() == [0, 5]


def test_its_unit_is_one_over_length():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 2)) + 4 * rng.normal(size=(3, 2))[y]
    ratio = ws.cdbw_score(1e4 * X, y) / ws.cdbw_score(1e6 * X, y)
    assert ratio == pytest.approx(1e2, rel=1e-3)  # not exact: 1 is added to changes of density


def test_renumbering_clusters_changes_fpcs_value_and_not_the_papers():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 2)) * (1 + y[:, None]) + 3 * rng.normal(size=(3, 2))[y]
    turned = (y + 1) % 3
    assert ws.cdbw_score(X, turned) == pytest.approx(ws.cdbw_score(X, y), rel=1e-12)
    fpc = [ws.cdbw_score(X, labels, flavour="fpc") for labels in (y, turned)]
    assert fpc[0] != pytest.approx(fpc[1], rel=1e-4)


def test_fpc_has_no_value_where_a_lone_object_is_not_the_last_cluster():
    X = np.array([[0.0, 0], [5, 0], [6, 0], [5, 1.5], [12, 3], [13, 3]])
    first, last = [0, 1, 1, 1, 2, 2], [2, 0, 0, 0, 1, 1]
    assert ws.cdbw_score(X, first) == pytest.approx(ws.cdbw_score(X, last))
    assert np.isfinite(ws.cdbw_score(X, last, flavour="fpc"))
    with pytest.raises(ws.UndefinedIndex, match="first cluster is a single location"):
        ws.cdbw_score(X, first, flavour="fpc")


def test_clusters_without_extent_leave_it_undefined():
    X = np.repeat([[3.3, 3.3], [7.1, 7.1]], 3, axis=0)  # their means are rounded
    with pytest.raises(ws.UndefinedIndex, match="single location"):
        ws.cdbw_score(X, [0, 0, 0, 1, 1, 1])


def test_two_lone_objects_beside_a_cluster_have_a_value():
    X = np.array([[0.0, 0], [9, 9], [5, 0], [6, 0], [5, 1.5]])
    assert ws.cdbw_score(X, [0, 1, 2, 2, 2]) > 0


@pytest.mark.parametrize("option", [{"flavour": "r"}, {"order": "random"}], ids=str)
def test_an_unknown_option_is_named(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be one of"):
        ws.cdbw_score(np.eye(4), [0, 0, 1, 1], **option)


def test_at_least_one_representative_is_needed():
    with pytest.raises(ValueError, match="n_representatives must be at least 1, got 0"):
        ws.cdbw_score(np.eye(4), [0, 0, 1, 1], n_representatives=0)


INTEGERS = read_json("cdbw_integers.json")["cases"]


@pytest.mark.parametrize("case", INTEGERS, ids=lambda case: case["name"])
@pytest.mark.parametrize("offset", [0, 1, 1000])
def test_whole_numbers_give_the_value_of_fpc_wherever_they_lie(case, offset):
    X = np.array(case["X"]) + offset
    assert ws.cdbw_score(X, case["y"], flavour="fpc") == pytest.approx(case["cdbw"], rel=1e-10)


def test_equal_distances_stay_equal_on_an_accelerator(monkeypatch):
    torch = pytest.importorskip("torch", reason="needs the extra deep")
    import wellsep._checks.arrays as arrays

    monkeypatch.setattr(arrays, "on_device", arrays.is_torch)
    for case in INTEGERS:
        X = torch.tensor(case["X"], dtype=torch.float64) + 1000
        value = ws.cdbw_score(X, case["y"], flavour="fpc")
        assert value == pytest.approx(case["cdbw"], rel=1e-10)
