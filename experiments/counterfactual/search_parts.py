"""What each part of the search of CFMeans contributes: the search without it, with equal work.

    python -m experiments.counterfactual.search_parts      # about two minutes, writes a table

Work is distances between points and centres, so that the table is the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import wellsep as ws
from wellsep.cluster import Parts, search_history

VARIANTS = {
    "all parts": Parts(),
    "whole passes instead of moved centres": Parts(local=False),
    "no splits": Parts(splits=False),
    "no points": Parts(points=False),
    "operators by coin, not by yield": Parts(by_yield=False),
    "patience 8": Parts(patience=8),
    "no end of patience, so no kicks": Parts(patience=10**9),
    "fresh starts instead of kicks": Parts(kicks=False),
    "no transfers": Parts(transfers=False),
}
PASSES = 60  # work of a search, in passes over all points and centres


def sets() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    places = 2 * rng.normal(size=(50, 8))
    yield "50 Gaussians", rng.normal(size=(1500, 8)) + places[rng.integers(0, 50, 1500)]
    yield "uniform", rng.uniform(size=(1500, 3))
    yield "digits", ws.load_dataset("digits").X.astype(float)


def within_work(X: np.ndarray, k: int, parts: Parts, seed: int) -> float:
    """Lowest cost that the search reached within its work."""
    limit = float(PASSES * len(X) * k)
    course = search_history(X, k, parts=parts, max_work=limit, random_state=seed)
    return float(course["inertia"][course["work"] <= limit].min())


def main() -> None:
    rows: dict[str, dict[int, list[float]]] = {name: {} for name in VARIANTS}
    for _, X in sets():
        for k in (10, 100):
            found = {
                name: float(np.mean([within_work(X, k, parts, seed) for seed in range(2)]))
                for name, parts in VARIANTS.items()
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
