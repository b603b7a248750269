"""`wellsep rank` and `explain`: right answers, clear sentences, exit codes, a lasting cache."""

from __future__ import annotations

import json
import os
import shutil
import signal

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main
from wellsep.evaluate import Judgement
from wellsep.runs import Run, Runs

QUICK = ["--draws", "4"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WELLSEP_CACHE", str(tmp_path / "cache"))


def example(n=90, wrong=(0.0, 0.2, 0.5), seed=0) -> Runs:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    return Runs(
        [
            Run(
                f"{p:.0%} wrong",
                labels=np.where(rng.random(n) < p, rng.integers(0, 3, n), truth),
                embedding=rng.normal(size=(n, 3)) + 6 * np.eye(3)[truth],
            )
            for p in wrong
        ]
    )


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "runs"
    example().save(path)
    return path


def run(capsys, *arguments) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_best_run_comes_first_with_its_story(folder, capsys):
    code, out, err = run(capsys, "rank", folder, *QUICK)
    assert code == 0
    assert " ".join(out.split()).startswith(
        "'0% wrong' (K = 3) is ranked first of 3 runs. The silhouette, its mean over the "
        "embeddings, decides: only 3 clusterings differ."
    )
    table = out[out.index("Ranking by mean silhouette") :]
    rows = [line.split() for line in table.splitlines() if "wrong" in line and line[:6].strip()]
    assert rows[0][:3] == ["1", "0%", "wrong"]
    assert "Best: '0% wrong'" in out
    assert err == ""


def test_ace_tells_its_story_where_it_is_asked_to_decide(folder, capsys):
    code, out, err = run(capsys, "rank", folder, *QUICK, "--judge", "ace")
    assert (code, err) == (0, "")
    table = out[out.index("Ranking by ACE") :]
    rows = [line.split() for line in table.splitlines() if "wrong" in line and line[:6].strip()]
    assert rows[0][:3] == ["1", "0%", "wrong"]
    assert "Best: '0% wrong'" in out
    assert "Confidence" in out


def test_all_findings_come_as_json(folder, capsys):
    code, out, err = run(capsys, "rank", folder, *QUICK, "--json")
    assert (code, err) == (0, "")
    findings = json.loads(out)
    assert findings["best"] == ["0% wrong"]
    assert [row["rank"] for row in findings["ranking"]] == [1, 2, 3]
    assert set(findings["winning_spaces"]) <= {"0% wrong", "20% wrong", "50% wrong"}


def test_other_indices_stand_beside_the_first(folder, capsys):
    code, out, _ = run(
        capsys, "rank", folder, *QUICK, "-i", "calinski_harabasz", "-i", "davies_bouldin(q=2)"
    )
    assert code == 0
    assert "Ranking by mean calinski_harabasz" in out
    assert "rank_davies_bouldin(q=2)" in out


def test_saving_a_result_leaves_other_files_in_the_folder_alone(folder, capsys, tmp_path):
    result = tmp_path / "result"
    result.mkdir()
    for name in ("arrays-1.npz", "arrays-0123456789abcdef.npz", "notes.txt"):
        (result / name).write_text("mine")
    for _ in range(2):
        code, _, _ = run(capsys, "rank", folder, *QUICK, "--save", result)
        assert code == 0
    assert (result / "arrays-1.npz").read_text() == "mine"
    assert (result / "arrays-0123456789abcdef.npz").read_text() == "mine"
    assert len(list(result.iterdir())) == 5


def test_a_result_saved_by_an_older_version_is_told_in_a_sentence(capsys, tmp_path):
    (tmp_path / "record.json").write_text('{"wellsep": "record", "format": 1}')
    code, _, err = run(capsys, "explain", tmp_path)
    assert code == 2
    assert "was saved by an older version of wellsep; make it again" in " ".join(err.split())


def test_ids_beside_the_true_classes_are_no_classes(folder, capsys, tmp_path):
    rows = [f"obj{i},{i % 3}" for i in range(90)]
    (tmp_path / "truth.csv").write_text("\n".join(["id,class", *rows]))
    code, out, err = run(capsys, "rank", folder, *QUICK, "--truth", tmp_path / "truth.csv")
    assert code == 0, err
    assert "Agreement with the true labels" in out


def test_a_saved_result_is_explained_again(folder, capsys, tmp_path):
    result = tmp_path / "result"
    _, out, _ = run(capsys, "rank", folder, *QUICK, "--save", result)
    code, story, _ = run(capsys, "explain", result)
    assert code == 0
    shown = " ".join(out.split())
    for sentence in story.splitlines():
        assert " ".join(sentence.split()) in shown
    assert Judgement.load(result).ranking.best == "0% wrong"
    code, text, _ = run(capsys, "explain", result, "--json")
    assert json.loads(text)["best"] == ["0% wrong"]


def test_truth_and_input_data_are_compared(folder, capsys, tmp_path):
    np.save(tmp_path / "truth.npy", np.arange(90) % 3)
    np.save(tmp_path / "X.npy", example().spaces["0% wrong"])
    arguments = ("--truth", tmp_path / "truth.npy", "--input", tmp_path / "X.npy")
    code, out, _ = run(capsys, "rank", folder, *QUICK, *arguments)
    assert code == 0
    assert "Agreement with the true labels" in out
    assert "rank_input" in out


def test_partitions_and_spaces_can_be_chosen(folder, capsys):
    words = ["--labels", "0%*,50%*", "--spaces", "20%*", "--judge", "ace", "--ace", "dip=no"]
    code, out, _ = run(capsys, "rank", folder, *QUICK, *words)
    assert code == 0
    assert "2 clusterings were judged in 1 embedding" in out


def test_a_page_is_written(folder, capsys, tmp_path):
    code, _, _ = run(capsys, "rank", folder, *QUICK, "--report", tmp_path / "page.html")
    assert code == 0
    assert "0% wrong" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_labelings_of_an_anndata_file_are_judged_in_its_embeddings(tmp_path, capsys):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    runs = example()
    data = anndata.AnnData(np.zeros((90, 1), dtype=np.float32))
    for i, X in enumerate(runs.spaces.values()):
        data.obsm[f"X_{i}"] = np.array(X)
    for i, labels in enumerate(runs.partitions.values()):
        data.obs[f"leiden_{i}"] = labels.astype(str)
    data.obs["batch"] = "one"
    data.write_h5ad(tmp_path / "data.h5ad")
    code, out, err = run(
        capsys,
        "rank",
        tmp_path / "data.h5ad",
        *QUICK,
        "--spaces",
        "X_0,X_2",
        "--labels",
        "leiden_*",
        "--judge",
        "ace",
    )
    assert code == 0, err
    assert "3 clusterings were judged in 2 embeddings" in out
    assert "Best: 'leiden_0'" in out
    assert "rank_own_space" not in out
    assert "rank_mean" in out


def test_help_shows_examples(capsys):
    code, out, _ = run(capsys, "rank", "--help")
    assert code == 0
    assert "wellsep rank runs/" in out
    code, out, _ = run(capsys, "explain", "--help")
    assert "wellsep explain result/" in out


def test_an_empty_folder_has_nothing_to_rank(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    code, out, err = run(capsys, "rank", tmp_path / "empty")
    assert code == 1
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_one_run_has_nothing_to_rank(tmp_path, capsys):
    example(wrong=(0.0,)).save(tmp_path / "runs")
    code, _, err = run(capsys, "rank", tmp_path / "runs", *QUICK)
    assert code == 1
    assert "at least 2 clusterings to rank, got 1 ('0% wrong')" in err


def test_two_runs_are_ranked(tmp_path, capsys):
    example(wrong=(0.0, 0.5)).save(tmp_path / "runs")
    code, out, _ = run(capsys, "rank", tmp_path / "runs", *QUICK)
    assert code == 0
    assert "Best: '0% wrong'" in out


def test_identical_partitions_are_one_answer_that_leaves_nothing_to_choose(tmp_path, capsys):
    runs = example()
    same = [Run(r.name, labels=np.arange(90) % 3, embedding=r.embedding) for r in runs]
    Runs(same).save(tmp_path / "runs")
    report = tmp_path / "r.html"
    code, out, _ = run(capsys, "rank", tmp_path / "runs", *QUICK, "--report", report)
    assert code == 0
    said = f"All {len(runs)} runs found the same clustering, '0% wrong' (K = 3)"
    assert said in " ".join(out.split())
    assert "No judge had to decide" in report.read_text(encoding="utf-8")


def test_a_partition_with_one_cluster_is_ranked_last_with_the_reason(folder, capsys):
    ws.save_run(folder, None, np.zeros(90, int), name="lump")
    code, out, _ = run(capsys, "rank", folder, *QUICK)
    assert code == 0
    assert "'lump': It has one cluster, so it tells no objects apart." in out
    table = out[out.index("Ranking by") : out.index("Best:")]
    assert [line.split()[:2] for line in table.splitlines() if "lump" in line] == [["4", "lump"]]
    code, out, _ = run(capsys, "rank", folder, *QUICK, "--judge", "ace")
    assert code == 0
    assert "'lump' in '0% wrong': silhouette needs at least 2 clusters, got 1" in out


def broken(folder, kind):
    some = next(p for p in sorted(folder.iterdir()) if p.name.startswith("20"))
    if kind == "missing file":
        (some / "labels.npy").unlink()
    elif kind == "pickled":
        np.save(some / "labels.npy", np.array([{}] * 90, dtype=object), allow_pickle=True)
    elif kind == "truncated":
        data = (some / "embedding.npy").read_bytes()
        (some / "embedding.npy").write_bytes(data[:-50])
    elif kind == "NaN":
        X = np.load(some / "embedding.npy")
        X[4, 1] = np.nan
        np.save(some / "embedding.npy", X)
    elif kind == "wrong n":
        shutil.rmtree(some)
        ws.save_run(folder, np.zeros((80, 2)), np.arange(80) % 3, name="20% wrong")
    elif kind == "wrong dtype":
        np.save(some / "embedding.npy", np.full((90, 3), "x"))
    elif kind == "noise":
        np.save(some / "labels.npy", np.full(90, -1))


@pytest.mark.parametrize("kind", ["missing file", "pickled", "truncated", "wrong dtype"])
def test_a_run_that_cannot_be_read_is_named_and_the_others_are_ranked(folder, capsys, kind):
    broken(folder, kind)
    code, out, err = run(capsys, "rank", folder, *QUICK, "--json")
    assert code == 0
    ranked = [row["partition"] for row in json.loads(out)["ranking"]]
    assert "20% wrong" not in ranked and len(ranked) == len(example()) - 1
    told = [line for line in err.splitlines() if line.startswith("Warning: ")]
    assert len(told) == 1 and "left out" in told[0] and "20%25%20wrong" in told[0]


@pytest.mark.parametrize("kind", ["NaN", "wrong n", "noise"])
def test_a_broken_run_is_named_in_one_sentence(folder, capsys, kind):
    broken(folder, kind)
    policy = ["--noise", "error"] if kind == "noise" else []
    code, out, err = run(capsys, "rank", folder, *QUICK, *policy)
    assert code == 2
    assert out == ""
    assert "20% wrong" in err or "20%25%20wrong" in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_noise_lowers_the_score_of_a_run_unless_it_is_excluded(folder, capsys):
    truth, X = np.arange(90) % 3, np.load(folder / "0%25%20wrong" / "embedding.npy")
    far = ((X - 6 * np.eye(3)[truth]) ** 2).sum(axis=1)
    core = np.where(far < np.quantile(far, 0.2), truth, -1)
    ws.save_run(folder, X, core, name="core")
    code, out, _ = run(capsys, "rank", folder, *QUICK, "--ace", "dip=no", "--json")
    priced = json.loads(out)
    assert (code, priced["best"]) == (0, ["0% wrong"])
    assert {row["partition"]: row["coverage"] for row in priced["ranking"]}["core"] == 0.2
    code, out, _ = run(capsys, "rank", folder, *QUICK, "--ace", "dip=no")
    head = next(line for line in out.splitlines() if "partition" in line).split()
    after = head.index("score") + 1
    assert (code, head[after : after + 4]) == (0, ["ranks", "first", "in", "coverage"])
    both = [*QUICK, "--ace", "dip=no", "--noise", "exclude"]
    code, out, _ = run(capsys, "rank", folder, *both, "--json")
    assert (code, json.loads(out)["best"]) == (0, ["core"])
    code, out, err = run(capsys, "rank", folder, *QUICK, "--index", "dunn")
    assert (code, out) == (2, "")
    assert "'dunn', which has no rule for the noise (label -1) in 'core'" in err
    code, _, _ = run(capsys, "rank", folder, *both, "--index", "dunn")
    assert code == 0


def test_a_run_of_noise_only_is_ranked_last_with_the_reason(folder, capsys):
    broken(folder, "noise")
    code, out, _ = run(capsys, "rank", folder, *QUICK)
    assert code == 0
    assert "'20% wrong': It calls every object noise, so it tells no objects apart." in out
    code, out, _ = run(capsys, "rank", folder, *QUICK, "--judge", "ace", "--ace", "dip=no")
    assert code == 0
    assert "no object is counted" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--index", "beauty"], "--index must be among"),
        (["--ace", "alpha=high"], "--ace alpha must be a number"),
        (["--ace", "grouping=kmeans"], "--ace grouping must be one of"),
        (["--noise", "ignore"], "noise must be one of"),
        (["--truth", "absent.npy"], "absent.npy"),
        (["--report", "no/such/folder/page.html"], "report must lie in a folder that exists"),
    ],
)
def test_a_wrong_option_is_bad_usage(folder, capsys, arguments, sentence):
    code, _, err = run(capsys, "rank", folder, *QUICK, *arguments)
    assert code == 2
    assert sentence in err


