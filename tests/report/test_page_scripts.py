"""The scripts of the page: quiet, alike in form, and each part known to the page."""

from __future__ import annotations

import re

import pytest
from golden import ROOT

from wellsep.report.page import SCRIPTS

FOLDER = ROOT / "src" / "wellsep" / "report" / "template"
NAMES = sorted(path.name for path in FOLDER.glob("*.js"))
# What a linter would refuse.
REFUSED = {
    r"\bconsole\.|\bdebugger\b|\balert\(": "a leftover",
    r"[^=!]==[^=]|!=[^=]": "a comparison that converts",
    r"\bvar\s": "var",
    r"\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write": "markup made from text",
    r"\beval\(|new Function\(": "code made from text",
    r"https?://(?!www\.w3\.org)": "an address",
    r"\t| +$": "a tab or blanks at the end",
}


def without_texts(line: str) -> str:
    """A line without what stands in quotation marks, patterns and comments."""
    line = re.sub(r"(?:(?<=[=(,] )|(?<=\())/(?![/*])(?:[^/\\\n]|\\.)+/[gimsuy]*", "''", line)
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "''", line).partition("//")[0]


@pytest.mark.parametrize("name", NAMES)
def test_no_script_has_what_a_linter_refuses(name):
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    wrong = [
        f"{name}:{number}: {what}"
        for number, line in enumerate(lines, 1)
        for pattern, what in REFUSED.items()
        if re.search(pattern, line if "blanks" in what else without_texts(line))
    ]
    assert wrong == []


def test_every_script_is_part_of_the_page_and_all_files_keep_their_budget():
    assert sorted(SCRIPTS) == NAMES
    files = [*FOLDER.glob("*.js"), FOLDER / "style.css", FOLDER / "page.html"]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 3000


@pytest.mark.parametrize("name", NAMES)
def test_every_name_that_a_script_shares_is_used_or_a_part_of_the_state(name):
    text = (FOLDER / name).read_text("utf-8")
    whole = "".join((FOLDER / one).read_text("utf-8") for one in NAMES)
    shared = set(re.findall(r"^ *(W\.\w+) = ", text, re.MULTILINE))
    unused = [one for one in shared if len(re.findall(rf"{re.escape(one)}\b", whole)) < 2]
    assert unused == []
