"""Report, CSVs and code of the experiment on local connectivity agree; every stage runs."""

from __future__ import annotations

import re
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

import wellsep as ws
from experiments import bookkeeping
from experiments.bookkeeping import ROOT
from experiments.local_connectivity import measure, protocols, report, run, summary

FOLDER = ROOT / "experiments" / "local_connectivity"
GUIDE = ROOT / "docs" / "guides" / "local-connectivity.md"
PLAN = run.Plan()
DECIMAL = re.compile(r"\d*\.\d|\d\s*%")


@pytest.fixture(scope="module")
def results():
    return bookkeeping.read(FOLDER / "results.csv")


@pytest.fixture(scope="module")
def starts():
    return {
        name: bookkeeping.read(FOLDER / f"{name}.csv")
        for name in ("starts_paper", "starts_further", "weights")
    }


def test_the_report_shows_what_the_results_hold(results):
    text = (FOLDER / "REPORT.md").read_text(encoding="utf-8")
    assert report.fill(text, results) == text


def test_every_block_but_the_guides_stands_in_the_report(results):
    text = (FOLDER / "REPORT.md").read_text(encoding="utf-8")
    assert set(report.blocks(results)) - set(re.findall(r"<!-- (\w+) -->", text)) == {"measured"}


def test_the_guide_shows_what_the_results_hold(results):
    text = GUIDE.read_text(encoding="utf-8")
    assert "<!-- measured -->" in text
    assert report.fill(text, results) == text


def test_the_report_has_no_measured_number_outside_its_blocks():
    text = report.prose((FOLDER / "REPORT.md").read_text(encoding="utf-8"))
    assert DECIMAL.findall(text) == []


def test_box_starts_leave_avila_as_many_clusters_as_the_report_says(starts):
    rows = summary.select(starts["starts_paper"], set="Avila", starts="box")
    counts = [row[f"{method}_clusters"] for row in rows for method in ("km", "lof")]
    assert (min(counts), max(counts)) == (2, 9)
    text = (FOLDER / "REPORT.md").read_text(encoding="utf-8")
    assert "leave two to nine clusters" in text


def test_the_results_follow_from_the_single_starts(results, starts, tmp_path):
    again = summary.summarise(
        starts["starts_paper"],
        starts["starts_further"],
        starts["weights"],
        grid_seeds=PLAN.grid_seeds,
        seeds=PLAN.starts,
        sources=PLAN.further,
        control=PLAN.control,
    )
    bookkeeping.append(tmp_path / "results.csv", again)
    again = bookkeeping.read(tmp_path / "results.csv")
    keys = ("part", "set", "scaling", "starts", "method", "t", "measure", "n", "seeds", "commit")
    assert [[row[key] for key in keys] for row in again] == [
        [row[key] for key in keys] for row in results
    ]
    for column in ("value", "sd", "better", "worse", "p", "p_holm"):
        # A p-value may differ in its last digits from one release of SciPy to the next.
        assert [row[column] or 0.0 for row in again] == pytest.approx(
            [row[column] or 0.0 for row in results], rel=1e-3, abs=1e-9
        )


def test_every_planned_start_is_there_once(starts):
    found = Counter(tuple(row[key] for key in measure.KEYS) for row in starts["starts_paper"])
    wanted = {
        (title, *protocol, t, seed)
        for title, tried in PLAN.grid_seeds.items()
        for protocol in protocols.GRID
        for seed in range(
            PLAN.starts
            if protocol
            in (protocols.PREFERRED, summary.nearest(starts["starts_paper"], title, tried))
            else tried
        )
        for t in protocols.NEIGHBOURS
    }
    assert set(found) == wanted
    assert set(found.values()) == {1}
    found = Counter(tuple(row[key] for key in measure.KEYS) for row in starts["starts_further"])
    assert set(found) == {
        (source.title, source.scaling, "objects", t, seed)
        for source in (*PLAN.further, *PLAN.control)
        for seed in range(PLAN.further_starts)
        for t in protocols.NEIGHBOURS
    }
    assert set(found.values()) == {1}
    found = Counter(tuple(row[key] for key in run.WEIGHT_KEYS) for row in starts["weights"])
    assert set(found) == {
        (source.title, source.scaling, t)
        for source in (*PLAN.paper, *PLAN.further, *PLAN.control)
        for t in protocols.NEIGHBOURS
    }
    assert set(found.values()) == {1}


