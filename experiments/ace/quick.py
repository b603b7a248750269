"""Every stage at reduced size: small networks on some of scikit-learn's digits, a few runs each."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from experiments.ace import reporting, scoring
from experiments.ace.paper import HERE
from experiments.bookkeeping import say

OBJECTS = 400
RUNS = "runs"
SMALL = "small: the figures and tables show the stages, not the paper's numbers"


def prepare(out: Path | None) -> Path:
    """An empty folder with the texts whose tables will be written."""
    place = Path(tempfile.mkdtemp(prefix="ace-quick-")) if out is None else out
    place.mkdir(parents=True, exist_ok=True)
    if place.resolve() == HERE:
        raise SystemExit("--quick must not write over the results; name another folder in --out.")
    note = f"{SMALL}. The text is that of the full run and does not speak of the tables here."
    reporting.copy_text(place, note)
    return place


def jobs() -> Iterator[tuple[str, dict[str, Any], Any]]:
    """(experiment, settings, estimator) of every small training."""
    from wellsep.deep import DEPICT, JULE, DeepCluster

    common = {"preset": "small", "device": "cpu", "random_state": 0}
    depict = {"pretrain_epochs": 8, "start_epochs": 3, "epochs": 5, **common}
    for rate in (1e-4, 1e-3, 5e-3):
        for balance in (0.1, 10.0):
            given = {"learning_rate": rate, "balance": balance}
            yield "tuning-depict-digits", given, DEPICT(10, **given, **depict)
    for rate in (1e-3, 1e-2, 1e-1):
        for unfolding in (0.5, 0.9):
            given = {"learning_rate": rate, "unfolding_rate": unfolding}
            yield "tuning-jule-digits", given, JULE(10, **given, epochs=1, **common)
    for k in (5, 10, 15, 20):
        yield "clusters-depict-digits", {"n_clusters": k}, DEPICT(k, **depict)
        yield "clusters-jule-digits", {"n_clusters": k}, JULE(k, epochs=1, **common)
    for epochs in (1, 2, 4, 6, 8):
        yield (
            "checkpoints-deepcluster-digits",
            {"epoch": epochs},
            DeepCluster(10, epochs=epochs, **common),
        )


def train_and_score(place: Path) -> None:
    """Train what is missing, then score it."""
    data = ws.load_dataset("digits", download=False)
    some = np.random.default_rng(0).choice(len(data.X), OBJECTS, replace=False)
    X, y = (data.X[some] / 16).astype(np.float32), data.y[some]
    images = X.reshape(-1, 8, 8)
    names = set()
    for experiment, settings, estimator in jobs():
        names.add(experiment)
        title = ",".join(f"{key}={value:g}" for key, value in settings.items())
        if (place / RUNS / experiment / title).exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small trainings end before they converge
            estimator.fit(images)
        ws.save_run(
            place / RUNS / experiment, estimator.embedding_, estimator.labels_, name=title,
            params=settings, metadata={"random_state": 0},
        )  # fmt: skip
        nmi = ws.nmi_score(y, estimator.labels_)
        say(f"trained {experiment} {title}: NMI {nmi:.2f}")
    for name in sorted(names):
        runs = ws.load_runs(place / RUNS / name)
        scoring.score_experiment(runs, name, X, y, place / "scores.zip")