def test_a_missing_source_or_result_is_bad_usage(tmp_path, capsys):
    code, _, err = run(capsys, "rank", tmp_path / "absent")
    assert code == 2
    assert "absent" in err
    code, _, err = run(capsys, "explain", tmp_path)
    assert code == 2
    assert "must hold a saved record" in err


def test_truth_of_another_length_is_refused_before_the_work(folder, capsys, tmp_path):
    np.save(tmp_path / "truth.npy", np.zeros(7, int))
    code, _, err = run(capsys, "rank", folder, "--truth", tmp_path / "truth.npy")
    assert code == 2
    assert "one class per object (90), got 7" in err
    assert not (tmp_path / "cache").exists()


def test_names_with_slashes_and_markup_are_shown_as_they_are(tmp_path, capsys):
    names = ["a/b", "<script>alert(1)</script>", "[bold]c[/bold]"]
    runs = [
        Run(name, labels=r.labels, embedding=r.embedding)
        for name, r in zip(names, example(), strict=True)
    ]
    Runs(runs).save(tmp_path / "runs")
    code, out, _ = run(capsys, "rank", tmp_path / "runs", *QUICK, "--save", tmp_path / "result")
    assert code == 0
    assert all(name in out for name in names)
    assert set(Judgement.load(tmp_path / "result").ranking.names) == set(names)