def test_a_hundred_starts_and_ten_further_sets_were_asked_for():
    assert PLAN.starts == 100
    assert len(PLAN.further) >= 10
    assert not {s.name for s in PLAN.further} & {s.name for s in PLAN.paper}


def test_every_start_names_the_commit_that_made_it(starts):
    rows = [row for file in starts.values() for row in file]
    assert all(re.fullmatch(r"[0-9a-f]{10,}", row["commit"]) for row in rows)


def test_expected_values_give_the_papers_improvements_but_for_one_slip():
    told = summary.published()
    assert sum(map(len, told.values())) == 78
    off = []
    for (title, method, measured), values in told.items():
        if method != "improvement %":
            continue
        for t, value in values.items():
            km, lof = (told[title, name, measured][t] for name in ("KM", "LOFKM"))
            # The paper cuts or rounds the second decimal of values with two decimals.
            if abs(100 * (km - lof) / km - value) > 0.011:
                off.append((title, measured, t, value, round(100 * (km - lof) / km, 2)))
    assert off == [("Yeast", "avg_lcd", 5, 9.01, 19.01)]


# Tables 2 and 3 of the paper: avg and max LCD, silhouette, purity, each for 3, 4 and 5 neighbours
# or one value for all three.
PRINTED = """\
Yeast KM       | .93/1.18/1.42  | 1.20/1.57/2.00 | .26         | .42
Yeast LOFKM    | .92/1.08/1.15  | 1.15/1.53/1.98 | .27/.27/.26 | .41
Wireless KM    | 1.24/1.68/2.04 | 1.32/1.79/2.24 | .40         | .93
Wireless LOFKM | 1.18/1.56/1.90 | 1.31/1.73/1.95 | .39         | .77/.78/.78
Avila KM       | 1.11/1.48/1.83 | 1.33/1.77/2.19 | .15         | .46
Avila LOFKM    | .99/1.31/1.61  | 1.32/1.80/2.19 | .18         | .45"""


def test_expected_values_are_those_of_the_paper():
    told = summary.published()
    columns = ("avg_lcd", "max_lcd", "silhouette", "purity")
    lines = [[part.strip() for part in line.split("|")] for line in PRINTED.splitlines()]
    assert len(lines) == 6
    for row, *cells in lines:
        title, method = row.split()
        for name, cell in zip(columns, cells, strict=True):
            values = [float(value) for value in cell.split("/")]
            known = list(told[title, method, name].values())
            assert set(known) == set(values)


