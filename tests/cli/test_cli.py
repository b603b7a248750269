"""The command line: quick help, right numbers, one-sentence errors, and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import wellsep as ws
from wellsep._files.arrays import to_json
from wellsep.cli.commands import COMMANDS, JOBS, load_command
from wellsep.cli.main import main
from wellsep.cli.options import parse_index
from wellsep.cli.printing import print_columns, print_table, progress_bar
from wellsep.cli.ranking import with_params
from wellsep.tables.writing import write_table


@pytest.fixture
def files(tmp_path):
    """Two clear groups of points, a good and a bad partition, and one with a single cluster."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (15, 3)), rng.normal(9, 1, (15, 3))])
    labels = {
        "good": np.repeat([0, 1], 15),
        "bad": np.tile([0, 1], 15),
        "one": np.zeros(30, dtype=int),
    }
    columns = {f"c{j}": X[:, j] for j in range(3)}
    for ending in ("csv", "parquet"):
        write_table(tmp_path / f"data.{ending}", columns)
        write_table(tmp_path / f"labels.{ending}", labels)
    np.save(tmp_path / "data.npy", X)
    np.savez(tmp_path / "data.npz", X=X)
    np.savez(tmp_path / "labels.npz", **labels)
    return tmp_path, X, labels


def run_json(capsys, *arguments):
    code = main([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def test_ids_are_no_partition_and_no_feature(files, capsys):
    folder, X, labels = files
    plain = run_json(capsys, "score", folder / "data.csv", folder / "labels.csv")
    names = np.array([f"object {i}" for i in range(30)])
    data = {"id": names} | {f"c{j}": X[:, j] for j in range(3)}
    write_table(folder / "named.csv", data)
    write_table(folder / "names.csv", {"id": names} | labels)
    assert run_json(capsys, "score", folder / "named.csv", folder / "names.csv") == plain


def test_a_header_that_counts_its_columns_is_no_object(files, capsys):
    folder, X, _ = files
    write_table(folder / "counted.csv", {str(j): X[:, j] for j in range(3)})
    plain = run_json(capsys, "score", folder / "data.csv", folder / "labels.csv")
    assert run_json(capsys, "score", folder / "counted.csv", folder / "labels.csv") == plain


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
def test_score_prints_what_the_library_computes(files, capsys, ending):
    folder, X, labels = files
    label_ending = "npz" if ending == "npy" else ending
    names = ["silhouette", "davies_bouldin(q=2)"]
    options = [word for name in names for word in ("--index", name)]
    shown = run_json(
        capsys, "score", folder / f"data.{ending}", folder / f"labels.{label_ending}", *options
    )
    expected = ws.score_partitions(X, labels, ["silhouette", ("davies_bouldin", {"q": 2})])
    for m, partition in enumerate(shown["partitions"][:2]):
        found = [partition["scores"][name] for name in names]
        np.testing.assert_allclose(found, expected.values[m], rtol=1e-12)
    assert [entry["best"] for entry in shown["indices"]] == ["good", "good"]
    assert [entry["direction"] for entry in shown["indices"]] == [1, -1]


def test_an_undefined_score_is_null_with_its_reason(files, capsys):
    folder, _, _ = files
    shown = run_json(
        capsys, "score", folder / "data.csv", folder / "labels.csv", "-i", "silhouette"
    )
    one = shown["partitions"][2]
    assert one["scores"]["silhouette"] is None
    assert "2 clusters" in one["undefined"]["silhouette"]


def test_the_table_names_partitions_the_best_and_the_undefined(files, capsys):
    folder, _, _ = files
    assert main(["score", str(folder / "data.csv"), str(folder / "labels.csv")]) == 0
    shown = capsys.readouterr().out
    assert "silhouette ↑" in shown
    assert "davies_bouldin ↓" in shown
    assert "best by silhouette: good" in shown
    assert "silhouette of one is undefined" in shown


def test_several_label_files_keep_their_names_apart(files, capsys):
    folder, _, labels = files
    write_table(folder / "more.csv", {"good": labels["good"]})
    paths = [folder / "data.csv", folder / "labels.csv", folder / "more.csv"]
    shown = run_json(capsys, "score", *paths, "-i", "cfq")
    names = [partition["name"] for partition in shown["partitions"]]
    assert names == ["labels:good", "bad", "one", "more:good"]


def test_score_writes_a_table_that_reads_back(files, capsys):
    folder, X, labels = files
    out = folder / "scores.csv"
    options = ["-i", "silhouette", "--output", str(out)]
    assert main(["score", str(folder / "data.csv"), str(folder / "labels.csv"), *options]) == 0
    first = out.read_text().splitlines()[1].split(",")
    assert first[0] == "good"
    assert float(first[3]) == pytest.approx(ws.silhouette_score(X, labels["good"]), rel=1e-12)


def test_indices_lists_the_whole_registry(capsys):
    shown = run_json(capsys, "indices")
    assert [entry["name"] for entry in shown] == list(ws.INDICES)
    assert all(entry["citation"] for entry in shown)
    assert main(["indices"]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in ws.INDICES)


@pytest.mark.parametrize("name", list(ws.INDICES))
def test_all_that_is_known_of_one_index_is_shown(name, capsys):
    index = ws.INDICES[name]
    shown = run_json(capsys, "indices", name)
    assert (shown["name"], shown["distances"], shown["words"]) == (
        name,
        index.distances,
        index.words,
    )
    assert main(["indices", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}: {index.title}\n  formula: {index.words}\n  better: ")
    assert index.words.endswith(".")
    assert f"distances: {'yes' if index.distances else 'no'}, " in text
    assert index.citation in text
    assert index.caution in text


def test_an_unknown_index_is_answered_with_the_one_that_was_meant(capsys):
    assert main(["indices", "silhouete"]) == 2
    assert capsys.readouterr().err.endswith("got 'silhouete'; did you mean 'silhouette'?\n")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("silhouette", "silhouette"),
        ("silhouette-cosine", "silhouette_cosine"),
        ("davies_bouldin()", "davies_bouldin"),
        ("davies_bouldin(q=2)", ("davies_bouldin", {"q": 2})),
        ("cfq( wrong_side = squared )", ("cfq", {"wrong_side": "squared"})),
        ("s(a='x', b=1.5)", ("s", {"a": "x", "b": 1.5})),
    ],
)
def test_an_index_is_read_with_its_parameters(text, spec):
    assert parse_index(text) == spec


@pytest.mark.parametrize("text", ["", "a b", "dunn(2)", "dunn(q=2", "dunn(=2)"])
def test_a_garbled_index_is_refused(text):
    with pytest.raises(ValueError, match="index must read name"):
        parse_index(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["absent.csv", "labels.csv"], "existing file, got 'absent.csv'"),
        (["data.csv", "labels.csv", "-i", "nonsense"], "got 'nonsense'"),
        (["data.csv", "labels.csv", "--noise", "loud"], "noise must be one of"),
        (["labels.npz", "labels.csv"], "must hold one array or one named X"),
    ],
)
def test_a_failure_is_one_sentence_without_a_traceback(
    files, capsys, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(files[0])
    assert main(["score", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_debug_shows_where_a_failure_comes_from(files, capsys, monkeypatch):
    monkeypatch.chdir(files[0])
    assert main(["--debug", "score", "absent.csv", "labels.csv"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("WELLSEP_DEBUG", "1")
    assert main(["score", "absent.csv", "labels.csv"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["no-command"], ["score"], ["score", "--no-option"]])
def test_misuse_ends_with_two(capsys, arguments):
    assert main(arguments) == 2
    assert "Usage" in capsys.readouterr().err


def test_the_version_is_shown(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"wellsep {ws.__version__}\n"


def test_every_command_shows_an_example_in_its_help(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in ("indices", "score", "demo"):
        assert name in overview
        assert main([name, "--help"]) == 0
        assert f"wellsep {name}" in capsys.readouterr().out.split("Examples:")[1]


def test_the_list_of_commands_has_the_first_sentence_of_each_help():
    listed = {name: text for summaries in JOBS.values() for name, text in summaries.items()}
    helps = {name: load_command(name).help.split("\n\n")[0] for name in COMMANDS}
    assert listed == helps


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_says_in_a_sentence_what_it_does(name):
    for parameter in load_command(name).params:
        text = parameter.help or ""
        assert len(text.split()) >= 3, (parameter.name, text)
        assert text[0].isupper(), (parameter.name, text)


def test_help_imports_the_command_line_alone():
    code = (
        "import sys; before = set(sys.modules); from wellsep.cli.main import main;"
        "main(['--help']); print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    packages = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    # typer and what it brings; among the packages that take long to import it needs none
    allowed = {"annotated_doc", "attr", "click", "markdown_it", "mdurl", "pygments", "rich"}
    allowed.add("shellingham")
    assert packages - allowed == {"typer", "wellsep"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("wellsep.")}
    assert {room for room in rooms if not room.startswith("_")} == {"cli"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"demo"}))
def test_the_flags_of_a_command_are_told_without_scikit_learn(name):
    # It takes longest to import, and the shell asks for the flags at each completion.
    code = f"import sys; from wellsep.cli.main import main; main(['{name}', '--help']);"
    code += "print(sorted({'sklearn', 'pandas', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_can_be_run(files):
    command = [sys.executable, "-m", "wellsep.cli.main", "score", "data.csv", "absent.csv"]
    done = subprocess.run(command, cwd=files[0], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "Error: LABELS must be an existing file, got 'absent.csv'.\n"


def test_a_closed_pipe_is_not_an_error(files):
    code = "from wellsep.cli.main import main; import sys; sys.exit(main(['indices', '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait()


def test_json_has_no_numpy_and_no_nan():
    value = {"a": np.float32(0.5), "b": np.array([1.0, np.nan, np.inf]), 3: (np.int8(2), None)}
    plain = to_json(value, nan="null", other=str)
    assert plain == {"a": 0.5, "b": [1.0, None, None], "3": [2, None]}
    assert json.dumps(plain)


def test_a_table_leaves_bracketed_words_alone(capsys):
    print_table({"name": ["run[0]"], "x": [1.23456789], "y": [float("nan")], "z": [True]})
    shown = capsys.readouterr().out
    assert "run[0]" in shown
    assert "1.23" in shown
    assert "–" in shown
    assert "yes" in shown


def test_a_parameter_with_brackets_is_printed_as_it_is(capsys):
    runs = {"partition": ["run-1", "run-2"], "params": [{"net": "[a]"}, {"net": "[b]"}]}
    print_columns(with_params({"rank": [1, 2], **runs}))
    assert "net=[a]" in capsys.readouterr().out


def test_progress_is_silent_without_a_terminal(capsys):
    with progress_bar() as told:
        told(1, 3, "working")
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
