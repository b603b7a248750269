"""The cubic clustering criterion: SAS's printed output, NbClust's values, and its corner cases."""

from __future__ import annotations

import numpy as np
import pytest
from golden import labelled_cases, read_arrays, read_case, read_json

import wellsep as ws
from wellsep.compute.data.opening import open_space
from wellsep.compute.plan import gather
from wellsep.compute.requests import Task, want
from wellsep.indices.ccc import cubic
from wellsep.partitions import Partitions

# PROC CLUSTER, Ward, iris in millimetres: K, RSQ, ERSQ, CCC as SAS prints them.
SAS_WARD = [
    (15, 0.971, 0.958, 5.93),
    (14, 0.969, 0.955, 5.85),
    (13, 0.967, 0.953, 5.69),
    (12, 0.965, 0.950, 4.63),
    (11, 0.962, 0.946, 4.67),
    (10, 0.959, 0.942, 4.81),
    (9, 0.956, 0.936, 5.02),
    (8, 0.953, 0.930, 5.44),
    (7, 0.947, 0.921, 5.43),
    (6, 0.941, 0.911, 5.81),
    (5, 0.931, 0.895, 5.82),
    (4, 0.914, 0.872, 3.99),
    (3, 0.884, 0.827, 4.33),
    (2, 0.773, 0.697, 3.83),
]


def _parts(X, y, variant):
    partitions = Partitions.from_labels(y)
    wants = [want("within"), want("spectrum", centred=variant != "nbclust")]
    found = gather(Task(open_space(X), partitions, None), wants)
    within, spectrum = (found[w][0] for w in wants)
    return cubic(spectrum, float(within.sum()), int(partitions.n_clusters[0]), variant)


@pytest.mark.parametrize(("k", "r2", "expected_r2", "ccc"), SAS_WARD)
def test_sas_cluster_is_reproduced_in_every_printed_digit(k, r2, expected_r2, ccc):
    arrays = read_arrays("indices/sas_iris.npz")
    parts = _parts(arrays["X"], arrays[f"y__ward{k}"], "sarle")
    assert (round(parts.r2, 3), round(parts.expected_r2, 3)) == (r2, expected_r2)
    assert round(ws.ccc_score(arrays["X"], arrays[f"y__ward{k}"]), 2) == ccc


@pytest.mark.parametrize(("k", "expected_r2", "ccc"), [(2, 0.51539, 14.806), (3, 0.62728, 25.021)])
def test_sas_fastclus_is_reproduced_in_every_printed_digit(k, expected_r2, ccc):
    arrays = read_arrays("indices/sas_iris.npz")
    X, y = arrays["X"], arrays[f"y__fastclus{k}"]
    assert round(_parts(X, y, "fastclus").expected_r2, 5) == expected_r2
    assert round(ws.ccc_score(X, y, variant="fastclus"), 3) == ccc


def test_the_number_of_dimensions_jumps_where_sas_jumps():
    arrays, stored = read_arrays("indices/sas_iris.npz"), read_json("indices/sas_iris.json")
    expected = [int(stored["ward"][f"ward{k}"]["check_sarle"][3]) for k in range(2, 16)]
    ours = [_parts(arrays["X"], arrays[f"y__ward{k}"], "sarle").dimensions for k in range(2, 16)]
    assert ours == expected


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_sarles_and_fastclus_values_are_reproduced(name, labelling):
    case = read_case(name)
    X, y, stored = case.X, case.labels[labelling], case.definition[labelling]
    ours = (ws.ccc_score(X, y), ws.ccc_score(X, y, variant="fastclus"))
    assert ours == pytest.approx((stored["ccc_sarle"], stored["ccc_fastclus"]), rel=1e-8)
    parts = _parts(X, y, "sarle")
    names = ("ccc_sarle_R2", "ccc_sarle_ER2", "ccc_sarle_pstar")
    assert parts[1:] == pytest.approx([stored[n] for n in names], rel=1e-10)


NBCLUST_FAILS = {"wide_a"}  # a singular W stops it
WITH_NBCLUST = [case for case in labelled_cases() if case[0] not in NBCLUST_FAILS]


@pytest.mark.parametrize(("name", "labelling"), WITH_NBCLUST)
def test_nbclusts_values_are_reproduced(name, labelling):
    case = read_case(name)
    stored = case.values[labelling]["ccc"]
    X, y = case.X, case.labels[labelling]
    tolerance = 1e-8 if name in ("offset_a", "breast_cancer") else 1e-10
    assert _parts(X, y, "nbclust") == pytest.approx(stored["NbClust.ccc"], rel=tolerance)
    centred = ws.ccc_score(X - X.mean(axis=0), y, variant="nbclust")
    assert centred == pytest.approx(stored["NbClust.ccc_centred_input"][0], rel=1e-8)


def _blobs(seed, n=200, d=4, k=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[y], y


def test_one_cluster_has_zero():
    X, _ = _blobs(0)
    assert ws.ccc_score(X, np.zeros(len(X), int)) == 0


def test_clusters_without_extent_have_infinity():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 5, axis=0)
    assert ws.ccc_score(X, np.repeat([0, 1, 2], 5)) == np.inf


def test_n_clusters_leave_it_undefined():
    with pytest.raises(ws.UndefinedIndex, match="cluster of its own"):
        ws.ccc_score(np.eye(4), [0, 1, 2, 3])


def test_objects_in_one_place_leave_it_undefined():
    with pytest.raises(ws.UndefinedIndex, match="all objects coincide"):
        ws.ccc_score(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("column", ["constant", "copy"])
def test_a_column_that_adds_no_dimension_changes_nothing(column):
    X, y = _blobs(1)
    added = np.full((len(X), 1), 7.0) if column == "constant" else 0 * X[:, :1]
    assert ws.ccc_score(np.hstack([X, added]), y) == pytest.approx(ws.ccc_score(X, y), rel=1e-12)


def test_hundreds_of_dimensions_neither_overflow_nor_underflow():
    X, y = _blobs(2, n=900, d=700)
    values = [ws.ccc_score(X * scale, y) for scale in (1e-8, 1.0, 1e8)]
    assert np.isfinite(values).all()
    assert values == pytest.approx([values[1]] * 3, rel=1e-9)


def test_integer_weights_count_as_repetitions():
    X, y = _blobs(3)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = ws.ccc_score(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert ws.ccc_score(X, y, sample_weight=weight) == pytest.approx(repeated, rel=1e-10)


def test_uniform_noise_is_no_clustering_for_sarle_and_one_for_nbclust():
    X = np.random.default_rng(4).uniform(size=(400, 3))
    y = (X[:, 0] > 0.5).astype(int)
    assert ws.ccc_score(X, y) < 1
    assert ws.ccc_score(X, y, variant="nbclust") > 10


def test_an_unknown_variant_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="variant must be one of 'sarle', 'fastclus', 'nbclust'"):
        ws.ccc_score(np.eye(4), [0, 0, 1, 1], variant="sas")
