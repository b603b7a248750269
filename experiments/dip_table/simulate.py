"""Simulate the null table of the dip test: quantiles of sqrt(n)·D over uniform samples.

    python experiments/dip_table/simulate.py src/wellsep/spaces/dip_null.csv

Each row has its own generator, seeded by (SEED, n): rows can be added or remade alone and the
others stay as they are. From n = 60 on, each quantile is smoothed over n by a parabola in
1/sqrt(n), which fits within the error of the simulation and lends the larger n, simulated less
often, the firmer tails of the smaller. With numba installed it takes ten minutes of one core.
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
SMOOTH_FROM = 60
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


def quantiles_of(n: int) -> np.ndarray:
    """Simulated values that sqrt(n)·D exceeds with each of the probabilities."""
    dips = null_dips(n, simulations(n), random_state=np.random.SeedSequence([SEED, n]))
    return np.quantile(np.sqrt(n) * dips, 1 - PROBABILITIES)


def smoothed(sizes: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Replace the quantiles of all n from SMOOTH_FROM on by a weighted fit over these n."""
    large = sizes >= SMOOTH_FROM
    powers = np.vander(1 / np.sqrt(sizes[large]), 3)
    weights = np.sqrt([simulations(n) for n in sizes[large]])[:, None]
    fit = np.linalg.lstsq(weights * powers, weights * quantiles[large], rcond=None)[0]
    return np.concatenate((quantiles[~large], powers @ fit))


def write(path: str, quantiles: np.ndarray) -> None:
    """Write the table, a line for each n."""
    lines = [",".join(["n", "simulations", *(f"{p:.8g}" for p in PROBABILITIES)])]
    for n, row in zip(SIZES, quantiles, strict=True):
        lines.append(",".join([str(n), str(simulations(n)), *(f"{q:.6f}" for q in row)]))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the CSV file to write")
    path = parser.parse_args().path
    rows = []
    for n in SIZES:
        start = time.perf_counter()
        rows.append(quantiles_of(n))
        print(f"n = {n}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    write(path, smoothed(np.array(SIZES), np.array(rows)))


if __name__ == "__main__":
    main()
