"""Writers and readers of one folder at the same time: no result is lost, no version is mixed."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest
from killing import WRITERS

from wellsep import Runs, load_runs, save_run
from wellsep.cli.main import main

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.name != "posix", reason="locks of POSIX systems"),
]
SPAWN = multiprocessing.get_context("spawn")
KINDS = ["record", "run", "archive", "csv", "npy"]


def write_often(kind: str, folder: Path, first: int, times: int) -> None:
    save, _ = WRITERS[kind]
    for version in range(first, first + times):
        save(folder, version)


def together(*jobs) -> list[int]:
    """Exit codes of processes that run at the same time; a reader may look on meanwhile."""
    processes = [SPAWN.Process(target=target, args=args) for target, args in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(200)
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_leave_one_whole_version_and_nothing_else(tmp_path, kind):
    save, load = WRITERS[kind]
    save(tmp_path, 0)
    alone = len(list(tmp_path.rglob("*")))
    jobs = [(write_often, (kind, tmp_path, first, 60)) for first in (100, 200)]
    assert together(*jobs) == [0, 0]
    assert load(tmp_path) in (159, 259)
    assert len(list(tmp_path.rglob("*"))) == alone  # no part of a lost version is left


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_beside_two_writers_sees_one_version_or_a_sentence(tmp_path, kind):
    save, load = WRITERS[kind]
    save(tmp_path, 0)
    processes = [
        SPAWN.Process(target=write_often, args=(kind, tmp_path, first, 60)) for first in (100, 300)
    ]
    for process in processes:
        process.start()
    seen, told = set(), []
    while any(process.is_alive() for process in processes):
        try:
            seen.add(load(tmp_path))  # fails where two versions are mixed
        except OSError as error:
            told.append(str(error))
    assert [process.exitcode for process in processes] == [0, 0]
    # Replaced between loading and reading, or just while its folder was swapped.
    sentences = ("the file was replaced since it was loaded", "load the runs again")
    assert [text for text in told if not any(part in text for part in sentences)] == []
    assert len(seen) > 1
    assert load(tmp_path) in (159, 359)


def rank(folder: Path, cache: Path, result: Path) -> None:
    for _ in range(6):
        words = ["rank", folder, "--draws", 5, "--cache", cache, "--save", result]
        code = main([*map(str, words)])
        if code:
            raise SystemExit(code)


def test_rankings_at_the_same_time_share_a_cache_and_a_folder(tmp_path, capsys):
    rng = np.random.default_rng(0)
    spaces = {f"s{i}": rng.normal(size=(60, 3)) for i in range(4)}
    partitions = {f"p{k}": rng.integers(0, k, 60) for k in range(2, 6)}
    Runs.from_parts(spaces, partitions).save(tmp_path / "runs")
    folders = (tmp_path / "runs", tmp_path / "cache", tmp_path / "result")
    assert together(*[(rank, folders)] * 3) == [0, 0, 0]
    assert main(["explain", str(tmp_path / "result")]) == 0
    assert len(list((tmp_path / "result").iterdir())) == 2
    assert [len(list(place.iterdir())) for place in (tmp_path / "cache").iterdir()] == [2] * 4


def save_numbered(folder: Path, times: int) -> None:
    for _ in range(times):
        save_run(folder, None, np.full(6, os.getpid()))


def test_no_run_is_lost_when_three_processes_number_theirs(tmp_path):
    assert together(*[(save_numbered, (tmp_path, 15))] * 3) == [0, 0, 0]
    assert len(load_runs(tmp_path)) == 45


def sweep_slowly(folder: Path) -> None:
    from wellsep.deep import DeepKMeans, sweep

    X = np.random.default_rng(0).normal(size=(60, 4))
    model = DeepKMeans(2, pretrain_epochs=40, epochs=40, device="cpu", random_state=0)
    (folder / f"ready-{os.getpid()}").touch()
    while len(list(folder.glob("ready-*"))) < 2:
        time.sleep(0.01)
    weights = [round(0.1 * i, 1) for i in range(1, 9)]
    result = sweep(model, X, {"kmeans_weight": weights}, out=folder / "runs")
    mine = [trial.name for trial in result.trials if trial.status == "done"]
    (folder / f"mine-{os.getpid()}").write_text("\n".join(mine))
    if {trial.status for trial in result.trials} - {"done", "kept", "running"}:
        raise SystemExit(1)


def test_two_sweeps_of_one_folder_share_the_trials(tmp_path):
    pytest.importorskip("torch", reason="needs the extra deep")
    assert together((sweep_slowly, (tmp_path,)), (sweep_slowly, (tmp_path,))) == [0, 0]
    first, second = (path.read_text().split() for path in tmp_path.glob("mine-*"))
    assert (len(first) + len(second), len({*first, *second})) == (8, 8)  # each trained once
    assert len(load_runs(tmp_path / "runs")) == 8
    assert min(len(first), len(second)) >= 1
    assert not list((tmp_path / "runs").glob(".*"))
