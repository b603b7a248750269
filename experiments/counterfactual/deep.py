"""Figure 24: deep cf-means of both signs against deep k-means, paired by autoencoder and centres.

For every set and seed one autoencoder is pretrained on reconstruction and K random latent points
are taken as centres; each method starts from these. A row is one training. `autoencoder` is a
digest of the pretrained weights: rows are pairs only if it agrees, so a group that was broken off
and would be continued from other weights (on another device) is measured anew.

The poster adds up squared errors over features and over latent dimensions; the library averages
them, so that a weight means the same for any size. Both balances are trained: "printed" has the
reconstruction weighted d/m times as much as "means".
"""

from __future__ import annotations

import hashlib
import multiprocessing
import platform
import signal
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from experiments import bookkeeping

SETS = ("mnist_test", "usps_9298", "fashion_mnist_test", "optdigits", "pendigits")
WEIGHTS = (0.1, 1.0)
BALANCES = ("printed", "means")
SIGNS = ("attract", "repel")
BASELINE = "deep k-means"
BEFORE = "before training"

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to train, where, and until when."""

    results: Path
    sets: tuple[str, ...] = SETS
    seeds: tuple[int, ...] = tuple(range(10))
    weights: tuple[float, ...] = WEIGHTS
    balances: tuple[str, ...] = BALANCES
    device: str = "auto"
    keep: int | None = None  # objects, all when None
    options: Mapping[str, Any] = field(default_factory=lambda: {"preset": "paper"})
    end: float = float("inf")  # time.time() at which no further training begins
    origin: Mapping[str, str] = field(default_factory=bookkeeping.provenance)


class Method(NamedTuple):
    """A balance of the losses, and the sign and weight of the separation; deep k-means has none."""

    balance: str
    sign: str = ""
    weight: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.sign} {self.weight:g}" if self.sign else BASELINE


def methods(plan: Plan) -> list[Method]:
    return [
        method
        for balance in plan.balances
        for method in (
            Method(balance),
            *(Method(balance, sign, weight) for sign in SIGNS for weight in plan.weights),
        )
    ]


def key_of(row: Row) -> tuple[str, str]:
    return row["balance"] or "", row["method"]


def wanted(plan: Plan) -> set[tuple[str, str]]:
    return {("", BEFORE), *((m.balance, m.name) for m in methods(plan))}


def load(name: str, keep: int | None) -> tuple[np.ndarray, np.ndarray]:
    found = ws.load_dataset(name, download=False)
    rows = np.random.default_rng(0).permutation(len(found.y))[:keep]
    return found.X[rows], found.y[rows]


def digest_of(network: Any) -> str:
    weights = [tensor.cpu().numpy().tobytes() for tensor in network.state_dict().values()]
    return f"ae-{hashlib.sha256(b''.join(weights)).hexdigest()[:10]}"


def judged(X: np.ndarray, truth: np.ndarray, model: Any) -> Row:
    """Agreement with the classes, and what the latent space is like.

    `settled` is k-means in the latent space from the model's centres: what the space is worth
    apart from where its centres happen to lie.
    """
    Z = model.embedding_.astype(np.float64)
    centers = model.cluster_centers_.astype(np.float64)
    settled = ws.KMeans(len(centers), init=centers, max_iter=100).fit(Z)
    error = (model.reconstruct(X).astype(np.float64) - X) * model.scaling_.factor
    values = {
        "nmi": ws.nmi_score(truth, model.labels_),
        "acc": ws.clustering_accuracy(truth, model.labels_),
        "ari": ws.ari_score(truth, model.labels_),
        "nmi_settled": ws.nmi_score(truth, settled.labels_),
        "cfq_settled": ws.cfq_score(Z, settled.labels_),
        "reconstruction": np.mean(error**2),
    }
    clusters = {"clusters": len(np.unique(model.labels_))}
    return clusters | {name: round(float(value), 5) for name, value in values.items()}


def group(plan: Plan, name: str, seed: int, rows: list[Row]) -> Iterator[Row]:
    """The rows of one set and seed that are not among `rows` yet, one after another."""
    import torch

    from wellsep.deep import DeepCFMeans, DeepKMeans

    X, y = load(name, plan.keep)
    k = len(np.unique(y))
    options = {**plan.options, "device": plan.device, "random_state": seed}
    begin = time.perf_counter()
    start = DeepKMeans(k, init="random", **{**options, "epochs": 0}).fit(X)
    pretraining = time.perf_counter() - begin
    digest = digest_of(start.network_)
    have = {key_of(row) for row in rows if row["autoencoder"] == digest}
    origin = {
        "autoencoder": digest,
        "device": torch.cuda.get_device_name() if start.device_ != "cpu" else platform.machine(),
        "torch": f"torch {torch.__version__}",
        **plan.origin,
    }

    def row(method: str, balance: str, sign: str, weight: float, model: Any, seconds: float) -> Row:
        known = {"set": name, "n": len(X), "d": X[0].size, "k": k, "seed": seed}
        known |= {"balance": balance, "method": method, "sign": sign, "weight": weight}
        known |= {"epochs": model.n_iter_, "seconds": round(seconds, 2)}
        return {**known, **judged(X, y, model), **origin}

    if ("", BEFORE) not in have:
        yield row(BEFORE, "", "", 0.0, start, pretraining)
    ratio = X[0].size / start.embedding_.shape[1]
    for method in methods(plan):
        if (method.balance, method.name) in have:
            continue
        if time.time() > plan.end:
            return
        given = {**options, "autoencoder": start, "init": start.cluster_centers_}
        given["reconstruction_weight"] = ratio if method.balance == "printed" else 1.0
        model: Any = (
            DeepCFMeans(k, separation=method.sign, cf_weight=method.weight, **given)
            if method.sign
            else DeepKMeans(k, **given)
        )
        begin = time.perf_counter()
        model.fit(X)
        yield row(method.name, *method, model, time.perf_counter() - begin)


def _one(plan: Plan, name: str, seed: int) -> str:
    """Train what a set and seed still lack; says how it went."""
    if time.time() > plan.end:
        return f"{name}, seed {seed}: no time left"
    rows = [r for r in bookkeeping.read(plan.results) if (r["set"], r["seed"]) == (name, seed)]
    if not lacking(plan, rows):
        return f"{name}, seed {seed}: there already"
    written = []
    begin = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for row in group(plan, name, seed, rows):
            with _writing:
                bookkeeping.append(plan.results, [row])
            written.append(f"{row['balance']} {row['method']} {row['nmi']:.3f}".strip())
    taken = time.perf_counter() - begin
    return f"{name}, seed {seed}: NMI {', '.join(written)} ({taken:.0f} s)"


_writing: Any = nullcontext()  # a lock that the processes share


def _begin(lock: Any) -> None:
    global _writing
    _writing = lock
    # Ctrl-C ends a process at once; otherwise it would go on with the next training.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch_threads(1)


def torch_threads(count: int) -> int:
    """Set torch's threads; returns how many there were. Steps this small gain nothing from more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    return before


