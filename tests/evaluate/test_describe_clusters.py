"""A description of clusters holds true values, and rules are scored on objects left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs

import wellsep as ws
from wellsep.cli.main import main
from wellsep.evaluate.clusters import rules
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.partitions import Partitions
from wellsep.records import ClusterDescription

WINE = load_wine()
SCALED = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
THREE = (
    "00000000000000000000000000000000000000000000000000000000000112111111111110111111111211111111111"
    "01111111111111111111111211011111111222222222222222222222222222222222222222222222222"
)


@pytest.fixture(scope="module")
def wine():
    """scikit-learn's k-means on scaled columns, clusters numbered by their first object."""
    named = np.array(list(map(int, THREE)))
    return named, ws.describe_clusters(SCALED, named, WINE.feature_names, features=WINE.data)


def test_wine_has_the_values_worked_out_by_other_software(wine):
    """Sizes to exemplars by scikit-learn and SciPy, DBCV by the brute force of its tests."""
    _, found = wine
    assert found.sizes.tolist() == [62, 65, 51]
    assert found.silhouette == pytest.approx([0.343, 0.177, 0.351], abs=5e-4)
    assert found.negative == pytest.approx([0, 0.108, 0], abs=5e-4)
    assert found.dbcv == pytest.approx([-0.143, -0.469, 0.005], abs=5e-4)
    assert found.cfq == pytest.approx([0.658, 0.448, 0.708], abs=5e-4)
    assert found.nearest.tolist() == [1, 0, 1]
    assert found.gap == pytest.approx([3.60, 3.60, 3.97], abs=5e-3)
    assert found.margin == pytest.approx([1.83, 1.34, 1.98], abs=5e-3)
    assert found.borderline.tolist() == [2, 0, 1]
    assert found.medoid.tolist() == [48, 106, 148]
    assert found.doubtful[:, 0].tolist() == [38, 98, 61]


def test_wine_has_the_features_and_rules_worked_out_by_other_software(wine):
    _, found = wine
    table = found.feature_columns(most=2)
    expected = [
        ("0", "proline", 1100.23, 558.04, 3.02, 0.977),
        ("0", "flavanoids", 3.00, 1.51, 2.13, 0.941),
        ("1", "alcohol", 12.25, 13.43, -2.04, 0.075),
        ("1", "color_intensity", 2.97, 6.26, -1.94, 0.033),
        ("2", "od280/od315_of_diluted_wines", 1.70, 2.98, -3.14, 0.014),
        ("2", "flavanoids", 0.82, 2.52, -2.65, 0.018),
    ]
    rows = list(zip(*table.values(), strict=True))
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    for row, known in zip(rows, expected, strict=True):
        assert row[2:5] == pytest.approx(known[2:5], abs=6e-3)
        assert row[5] == pytest.approx(known[5], abs=6e-4)
    assert found.rules == (
        "proline > 755 and flavanoids > 2.165",
        "color_intensity <= 3.945 and proline <= 911.5",
        "od280/od315_of_diluted_wines <= 2.19 and color_intensity > 3.335",
    )


def test_words_say_what_the_numbers_say(wine):
    text = wine[1].explain()
    assert "Cluster 0 (62 objects, 35%): high proline (1100 against 558)" in text
    assert "Nearest: cluster 1." in text
    assert "p =" not in text


# --- rules ---------------------------------------------------------------------------------------


def test_a_rule_judges_only_objects_that_it_was_not_made_from(monkeypatch):
    n = 60
    values = np.column_stack([np.arange(n), np.random.default_rng(0).normal(size=(n, 2))])
    made, judged = [], []

    def grow(some, mine, rng):
        made.append(set(some[:, 0].astype(int)))
        return (rules.Condition(1, True, 0.0),)

    def note(some, conditions):
        judged.append(set(some[:, 0].astype(int)))
        return np.ones(len(some), dtype=bool)

    monkeypatch.setattr(rules, "_grow", grow)
    monkeypatch.setattr(rules, "holds", note)
    found = rules.find_rule(values, np.arange(n) % 3 == 0)
    assert [a & b for a, b in zip(made, judged, strict=False)] == [set()] * rules.FOLDS
    assert sorted(row for some in judged for row in some) == list(range(n))
    assert made[-1] == set(range(n))  # the rule that is shown is made from all objects
    assert (found.precision, found.recall) == (pytest.approx(1 / 3), 1.0)


