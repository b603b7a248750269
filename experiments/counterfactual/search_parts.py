"""What each part of the search of CFMeans contributes: the search without it, with equal work.

    python -m experiments.counterfactual.search_parts      # about two minutes, writes a table

Work is distances between points and centres, so that the table is the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import wellsep as ws
from wellsep.cluster.cf_means import (
    Budget,
    CentreSearch,
    CentreState,
    History,
    prepare,
    start_centers,
)


class WholePasses(CentreSearch):
    """A search whose every move is a pass over all points."""

    open_state = CentreState


class NoSplits(CentreSearch):
    def operator(self) -> str:
        return "point"


class NoPoints(CentreSearch):
    def operator(self) -> str:
        return "split"


class ByCoin(CentreSearch):
    def operator(self) -> str:
        return "split" if self.random_state.uniform() < 0.5 else "point"


# name of the variant → class of the search, attributes that are set before it runs
VARIANTS: dict[str, tuple[type[CentreSearch], dict[str, object]]] = {
    "all parts": (CentreSearch, {}),
    "whole passes instead of moved centres": (WholePasses, {}),
    "no splits": (NoSplits, {}),
    "no points": (NoPoints, {}),
    "operators by coin, not by yield": (ByCoin, {}),
    "patience 8": (CentreSearch, {"patience": 8}),
    "no end of patience, so no kicks": (CentreSearch, {"patience": 10**9}),
    "fresh starts instead of kicks": (CentreSearch, {"kicks": False}),
    "no transfers": (CentreSearch, {"transfers": False}),
}


class WorkBudget(Budget):
    """A limit on distances computed."""

    def __init__(self, history: History, max_work: float):
        super().__init__()
        self.history, self.max_work = history, max_work

    @property
    def late(self) -> bool:
        return bool(self.history.rows) and self.history.rows[-1][0] >= self.max_work


def search_history(
    X: np.ndarray, n_clusters: int, variant: str, max_work: float, seed: int
) -> dict[str, np.ndarray]:
    """Cost against work of a variant of the search, from a k-means++ start."""
    points, draws, history = prepare(X), np.random.RandomState(seed), History()

    def restart() -> np.ndarray:
        return start_centers(points, n_clusters, "k-means++", draws)

    make, attributes = VARIANTS[variant]
    budget = WorkBudget(history, max_work)
    search = make(points, restart(), restart, budget, draws, history=history)
    for name, value in attributes.items():
        setattr(search, name, value)
    search.run()
    return history.columns()


PASSES = 60  # work of a search, in passes over all points and centres


def sets() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    places = 2 * rng.normal(size=(50, 8))
    yield "50 Gaussians", rng.normal(size=(1500, 8)) + places[rng.integers(0, 50, 1500)]
    yield "uniform", rng.uniform(size=(1500, 3))
    yield "digits", ws.load_dataset("digits").X.astype(float)


def within_work(X: np.ndarray, k: int, variant: str, seed: int) -> float:
    """Lowest cost that the search reached within its work."""
    limit = float(PASSES * len(X) * k)
    course = search_history(X, k, variant, limit, seed)
    return float(course["inertia"][course["work"] <= limit].min())


def main() -> None:
    rows: dict[str, dict[int, list[float]]] = {name: {} for name in VARIANTS}
    for _, X in sets():
        for k in (10, 100):
            found = {
                name: float(np.mean([within_work(X, k, name, seed) for seed in range(2)]))
                for name in VARIANTS
            }
            lowest = min(found.values())
            for name, cost in found.items():
                rows[name].setdefault(k, []).append(1000 * (cost / lowest - 1))
    sys.stdout.write("| variant | K = 10 | K = 100 |\n|---|---|---|\n")
    for name, by_k in rows.items():
        cells = " | ".join(f"{np.mean(by_k[k]):.2f}" for k in (10, 100))
        sys.stdout.write(f"| {name} | {cells} |\n")


if __name__ == "__main__":
    main()
