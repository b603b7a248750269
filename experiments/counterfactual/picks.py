"""Table 2: the NMI of the partition that each index picks among k-means with K = 2 … 12.

The poster does not print its protocol. "classes" draws two to ten classes at random in every trial
(all of their objects, at most `CAP`); "seeds" takes all classes and varies only the sample and the
start of k-means. A row is one trial: the NMI of every K, and the K that each index chose.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws
from experiments import bookkeeping

SETS = ("optdigits", "pendigits", "mnist_embeddings10", "usps_9298")
PROTOCOLS = {"classes": 100, "seeds": 30}  # trials
CAP = 3000
COUNTS = tuple(range(2, 13))
POSTER = {"CFQ": "cfq", "SIL": "silhouette", "VRC": "calinski_harabasz"}
BESIDE = (
    "simplified_silhouette",
    "silhouette_cosine",
    "davies_bouldin",
    "dunn",
    "generalized_dunn",
    "c_index",
    "s_dbw",
    "cdbw",
    "ccc",
)
INDICES = (*POSTER.values(), *BESIDE)

Row = dict[str, Any]


def sample(
    y: np.ndarray, protocol: str, trial: int, cap: int
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Rows and classes of a trial, and its generator."""
    rng = np.random.default_rng(trial)
    classes = np.unique(y)
    if protocol == "classes":
        count = rng.integers(2, len(classes) + 1)
        classes = np.sort(rng.choice(classes, count, replace=False))
    rows = rng.permutation(np.flatnonzero(np.isin(y, classes)))[:cap]
    return rows, classes, rng


def one_trial(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[list[float], dict[str, int | None]]:
    """NMI of k-means for every K, and the K of each index's choice (None: never defined)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # S_Dbw's empty densities: see REPORT.md
        found = [ws.KMeans(k, random_state=seed).fit(X).labels_ for k in COUNTS]
        scores = ws.score_partitions(X, found, INDICES)
    chosen: dict[str, int | None] = {}
    for name, values, direction in zip(
        scores.indices, scores.values.T, scores.directions, strict=True
    ):
        defined = np.flatnonzero(np.isfinite(values))
        best = defined[np.argmax(direction * values[defined])] if len(defined) else None
        chosen[name] = None if best is None else COUNTS[best]
    return [float(ws.nmi_score(y, labels)) for labels in found], chosen


def run(
    path: Path,
    *,
    sets: Sequence[str] = SETS,
    protocols: Mapping[str, int] = PROTOCOLS,
    cap: int = CAP,
    in_time: Callable[[], bool] = lambda: True,
    origin: dict[str, str] | None = None,
) -> None:
    """Measure the trials that the CSV lacks."""
    there = bookkeeping.done(path, ("set", "protocol", "trial"))
    origin = origin or bookkeeping.provenance()
    for protocol, n_trials in protocols.items():
        for name in sets:
            left = [t for t in range(n_trials) if (name, protocol, t) not in there]
            if not left:
                continue
            data = ws.load_dataset(name, flatten=True, download=False)
            for trial in left:
                if not in_time():
                    return
                rows, classes, rng = sample(data.y, protocol, trial, cap)
                seed = int(rng.integers(2**31))
                with threadpool_limits(1):
                    nmi, chosen = one_trial(data.X[rows].astype(np.float64), data.y[rows], seed)
                row: Row = {"set": name, "protocol": protocol, "trial": trial, "n": len(rows)}
                row |= {"classes": " ".join(map(str, classes)), "kmeans_seed": seed}
                row |= {f"nmi_{k}": f"{value:.5f}" for k, value in zip(COUNTS, nmi, strict=True)}
                row |= {f"k_{index}": k for index, k in chosen.items()}
                bookkeeping.append(path, [row | origin])
            bookkeeping.say(f"table 2, {protocol}: {name}, {len(left)} trials")


def picked(rows: list[Row], index: str) -> np.ndarray:
    """NMI of the index's choice in every trial; NaN where it made none."""
    return np.array(
        [np.nan if row[f"k_{index}"] is None else row[f"nmi_{row[f'k_{index}']}"] for row in rows]
    )


def n_classes(row: Row) -> int:
    return len(str(row["classes"]).split())


def best_possible(rows: list[Row]) -> np.ndarray:
    """The greatest NMI among the partitions of every trial."""
    return np.array([max(row[f"nmi_{k}"] for k in COUNTS) for row in rows])


def at_true_count(rows: list[Row]) -> np.ndarray:
    """The NMI of k-means with as many clusters as there are classes."""
    return np.array([row[f"nmi_{n_classes(row)}"] for row in rows])