def test_rules_of_random_labels_look_better_on_the_objects_they_were_made_from():
    here, left_out = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, inside = rng.normal(size=(120, 30)), rng.random(120) < 0.3
        found = rules.find_rule(X, inside)
        chosen = rules.holds(X, found.conditions)
        here.append(2 * (chosen & inside).sum() / (chosen.sum() + inside.sum()))
        left_out.append(2 * found.precision * found.recall / (found.precision + found.recall))
    assert np.mean(here) > np.mean(left_out) + 0.1


def test_conditions_on_one_feature_are_merged_and_rounded():
    ways = (rules.Condition(0, False, 911.54321), rules.Condition(0, False, 719.04321))
    assert rules._merged(ways) == (rules.Condition(0, False, 719.0),)


def test_a_cluster_without_a_short_rule_is_told_so():
    rng = np.random.default_rng(2)
    found = ws.describe_clusters(rng.normal(size=(120, 3)), rng.integers(0, 3, 120))
    assert "No short rule describes this cluster." in found.explain()


# --- features ------------------------------------------------------------------------------------


def test_differences_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(40, 2)).round(1), rng.integers(0, 3, 40)
    found = ws.describe_clusters(X, labels)
    for k in range(3):
        a, b = X[labels == k, 0], X[labels != k, 0]
        pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(X) - 2)
        assert found.difference[k, 0] == pytest.approx((a.mean() - b.mean()) / np.sqrt(pooled))
        larger = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
        assert found.auc[k, 0] == pytest.approx(larger)


def test_frames_keep_their_names_and_categories_become_shares():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = pd.DataFrame({"height": [0.0, 1, 2, 9, 10, 11]}, index=list("abcdef"))
    more = pd.DataFrame(
        {
            "colour": ["red", "red", "blue", "blue", "blue", "blue"],
            "tall": [False, False, False, True, True, True],
            "name": [f"n{i}" for i in range(6)],
            "day": pd.date_range("2020-01-01", periods=6),
            "one": 1.0,
        }
    )
    found = ws.describe_clusters(X, list("uuuvvv"), features=more)
    assert found.clusters == ("u", "v")
    assert "tall" in found.features and "colour = red" in found.features
    at = found.features.index("colour = red")
    assert found.inside[0, at] == pytest.approx(2 / 3)
    assert found.difference[0, at] == pytest.approx(2 / 3)
    assert found.to_frame().loc["u", "medoid"] == "b"
    assert any("day" in note for note in found.notes)
    assert any("1 feature is constant and left out: one." in note for note in found.notes)


def test_a_column_of_many_texts_is_left_out_with_a_note():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X = np.random.default_rng(4).normal(size=(60, 2))
    more = pd.DataFrame({"name": [f"n{i}" for i in range(60)], "a": X[:, 0]})
    found = ws.describe_clusters(X, np.arange(60) % 2, features=more)
    assert found.features == ("a",)
    assert any("name" in note for note in found.notes)


def test_missing_values_of_features_count_as_the_mean_and_are_told_of():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    more = pd.DataFrame({"age": [1.0, np.nan, 3.0, 4.0], "sex": ["m", "f", "f", None]})
    found = ws.describe_clusters([[0.0], [1], [5], [6]], [0, 0, 1, 1], features=more)
    # Of age 1 and the mean 8/3 inside, 3 and 4 outside; of sex one of two is m, and none of two.
    assert found.inside[0] == pytest.approx([(1 + 8 / 3) / 2, 0.5, 0.5])
    assert found.outside[0] == pytest.approx([3.5, 0.5, 0.0])
    assert any(note.startswith("Cells are missing in age and sex:") for note in found.notes)


def mixed_frame():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    rng, truth = np.random.default_rng(0), np.arange(60) % 3
    frame = pd.DataFrame({
        "beak": rng.normal(9.0 * truth, 1), "island": np.array(["A", "B", "C"])[truth],
        "sex": rng.choice(["m", "f"], 60), "tagged": rng.random(60) < 0.5,
    })  # fmt: skip
    frame.loc[3, "beak"], frame.loc[5, "sex"] = np.nan, None
    return frame, truth


def test_a_mixed_table_is_described_by_its_own_columns(recwarn):
    frame, truth = mixed_frame()
    table = ws.MixedTable(frame)
    found = ws.describe_clusters(table, truth)
    own = ws.describe_clusters(table, truth, features=frame)
    assert found.features == own.features
    assert found.features == ("beak", *(f"island = {i}" for i in "ABC"), "sex = f", "sex = m",
                              "tagged")  # fmt: skip
    np.testing.assert_allclose(found.inside, own.inside, atol=1e-12)
    assert found.silhouette == pytest.approx(
        [ws.silhouette_samples(table, truth)[truth == k].mean() for k in range(3)]
    )
    assert "often island = A (100% against 0%)" in found.explain()
    assert not recwarn.list


