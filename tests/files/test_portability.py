"""Files are written and read alike on Linux, macOS and Windows, as far as Linux can tell."""

from __future__ import annotations

import ast

import pytest
from golden import ROOT

import wellsep as ws

SOURCE = ROOT / "src" / "wellsep"
TEXT_METHODS = {"read_text", "write_text"}


def without_encoding(source: str) -> list[int]:
    """Lines that open text in the encoding of the machine, which is not UTF-8 on Windows."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or any(
            k.arg in ("encoding", None) for k in node.keywords
        ):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        is_open = isinstance(node.func, ast.Name) and name == "open"
        modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
        modes += [k.value.value for k in node.keywords if k.arg == "mode"]
        binary = bool(modes) and "b" in str(modes[0])
        is_method = isinstance(node.func, ast.Attribute) and name in TEXT_METHODS
        if is_method or (is_open and not binary):
            found.append(node.lineno)
    return found


def test_every_text_file_is_opened_as_utf8():
    wrong = {
        str(path.relative_to(SOURCE)): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := without_encoding(path.read_text(encoding="utf-8")))
    }
    assert wrong == {}


def test_a_file_in_the_encoding_of_the_machine_is_seen():
    assert without_encoding("open('a')\npath.read_text()\nopen('a', 'rb')") == [1, 2]


@pytest.mark.parametrize(
    "names",
    [("K-Means", "k-means"), ("CON", "nul"), ("a/b", "a\\b"), ("a:1", "a*?"), ("ä", "end.")],
)
def test_runs_whose_names_no_file_may_have_come_back(tmp_path, names):
    labels = {names[0]: [0, 0, 1, 1], names[1]: [0, 1, 1, 1]}
    runs = ws.Runs.from_parts({"pca": [[0.0], [1.0], [5.0], [6.0]]}, labels)
    runs.save(tmp_path / "runs")
    again = ws.load_runs(tmp_path / "runs")
    assert {name: list(one) for name, one in again.partitions.items()} == labels


def test_a_name_that_differs_in_case_gets_a_folder_of_its_own(tmp_path):
    first, second = (ws.Runs.from_parts(None, {n: [0, 0, 1]}) for n in ("K-Means", "k-means"))
    first.save(tmp_path / "runs")
    # What a file system shows that does not tell the two apart:
    (tmp_path / "runs" / "K-Means").rename(tmp_path / "runs" / "k-means")
    second.save(tmp_path / "runs")
    assert list(ws.load_runs(tmp_path / "runs").partitions) == ["K-Means", "k-means"]
