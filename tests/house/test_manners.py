"""What lies in the repository: short modules, small files, and nothing of one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from golden import ROOT

LONGEST_MODULE = 700
LARGEST_FILE = 3 << 20
ATTIC_NAMES = {"utils", "helpers", "common", "misc", "util", "helper"}
# Spelled in pieces so that this file does not contain what it looks for.
MACHINE = re.compile(r"(^|[^A-Za-z0-9_.])/(?:work|farm|root|home/\w+|Users/\w+)/|\.libra" + "ry/")
HOSTS = re.compile(r"--(?:extra-)?index-" + r"url|download\.pytorch|--find-" + "links")
UNFINISHED = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|XX" + "X|raise NotImplemented" + r"Error)\b")


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


FILES = tracked()
MODULES = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "src")]
needs_git = pytest.mark.skipif(not FILES, reason="not a git checkout")


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return "" if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")


def lines_with(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]


@needs_git
def test_no_tracked_file_names_a_folder_of_one_machine():
    assert lines_with(MACHINE, FILES) == []


@needs_git
def test_no_tracked_file_names_a_package_host():
    assert lines_with(HOSTS, FILES) == []


@needs_git
def test_no_unfinished_mark_is_left_in_the_package():
    assert lines_with(UNFINISHED, MODULES) == []


@needs_git
def test_no_tracked_file_is_larger_than_three_mebibytes():
    large = [str(p.relative_to(ROOT)) for p in FILES if p.stat().st_size > LARGEST_FILE]
    assert large == []


@needs_git
def test_no_module_needs_long_scrolling():
    lengths = {str(p.relative_to(ROOT)): len(text_of(p).splitlines()) for p in MODULES}
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}


@needs_git
def test_no_room_is_an_attic():
    assert [
        str(p.relative_to(ROOT)) for p in MODULES if set(p.with_suffix("").parts) & ATTIC_NAMES
    ] == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (MACHINE, 'DATA = "/ro' + 'ot/data"'),
        (MACHINE, "see /wo" + "rk/main"),
        (MACHINE, "cd /home/" + "someone/wellsep"),
        (HOSTS, "pip install --index-" + "url x"),
        (UNFINISHED, "# TO" + "DO later"),
    ],
)
def test_a_planted_slip_is_found(pattern, line):
    assert pattern.search(line)


@pytest.mark.parametrize(
    "line", ["docs/work/plan", "a/root/b", "the /root of evil", "https://x.org/home/"]
)
def test_an_innocent_line_is_let_through(line):
    assert not MACHINE.search(line)