def test_a_cache_that_cannot_be_written_is_named_and_the_ranking_goes_on(folder, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run(capsys, "rank", folder, *QUICK, "--cache", tmp_path / "file")
    assert code == 0
    assert err.count(f"Warning: Scores cannot be kept in {tmp_path / 'file'}: ") == 1
    code, again, err = run(capsys, "rank", folder, *QUICK, "--cache", "none")
    assert code == 0
    assert again == out
    assert err == ""


def test_the_switches_of_ace_are_given_by_name(folder, capsys):
    words = ["dip=no", "grouping=dbscan", "eps=0.3", "alpha=none", "convention=ace"]
    more = [part for word in words for part in ("--ace", word)]
    code, out, _ = run(capsys, "rank", folder, *QUICK, *more, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["settings"]["convention"] == "ace"
    options = told["options"]
    assert [options[name] for name in ("dip", "grouping", "eps", "alpha")] == [
        False, "dbscan", 0.3, None,
    ]  # fmt: skip


@pytest.mark.parametrize("names", [{"XDG_CACHE_HOME": "/proc/nope"}, {"HOME": "/proc/nope"}])
def test_without_a_home_folder_the_ranking_is_made_and_nothing_kept(
    folder, capsys, monkeypatch, names
):
    for name in ("XDG_CACHE_HOME", "WELLSEP_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    code, out, err = run(capsys, "rank", folder, *QUICK)
    assert (code, "Ranking by mean silhouette" in out) == (0, True)
    assert "Scores cannot be kept in /proc/nope" in err


@pytest.mark.parametrize("option", ["--report", "--save"])
def test_a_result_is_never_written_over_the_runs(folder, capsys, option):
    before = sorted(folder.rglob("*"))
    code, _, err = run(capsys, "rank", folder, *QUICK, option, folder)
    assert (code, sorted(folder.rglob("*"))) == (2, before)
    assert f"{option.removeprefix('--')} must be another file than the input" in err


def test_a_second_call_uses_the_cache(folder, capsys, tmp_path, monkeypatch):
    first = run(capsys, "rank", folder, *QUICK)[1]
    from wellsep.evaluate.scoring import spaces as scoring

    def refuse(*args, **kwargs):
        raise AssertionError("scored again")

    monkeypatch.setattr(scoring, "score_partitions", refuse)
    assert run(capsys, "rank", folder, *QUICK)[1] == first


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_command_leaves_a_cache_to_continue_from(tmp_path, capsys, monkeypatch):
    from wellsep.evaluate.scoring import spaces as scoring

    rng = np.random.default_rng(0)
    n = 60
    spaces = {f"s{i:02}": rng.normal(size=(n, 3)) for i in range(12)}
    partitions = {f"p{k}": rng.integers(0, k, n) for k in range(3, 6)}
    Runs.from_parts(spaces, partitions).save(tmp_path / "runs")
    cache = tmp_path / "cache"
    compute, pressed = scoring._compute, []

    def press(*given):
        if not pressed and len(list(cache.glob("*/record.json"))) >= 2:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        return compute(*given)

    command = ["rank", tmp_path / "runs", "--draws", "0", "--jobs", "1"]
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as keyboard:
            keyboard.setattr(scoring, "_compute", press)
            code, _, err = run(capsys, *command)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert code == 130
    assert f"Finished embeddings are kept in {cache}. Repeat the command to continue." in err
    kept = set(cache.glob("*/record.json"))
    assert len(kept) == 2
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert run(capsys, *command)[0] == 0
    assert len(list(cache.glob("*/record.json"))) == 12
    assert {path: path.stat().st_mtime_ns for path in kept} == before
