"""A writer that is killed at any moment leaves the old version or the new one, never a mixture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to kill a writer"),
]
SCRIPT = Path(__file__).with_name("killing.py")
KINDS = ["record", "run", "archive", "csv", "parquet", "npy", "model", "checkpoint"]


def killed(*words, script=SCRIPT) -> dict:
    done = subprocess.run(
        [sys.executable, script, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def skip_without(kind) -> None:
    if kind in ("model", "checkpoint"):
        pytest.importorskip("torch", reason="needs the extra deep")
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_step_the_old_version_or_the_new_is_read(tmp_path, kind):
    skip_without(kind)
    found = killed(kind, "steps", tmp_path)
    assert found["kills"] >= 5
    assert found["seen"] == sorted(found["seen"])  # once the new version is there, it stays
    assert (found["seen"][0], found["seen"][-1]) == (0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_time_one_whole_version_is_read(tmp_path, kind):
    skip_without(kind)
    found = killed(kind, "times", tmp_path, 12)
    assert found["changed"] >= 1
    assert found["left"] == []


@pytest.mark.parametrize(("command", "step"), [("rank", 8), ("train", 5)])
def test_a_command_that_was_killed_ends_as_if_it_had_not_been_when_run_again(
    tmp_path, command, step
):
    if command == "train":
        pytest.importorskip("torch", reason="needs the extra deep")
    script = SCRIPT.with_name("killing_commands.py")
    assert killed(command, tmp_path, step, script=script)["kills"] >= 8
