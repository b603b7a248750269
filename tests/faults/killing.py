"""Save one version after another and be killed at it; run by the tests in a process of its own."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wellsep import Run, Runs, load_runs, save_run
from wellsep.evaluate.scoring.spaces import SpaceScores
from wellsep.tables.reading import read_array, read_table
from wellsep.tables.writing import write_array, write_table

N = 2000  # values of an array: more than one block of a file system


def one(*versions: Any) -> int:
    """The version of all parts; parts of two versions are what must never be read."""
    assert len(set(map(int, versions))) == 1, f"mixed versions {versions}"
    return int(versions[0])


def save_record(folder: Path, version: int) -> None:
    values = np.full((N, 1), float(version))
    SpaceScores((str(version),) * N, values, axes=str(version)).save(folder / "record")


def load_record(folder: Path) -> int:
    found = SpaceScores.load(folder / "record")
    return one(found.axes, *set(found.digests), *np.unique(found.values))


def save_one_run(folder: Path, version: int) -> None:
    space, labels = np.full((N, 2), float(version)), np.full(N, version)
    save_run(folder, space, labels, name="a", params={"v": version}, overwrite=True)


def load_one_run(folder: Path) -> int:
    run = load_runs(folder)["a"]
    return one(run.params["v"], *np.unique(run.labels), *np.unique(run.embedding))


def save_archive(folder: Path, version: int) -> None:
    space, labels = np.full((N, 2), float(version)), np.full(N, version)
    run = Run("a", embedding=space, labels=labels, params={"v": version})
    Runs([run]).save(folder / "all.npz", overwrite=True)


def load_archive(folder: Path) -> int:
    run = load_runs(folder / "all.npz")["a"]
    return one(run.params["v"], *np.unique(run.labels), *np.unique(run.embedding))


def save_table(folder: Path, version: int, suffix: str = ".csv") -> None:
    write_table(folder / f"t{suffix}", {"a": [version] * N, "b": [version + 0.5] * N})


def load_table(folder: Path, suffix: str = ".csv") -> int:
    a, b = read_table(folder / f"t{suffix}").columns
    assert len(a) == N
    return one(*np.unique(a), *np.unique(b - 0.5))


def save_parquet(folder: Path, version: int) -> None:
    save_table(folder, version, ".parquet")


def load_parquet(folder: Path) -> int:
    return load_table(folder, ".parquet")


def save_npy(folder: Path, version: int) -> None:
    write_array(folder / "x.npy", np.full(N, version))


def load_npy(folder: Path) -> int:
    return one(*np.unique(read_array(folder / "x.npy")))


def _model(version: int) -> Any:
    from wellsep.deep import DeepKMeans

    X = np.random.default_rng(0).normal(size=(30, 4))
    return DeepKMeans(
        2, pretrain_epochs=0, epochs=0, hidden=(4,), device="cpu", random_state=version
    ).fit(X)


MODELS: dict[int, Any] = {}


def save_model(folder: Path, version: int) -> None:
    MODELS[version % 2].save(folder / "model")


def load_model(folder: Path) -> int:
    from wellsep.deep import load

    found = load(folder / "model", device="cpu")
    wanted = MODELS[found.random_state]
    assert np.array_equal(found.embedding_, wanted.embedding_), "parameters and weights differ"
    return int(found.random_state)


def save_checkpoint(folder: Path, version: int) -> None:
    import torch

    from wellsep.deep.checkpoints import Checkpoint

    state = Checkpoint(folder / "training", {"method": "x"}, resume=False)
    state.write({"a": torch.full((N,), float(version))}, {"v": version})


def load_checkpoint(folder: Path) -> int:
    from wellsep.deep.checkpoints import Checkpoint

    state = Checkpoint(folder / "training", {"method": "x"})
    return one(state.record["v"], *np.unique(state.tensors["a"].numpy()))


WRITERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], int]]] = {
    "record": (save_record, load_record),
    "run": (save_one_run, load_one_run),
    "archive": (save_archive, load_archive),
    "csv": (save_table, load_table),
    "parquet": (save_parquet, load_parquet),
    "npy": (save_npy, load_npy),
    "model": (save_model, load_model),
    "checkpoint": (save_checkpoint, load_checkpoint),
}
DEEP = ("model", "checkpoint")


def prepare(kind: str) -> None:
    if kind == "model":
        MODELS.update({0: _model(0), 1: _model(1)})


def arm(after: int) -> None:
    """From now on the process kills itself at the call of this number that changes the disk."""
    left = [after]

    def deadly(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "rename", "unlink", "open", "mkdir"):
        setattr(os, name, deadly(getattr(os, name)))
    shutil.rmtree = deadly(shutil.rmtree)
    builtins.open = deadly(open)  # type: ignore[assignment]


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.tmp")]


def kill_at_every_step(kind: str, folder: Path) -> dict[str, Any]:
    """Overwrite version 0 by 1 and die at the first step, the second, …; what can be read then."""
    save, load = WRITERS[kind]
    seen = []
    while True:
        place = folder / str(len(seen))
        place.mkdir()
        save(place, 0)
        child = os.fork()
        if child == 0:
            arm(len(seen))
            save(place, 1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        seen.append(load(place))
        if status == 0:
            break
        save(place, 2)  # the next writer removes what the killed one left
        assert left_over(place) == [], left_over(place)
        assert load(place) % 2 == 0
    return {"kills": len(seen) - 1, "seen": seen}


def kill_at_any_time(kind: str, folder: Path, kills: int) -> dict[str, Any]:
    """Kill a process that saves versions without a pause, after random times."""
    save, load = WRITERS[kind]
    rng = np.random.default_rng(0)
    save(folder, 0)  # the first save loads what it needs
    start = time.perf_counter()
    save(folder, 0)
    longest = min(1.0, 4 * (time.perf_counter() - start))
    changed = done = 0
    while done < kills or (changed == 0 and done < 10 * kills):
        before = load(folder)
        child = os.fork()
        if child == 0:
            version = before
            while True:
                version += 1
                save(folder, version)
        time.sleep(rng.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        changed += load(folder) != before
        done += 1
    save(folder, 0)
    return {"kills": done, "changed": changed, "left": left_over(folder)}


if __name__ == "__main__":
    kind, mode, where = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    prepare(kind)
    if mode == "steps":
        found = kill_at_every_step(kind, where)
    else:
        found = kill_at_any_time(kind, where, int(sys.argv[4]))
    sys.stdout.write(json.dumps(found))
