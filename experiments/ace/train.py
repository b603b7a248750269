"""Train the runs that ACE is judged on: JULE, DEPICT and DeepCluster under many settings.

    WELLSEP_DATA=... python experiments/ace/train.py RUNS --experiments tuning-depict-usps_11000

Every run lies in RUNS/EXPERIMENT/ for `wellsep.load_runs`. Trainings share one GPU in processes
of their own, at the same time where NVIDIA's multi-process service is installed (it is started for
the while). One pretraining of DEPICT serves all balances. A training that meets the time limit
leaves its state in RUNS/.state, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.gpu import Deadline, OutOfTime, multi_process_service
from wellsep.deep import DEPICT, JULE, DeepCluster, path_integral

JULE_RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
UNFOLDING = (0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9)
DEPICT_RATES = (5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
BALANCES = (0.1, 1.0, 10.0)
# Set -> number of classes, JULE's network, its unfolding rate, the numbers of clusters tried.
SETS: dict[str, tuple[int, str, float, range]] = {
    "usps_11000": (10, "usps", 0.9, range(5, 51, 5)),
    "mnist_test": (10, "mnist", 0.9, range(5, 51, 5)),
    "umist_112x92": (20, "umist", 0.2, range(5, 51, 5)),
    "coil20_128": (20, "coil", 0.9, range(5, 51, 5)),
    "coil20_32": (20, "faces", 0.9, range(5, 51, 5)),
    "cmu_pie_pose27": (68, "faces", 0.2, range(10, 101, 10)),
    "coil100_32": (100, "faces", 0.9, range(20, 201, 20)),
    "fashion_mnist_test": (10, "mnist", 0.9, range(5, 51, 5)),
}
CHECKPOINTS = {"epochs": 100, "every": 5}
# Fewer epochs of DEPICT than the paper's at most 4000, for want of GPU time: set -> (pretraining,
# clustering). Early stopping and the paper's other settings are as they were.
DEPICT_EPOCHS = {"usps_11000": (320, 120), "mnist_test": (120, 120)}


@dataclass(frozen=True)
class Job:
    """One training in one process."""

    experiment: str
    params: dict[str, Any]
    stage: str = "fit"  # "pretrain" for the autoencoder that several runs of DEPICT share

    @property
    def method(self) -> str:
        return self.experiment.split("-")[1]

    @property
    def data(self) -> str:
        return self.experiment.split("-")[2]

    @property
    def seed(self) -> int:
        """Settings are compared under one seed; numbers of clusters have a seed each.

        JULE's number of clusters only says when merging stops: under one seed, runs that take the
        same number of steps would end in the same space.
        """
        if not self.experiment.startswith("clusters"):
            return 0
        return SETS[self.data][3].index(self.params["n_clusters"])

    @property
    def name(self) -> str:
        return ",".join(f"{key}={value:g}" for key, value in sorted(self.params.items()))

    @property
    def cost(self) -> float:
        """Rough order, so that long trainings begin first."""
        if self.method == "deepcluster":
            return 100.0
        if self.method == "depict":
            return 1e-2 / self.params.get("learning_rate", 1e-4)
        rate = self.params.get("unfolding_rate", SETS[self.data][2])
        return 10.0 / (1.1 - np.log1p(-rate))


@dataclass
class Place:
    """Where runs go and what all trainings share."""

    runs: Path
    device: str
    preset: str
    end: float

    def state(self, job: Job) -> Path:
        return self.runs / ".state" / f"{job.experiment}-{job.stage}-{job.name}"

    def autoencoder(self, job: Job) -> Path:
        rate, k = job.params.get("learning_rate", 1e-4), job.params.get("n_clusters", 10)
        return self.runs / ".state" / f"depict-{job.data}-{rate:g}-{k}"

    def is_done(self, job: Job) -> bool:
        if job.stage == "pretrain":
            return (self.autoencoder(job) / "start.npy").exists()
        if job.method == "deepcluster":
            return (self.runs / job.experiment / "cluster-00100").exists()
        return (self.runs / job.experiment / job.name / "run.json").exists()

    def common(self, job: Job) -> dict[str, Any]:
        return {
            "device": self.device,
            "preset": self.preset,
            "random_state": job.seed,
            "checkpoint_dir": self.state(job),
        }


METHODS = {
    "tuning": ("jule", "depict"),
    "clusters": ("jule", "depict"),
    "checkpoints": ("deepcluster",),
}


def known(experiment: str) -> str:
    """The name of an experiment, TASK-METHOD-SET."""
    task, method, data = (*experiment.split("-"), "", "", "")[:3]
    if experiment.count("-") != 2 or method not in METHODS.get(task, ()) or data not in SETS:
        tasks = "; ".join(f"{task} with {' or '.join(of)}" for task, of in METHODS.items())
        raise argparse.ArgumentTypeError(
            f"must be TASK-METHOD-SET ({tasks}; sets {', '.join(SETS)}), got {experiment!r}"
        )
    return experiment


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")
    return int(text)


def jobs_of(experiment: str) -> list[Job]:
    """The trainings of one experiment."""
    task, method, data = experiment.split("-")
    k, _, _, counts = SETS[data]
    if task == "checkpoints":
        return [Job(experiment, {"n_clusters": k})]
    if task == "clusters":
        return [Job(experiment, {"n_clusters": count}) for count in counts]
    if method == "jule":
        return [
            Job(experiment, {"learning_rate": rate, "unfolding_rate": unfolding})
            for rate in JULE_RATES
            for unfolding in UNFOLDING
        ]
    return [
        Job(experiment, {"learning_rate": rate, "balance": balance})
        for rate in DEPICT_RATES
        for balance in BALANCES
    ]


def pretrain(place: Place, job: Job, X: np.ndarray) -> None:
    """DEPICT's first stage and the clusters its second starts from."""
    k = job.params.get("n_clusters", 10)
    settings = {"learning_rate": job.params.get("learning_rate", 1e-4)}
    epochs = {"start_epochs": 0, "epochs": 0}
    if job.data in DEPICT_EPOCHS:
        epochs["pretrain_epochs"] = DEPICT_EPOCHS[job.data][0]
    model = DEPICT(k, **place.common(job) | epochs, **settings, init=np.arange(len(X)) % k)
    model.set_callbacks(Deadline(place.end)).fit(X)
    folder = place.autoencoder(job)
    model.save(folder, embedding=False)
    facts = {"pretrain_epochs": model.n_iter_, "watched": model.history_[-1].get("watched")}
    (folder / "facts.json").write_text(json.dumps(facts))
    np.save(folder / "start.npy", path_integral(model.embedding_, k))


