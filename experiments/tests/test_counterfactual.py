"""Report, CSVs and code of the counterfactual experiment agree; every stage runs."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import wellsep as ws
from experiments import bookkeeping
from experiments.bookkeeping import ROOT
from experiments.counterfactual import deep, deep_tables, pages, picks, run, starts, tables

FOLDER = ROOT / "experiments" / "counterfactual"
DECIMAL = re.compile(r"\d*\.\d|\d\s*%")
ORIGIN = {"commit": "0123456789", "version": ws.__version__}
MEASURED = [name for name in pages.FILES if (FOLDER / pages.FILES[name]).exists()]


@pytest.fixture(scope="module")
def results():
    return pages.read(FOLDER)


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_shows_what_the_results_hold(page, results):
    text = (FOLDER / page).read_text(encoding="utf-8")
    assert pages.fill(text, results) == text


def test_every_block_stands_in_one_of_the_pages(results):
    texts = [(FOLDER / page).read_text(encoding="utf-8") for page in pages.PAGES]
    placed = Counter(marker for text in texts for marker in re.findall(r"<!-- (\w+) -->", text))
    assert set(pages.blocks(results)) == set(placed)


def test_the_report_has_no_measured_number_outside_its_blocks():
    text = (FOLDER / "REPORT.md").read_text(encoding="utf-8")
    assert DECIMAL.findall(pages.prose(text)) == []


@pytest.mark.parametrize("name", list(pages.FILES))
def test_results_are_complete(name, results):
    assert pages.complete(results, name)


def test_trainings_are_shown_only_where_every_method_has_one(results):
    nmi = deep_tables.deep_values(results["figure24"], "nmi")
    shown = {name: {len(v) for (n, _, _), v in nmi.items() if n == name} for name, _, _ in nmi}
    assert [len(counts) for counts in shown.values()] == [1] * len(shown)
    plan = deep.Plan(FOLDER, origin=ORIGIN)
    groups = deep.paired(results["figure24"])
    whole = Counter(name for (name, _), kept in groups.items() if deep.wanted(plan) <= set(kept))
    assert {name: counts.pop() for name, counts in shown.items()} == dict(whole)


def test_the_heads_of_figure_24_say_how_many_seeds_each_set_has(results):
    groups = deep.paired(results["figure24"])
    wanted = deep.wanted(deep.Plan(FOLDER, origin=ORIGIN))
    whole = Counter(name for (name, _), kept in groups.items() if wanted <= set(kept))
    head = deep_tables.figure24(results["figure24"]).splitlines()[0]
    told = dict(re.findall(r"\| ([^|]+), (\d+) seeds", head))
    assert told == {tables.title_of(name): str(count) for name, count in whole.items()}


@pytest.fixture(scope="module")
def nmi(results):
    return deep_tables.deep_values(results["figure24"], "nmi")


@pytest.fixture(scope="module")
def verdicts(results):
    """Measure -> balance and method -> the line of the test, corrected within the measure."""
    return {
        column: {
            (line["where"], line["what"]): line
            for line in deep_tables.tested(deep_tables.deep_values(results["figure24"], column))
        }
        for column in ("nmi", *deep_tables.MEASURES)
    }


def means_of(values):
    return {name: found.mean() for name, found in values.items()}


def test_fifty_groups_of_figure_24_are_pairs_and_none_collapsed(results):
    rows = results["figure24"]
    found = Counter((row["set"], row["seed"], row["autoencoder"]) for row in rows)
    assert len(found) == len({key[:2] for key in found}) == len(deep.SETS) * 10
    assert set(found.values()) == {11}
    columns = ["nmi", "reconstruction", *deep_tables.MEASURES]
    assert np.isfinite([[row[column] for column in columns] for row in rows]).all()
    assert min(row["clusters"] for row in rows) == 5


@pytest.mark.parametrize("balance", deep.BALANCES)
def test_attract_at_weight_one_does_harm_on_every_set(balance, nmi, verdicts):
    found = deep_tables.differences(nmi, balance, "attract 1")
    assert max(means_of(found).values()) < 0
    assert verdicts["nmi"][balance, "attract 1"]["better"] == "second"
    assert verdicts["nmi"][balance, "attract 0.1"]["better"] == "second"
    higher = (np.concatenate(list(found.values())) > 0).sum()
    assert higher <= {"printed": 0, "means": 4}[balance]


def test_repel_at_weight_one_gains_less_than_seeds_differ_under_the_printed_balance(nmi, verdicts):
    found = deep_tables.differences(nmi, "printed", "repel 1")
    seeds = {name: nmi[name, "printed", deep.BASELINE].std(ddof=1) for name in found}
    assert all(0 < found[name].mean() < seeds[name] for name in deep.SETS)
    assert min((gain > 0).sum() for gain in found.values()) == 7
    assert min(found, key=lambda name: found[name].mean()) == "pendigits"
    kinds = ("nmi", "acc", "ari", "cfq_settled")
    assert [verdicts[kind]["printed", "repel 1"]["better"] for kind in kinds] == ["first"] * 4
    pooled = {m: deep_tables.pooled(nmi, "printed", m).mean() for m in ("repel 0.1", "repel 1")}
    assert pooled["repel 1"] / pooled["repel 0.1"] == pytest.approx(7, abs=0.6)


def test_usps_makes_up_most_of_what_repel_gains_under_the_librarys_balance(nmi, results):
    found = means_of(deep_tables.differences(nmi, "means", "repel 1"))
    assert found["usps_9298"] > sum(found.values()) / 2
    assert max(found["optdigits"], found["pendigits"]) < 0.005
    clusters = deep_tables.deep_values(results["figure24"], "clusters")
    assert deep_tables.pooled(clusters, "means", "repel 1").mean() < -0.5


def test_other_measures_say_of_repel_what_the_report_says(results):
    table = deep_tables.figure24_measures(results["figure24"]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    p = {
        (balance, method, column): 0.0 if "<" in cell else float(cell.split("p ")[1])
        for balance, method, *found in cells[2:]
        for column, cell in zip(deep_tables.MEASURES, found, strict=True)
    }
    repel = {key: value for key, value in p.items() if "repel" in key[1]}
    assert min(value for (balance, *_), value in repel.items() if balance == "means") > 0.05
    assert min(value for (*_, column), value in repel.items() if column == "nmi_settled") > 0.05
    assert max(p["printed", "repel 1", kind] for kind in ("acc", "ari", "cfq_settled")) <= 0.001
    attract = [v for (_, m, column), v in p.items() if "attract" in m and column == "cfq_settled"]
    assert max(attract) <= 0.001


def test_repel_at_the_default_weight_shows_no_difference(verdicts):
    assert verdicts["nmi"]["means", "repel 0.1"]["better"] == "none"
    assert verdicts["nmi"]["means", "repel 1"]["better"] == "first"


def test_kmeans_in_the_pretrained_space_is_ahead_of_every_training_on_four_sets(nmi, results):
    settled = deep_tables.deep_values(results["figure24"], "nmi_settled")
    before = {name: settled[name, "", deep.BEFORE].mean() for name in deep.SETS}
    ahead = {key for key, found in nmi.items() if key[1] and found.mean() > before[key[0]]}
    assert ahead == {("fashion_mnist_test", "means", m) for m in ("repel 0.1", "repel 1")}
    assert all(found.mean() < before[key[0]] for key, found in settled.items() if key[1])
    cfq = deep_tables.deep_values(results["figure24"], "cfq_settled")
    means = {
        key: np.mean([cfq[name, *key].mean() for name in deep.SETS])
        for key in {key[1:] for key in cfq}
    }
    rises = [value / means["", deep.BEFORE] for key, value in means.items() if key[0]]
    assert 2 < min(rises) < max(rises) < 11


def test_first_and_later_seeds_of_figure_24_agree(results):
    told = deep_tables.figure24_parts(results["figure24"])
    assert "8 of 8 verdicts above are the same" in told
    assert float(re.search(r"(\S+) after Holm", told)[1]) > 0.05
    one = [row | {"commit": "0123456789"} for row in results["figure24"]]
    assert deep_tables.figure24_parts(one) == "All rows are of one commit."


def test_the_status_in_the_readme_is_that_of_the_results(results):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Status: complete." in text
    assert [name for name in pages.FILES if not pages.complete(results, name)] == []


@pytest.mark.parametrize("name", MEASURED)
def test_every_row_names_the_commit_that_made_it(name, results):
    assert all(re.fullmatch(r"[0-9a-f]{10,}", row["commit"]) for row in results[name])


def test_no_trial_and_no_start_is_there_twice(results):
    found = Counter((r["set"], r["protocol"], r["trial"]) for r in results["table2"])
    assert set(found.values()) == {1}
    for name in ("figure23", "study", "whole", "choose"):
        found = Counter((r["set"], r["k"], r["start"], r["arm"]) for r in results[name])
        assert set(found.values()) == {1}


def test_the_protocols_of_the_poster_are_kept():
    assert picks.PROTOCOLS["classes"] == 100
    assert tuple(range(2, 13)) == picks.COUNTS
    assert len(starts.SIGNS.sets) >= 8
    assert starts.SIGNS.n_starts == 50
    assert len(deep.SETS) == 5
    assert len(deep.Plan(FOLDER, origin=ORIGIN).seeds) == 10


# Table 2 of the poster: set, then mean and standard deviation by CFQ, SIL and VRC.
PRINTED = """\
Optdigits        | .711 .118 | .725 .121 | .477 .204
Pendigits        | .641 .135 | .629 .149 | .543 .178
MNIST Embeddings | .712 .138 | .691 .174 | .542 .194
USPS             | .561 .149 | .465 .207 | .394 .179"""


def test_expected_values_are_the_posters():
    found = {}
    for line in PRINTED.splitlines():
        name, *cells = (part.strip() for part in line.split("|"))
        for index, cell in zip(("CFQ", "SIL", "VRC"), cells, strict=True):
            mean, deviation = map(float, cell.split())
            found[name, index] = (mean, deviation)
    assert len(found) == 12
    assert tables.published() == found


def test_figure_23_and_the_study_measured_the_same_runs(results):
    known = {(r["set"], r["k"], r["start"], r["arm"]): r["inertia"] for r in results["study"]}
    shared_arms = ("k-means", "k-means++", "cf-means")
    pairs = [
        (row["inertia"], known[row["set"], row["k"], row["start"], row["arm"]])
        for row in results["figure23"]
        if row["arm"] in shared_arms
    ]
    assert len(pairs) == 3 * 50 * len(starts.SIGNS.sets)
    ours, theirs = np.array(pairs).T
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("name", ["table2.png", "figure23.png", "figure24.png"])
def test_figures_are_there_and_modest(name):
    data = (FOLDER / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert 10_000 < len(data) < 200_000
    assert name in (FOLDER / "REPORT.md").read_text(encoding="utf-8")


def tiny(out):
    sizes = run.Sizes(("iris",), {"classes": 2, "seeds": 1}, 60, 60, 2, 1, embedded=True)
    plan = deep.Plan(
        out / "results_deep.csv",
        sets=("iris",),
        seeds=(0, 1),
        weights=(1.0,),
        device="cpu",
        keep=60,
        options={"preset": "small", "hidden": (8,), "n_latent": 2, "pretrain_epochs": 2}
        | {"epochs": 1},
        origin=ORIGIN,
    )
    return sizes, plan


def test_every_stage_runs_on_embedded_data_and_can_be_resumed(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the figures need the extra `plot`")
    pytest.importorskip("torch", reason="the deep stage needs the extra `deep`")
    sizes, plan = tiny(tmp_path)
    assert run.run(list(run.STAGES), sizes, plan, tmp_path, ORIGIN)
    said = capsys.readouterr().out
    assert [f"{n} of 5: {stage}" in said for n, stage in enumerate(run.STAGES, 1)] == [True] * 5
    assert {path.name for path in tmp_path.iterdir()} == {
        *pages.FILES.values(), *pages.PAGES, "table2.png", "figure23.png", "figure24.png",
    }  # fmt: skip
    assert tables.NOT_RUN not in (tmp_path / "REPORT.md").read_text(encoding="utf-8")

    for name in ("table2", "figure24"):
        path = tmp_path / pages.FILES[name]
        whole = path.read_text(encoding="utf-8")
        lines = whole.splitlines(keepends=True)
        path.write_text("".join(lines[:-1]) + lines[-1][:20], encoding="utf-8")
        assert run.run(["table2", "deep"], sizes, plan, tmp_path, ORIGIN)
        again = bookkeeping.read(path)
        assert len(again) == len(lines) - 1
        timeless = [{k: v for k, v in row.items() if k != "seconds"} for row in again]
        path.write_text(whole, encoding="utf-8")
        assert timeless == [
            {k: v for k, v in row.items() if k != "seconds"} for row in bookkeeping.read(path)
        ]


def test_trainings_of_one_seed_share_autoencoder_and_start(tmp_path):
    pytest.importorskip("torch", reason="the deep stage needs the extra `deep`")
    _, plan = tiny(tmp_path)
    assert deep.run(plan)
    groups = deep.paired(bookkeeping.read(plan.results))
    assert {key: len(kept) for key, kept in groups.items()} == {("iris", 0): 7, ("iris", 1): 7}
    found = [{row["autoencoder"] for row in kept.values()} for kept in groups.values()]
    assert [len(digests) for digests in found] == [1, 1]
    assert found[0] != found[1]


def test_rows_of_another_autoencoder_are_no_pairs():
    row = {"set": "iris", "seed": 0, "balance": "means", "autoencoder": "ae-1"}
    rows = [
        row | {"method": deep.BASELINE},
        row | {"method": "repel 1", "autoencoder": "ae-2"},
    ]
    assert set(deep.paired(rows)["iris", 0]) == {("means", "repel 1")}
    assert set(deep.paired(rows[:1])["iris", 0]) == {("means", deep.BASELINE)}


def test_an_index_picks_the_partition_it_scores_best():
    X, y = ws.load_dataset("wine", return_X_y=True, folder="")
    nmi, chosen = picks.one_trial(X, y, seed=3)
    found = {k: ws.KMeans(k, random_state=3).fit(X).labels_ for k in picks.COUNTS}
    best = max(found, key=lambda k: ws.cfq_score(X, found[k]))
    least = min(found, key=lambda k: ws.davies_bouldin_score(X, found[k]))
    assert (chosen["cfq"], chosen["davies_bouldin"]) == (best, least)
    assert nmi[best - 2] == pytest.approx(ws.nmi_score(y, found[best]))
    row = {f"nmi_{k}": v for k, v in zip(picks.COUNTS, nmi, strict=True)} | {"k_cfq": best}
    assert picks.picked([row, row | {"k_cfq": None}], "cfq")[0] == nmi[best - 2]


def test_a_trial_draws_two_to_ten_classes_and_keeps_to_the_cap():
    y = np.repeat(np.arange(10), 50)
    counts = set()
    for trial in range(60):
        rows, classes, _ = picks.sample(y, "classes", trial, 120)
        assert set(y[rows]) <= set(classes)
        assert len(rows) == min(120, 50 * len(classes))
        counts.add(len(classes))
    assert counts == set(range(2, 11))


def test_missing_results_are_said_to_be_missing():
    empty = {name: [] for name in pages.FILES}
    made = pages.blocks(empty)
    assert made.pop("status").count("not yet run") == len(pages.FILES)
    assert set(made.values()) == {tables.NOT_RUN}


def test_an_unknown_stage_is_refused(capsys):
    with pytest.raises(SystemExit):
        run.main(["table3"])
    assert "STAGE must be one of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sets", "iris,foo"], "--sets must be of"),
        (["--balances", "foo"], "--balances must be of printed, means, got foo"),
        (["--weights", "1,foo"], "must be numbers separated by commas, got 1,foo"),
    ],
)
def test_an_unknown_set_balance_or_weight_is_refused(words, told, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(["deep", "--embedded", "--out", str(tmp_path), *words])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_report_needs_results(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(["report", "--out", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert "--out must be a folder with results" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_stopped_run_says_how_it_goes_on(named, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", stop)
    monkeypatch.setattr(run.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    given = ["--out", str(tmp_path)] if named else []
    assert run.main(["table2", "--quick", "--embedded", *given]) == 130
    told = "the same command" if named else f"the same command with --out {tmp_path}"
    assert f"stopped; {told} goes on" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("trial", [0, 57])
def test_a_recorded_trial_comes_out_again(trial, results, real_data):
    asked = ("pendigits", "classes", trial)
    row = next(r for r in results["table2"] if (r["set"], r["protocol"], r["trial"]) == asked)
    data = ws.load_dataset("pendigits", flatten=True, download=False)
    rows, classes, _ = picks.sample(data.y, "classes", trial, picks.CAP)
    nmi, chosen = picks.one_trial(data.X[rows].astype(np.float64), data.y[rows], row["kmeans_seed"])
    assert " ".join(map(str, classes)) == str(row["classes"])
    assert chosen == {name: row[f"k_{name}"] for name in picks.INDICES}
    assert nmi == pytest.approx([row[f"nmi_{k}"] for k in picks.COUNTS], abs=1e-5)
