"""Do DEPICT and JULE, written anew, reach the papers' NMI on one GPU, and in what time?

    python experiments/deep_gpu/run.py DATA --out OUT
    python experiments/deep_gpu/run.py DATA --out OUT --jobs check,depict:mnist_test --minutes 9

DATA is a folder with mnist_test.npz and usps_11000.npz (arrays X and y); y is used for the printed
agreement alone. Every job prints one JSON line, also kept in OUT/results.jsonl; labels go to
OUT/labels.npz and weights to OUT/models.zip. A job that meets the time limit is continued by the
same command (its state lies in OUT/state).

Jobs: check; METHOD:SET[:VARIANT] with METHOD depict or jule; deepcf:SET, the comparison of deep
k-means with both signs of deep cf-means from the same autoencoder and the same random centres;
sweep:SET, the time of eight trainings one after another and four at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import traceback
import zipfile
from pathlib import Path

import numpy as np
import sklearn
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.gpu import Deadline, OutOfTime
from wellsep import load_runs
from wellsep.deep import DEPICT, IDEC, JULE, DeepCFMeans, DeepKMeans, sweep

DEFAULT_JOBS = "check,depict:mnist_test,depict:usps_11000,jule:usps_11000,jule:mnist_test"
REPORTED = {  # NMI of the papers' tables
    "depict:mnist_test": 0.915,
    "depict:usps_11000": 0.927,
    "jule:mnist_test": 0.915,
    "jule:usps_11000": 0.913,
}
VARIANTS = {
    "anchors": {"anchors_only": True},
    "kmeans": {"init": "k-means"},
    "printed": {"targets": "paper"},
}


def accuracy(truth: np.ndarray, labels: np.ndarray) -> float:
    """Share of objects that agree under the best matching of clusters to classes."""
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(truth))


def agreement(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """NMI (arithmetic mean) and accuracy."""
    return {
        "nmi": round(float(normalized_mutual_info_score(truth, labels)), 4),
        "acc": round(accuracy(truth, labels), 4),
    }


class Study:
    """Where data come from and results go."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out = Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = time.time() + 60 * options.minutes
        self.device = options.device
        if self.device == "auto":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def data(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        with np.load(Path(self.options.data) / f"{name}.npz") as file:
            X, y = file["X"], file["y"].astype(int)
        if self.options.tiny:
            rows = np.random.default_rng(0).choice(len(X), 300, replace=False)
            X, y = X[rows], y[rows]
        return X, y

    def common(self, job: str, seed: int) -> dict:
        state = self.out / "state" / f"{job.replace(':', '-')}-{seed}"
        common = {"device": self.device, "random_state": seed, "checkpoint_dir": state}
        return common | {"preset": "small" if self.options.tiny else "paper"}

    def is_done(self, job: str, seed: int) -> bool:
        path = self.out / "results.jsonl"
        if not path.exists():
            return False
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return any(
            r["job"] == job and r.get("seed") == seed and r["status"] == "done" for r in lines
        )

    def write(self, **record) -> None:
        line = json.dumps(record)
        print(line, flush=True)
        with (self.out / "results.jsonl").open("a") as file:
            file.write(line + "\n")

    def keep(self, name: str, model) -> None:
        """Labels and weights, the small part of a result."""
        path = self.out / "labels.npz"
        kept = dict(np.load(path)) if path.exists() else {}
        np.savez_compressed(path, **kept, **{name: model.labels_.astype(np.int16)})
        folder = self.out / "model"
        model.save(folder, embedding=False)
        with zipfile.ZipFile(self.out / "models.zip", "a", zipfile.ZIP_DEFLATED) as archive:
            for file in folder.iterdir():
                archive.write(file, f"{name}/{file.name}")
        shutil.rmtree(folder)


def fit_one(study: Study, job: str, seed: int) -> None:
    """One training with the paper's settings."""
    method, name, *variant = job.split(":")
    X, y = study.data(name)
    options = study.common(job, seed)
    for one in variant:
        options |= VARIANTS[one]
    if study.options.tiny:
        options["epochs"] = 3
    model = {"depict": DEPICT, "jule": JULE}[method](len(np.unique(y)), **options)
    model.set_callbacks(Deadline(study.end))
    resumed = (options["checkpoint_dir"] / "state.safetensors").exists()
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    epochs: dict[str, int] = {}
    for entry in model.history_:
        epochs[entry["stage"]] = entry["epoch"]
    record = {"n": len(X), **agreement(y, model.labels_), "seconds": round(seconds, 1)}
    record |= {"resumed": resumed, "epochs": epochs, "reported_nmi": REPORTED.get(job)}
    if hasattr(model, "start_labels_"):
        record["start"] = agreement(y, model.start_labels_)
    if hasattr(model, "n_clusters_seen_"):
        record["clusters"] = model.n_clusters_seen_.tolist()
    study.keep(f"{job.replace(':', '-')}-{seed}", model)
    shutil.rmtree(options["checkpoint_dir"], ignore_errors=True)
    study.write(job=job, seed=seed, status="done", **record)


def check(study: Study) -> None:
    """The machine, and that recorded steps and repeated fits give the same numbers."""
    cuda = study.device == "cuda"
    study.write(
        job="check",
        status="machine",
        python=platform.python_version(),
        torch=torch.__version__,
        numpy=np.__version__,
        sklearn=sklearn.__version__,
        device=torch.cuda.get_device_name() if cuda else platform.processor(),
    )
    X, _ = study.data("mnist_test")
    X = X[:2000]
    short = {"pretrain_epochs": 20, "start_epochs": 2, "epochs": 3}
    preset = study.common("check", 0)["preset"]
    found = {}
    for kernels in ("1", "1", "0"):
        os.environ["WELLSEP_KERNELS"] = kernels
        model = DEPICT(10, **short, device=study.device, random_state=0, preset=preset)
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        found.setdefault(kernels, []).append((model, seconds))
    os.environ["WELLSEP_KERNELS"] = "1"
    (first, _), (again, recorded) = found["1"]
    plain, unrecorded = found["0"][0]
    losses = [np.array([e["loss"] for e in m.history_]) for m in (first, again, plain)]
    jules = [JULE(10, epochs=2, device=study.device, random_state=0).fit(X) for _ in range(2)]
    study.write(
        job="check",
        seed=0,
        status="done",
        jule_same_twice=bool((jules[0].embedding_ == jules[1].embedding_).all()),
        same_twice=bool(
            (first.labels_ == again.labels_).all() and (first.embedding_ == again.embedding_).all()
        ),
        recorded_differs_by=float(np.abs(losses[0] - losses[2])[:20].max()),
        loss=[round(float(losses[0][i]), 5) for i in (0, 19)],
        seconds_recorded=round(recorded, 2),
        seconds_unrecorded=round(unrecorded, 2),
    )


def compare_signs(study: Study, job: str) -> None:
    """Deep k-means against both signs of deep cf-means: paired, ten seeds."""
    X, y = study.data(job.split(":")[1])
    seeds = range(2 if study.options.tiny else 10)
    methods = {"deep k-means": DeepKMeans(init="random")}
    for sign in ("repel", "attract"):
        for weight in (0.03, 0.1, 0.3, 1.0):
            methods[f"{sign} {weight:g}"] = DeepCFMeans(
                init="random", separation=sign, cf_weight=weight
            )
    for seed in seeds:
        if study.is_done(job, seed):
            continue
        found = {}
        for name, model in methods.items():
            options = study.common(job, seed) | {"checkpoint_dir": None}
            model.set_params(n_clusters=len(np.unique(y)), **options)
            if study.options.tiny:
                model.set_params(pretrain_epochs=2, epochs=2)
            model.set_callbacks(Deadline(study.end))
            found[name] = agreement(y, model.fit(X).labels_)["nmi"]
        study.write(job=job, seed=seed, status="done", nmi=found)


def time_sweeps(study: Study, job: str, seed: int) -> None:
    """Eight settings of IDEC, one after another and several processes at a time."""
    X, y = study.data(job.split(":")[1])
    options = study.common(job, seed) | {"checkpoint_dir": None}
    if study.options.tiny:
        options |= {"pretrain_epochs": 1, "epochs": 1}
    model = IDEC(len(np.unique(y)), **options)
    grid = {"gamma": [0.03, 0.1, 0.3, 1.0], "learning_rate": [3e-4, 1e-3]}
    seconds = {}
    for n_jobs in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            trials = sweep(model, X, grid, out=folder, n_jobs=n_jobs).trials
            seconds[n_jobs] = round(time.perf_counter() - start, 1)
            labels = {run.name: np.array(run.labels) for run in load_runs(folder)}
    study.write(
        job=job,
        seed=seed,
        status="done",
        seconds=seconds,
        trials=[trial.status for trial in trials],
        nmi={name: agreement(y, found)["nmi"] for name, found in labels.items()},
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="folder with mnist_test.npz and usps_11000.npz")
    parser.add_argument("--out", default="deep_gpu_results")
    parser.add_argument("--jobs", default=DEFAULT_JOBS)
    parser.add_argument("--seeds", default="0", help="comma-separated")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="300 objects, few epochs: a CPU test")
    study = Study(options := parser.parse_args())
    complete = True
    for seed in map(int, options.seeds.split(",")):
        for job in options.jobs.split(","):
            if study.is_done(job, seed):
                continue
            try:
                if job == "check":
                    check(study)
                elif job.startswith("deepcf:"):
                    compare_signs(study, job)
                elif job.startswith("sweep:"):
                    time_sweeps(study, job, seed)
                else:
                    fit_one(study, job, seed)
            except OutOfTime:
                study.write(job=job, seed=seed, status="unfinished")
                return 1
            except Exception:
                study.write(
                    job=job, seed=seed, status="failed", error=traceback.format_exc()[-1500:]
                )
                complete = False
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
