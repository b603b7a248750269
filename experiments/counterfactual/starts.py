"""Figure 23 and beyond: sums of squares of cf-means and k-means from the same starts.

Four collections, each a CSV that is appended to start by start. `SIGNS` is the figure: the gradient
schedules by themselves, as the poster has them, without relocations and without the safeguard.
`STUDY` is the library's cf-means against k-means, k-means++ and restarts of equal cost; `WHOLE`
repeats it on whole sets; `CHOICE` is how the defaults were found, on other sets. The column
`start` is the seed: of the random points that all arms of a row's start share, and of k-means++.
One thread; `seconds` is processor time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from experiments import bookkeeping

N_STARTS = 50
N_STARTS_ASIDE = 10  # of the arms that show what each part is worth
SCHEDULES = {
    "attract": {"schedule": "attract", "weight": 1.0, "n_steps": 120},
    "repel": {"schedule": "repel", "weight": 1.0, "n_steps": 40},
    "oscillate": {"schedule": "oscillate", "weight": 1.5, "n_steps": 80},
}
ASIDE: dict[str, dict[str, Any]] = {
    "oscillate alone": {**SCHEDULES["oscillate"], "max_moves": 0},
    "attract alone": {**SCHEDULES["attract"], "max_moves": 0},
    "repel alone": {**SCHEDULES["repel"], "max_moves": 0},
    "moves alone": {"n_steps": 0},
    "attract and moves": {"schedule": "attract"},
    "repel and moves": {"schedule": "repel"},
    "oscillate and moves": {"schedule": "oscillate"},
}

Row = dict[str, Any]
Arms = Iterator[tuple[str, float, float, int]]


class Collection(NamedTuple):
    """Sets as name -> (classes, points kept), multiples of the classes as K, and what is run."""

    name: str
    file: str
    sets: dict[str, tuple[int, int]]
    multiples: tuple[int, ...]
    n_starts: int
    arms: Callable[[np.ndarray, int, int], Arms]


def load(name: str, keep: int) -> np.ndarray:
    X = ws.load_dataset(name, flatten=True, download=False).X.astype(np.float64)
    return X[np.random.default_rng(0).permutation(len(X))[:keep]]


def fitted(model: Any, X: np.ndarray) -> tuple[float, float]:
    """Inertia and processor seconds of one fit."""
    begin = time.process_time()
    model.fit(X)
    return model.inertia_, time.process_time() - begin


def random_start(X: np.ndarray, k: int, start: int) -> np.ndarray:
    return X[np.random.default_rng(start).choice(len(X), k, replace=False)]


def restarts_within(X: np.ndarray, k: int, start: int, seconds: float) -> tuple[float, float, int]:
    """k-means++ as often as begins within the time; the last one may finish late."""
    draws = np.random.RandomState(100_000 + start)
    best, spent, runs = np.inf, 0.0, 0
    while spent < seconds:
        inertia, taken = fitted(ws.KMeans(k, random_state=draws), X)
        best, spent, runs = min(best, inertia), spent + taken, runs + 1
    return best, spent, runs


def sign_arms(X: np.ndarray, k: int, start: int) -> Arms:
    given = random_start(X, k, start)
    yield ("k-means", *fitted(ws.KMeans(k, init=given), X), 1)
    yield ("k-means++", *fitted(ws.KMeans(k, random_state=start), X), 1)
    for arm, options in SCHEDULES.items():
        model = ws.CFMeans(k, init=given, max_moves=0, safeguard=False, **options)
        yield (arm, *fitted(model, X), 1)
    yield ("cf-means", *fitted(ws.CFMeans(k, init=given, random_state=start), X), 1)


def study_arms(X: np.ndarray, k: int, start: int) -> Arms:
    given = random_start(X, k, start)
    yield ("k-means", *fitted(ws.KMeans(k, init=given), X), 1)
    yield ("k-means++", *fitted(ws.KMeans(k, random_state=start), X), 1)
    for arm, init in (("cf-means", given), ("cf-means from k-means++", "k-means++")):
        inertia, seconds = fitted(ws.CFMeans(k, init=init, random_state=start), X)
        yield arm, inertia, seconds, 1
        best, spent, runs = restarts_within(X, k, start, seconds)
        yield f"restarts for {arm}", best, spent, runs


def all_arms(X: np.ndarray, k: int, start: int) -> Arms:
    yield from study_arms(X, k, start)
    if start < N_STARTS_ASIDE:
        given = random_start(X, k, start)
        for arm, options in ASIDE.items():
            model = ws.CFMeans(k, init=given, random_state=start, **options)
            yield (arm, *fitted(model, X), 1)


def choice_arms(X: np.ndarray, k: int, start: int) -> Arms:
    given = random_start(X, k, start)
    settings: list[Row] = [{"n_steps": 0}]
    for n_steps in (4, 8, 16):
        settings += [
            {"schedule": "oscillate", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "oscillate", "weight": 1.5, "n_steps": n_steps},
            {"schedule": "attract", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "repel", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "repel", "weight": 0.5, "n_steps": n_steps},
        ]
    yield ("k-means++", *fitted(ws.KMeans(k, random_state=start), X), 1)
    for options in settings:
        arm = " ".join(str(value) for value in options.values())
        yield (arm, *fitted(ws.CFMeans(k, init=given, random_state=start, **options), X), 1)


STUDIED = {
    "wifi_localization": (4, 5000),
    "yeast": (10, 5000),
    "segment": (7, 5000),
    "avila": (12, 5000),
    "pendigits": (10, 5000),
    "mnist_embeddings10": (10, 5000),
    "optdigits": (10, 5000),
    "usps_9298": (10, 2000),
    "mnist_test": (10, 2000),
}
WHOLE_SETS = {
    "optdigits": (10, 5620),
    "pendigits": (10, 10992),
    "avila": (12, 20867),
    "usps_9298": (10, 9298),
    "mnist_test": (10, 10000),
    "mnist_embeddings10": (10, 70000),
}
DEVELOPED_ON = {
    "vehicle": (4, 2000),
    "glass": (6, 2000),
    "ecoli": (8, 2000),
    "mnist_umap3": (10, 3000),
    "usps_11000": (10, 1500),
    "fashion_mnist_test": (10, 1000),
}
SIGNS = Collection("figure23", "results_figure23.csv", STUDIED, (1,), N_STARTS, sign_arms)
STUDY = Collection("study", "results_sse.csv", STUDIED, (1, 2), N_STARTS, all_arms)
WHOLE = Collection("whole", "results_whole.csv", WHOLE_SETS, (1, 2), N_STARTS_ASIDE, study_arms)
CHOICE = Collection("choose", "results_choose.csv", DEVELOPED_ON, (1, 2), 20, choice_arms)


def run(
    collection: Collection,
    path: Path,
    *,
    in_time: Callable[[], bool] = lambda: True,
    origin: dict[str, str] | None = None,
) -> None:
    """Measure the starts that the CSV lacks."""
    there = bookkeeping.done(path, ("set", "k", "start"))
    origin = origin or bookkeeping.provenance()
    for name, (classes, keep) in collection.sets.items():
        X = None
        for k in (multiple * classes for multiple in collection.multiples):
            left = [s for s in range(collection.n_starts) if (name, k, s) not in there]
            for start in left:
                if not in_time():
                    return
                X = load(name, keep) if X is None else X
                known = {"set": name, "n": len(X), "d": X.shape[1], "k": k, "start": start}
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    measured = list(collection.arms(X, k, start))
                rows = [
                    known
                    | {"arm": arm, "inertia": f"{inertia:.10g}", "seconds": f"{seconds:.4f}"}
                    | {"runs": runs}
                    | origin
                    for arm, inertia, seconds, runs in measured
                ]
                bookkeeping.append(path, rows)  # one start at a time, so that a break loses little
            if left:
                bookkeeping.say(f"{collection.name}: {name}, K = {k}, {len(left)} starts")


def cells(rows: Sequence[Row]) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Per set and K: for every arm the table (start, inertia, seconds, runs), by start."""
    found: dict[tuple[str, int], dict[str, list[tuple[float, ...]]]] = {}
    for row in rows:
        arms = found.setdefault((row["set"], row["k"]), {})
        table = arms.setdefault(str(row["arm"]), [])
        table.append((row["start"], row["inertia"], row["seconds"], row["runs"]))
    return {
        cell: {arm: np.array(sorted(table)) for arm, table in arms.items()}
        for cell, arms in found.items()
    }


def excess(arms: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """(SSE / lowest SSE seen in the cell − 1) · 1000 of every start of every arm."""
    lowest = min(table[:, 1].min() for table in arms.values())
    return {arm: 1000.0 * (table[:, 1] / lowest - 1.0) for arm, table in arms.items()}
