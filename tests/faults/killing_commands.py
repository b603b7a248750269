"""Run a command, be killed at it, and run it again; run by the tests in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
from killing import arm, left_over

from wellsep import Runs, load_runs
from wellsep.cli.main import main

COMMANDS = {
    "train": "train -d x.npy -m deep-k-means -k 2 -o runs --seed 0 --jobs 1 --device cpu "
    "-s pretrain_epochs=1 -s epochs=1 -s n_latent=2 -g kmeans_weight=0.1,1",
    "rank": "rank given --draws 4 --cache cache --save judgement --seed 0",
}


def given(folder: Path) -> None:
    """What the commands read."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (30, 3)), rng.normal(9, 1, (30, 3))].astype(np.float32)
    np.save(folder / "x.npy", X)
    labels = {f"p{k}": np.arange(60) // (60 // k) for k in (2, 3, 4)}
    Runs.from_parts({"a": X, "b": X * [1, 2, 3]}, labels).save(folder / "given")


def outcome(words: str) -> list[object]:
    """What a command that ends well leaves here and prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
        assert main(words.split()) == 0, shown.getvalue()
    assert left_over(Path()) == []
    if words.startswith("train"):
        runs = load_runs("runs", verify=True)
        return [(run.name, run.labels.tolist(), run.embedding.tolist()) for run in runs]
    return [shown.getvalue()]


def kill_command(words: str, folder: Path, step: int) -> dict[str, int]:
    """Die at the first call that changes the disk, and then ``step`` calls later, …"""
    wanted, after, kills = None, -1, 0
    while True:
        place = folder / str(after)
        place.mkdir()
        given(place)
        os.chdir(place)
        if after < 0:  # the reference
            wanted, after = outcome(words), 0
            continue
        child = os.fork()
        if child == 0:
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            arm(after)
            os._exit(main(words.split()))
        status = os.waitpid(child, 0)[1]
        assert outcome(words) == wanted, f"killed at call {after}"
        if status == 0:
            return {"kills": kills}
        kills, after = kills + 1, after + step


if __name__ == "__main__":
    found = kill_command(COMMANDS[sys.argv[1]], Path(sys.argv[2]).resolve(), int(sys.argv[3]))
    sys.stdout.write(json.dumps(found))