def run(plan: Plan, n_jobs: int = 1) -> bool:
    """Train all, several sets and seeds at a time; True when nothing is missing at the end."""
    tasks = [(name, seed) for seed in plan.seeds for name in plan.sets]
    if n_jobs == 1:
        before = torch_threads(1)
        for pair in tasks:
            bookkeeping.say(_one(plan, *pair))
        torch_threads(before)
    else:
        from experiments.gpu import multi_process_service

        context = multiprocessing.get_context("spawn")
        with (
            multi_process_service(),
            ProcessPoolExecutor(
                n_jobs, context, initializer=_begin, initargs=(context.Lock(),)
            ) as pool,
        ):
            for future in as_completed([pool.submit(_one, plan, *pair) for pair in tasks]):
                bookkeeping.say(future.result())
    rows = bookkeeping.read(plan.results)
    return not any(
        lacking(plan, [r for r in rows if (r["set"], r["seed"]) == pair]) for pair in tasks
    )


def lacking(plan: Plan, rows: list[Row]) -> set[tuple[str, str]]:
    """Balances and methods that the rows of one set and seed lack."""
    return wanted(plan) - set(next(iter(paired(rows).values()), {}))


def paired(rows: list[Row]) -> dict[tuple[str, int], dict[tuple[str, str], Row]]:
    """Per set and seed the rows by balance and method, of the newest row's autoencoder."""
    found: dict[tuple[str, int], dict[tuple[str, str], Row]] = {}
    for row in rows:
        key = (row["set"], row["seed"])
        kept = found.setdefault(key, {})
        if kept and next(iter(kept.values()))["autoencoder"] != row["autoencoder"]:
            kept.clear()
        kept[key_of(row)] = row
    return found
