"""Version, citation, change log and workflows agree with each other."""

from __future__ import annotations

import re

from golden import ROOT

import wellsep as ws


def test_citation_and_change_log_name_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M).group(1) == ws.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.M).group(1) == ws.__version__


def test_every_step_of_the_workflows_calls_a_target_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    called = set()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = workflow.read_text(encoding="utf-8")
        for step in re.findall(r"- run: (.+)", text):
            assert step.startswith("make "), step
            called |= {word for word in step.split()[1:] if re.fullmatch(r"[a-z][a-z-]*", word)}
        called |= set(re.findall(r"target: ([a-z-]+)", text))
    assert called
    assert called <= targets


def test_every_action_of_the_workflows_is_pinned_to_a_commit_that_names_its_version():
    pinned = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    uses = [
        line
        for workflow in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in re.findall(r"uses:\s*(.+)", workflow.read_text(encoding="utf-8"))
    ]
    assert uses
    assert [line for line in uses if not pinned.fullmatch(line)] == []
    versions = {tuple(line.split("@")) for line in uses}
    assert len(versions) == len({action for action, _ in versions})  # each action in one version


def test_releases_are_built_with_tools_that_are_known_by_their_hashes():
    text = (ROOT / "requirements-build.txt").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    pin = re.compile(r"([a-z][a-z0-9-]*)==([0-9.]+)\s+--hash=sha256:[0-9a-f]{64}")
    tools = dict(pin.fullmatch(line).groups() for line in lines)
    assert {"build", "hatchling"} <= set(tools)
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", constraints, re.M))
    assert {name: pinned.get(name, version) for name, version in tools.items()} == tools
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndist:")[2]
    recipe = recipe.partition("\n\n")[0]
    assert "--require-hashes -r requirements-build.txt" in recipe
    assert "build --no-isolation" in recipe  # or the build would fetch its own tools