def test_default_indices_of_a_mixed_table_are_those_that_need_no_coordinates():
    frame, truth = mixed_frame()
    scores = ws.score_partitions(ws.MixedTable(frame), truth)
    assert scores.indices == ("silhouette", "calinski_harabasz")
    with pytest.raises(ValueError, match="must have coordinates for 'cfq'"):
        ws.score_partitions(ws.MixedTable(frame), truth, ["silhouette", "cfq"])


def test_memberships_in_a_mixed_table_raise_no_warning_of_numpy(recwarn):
    frame, truth = mixed_frame()
    # Objects on the prototype of their cluster, where a path to it has no length.
    few = ws.MixedTable(frame[["island", "sex"]])
    for table, labels in ((ws.MixedTable(frame), truth), (few, truth), (few, np.arange(60) % 4)):
        report = ws.membership_report(table, labels)
        assert not np.isnan(report.disagreements).any()
    assert not recwarn.list


def test_words_are_refused_with_the_table_that_takes_them():
    frame, truth = mixed_frame()
    with pytest.raises(TypeError, match=r"pass wellsep.MixedTable\(X\)"):
        ws.silhouette_score(frame, truth)
    with pytest.raises(ValueError, match=r"wellsep.KMedoids clusters words too"):
        ws.KMeans(3).fit(frame)


def test_clusters_made_in_other_columns_are_said_to_look_bad_in_these():
    rng, truth = np.random.default_rng(0), np.arange(90) % 3
    made_in = rng.normal(size=(90, 1)) + 9 * truth[:, None]
    others = rng.normal(size=(90, 2))
    assert any("pass those as X" in note for note in ws.describe_clusters(others, truth).notes)
    found = ws.describe_clusters(made_in, truth, features=others)
    assert not any("pass those as X" in note for note in found.notes)
    assert (found.negative == 0).all()


# --- noise, stability, bad input -----------------------------------------------------------------


def test_noise_is_counted_and_in_no_cluster():
    X, labels = make_blobs(60, centers=3, random_state=0)
    alone = ws.describe_clusters(X, labels)
    far = np.vstack([X, [[99.0, 99.0]]])
    found = ws.describe_clusters(far, [*labels, -1])
    assert (found.n_noise, found.n_objects) == (1, 61)
    assert found.share.sum() == pytest.approx(60 / 61)
    assert found.difference == pytest.approx(alone.difference)
    assert found.rules == alone.rules
    assert "1 object is noise and in no cluster." in found.explain()


def test_a_record_of_stability_is_shown():
    X, labels = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    record = ws.stability(None, X, labels, n_draws=5, n_splits=0, random_state=0)
    found = ws.describe_clusters(X, labels, stability=record)
    assert found.stability == pytest.approx(record.jaccard)
    assert found.columns()["dissolved"] == ["0 of 5"] * 3
    assert "dissolved in 0 of 5 samples" in found.explain()


def test_stability_of_other_labels_is_refused():
    X, labels = make_blobs(60, centers=3, random_state=0)
    record = ws.stability(None, X, labels, n_draws=3, n_splits=0, random_state=0)
    with pytest.raises(ValueError, match="stability must be that of these labels"):
        ws.describe_clusters(X, labels > 0, stability=record)
    with pytest.raises(TypeError, match="stability must be what wellsep.stability returns"):
        ws.describe_clusters(X, labels, stability=0.5)


def test_one_cluster_is_described_and_nothing_compared():
    found = ws.describe_clusters([[0.0, 1], [1, 2], [2, 9]], [0, 0, 0])
    assert "There is one cluster: nothing lies outside it" in found.explain()
    assert np.isnan([*found.silhouette, *found.gap, *found.outside.ravel()]).all()
    assert found.medoid.tolist() == [1]
    assert found.rules == ("",)


