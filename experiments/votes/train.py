"""Train deep clusterings of sets that no judge has seen: those of DECLARED.md, or others by name.

    WELLSEP_DATA=FOLDER python experiments/votes/train.py OUT [--sets NAME ...]

FOLDER holds the sets as .npz files (X, y), or folders `fresh` and `fresh2` that do. OUT gets one
file per set and task: labels, embeddings in half precision, settings and the truth. Files that are
there are kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.gpu import multi_process_service

SETS = (
    "authorship", "cells_kidney", "crop", "dermatology", "gas_batch6", "isolet", "leaves100",
    "notmnist", "r8", "telugu", "texture", "vowel", "wisdm",
)  # fmt: skip
EMPTY = ("gauss10", "gauss50", "t3", "uniform5")
SHARES = (0.3, 0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0)
RATES = (1e-4, 1e-3, 1e-2)
MOST = 1500


def empty_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set with nothing to find; its truth is one class."""
    rng = np.random.default_rng(EMPTY.index(name))
    draws = {
        "gauss10": lambda: rng.normal(size=(1000, 10)),
        "gauss50": lambda: rng.normal(size=(1000, 50)),
        "t3": lambda: rng.standard_t(3, size=(1000, 10)),
        "uniform5": lambda: rng.uniform(size=(1000, 5)),
    }
    return draws[name](), np.zeros(1000, int)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most 1,500 objects, prepared as declared: pixels by 255, other columns standardised."""
    if name in EMPTY:
        X, y = empty_set(name)
    else:
        folder = Path(os.environ["WELLSEP_DATA"])
        places = (folder, folder / "fresh", folder / "fresh2")
        path = next(p for p in (place / f"{name}.npz" for place in places) if p.exists())
        with np.load(path) as file:
            X, y = file["X"], file["y"]
    if len(X) > MOST:
        rows = np.sort(np.random.default_rng(0).choice(len(X), MOST, replace=False))
        X, y = X[rows], y[rows]
    pixels = X.dtype == np.uint8
    X = X.reshape(len(X), -1).astype(np.float64)
    if pixels:
        return (X / 255).astype(np.float32), y
    X = X[:, X.std(0) > 0]
    return ((X - X.mean(0)) / X.std(0)).astype(np.float32), y


def settings(name: str, task: str) -> list[tuple[str, dict[str, Any]]]:
    """Method and parameters of every run of one task."""
    classes = 10 if name in EMPTY else len(np.unique(load(name)[1]))
    if task == "vary":
        rng = np.random.default_rng(len(name))
        return [
            (method, {"n_clusters": max(2, round(classes * share)), "n_latent": int(latent)})
            for method in ("DEC", "IDEC", "DeepKMeans")
            for share, latent in zip(SHARES, rng.choice([5, 10, 20], len(SHARES)), strict=True)
        ]
    plain = [
        (method, {"n_clusters": classes, "n_latent": latent, "learning_rate": rate})
        for method in ("IDEC", "DeepKMeans")
        for latent in (2, 5, 10, 20)
        for rate in RATES
    ]
    depict = [
        ("DEPICT", {"n_clusters": classes, "balance": balance, "learning_rate": rate})
        for balance in (0.1, 1.0, 10.0)
        for rate in RATES
    ]
    return plain + depict


def fit(name: str, number: int, method: str, params: dict[str, Any], device: str) -> Any:
    """One training: labels and embedding, or the last line of its error."""
    import torch

    import wellsep.deep

    torch.set_num_threads(1)
    X, _ = load(name)
    model = getattr(wellsep.deep, method)(
        **params, preset="small", network="dense", device=device, random_state=number
    )
    started = time.perf_counter()
    try:
        model.fit(X)
    except Exception:
        return traceback.format_exc().strip()[-2000:]
    seconds = time.perf_counter() - started
    with np.errstate(over="ignore"):
        half = model.embedding_.astype(np.float16)
    exact = np.isfinite(half).all()
    return model.labels_, half if exact else model.embedding_, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS + EMPTY)
    parser.add_argument("--jobs", type=int, default=14, help="trainings at a time")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    groups = {
        (name, task): settings(name, task)
        for name in options.sets
        for task in (("vary",) if name in EMPTY else ("vary", "fixed"))
        if not (options.out / f"{task}-{name}.npz").exists()
    }
    done: dict[tuple[str, str], dict[int, Any]] = {key: {} for key in groups}
    todo = [(*key, number) for key, runs in groups.items() for number in range(len(runs))]
    # An error on the card ends its process for CUDA: what failed so gets one more try, alone.
    for tasks_of_a_process in (None, 1):
        again = []
        for name, task, number, found in train(groups, todo, options, tasks_of_a_process):
            if isinstance(found, str) and "CUDA" in found and tasks_of_a_process is None:
                again.append((name, task, number))
                continue
            done[name, task][number] = found
            if len(done[name, task]) == len(groups[name, task]):
                keep(options.out, name, task, groups[name, task], done[name, task])
        todo = again


def train(groups, todo, options, tasks_of_a_process):
    """Yield set, task, number and outcome of every training, as they end."""
    context = multiprocessing.get_context("spawn")
    with (
        multi_process_service(),
        ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=tasks_of_a_process) as pool,
    ):
        futures = {
            pool.submit(fit, name, number, *groups[name, task][number], options.device): (
                name,
                task,
                number,
            )
            for name, task, number in todo
        }
        for future in as_completed(futures):
            yield *futures[future], future.result()


def keep(out: Path, name: str, task: str, runs: list, found: dict[int, Any]) -> None:
    """Write the runs of one task; a failed training is named in `meta`."""
    good = [number for number in sorted(found) if not isinstance(found[number], str)]
    meta = {
        "set": name,
        "task": task,
        "runs": [{"method": runs[i][0], **runs[i][1], "seed": i} for i in good],
        "failed": {str(i): found[i] for i in sorted(found) if isinstance(found[i], str)},
        "seconds": round(sum(found[i][2] for i in good), 1),
    }
    arrays = {f"Z{place}": found[i][1] for place, i in enumerate(good)}
    labels = np.array([found[i][0] for i in good], np.int16)
    np.savez_compressed(
        out / f"{task}-{name}.npz",
        labels=labels,
        truth=load(name)[1],
        meta=json.dumps(meta),
        **arrays,
    )
    print(f"{task} {name}: {len(good)} runs, {len(meta['failed'])} failed, {meta['seconds']} s")


if __name__ == "__main__":
    main()
