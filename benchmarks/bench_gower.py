"""Does the silhouette under Gower's distance need pairs? Sorted columns against blocks of pairs."""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd

import wellsep as ws
from benchmarks.harness import report, seconds, time_ratio

N = 6_000  # at which pairs are affordable
LARGE = 100_000  # at which a matrix would have 80 GB
K = 5


def mixed(n: int, missing: float, seed: int = 0) -> tuple[ws.MixedTable, np.ndarray]:
    """Six numbers, three categories, three booleans."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    frame = pd.DataFrame(
        {f"x{c}": rng.normal(size=n) + y for c in range(6)}
        | {f"c{c}": (y + rng.integers(0, 3, n)).astype(str) for c in range(3)}
        | {f"b{c}": rng.random(n) < 0.2 + 0.1 * y for c in range(3)}
    )
    for column in ("x0", "x1", "c0"):
        frame.loc[rng.random(n) < missing, column] = None
    return ws.MixedTable(frame), y


def by_pairs(table: ws.MixedTable, y: np.ndarray) -> float:
    before = os.environ.get("WELLSEP_KERNELS")
    os.environ["WELLSEP_KERNELS"] = "0"
    try:
        return ws.silhouette_score(table, y)
    finally:
        if before is None:
            del os.environ["WELLSEP_KERNELS"]
        else:
            os.environ["WELLSEP_KERNELS"] = before


def main() -> int:
    met = []
    for missing, patterns, goal in ((0.0, 1, 20.0), (0.05, 8, 4.0)):
        table, y = mixed(N, missing)
        difference = abs(ws.silhouette_score(table, y) - by_pairs(table, y))
        assert difference < 1e-12, difference
        ratio = time_ratio(
            lambda t=table, y=y: by_pairs(t, y),
            lambda t=table, y=y: ws.silhouette_score(t, y),
            repeats=3,
        )
        question = f"Gower silhouette, {N:,}×12, K={K}, {patterns} pattern(s) of missing values"
        met.append(
            report(
                question,
                ratio,
                baseline="pairs by blocks",
                target=goal,
                difference=difference,
                seed=0,
            )
        )
    for missing in (0.0, 0.05):
        table, y = mixed(LARGE, missing)
        took = seconds(lambda t=table, y=y: ws.silhouette_score(t, y))
        print(f"Gower silhouette, {LARGE:,}×12, K={K}, {missing:.0%} missing: {took:.2f} s")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
