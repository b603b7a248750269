"""A call stops when told: workers end with their parent, and Ctrl-C says what is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from golden import ROOT

psutil = pytest.importorskip("psutil", reason="needs psutil to see the workers")

from wellsep import load_runs

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems"),
]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
SOON = 2.0  # seconds of processor time and of waiting, on a machine that does nothing else


def start(*words) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def busy_share() -> float:
    """How many processes wait for each processor: all times here are so much longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def training(tmp_path):
    """A command that trains eight settings, two at a time, and has finished one."""
    pytest.importorskip("torch", reason="needs the extra deep")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(3000, 16)).astype("f4"))
    rates = ",".join(f"{i}e-4" for i in range(1, 9))
    words = ["-m", "wellsep", "train", "-d", tmp_path / "x.npy", "-m", "dec", "-k", 4]
    words += ["-o", tmp_path / "runs", "--device", "cpu", "--jobs", 2, "-g", f"lr={rates}"]
    words += ["-s", "pretrain_epochs=20", "-s", "epochs=10"]
    process = start(*words)
    runs = tmp_path / "runs"
    assert wait_for(lambda: finished(runs) or process.poll() is not None, 200)
    yield process, runs
    if process.poll() is None:
        process.kill()
    process.communicate()


def finished(runs: Path) -> list[Path]:
    """Runs that are there, without those still being written in a hidden folder."""
    return [path for path in runs.glob("*/run.json") if not path.parent.name.startswith(".")]


def workers_of(process: subprocess.Popen) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "LokyProcess" in " ".join(child.cmdline())]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(training, number):
    process, runs = training
    workers = workers_of(process)
    assert len(workers) == 2
    process.send_signal(number)
    process.wait(60)
    # One that still imports torch looks for its parent when that is done.
    assert wait_for(lambda: all(map(ended, workers)), 10 * SOON * busy_share())
    there = len(finished(runs))
    time.sleep(1.0)
    assert len(finished(runs)) == there < 8


def test_ctrl_c_ends_the_workers_and_says_what_is_kept(training):
    process, runs = training
    workers = workers_of(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert wait_for(lambda: all(map(ended, workers)), SOON * busy_share())
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    done = len(load_runs(runs))
    assert done < 8
    assert f"Interrupted. {done} finished run" in shown
    assert f"kept in {runs}. Repeat the command to continue." in shown
    assert "Traceback" not in shown


FITS = """
import numpy as np, wellsep as ws
X = np.random.default_rng(0).normal(size=(60_000, 16))
print("ready", flush=True)
ws.choose_k(X, range(2, 60), n_jobs=2, n_repeats=8, random_state=0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_of_joblib_end_with_their_parent(number):
    process = start("-c", FITS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def fitting() -> list[psutil.Process]:
        children = psutil.Process(process.pid).children(recursive=True)
        found = [child for child in children if "LokyProcess" in " ".join(child.cmdline())]
        return [child for child in found if child.num_threads() > 2]  # one watches the parent

    assert wait_for(lambda: len(fitting()) == 2, 100)
    time.sleep(1.0)
    workers = fitting()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert wait_for(lambda: all(map(ended, workers)), SOON * busy_share())


CALLS = {
    "pairs": "ws.score_partitions(X, y, ['silhouette'], n_jobs=2)",
    "metric": "ws.score_partitions(X, y, [('silhouette', {'metric': 'manhattan'})], n_jobs=2)",
    "order": "ws.score_partitions(X, y, ['c_index', 'dunn'], n_jobs=2)",
    "trees": "ws.score_partitions(X, y, ['dbcv'], n_jobs=2)",
    "neighbours": "ws.local_connectivity(X, y, n_jobs=2)",
    "k-means": "ws.KMeans(300, n_init=99, max_iter=999, tol=0, random_state=0).fit(X)",
    "moves": "ws.CFMeans(100, random_state=0).fit(X)",
    "fits": "ws.choose_k(X, range(2, 40), n_jobs=2)",
    "judge": "ws.judge(ws.Runs.from_parts({f's{i}': X[:9000, :i] for i in range(3, 16)},"
    " {f'p{k}': np.arange(9000) % k for k in range(2, 30)}), n_jobs=2)",
}
CODE = """
import time, numpy as np, wellsep as ws
X = np.random.default_rng(0).normal(size=(60_000, 16)); y = np.arange(60_000) % 7
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("told", flush=True)
"""


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_every_long_call_soon(name):
    process = start("-c", CODE.format(call=CALLS[name]))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    assert process.poll() is None
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "told\n"
    assert time.monotonic() - begun < SOON * busy_share()
    process.communicate(timeout=60)
