"""Simulate the null table of the dip test: quantiles of sqrt(n)·D over uniform samples.

    python experiments/dip_table/simulate.py src/wellsep/spaces/dip_null.csv

Each row has its own generator, seeded by (SEED, n): rows can be added or remade alone and the
others stay as they are. With numba installed the whole table takes about ten minutes of one core.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from wellsep.spaces import null_dips

SEED = 19850301
# Every n up to 30, where the distribution still changes its shape, then a widening grid.
SIZES = [*range(4, 31), 35, 40, 50, 60, 80, 100, 140, 200, 300, 500, 700, 1000, 1500, 2000]
SIZES += [3000, 5000, 8000, 12_000, 20_000, 32_000, 50_000]
PROBABILITIES = np.concatenate(
    (
        [0.9999, 0.9995, 0.999, 0.998, 0.995],
        np.arange(99, 9, -1) / 100,
        10.0 ** -np.arange(1.0, 5.01, 0.1),
        [0.05],
    )
).round(8)
PROBABILITIES = np.unique(PROBABILITIES)[::-1]


def simulations(n: int) -> int:
    """A million where they are cheap, a hundred thousand at least."""
    return 1_000_000 if n <= 200 else 300_000 if n <= 2000 else 100_000


def row(n: int) -> str:
    """One line of the table."""
    dips = null_dips(n, simulations(n), random_state=np.random.SeedSequence([SEED, n]))
    smallest = np.mean(dips * 2 * n <= 1 + 1e-9)
    quantiles = np.quantile(np.sqrt(n) * dips, 1 - PROBABILITIES)
    return ",".join([str(n), str(len(dips)), f"{smallest:.6g}", *(f"{q:.6f}" for q in quantiles)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the CSV file to write")
    path = parser.parse_args().path
    lines = [",".join(["n", "simulations", "smallest", *(f"{p:.8g}" for p in PROBABILITIES)])]
    for n in SIZES:
        start = time.perf_counter()
        lines.append(row(n))
        print(f"n = {n}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
