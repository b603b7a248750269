"""What a command prints and writes: JSON by one flag, targets checked first, plain help."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

import wellsep as ws
from wellsep._text.glossary import WORDS
from wellsep.cli.commands import COMMANDS
from wellsep.cli.main import main
from wellsep.partitions import Partitions
from wellsep.records import Judgement


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Data, labels and runs in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WELLSEP_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    X = rng.normal(size=(60, 3)) + 6 * np.eye(3)[truth]
    np.save("x.npy", X)
    np.save("y.npy", truth)
    for share in (0.0, 0.3, 0.6):
        labels = np.where(rng.random(60) < share, rng.integers(0, 3, 60), truth)
        ws.save_run("runs", X + rng.normal(size=X.shape), labels, name=f"{share:.0%} wrong")
    return tmp_path


def run(capsys, *words):
    code = main([*map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


RANK = ["rank", "runs", "--draws", "0", "--cache", "none"]
COMMAND_LINES = {
    "indices": ["indices"],
    "score": ["score", "x.npy", "y.npy"],
    "rank": RANK,
    "choose-k": ["choose-k", "x.npy", "--k", "2:3"],
    "explore": ["explore", "x.npy", "--k", "2:3", "--draws", "0", "--cache", "none"],
    "cluster": ["cluster", "x.npy", "-k", "3"],
    "stability": ["stability", "x.npy", "-k", "3", "--draws", "3", "--set", "n_splits=0"],
    "resolutions": ["resolutions", "runs"],
    "explain": ["explain", "result"],
}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_json_is_a_flag_that_prints_json_alone(name, files, capsys):
    if name == "explain":
        assert run(capsys, *RANK, "--save", "result")[0] == 0
    words = COMMAND_LINES[name]
    code, out, err = run(capsys, words[0], "--json", *words[1:])
    assert code == 0
    assert all(": 60 objects" in line for line in err.splitlines())  # how files were read
    assert json.loads(out)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"report"}))
def test_every_command_has_the_flag(name, capsys):
    assert main([name, "--help"]) == 0
    assert "Print JSON and nothing else on stdout" in " ".join(
        re.sub(r"[│\s]+", " ", capsys.readouterr().out).split()
    )


def test_intervals_are_two_numbers_and_no_key_needs_quoting(files, capsys):
    _, out, _ = run(capsys, *RANK[:2], "--draws", "4", "--cache", "none", "--json")
    for row in json.loads(out)["ranking"]:
        assert isinstance(row["rank_low"], int)
        assert isinstance(row["rank_high"], int)
        assert 0 <= row["first_in"] <= 1
        assert all(re.fullmatch(r"\w+", key) for key in row)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*RANK, "--report", "no/page.html"], "report must lie in a folder that exists"),
        ([*RANK, "--report", "page.pdf"], "report must end in .html or .htm, got 'page.pdf'"),
        ([*RANK, "--report", "folder.html"], "report must be a file, got the folder"),
        ([*RANK, "--save", "x.npy"], "save must be a folder, got the file x.npy"),
        ([*RANK, "--save", "no/such/folder"], "save must lie in a folder that exists"),
        (["score", "x.npy", "y.npy", "-o", "no/s.csv"], "output must lie in a folder that exists"),
        (["score", "x.npy", "y.npy", "-o", "s.xls"], "output must end in .csv"),
        (["cluster", "x.npy", "-k", "2", "-o", "no/l.csv"], "output must lie in a folder"),
        (["cluster", "x.npy", "-k", "2", "--centers", "no/c.npy"], "centers must lie in a folder"),
        (["choose-k", "x.npy", "-o", "no/l.csv"], "output must lie in a folder that exists"),
        (["choose-k", "x.npy", "--save", "x.npy"], "save must be a folder"),
        (["report", "runs", "-o", "no/r.html"], "output must lie in a folder that exists"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_the_work(
    files, capsys, monkeypatch, words, sentence
):
    (files / "folder.html").mkdir()

    def refuse(*args, **kwargs):
        raise AssertionError("the work had begun")

    for name in ("judge", "score_partitions", "render_report"):
        monkeypatch.setattr(ws, name, refuse)
    before = sorted(files.rglob("*"))
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert sorted(files.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_before_the_work(files, capsys):
    (files / "locked").mkdir(mode=0o500)
    code, out, err = run(capsys, *RANK, "--report", "locked/page.html")
    assert (code, out) == (2, "")
    assert "report must lie in a folder that can be written" in err


@pytest.mark.parametrize("flag", ["--save", "--report"])
def test_the_ranking_is_printed_even_if_a_file_cannot_be_written(files, capsys, monkeypatch, flag):
    def fail(*args, **kwargs):
        raise OSError(28, "Writing failed: no space left.")

    monkeypatch.setattr(Judgement, "save", fail)
    monkeypatch.setattr(ws, "render_report", fail)
    code, out, err = run(capsys, *RANK, flag, "new.html")
    assert code == 2
    assert "Best: '0% wrong'" in out
    assert "no space left" in err
    _, out, _ = run(capsys, *RANK, flag, "new.html", "--json")
    assert json.loads(out)["best"] == ["0% wrong"]


def test_what_was_written_is_said(files, capsys):
    code, _, err = run(capsys, *RANK, "--save", "result", "--report", "page.html")
    assert (code, err) == (0, "wrote result\nwrote page.html\n")
    read = "x.npy: 60 objects, 3 features.\n"
    labels = "y.npy: 60 objects, 1 clustering (y).\n"
    scored = run(capsys, "score", "x.npy", "y.npy", "-o", "s.csv")[2]
    assert scored == f"{read}{labels}wrote s.csv\n"
    made = run(capsys, "cluster", "x.npy", "-k", "2", "-o", "l.csv")[2]
    assert made == f"{read}wrote l.csv\n"
    chosen = run(capsys, "choose-k", "x.npy", "--k", "2:3", "-o", "k.csv")[2]
    assert chosen == f"{read}wrote k.csv\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["score", "x.npy", "y.npy", "-i", "silhouete"], "did you mean 'silhouette'?"),
        (["score", "x.npy", "y.npy", "-i", "CH"], "did you mean 'calinski_harabasz'?"),
        (["rank", "runs", "--labels", "0% wrnog"], "did you mean '0% wrong'?"),
        (["cluster", "x.npy", "-k", "3", "-m", "kmeans"], "did you mean 'k-means'?"),
        (["rank", "runs", "--noise", "exclud"], "did you mean 'exclude'?"),
        (["rank", "runs", "--indx", "cfq"], "--index"),
        (["rnak", "runs"], "Did you mean 'rank'?"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(files, capsys, words, meant):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert meant in re.sub(r"[│\s]+", " ", err)


def test_a_word_that_is_like_no_other_gets_no_guess(files, capsys):
    err = run(capsys, "score", "x.npy", "y.npy", "-i", "beauty")[2]
    assert err.endswith("got 'beauty'.\n")


@pytest.mark.parametrize(
    ("typed", "word"), [("wellsep ra", "rank"), ("wellsep rank --write", "--write-back")]
)
def test_the_shell_completes_commands_and_options(typed, word):
    asked = {
        "_WELLSEP_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    command = [sys.executable, "-m", "wellsep"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert word in done.stdout.split()


@pytest.mark.skipif(
    tuple(map(int, typer.__version__.split(".")[:2])) < (0, 29),
    reason="typer before 0.29 shows the type of an argument",
)
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_names_no_python_type_and_shows_defaults(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert not re.search(r"list\[|<str>|<int>|<float>|<bool>|<path>|Path\b|PATH\b|None", text)
    if name == "rank":
        assert re.search(r"--draws +N ", text)
        assert re.search(r"--report +FILE ", text)
        assert re.search(r"--save +FOLDER ", text)
        assert "[default: 100]" in text


def test_help_and_glossary_explain_the_words_of_the_table(files, capsys):
    from golden import ROOT

    assert main(["rank", "--help"]) == 0
    line = " ".join(capsys.readouterr().out.partition("Words in the table")[2].split())
    assert "wellsep explain --words" in line
    assert main(["explain", "--words"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    words = (
        "partition",
        "space",
        "own_space",
        "mean_all",
        "consensus",
        "first_in",
    )
    for word in words:
        assert f"{word}: {WORDS[word]}" in shown
    page = (ROOT / "docs" / "guides" / "glossary.md").read_text(encoding="utf-8")
    for word, meaning in WORDS.items():
        assert re.search(rf"^\| `?{re.escape(word)}`? \| {re.escape(meaning)} \|$", page, re.M)


def test_the_page_explains_its_words_where_they_stand(files, capsys):
    runs = ws.load_runs("runs")
    judgement = ws.judge(runs, n_draws=0)
    text = ws.render_report(judgement, "page.html", runs=runs).read_text(encoding="utf-8")
    heads = dict(re.findall(r'<th scope="col"[^>]* title="([^"]+)">([^<]+)</th>', text))
    explained = {label.strip() for label in heads.values()}
    assert {"run", "score", "own space", "consensus", "rival", "margin"} <= explained
    assert WORDS["borderline"] in text
    assert "Words used on this page" in text


def test_an_undefined_score_is_a_dash_and_comes_last(files, capsys):
    ws.save_run("runs", None, np.zeros(60, int), name="lump")
    judgement = ws.judge(ws.load_runs("runs"), n_draws=4, X=np.load("x.npy"))
    ranking = judgement.ranking
    last = ranking.names.index("lump")
    assert np.isnan(ranking.score[last])
    assert ranking.rank[last] == 4
    for name in ("mean_admitted", "mean_all", "input"):
        assert ranking.ranks_by(name)[last] == 4
    _, out, _ = run(capsys, *RANK)
    row = next(line for line in out.splitlines() if " lump " in line).split()
    assert (row[0], row[3]) == ("4", "–")
    _, out, _ = run(capsys, *RANK, "--json")
    assert json.loads(out)["ranking"][-1]["score"] is None
    text = ws.render_report(judgement, "page.html").read_text(encoding="utf-8")
    assert re.search(r">lump</bdi></th>.*?<td class=\"float\">–</td>", text)


def test_no_repr_has_more_than_ten_lines():
    rng = np.random.default_rng(0)
    many = {f"k{i}": rng.integers(0, 5, 200) for i in range(40)}
    runs = ws.Runs.from_parts({"a": rng.normal(size=(200, 3))}, many)
    shown = [runs, runs[0], Partitions.from_labels(many), *ws.INDICES.values()]
    for record in shown:
        lines = repr(record).splitlines()
        assert len(lines) <= 10
        assert max(map(len, lines)) <= 300


def test_a_notebook_shows_the_numbers_of_partition_scores(files):
    X, y = np.load("x.npy"), np.load("y.npy")
    scores = ws.score_partitions(X, {"true": y}, ["silhouette"])
    value = f"{ws.silhouette_score(X, y):.4g}"
    assert value in scores._repr_html_()
    assert value in repr(scores)


@pytest.mark.parametrize("width", [80, 120])
def test_no_name_and_no_number_of_a_table_is_broken(files, capsys, monkeypatch, width):
    from wellsep.cli import printing as output

    monkeypatch.setattr(output, "_WIDTH_OF_A_PIPE", width)
    words = [*RANK[:2], "--draws", "4", "--cache", "none", "--truth", "y.npy"]
    _, out, _ = run(capsys, *words)
    shown = re.split("Not shown|Embeddings", out[out.index("Ranking by") :])[0]
    table = [line for line in shown.splitlines() if line.startswith((" ", "Ranking"))]
    names = (" 0% wrong ", " 30% wrong ", " 60% wrong ")
    assert all(sum(name in line for line in table) == 1 for name in names)
    head = next(line for line in table if "partition" in line).split()
    assert head[:4] == ["rank", "partition", "clusters", "score"]
    assert max(map(len, table)) <= width
    truth = out.split("Agreement with the true labels")[1]
    assert all(word in truth for word in ("mean_admitted", "ari_of_pick", "nmi_of_pick", "pick"))
    _, out, _ = run(capsys, "choose-k", "x.npy", "--k", "2:4")
    head = next(line for line in out.splitlines() if line.split()[:2] == ["k", "votes"])
    assert all(f"{name} " in head for name in ("silhouette", "prediction_strength", "mixture_bic"))
    _, out, _ = run(capsys, "indices")
    assert all(any(line.split()[:1] == [name] for line in out.splitlines()) for name in ws.INDICES)
    Path("y.csv").write_text("a_long_name_of_labels\n" + "\n".join(map(str, np.arange(60) % 3)))
    _, out, _ = run(capsys, "score", "x.npy", "y.csv")
    heads = [line for line in out.splitlines() if line.strip().startswith("partition")]
    words = " ".join(heads).split()
    assert {"silhouette", "calinski_harabasz", "davies_bouldin", "cfq", "coverage"} <= set(words)
    assert max(map(len, out.splitlines())) <= width
    assert len(heads) == (2 if width == 80 else 1)


def test_the_help_of_rank_is_at_most_70_lines_with_what_matters_first(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run(capsys, "rank", "--help")
    assert len(out.splitlines()) <= 70
    panels = re.findall(r"╭─ (.+?) ─", out)
    assert panels == [
        "Arguments", "Options", "Which runs", "How to judge", "What to write", "Files", "Computing",
    ]  # fmt: skip
    first = re.findall(r"│ (--\S+)", out.partition("─ Options")[2].partition("╰")[0])
    assert first == ["--index", "--truth", "--report", "--save", "--json", "--help"]
    examples = out.partition("Examples:")[2].partition("Words in")[0].split("\n")
    assert all(line.split()[:2] == ["wellsep", "rank"] for line in examples if line.strip())


def test_commands_are_listed_by_job(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run(capsys, "--help")
    panels = re.findall(r"^╭─ ([A-Z][a-z ]+) ─+╮\n(.*?)^╰", out, re.MULTILINE | re.DOTALL)
    listed = {job: re.findall(r"^│ ([a-z][a-z-]*) ", text, re.MULTILINE) for job, text in panels}
    assert listed.pop("Options") == []
    assert listed == {
        "Make clusterings": ["explore", "choose-k", "cluster", "train"],
        "Judge clusterings": ["rank", "score"],
        "Look at clusters": ["describe", "stability", "resolutions"],
        "Use a saved result": ["report", "explain", "settle"],
        "Learn": ["indices", "demo"],
    }


def test_lines_of_stderr_wrap_between_words_in_a_terminal(capsys, monkeypatch):
    from wellsep.cli import printing as output

    sentence = "calinski_harabasz must have several clusters " * 5
    output.print_error(sentence)
    assert capsys.readouterr().err == sentence.strip() + "\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    output.print_error(sentence)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 5 and max(map(len, lines)) <= 40
    assert " ".join(lines).split() == sentence.split()


def test_the_page_says_for_how_many_objects_the_truth_is_known(files):
    runs = ws.load_runs("runs")
    truth = [str(y) if i % 4 else "" for i, y in enumerate(np.load("y.npy"))]
    for classes, some in ((truth, "(known for 45 of 60 objects)"), (np.load("y.npy"), "")):
        judgement = ws.judge(runs, n_draws=0)
        page = ws.render_report(judgement, "page.html", runs=runs, truth=classes)
        title = re.search(r'id="truth-title">(.*?)</h2>', page.read_text(encoding="utf-8"))[1]
        assert title == f"Agreement with the true labels {some}".strip()
