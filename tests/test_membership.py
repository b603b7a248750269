"""membership_report lists borderline and isolated objects, and where they would fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.evaluate.details import nearest_clusters
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
    assert len(report.borderline) == len(report.isolated) == 7
    assert np.all(np.diff(report.relative_margins[report.borderline]) >= 0)
    assert np.all(np.diff(report.disagreements[report.isolated]) <= 0)
    rest = np.setdiff1d(np.arange(300), report.borderline)
    assert report.relative_margins[rest].min() >= report.relative_margins[report.borderline].max()
    assert set(report.worst) == set(report.borderline) | set(report.isolated)
    assert len(report.worst) == len(set(report.worst))


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
    assert "1 of 6 objects would suit another cluster better" in report.summary()


def test_hand_arithmetic_of_the_fence():
    # Prototypes 1 and 7, plane at 4: the object 3 is 1 away from it, a third of the half gap.
    report = ws.membership_report([[0.0], [0.0], [3.0], [7.0]], [0, 0, 0, 1])
    assert report.margins.tolist() == pytest.approx([4, 4, 1, 3])
    assert report.relative_margins.tolist() == pytest.approx([4 / 3, 4 / 3, 1 / 3, 1])


def test_one_cluster_has_no_fence():
    report = ws.membership_report(np.random.default_rng(0).normal(size=(30, 2)), [0] * 30)
    assert np.isnan(report.margins).all()
    assert len(report.borderline) == 0
    assert len(report.isolated) > 0
    assert (report.rivals == 0).all()


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
    np.testing.assert_array_equal(nearest_clusters(X, encode(labels))[clear], report.rivals[clear])


def test_without_another_cluster_there_is_no_plane():
    X = np.arange(6.0).reshape(3, 2)
    for labels in ([0, 0, 0], [-1, -1, -1]):
        assert nearest_clusters(X, encode(labels)).tolist() == [-1, -1, -1]


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
    assert "3 noise" in repr(report)
    assert "3 objects of 9 are noise; 2 of them have all of their 2 nearest" in report.summary()
    assert "of 6 objects would suit another cluster better" in report.summary()
    assert report._repr_html_().count("<table>") == 2
    without = ws.membership_report(LINE[:6], PARTLY[:6], n_neighbors=2)
    assert len(without.noise) == 0
    assert "noise" not in without.summary()
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
