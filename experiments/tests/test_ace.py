"""The ACE experiment: report, CSVs, kept scores and code agree; the printed values are whole."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import wellsep as ws
from experiments.ace import evaluating, paper, quick, reporting, run, scoring, tables
from experiments.ace.archive import Entry, names, write
from experiments.ace.evaluating import experiments, kept, rows_of
from experiments.ace_variants import beating, variants
from experiments.bookkeeping import ROOT, read
from wellsep.evaluate import input_scores, rank

HERE = ROOT / "experiments" / "ace"
VARIANTS = ROOT / "experiments" / "ace_variants"
ENTRIES = experiments(HERE / "scores.zip")
KEYS = ("task", "method", "set", "index", "approach")
NUMBERS = ("r_s_nmi", "tau_b_nmi", "r_s_acc", "tau_b_acc", "regret", "best_nmi")
TEN_CUTS = ("clusters", "jule")
each_experiment = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def by_key(rows):
    return {tuple(row[key] for key in KEYS): row for row in rows}


def numbers_of(row):
    return [np.nan if row[key] in (None, "") else row[key] for key in NUMBERS]


# ---- the printed values ---------------------------------------------------------------------


def test_printed_averages_are_the_means_of_the_printed_cells():
    groups: dict[tuple, dict] = {}
    for key, row in paper.published().items():
        groups.setdefault((*key[:4], key[5]), {})[key[4]] = row
    gaps = {}
    for group, cells in groups.items():
        for statistic in ("r_s", "tau_b"):
            values = {name: cell[statistic] for name, cell in cells.items()}
            printed = values.pop("Average", None)
            own = [value for value in values.values() if value is not None]
            if printed is not None:
                gaps[(*group, statistic)] = abs(np.mean(own) - printed)
    assert len(gaps) > 1000
    assert max(gaps.values()) < 0.0101  # cells and means are both rounded to two digits


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("tuning", "jule", "calinski_harabasz", "ace", "CMU-PIE", "nmi"), (0.98, 0.90, None)),
        (("tuning", "depict", "silhouette", "raw", "CMU-PIE", "nmi"), (-0.21, -0.12, None)),
        (("clusters", "jule", "silhouette_cosine", "ace", "COIL-100", "nmi"), (0.46, 0.33, 180)),
        (("clusters", "depict", "davies_bouldin", "ace", "Average", "nmi"), (0.82, 0.75, None)),
        (("checkpoints", "deepcluster", "silhouette", "paired", "ImageNet-val", "acc"),
         (-0.74, -0.56, None)),
        (("tuning", "jule", "davies_bouldin", "ace, dbscan .1", "COIL-100", "nmi"),
         (-0.48, -0.34, None)),
    ],
)  # fmt: skip
def test_a_printed_cell_is_what_the_paper_prints(key, value):
    row = paper.published()[key]
    assert (row["r_s"], row["tau_b"], row["k"]) == value


def test_every_table_from_1_to_30_but_the_list_of_sets_is_transcribed():
    assert {row["table"] for row in read(HERE / "expected.csv")} == set(range(1, 31)) - {3}


# ---- what is kept, and what follows from it -------------------------------------------------


def test_some_experiments_are_kept():
    assert ENTRIES


@each_experiment
def test_what_is_kept_of_an_experiment_is_small_and_whole(entry):
    one = kept(entry)
    n = len(one.scores.partitions)
    assert set(one.labels) == set(paper.INDICES)
    assert one.scores.is_paired and one.scores.dip.pvalue.shape == (n,)
    assert set(one.screens) == set(scoring.REDUCTIONS)
    assert len(scoring.read_labels(entry)) == n
    assert max(entry.sizes().values()) < 600_000


def test_sampled_objects_of_a_set_take_less_than_a_megabyte():
    sizes: dict[str, int] = {}
    for entry in ENTRIES:
        name = paper.split(entry.name)[2]
        sizes[name] = sizes.get(name, 0) + entry.sizes()["sample.npz"]
    assert max(sizes.values()) < 1_000_000


@each_experiment
def test_silhouette_results_follow_from_the_kept_scores(entry):
    one = kept(entry)
    label = one.labels["silhouette"]
    stored = by_key(read(HERE / "results.csv"))
    answer = ws.ace(one.scores, index=label)
    found = {
        "ace": answer.scores,
        "pooled": answer.baselines["mean_admitted"],
        "paired": answer.baselines["own_space"],
    }
    key = (*paper.split(entry.name), "silhouette")
    ours = [
        evaluating.correlation(found[way], one.truth["nmi"]) for way in ("ace", "pooled", "paired")
    ]
    theirs = [
        (stored[(*key, way)]["r_s_nmi"], stored[(*key, way)]["tau_b_nmi"])
        for way in ("ace", "pooled", "paired")
    ]
    np.testing.assert_allclose(ours, theirs, atol=6e-5)


def test_agreement_of_the_library_gives_the_same_correlations():
    entry = ENTRIES[0]
    one = kept(entry)
    labels = scoring.read_labels(entry)
    truth = next(iter(labels.values()))  # any classes do: both sides see the same
    answer = ws.ace(one.scores, index=one.labels["silhouette"])
    found = ws.agreement(rank(answer), labels, truth)
    nmi = np.array([ws.nmi_score(truth, labels[name]) for name in one.scores.partitions])
    expected = evaluating.correlation(answer.scores, nmi)
    ours = [found.correlations["ace"][f"{kind}_nmi"] for kind in ("spearman", "kendall")]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_spaces_with_the_same_scores_are_one_space():
    rows = np.array([[1.0, 2.0, np.nan], [1.0 + 1e-12, 2.0, np.nan], [1.0, 2.1, np.nan]])
    scores = ws.Scores.from_matrix(rows, index="silhouette", dip_pvalues=np.zeros(3))
    assert evaluating.distinct_spaces(scores) == 2


def test_results_cover_every_kept_experiment_and_no_other():
    named = {(r["task"], r["method"], r["set"]) for r in read(HERE / "results.csv")}
    assert named == {paper.split(entry.name) for entry in ENTRIES}


def test_results_carry_seeds_and_commit():
    rows = read(HERE / "results.csv")
    assert all(row["commit"] not in ("", "unknown") and row["seeds"] is not None for row in rows)


@pytest.mark.slow
@each_experiment
def test_all_results_follow_from_the_kept_scores(entry):
    stored = by_key(read(HERE / "results.csv"))
    fresh = by_key(rows_of(kept(entry)))
    own = {key for key in stored if key[:3] == paper.split(entry.name)}
    assert set(fresh) == own
    for key, row in fresh.items():
        np.testing.assert_allclose(numbers_of(row), numbers_of(stored[key]), atol=1.1e-4)


@pytest.mark.slow
def test_nmi_and_accuracy_follow_from_the_kept_labels(real_data):
    wrong = []
    for entry in ENTRIES:
        truth = ws.load_dataset(paper.split(entry.name)[2], flatten=True).y
        labels = scoring.read_labels(entry)
        one = kept(entry)
        found = [ws.nmi_score(truth, labels[name]) for name in one.scores.partitions]
        if not np.allclose(found, one.truth["nmi"], atol=1e-6):
            wrong.append(entry.name)
    assert wrong == []


# ---- reports --------------------------------------------------------------------------------


def test_the_report_is_what_the_csvs_say():
    text = (HERE / "REPORT.md").read_text(encoding="utf-8")
    assert reporting.report_text(text, HERE) == text


def test_the_tables_are_what_the_csvs_say():
    numbers = tables.Numbers.read(HERE / "results.csv")
    assert tables.all_tables(numbers) == (HERE / "TABLES.md").read_text(encoding="utf-8")


def test_a_report_can_be_written_before_anything_was_run(tmp_path):
    text = (HERE / "REPORT.md").read_text(encoding="utf-8")
    empty = reporting.report_text(text, tmp_path)
    assert reporting.NOTHING in empty


def test_every_number_in_the_reports_prose_stands_in_one_of_its_tables():
    text = (HERE / "REPORT.md").read_text(encoding="utf-8")
    blocks = reporting.blocks(HERE)
    for marker in blocks:
        before, rest = text.split(f"<!-- {marker} -->")
        text = before + rest.split(f"<!-- /{marker} -->")[1]
    levels = {".005", ".01", ".02", ".05", ".0625", ".10"}  # of tests and margins, not results
    by_hand = re.findall(r"^\|.*", text, re.MULTILINE)  # tables of studies that keep no CSV
    prose = re.sub(r"^\|.*", "", text, flags=re.MULTILINE)
    told = set(re.findall(r"(?<![\w.])[−+]?\.\d+", prose)) - levels
    shown = "\n".join([*blocks.values(), *by_hand])
    assert {number for number in told if number.lstrip("+") not in shown} == set()


def mean_gain(numbers, task, method, name, other):
    """Mean r_s with NMI that ACE has over another way of scoring, over the four main indices."""
    at = [(task, method, index) for index in paper.MAIN]
    gaps = [
        numbers.our(*key, "ace", name, "nmi")[0] - numbers.our(*key, other, name, "nmi")[0]
        for key in at
    ]
    return float(np.mean(gaps))


def test_ace_is_ahead_of_pooled_scores_on_the_three_sets_of_six_that_the_report_names():
    numbers = tables.Numbers.read(HERE / "results.csv")
    gains = {
        (method, name): mean_gain(numbers, "tuning", method, name, "pooled")
        for method in ("jule", "depict")
        for name in numbers.sets("tuning", method)
    }
    ahead = {name for (_, name), gain in gains.items() if gain > 0}
    assert len(gains) == 6 and ahead == {"CMU-PIE", "COIL-20", "COIL-100"}
    rest = [gains["jule", name] for name in ("CMU-PIE", "COIL-20", "UMist")]
    assert abs(np.mean(rest)) < 0.05 < gains["jule", "COIL-100"]


def test_paired_scores_beat_ace_by_all_main_indices_on_umist_and_by_one_in_the_mean():
    numbers = tables.Numbers.read(HERE / "results.csv")
    umist = [
        numbers.our("tuning", "jule", index, "paired", "UMist", "nmi")[0]
        - numbers.our("tuning", "jule", index, "ace", "UMist", "nmi")[0]
        for index in paper.MAIN
    ]
    means = {
        index: [
            numbers.averages("tuning", "jule", index, way, "nmi")["ours"][0]
            for way in ("paired", "ace")
        ]
        for index in paper.MAIN
    }
    assert min(umist) > 0
    assert [i for i, (paired, ace) in means.items() if paired > ace] == ["davies_bouldin"]


def test_checkpoints_rank_the_ways_of_scoring_as_the_report_says():
    numbers = tables.Numbers.read(HERE / "results.csv")

    def r(measure, way, index):
        at = ("checkpoints", "deepcluster", index, way, "FashionMNIST-test", measure)
        return numbers.our(*at)[0]

    behind = {
        (measure, way): {i for i in paper.MAIN if r(measure, "ace", i) < r(measure, way, i)}
        for measure, way in (("nmi", "pooled"), ("nmi", "raw"), ("acc", "paired"))
    }
    but_one = set(paper.MAIN) - {"davies_bouldin"}
    assert behind["nmi", "pooled"] == behind["acc", "paired"] == but_one
    assert behind["nmi", "raw"] == set(paper.MAIN)


def test_silhouettes_choose_the_numbers_of_clusters_that_the_report_names():
    numbers = tables.Numbers.read(HERE / "results.csv")
    wanted = {"USPS": {"10"}, "CMU-PIE": {"70"}, "COIL-20": {"40"}, "COIL-100": {"200"}}
    found = {
        name: {
            numbers.chosen("clusters", "jule", index, "ace", name)[0]
            for index in ("silhouette", "silhouette_cosine")
        }
        for name in wanted
    }
    assert found == wanted


def test_jules_numbers_of_clusters_share_the_spaces_that_the_report_says_they_share():
    rows = read(HERE / "results.csv")
    found = {r["set"]: r["n_distinct"] for r in rows if (r["task"], r["method"]) == TEN_CUTS}
    assert found == {
        "coil100_32": 2,
        "cmu_pie_pose27": 8,
        "umist_112x92": 8,
        "coil20_32": 10,
        "usps_11000": 10,
    }


def test_numbers_of_clusters_have_a_seed_each_where_the_report_says_so():
    rows = read(HERE / "results.csv")
    many = {(r["task"], r["method"], r["set"]) for r in rows if len(str(r["seeds"]).split()) == 10}
    assert many == {(*TEN_CUTS, "coil20_32"), (*TEN_CUTS, "usps_11000")}


def test_one_cell_puts_ace_behind_pooled_scores_in_jules_numbers_of_clusters():
    numbers = tables.Numbers.read(HERE / "results.csv")

    def r(index, way, name):
        return numbers.our(*TEN_CUTS, index, way, name, "nmi")[0]

    gains = {
        (name, index): r(index, "ace", name) - r(index, "pooled", name)
        for name in numbers.sets(*TEN_CUTS)
        for index in paper.MAIN
    }
    assert len(gains) == 20 and np.mean(list(gains.values())) < 0
    worst = min(gains, key=gains.get)
    assert worst == ("USPS", "davies_bouldin")
    del gains[worst]
    assert np.mean(list(gains.values())) > 0


def test_davies_bouldin_on_usps_is_answered_by_the_runs_for_many_clusters():
    one = kept(Entry(HERE / "scores.zip", "clusters-jule-usps_11000"))
    answer = ws.ace(one.scores, index=one.labels["davies_bouldin"])
    told = answer.explain()
    names = one.scores.partitions
    order = [names[i] for i in np.argsort(-answer.scores)]
    assert "They form 2 groups of 4 and 3 spaces." in told
    winning = told.split(" wins: ")[1].split("\n")[0]
    assert set(re.findall(r"n_clusters=(\d+)", winning)) == {"20", "25", "35", "45"}
    assert order.index("n_clusters=10") == len(names) - 2


def test_paired_silhouettes_are_ahead_of_ace_on_coil_20_and_behind_in_the_mean():
    numbers = tables.Numbers.read(HERE / "results.csv")
    for index in ("silhouette", "silhouette_cosine"):
        paired, ace = (
            numbers.our(*TEN_CUTS, index, way, "COIL-20", "nmi")[0] for way in ("paired", "ace")
        )
        means = [
            numbers.averages(*TEN_CUTS, index, way, "nmi")["ours"][0] for way in ("paired", "ace")
        ]
        assert paired > ace and means[0] < means[1]


def test_one_run_alone_ended_with_fewer_clusters_than_asked_for():
    fewer = [
        (entry.name, row["run"])
        for entry in ENTRIES
        for row in kept(entry).runs
        if row["n_found"] < row["n_clusters"]
    ]
    assert fewer == [("clusters-depict-usps_11000", "n_clusters=40")]


def test_every_figure_of_the_report_is_there():
    text = (HERE / "REPORT.md").read_text(encoding="utf-8")
    named = [part.split(")")[0] for part in text.split("](figures/")[1:]]
    assert named and all((HERE / "figures" / name).is_file() for name in named)


def test_columns_that_are_not_to_be_had_stay_empty():
    lines = (HERE / "TABLES.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|  | USPS | YTF | FRGC"))
    cells = [line.split("|")[3:5] for line in lines[start + 2 : start + 20]]
    assert {cell.strip() for pair in cells for cell in pair} == {""}


# ---- variants of ACE ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    quality = np.linspace(0, 1, 8)
    rows = [quality + 0.1 * rng.normal(size=8) for _ in range(5)]
    rows += [-quality + 0.1 * rng.normal(size=8) - 1 for _ in range(3)]
    scores = ws.Scores.from_matrix(np.array(rows), index="silhouette", dip_pvalues=np.zeros(8))
    return variants.Case("deep", "x", "x", {"silhouette": (scores, "silhouette")}, {}, quality)


def test_page_rank_weights_are_those_of_ace(case):
    found = {(f, v): s for f, v, s in variants.variants(case, "silhouette")}
    assert found["weights", "PageRank"] is found["pooling", "ACE"]
    np.testing.assert_allclose(found["weights", "HITS"], found["weights", "eigenvector"], atol=1e-9)


def test_shrinkage_reaches_from_ace_to_pooled(case):
    found = {(f, v): s for f, v, s in variants.variants(case, "silhouette")}
    for title, other in (("ACE", ("pooling", "ACE")), ("pooled", ("pooling", "pooled values"))):
        r = np.corrcoef(found["shrinkage", title], found[other])[0, 1]
        assert r == pytest.approx(1.0)


def test_leaving_one_out_never_looks_at_the_set_it_judges():
    sets = "abcd"
    rows = [
        {"kind": "deep", "set": s, "family": "weights", "variant": v, "r_s": r, "regret": 0.0}
        for s in sets
        for v, r in (("PageRank", 0.5), ("lucky", 0.9 if s == "a" else 0.4))
    ]
    found = beating.leave_one_out(rows, "weights", ("deep",))
    # "lucky" is best in hindsight, by one set alone; chosen on the others it only costs.
    assert found["hindsight"] == "lucky"
    assert found["gain"] < 0
    assert not beating.wins_by_margin(found)


def test_a_variant_that_is_better_everywhere_wins_by_the_margin():
    rows = [
        {"kind": "deep", "set": s, "family": "weights", "variant": v, "r_s": r, "regret": 0.0}
        for s in "abcdefgh"
        for v, r in (("PageRank", 0.5), ("better", 0.6 + ord(s) / 1e4))
    ]
    found = beating.leave_one_out(rows, "weights", ("deep",))
    assert found["gain"] == pytest.approx(0.11, abs=0.005)
    assert beating.wins_by_margin(found)


def test_five_sets_cannot_win_and_six_can():
    assert beating.paired_p([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(0.0625)
    assert beating.paired_p([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) < beating.LEVEL
    assert not beating.within_reach(5) and beating.within_reach(6)
    found = {"sets": 5, "gain": 0.3, "p": 0.0625, "saved regret": 0.1}
    assert reporting.margin(found) == "out of reach"
    assert reporting.margin(found | {"sets": 6, "p": 0.03125}) == "yes"


TWO_SPACES = {"clusters-jule-coil100_32"}
ONE_SEED = TWO_SPACES | {"clusters-jule-cmu_pie_pose27", "clusters-jule-umist_112x92"}


@pytest.mark.parametrize(
    "left",
    [set(), {"checkpoints-deepcluster-fashion_mnist_test"}, TWO_SPACES, ONE_SEED],
    ids=["all", "no checkpoints", "not two spaces", "not one seed"],
)
def test_no_family_wins_on_the_deep_runs(left):
    rows = [row for row in read(VARIANTS / "beat.csv") if row["experiment"] not in left]
    found = {family: beating.leave_one_out(rows, family, ("deep",)) for family in beating.DEFAULTS}
    assert len(found) == 7 and all(beating.within_reach(one["sets"]) for one in found.values())
    assert [family for family, one in found.items() if beating.wins_by_margin(one)] == []


def test_five_families_lose_to_ace_on_the_deep_runs_and_two_stay_level_as_the_report_says():
    rows = read(VARIANTS / "beat.csv")
    found = {family: beating.leave_one_out(rows, family, ("deep",)) for family in beating.DEFAULTS}
    assert {one["sets"] for one in found.values()} == {7}
    gains = {family: one["gain"] for family, one in found.items()}
    assert {family for family, gain in gains.items() if gain > 0} == {"weights", "screen"}
    assert max(gains.values()) < 0.0055
    assert min(found, key=lambda family: found[family]["p"]) == min(gains, key=gains.get)


def test_pooled_scores_are_ahead_of_ace_on_five_deep_sets_and_behind_by_coil_100_alone():
    values: dict[tuple, list] = {}
    for row in read(VARIANTS / "beat.csv"):
        if (row["kind"], row["family"]) == ("deep", "pooling"):
            values.setdefault((row["set"], row["variant"]), []).append(row["r_s"])
    gains = {
        name: np.mean(values[name, "pooled values"]) - np.mean(values[name, "ACE"])
        for name, variant in values
        if variant == "ACE"
    }
    assert len(gains) == 7 and sum(gain > 0 for gain in gains.values()) == 5
    assert np.mean(list(gains.values())) < 0
    del gains["coil100_32"]
    assert np.mean(list(gains.values())) > 0


def test_rows_of_the_simulation_follow_from_its_matrices(tmp_path, monkeypatch):
    monkeypatch.setattr(beating.cpu_runs, "score_all", lambda *_: None)
    lines = (VARIANTS / "beat.csv").read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line.startswith("simulation,")]
    (tmp_path / "beat.csv").write_text("\n".join([lines[0], *own]) + "\n", encoding="utf-8")
    beating.write_beat(tmp_path)
    assert own and (tmp_path / "beat.csv").read_text(encoding="utf-8").splitlines()[1:] == own


def test_a_row_that_did_not_change_keeps_its_commit(tmp_path):
    path = tmp_path / "some.csv"
    old = [
        {"set": "a", "r_s": 0.5, "k": "", "commit": "1234567890", "version": "0"},
        {"set": "b", "r_s": 0.5, "k": "", "commit": "1234567890", "version": "0"},
        {"set": "c", "r_s": 0.5, "k": "", "commit": "1234567890+", "version": "0"},
    ]
    evaluating.write_csv(path, old)
    now = [{"set": s, "r_s": r, "k": ""} for s, r in (("a", 0.5), ("b", 0.6), ("c", 0.5))]
    found = evaluating.stamped(now, path, {"commit": "new", "version": "1"})
    assert [row["commit"] for row in found] == ["1234567890", "new", "new"]


def test_variants_of_the_kept_runs_are_what_beat_csv_holds():
    stored = {
        (r["experiment"], r["family"], r["index"], r["variant"]): r["r_s"]
        for r in read(VARIANTS / "beat.csv")
    }
    case = min(
        (c for c in beating.cases(HERE) if c.kind == "cpu"), key=lambda c: (len(c.nmi), c.name)
    )
    fresh = {
        (r["experiment"], r["family"], r["index"] or None, r["variant"]): r["r_s"]
        for r in beating.rows_of(case)
    }
    assert fresh and {key: stored[key] for key in fresh} == pytest.approx(fresh, abs=1.1e-4)


def test_fresh_sets_are_used_for_the_one_hypothesis_alone():
    fresh = [row for row in read(VARIANTS / "beat.csv") if row["kind"] == "fresh"]
    assert {(row["family"], row["variant"]) for row in fresh} == beating.TESTED
    assert len({row["set"] for row in fresh}) == beating.confirmation(fresh)["sets"] == 10


# ---- scoring --------------------------------------------------------------------------------


def test_the_rotated_input_keeps_distances_and_angles():
    X = np.random.default_rng(0).normal(size=(12, 40)) + 3
    Z = scoring.isometric(X)
    assert Z.shape == (12, 12)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-9)


def test_a_scored_experiment_reads_back_and_is_not_scored_again(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 5)) + 5 * np.eye(3, 5)[truth]
    runs = ws.Runs(
        [
            ws.Run(f"r{i}", labels=np.where(rng.random(60) < i / 8, 0, truth),
                   embedding=X[:, : 2 + i], params={"rate": i / 10})
            for i in range(4)
        ]
    )  # fmt: skip
    name = "tuning-depict-digits"
    entry = scoring.score_experiment(runs, name, X, truth, tmp_path / "scores.zip")
    one = kept(entry)
    assert one.truth["nmi"][0] == pytest.approx(1.0)
    direct = input_scores(X, runs, index="silhouette")
    np.testing.assert_allclose(one.raw["silhouette"], direct, atol=1e-6)
    sampled, classes = scoring.sampled_runs(entry)
    assert sampled.n_objects == len(classes) == 60
    capsys.readouterr()
    scoring.score_experiment(runs, name, X, truth, tmp_path / "scores.zip")
    assert "scored already" in capsys.readouterr().out


def test_a_scored_experiment_replaces_itself_and_no_other(tmp_path):
    archive = tmp_path / "scores.zip"
    write(archive, {"a/made.json": b"1", "a/old.csv": b"x", "ab/made.json": b"2"})
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "made.json").write_bytes(b"3")
    Entry(archive, "a").replace(tmp_path / "new")
    assert names(archive) == ["a", "ab"]
    assert set(Entry(archive, "a").sizes()) == {"made.json"}
    assert (Entry(archive, "a").json("made.json"), Entry(archive, "ab").json("made.json")) == (3, 2)


def test_equal_contents_make_equal_archives(tmp_path):
    files = {"a/made.json": b"1", "b/made.json": b"2"}
    write(tmp_path / "one.zip", files)
    write(tmp_path / "two.zip", dict(reversed(files.items())))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_an_interrupted_write_leaves_the_archive_as_it_was(tmp_path):
    archive = tmp_path / "scores.zip"
    write(archive, {"a/made.json": b"1"})
    with pytest.raises(TypeError):
        write(archive, {"a/made.json": b"2", "b/made.json": None})
    assert [path.name for path in tmp_path.iterdir()] == ["scores.zip"]
    assert Entry(archive, "a").json("made.json") == 1


def test_an_experiment_of_another_name_is_refused():
    with pytest.raises(ValueError, match="experiment must be"):
        paper.split("tuning-kmeans-usps_11000")


def test_quick_refuses_to_write_over_the_results():
    with pytest.raises(SystemExit, match="must not write over"):
        quick.prepare(HERE)


# ---- the command ----------------------------------------------------------------------------


def called(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run.main()
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("absent",), "RUNS must be a folder"),
        (("empty", "--out", "new"), "RUNS must hold folders of runs named <task>-<method>-<set>"),
        (
            ("some", "--only", "nosuch"),
            "--only must be part of a name in RUNS (tuning-jule-digits)",
        ),
        (("--only", "jule"), "--only needs RUNS"),
        (("--stages", "evaluate,report", "--out", "new"), "evaluate needs scored experiments"),
        (("--stages", "report", "--out", "new"), "need results.csv"),
        (("--stages", "pages"), "stages must be among"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    tmp_path, monkeypatch, capsys, words, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "some" / "tuning-jule-digits").mkdir(parents=True)
    assert called(monkeypatch, *words) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_stopped_run_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run.quick, "train_and_score", stop)
    assert called(monkeypatch, "--quick", "--out", tmp_path) == 130
    said = capsys.readouterr().out
    assert quick.SMALL in said and f"stopped; --quick --out {tmp_path} goes on" in said
    monkeypatch.setattr(run, "write_results", stop)
    assert called(monkeypatch, "--stages", "evaluate") == 130
    assert "stopped; the same command goes on" in capsys.readouterr().out


def test_the_report_of_a_small_run_says_so_at_its_top(tmp_path):
    quick.prepare(tmp_path)
    text = (tmp_path / "REPORT.md").read_text(encoding="utf-8")
    assert quick.SMALL in text.splitlines()[0]


def test_a_report_of_another_folder_says_whose_text_it_has(tmp_path):
    reporting.write_reports(tmp_path)
    text = (tmp_path / "REPORT.md").read_text(encoding="utf-8")
    assert "the text is of the committed runs" in text.splitlines()[0]


@pytest.mark.slow
def test_quick_shows_every_stage(tmp_path):
    command = [sys.executable, str(HERE / "run.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for name in ("results.csv", "beat.csv", "REPORT.md", "TABLES.md", "figures/tuning.png",
                 "pages/tuning-depict-digits.html"):  # fmt: skip
        assert (tmp_path / name).is_file(), name