def test_constant_data_are_described_without_features():
    found = ws.describe_clusters(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    assert found.features == ()
    assert "2 features are constant and left out" in found.explain()
    assert "no feature stands out" in found.explain()


@pytest.mark.parametrize(
    ("X", "labels", "said"),
    [
        ([[0.0], [1], [2]], [-1, -1, -1], "labels must have at least one cluster, got noise"),
        ([[0.0]], [0], "X must have at least 2"),
        ([[0.0], [np.nan]], [0, 1], "X must be finite"),
        ([[0.0], [1]], [0, 1, 2], "labels must"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(X, labels, said):
    with pytest.raises(ValueError, match=said):
        ws.describe_clusters(X, labels)


def test_names_must_be_one_for_each_column():
    with pytest.raises(ValueError, match="feature_names must have one name per column"):
        ws.describe_clusters([[0.0, 1], [1, 2], [2, 0]], [0, 0, 1], ["a"])


# --- command and plot ----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    data, labels = tmp_path / "data.csv", tmp_path / "labels.csv"
    rows = [",".join(map(str, row)) for row in WINE.data[:, :3]]
    data.write_text("\n".join([",".join(WINE.feature_names[:3]), *rows]) + "\n")
    pairs = [f"{label},{int(label > 0)}" for label in WINE.target]
    labels.write_text("\n".join(["k3,k2", *pairs]) + "\n")
    return data, labels


def test_the_command_prints_what_the_function_finds(files, capsys):
    data, labels = map(str, files)
    assert main(["describe", data, labels, "--labels", "k3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = ws.describe_clusters(WINE.data[:, :3], WINE.target, WINE.feature_names[:3])
    assert [row["rule"] for row in shown["clusters"]] == list(found.rules)
    assert [row["size"] for row in shown["clusters"]] == found.sizes.tolist()
    assert [len(row["features"]) for row in shown["clusters"]] == [3, 3, 3]
    assert shown["clusters"][0]["features"][0]["feature"] in WINE.feature_names


def test_the_command_prints_a_table_and_writes_files(files, tmp_path, capsys):
    data, labels = map(str, files)
    target, folder = tmp_path / "clusters.csv", tmp_path / "record"
    options = ["--scale", "--labels", "k3", "-o", str(target), "--save", str(folder)]
    assert main(["describe", data, labels, *options]) == 0
    out = capsys.readouterr().out
    assert "3 clusters of 178 objects." in out and "alcohol" in out
    assert target.read_text().startswith("cluster,size,share,silhouette")
    assert ClusterDescription.load(folder).sizes.tolist() == [59, 71, 48]


def test_the_command_takes_a_saved_stability(files, tmp_path, capsys):
    data, labels = map(str, files)
    folder = str(tmp_path / "stable")
    given = ["--labels", "k2", "--scale"]
    assert main(["stability", data, labels, *given, "--draws", "3", "--save", folder]) == 0
    assert main(["describe", data, labels, *given, "--stability", folder, "--json"]) == 0
    text = capsys.readouterr().out
    assert '"stability"' in text and "of 3" in text


def test_several_clusterings_are_refused_with_their_names(files, capsys):
    assert main(["describe", *map(str, files)]) == 2
    assert "must be one clustering, got 2: 'k3', 'k2'" in capsys.readouterr().err


def test_the_command_reads_anndata(tmp_path, capsys):
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X, labels = make_blobs(60, 4, centers=3, random_state=0)
    obs = pd.DataFrame({"leiden": pd.Categorical(labels.astype(str))}, index=map(str, range(60)))
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(obs=obs, obsm={"X_pca": X}).write_h5ad(path)
    assert main(["describe", str(path), "--labels", "leiden", "--space", "X_pca", "--json"]) == 0
    assert [c["size"] for c in json.loads(capsys.readouterr().out)["clusters"]] == [20, 20, 20]


def test_the_display_shows_the_largest_differences(wine):
    pytest.importorskip("matplotlib", reason="needs matplotlib").use("Agg")
    from wellsep.plot import ClusterProfileDisplay

    display = ClusterProfileDisplay.from_result(wine[1], n_features=1)
    assert display.figure.features == ("proline", "alcohol", "od280/od315_of_diluted_wines")
    assert display.figure.values.diagonal() == pytest.approx([3.02, -2.04, -3.14], abs=6e-3)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == list(display.figure.features)
    display.figure_.clear()


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_gaps_and_features_come_in_the_unit_of_the_data(factor):
    X = np.array([[0.0, 0], [1, 0], [0, 1], [9, 9], [8, 9], [9, 8]])
    partitions = Partitions.from_labels({"good": [0, 0, 0, 1, 1, 1]})

    def described(X):
        return describe_best({"X": X}, partitions, [("good", "X")], X=X)["good"]

    expected, found = described(X), described(X * factor)
    assert found.gap / factor == pytest.approx(expected.gap)
    assert found.inside / factor == pytest.approx(expected.inside)
    assert found.difference == pytest.approx(expected.difference)