def fit(place: Place, job: Job, X: np.ndarray) -> dict[str, Any]:
    """One training, saved as a run; facts for its metadata."""
    k, network, unfolding, _ = SETS[job.data]
    params = {"n_clusters": k} | job.params
    facts: dict[str, Any] = {}
    if job.method == "jule":
        model = JULE(network=network, **place.common(job))
        model.set_params(**{"unfolding_rate": unfolding} | params)
    elif job.method == "depict":
        folder = place.autoencoder(job)
        start = np.load(folder / "start.npy")
        facts = json.loads((folder / "facts.json").read_text())
        model = DEPICT(**place.common(job), autoencoder=folder, init=start)
        model.set_params(**{"learning_rate": 1e-4} | params)
        if job.data in DEPICT_EPOCHS:
            model.set_params(epochs=DEPICT_EPOCHS[job.data][1])
    else:
        every = {"checkpoint_every": CHECKPOINTS["every"], "epochs": CHECKPOINTS["epochs"]}
        model = DeepCluster(**place.common(job) | every, **params)
    start_time = time.perf_counter()
    model.set_callbacks(Deadline(place.end)).fit(X)
    facts["seconds"] = round(time.perf_counter() - start_time, 2)
    if job.method == "deepcluster":
        target = place.runs / job.experiment
        shutil.copytree(place.state(job) / "runs", target, dirs_exist_ok=True)
    else:
        facts |= {"seed": job.seed, "preset": place.preset, "epochs": model.n_iter_}
        # The paths and labels a training started from say nothing to a reader of the run.
        ws.save_run(
            place.runs / job.experiment, model.embedding_, model.labels_,
            name=job.name, params=params, metadata=facts,
        )  # fmt: skip
    return facts