@pytest.mark.parametrize("name", ["tables.png", "further.png"])
def test_figures_are_there_and_modest(name):
    data = (FOLDER / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert 10_000 < len(data) < 200_000
    assert name in (FOLDER / "REPORT.md").read_text(encoding="utf-8")


def test_quick_shows_every_stage_and_can_be_resumed(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figures need the extra `plot`")
    plan = run.quick(
        run.Plan(
            paper=protocols.EMBEDDED_PAPER,
            further=protocols.EMBEDDED_FURTHER,
            control=protocols.EMBEDDED_CONTROL,
        ),
        most=60,
        starts=2,
    )
    origin = {"commit": "0123456789", "version": ws.__version__}
    results = run.run(plan, tmp_path, origin)
    said = capsys.readouterr().out
    assert [f"{stage} of 4" in said for stage in (1, 2, 3, 4)] == [True] * 4
    assert {row["part"] for row in results} == {
        "grid", "weights", "preferred", "nearest", "control", "further", "across",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {
        "starts_paper.csv", "starts_further.csv", "weights.csv", "results.csv", "tables.png",
        "further.png", "REPORT.md",
    }  # fmt: skip

    paper = tmp_path / "starts_paper.csv"
    whole = paper.read_text(encoding="utf-8")
    paper.write_text(whole[: len(whole) // 2], encoding="utf-8")
    monkeypatch.setattr(run.figures, "draw", lambda *_: None)
    again = run.run(plan, tmp_path, origin)
    assert sorted(paper.read_text(encoding="utf-8").split()) == sorted(whole.split())
    assert again == results


def test_full_runs_ask_for_the_data(monkeypatch, capsys):
    monkeypatch.setattr(run, "data_folder", lambda: None)
    with pytest.raises(SystemExit):
        run.main([])
    assert "WELLSEP_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--embedded"]])
def test_a_report_needs_the_starts(more, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(["--write", "--out", str(tmp_path / "new"), *more])
    assert ended.value.code == 2
    assert "it lacks starts_paper.csv" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_stopped_run_says_how_it_goes_on(named, tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", stop)
    monkeypatch.setattr(run.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    given = ["--out", str(tmp_path)] if named else []
    assert run.main(["--quick", "--embedded", *given]) == 130
    told = "the same command" if named else f"the same command with --out {tmp_path}"
    assert f"stopped; {told} goes on" in capsys.readouterr().out


def test_lofkm_is_what_the_estimator_does():
    X = load_wine().data
    centers = protocols.first_centers(X, 3, "objects", 4)
    weights = protocols.lof_weights(X, 3, 5)
    found = protocols.settle(X, centers, weights)
    model = ws.LOFKMeans(3, n_neighbors=5, init=centers, tol=0.0).fit(X)
    assert ws.ari_score(found.labels, model.labels_) == 1.0
    assert found.centers == pytest.approx(model.cluster_centers_)


@pytest.mark.parametrize("t", [3, 5])
def test_connectivity_is_that_of_the_library(t):
    X = load_iris().data
    found = protocols.settle(X, protocols.first_centers(X, 4, "objects", 1), np.arange(1.0, 151.0))
    ours = measure.connectivity(X, found, t)
    lcd = ws.local_connectivity(X, found.labels, centers=found.centers, n_neighbors=t)
    assert ours == pytest.approx((lcd.mean, lcd.maximum, lcd.mean, lcd.objects.mean()))


def test_clusters_of_at_most_t_objects_are_left_out_where_it_says_so():
    X = np.vstack([load_iris().data, [[50.0] * 4, [50.5] * 4]])
    found = protocols.Settled(np.repeat([0, 1], [150, 2]), np.stack([X[:150].mean(0), X[150]]))
    ours = measure.connectivity(X, found, 3)
    assert ours.large == ours.maximum
    assert ours.average < ours.large


def test_empty_clusters_are_dropped_only_where_asked():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [9.0, 9.0], [9.0, 8.0], [8.0, 9.0]])
    centers = np.array([[0.0, 0.0], [9.0, 9.0], [50.0, -50.0]])
    dropped = protocols.settle(X, centers, drop=True)
    assert dropped.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert dropped.centers == pytest.approx(np.array([[1 / 3, 1 / 3], [26 / 3, 26 / 3]]))
    assert len(protocols.settle(X, centers).centers) == 3


def test_a_block_measures_what_the_public_functions_do():
    X, y = load_iris(return_X_y=True)
    (row,) = measure.measure_block(
        "Iris", X, y, protocols.PREFERRED, [7], neighbours=(4,), means=True
    )
    centers = protocols.first_centers(X, 3, "objects", 7)
    plain = ws.KMeans(3, init=centers, tol=0.0).fit(X)
    lof = ws.LOFKMeans(3, n_neighbors=4, init=centers, tol=0.0).fit(X)
    for method, model in (("km", plain), ("lof", lof)):
        labels = model.labels_
        lcd = ws.local_connectivity(X, labels, centers=model.cluster_centers_, n_neighbors=4)
        assert row[f"{method}_avg_lcd"] == pytest.approx(lcd.mean, rel=1e-5)
        assert row[f"{method}_max_lcd"] == pytest.approx(lcd.maximum, rel=1e-5)
        assert row[f"{method}_silhouette"] == pytest.approx(
            ws.silhouette_score(X, labels), rel=1e-5
        )
        assert row[f"{method}_purity"] == pytest.approx(ws.purity_score(y, labels), rel=1e-5)
        assert row[f"{method}_nmi"] == pytest.approx(ws.nmi_score(y, labels), rel=1e-5)
    assert row["km_sse"] == pytest.approx(plain.inertia_, rel=1e-5)
    about = ws.local_connectivity(X, lof.labels_, n_neighbors=4)
    assert row["lof_avg_lcd_means"] == pytest.approx(about.mean, rel=1e-5)


def test_scalings_are_what_they_say():
    X = load_iris().data
    unit, standard = protocols.scale(X, "min-max"), protocols.scale(X, "z")
    assert protocols.scale(X, "raw") is X
    assert (unit.min(axis=0) == 0.0).all()
    assert (unit.max(axis=0) == 1.0).all()
    assert standard.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert standard.std(axis=0) == pytest.approx(1.0)


def test_starts_are_where_they_say():
    X = load_iris().data
    objects, box, partition = (
        protocols.first_centers(X, 5, starts, 3) for starts in protocols.STARTS
    )
    assert all((center == X).all(axis=1).any() for center in objects)
    assert ((X.min(axis=0) <= box) & (box <= X.max(axis=0))).all()
    assert partition.mean(axis=0) == pytest.approx(X.mean(axis=0))
    assert (protocols.first_centers(X, 5, "box", 3) == box).all()


def test_an_object_left_out_is_gone():
    X, y = load_iris(return_X_y=True)
    found = protocols.load(protocols.Source("iris", "Iris", leave_out=(3,)))
    assert (found[0] == np.delete(X, 3, axis=0)).all()
    assert (found[1] == np.delete(y, 3)).all()


def test_the_object_left_out_of_avila_is_its_farthest(real_data):
    X, _ = protocols.load(protocols.PAPER[2])
    (row,) = protocols.CONTROL[0].leave_out
    assert np.linalg.norm(X - X.mean(axis=0), axis=1).argmax() == row
    assert X[row, 1] == 386.0
    assert np.delete(X[:, 1], row).max() < 50.0


def test_a_constant_feature_survives_scaling():
    X = np.column_stack([np.ones(5), np.arange(5.0)])
    for scaling in protocols.SCALINGS:
        assert np.isfinite(protocols.scale(X, scaling)).all()


@pytest.mark.slow
def test_a_cell_of_the_tables_comes_out_again_in_full(real_data, results):
    source = protocols.PAPER[1]
    X, y = protocols.load(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = measure.measure_block(
            source.title, X, y, protocols.PREFERRED, range(PLAN.starts), means=True
        )
    again = summary.means("preferred", [row | {"commit": ""} for row in rows], {})
    for row in again:
        stored = report.one(
            results,
            part="preferred",
            set=source.title,
            **{key: row[key] for key in ("method", "t", "measure", "n", "seeds")},
        )
        assert stored["value"] == pytest.approx(row["value"], rel=0.01, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("t", protocols.NEIGHBOURS)
def test_lofkm_gives_avilas_farthest_object_a_cluster_of_its_own(real_data, t):
    X, _ = protocols.load(protocols.PAPER[2])
    (row,) = protocols.CONTROL[0].leave_out
    weights = protocols.lof_weights(X, 12, t)
    for seed in range(5):
        found = protocols.settle(X, protocols.first_centers(X, 12, "objects", seed), weights)
        assert (found.labels == found.labels[row]).sum() == 1
