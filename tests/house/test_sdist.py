"""The source distribution holds all that the tests read."""

from __future__ import annotations

import subprocess
import tomllib
from fnmatch import fnmatch

import pytest
from golden import ROOT

ALWAYS_TAKEN = {"pyproject.toml", "LICENSE", ".gitignore"}
NEEDED_BY_NO_TEST = {".oxlintrc.json", ".pre-commit-config.yaml"}


def test_the_source_distribution_takes_every_tracked_folder_and_file():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = b""
    if not listed:  # unpacked, perhaps inside the ignored folder of a checkout
        pytest.skip("not a git checkout")
    tops = {name.split("/")[0] for name in listed.decode().split("\0") if name}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    patterns = build["targets"]["sdist"]["include"]
    left_out = {top for top in tops if not any(fnmatch(top, pattern) for pattern in patterns)}
    assert left_out == ALWAYS_TAKEN | NEEDED_BY_NO_TEST