def work(place: Place, job: Job) -> tuple[str, Any]:
    """Do a job in a process of its own; how it ended and what to say."""
    torch.set_num_threads(1)
    if time.time() > place.end:
        return "unfinished", None
    try:
        X = ws.load_dataset(job.data, flatten=False).X
        facts = pretrain(place, job, X) if job.stage == "pretrain" else fit(place, job, X)
    except OutOfTime:
        return "unfinished", None
    except Exception:
        return "failed", traceback.format_exc()[-1500:]
    shutil.rmtree(place.state(job), ignore_errors=True)
    return "done", facts


def train(place: Place, experiments: list[str], n_jobs: int) -> dict[str, int]:
    """All trainings that are not there yet; how many ended how."""
    todo = [job for name in experiments for job in jobs_of(name)]
    todo = [job for job in todo if not place.is_done(job)]
    waiting: dict[Path, list[Job]] = {}
    ready: list[Job] = []
    for job in todo:
        first = Job(job.experiment, job.params, "pretrain")
        if job.method != "depict" or place.is_done(first):
            ready.append(job)
        else:
            if place.autoencoder(job) not in waiting:
                ready.append(first)
            waiting.setdefault(place.autoencoder(job), []).append(job)
    ready.sort(key=lambda job: -job.cost)
    counts = {"done": 0, "unfinished": 0, "failed": 0}
    begun = time.time()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, context, max_tasks_per_child=None) as pool:
        running = {pool.submit(work, place, job): job for job in ready}
        while running:
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                job = running.pop(future)
                status, what = future.result()
                counts[status] += 1
                now = round(time.time() - begun)
                print(f"[{now:4d} s] {status} {job.experiment} {job.stage} {job.name}", flush=True)
                if status == "failed":
                    print(what, flush=True)
                    note = place.runs / job.experiment / "failed.txt"
                    note.parent.mkdir(parents=True, exist_ok=True)
                    with note.open("a") as file:
                        file.write(f"{job.name}: {what.strip().splitlines()[-1]}\n")
                elif status == "done" and job.stage == "pretrain":
                    for later in waiting.pop(place.autoencoder(job), []):
                        running[pool.submit(work, place, later)] = later
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument(
        "--experiments", nargs="+", required=True, type=known, metavar="TASK-METHOD-SET"
    )
    parser.add_argument("--jobs", type=count, default=14, help="trainings at a time")
    parser.add_argument(
        "--minutes", type=float, default=9.0, help="stop after these; the same command goes on"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--preset", default="paper", choices=("paper", "small"))
    options = parser.parse_args()
    missing = {name.split("-")[2] for name in options.experiments} - set(ws.list_datasets())
    if missing:
        named = ", ".join(sorted(missing))
        parser.error(f"WELLSEP_DATA must name a folder that holds {named}.npz")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device must be there, got {options.device} and no CUDA device was found")
    options.runs.mkdir(parents=True, exist_ok=True)
    end = time.time() + 60 * options.minutes
    place = Place(options.runs.resolve(), options.device, options.preset, end)
    with multi_process_service() as shared:
        print(f"trainings at a time: {options.jobs}; GPU shared at the same time: {shared}")
        counts = train(place, options.experiments, options.jobs)
    print(counts)
    return 1 if counts["unfinished"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
