"""What README and guides show is what the program does."""

from __future__ import annotations

import doctest
import re
import tomllib
from importlib.util import find_spec

import pytest
from golden import ROOT

import wellsep
from wellsep.cli.main import COMMANDS

PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"_build", "generated", "auto_examples"} & set(path.parts)
]
WITH_EXAMPLES = [path for path in PAGES if ">>> " in path.read_text(encoding="utf-8")]

# the line that begins a block of examples → the optional package that the block needs
OPTIONAL = {
    "from wellsep.deep import": "torch",
    "from wellsep import plot": "matplotlib",
    "import dask": "dask",
}


def name_of(path):
    return str(path.relative_to(ROOT))


def without_absent_packages(text):
    """Blank the blocks whose package is absent; return the text and the packages."""
    absent = {line: name for line, name in OPTIONAL.items() if not find_spec(name)}
    parts, needed = re.split(r"^(```.*\n)", text, flags=re.MULTILINE), set()
    for i, part in enumerate(parts):
        found = {name for line, name in absent.items() if f">>> {line}" in part}
        parts[i] = "\n" * part.count("\n") if found else part
        needed |= found
    return "".join(parts), sorted(needed)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run_as_shown(path):
    text, absent = without_absent_packages(path.read_text(encoding="utf-8"))
    shown = {"__name__": "__main__"}
    examples = doctest.DocTestParser().get_doctest(text, shown, name_of(path), str(path), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(examples)
    assert result.failed == 0
    if absent:
        pytest.skip(f"{result.attempted} examples ran, the others need {', '.join(absent)}")
    assert result.attempted > 0


def test_only_blocks_that_need_an_absent_package_are_blanked(monkeypatch):
    page = "```\n>>> 1\n```\nWords.\n```\n>>> import dask\n>>> 2\n```\n```\n>>> 3\n```\n"
    monkeypatch.setitem(globals(), "find_spec", lambda name: None)
    text, absent = without_absent_packages(page)
    assert text == page.replace(">>> import dask\n>>> 2", "\n")
    assert absent == ["dask"]
    monkeypatch.setitem(globals(), "find_spec", lambda name: name)
    assert without_absent_packages(page) == (page, [])


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_commands_a_page_shows_exist(path):
    fenced = re.findall(r"^```\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    shown = set(re.findall(r"^wellsep ([a-z][a-z-]*)", "\n".join(fenced), re.M))
    assert shown <= set(COMMANDS)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_make_targets_a_page_names_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert named <= targets


def test_the_readme_names_demo_and_test():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == wellsep.__version__
    assert f"version: {wellsep.__version__}\n" in citation
    assert f"## {wellsep.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_extras_the_installation_page_lists_exist():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == set(extras)
