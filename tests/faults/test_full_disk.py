"""On a full disk every writer says so and keeps the old version; no command ends with exit 0."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from golden import ROOT
from killing import DEEP, WRITERS, left_over, prepare

from wellsep import Runs, load_runs
from wellsep.cli.main import main

pytestmark = pytest.mark.faults
FULL = "No space left on device"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 700 kB of its own."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(place)]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command mount")
    if done.returncode != 0:
        pytest.skip(f"mount refused: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder, leave: int) -> None:
    """Fill the disk up to this many bytes, in whole blocks of the system."""
    free = os.statvfs(folder)
    rest = free.f_bavail * free.f_frsize - leave
    if rest > 0:
        (folder / "filling").write_bytes(b"x" * rest)


@pytest.mark.parametrize("leave", [0, 4096, 8192, 16384])
@pytest.mark.parametrize("kind", list(WRITERS))
def test_a_writer_says_that_the_disk_is_full_and_keeps_the_old_version(small_disk, kind, leave):
    if kind in DEEP:
        pytest.importorskip("torch", reason="needs the extra deep")
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    prepare(kind)
    save, load = WRITERS[kind]
    save(small_disk, 0)
    fill(small_disk, leave)
    told = None
    try:
        save(small_disk, 1)
    except OSError as error:
        told = str(error)
    assert load(small_disk) == (1 if told is None else 0)
    assert told is None or FULL in told
    assert told is not None or leave > 0
    assert left_over(small_disk) == []


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (3000, 2)), rng.normal(9, 1, (3000, 2))]
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.arange(6000) // 3000)
    spaces = {"a": X[::50], "b": X[::50] * [1, 2]}
    labels = {f"p{k}": np.arange(120) // (120 // k) for k in (2, 3, 4)}
    Runs.from_parts(spaces, labels).save(tmp_path / "runs")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "cluster x.npy -k 2 -m k-means -o disk/l.csv",
        "cluster x.npy -k 2 -m k-means -o disk/l.npy",
        "cluster x.npy -k 2 -m k-means -o disk/l.parquet",
        "score x.npy y.npy -i calinski_harabasz -o disk/s.csv",
        "score x.npy y.npy -i calinski_harabasz -o disk/s.parquet",
        "rank runs --draws 0 --cache none --save disk/result",
        "rank runs --draws 0 --cache none --report disk/r.html",
        "choose-k x.npy --k 2:3 -i calinski_harabasz --save disk/chosen",
        "train -d x.npy -m deep-k-means -k 2 -s epochs=0 pretrain_epochs=0 -j 1 -o disk/runs",
    ],
)
def test_a_command_never_ends_well_on_a_full_disk(small_disk, data, capsys, monkeypatch, words):
    if ".parquet" in words:
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    if words.startswith("train"):
        pytest.importorskip("torch", reason="needs the extra deep")
    monkeypatch.chdir(data)
    fill(small_disk, 0)
    assert main(words.split()) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    assert [line for line in shown if line.startswith("Error")] == shown[-1:]
    assert FULL in shown[-1]
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["filling"]


def test_a_full_cache_is_named_and_the_ranking_made(small_disk, data, capsys):
    fill(small_disk, 0)
    words = ["rank", str(data / "runs"), "--draws", "0", "--cache", str(small_disk / "cache")]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "is ranked first of 3 runs" in shown.out
    assert f"Scores cannot be kept in {small_disk / 'cache'}: {FULL}" in shown.err


def test_a_sweep_on_a_full_disk_keeps_what_fits_and_makes_the_rest_later(small_disk):
    pytest.importorskip("torch", reason="needs the extra deep")
    from wellsep.deep import DeepKMeans, sweep

    X = np.random.default_rng(0).normal(size=(500, 4))
    model = DeepKMeans(
        2, pretrain_epochs=0, epochs=0, hidden=(4,), n_latent=2, device="cpu", random_state=0
    )
    fill(small_disk, 70_000)
    weights = [0.1 * i for i in range(1, 9)]
    result = sweep(model, X, {"kmeans_weight": weights}, out=small_disk / "s")
    assert 0 < len(result.failed) < 8
    assert all(FULL in str(trial.error) for trial in result.failed)
    assert len(load_runs(small_disk / "s")) == 8 - len(result.failed)
    (small_disk / "filling").unlink()
    again = sweep(model, X, {"kmeans_weight": weights}, out=small_disk / "s")
    assert {trial.status for trial in again.trials} == {"kept", "done"}
    assert left_over(small_disk) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["indices"], ["indices", "--json"], ["--help"], ["--version"]])
def test_output_that_cannot_be_written_is_told(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "wellsep", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
    assert done.returncode == 2
    assert done.stderr == f"Error: Writing the output failed: {FULL}. It is not complete.\n"
