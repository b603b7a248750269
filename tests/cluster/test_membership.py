"""membership_report lists borderline and isolated objects, and where they would fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import wellsep as ws
from wellsep.evaluate.clusters.objects import object_details, planes_between
from wellsep.partitions import encode

pytestmark = pytest.mark.filterwarnings("ignore:.*clusters have at most n_neighbors")


@pytest.fixture(scope="module")
def case():
    X, _ = make_blobs(300, 2, centers=3, cluster_std=2.0, random_state=0)
    return X, ws.KMeans(3, random_state=0).fit_predict(X)


def test_margins_are_those_of_the_index(case):
    X, labels = case
    report = ws.membership_report(X, labels)
    np.testing.assert_allclose(report.margins, ws.margins(X, labels), atol=1e-9)
    centers = np.array([[0.0, 0.0], [1.0, 5.0], [-3.0, 2.0]])
    moved = ws.membership_report(X, labels, centers=centers)
    np.testing.assert_allclose(moved.margins, ws.margins(X, labels, centers=centers), atol=1e-9)


def test_disagreements_are_those_of_local_connectivity(case):
    X, labels = case
    report = ws.membership_report(X, labels, n_neighbors=3)
    expected = ws.local_connectivity(X, labels, n_neighbors=3)
    np.testing.assert_array_equal(report.disagreements, expected.objects)
    np.testing.assert_array_equal(report.n_witnesses, expected.n_witnesses)


def test_the_rival_is_the_cluster_beyond_the_nearest_plane(case):
    X, labels = case
    report = ws.membership_report(X, labels)
    centers = np.array([X[labels == c].mean(axis=0) for c in range(3)])
    for i in range(0, 300, 17):
        distances = {
            rival: (np.sum((X[i] - centers[rival]) ** 2) - np.sum((X[i] - centers[labels[i]]) ** 2))
            / (2 * np.linalg.norm(centers[labels[i]] - centers[rival]))
            for rival in range(3)
            if rival != labels[i]
        }
        assert report.rivals[i] == min(distances, key=distances.get)


def test_the_lists_are_sorted_worst_first_and_as_long_as_asked(case):
    X, labels = case
    report = ws.membership_report(X, labels, n_worst=7)
    assert report.n_borderline > 7
    assert len(report.borderline) == 7
    assert len(report.isolated) == min(7, report.n_isolated)
    assert report.n_isolated == (report.better_cluster != labels).sum()
    assert np.all(np.diff(report.relative_margins[report.borderline]) >= 0)
    assert np.all(np.diff(report.disagreements[report.isolated]) <= 0)
    rest = np.setdiff1d(np.arange(300), report.borderline)
    assert report.relative_margins[rest].min() >= report.relative_margins[report.borderline].max()
    assert set(report.worst) == set(report.borderline) | set(report.isolated)
    assert len(report.worst) == len(set(report.worst))


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
def test_objects_at_distance_0_from_one_but_not_from_each_other_share_no_spot(order):
    distances = np.full((7, 7), 4.0)
    distances[:3, :3] = [[0, 0, 0], [0, 0, 1], [0, 1, 0]]  # 1 and 2 coincide with 0 alone
    distances[3:, 3:] = 2.0
    np.fill_diagonal(distances, 0.0)
    labels, order = np.array([1, 0, 1, 0, 0, 1, 1]), np.array([*order, 3, 4, 5, 6])
    X = ws.Distances(distances[np.ix_(order, order)])
    report = ws.membership_report(X, labels[order], n_neighbors=1)
    assert dict(zip(order.tolist(), report.better_cluster.tolist(), strict=True)) == dict(
        enumerate([1, 0, 1, 0, 0, 0, 0])
    )


def test_an_object_among_a_rivals_members_suits_the_rival():
    X = [[0.0], [1.0], [9.0], [10.0], [11.0], [9.5]]
    report = ws.membership_report(
        X, ["a", "a", "b", "b", "b", "a"], centers=[[0.5], [10.0]], n_worst=1
    )
    assert report.margins[5] == pytest.approx(5.25 - 9.5)
    assert report.better_cluster[5] == "b"
    assert report.borderline.tolist() == [5]
    assert report.reason(5).startswith("nearer to the prototype of b")
    assert report.better_cluster[:2].tolist() == ["a", "a"]
    assert "its nearest neighbours back b" in report.reason(5)
    assert "1 of 6 objects would suit another cluster better" in report.explain()


def test_hand_arithmetic_of_the_fence():
    # Prototypes 1 and 7, plane at 4: the object 3 is 1 away from it, a third of the half gap.
    report = ws.membership_report([[0.0], [0.0], [3.0], [7.0]], [0, 0, 0, 1])
    assert report.margins.tolist() == pytest.approx([4, 4, 1, 3])
    assert report.relative_margins.tolist() == pytest.approx([4 / 3, 4 / 3, 1 / 3, 1])


def test_one_cluster_has_no_fence():
    report = ws.membership_report(np.random.default_rng(0).normal(size=(30, 2)), [0] * 30)
    assert np.isnan(report.margins).all()
    assert len(report.borderline) == 0
    assert len(report.isolated) == 0
    assert (report.rivals == 0).all()


def test_clusters_far_apart_have_no_borderline_and_no_isolated_object():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 2)), np.repeat([0, 1], 150)
    X[150:, 0] += 140
    report = ws.membership_report(X, labels)
    assert report.n_borderline == report.n_isolated == len(report.worst) == 0
    assert list(report.sentences()) == [
        "0 of 300 objects would suit another cluster better; 0 lie nearer to another prototype; "
        "0 are borderline."
    ]


def test_an_object_is_borderline_in_the_tenth_next_to_the_plane():
    # Prototypes 0 and 8, plane at 4: margins 4, .44 and .36 are 1, .11 and .09 of the half gap.
    X, labels = [[0.0], [3.56], [3.64], [8.0]], [0, 0, 0, 1]
    report = ws.membership_report(X, labels, centers=[[0.0], [8.0]])
    assert report.borderline.tolist() == [2]
    assert report.reason(1) == "fits"
    assert report.reason(2) == "borderline with 1"


def test_coinciding_prototypes_are_no_rivals():
    X = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.repeat([0, 1, 2], 10)
    centers = [[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]]
    report = ws.membership_report(X, labels, centers=centers)
    assert (report.rivals[:20] == 2).all()
    assert np.isfinite(report.margins).all()


def test_noise_is_not_judged(case):
    X, labels = case
    labels = labels.copy()
    labels[:20] = -1
    report = ws.membership_report(X, labels)
    assert np.isnan(report.margins[:20]).all()
    assert (report.better_cluster[:20] == -1).all()
    assert not set(range(20)) & set(report.worst)


def test_names_of_the_objects_come_from_the_caller_or_the_frame(case):
    pd = pytest.importorskip("pandas", reason="pandas is an optional input kind")
    X, labels = case
    names = [f"object {i}" for i in range(300)]
    given = ws.membership_report(X, labels, ids=names)
    framed = ws.membership_report(pd.DataFrame(X, index=names), labels)
    assert given.columns()["id"] == framed.columns()["id"]
    assert given.columns()["id"][0].startswith("object ")
    with pytest.raises(ValueError, match=r"ids must have one entry per object \(300\), got 2"):
        ws.membership_report(X, labels, ids=["a", "b"])


def test_the_table_has_a_row_per_listed_object_or_per_object(case):
    pytest.importorskip("pandas", reason="to_frame makes a pandas frame")
    report = ws.membership_report(*case, n_worst=5)
    frame = report.to_frame()
    assert len(frame) == len(report.worst)
    assert frame.columns.tolist() == [
        *("label", "better_cluster", "margin", "relative_margin", "rival"),
        *("lcd", "n_witnesses", "reason"),
    ]  # fmt: skip
    every = report.to_frame(every=True)
    assert len(every) == 300
    assert (every["reason"] == "fits").sum() > 200


def test_the_html_escapes_names(case):
    X, labels = case
    html = ws.membership_report(X, labels, ids=["<b>"] * 300, n_worst=2)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") >= 3


def test_neighbours_know_better_than_a_wrong_label():
    # Two long clusters side by side; five objects carry the label of the other one.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [6, 0.3] + np.repeat([[0, 0], [0, 3]], 150, axis=0)
    labels = np.repeat([0, 1], 150)
    labels[:5] = 1
    report = ws.membership_report(X, labels)
    assert (report.better_cluster[:5] == 0).all()
    assert (report.better_cluster[150:] == 1).mean() > 0.95


def test_a_list_must_have_a_length(case):
    with pytest.raises(ValueError, match="n_worst must be at least 1, got 0"):
        ws.membership_report(*case, n_worst=0)


def test_margins_report_and_details_know_the_same_planes_and_coinciding_centres():
    rng = np.random.default_rng(5)
    half = rng.normal(size=(10, 3))
    twins = np.vstack([half, -half, 2 * half, -2 * half])  # two clusters with one mean, to rounding
    X = np.vstack([twins, rng.normal(size=(20, 3)) + 6, rng.normal(size=(20, 3)) - 6])
    labels = np.repeat([0, 1, 2, 3], 20)
    assert 0 < np.abs(X[:20].mean(axis=0) - X[20:40].mean(axis=0)).max() < 1e-15
    report = ws.membership_report(X, labels)
    np.testing.assert_allclose(report.margins, ws.margins(X, labels), rtol=1e-9)
    assert set(report.rivals[:40].tolist()) == {2, 3}
    clear = slice(40)  # beyond, the two that coincide are equally near
    _, rivals = planes_between(X, encode(labels))
    np.testing.assert_array_equal(rivals[clear], report.rivals[clear])


def test_without_another_cluster_there_is_no_plane():
    X = np.arange(6.0).reshape(3, 2)
    for labels in ([0, 0, 0], [-1, -1, -1]):
        assert object_details(X, encode(labels), "X").nearest.tolist() == [-1, -1, -1]


LINE = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0], [3.0], [5.4], [50.0]])
PARTLY = np.array([0, 0, 0, 1, 1, 1, -1, -1, -1])


def test_hand_arithmetic_of_where_noise_could_go():
    report = ws.membership_report(LINE, PARTLY, n_neighbors=2)
    assert report.noise.tolist() == [6, 8, 7]  # the surest first, of equals the nearest
    assert report.noise_cluster.tolist() == [0, 1, 0]
    assert report.noise_share.tolist() == [1.0, 1.0, 0.5]
    np.testing.assert_allclose(report.noise_distance, [1.0, 39.0, 3.4])
    # prototypes 1 and 10: halfway at 5.5, half their distance is 4.5
    np.testing.assert_allclose(report.noise_margin, [2.5 / 4.5, 44.5 / 4.5, 0.1 / 4.5])
    assert report.noise_columns()["id"] == [6, 8, 7]
    assert report.reason(7) == report.reason(-2) == "noise; 50% of its nearest neighbours are in 0"


def test_noise_is_counted_where_the_report_is_seen():
    report = ws.membership_report(LINE, PARTLY, n_neighbors=2)
    assert "3 objects of 9 are noise" in str(report)
    assert "3 objects of 9 are noise; 2 of them have all of their 2 nearest" in report.explain()
    assert "of 6 objects would suit another cluster better" in report.explain()
    assert report._repr_html_().count("<table>") == 2
    without = ws.membership_report(LINE[:6], PARTLY[:6], n_neighbors=2)
    assert len(without.noise) == 0
    assert "noise" not in without.explain()
    assert without._repr_html_().count("<table>") == 1


def test_noise_is_assigned_only_as_surely_as_asked():
    report = ws.membership_report(LINE, PARTLY, n_neighbors=2)
    assert report.assign_noise().tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1]
    assert report.assign_noise(0.8).tolist() == [0, 0, 0, 1, 1, 1, 0, -1, 1]
    np.testing.assert_array_equal(report.labels, PARTLY)
    with pytest.raises(ValueError, match=r"least must be at most 1\.0, got 2"):
        report.assign_noise(2)


def test_noise_that_is_a_cluster_or_many_is_not_placed():
    for noise in ("cluster", "singletons"):
        assert len(ws.membership_report(LINE, PARTLY, n_neighbors=2, noise=noise).noise) == 0


def test_hidden_labels_of_clear_clusters_are_found_again(case):
    X, truth = make_blobs(300, 2, centers=3, cluster_std=0.5, random_state=1)
    hidden = np.where(np.arange(300) % 7 == 0, -1, truth)
    report = ws.membership_report(X, hidden)
    np.testing.assert_array_equal(report.assign_noise(), truth)
    lonely = ws.membership_report(X, np.where(truth == 0, 0, -1))
    assert (lonely.noise_cluster == 0).all()
    assert np.isnan(lonely.noise_margin).all()


def assert_same_fields(given, expected):
    """Two reports or records hold the same values in every field."""
    for field in dataclasses.fields(expected):
        a, b = getattr(given, field.name), getattr(expected, field.name)
        if np.asarray(b).dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=field.name)
        else:
            np.testing.assert_array_equal(a, b, err_msg=field.name)


@pytest.mark.parametrize("form", ["square", "condensed"])
@pytest.mark.parametrize("unit", [1.0, 2.0**-300])
def test_distances_tell_what_rows_tell(form, unit):
    X, _ = make_blobs(220, 4, centers=4, cluster_std=3.0, random_state=2)
    labels = ws.KMeans(4, random_state=0).fit_predict(X)
    labels[::15] = -1
    D = ws.Distances((pdist(X) if form == "condensed" else cdist(X, X)) * unit)
    assert_same_fields(
        ws.membership_report(D, labels), _scaled(ws.membership_report(X, labels), unit)
    )
    given, expected = ws.local_connectivity(D, labels), ws.local_connectivity(X, labels)
    assert_same_fields(given, dataclasses.replace(expected, radii=expected.radii * unit))


def _scaled(report, unit):
    return dataclasses.replace(
        report, margins=report.margins * unit, noise_distance=report.noise_distance * unit
    )


def test_distances_of_a_grid_with_many_ties_and_copies_tell_what_rows_tell():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (150, 2)).astype(float)
    X[:20] = X[0]
    labels = rng.integers(0, 3, 150)
    assert_same_fields(
        ws.membership_report(ws.Distances(pdist(X)), labels), ws.membership_report(X, labels)
    )


def test_medoids_are_prototypes_of_distances_as_their_rows_are_of_rows(case):
    X, _ = case
    model = ws.KMedoids(3, random_state=0).fit(X)
    at = model.medoid_indices_
    given = ws.membership_report(ws.Distances(pdist(X)), model.labels_, centers=at)
    assert_same_fields(given, ws.membership_report(X, model.labels_, centers=X[at]))
    with pytest.raises(ValueError, match="positions of objects where X holds distances, .*medoid"):
        ws.membership_report(ws.Distances(pdist(X)), model.labels_, centers=X[at])


def test_distances_that_no_coordinates_have_give_numbers():
    rng = np.random.default_rng(1)
    D = ws.Distances(rng.uniform(0.1, 1.0, 40 * 39 // 2) ** 4, names=[f"w{i}" for i in range(40)])
    report = ws.membership_report(D, rng.integers(0, 3, 40))
    assert np.isfinite(report.disagreements).all()
    assert np.isfinite(report.margins).all()
    assert report.columns()["id"][0].startswith("w")


def test_a_mixed_table_has_members_at_the_border():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"size": [1, 2, 3, 9, 10, 5.4], "kind": list("aaabbb")})
    table = ws.MixedTable(frame)
    report = ws.membership_report(table, [0, 0, 0, 1, 1, 0], n_worst=1, n_neighbors=2)
    same = ws.membership_report(ws.Distances(np.asarray(table)), [0, 0, 0, 1, 1, 0], n_neighbors=2)
    assert report.columns()["id"] == [5]
    np.testing.assert_allclose(report.margins, same.margins)


def test_a_graph_with_unknown_pairs_has_no_members_at_the_border():
    graph = ws.Distances(kneighbors_graph(np.arange(9.0)[:, None], 3, mode="distance"))
    with pytest.raises(ValueError, match="every distance, got a graph .* absent="):
        ws.membership_report(graph, [0] * 4 + [1] * 5)


def test_details_of_a_partition_are_the_same_from_distances(case):
    X, labels = case
    assert_same_fields(
        object_details(ws.Distances(cdist(X, X)), encode(labels), "s"),
        object_details(X, encode(labels), "s"),
    )


def test_distances_larger_than_a_block_are_read_block_by_block(monkeypatch):
    X, y = make_blobs(300, 3, centers=2, random_state=0)
    D = ws.Distances(pdist(X))
    real, seen = ws.Distances.block, []

    def block(self, i, j):
        table = real(self, i, j)
        seen.append(table.size)
        return table

    monkeypatch.setattr("wellsep.compute.statistics.local_connectivity._BLOCK", 4000)
    monkeypatch.setattr("wellsep.compute.statistics.neighbour_graph.READ", 4000)
    monkeypatch.setattr(ws.Distances, "block", block)
    report = ws.membership_report(D, y)
    assert max(seen) <= 64 * 300  # at least 64 rows are read at once
    assert_same_fields(report, ws.membership_report(X, y))


@pytest.mark.parametrize("distances", [False, True])
def test_details_of_noise_alone_say_what_is_undefined(distances):
    X = np.arange(8.0)[:, None]
    space = ws.Distances(np.abs(X - X.T)) if distances else X
    details = object_details(space, encode([-1] * 8), "space")
    assert np.isnan(details.disagreements).all()
    assert any(note.startswith("Local connectivity is undefined") for note in details.notes)
