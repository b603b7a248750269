"""The training script of the ACE experiment: its seeds, and what it refuses in a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from experiments.bookkeeping import ROOT

pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--experiments", "foo"], "must be TASK-METHOD-SET"),
        (["--experiments", "tuning-deepcluster-usps_11000"], "tuning with jule or depict"),
        (["--experiments", "tuning-jule-nothing"], "sets usps_11000"),
        (["--experiments", "tuning-jule-coil20_32", "--jobs", "0"], "a whole number from 1 on"),
        (["--experiments", "tuning-jule-coil20_32"], "a folder that holds coil20_32.npz"),
    ],
)
def test_what_cannot_be_trained_is_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path))
    command = [sys.executable, ROOT / "experiments" / "ace" / "train.py", tmp_path / "runs", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert message in ended.stderr.replace("\n", " ")
    assert not (tmp_path / "runs").exists()


def test_settings_share_a_seed_and_numbers_of_clusters_have_one_each():
    from experiments.ace.train import jobs_of

    assert {job.seed for job in jobs_of("tuning-jule-coil20_32")} == {0}
    assert {job.seed for job in jobs_of("tuning-depict-usps_11000")} == {0}
    assert [job.seed for job in jobs_of("clusters-jule-coil100_32")] == list(range(10))
