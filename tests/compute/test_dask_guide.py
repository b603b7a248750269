"""The two deployments that the guide shows, run as it shows them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws

pytest.importorskip("distributed", reason="the extra dask is not installed")

PAGE = (ROOT / "docs" / "guides" / "dask.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def block(language: str, holding: str) -> str:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.M | re.S)
    return next(text for fenced, text in found if fenced == language and holding in text)


@pytest.mark.slow
def test_the_laptop_example_runs(tmp_path):
    script = tmp_path / "laptop.py"
    script.write_text(block("python", "LocalCluster"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "watch it at http://127.0.0.1:" in done.stdout
    assert re.search(r"CFQ \d+\.\d+", done.stdout)
    assert "estimated from 500 of 20,000 objects" in done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(commands: list[str], folder: Path):
    """Each command in a process of its own, ended at the end."""
    started = []
    try:
        for command in commands:
            words = [str(BIN / "dask"), *command.split()[1:]]
            log = open(folder / f"{len(started)}.log", "w")  # noqa: SIM115  (closed below)
            process = subprocess.Popen(words, cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log)
            started.append((process, log))
        yield [process for process, _ in started]
    finally:
        for process, log in reversed(started):
            process.terminate()
            process.wait(timeout=60)
            log.close()


def wait_for_worker(log: Path) -> None:
    deadline = time.monotonic() + 60
    while "Starting established connection" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def shown_commands() -> list[str]:
    return block("sh", "dask scheduler").replace("8786", str(free_port())).splitlines()


@pytest.fixture
def folder(tmp_path):
    """A folder that holds runs/."""
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    for i in range(4):
        labels = np.where(rng.random(90) < i / 5, rng.integers(0, 3, 90), truth)
        X = rng.normal(size=(90, 2)) + 6 * np.eye(3, 2)[truth]
        ws.save_run(tmp_path / "runs", X, labels, name=f"net {i}")
    return tmp_path


def test_a_lost_scheduler_is_told_in_a_sentence_and_what_is_done_is_kept(folder):
    scheduler, worker, *_, command = shown_commands()
    runs, cache = ws.load_runs(folder / "runs"), folder / "cache"
    # What watches the worker and shows the scheduler takes long to start.
    lean = [f"{scheduler} --no-dashboard", f"{worker} --no-nanny --no-dashboard"]
    with running(lean, folder) as processes:
        wait_for_worker(folder / "1.log")

        def lose(done, total, name):
            if done == 2:
                processes[0].kill()
                processes[0].wait()

        with pytest.raises(
            ConnectionError, match=r"The Dask scheduler went away after \d of 4 embeddings"
        ):
            ws.score_runs(runs, scheduler=command.split()[4], cache=cache, progress=lose)
    assert len(list(cache.iterdir())) >= 2


@pytest.mark.slow
def test_a_scheduler_and_two_workers_rank_a_folder(folder):
    *servers, command = shown_commands()
    assert [line.split()[1] for line in servers] == ["scheduler", "worker", "worker"]
    with running(servers, folder):
        wait_for_worker(folder / "2.log")
        done = subprocess.run(
            [sys.executable, "-m", "wellsep.cli.main", *command.split()[1:], "--cache", "none"],
            cwd=folder,
            env={**ENVIRONMENT, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "worker(s)" in done.stderr
    assert "dashboard: http://127.0.0.1:" in done.stderr
    first = next(line for line in done.stdout.splitlines() if "net" in line)
    assert "net 0" in first
