"""What README and guides show is what the program does."""

from __future__ import annotations

import doctest
import re
import tomllib

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


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run_as_shown(path):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(path), module_relative=False, optionflags=flags, verbose=False)
    assert result.attempted > 0
    assert result.failed == 0


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
