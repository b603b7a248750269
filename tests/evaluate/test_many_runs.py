"""Hundreds of runs are judged in bounded memory, and what takes long is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws

JUDGE = """
import json, resource, sys
import numpy as np, wellsep as ws
rng = np.random.default_rng(0)
n, n_runs = 200, int(sys.argv[1])
def partition(k):
    drawn = rng.random(n) < 0.4
    return np.where(drawn, rng.integers(0, k, n), np.arange(n) % 5)
runs = ws.Runs.from_parts(None, {f"p{m}": partition(2 + m % 9) for m in range(n_runs)})
ws.judge(runs[:4], n_draws=2)  # loads all that is needed
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
best = ws.judge(runs).ranking.best
print(json.dumps({"megabytes": peak() - before, "best": best}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is measured on Linux")
def test_eight_hundred_partitions_vote_in_less_than_180_megabytes():
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, "800"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["megabytes"] < 180  # 320,000 pairs; 252 with floats for each


@pytest.mark.parametrize("with_space", [False, True])
def test_counting_many_pairs_and_half_samples_is_told_to_the_end(with_space):
    rng = np.random.default_rng(0)
    spaces = {"a": rng.normal(size=(30, 2))} if with_space else None
    partitions = {f"p{m}": rng.integers(0, 2 + m % 3, 30) for m in range(70)}
    told = {}
    runs = ws.Runs.from_parts(spaces, partitions)
    asked = {"judge": "consensus", "n_draws": 3}  # in one embedding the index decides by default
    ws.judge(runs, **asked, progress=lambda *p: told.setdefault(p[2], []).append(p[:2]))
    assert told["pairs"] == [(64, 69), (69, 69), (64, 70), (70, 70)]
    assert told["half-samples"] == [(i, 3) for i in range(4)]
    assert ("a" in told) == with_space
