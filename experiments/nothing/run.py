"""How often "nothing to cluster" is said: of clouds without clusters, and of sets with classes.

python -m experiments.nothing.run    # results.csv and REPORT.md; about five minutes on one core
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import wellsep as ws
from experiments.explore import sets

HERE = Path(__file__).parent
DRAWS, N, KS = 10, 400, (2, 3, 5, 8, 13)
NOTHING = 0.05
CURVED = ("sheet", "S-curve", "Swiss roll", "banana", "ring")


def clouds(draw: int) -> Iterator[tuple[str, np.ndarray]]:
    """Clouds without clusters, by kind."""
    rng = np.random.default_rng([2026, 36, draw])
    normal = rng.normal(size=(N, 10))
    yield "Gaussian, d = 2", rng.normal(size=(N, 2))
    yield "Gaussian, d = 10", normal
    yield "correlated", normal @ rng.normal(size=(10, 10)) * 0.7 ** np.arange(10)
    yield "Student t, d = 10", rng.standard_t(3, size=(N, 10))
    for d in (2, 4, 10):
        yield f"uniform, d = {d}", rng.uniform(size=(N, d))
    half = rng.uniform(size=(N, 2))
    yield "triangle", np.where(half.sum(axis=1, keepdims=True) > 1, 1 - half, half)
    yield "exponential, d = 3", rng.exponential(size=(N, 3))
    for d in (2, 6):
        yield f"log-normal, d = {d}", rng.lognormal(size=(N, d))
    mixed = normal[:, :6] @ rng.normal(size=(6, 6))
    yield "log-normal, correlated", np.exp(mixed / mixed.std(axis=0))
    yield "ReLU features", np.maximum(0, normal @ rng.normal(size=(10, 64)) + rng.normal(size=64))
    jitter, across = 0.05 * rng.normal(size=(N, 3)), rng.uniform(0, 2, N)
    t = rng.uniform(0, 3, N)
    yield "sheet", np.c_[t * np.cos(t), t * np.sin(t), across] + jitter
    t = 3 * np.pi * rng.uniform(-0.5, 0.5, N)
    yield "S-curve", np.c_[np.sin(t), np.sign(t) * (np.cos(t) - 1), across] + jitter
    t = rng.uniform(1.5 * np.pi, 4.5 * np.pi, N)
    yield "Swiss roll", np.c_[t * np.cos(t), t * np.sin(t), 10 * across]
    x = rng.normal(size=N)
    yield "banana", np.c_[x, x**2 + rng.normal(scale=0.5, size=N)]
    t = rng.uniform(0, 2 * np.pi, N)
    yield "ring", np.c_[np.cos(t), np.sin(t)] + 0.1 * rng.normal(size=(N, 2))


def gain(X: np.ndarray) -> float:
    """What the judge finds of the input, with runs of k-means."""
    X = X[:, X.std(axis=0) > 0]
    labels = {f"K={k}": KMeans(k, n_init=2, random_state=0).fit_predict(X) for k in KS}
    runs = ws.Runs.from_parts({"X": X}, labels)
    return ws.judge(runs, X=X, n_draws=0, details=False, n_jobs=1).structure.gain


def measure() -> Iterator[tuple[str, str, float]]:
    """Rows of (family, name, gain)."""
    for draw in range(DRAWS):
        for kind, X in clouds(draw):
            yield ("curved" if kind in CURVED else "cloud"), kind, gain(X)
    for name in sets.OPEN:
        yield "open set", name, gain(sets.read(name)[0])
    for name in sets.second():
        yield "fresh2", name, gain(sets.read(name)[0])


def report(rows: list[tuple[str, str, float]]) -> str:
    """The table of error rates."""
    lines = [
        "| | sets | called nothing to cluster | gain: least, median, largest |",
        "|---|---|---|---|",
    ]
    groups: dict[str, list[float]] = {}
    for family, name, value in rows:
        groups.setdefault(name if family in ("cloud", "curved") else family, []).append(value)
    for name, values in groups.items():
        said = sum(value < NOTHING for value in values)
        shown = ", ".join(f"{v:.3f}" for v in (min(values), np.median(values), max(values)))
        lines.append(f"| {name} | {len(values)} | {said} | {shown} |")
    missed = ", ".join(n for f, n, v in rows if f in ("open set", "fresh2") and v < NOTHING)
    return "\n".join([*lines, "", f"Sets with classes called nothing: {missed or 'none'}.", ""])


if __name__ == "__main__":
    found = list(measure())
    with (HERE / "results.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("family", "name", "gain"), *((f, n, f"{v:.4f}") for f, n, v in found)]
        )
    print(report(found))
